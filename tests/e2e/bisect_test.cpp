// weir bisect on a small engine of C under real git: the first bad commit by counts.
#include <gmock/gmock.h>

#include "tests/e2e/engine_project.hpp"

namespace weir::e2e {
namespace bisect_test {

using ::testing::HasSubstr;
using ::testing::Not;

class Bisect : public EngineProject {};

TEST_F(Bisect, FindsOneCountAmongTwoHundredCommitsOfWhichATenthDoesNotBuild) {
  make(line(200, 137, 61, tenth(200, {136, 137})));
  const std::string before = checkout();
  const Ended ended = bisect({sha(0), "main", "--cell", "mine/*"});
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  const Json json = json_of(ended);
  EXPECT_EQ(json["schema"], "weir.bisect/1");
  EXPECT_EQ(json["result"], "found");
  EXPECT_EQ(json["first_bad"], sha(137));
  EXPECT_EQ(json["commits"], 200);
  // The change of the bad commit against the good one: counts alone, though it is slower as well.
  const Json cell = cell_of(json["verdict"], "mine/m/metal/decode");
  EXPECT_EQ(metric_of(cell, "dispatches_per_token")["baseline"], 65);
  EXPECT_EQ(metric_of(cell, "dispatches_per_token")["current"], 66);
  // log2(200) is 7.6; both ends are built, and a few that do not build are tried.
  EXPECT_LE(built().size(), 2 + 8 + 5U) << ended.err;
  EXPECT_THAT(ended.err,
              HasSubstr("the first bad commit is\n  " + sha(137) + "\n  \"change 137\""));
  EXPECT_THAT(ended.err, HasSubstr("more steps"));
  EXPECT_THAT(ended.out + ended.err, Not(HasSubstr("example.org")));
  EXPECT_EQ(checkout(), before);
}

TEST_F(Bisect, FollowsMergesOnAllSides) {
  // 0 - 1 - 2 - 5 - 7 - 8       2 is the good one; 3, 4 and 6 are on branches begun before it
  //  \- 3 - 4 -/   /
  //      \-- 6 --/               the count grew in 6, and came in by the merge 7
  std::vector<ProjectCommit> commits = {{{}},     {{0}},     {{1}},        {{0}},    {{3}},
                                        {{2, 4}}, {{3}, 70}, {{5, 6}, 70}, {{7}, 70}};
  make(commits);
  const Json json = json_of(bisect({sha(2), "HEAD"}));
  EXPECT_EQ(json["first_bad"], sha(6));
  EXPECT_EQ(json["commits"], 6) << "3, 4, 5, 6, 7 and 8";
}

TEST_F(Bisect, TakesTheMergeBaseWhereTheGoodCommitIsNoAncestor) {
  // 0 - 1 - 2 - 3 (bad)   and   1 - 4 (good)
  std::vector<ProjectCommit> commits = line(3, 2, 9, {});
  commits.push_back({{1}});
  commits.push_back({{3}, 66});
  make(commits);
  const Ended ended = bisect({sha(4), sha(3)});
  EXPECT_EQ(json_of(ended)["first_bad"], sha(2)) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("their merge-base, " + sha(1).substr(0, 7)));
}

TEST_F(Bisect, SaysARangeWhereTheCulpritCouldNotBeBuilt) {
  make(line(20, 10, 99, {9, 10, 11}));
  const Ended ended = bisect({sha(0), "HEAD"});
  EXPECT_EQ(ended.exit_code, 3) << ended.err;
  const Json json = json_of(ended);
  EXPECT_EQ(json["result"], "undecided");
  EXPECT_TRUE(json["first_bad"].is_null());
  ASSERT_EQ(json["suspects"].size(), 4U);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(json["suspects"][i]["commit"], sha(12 - i));
  EXPECT_EQ(json["suspects"][0]["tried"], "bad");
  EXPECT_EQ(json["suspects"][1]["tried"], "skipped");
  EXPECT_THAT(ended.err, HasSubstr("one of these 4"));
  EXPECT_THAT(ended.err, HasSubstr("does not build: `./build.sh`"));
}

TEST_F(Bisect, SaysAtOnceThatTheGoodOneIsBadOrTheBadOneGood) {
  make(line(40, 30, 99, {}));
  Ended ended = bisect({sha(0), sha(29)});
  EXPECT_EQ(ended.exit_code, 2) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("is not bad: beside " + sha(0).substr(0, 7)));
  EXPECT_EQ(built().size(), 2U);
  ended = bisect({sha(30), sha(29)});
  EXPECT_EQ(ended.exit_code, 2) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("the good commit comes first: weir bisect "));
  write_config("limits: [{metrics: dispatches_per_token, max: 64}]\n");
  ended = bisect({sha(0), sha(40)});
  EXPECT_EQ(ended.exit_code, 2) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("is not good: beside itself, mine/m/metal/decode: "));
  EXPECT_EQ(built().size(), 2U);
}

