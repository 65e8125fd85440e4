// The command line in process: which verb runs, and how its answer and errors leave the program.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/app/run.hpp"

namespace weir::app {
namespace program_test {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(Program, ChecksThePlaceOfEachReportBeforeItMeasures) {
  for (const char* option : {"--json", "--markdown", "--junit", "--html", "--openmetrics"}) {
    tests::FakeWorld world(tests::k_timed_yaml);
    EXPECT_EQ(run(world, {"gate", "-c", "/project/weir.yaml", "--baselines", "/project/baselines",
                          "--out", "/out", "-q", option, "/nowhere/report"}),
              2)
        << option;
    EXPECT_THAT(world.terminal.err, HasSubstr("/nowhere")) << option;
    EXPECT_TRUE(world.processes.started.empty()) << option;
  }
}

TEST(Program, PrintsAnAnswerAndItsDocument) {
  tests::FakeWorld world(tests::k_timed_yaml);
  const std::vector<const char*> list{"baseline", "list", "--baselines", "/project/baselines",
                                      "--json"};
  EXPECT_EQ(run(world, list), 0);
  EXPECT_EQ(Json::parse(world.terminal.out)["schema"], "weir.baselines/1");
  EXPECT_THAT(world.terminal.err, StartsWith("No baselines in /project/baselines."))
      << "people read standard error where --json has standard output";
}

TEST(Program, TakesWordsAfterTwoDashesForTheVerbsThatDo) {
  tests::FakeWorld world(tests::k_timed_yaml);
  EXPECT_EQ(run(world, {"baseline", "list", "--", "./bench"}), 2);
  EXPECT_THAT(world.terminal.err, HasSubstr("takes no program after \"--\""));
  world.terminal.err.clear();
  EXPECT_EQ(run(world, {"gate", "-c", "/project/weir.yaml", "--", "./bench"}), 2);
  EXPECT_THAT(world.terminal.err, HasSubstr("--against -- COMMAND"));
}

TEST(Program, RunsNoVerbOfAnotherCall) {
  tests::FakeWorld world(tests::k_timed_yaml);
  EXPECT_EQ(run(world, {"baseline", "list", "--baselines", "/project/baselines"}), 0);
  EXPECT_EQ(run(world, {}), 2) << "nothing is kept from the call before";
}

TEST(Program, NamesTheCommandThatWasMeant) {
  const struct {
    std::vector<const char*> words;
    const char* says;
  } cases[] = {
      {{"gat"}, "weir: no command \"gat\" (did you mean \"gate\"?)\n"},
      {{"gaet"}, "weir: no command \"gaet\" (did you mean \"gate\"?)\n"},
      {{"gate", "--cels", "x"}, "weir: no option --cels (did you mean \"--cell\"?)\n"},
      {{"gate", "-x"}, "weir: no option -x\n"},
      {{"baseline", "accept", "--reson", "x"},
       "weir: no option --reson (did you mean \"--reason\"?)\n"},
      {{"--color", "gate"}, "weir: no option --color\n  weir --help lists them\n"},
      {{"gate", "--dry-run"},
       "weir: no option --dry-run\n  commands that have it: weir run, weir post\n"},
      {{"help", "gat"}, "weir: no command \"gat\" (did you mean \"gate\"?)\n"},
      {{"help", "nosuch"}, "weir: no command \"nosuch\"\n"},
      {{"baseline", "acept"}, "weir: no command \"acept\" (did you mean \"accept\"?)\n"},
  };
  for (const auto& c : cases) {
    tests::FakeWorld world(tests::k_timed_yaml);
    EXPECT_EQ(run(world, c.words), 2) << c.says;
    EXPECT_THAT(world.terminal.err, StartsWith(c.says));
  }
}

TEST(Program, PutsItsNameBeforeWhatTheParserRefuses) {
  for (const std::vector<const char*>& words :
       {std::vector<const char*>{"model", "make"}, {"baseline"}}) {
    tests::FakeWorld world(tests::k_timed_yaml);
    testing::internal::CaptureStderr();
    EXPECT_EQ(run(world, words), 2) << words.back();
    EXPECT_THAT(testing::internal::GetCapturedStderr(), StartsWith("weir: ")) << words.back();
  }
}

}  // namespace program_test
}  // namespace weir::app
