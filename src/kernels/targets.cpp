// Which instruction sets there are, and how tests choose one.
#include <hwy/highway.h>
#include <hwy/targets.h>

#include <spikeloom/error.hpp>
#include "kernels/kernels.hpp"

namespace spikeloom::kernels {

std::vector<std::string> available_targets() {
  std::vector<std::string> names;
  // Highway's bits grow towards the older instruction sets.
  for (std::int64_t left = hwy::SupportedTargets() & HWY_TARGETS; left != 0; left &= left - 1)
    names.emplace_back(hwy::TargetName(left & -left));
  return names;
}

void limit_to_target(const std::string& name) {
  hwy::SetSupportedTargetsForTest(0);
  std::int64_t chosen = 0;
  for (std::int64_t left = hwy::SupportedTargets() & HWY_TARGETS; left != 0; left &= left - 1) {
    if (hwy::TargetName(left & -left) == name) chosen = left & -left;
  }
  if (!name.empty() && chosen == 0) throw InternalError("no kernels for the instruction set " + name + " on this CPU");
  hwy::SetSupportedTargetsForTest(chosen);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace spikeloom::kernels