TEST_F(Bisect, ByTimesTheGoodOneIsTriedOnlyWhereALimitIsAbsolute) {
  make(line(3, 2, 9, {}));
  const std::string bound = "limits: [{metrics: decode_tokens_per_second, min: 1}]\n";
  for (const auto& [limits, is_tried] : {std::pair{std::string(), false}, {bound, true}}) {
    write_config(limits);
    const Ended ended = bisect({sha(0), "HEAD", "--times"});
    EXPECT_EQ(ended.exit_code, 2) << "its times do not change\n" << ended.err;
    EXPECT_EQ(ended.err.find("  " + sha(0).substr(0, 7) + " \"") != std::string::npos, is_tried)
        << ended.err;
  }
}

TEST_F(Bisect, NamesTheOptionForTimesWhereNothingCanBeCounted) {
  make(line(3, 2, 9, {}));
  std::string config = slurp(repo() / "weir.yaml");
  const std::size_t counts = config.find("      dispatches_per_token");
  config.erase(counts, config.find("      decode_tokens_per_second") - counts);
  spill(repo() / "weir.yaml", config);
  const Ended ended = bisect({sha(0), "HEAD"});
  EXPECT_EQ(ended.exit_code, 2) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("or judge times: --times"));
}

TEST_F(Bisect, RefusesWhatItCanNotDo) {
  make(line(3, 2, 9, {3}));
  for (const auto& [arguments, code, message] :
       {std::tuple{std::vector<std::string>{}, 2, "GOOD BAD"},
        {{"nothing-like-this", "HEAD"}, 2, "nothing-like-this: no commit that is known here"},
        {{"--resume", "--times"}, 2, "that it was begun with"},
        {{"--resume"}, 2, "no bisection to go on with"},
        {{sha(0), "HEAD", "--cell", "no/*"}, 2, "no/*"},
        {{sha(0), sha(3)}, 3, "does not build: `./build.sh`"}}) {
    const Ended ended = bisect(arguments);
    EXPECT_EQ(ended.exit_code, code) << ended.err;
    EXPECT_THAT(ended.err, HasSubstr(message));
  }
}

// The build leaves a wrapper beside the engine, and the checkout of the user has neither.
TEST_F(Bisect, StartsAWrapperInTheCheckoutOfEachCommit) {
  make(line(4, 3, 99, {}));
  const std::string text = slurp(repo() / "weir.yaml");
  for (const char* command : {"./bench", "sh, ./bench"}) {
    std::string config = text;
    config.replace(config.find("./engine"), 8, command);
    config.replace(config.find("[./build.sh]"), 12,
                   "[sh, -c, './build.sh && printf \"#!/bin/sh\\nexec ./engine\" > bench && "
                   "chmod +x bench']");
    spill(repo() / "weir.yaml", config);
    const Ended ended = bisect({sha(0), "main"});
    EXPECT_EQ(ended.exit_code, 0) << command << "\n" << ended.err;
    EXPECT_EQ(json_of(ended)["first_bad"], sha(3)) << command << "\n" << ended.err;
  }
}

TEST_F(Bisect, ComparesNoProgramOfTheSystemWithItself) {
  make(line(3, 2, 9, {}));
  std::string config = slurp(repo() / "weir.yaml");
  config.replace(config.find("./engine"), 8, "/bin/echo");
  spill(repo() / "weir.yaml", config);
  const Ended ended = bisect({sha(0), "HEAD"});
  EXPECT_EQ(ended.exit_code, 2) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("/bin/echo: it lies outside of the repository"));
}

TEST_F(Bisect, GoesOnWithTheSameSettingsOrNotAtAll) {
  make(line(4, 3, 9, {}));
  ASSERT_EQ(bisect({sha(0), "HEAD"}).exit_code, 0);
  const std::size_t builds = built().size();
  const Ended again = bisect({"--resume"});
  EXPECT_EQ(json_of(again)["first_bad"], sha(3)) << again.err;
  EXPECT_EQ(built().size(), builds) << "all of it is in the journal";
  write_config("limits: [{metrics: dispatches_per_token, max: 99}]\n");
  const Ended changed = bisect({"--resume"});
  EXPECT_EQ(changed.exit_code, 2) << changed.err;
  EXPECT_THAT(changed.err, HasSubstr("Begin a new one"));
}

TEST_F(Bisect, TriesSkippedCommitsAgainWithAnotherBudget) {
  make(line(3, 99, 2, {}));
  ASSERT_EQ(bisect({sha(0), "HEAD", "--times", "--budget", "90s"}).exit_code, 0);
  const fs::path journal = fs::directory_iterator(scratch_ / "out/bisect")->path() / "bisect.jsonl";
  std::string text = slurp(journal);
  for (const std::string good = R"("tried":"good")"; text.find(good) != std::string::npos;)
    text.replace(text.find(good), good.size(), R"("tried":"skipped")");
  spill(journal, text);
  const Ended same = bisect({"--resume"});
  EXPECT_EQ(same.exit_code, 3) << same.err;
  EXPECT_THAT(slurp(journal), HasSubstr("\"budget\":\"90s\""));
  EXPECT_THAT(same.err, HasSubstr("weir bisect --resume --budget 10m"));
  for (const bool with_budget : {true, false}) {
    const Ended again = with_budget ? bisect({"--resume", "--budget", "1m"}) : bisect({"--resume"});
    EXPECT_EQ(again.exit_code, 0) << again.err;
    EXPECT_EQ(json_of(again)["first_bad"], sha(2)) << again.err;
  }
}

}  // namespace bisect_test
}  // namespace weir::e2e
