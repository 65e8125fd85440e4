// weir post as it is run: its dry run, and against a GitHub of the tests' own.
#include <memory>

#include <gmock/gmock.h>

#include "gate/run/journal.hpp"

#include "tests/e2e/post_support.hpp"

namespace weir::e2e {
namespace post_test {

using ::testing::HasSubstr;
using ::testing::Not;

class PostVerb : public PostScene {};

const std::map<std::string, std::string> k_empty_env{
    {"GITHUB_API_URL", ""},    {"GITHUB_SERVER_URL", ""},  {"GITHUB_EVENT_PATH", ""},
    {"GITHUB_EVENT_NAME", ""}, {"GITHUB_REPOSITORY", ""},  {"GITHUB_SHA", ""},
    {"GITHUB_RUN_ID", ""},     {"GITHUB_RUN_ATTEMPT", ""}, {"GITHUB_TOKEN", ""},
    {"GH_TOKEN", ""},          {"WEIR_TOKEN", ""}};

TEST_F(PostVerb, DryRunPrintsWhatWouldBeSentWithoutTokenOrNetwork) {
  const Ended ended = post({"red.json", "--repo", "o/r", "--pr", "7", "--sha", k_head, "--dry-run",
                            "--json", "--api", "https://github.example/api/v3/"},
                           k_empty_env);
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  const Json sent = json_of(ended);
  ASSERT_EQ(sent.size(), 3U) << ended.out;
  EXPECT_EQ(sent[0]["method"], "POST");
  EXPECT_EQ(sent[0]["url"], "https://github.example/api/v3/repos/o/r/issues/7/comments");
  EXPECT_THAT(sent[0]["body"]["body"].get<std::string>(), HasSubstr("1 of 8 cells broke a limit"));
  EXPECT_EQ(sent[1]["body"]["head_sha"], k_head);
  EXPECT_EQ(sent[1]["body"]["conclusion"], "failure");
  EXPECT_EQ(sent[2]["url"], "https://github.example/api/v3/repos/o/r/statuses/" + k_head);
  EXPECT_THAT(ended.err, HasSubstr("3 requests would be sent"));
}

TEST_F(PostVerb, DryRunTakesWhereToFromTheEventFile) {
  std::map<std::string, std::string> env = k_empty_env;
  env["GITHUB_REPOSITORY"] = "some/other";  // the file that is named speaks for itself
  const Ended ended = post({"red.json", "--event", "event.json", "--dry-run", "--json"}, env);
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_EQ(json_of(ended)[0]["url"], "https://api.github.com/repos/o/r/issues/7/comments");
  EXPECT_TRUE(server_.requests().empty());
}

TEST_F(PostVerb, TakesTheNewestRunsVerdict) {
  // The run that began last, whatever the folders are called.
  for (const auto& [folder, started_at] :
       {std::pair{"b", 1'767'225'600.0}, {"a", 1'767'312'000.0}}) {
    run::RunHeader header;
    header.started_at = started_at;
    spill(scratch_ / "weir-out" / folder / "run.jsonl", dump_json(run::to_json(header)) + "\n");
  }
  verdict("weir-out/b/verdict.json", gate_with(3, 3));
  verdict("weir-out/a/verdict.json", gate_with(5, 2));
  const Ended ended = post({"--dry-run", "--json"}, runner());
  EXPECT_THAT(json_of(ended)[0]["body"]["body"].get<std::string>(), HasSubstr("2 of 5 cells"))
      << ended.err;
}

struct Misuse {
  std::vector<std::string> words;
  const char* message;
};

TEST_F(PostVerb, ThatCanNotKnowWhatIsMeantIsAUsageError) {
  const Misuse k_misuses[] = {
      {{"red.json"}, "--repo OWNER/NAME says it"},
      {{"red.json", "--repo", "o/r"}, "--pr N says it"},
      {{"red.json", "--repo", "o"}, "no OWNER/NAME"},
      {{"red.json", "--repo", "o/r", "--sha", "main"}, "no commit"},
      {{"red.json", "--repo", "o/r", "--pr", "0"}, "counted from 1"},
      {{"red.json", "--repo", "o/r", "--sha", k_head}, "needs a token"},
      {{"none.json", "--repo", "o/r", "--sha", k_head}, "no such file"},
      {{"red.json", "--repo", "o/r", "--sha", k_head, "--api", "https://u:p@x"},
       "no https address"},
      {{"red.json", "--repo", "o/r", "--sha", k_head, "--run-url", "javascript:x"}, "--run-url"},
      {{"red.json", "--event", "none.json"}, "none.json"},
      {{"--repo", "o/r", "--sha", k_head}, "weir-out"},
  };
  for (const Misuse& misuse : k_misuses) {
    const Ended ended = post(misuse.words, k_empty_env);
    EXPECT_EQ(ended.exit_code, 2) << ended.err;
    EXPECT_THAT(ended.err, HasSubstr(misuse.message));
  }
}

TEST_F(PostVerb, LeavesOneOfEachAndEditsThemOnARerun) {
  Ended ended = post({"red.json", "--json"}, runner());
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  Json report = json_of(ended);
  EXPECT_EQ(report["schema"], "weir.post/1");
  EXPECT_EQ(report["complete"], true) << report.dump(1);
  EXPECT_EQ(report["parts"][0]["outcome"], "created");
  verdict("green.json", gate_with(8, 0));
  ended = post({"green.json"}, runner(900, 2));
  EXPECT_THAT(ended.out, HasSubstr("comment        edited")) << ended.err;
  ASSERT_EQ(comments().size(), 1U);
  EXPECT_THAT(comments()[0]["body"].get<std::string>(), Not(HasSubstr("broke")));
  server_.store([](const tests::GithubStore& store) {
    // The red one's annotations cannot be taken off: a second check run stands for it.
    EXPECT_EQ(store.check_runs().back()["conclusion"], "success");
    EXPECT_EQ(store.statuses(k_head).front()["state"], "success");
  });
}

TEST_F(PostVerb, OfAnotherCommitThanTheEventsIsRefused) {
  const std::string other(40, 'd'), merge(40, 'e'), run_merge(40, 'c');  // GITHUB_SHA is the last
  server_.store([&](tests::GithubStore& store) {
    store.set_parents(merge, {k_base, k_head});
    store.set_parents(other, {k_base, k_base});
  });
  verdict::GateVerdict green = gate_with(8, 0);
  for (const auto& [commit, is_posted] : {std::pair{other, false},
                                          {k_base, false},
                                          {k_head, true},
                                          {merge, true},
                                          {run_merge, true}}) {
    green.commit = commit;
    verdict("green.json", green);
    const Ended ended = post({"green.json"}, runner(900, 1, "pull_request"));
    EXPECT_EQ(ended.exit_code, is_posted ? 0 : 2) << commit << ended.err;
    if (!is_posted) {
      EXPECT_THAT(ended.err, HasSubstr("the verdict is of commit " + commit.substr(0, 7)));
      EXPECT_THAT(ended.err, HasSubstr("would be posted to " + k_head.substr(0, 7)));
      server_.store([&](const tests::GithubStore& store) {
        EXPECT_TRUE(store.check_runs().empty()) << commit;
        EXPECT_TRUE(store.statuses(k_head).empty()) << commit;
      });
    }
  }
  green.commit = other;
  verdict("green.json", green);
  Ended ended = post({"green.json", "--repo", "o/r", "--sha", k_head, "--dry-run"}, k_empty_env);
  EXPECT_EQ(ended.exit_code, 2) << "no pull request: nothing merges it";
  ended = post({"green.json", "--dry-run"}, runner(900, 1, "pull_request"));
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("if commit ddddddd merges the head would be asked"));
}

TEST_F(PostVerb, OfAPassMakesNoCommentUnlessTheRulesOrTheCommandLineSaySo) {
  verdict::GateVerdict green = gate_with(8, 0);
  verdict("green.json", green);
  green.comment = verdict::Comment::always;
  verdict("always.json", green);
  Ended ended = post({"green.json"}, runner());
  EXPECT_THAT(ended.out, HasSubstr("comment        left out    a pass, and there is no comment"));
  EXPECT_THAT(ended.out, HasSubstr("check run      created")) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("commit status  created"));
  EXPECT_TRUE(comments().empty());
  ended = post({"always.json", "--comment", "never"}, runner());
  EXPECT_THAT(ended.out, HasSubstr("comment        left out    comment: never")) << ended.err;
  EXPECT_TRUE(comments().empty());
  ended = post({"always.json"}, runner());
  EXPECT_EQ(comments().size(), 1U) << ended.out << ended.err;
  ended = post({"green.json", "--comment", "always", "--name", "gpu"}, runner());
  EXPECT_EQ(comments().size(), 2U) << ended.out << ended.err;
  EXPECT_EQ(post({"green.json", "--comment", "seldom"}, runner()).exit_code, 2);
}

