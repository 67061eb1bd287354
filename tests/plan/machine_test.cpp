// The machine as hwloc sees it agrees with what the worker team will use.
#include "plan/machine.hpp"

#include <gtest/gtest.h>

#include <set>

#include "core/worker_team.hpp"

namespace spikeloom {
namespace {

TEST(Machine, OffersTheCoresThatTheTeamTakesInTheSameOrder) {
  const Machine machine = describe_machine();
  std::vector<int> cpus;
  for (const CoreSeat& seat : machine.seats) cpus.push_back(seat.cpu);
  EXPECT_EQ(cpus, available_cpus());
  EXPECT_EQ(static_cast<int>(cpus.size()), available_cores());
  EXPECT_FALSE(machine.cpu.empty());
}

TEST(Machine, CountsAreConsistent) {
  const Machine machine = describe_machine();
  EXPECT_GE(machine.cores, 1);
  EXPECT_GE(machine.packages, 1);
  std::set<int> nodes;
  for (const CoreSeat& seat : machine.seats) nodes.insert(seat.numa_node);
  EXPECT_LE(static_cast<int>(nodes.size()), machine.numa_nodes);
  if (machine.l1_bytes > 0 && machine.l2_bytes > 0) {
    EXPECT_LT(machine.l1_bytes, machine.l2_bytes);
  }
}

}  // namespace
}  // namespace spikeloom
