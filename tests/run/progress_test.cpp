// Tests the progress bar on terminals and the progress lines in logs.
#include "gate/run/progress.hpp"

#include "gate/base/text.hpp"

#include "tests/run/scene.hpp"

namespace weir::run {
namespace progress_test {

using profile::Pass;

ProgressState state(std::int64_t done, std::int64_t total) {
  ProgressState now;
  now.pass = Pass::timed;
  now.done = done;
  now.total = total;
  now.cell = "llama.cpp/tiny-gemma3/vulkan/prefill";
  now.seconds_left = 72;
  return now;
}

TEST(Progress, FitsIntoOneLineOfAnyTerminal) {
  EXPECT_EQ(bar_line(state(31, 52), 100),
            " timed    ██████████████░░░░░░░░░░  31/52   llama.cpp/tiny-gemma3/vulkan/prefill   "
            "1 m 12 s left");
  EXPECT_EQ(bar_line(state(31, 52), 80),
            " timed    ██████████████░░░░░░░░░░  31/52   …mma3/vulkan/prefill   1 m 12 s left");
  for (std::size_t columns = 1; columns < 120; ++columns) {
    EXPECT_LE(text::columns(bar_line(state(31, 52), columns)), columns);
  }
  EXPECT_NE(bar_line(state(0, 0), 80), "") << "nothing to do is no division by zero";
}

TEST(Progress, ShowsDurationsInTwoUnitsAtMost) {
  const std::pair<double, const char*> cases[] = {
      {0, "0 s"},    {0.2, "1 s"},      {59.4, "1 m"},     {72, "1 m 12 s"},
      {3600, "1 h"}, {3601, "1 h 1 m"}, {7500, "2 h 5 m"}, {-1, "0 s"},
  };
  for (const auto& [seconds, want] : cases) EXPECT_EQ(show_time_left(seconds), want) << seconds;
}

TEST(Progress, DrawsTheBarOverItselfAndKeepsWhatIsSaid) {
  FakeClock clock;
  std::string written;
  BarProgress bar(
      clock, [&](std::string_view text) { written += text; }, 60, false);
  bar.show(state(1, 52));
  const std::string first = written;
  EXPECT_TRUE(first.starts_with("\r\x1b[K timed"));
  bar.show(state(2, 52));
  EXPECT_EQ(written, first) << "drawn ten times a second at most";
  clock.seconds = 0.2;
  bar.show(state(3, 52));
  EXPECT_EQ(written.find("3/52", first.size()) != std::string::npos, true);
  written.clear();
  bar.say("a line");
  EXPECT_TRUE(written.starts_with("\r\x1b[Ka line\n timed")) << "above the bar";
  written.clear();
  bar.finish();
  EXPECT_EQ(written, "\r\x1b[K");
}

TEST(Progress, SaysLittleInALog) {
  FakeClock clock;
  std::string written;
  LineProgress lines(
      clock, [&](std::string_view text) { written += text; }, 15);
  ProgressState counted = state(0, 3);
  counted.pass = Pass::counted;
  counted.seconds_left = std::nullopt;
  lines.show(counted);
  clock.seconds = 14;
  lines.show(counted);
  lines.show(state(0, 52));
  clock.seconds = 28;
  lines.show(state(9, 52));
  clock.seconds = 29;
  lines.show(state(10, 52));
  EXPECT_EQ(written,
            "counted 0/3  llama.cpp/tiny-gemma3/vulkan/prefill\n"
            "timed 0/52  llama.cpp/tiny-gemma3/vulkan/prefill  1 m 12 s left\n"
            "timed 10/52  llama.cpp/tiny-gemma3/vulkan/prefill  1 m 12 s left\n");
  EXPECT_EQ(written.find('\x1b'), std::string::npos);
}

TEST(Progress, SaysNothingThatACiSystemWouldObey) {
  const sys::RealClock clock;
  std::string out;
  const auto write = [&](std::string_view text) { out += text; };
  LineProgress(clock, write).say("::error::x\n##[error]y");
  BarProgress(clock, write, 80, false).say("::error::x");
  EXPECT_EQ(out, "\u2237error::x\n##(error]y\n\u2237error::x\n");
}

}  // namespace progress_test
}  // namespace weir::run