TEST_F(PostVerb, OfAForksRunFindsThePullRequestAndPostsWhatTheArtifactSays) {
  const Json fork = {{"full_name", "someone/fork"}};
  server_.store([&](tests::GithubStore& store) {
    store.add_pull(8, k_head, {{"head", {{"ref", "fix"}, {"repo", fork}}}});
  });
  event(workflow_run_event("failure"));
  const Ended ended = post({"red.json"}, runner(950, 1, "workflow_run"));
  EXPECT_EQ(comments(8).size(), 1U) << ended.out << ended.err;
  EXPECT_EQ(comments(7).size(), 0U);
}

TEST_F(PostVerb, OfAForksRunTakesNoGreenThatNobodyJudgedAgain) {
  verdict("green.json", gate_with(8, 0));
  event(workflow_run_event("success"));
  const Ended ended = post({"green.json"}, runner(950, 1, "workflow_run"));
  server_.store([&](const tests::GithubStore& store) {
    EXPECT_EQ(store.check_runs().back()["conclusion"], "failure") << ended.err;
    EXPECT_EQ(store.statuses(k_head).front()["state"], "error");
    EXPECT_THAT(store.statuses(k_head).front()["description"].get<std::string>(),
                HasSubstr("not judged: a fork's own run"));
  });
}

