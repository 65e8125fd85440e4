// Tests rare uses of marks, which must not break them: the scenes of corners.c.
#include <regex>

#include "gate/base/text.hpp"

#include "tests/probes/instrument/support.hpp"

namespace weir::probes {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

Ran corner(const std::string& scene, const std::map<std::string, std::string>& env = {}) {
  return run({WEIR_INSTRUMENT_CORNERS, scene}, env);
}

// 20 buffers of 50 dispatches and 3000 behind them: the first 50 are there each time.
TEST(MarksInCorners, OfThreadsThatHandTheirBuffersOver) {
  const Ran ran = corner("handover", {{"WEIR_PROFILE", "dispatch"}});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_THAT(ran.err, ContainsRegex("handed over +20 "));
  EXPECT_THAT(ran.err, ContainsRegex("  0 +first +20 "));
  EXPECT_THAT(ran.err, ContainsRegex("  49 +first +20 "));
  EXPECT_THAT(ran.err, Not(ContainsRegex("  50 +first ")));
}

// 800 threads of 16000 dispatches each would be 50 MB.
TEST(MarksInCorners, OfEndedOnesAreForgotten) {
  const Ran ran =
      corner("left-open", {{"WEIR_PROFILE", "dispatch"}, {"ASAN_OPTIONS", "quarantine_size_mb=1"}});
  ASSERT_EQ(ran.status, 0) << ran.err;
  EXPECT_LT(std::stol(ran.out), 16 * 1024);
  EXPECT_THAT(ran.err, ContainsRegex("left open +1200 "));
}

TEST(MarksInCorners, TellKernelsFromOpsOfTheSameName) {
  const Ran ran = corner("names", {{"WEIR_PROFILE", "counts,ops"}});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_THAT(ran.err, ContainsRegex("Sample GPU 0 +1025 "));
  EXPECT_THAT(ran.err, ContainsRegex("MUL_MAT +1025\n"));
  EXPECT_THAT(ran.err, ContainsRegex("MUL_MAT +1024 "));
}

// A million ticks are 40 ms. One buffer's were taken for 1 ms, before anything told; a warning says
// so.
TEST(MarksInCorners, TakeTheTickFromAPairThatComesLate) {
  const Ran ran = corner("late-clock", {{"WEIR_PROFILE", "cb"}});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(ran.out, "1160000000\n");
  EXPECT_THAT(ran.err, ContainsRegex("early +1 +1\\.000 "));
  EXPECT_THAT(ran.err, ContainsRegex("late +3 +120\\.000 "));
  EXPECT_THAT(ran.err, HasSubstr("a GPU tick is taken for 1 ns"));
}

TEST(MarksInCorners, AreCountedAfterScopesThatWereCutOff) {
  const Ran ran = corner("switched");
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_THAT(ran.out, ContainsRegex("WHOLE +1 "));
  EXPECT_THAT(ran.out, Not(HasSubstr("CUT")));
}

// The rest of the whole is more than the ops' own times, however slow the machine is. The counter
// that scopes read is compared with the clock for as long as they last: 1 ms is for that.
TEST(MarksInCorners, OfOpsHaveNoTimeOfWaits) {
  const Ran ran = corner("waiting");
  ASSERT_EQ(ran.status, 0) << ran.err;
  const auto number = [&](const char* pattern) {
    std::smatch match;
    EXPECT_TRUE(std::regex_search(ran.out, match, std::regex(pattern))) << pattern << ran.out;
    return match.empty() ? 0 : std::stod(match[1]);
  };
  const double total = number("([0-9]+) us\n") / 1000;
  EXPECT_LE(number("OUTER +1 +([0-9.]+) "), total - 300 + 1);
  EXPECT_LE(number("INNER +1 +([0-9.]+) "), total - 300 + 1);
}

// With a single scope the mean equals the longest.
void expect_one_of_each(const Ran& ran) {
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("\n1 evaluation\n"));
  std::smatch match;
  ASSERT_TRUE(
      std::regex_search(ran.out, match, std::regex("OP +1 +[0-9.]+ +([0-9.]+) +([0-9.]+) ")))
      << ran.out;
  EXPECT_EQ(match[1], match[2]);
}

TEST(MarksInCorners, AreAllForgottenByAReset) { expect_one_of_each(corner("reset")); }

TEST(MarksInCorners, AreAllForgottenInAForkedChild) { expect_one_of_each(corner("fork-reset")); }

TEST(MarksInCorners, OfAForkedChildsForkedChildAreItsOwn) {
  const Folder folder;
  const Ran ran = corner("fork-twice", counting(folder.path()));
  ASSERT_EQ(ran.status, 0) << ran.err;
  const auto files = probe_files(folder.path());
  ASSERT_THAT(files, SizeIs(2));
  for (const ProbeFile& file : files) {
    if ((file.flags & WEIR_PROBE_FORKED) == 0) continue;
    EXPECT_EQ(fmt::format("{} {}\n", file.parent_pid, file.pid), ran.out);
  }
}

// Rows of a label and a position, whose numbers are small and close together.
TEST(MarksInCorners, KeepEachDispatchUnderItsOwnLabel) {
  const Ran ran = corner("labels", {{"WEIR_PROFILE", "cb,dispatch"}});
  ASSERT_EQ(ran.status, 0) << ran.err;
  for (int layer = 0; layer < 4; ++layer) {
    for (int position = 0; position < 4; ++position) {
      const auto row = fmt::format("  nr   layer{}(.*\n)+  {} +gemv +1 ", layer, position);
      EXPECT_THAT(ran.err, ContainsRegex(row));
    }
  }
  EXPECT_THAT(ran.err, Not(ContainsRegex("gemv +[2-9] ")));
}

TEST(MarksInCorners, NeverKillByAPipeThatNobodyReads) {
  const Ran ran = corner("pipe");
  EXPECT_EQ(ran.status, 0);
  EXPECT_EQ(ran.out, "alive, pending\n");
}

TEST(MarksInCorners, LeaveErrnoAlone) {
  const Folder folder;
  auto events = counting(folder.path(), {{"WEIR_PROBE_EVENTS", "4"}});
  events["WEIR_PROFILE"] = "counts,ops,cb,dispatch";
  const std::map<std::string, std::string> cases[] = {
      {{"WEIR_PROFILE", "counts,ops,cb,dispatch"}},
      events,
      counting("/nowhere"),
  };
  for (const auto& env : cases) {
    const Ran ran = corner("errno", env);
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_EQ(ran.out, "");
  }
}

}  // namespace
}  // namespace weir::probes
