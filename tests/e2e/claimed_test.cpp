// weir gate --from RUN --rules-from REF: a run that a fork wrote, judged by the base's rules.
#include <functional>

#include <gmock/gmock.h>

#include "gate/base/text.hpp"

#include "tests/e2e/rules_scene.hpp"

namespace weir::e2e {
namespace claimed_test {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class Claimed : public Rules {
 protected:
  // A run of the fork, by its own rules, which nothing of its checkout is beside any more.
  void fork_runs(const std::string& more = "", int dispatches = 77,
                 const std::vector<std::string>& options = {}) {
    write_engine(dispatches);
    write_config(more);
    git({"commit", "-qam", "of the fork", "--allow-empty"});
    std::vector<std::string> all{"gate", "--counts-only"};
    all.insert(all.end(), options.begin(), options.end());
    (void)here(all);
    take_run();
  }
  // Moves the newest run out of the checkout, which goes back to main.
  void take_run() {
    fs::create_directories(outside_ / "artifact");
    for (const auto& entry : fs::directory_iterator(scratch_ / "weir-out")) {
      if (!fs::exists(entry.path() / "run.jsonl")) continue;
      fs::remove_all(run());
      fs::copy(entry.path(), run(), fs::copy_options::recursive);
    }
    fs::remove_all(scratch_ / "weir-out");
    git({"checkout", "-q", "-f", "main"});
    fs::remove(scratch_ / "engine");
    fs::remove(scratch_ / "model.bin");
  }
  [[nodiscard]] std::string run() const { return (outside_ / "artifact" / "run").string(); }
  Json judged(int exit_code, std::vector<std::string> more = {}) {
    more.emplace_back("--counts-only");
    return judged_with_times(exit_code, more);
  }
  // By somebody who did not say that counts alone are judged.
  Json judged_with_times(int exit_code, const std::vector<std::string>& more = {}) {
    std::vector<std::string> options{"--from", run(), "--rules-from", "main"};
    options.insert(options.end(), more.begin(), more.end());
    return gate(options, exit_code);
  }
  // The event of a pull request of the fork.
  void write_event(const std::string& head, const std::string& base) const {
    spill(scratch_ / "weir-event.json",
          Json({{"number", 7},
                {"repository", {{"full_name", "o/r"}}},
                {"pull_request",
                 {{"number", 7},
                  {"head", {{"sha", head}, {"ref", "f"}, {"repo", {{"full_name", "m/r"}}}}},
                  {"base", {{"sha", base}, {"ref", "main"}, {"repo", {{"full_name", "o/r"}}}}}}}})
              .dump());
  }
  // Its journal's first line, as the fork would have it.
  void forge(const std::function<void(Json& plan)>& edit) {
    const std::string text = slurp(fs::path(run()) / "run.jsonl");
    const std::size_t end = text.find('\n');
    Json header = *parse_json(text.substr(0, end));
    edit(header["plan"]);
    spill(fs::path(run()) / "run.jsonl", header.dump() + text.substr(end));
  }
  // Its records say that main's tip was its base.
  void claim_base_of_main() {
    const std::string commit(git_output("rev-parse main").substr(0, 40));
    forge([&](Json& plan) { plan["extra"]["against"]["commit"] = commit; });
  }
  static std::string dispatches(const Json& verdict) {
    return metric_of(cell_of(verdict, "mine/m/metal/decode"), "dispatches_per_token")["verdict"];
  }