TEST_F(PostVerb, OfAForksRunTakesAGreenThatThisJobJudgedAndSaysWhatItStandsOn) {
  server_.store([&](tests::GithubStore& store) {
    store.add_pull(8, k_head, {{"head", {{"ref", "fix"}, {"repo", {{"full_name", "a/fork"}}}}}});
  });
  verdict("green.json", gate_with(8, 0));
  Json json = workflow_run_event("success");
  json["workflow_run"]["head_repository"]["full_name"] = "a/fork";
  event(json);
  const Ended ended = post({"green.json", "--judged-here"}, runner(950, 1, "workflow_run"));
  server_.store([&](const tests::GithubStore& store) {
    const Json check = store.check_runs().back();
    EXPECT_EQ(check["name"], "weir (main)") << ended.err;
    EXPECT_EQ(check["conclusion"], "success");
    EXPECT_THAT(check["output"]["summary"].get<std::string>(),
                HasSubstr("on a machine that ran the fork's code"));
    EXPECT_EQ(store.statuses(k_head).front()["context"], "weir/gate (main #8)");
  });
}

TEST_F(PostVerb, OfAPullRequestTakesNoGreenByItsOwnRules) {
  verdict::GateVerdict green = gate_with(8, 0);
  green.rules.reset();
  verdict("green.json", green);
  const Ended ended = post({"green.json"}, runner(900, 1, "pull_request"));
  server_.store([&](const tests::GithubStore& store) {
    EXPECT_EQ(store.check_runs().back()["conclusion"], "failure") << ended.err;
    EXPECT_THAT(store.statuses(k_head).front()["description"].get<std::string>(),
                HasSubstr("not judged: judged by the pull request's own rules"));
  });
}

TEST_F(PostVerb, OfARunThatLeftNoVerdictSaysThatNothingWasMeasured) {
  for (const auto& [conclusion, check] :
       {std::pair{"cancelled", "cancelled"}, {"failure", "failure"}, {"skipped", "failure"}}) {
    event(workflow_run_event(conclusion));
    const Ended ended =
        post({"none.json", "--json", "--name", conclusion}, runner(950, 1, "workflow_run"));
    EXPECT_EQ(ended.exit_code, 0) << ended.err;
    server_.store([&](const tests::GithubStore& store) {
      EXPECT_EQ(store.check_runs().back()["conclusion"], check);
      EXPECT_EQ(store.statuses(k_head).front()["state"], "error");
      EXPECT_THAT(store.statuses(k_head).front()["description"].get<std::string>(),
                  HasSubstr("not judged: "));
    });
  }
}

