// Tests stop requests, signals, and the output that is captured.
#include "gate/sys/interrupts.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gate/sys/capture.hpp"

namespace weir::sys {
namespace interrupts_test {

bool is_readable(const Stop& stop) {
  pollfd fd{stop.fd(), POLLIN, 0};
  return poll(&fd, 1, 0) == 1;
}

TEST(Stop, WakesEveryPollerForGood) {
  Stop stop;
  EXPECT_FALSE(stop.requested());
  EXPECT_FALSE(is_readable(stop));
  for (int i = 1; i <= 70'000; ++i) stop.request();  // more than a pipe holds
  EXPECT_TRUE(stop.requested());
  EXPECT_EQ(stop.times(), 70'000);
  EXPECT_TRUE(is_readable(stop));
  EXPECT_TRUE(is_readable(stop));
}

TEST(Interrupts, TurnSignalsIntoAStopAndGiveThemBack) {
  // The caller of the tests may ignore some of them (nohup, a shell's background).
  for (const int taken : {SIGINT, SIGTERM, SIGHUP}) signal(taken, SIG_DFL);
  struct sigaction before {
  }, after{};
  sigaction(SIGTERM, nullptr, &before);
  {
    const Interrupts interrupts;
    raise(SIGTERM);
    EXPECT_EQ(interrupts.stop().signal(), SIGTERM);
    raise(SIGINT);
    raise(SIGHUP);
    EXPECT_EQ(interrupts.stop().times(), 3);
    EXPECT_TRUE(is_readable(interrupts.stop()));
  }
  sigaction(SIGTERM, nullptr, &after);
  EXPECT_EQ(before.sa_handler, after.sa_handler);
}

TEST(Interrupts, LeaveAloneWhatNohupIgnores) {
  signal(SIGHUP, SIG_IGN);
  {
    const Interrupts interrupts;
    raise(SIGHUP);
    EXPECT_FALSE(interrupts.stop().requested());
  }
  signal(SIGHUP, SIG_DFL);
}

TEST(Capture, KeepsAllOrBeginningAndEnd) {
  struct Case {
    std::size_t printed;
    bool cut;
    const char* want;
  };
  const std::string text = "abcdefghijklmnopqrstuvwxyz";
  const Case cases[] = {
      {26, false, "abcdefghijklmnopqrstuvwxyz"},
      {7, true, "abcdefg"},  // 4 + 3: nothing to leave out
      {8, true, "abcd\n[... 1 bytes left out ...]\nfgh"},
      {26, true, "abcd\n[... 19 bytes left out ...]\nxyz"},
      {0, true, ""},
  };
  for (const Case& c : cases) {
    for (const bool cut_first : {true, false}) {
      for (const std::size_t step : {std::size_t{1}, std::size_t{5}, std::size_t{26}}) {
        Capture capture(4, 3);
        if (c.cut && cut_first) capture.cut();
        for (std::size_t at = 0; at < c.printed; at += step) {
          capture.add(std::string_view(text).substr(at, std::min(step, c.printed - at)));
        }
        if (c.cut && !cut_first) capture.cut();
        EXPECT_EQ(capture.bytes(), c.printed);
        EXPECT_EQ(capture.take(), c.want) << c.printed << " by " << step;
      }
    }
  }
}

TEST(Interrupts, WithinOthersGiveThemBackToThose) {
  for (const int taken : {SIGINT, SIGTERM, SIGHUP}) signal(taken, SIG_DFL);
  const Interrupts outer;
  {
    const Interrupts inner;
    raise(SIGINT);
    EXPECT_TRUE(inner.stop().requested());
    EXPECT_FALSE(outer.stop().requested());
  }
  raise(SIGTERM);
  EXPECT_EQ(outer.stop().signal(), SIGTERM);
  EXPECT_FALSE(outer.over());
}

TEST(Interrupts, WithALimitStopWhenItIsOver) {
  const Interrupts brief(0.01), long_lasting(3600);
  pollfd fd{brief.stop().fd(), POLLIN, 0};
  EXPECT_EQ(poll(&fd, 1, 60'000), 1);
  EXPECT_TRUE(brief.over());
  EXPECT_EQ(brief.stop().signal(), 0);
  EXPECT_FALSE(long_lasting.stop().requested());
}

}  // namespace interrupts_test
}  // namespace weir::sys
