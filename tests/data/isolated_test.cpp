// Whatever a child process does, its parent goes on and is told.
#include "data/isolated.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <vector>

namespace spikeloom {
namespace {

void ignore(const IsolatedReceiver&) {}

bool has_children() { return ::waitpid(-1, nullptr, WNOHANG) != -1; }

TEST(Isolated, what_is_sent_arrives_in_order_and_whole) {
  std::vector<int> numbers(3'000'000);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<int>(i * 7);
  std::vector<int> received(numbers.size());
  bool more = true;
  const IsolatedEnd end = run_isolated(
      {},
      [&](const IsolatedSender& sender) {
        sender.send(std::as_bytes(std::span(numbers)));
        return 3;
      },
      [&](const IsolatedReceiver& receiver) {
        EXPECT_TRUE(receiver.receive(std::as_writable_bytes(std::span(received))));
        std::byte one{};
        more = receiver.receive(std::span(&one, 1));
      });
  EXPECT_EQ(received, numbers);
  EXPECT_FALSE(more);
  EXPECT_EQ(end.status, 3);
  EXPECT_EQ(end.signal, 0);
  EXPECT_FALSE(has_children());
}

TEST(Isolated, a_crash_is_told_by_its_signal) {
  EXPECT_EQ(run_isolated(
                {}, [](const IsolatedSender&) { return ::raise(SIGSEGV); }, ignore)
                .signal,
            SIGSEGV);
  EXPECT_EQ(run_isolated(
                {}, [](const IsolatedSender&) -> int { std::abort(); }, ignore)
                .signal,
            SIGABRT);
  EXPECT_FALSE(has_children());
}

TEST(Isolated, an_exception_in_the_child_is_a_status) {
  EXPECT_EQ(run_isolated(
                {}, [](const IsolatedSender&) -> int { throw std::runtime_error("x"); }, ignore)
                .status,
            1);
}

TEST(Isolated, a_child_that_runs_in_circles_is_stopped) {
  IsolatedLimits limits;
  limits.cpu_seconds = 1;
  const auto circle = [](const IsolatedSender&) {
    for (volatile unsigned turns = 0;;) turns = turns + 1;
    return 0;
  };
  EXPECT_EQ(run_isolated(limits, circle, ignore).signal, SIGXCPU);
}

TEST(Isolated, a_child_that_asks_for_too_much_memory_is_refused_it) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers need more address space than any limit";
#endif
  IsolatedLimits limits;
  limits.memory_bytes = std::size_t{64} << 20;
  const auto ask = [](std::size_t bytes) {
    return [bytes](const IsolatedSender&) { return std::vector<char>(bytes, 'x')[bytes / 2] == 'x' ? 5 : 6; };
  };
  EXPECT_EQ(run_isolated(limits, ask(std::size_t{16} << 20), ignore).status, 5);
  EXPECT_EQ(run_isolated(limits, ask(std::size_t{256} << 20), ignore).status, 1);
}

TEST(Isolated, a_parent_that_stops_listening_ends_the_child) {
  const auto talk = [](const IsolatedSender& sender) {
    const std::vector<std::byte> block(1 << 16);
    for (;;) sender.send(block);
    return 0;
  };
  const auto listen = [](const IsolatedReceiver& receiver) {
    std::byte one{};
    EXPECT_TRUE(receiver.receive(std::span(&one, 1)));
  };
  EXPECT_EQ(run_isolated({}, talk, listen).signal, SIGPIPE);
  EXPECT_THROW(run_isolated({}, talk, [](const IsolatedReceiver&) { throw std::logic_error("enough"); }),
               std::logic_error);
  EXPECT_FALSE(has_children());
}

}  // namespace
}  // namespace spikeloom