TEST_F(PostVerb, OfAnArtifactThatIsNoVerdictSaysThatNothingWasMeasured) {
  event(workflow_run_event("success"));
  for (const std::string& hostile :
       {std::string("{"), std::string("[]"), std::string("{\"schema\": \"weir.verdict/1\"}"),
        std::string(1'000'000, '[')}) {
    spill(scratch_ / "hostile.json", hostile);
    const Ended ended = post({"hostile.json"}, runner(950, 1, "workflow_run"));
    EXPECT_EQ(ended.exit_code, 0) << ended.err;
    server_.store([&](const tests::GithubStore& store) {
      EXPECT_EQ(store.check_runs().back()["conclusion"], "failure");
      EXPECT_EQ(store.statuses(k_head).front()["state"], "error");
    });
  }
}

TEST_F(PostVerb, ThatFailsKeepsItsExitCodeUnlessAsked) {
  server_.fault({.method = "POST", .path = "/check-runs", .times = 0},
                tests::faults::unprocessable("no such commit"));
  Ended ended = post({"red.json"}, runner());
  EXPECT_EQ(ended.exit_code, 0);
  EXPECT_THAT(ended.out, HasSubstr("check run      failed"));
  EXPECT_THAT(ended.out, HasSubstr("no such commit"));
  EXPECT_EQ(comments().size(), 1U);
  EXPECT_EQ(post({"red.json", "--fail"}, runner()).exit_code, 3);
}

TEST_F(PostVerb, OfAForksOwnRunSaysHowToPostAllTheSame) {
  Json json = pull_request_event();
  json["pull_request"]["head"]["repo"]["full_name"] = "someone/fork";
  event(json);
  server_.fault({.method = "POST", .path = "", .times = 0},
                tests::faults::status(403, "Resource not accessible by integration"));
  const Ended ended = post({"red.json"}, runner(900, 1, "pull_request"));
  EXPECT_EQ(ended.exit_code, 0);
  EXPECT_THAT(ended.err, HasSubstr("workflow_run")) << ended.out;
}

TEST_F(PostVerb, TakesTheTokenFromAFileAndMasksItWhereverItStands) {
  verdict::GateVerdict gate = gate_with(2, 1);
  gate.cells[0].judgements[0].reason = "the engine printed " + k_token;
  gate.cells[1].reason = "Authorization: Bearer " + k_token;
  verdict("leak.json", gate);
  spill(scratch_ / "token", k_token + "\n");
  auto env = runner();
  env["GITHUB_TOKEN"] = "";
  const Ended ended = post({"leak.json", "--token-file", "token", "--json"}, env);
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  ASSERT_EQ(comments().size(), 1U);
  for (const tests::ReceivedRequest& request : server_.requests()) {
    EXPECT_THAT(request.body, Not(HasSubstr(k_token)));
    EXPECT_THAT(request.target, Not(HasSubstr(k_token)));
  }
}

TEST_F(PostVerb, OfTenThousandCellsIsTakenWhole) {
  verdict("huge.json", gate_with(10'000, 9'000));
  const Ended ended = post({"huge.json", "--json"}, runner());
  EXPECT_EQ(json_of(ended)["complete"], true) << ended.out << ended.err;
  ASSERT_EQ(comments().size(), 1U);
  EXPECT_THAT(comments()[0]["body"].get<std::string>(), HasSubstr("9000 of 10000 cells"));
  server_.store([](const tests::GithubStore& store) {
    ASSERT_EQ(store.check_runs().size(), 1U);
    EXPECT_LE(store.check_runs()[0]["annotations"].size(), 200U);
    EXPECT_GT(store.check_runs()[0]["annotations"].size(), 50U);
  });
}

