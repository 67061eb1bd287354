#include "core/worker_team.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <cstdlib>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <spikeloom/error.hpp>

namespace spikeloom {
namespace {

// 7 is more than many machines have cores: teams must work there too.
class WorkerTeams : public ::testing::TestWithParam<int> {};

TEST_P(WorkerTeams, RunTheWorkOnceOnEveryWorkerOnThreadsOfTheirOwn) {
  WorkerTeam team(GetParam());
  ASSERT_EQ(team.size(), GetParam());
  std::vector<int> runs(team.size(), 0);  // each worker writes its own element
  std::vector<std::thread::id> threads(team.size());
  team.run([&](int worker) {
    ++runs[worker];
    threads[worker] = std::this_thread::get_id();
  });
  EXPECT_EQ(runs, std::vector<int>(team.size(), 1));
  EXPECT_EQ(std::set<std::thread::id>(threads.begin(), threads.end()).size(), threads.size());
  EXPECT_EQ(threads[0], std::this_thread::get_id());
}

TEST_P(WorkerTeams, HaveABarrierAtTheEndOfEachRegion) {
  WorkerTeam team(GetParam());
  std::vector<long> sums(team.size(), 0);
  long total = 0;
  for (long round = 1; round <= 2000; ++round) {
    team.run([&](int worker) { sums[worker] += round; });
    total += round;
    // What the workers wrote is seen here without further synchronisation, and nobody is still at work.
    for (const long sum : sums) ASSERT_EQ(sum, total);
  }
}

TEST_P(WorkerTeams, CoverEveryItemOnce) {
  WorkerTeam team(GetParam());
  for (const std::size_t count : {0, 1, 2, 5, 1000}) {
    std::vector<std::atomic<int>> visits(count);
    team.for_each(count, [&](std::size_t item, int worker) {
      EXPECT_GE(worker, 0);
      EXPECT_LT(worker, team.size());
      ++visits[item];
    });
    for (std::size_t item = 0; item < count; ++item) EXPECT_EQ(visits[item], 1) << "item " << item << " of " << count;
  }
}

TEST_P(WorkerTeams, NeverGiveTwoItemsToOneWorkerAtATime) {
  WorkerTeam team(GetParam());
  std::vector<std::atomic<int>> busy(team.size());
  std::atomic<int> clashes{0};
  team.for_each(500, [&](std::size_t, int worker) {
    if (busy[worker]++ != 0) ++clashes;
    std::this_thread::yield();
    --busy[worker];
  });
  EXPECT_EQ(clashes, 0);
}

TEST_P(WorkerTeams, RethrowTheLowestWorkersExceptionAndGoOn) {
  WorkerTeam team(GetParam());
  for (int lowest = 0; lowest < team.size(); ++lowest) {
    std::atomic<int> finished{0};
    try {
      team.run([&](int worker) {
        ++finished;
        if (worker >= lowest) throw std::runtime_error(std::to_string(worker));
      });
      ADD_FAILURE() << "no exception reached the caller";
    } catch (const std::runtime_error& error) {
      EXPECT_EQ(error.what(), std::to_string(lowest));
    }
    EXPECT_EQ(finished, team.size());  // the others ended their work
  }
  std::atomic<int> runs{0};
  team.run([&](int) { ++runs; });  // no old exception is left behind
  EXPECT_EQ(runs, team.size());
}

TEST_P(WorkerTeams, PassOnAnExceptionFromAnItem) {
  WorkerTeam team(GetParam());
  EXPECT_THROW(team.for_each(100,
                             [](std::size_t item, int) {
                               if (item == 37) throw UserError("item 37");
                             }),
               UserError);
}

TEST_P(WorkerTeams, MeetAfterEveryStep) {
  WorkerTeam team(GetParam());
  constexpr int kSteps = 300;
  std::vector<int> steps(team.size(), 0);
  std::atomic<int> out_of_step{0};
  for (int again = 0; again < 2; ++again) {
    std::fill(steps.begin(), steps.end(), 0);
    team.run([&](int worker) {
      for (int step = 1; step <= kSteps; ++step) {
        steps[worker] = step;
        if (!team.meet()) return;
        for (const int other : steps) out_of_step += other != step;
        if (!team.meet()) return;
      }
    });
    for (const int step : steps) EXPECT_EQ(step, kSteps);
  }
  EXPECT_EQ(out_of_step, 0);
}

TEST_P(WorkerTeams, DoNotWaitForOneThatFailed) {
  WorkerTeam team(GetParam());
  for (int failing = 0; failing < team.size(); ++failing) {
    std::atomic<int> let_go{0};
    try {
      team.run([&](int worker) {
        for (int step = 0; step < 20; ++step) {
          if (worker == failing && step == 7) throw std::runtime_error("at step 7");
          if (!team.meet()) {
            ++let_go;
            return;
          }
        }
      });
      ADD_FAILURE() << "no exception reached the caller";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "at step 7");
    }
    EXPECT_EQ(let_go, team.size() - 1);
    std::atomic<int> met{0};
    team.run([&](int) { met += team.meet(); });  // the next region starts anew
    EXPECT_EQ(met, team.size());
  }
}

INSTANTIATE_TEST_SUITE_P(OfSize, WorkerTeams, ::testing::Values(1, 2, 3, 7));

TEST(WorkerTeam, OfNoWorkersIsABug) {
  EXPECT_THROW(WorkerTeam(0), InternalError);
  EXPECT_THROW(WorkerTeam(-1), InternalError);
}

TEST(WorkerTeam, MayBeMadeAndDroppedUnused) {
  for (int i = 0; i < 50; ++i) WorkerTeam(1 + i % 7);
  SUCCEED();
}

TEST(WorkerTeam, ThatFindsTooFewThreadsIsALackOfResources) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer's shadow memory leaves no room for a limit of address space";
#endif
  const auto start_many = [] {
    const rlimit limit{std::size_t{2} << 30, RLIM_INFINITY};  // room for the stacks of some 250 threads
    ::setrlimit(RLIMIT_AS, &limit);
    try {
      const WorkerTeam team(1024);
      std::_Exit(1);
    } catch (const ResourceError&) {
      std::_Exit(0);
    }
  };
  EXPECT_EXIT(start_many(), ::testing::ExitedWithCode(0), "");
}

TEST(WorkerTeam, SeesAtLeastOneCore) { EXPECT_GE(available_cores(), 1); }

}  // namespace
}  // namespace spikeloom
