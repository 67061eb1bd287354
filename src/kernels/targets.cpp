// Which instruction sets there are, and how tests choose one.
#include <atomic>

#include <hwy/highway.h>
#include <hwy/targets.h>

#include <spikeloom/error.hpp>
#include "kernels/kernels.hpp"

namespace spikeloom::kernels {
namespace {

std::atomic<Bf16Dot> bf16_dot{Bf16Dot::where_it_pays};

#if defined(__x86_64__)
bool cpu_has_bf16_dot() { return __builtin_cpu_supports("avx512bf16"); }
bool adding_pays() { return __builtin_cpu_is("amd"); }
#else
bool cpu_has_bf16_dot() { return false; }
bool adding_pays() { return false; }
#endif

}  // namespace

void use_bf16_dot(Bf16Dot use) { bf16_dot.store(use, std::memory_order_relaxed); }

bool multiplies_by_bf16_dot() {
  static const bool there = cpu_has_bf16_dot();
  return there && bf16_dot.load(std::memory_order_relaxed) != Bf16Dot::never;
}

bool adds_by_bf16_dot() {
  static const bool pays = adding_pays();
  return multiplies_by_bf16_dot() && (pays || bf16_dot.load(std::memory_order_relaxed) == Bf16Dot::always);
}

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
