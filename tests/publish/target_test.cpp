// Tests how the pull request of a commit is found, and which rules its base has.
#include "gate/publish/target.hpp"

#include <gmock/gmock.h>

#include "tests/publish/store_api.hpp"

namespace weir::publish {
namespace target_test {

using ::testing::HasSubstr;
using ::testing::SizeIs;

const std::string k_sha(40, 'a'), k_base(40, 'b');

// Answers by the start of the path; a path without an answer fails.
class ScriptedApi final : public Api {
 public:
  std::map<std::string, Json> answers;
  std::vector<std::string> paths;

  Result<ApiResponse> call(const ApiRequest& request) override {
    WEIR_TRY(Json body, answer(request.path));
    return ApiResponse{200, std::move(body)};
  }
  Result<Json> list(const std::string& path, std::size_t /*most*/) override { return answer(path); }

 private:
  Result<Json> answer(const std::string& path) {
    paths.push_back(path);
    for (const auto& [start, body] : answers) {
      if (path.rfind(start, 0) == 0) return body;
    }
    return fail(Code::unavailable, "no answer to {}", path);
  }
};

Json pull(int number, const Json& more = Json::object()) {
  Json json = {
      {"number", number},
      {"state", "open"},
      {"head", {{"sha", k_sha}, {"ref", "fix"}, {"repo", {{"full_name", "someone/fork"}}}}},
      {"base", {{"ref", "main"}, {"sha", k_base}, {"repo", {{"full_name", "o/r"}}}}}};
  json.merge_patch(more);
  return json;
}

Event make_fork_event() {
  Event event;
  event.repository = "o/r";
  event.sha = k_sha;
  event.head = HeadBranch{"someone/fork", "fix"};
  return event;
}

TEST(LookUp, FindsAForksPullRequestByItsBranchWhereTheCommitDoesNotTell) {
  ScriptedApi api;
  api.answers = {{"/repos/o/r/commits/", Json::array()}, {"/repos/o/r/pulls?", {pull(7)}}};
  api.answers["/repos/o/r/pulls?"] = Json::array({pull(7)});
  Event event = make_fork_event();
  std::vector<std::string> notes;
  ASSERT_TRUE(look_up(api, event, notes));
  EXPECT_EQ(event.pull_request, 7);
  EXPECT_EQ(event.base, "main");
  EXPECT_EQ(event.base_sha, k_base);
  EXPECT_TRUE(event.from_fork);
  ASSERT_THAT(api.paths, SizeIs(2));
  EXPECT_EQ(api.paths[1], "/repos/o/r/pulls?state=open&head=someone%3Afix");
}

TEST(LookUp, SendsABranchThatIsNoPlainWordEncoded) {
  ScriptedApi api;
  api.answers = {{"/repos/o/r/commits/", Json::array()}, {"/repos/o/r/pulls?", Json::array()}};
  Event event = make_fork_event();
  event.head->branch = "x&state=closed#/../ü";
  std::vector<std::string> notes;
  ASSERT_TRUE(look_up(api, event, notes));
  EXPECT_EQ(api.paths[1],
            "/repos/o/r/pulls?state=open&head=someone%3Ax%26state%3Dclosed%23%2F..%2F%C3%BC");
  EXPECT_FALSE(event.pull_request);
}

TEST(LookUp, TakesNoPullRequestThatIsNotExactlyWhatWasMeasured) {
  const std::pair<const char*, Json> k_others[] = {
      {"a later commit", {{"head", {{"sha", std::string(40, 'b')}}}}},
      {"another branch", {{"head", {{"ref", "other"}}}}},
      {"somebody else's", {{"head", {{"repo", {{"full_name", "mallory/fork"}}}}}}},
      {"a fork that is gone", {{"head", {{"repo", nullptr}}}}},
      {"into another repository", {{"base", {{"repo", {{"full_name", "x/y"}}}}}}},
      {"closed", {{"state", "closed"}}},
      {"a number that is none", {{"number", "7"}}},
  };
  for (const auto& [about, more] : k_others) {
    ScriptedApi api;
    api.answers["/repos/o/r/"] = Json::array({pull(7, more), nullptr, 3});
    Event event = make_fork_event();
    std::vector<std::string> notes;
    ASSERT_TRUE(look_up(api, event, notes)) << about;
    EXPECT_FALSE(event.pull_request) << about;
    ASSERT_THAT(notes, SizeIs(1)) << about;
    EXPECT_THAT(notes[0], HasSubstr("no open pull request")) << about;
  }
}

TEST(LookUp, OfOneBranchForTwoPullRequestsTakesNone) {
  ScriptedApi api;
  api.answers["/repos/o/r/commits/"] = Json::array({pull(7)});
  api.answers["/repos/o/r/pulls?"] = Json::array({pull(8)});  // each list alone may lag
  Event event = make_fork_event();
  std::vector<std::string> notes;
  ASSERT_TRUE(look_up(api, event, notes));
  EXPECT_FALSE(event.pull_request);
  EXPECT_THAT(notes.at(0), HasSubstr("--pr"));
}

TEST(Measured, IsTheCommitItselfOrAMergeOfThePullRequestsHead) {
  const std::string merge(40, 'c'), stale(40, 'd'), octopus(40, 'e'), other(40, 'f');
  const auto parents = [](const std::vector<std::string>& shas) {
    Json list = Json::array();
    for (const std::string& sha : shas) list.push_back({{"sha", sha}});
    return Json{{"parents", std::move(list)}};
  };
  ScriptedApi api;
  api.answers = {{"/repos/o/r/commits/" + merge, parents({k_base, k_sha})},
                 {"/repos/o/r/commits/" + stale, parents({k_base, other})},
                 {"/repos/o/r/commits/" + octopus, parents({k_base, k_sha, other})}};
  Event pull_request;
  pull_request.repository = "o/r";
  pull_request.sha = k_sha;
  pull_request.of_pull_request = true;
  Event push = pull_request;
  push.of_pull_request = false;
  struct Case {
    const Event& event;
    std::string measured;
    bool fits;
  };
  for (const Case& c : {Case{push, k_sha, true},
                        {push, std::string(40, 'A'), true},
                        {push, merge, false},
                        {push, "", false},
                        {push, "../pulls/7", false},
                        {pull_request, k_sha, true},
                        {pull_request, merge, true},
                        {pull_request, stale, false},
                        {pull_request, octopus, false},
                        {pull_request, other, false},
                        {pull_request, "../pulls/7", false}}) {
    const auto fits = check_measured(api, c.event, c.measured);
    EXPECT_EQ(fits.has_value(), c.fits) << c.measured;
    if (!fits) EXPECT_THAT(fits.error().message, HasSubstr("with --sha"));
  }
  EXPECT_THAT(check_measured(api, pull_request, other).error().message,
              HasSubstr("could not be asked"));
  // The runner names the merge commit of its own event: nothing is asked.
  pull_request.merge_sha = other;
  api.paths.clear();
  EXPECT_TRUE(check_measured(api, pull_request, other));
  EXPECT_THAT(api.paths, SizeIs(0));
}

TEST(LookUp, GoesOnWhereOneOfItsTwoWaysFails) {
  ScriptedApi api;
  api.answers["/repos/o/r/pulls?"] = Json::array({pull(7)});
  Event event = make_fork_event();
  std::vector<std::string> notes;
  ASSERT_TRUE(look_up(api, event, notes));
  EXPECT_EQ(event.pull_request, 7);
  api.answers.clear();
  event = make_fork_event();
  EXPECT_FALSE(look_up(api, event, notes));
}

TEST(LookUp, AsksForHeadAndBaseOfAPullRequestThatWasCommentedOn) {
  ScriptedApi api;
  api.answers["/repos/o/r/pulls/7"] = pull(7);
  Event event;
  event.repository = "o/r";
  event.pull_request = 7;
  std::vector<std::string> notes;
  ASSERT_TRUE(look_up(api, event, notes));
  EXPECT_EQ(event.sha, k_sha);
  EXPECT_EQ(event.base, "main");
  EXPECT_TRUE(event.from_fork);
  const std::pair<Json, const char*> k_wrong[] = {
      {{{"head", {{"sha", "main"}}}}, "head.sha is no commit"},
      {{{"base", {{"ref", nullptr}}}}, "base is no branch"},
      {{{"base", {{"sha", "main"}}}}, "base is no branch"}};
  for (const auto& [more, message] : k_wrong) {
    api.answers["/repos/o/r/pulls/7"] = pull(7, more);
    event.sha.clear();
    const auto looked = look_up(api, event, notes);
    ASSERT_FALSE(looked) << message;
    EXPECT_THAT(looked.error().message, HasSubstr(message));
  }
}

TEST(LookUp, AsksForTheBaseOfACommitThatIsNamedAsWell) {
  ScriptedApi api;
  api.answers["/repos/o/r/pulls/7"] = pull(7);
  Event event;
  event.repository = "o/r";
  event.pull_request = 7;
  event.sha = std::string(40, 'c');
  std::vector<std::string> notes;
  ASSERT_TRUE(look_up(api, event, notes));
  EXPECT_EQ(event.sha, std::string(40, 'c'));
  EXPECT_EQ(event.base, "main");
}

// Commits of main: old, base, new. The pull request was opened (or retargeted, or pushed to) at
// `base`.
TEST(RulesOfTheBase, AreThoseOfItsCommitOrOfALaterOneOnItsBranch) {
  const std::string old(40, '1'), later(40, '2'), elsewhere(40, '3');
  tests::GithubStore store;
  store.set_branch("main", {old, k_base, later});
  store.set_branch("lax", {old, elsewhere});
  tests::StoreApi api(store);
  const Target target{.repository = "o/r", .sha = k_sha, .base = "main", .base_sha = k_base};
  EXPECT_EQ(why_not_rules_of_base(api, target, k_base), "");
  EXPECT_TRUE(api.requests.empty()) << "GitHub names it";
  EXPECT_EQ(why_not_rules_of_base(api, target, later), "");
  // Commits that main has left behind, of another branch, and of the pull request itself.
  for (const std::string& commit : {old, elsewhere, k_sha}) {
    EXPECT_THAT(why_not_rules_of_base(api, target, commit), HasSubstr("not those of main now"));
  }
  EXPECT_THAT(why_not_rules_of_base(api, target, "main"), HasSubstr("no commit"));
  api.wrong = [](const ApiRequest&) {
    return tests::StoreApi::Wrong{{Code::unavailable, "no answer"}, false};
  };
  EXPECT_THAT(why_not_rules_of_base(api, target, later),
              HasSubstr("could not be asked: no answer"));
}

TEST(RunUrl, NamesTheRunAndIsReadBack) {
  const std::string url = make_run_url("https://github.example", "o/r", {12, 3});
  EXPECT_EQ(url, "https://github.example/o/r/actions/runs/12/attempts/3");
  EXPECT_EQ(parse_run_url(url, "o/r"), (RunNumber{12, 3}));
  EXPECT_EQ(parse_run_url("https://github.com/O/R/actions/runs/12", "o/r"), (RunNumber{12, 1}));
  for (const char* foreign_url :
       {"", "https://ci.example/12", "https://github.com/o/r/actions/runs/x",
        "https://github.com/x/y/actions/runs/12"}) {
    EXPECT_FALSE(parse_run_url(foreign_url, "o/r").is_known()) << foreign_url;
  }
  EXPECT_EQ(make_run_url("https://github.com", "o/r", {}), "");
}

}  // namespace target_test
}  // namespace weir::publish