  Scratch outside_;
};

const char* const k_loose = "limits: [{metrics: dispatches_per_token, exact: false}]\n";

TEST_F(Claimed, RunsAreJudgedByTheBasesLimitsAndBaselines) {
  fork_runs(k_loose);
  EXPECT_EQ(gate({"--from", run()}, 0)["rules"], nullptr) << "by its own rules it passes";
  const Json verdict = judged(1);
  EXPECT_EQ(dispatches(verdict), "fail");
  EXPECT_EQ(verdict["rules"]["ref"], "main");
  EXPECT_EQ(proposal_texts(verdict),
            std::vector<std::string>{
                "limit of dispatches_per_token: exact → not exact: looser, in 2 cells"});
  EXPECT_THAT(verdict["base_source"].get<std::string>(), StartsWith("stored baselines of main, "));
  EXPECT_EQ(verdict["config"], "weir.yaml");
}

// Its workflow can leave the times out; whether they may be left out is not its word.
TEST_F(Claimed, ARunWithoutTimesIsNotJudgedUnlessCountsAloneAreAskedFor) {
  fork_runs("", 65);
  const Json verdict = judged_with_times(3);
  EXPECT_EQ(verdict["verdict"], "error");
  EXPECT_THAT(verdict["unjudged"].get<std::string>(), HasSubstr("the run has no times"));
  EXPECT_EQ(judged(0)["verdict"], "pass");
  EXPECT_EQ(here({"gate", "--from", run(), "--counts-only"}).exit_code, 2) << "of its own rules";
}

// A job that is stopped before its first pair leaves counts alone; so does a cut journal.
TEST_F(Claimed, ARunThatWasCutBeforeItsTimesIsNotJudged) {
  fork_runs("", 65, {"--against", "main"});
  forge([](Json& plan) { plan["extra"]["counts_only"] = false; });
  const Json whole = judged_with_times(3);
  EXPECT_THAT(whole["unjudged"].get<std::string>(), HasSubstr("without a pair"));
  const fs::path journal = fs::path(run()) / "run.jsonl";
  const std::string text = slurp(journal);
  const std::size_t last = text.rfind('\n', text.size() - 2);
  spill(journal, text.substr(0, last + 1));
  const Json cut = judged_with_times(3);
  EXPECT_THAT(cut["unjudged"].get<std::string>(), HasSubstr("the run was interrupted"));
}

TEST_F(Claimed, ARunWhoseTimesWereTakenOutIsNotJudged) {
  const std::string counts = "      syncs_per_token:";
  std::string config = slurp(scratch_ / "weir.yaml");
  config.insert(config.find(counts),
                "      decode_tokens_per_second: {regex: '(\\d+) tok/s'}\n"
                "      prefill_tokens_per_second: {regex: '(\\d+) prompt tok/s'}\n");
  spill(scratch_ / "weir.yaml", config + "gate: {budget: 20s}\n");
  spill_program(scratch_ / "engine",
                "#!/bin/sh\necho '65 dispatches, 1 syncs, 100 tok/s, 100 prompt tok/s'\n");
  ASSERT_EQ(here({"baseline", "accept", "--counts-only"}).exit_code, 0) << last_.err;
  git({"add", "-A"});
  git({"commit", "-qm", "times"});
  git({"branch", "-f", "main"});
  git({"commit", "-qm", "of the fork", "--allow-empty"});
  (void)here({"gate", "--against", "main"});
  take_run();
  EXPECT_EQ(judged_with_times(0)["verdict"], "pass");
  // One of the times of both sides, then all.
  const fs::path journal = fs::path(run()) / "run.jsonl";
  for (const bool takes_all : {false, true}) {
    std::string forged;
    for (const std::string& line : text::lines(slurp(journal))) {
      Json record = *parse_json(line);
      if (record.value("pass", "") == "timed") {
        Json& times = record["report"]["times"];
        times = takes_all || times.empty() ? Json::array() : Json::array({times[0]});
      }
      forged += record.dump() + "\n";
    }
    spill(journal, forged);
    EXPECT_THAT(judged_with_times(3)["unjudged"].get<std::string>(),
                HasSubstr("2 cells of the run without times that its engine prints"));
  }
}

// Its job measures without --against, or on a runner of which nothing is stored.
TEST_F(Claimed, TimesThatNothingIsComparedWithAreNotDecided) {
  const std::string counts = "      syncs_per_token:";
  std::string config = slurp(scratch_ / "weir.yaml");
  config.insert(config.find(counts), "      decode_tokens_per_second: {regex: '(\\d+) tok/s'}\n");
  spill(scratch_ / "weir.yaml", config);
  spill_program(scratch_ / "engine", "#!/bin/sh\necho '65 dispatches, 1 syncs, 100 tok/s'\n");
  git({"commit", "-qam", "times"});
  git({"branch", "-f", "main"});
  spill_program(scratch_ / "engine", "#!/bin/sh\necho '65 dispatches, 1 syncs, 40 tok/s'\n");
  git({"commit", "-qam", "of the fork"});
  EXPECT_EQ(here({"gate", "--rules-from", "main"}).exit_code, 0) << "its own machine's times: new";
  ASSERT_EQ(here({"run"}).exit_code, 0) << last_.err;
  take_run();
  const Json verdict = judged_with_times(0);
  EXPECT_EQ(verdict["verdict"], "inconclusive");
  EXPECT_THAT(verdict["not_judged"].dump(), HasSubstr("throughput not decided in 2 of 2 cells"));
  EXPECT_THAT(metric_of(cell_of(verdict, k_cell), "decode_tokens_per_second")["reason"],
              StartsWith("nothing to compare with: the run has no pairs with the base"));
  EXPECT_EQ(judged(0)["verdict"], "pass") << "counts alone";
  spill(scratch_ / "weir.yaml", config + "gate: {on_inconclusive: fail}\n");
  git({"commit", "-qm", "strict", "weir.yaml"});
  EXPECT_EQ(judged_with_times(4)["verdict"], "inconclusive");
}

// Whether it edits files that the base's cells read, its commit says.
TEST_F(Claimed, ARunOfACommitThatIsNotHereIsNotJudgedWhereCellsReadFiles) {
  fork_runs("", 65);
  const std::string commit(git_output("rev-parse feature").substr(0, 40));
  const auto claim = [&](const Json& source) {
    forge([&](Json& plan) { plan["extra"]["source"] = source; });
    return judged(3)["cells"].dump();
  };
  EXPECT_THAT(claim({{"commit", std::string(40, 'a')}, {"time", 1}, {"dirty", false}}),
              HasSubstr("perhaps file model.bin (commit aaaa"));
  EXPECT_THAT(claim({{"commit", commit}, {"time", 1}, {"dirty", true}}),
              HasSubstr("perhaps file model.bin (the run is of no commit, or of a changed one)"));
  EXPECT_THAT(claim(nullptr), HasSubstr("perhaps file model.bin"));
}

// A build script may edit an input after the checkout: the run says so, and the event's head does
// not show it.
TEST_F(Claimed, ARunIsNotJudgedWhoseCheckoutHadOtherInputs) {
  fork_runs("", 65);
  const std::string head(git_output("rev-parse feature").substr(0, 40)),
      base(git_output("rev-parse main").substr(0, 40));
  write_event(head, base);
  const auto judged_with = [&](const Json& uncommitted) {
    forge([&](Json& plan) {
      plan["extra"]["source"] = {{"commit", head}, {"time", 1}, {"dirty", true}};
      plan["extra"].erase("uncommitted");
      if (!uncommitted.is_null()) plan["extra"]["uncommitted"] = uncommitted;
    });
    return here({"gate", "--json", "-", "--from", run(), "--rules-from", "main", "--counts-only"},
                {{"GITHUB_EVENT_PATH", (scratch_ / "weir-event.json").string()},
                 {"GITHUB_EVENT_NAME", "pull_request"},
                 {"GITHUB_REPOSITORY", "o/r"}});
  };
  const Ended edited = judged_with({"model.bin"});
  EXPECT_EQ(edited.exit_code, 3) << edited.err;
  EXPECT_THAT(edited.out, HasSubstr("than the base does: file model.bin"));
  EXPECT_EQ(judged_with({"engine.cpp"}).exit_code, 0) << last_.err;
  const Ended unlisted = judged_with(nullptr);
  EXPECT_EQ(unlisted.exit_code, 3) << unlisted.err;
  EXPECT_THAT(unlisted.out, HasSubstr("changed checkout and does not list its changes"));
}

// On GitHub the event names the head, and what a run says of its commit is not asked for.
TEST_F(Claimed, ARunIsJudgedByTheHeadThatTheEventNames) {
  // Longer than what a fingerprint is made of.
  const std::string beginning(1 << 20, 'm');
  spill(scratch_ / "model.bin", beginning + "one");
  ASSERT_EQ(here({"baseline", "accept", "--counts-only"}).exit_code, 0) << last_.err;
  git({"add", "-A"});
  git({"commit", "-qm", "a larger model"});
  git({"branch", "-f", "main"});
  spill(scratch_ / "model.bin", beginning + "two");
  fork_runs("", 65);
  const std::string head(git_output("rev-parse feature").substr(0, 40)),
      base(git_output("rev-parse main").substr(0, 40));
  forge([&](Json& plan) { plan["extra"]["source"]["commit"] = base; });
  EXPECT_EQ(judged(0)["verdict"], "pass");
  write_event(head, base);
  const Ended ended =
      here({"gate", "--json", "-", "--from", run(), "--rules-from", "main", "--counts-only"},
           {{"GITHUB_EVENT_PATH", (scratch_ / "weir-event.json").string()},
            {"GITHUB_EVENT_NAME", "pull_request"},
            {"GITHUB_REPOSITORY", "o/r"}});
  EXPECT_EQ(ended.exit_code, 3) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("than the base does: file model.bin"));
  // An event that cannot be read leaves nothing to the run's word.
  const Ended unread =
      here({"gate", "--json", "-", "--from", run(), "--rules-from", "main", "--counts-only"},
           {{"GITHUB_EVENT_PATH", (scratch_ / "weir-absent.json").string()}});
  EXPECT_EQ(unread.exit_code, 3) << unread.err;
  EXPECT_THAT(unread.out, HasSubstr("perhaps file model.bin ("));
}

// The job that posts has no files beside the repository.
TEST_F(Claimed, ARunEditsTheBaselinesThatItsCommitEdits) {
  fork_runs("", 65);
  fs::remove_all(scratch_ / "baselines");
  EXPECT_THAT(proposal_texts(judged(0)), testing::IsEmpty());

  git({"checkout", "-q", "-f", "-B", "feature", "main"});
  write_engine(77);
  ASSERT_EQ(here({"baseline", "accept", "--counts-only"}).exit_code, 0) << last_.err;
  git({"add", "-A"});
  fork_runs("", 77);
  const auto edits = [&] { return proposal_texts(judged(1)); };
  const auto are_of_dispatches =
      testing::ElementsAre(HasSubstr("65 → 77: looser"), HasSubstr("65 → 77: looser"));
  EXPECT_THAT(edits(), are_of_dispatches);

  git({"checkout", "-q", "-f", "main"});
  write_engine(65, 2);
  ASSERT_EQ(here({"baseline", "accept", "--counts-only"}).exit_code, 0) << last_.err;
  git({"add", "baselines"});
  git({"commit", "-qm", "another level on main"});
  EXPECT_THAT(edits(), are_of_dispatches) << "what main gained since is no edit";
}

TEST_F(Claimed, ALookAtOneCellLeavesTheVerdictOnAll) {
  fork_runs("", 65);
  const fs::path verdict = fs::path(run()) / "verdict.json";
  const std::string before = slurp(verdict);
  EXPECT_EQ(
      cell_of(gate({"--from", run(), "--cell", "*/other"}, 0), "mine/m/metal/other")["verdict"],
      "pass");
  EXPECT_EQ(slurp(verdict), before);
}

TEST_F(Claimed, RunsThatHoldPassAndAreNotWrittenTo) {
  fork_runs(k_loose, 65);
  const std::string before = slurp(fs::path(run()) / "run.jsonl");
  EXPECT_EQ(judged(0)["verdict"], "pass");
  EXPECT_EQ(slurp(fs::path(run()) / "run.jsonl"), before);
  EXPECT_FALSE(fs::exists(fs::path(run()) / "rules"));
}

// A workflow that a tag or a branch of its own misled compares with whatever its author likes.
TEST_F(Claimed, ARunIsNotJudgedWhoseBaseIsNoCommitOfTheBranch) {
  fork_runs("", 65, {"--against", "HEAD"});
  const Json verdict = judged(3);
  EXPECT_EQ(verdict["verdict"], "error");
  EXPECT_THAT(verdict["unjudged"].get<std::string>(), HasSubstr("which is no commit of main"));
  for (const std::string& base :
       {std::string(40, 'a'), std::string("main"), std::string("--all")}) {
    forge([&](Json& plan) { plan["extra"]["against"]["commit"] = base; });
    EXPECT_THAT(judged(3)["unjudged"].get<std::string>(), HasSubstr("no commit of main")) << base;
  }
  claim_base_of_main();
  EXPECT_EQ(judged(0)["verdict"], "pass");
}

// Its job compares with an older commit of the branch, as slow as itself, or with any folder.
TEST_F(Claimed, ARunIsNotJudgedWhoseBaseIsNotItsMergeBase) {
  git({"checkout", "-q", "main"});
  const std::string older(git_output("rev-parse main").substr(0, 40));
  git({"commit", "-q", "--allow-empty", "-m", "main goes on"});
  const std::string merge_base(git_output("rev-parse main").substr(0, 40));
  git({"checkout", "-q", "-B", "feature"});
  fork_runs("", 65, {"--against", older});
  EXPECT_THAT(judged(3)["unjudged"].get<std::string>(),
              HasSubstr("compared with " + older.substr(0, 7) +
                        ", and its merge-base with main is " + merge_base.substr(0, 7)));
  claim_base_of_main();
  EXPECT_EQ(judged(0)["verdict"], "pass");
  // Once main goes on, its tip and the merge-base may be the base.
  git({"commit", "-q", "--allow-empty", "-m", "main goes on again"});
  const Json behind = judged(0);
  EXPECT_THAT(behind["notes"].dump(), HasSubstr("the branch is 1 commit behind main"));
  claim_base_of_main();
  EXPECT_EQ(judged(0)["verdict"], "pass");
  // Of a commit that is not here nobody knows the merge-base.
  forge([&](Json& plan) {
    plan["extra"]["against"]["commit"] = older;
    plan["extra"]["against"]["candidate_commit"] = std::string(40, 'a');
  });
  EXPECT_THAT(judged(3)["notes"].dump(), HasSubstr("whether it is the merge-base cannot be told"));
}

TEST_F(Claimed, ARunBesideAFolderOrACommandIsNotJudged) {
  const fs::path old = outside_ / "old";
  fs::create_directories(old);
  spill_program(old / "engine", slurp(scratch_ / "engine"));
  fork_runs("", 65, {"--against", old.string()});
  EXPECT_THAT(judged(3)["unjudged"].get<std::string>(),
              HasSubstr("compared with a folder, which is no commit of main"));
  // A checkout of the right commit could have been built of anything.
  forge([&](Json& plan) {
    plan["extra"]["against"]["commit"] = git_output("rev-parse main").substr(0, 40);
  });
  EXPECT_THAT(judged(3)["unjudged"].get<std::string>(), HasSubstr("compared with a folder"));
  forge([&](Json& plan) {
    plan["extra"]["against"]["words"] = "the command x";
    plan["extra"]["against"].erase("commit");
  });
  EXPECT_THAT(judged(3)["unjudged"].get<std::string>(), HasSubstr("compared with a program"));
}

// GitHub's merge commit is seldom here. Its first parent is main as it was then.
TEST_F(Claimed, ARunOfAMergeOfTheEventsHeadIsJudgedByWhatItWasMergedInto) {
  const std::string older(git_output("rev-parse main").substr(0, 40));
  git({"checkout", "-q", "main"});
  for (const char* subject : {"second", "third"})
    git({"commit", "-q", "--allow-empty", "-m", subject});
  const std::string second(git_output("rev-parse main~1").substr(0, 40)),
      third(git_output("rev-parse main").substr(0, 40));
  git({"checkout", "-q", "-B", "feature", second});
  fork_runs("", 65, {"--against", second});
  const std::string head(git_output("rev-parse feature").substr(0, 40));
  write_event(head, second);
  const struct {
    std::string base, candidate;
    int exit_code;
  } cases[] = {
      {second, head, 0},
      {third, std::string(40, 'a'), 0},
      {older, std::string(40, 'a'), 3},
      {older, head, 3},
      {older, third, 3},
  };
  for (const auto& [base, candidate, exit_code] : cases) {
    forge([&, &base = base, &candidate = candidate](Json& plan) {
      plan["extra"]["against"]["commit"] = base;
      plan["extra"]["against"]["candidate_commit"] = candidate;
    });
    const Ended ended = here({"gate", "--from", run(), "--rules-from", "main", "--counts-only"},
                             {{"GITHUB_EVENT_PATH", (scratch_ / "weir-event.json").string()},
                              {"GITHUB_EVENT_NAME", "pull_request"},
                              {"GITHUB_REPOSITORY", "o/r"}});
    EXPECT_EQ(ended.exit_code, exit_code) << base << candidate << ended.out << ended.err;
  }
}

// Its own program as the base: of that it claims what it likes.
TEST_F(Claimed, WhatARunSaysOfItsBaseComesAfterTheBasesBaselines) {
  fork_runs("", 77, {"--against", "HEAD"});
  EXPECT_EQ(gate({"--from", run()}, 0)["verdict"], "pass");
  claim_base_of_main();
  const Json verdict = judged(1);
  const Json metric = metric_of(cell_of(verdict, k_cell), "dispatches_per_token");
  EXPECT_EQ(metric["verdict"], "fail");
  EXPECT_EQ(metric["baseline"], 65);
  EXPECT_THAT(cell_of(verdict, k_cell)["notes"].dump(), HasSubstr("the stored baseline judges"));
  // Without stored baselines its own base is all that there is.
  git({"rm", "-rq", "baselines"});
  git({"commit", "-qm", "no baselines"});
  EXPECT_EQ(judged(0)["verdict"], "pass");
}

TEST_F(Claimed, AWaiverOfTheBranchHoldsAndOneInTheRunDoesNot) {
  fork_runs();
  ASSERT_EQ(here({"waive", "--pr", "12", "--who", "ada", "--reason", "a fusion", "--cell",
                  "mine/m/metal/*", "--metric", "dispatches_per_token", "--base-value", "65",
                  "--waived-value", "77"})
                .exit_code,
            2);
  for (const char* prompt : {"decode", "other"}) {
    ASSERT_EQ(here({"waive", "--pr", "12", "--who", "ada", "--reason", "a fusion", "--cell",
                    std::string("mine/m/metal/") + prompt, "--metric", "dispatches_per_token",
                    "--base-value", "65", "--waived-value", "77"})
                  .exit_code,
              0)
        << last_.err;
  }
  const std::vector<std::string> with{"--waivers-ref", "perf-baselines", "--pr", "12"};
  EXPECT_EQ(judged(0, with)["verdict"], "waived");
  // The gate of the fork itself, with its waiver.
  git({"checkout", "-q", "-f", "feature"});
  write_engine(77);
  spill(scratch_ / "model.bin", "no model at all");
  std::vector<std::string> own{"gate", "--counts-only"};
  own.insert(own.end(), with.begin(), with.end());
  ASSERT_EQ(here(own).exit_code, 0) << last_.err;
  EXPECT_EQ(gate({"--from"}, 0)["verdict"], "waived");
  EXPECT_EQ(gate({"--from", "--rules-from", "main"}, 1)["verdict"], "fail");
}

// Each of these is written into the journal; none of it judges.
TEST_F(Claimed, WhatARunSaysOfItsRulesIsNotTaken) {
  fork_runs(k_loose);
  const Json before = judged(1);
  const struct {
    const char* what;
    std::function<void(Json&)> edit;
  } cases[] = {
      {"rules",
       [](Json& plan) {
         plan["extra"]["rules"] = {{"baselines", "stored baselines of main"},
                                   {"baselines_commit", ""},
                                   {"config_text", plan["config_text"]},
                                   {"from", {{"ref", "main"}, {"commit", std::string(40, 'a')}}},
                                   {"proposals", Json::array()}};
       }},
      {"a file elsewhere", [](Json& plan) { plan["config_file"] = "/etc/passwd"; }},
      {"notes", [](Json& plan) { plan["notes"] = {"judged by the maintainers: fine"}; }},
      {"ops on the CPU",
       [](Json& plan) {
         for (Json& cell : plan["cells"]) cell["cpu_ops_allowed"] = {{"MUL_MAT", "cheap"}};
       }},
      {"what cells are",
       [](Json& plan) {
         for (Json& cell : plan["cells"]) {
           cell["device"] = "cpu";
           cell["provenance"]["fingerprint"] = "0";
         }
       }},
  };
  fs::create_directories(fs::path(run()) / "rules");
  fs::copy(scratch_ / "baselines", fs::path(run()) / "rules" / "baselines",
           fs::copy_options::recursive);
  for (const auto& [what, edit] : cases) {
    const std::string original = slurp(fs::path(run()) / "run.jsonl");
    forge(edit);
    Json after = judged(1);
    for (const char* key : {"commit", "seconds"}) after[key] = before[key];
    EXPECT_EQ(after, before) << what;
    spill(fs::path(run()) / "run.jsonl", original);
  }
}

// Without these parts nothing says which prompt and model were measured.
TEST_F(Claimed, ARunThatDoesNotSayWhatItMeasuredIsNotJudged) {
  fork_runs();
  forge([](Json& plan) {
    for (Json& cell : plan["cells"]) {
      cell["provenance"]["fingerprint"] = "0000";
      cell["provenance"]["fingerprint_parts"] = Json::object();
    }
  });
  const Json verdict = judged(3);
  const Json cell = cell_of(verdict, "mine/m/metal/decode");
  EXPECT_THAT(metric_of(cell, "cell")["reason"].get<std::string>(),
              HasSubstr("not judged: the pull request measures another thing than the base does: "
                        "model header, model size"));
}

TEST_F(Claimed, WhatARunLeavesOutIsMissed) {
  fork_runs("", 65);
  const std::string original = slurp(fs::path(run()) / "run.jsonl");
  // A cell of which no record is there is an error of that cell.
  std::string fewer;
  for (const std::string& line : text::lines(original)) {
    if (line.find("\"cell\":\"mine/m/metal/other\"") == std::string::npos || fewer.empty()) {
      fewer += line + "\n";
    }
  }
  spill(fs::path(run()) / "run.jsonl", fewer);
  EXPECT_EQ(cell_of(judged(3), "mine/m/metal/other")["verdict"], "error");
  // One that it does not even name is gone.
  git({"checkout", "-q", "-f", "feature"});
  fs::remove_all(run());
  write_engine(65);
  spill(scratch_ / "model.bin", "no model at all");
  ASSERT_EQ(here({"run", "--counts-only", "--cell", k_cell}).exit_code, 0) << last_.err;
  const Json verdict = gate({"--from", "--rules-from", "main"}, 1);
  const Json gone = cell_of(verdict, "mine/m/metal/other");
  EXPECT_EQ(gone["verdict"], "fail");
  EXPECT_EQ(metric_of(gone, "cell")["reason"], "not measured any more: the run does not hold it");
  EXPECT_EQ(
      gate({"--from", "--rules-from", "main", "--counts-only", "--cell", k_cell}, 0)["verdict"],
      "pass");
}

TEST_F(Claimed, RunsThatAreNoneAreRefused) {
  fork_runs();
  const std::string journal = run() + "/run.jsonl", original = slurp(journal);
  const struct {
    const char* message;
    int exit_code;
    std::function<void(Json&)> edit;
  } cases[] = {
      {"has the cell mine/m/metal/decode twice", 3,
       [](Json& plan) { plan["cells"][1] = plan["cells"][0]; }},
      {"was counted by another version of weir", 3,
       [](Json& plan) {
         plan["cells"][0]["provenance"]["fingerprint_parts"]["counting rules"] = "0123456789ab";
       }},
      {"which its configuration lacks", 3,
       [](Json& plan) { plan["cells"][1]["cell"] = "mine/m/metal/third"; }},
      {"weir.yaml:2:1: not YAML", 2, [](Json& plan) { plan["config_text"] = "version: [\n"; }},
  };
  for (const auto& [message, exit_code, edit] : cases) {
    forge(edit);
    std::string text = slurp(journal);
    // Only the plan says so: records may not contradict it first.
    spill(journal, text.substr(0, text.find('\n') + 1));
    const Ended ended = here({"gate", "--from", run(), "--rules-from", "main"});
    EXPECT_EQ(ended.exit_code, exit_code) << message << ": " << ended.err;
    EXPECT_THAT(ended.err, HasSubstr(message));
    spill(journal, original);
  }
  // Nothing of it is read through a link.
  fs::rename(journal, outside_ / "elsewhere");
  fs::create_symlink(outside_ / "elsewhere", journal);
  EXPECT_EQ(here({"gate", "--from", run(), "--rules-from", "main"}).exit_code, 3);
  EXPECT_THAT(last_.err, HasSubstr("run.jsonl: is a link"));
  EXPECT_EQ(here({"gate", "--from", run(), "--baselines-ref", "main"}).exit_code, 2);
}

}  // namespace claimed_test
}  // namespace weir::e2e