// Each in its own pull request, all at once: waits are real here.
TEST_F(PostVerb, WhateverGitHubDoesLeavesOneCommentOnceTheLastPostHasEnded) {
  namespace faults = tests::faults;
  const std::pair<const char*, tests::Fault> k_faults[] = {
      {"401", faults::unauthorized()},
      {"403 rate limit", faults::rate_limit(0)},
      {"403 secondary limit", faults::secondary_limit("1")},
      {"404", faults::not_found()},
      {"409", faults::conflict()},
      {"422", faults::unprocessable()},
      {"429", faults::too_many("1")},
      {"500", faults::server_error()},
      {"500, carried out", faults::server_error(true)},
      {"502", faults::bad_gateway()},
      {"502, carried out", faults::bad_gateway(true)},
      {"503", faults::unavailable("1")},
      {"no answer", faults::never(false)},
      {"no answer, carried out", faults::never(true)},
      {"cut", faults::cut(false)},
      {"cut, carried out", faults::cut(true)},
      {"half an answer", faults::half()},
      {"a slow answer", faults::drip(0.001)},
      {"redirect", faults::redirect("http://127.0.0.1:1/repos/o/r/issues/1/comments")},
      {"a page in place of JSON", faults::html()},
      {"other JSON", faults::body("[1, 2]")},
  };
  int pull = 2000;
  for (const auto& [about, fault] : k_faults) {
    server_.store([&](tests::GithubStore& store) { store.add_pull(++pull, k_head); });
    server_.fault({.method = "POST", .path = fmt::format("/issues/{}/comments", pull), .times = 1},
                  fault);
  }
  const auto all = [&](int run, const std::string& limit) {
    std::vector<std::unique_ptr<Weir>> posters;
    for (int i = 2001; i <= pull; ++i) {
      const std::vector<std::string> words{
          "post", "red.json",   "--repo",      "o/r",      "--pr",  std::to_string(i), "--sha",
          k_head, "--no-check", "--no-status", "--settle", "100ms", "--time-limit",    limit};
      posters.push_back(std::make_unique<Weir>(scratch_, words, runner(run, 1)));
    }
    std::vector<Ended> ended;
    for (const auto& poster : posters) ended.push_back(poster->wait());
    return ended;
  };
  const auto first = all(1, "20s");
  for (std::size_t i = 0; i < first.size(); ++i) {
    const char* about = k_faults[i].first;
    EXPECT_EQ(first[i].exit_code, 0) << about << first[i].err;
    EXPECT_THAT(first[i].out + first[i].err, Not(HasSubstr(k_token))) << about;
    const auto posted = comments(2001 + static_cast<int>(i));
    // No verdict is lost without a word.
    const bool failed = first[i].out.find("failed") != std::string::npos;
    EXPECT_EQ(posted.size(), failed ? 0U : 1U) << about << "\n" << first[i].out << first[i].err;
  }
  for (const Ended& ended : all(2, "10m"))
    EXPECT_THAT(ended.out, Not(HasSubstr("failed"))) << ended.out;
  for (int i = 2001; i <= pull; ++i) EXPECT_EQ(comments(i).size(), 1U) << k_faults[i - 2001].first;
}

// Two of the same gate at once, again and again, each time for a pull request of its own.
TEST_F(PostVerb, TwiceAtOnceTwoHundredTimesLeavesOneComment) {
  constexpr int k_rounds = 200;
  server_.store([](tests::GithubStore& store) {
    for (int i = 0; i < k_rounds; ++i) store.add_pull(1000 + i, k_head);
  });
  for (int i = 0; i < k_rounds; ++i) {
    const std::string pull = std::to_string(1000 + i);
    const std::vector<std::string> words{
        "post", "red.json",   "--repo",      "o/r",    "--pr",     pull,   "--sha",
        k_head, "--no-check", "--no-status", "--fail", "--settle", "100ms"};
    Weir first(scratch_, words, runner(1, 1));
    Weir second(scratch_, words, runner(2, 1));
    EXPECT_EQ(first.wait().exit_code, 0);
    EXPECT_EQ(second.wait().exit_code, 0);
    const auto posted = comments(1000 + i);
    ASSERT_EQ(posted.size(), 1U) << "round " << i;
    EXPECT_THAT(posted[0]["body"].get<std::string>(), HasSubstr("run=2 attempt=1"))
        << "round " << i;
  }
}

}  // namespace post_test
}  // namespace weir::e2e
