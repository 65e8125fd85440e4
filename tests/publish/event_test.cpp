// Tests reading events of GitHub, shortened from its documentation of webhooks.
#include <gmock/gmock.h>

#include "gate/base/json.hpp"
#include "gate/publish/target.hpp"

namespace weir::publish {
namespace event_test {

using ::testing::HasSubstr;

const std::string k_head(40, 'a');
const std::string k_merge(40, 'c');
const std::string k_base(40, 'b');

const CiVariables k_runner{.event_name = "pull_request",
                           .repository = "o/r",
                           .sha = k_merge,
                           .run_id = "900",
                           .run_attempt = "2"};

Json pull_event(const std::string& head_repository = "o/r") {
  return {{"action", "synchronize"},
          {"number", 7},
          {"pull_request",
           {{"number", 7},
            {"head", {{"sha", k_head}, {"repo", {{"full_name", head_repository}}}}},
            {"base", {{"ref", "main"}, {"sha", k_base}, {"repo", {{"full_name", "o/r"}}}}}}},
          {"repository", {{"full_name", "o/r"}}}};
}

Json workflow_run_event(const Json& pulls = Json::array()) {
  return {{"action", "completed"},
          {"workflow_run",
           {{"id", 800},
            {"run_attempt", 3},
            {"head_sha", k_head},
            {"head_branch", "fix/ü&x"},
            {"event", "pull_request"},
            {"conclusion", "failure"},
            {"head_repository", {{"full_name", "someone/fork"}}},
            {"pull_requests", pulls}}},
          {"repository", {{"full_name", "o/r"}}}};
}

CiVariables runner(const std::string& event_name) {
  CiVariables surroundings = k_runner;
  surroundings.event_name = event_name;
  return surroundings;
}

Result<Event> read(const Json& json, const CiVariables& surroundings) {
  return read_event(json.dump(), surroundings, "event.json");
}

TEST(Event, OfAPullRequestTakesItsHeadAndNotTheMergeCommit) {
  const auto event = read(pull_event(), k_runner);
  ASSERT_TRUE(event) << event.error().message;
  EXPECT_EQ(event->repository, "o/r");
  EXPECT_EQ(event->pull_request, 7);
  EXPECT_EQ(event->sha, k_head);
  EXPECT_EQ(event->base, "main");
  EXPECT_EQ(event->base_sha, k_base);
  EXPECT_TRUE(event->of_pull_request);
  EXPECT_EQ(event->run, (RunNumber{900, 2}));
  EXPECT_FALSE(event->reads_only);
  EXPECT_FALSE(event->from_fork);
}

TEST(Event, OfAForksPullRequestHasATokenThatOnlyReads) {
  EXPECT_TRUE(read(pull_event("someone/fork"), k_runner)->reads_only);
  EXPECT_FALSE(read(pull_event("someone/fork"), runner("pull_request_target"))->reads_only);
  EXPECT_TRUE(read(pull_event("someone/fork"), runner("pull_request_target"))->from_fork);
  Json deleted = pull_event();
  deleted["pull_request"]["head"]["repo"] = nullptr;
  EXPECT_TRUE(read(deleted, k_runner)->reads_only);
}

TEST(Event, OfAWorkflowRunIsAboutTheRunThatMeasuredAndItsHead) {
  const auto event = read(workflow_run_event(), runner("workflow_run"));
  ASSERT_TRUE(event) << event.error().message;
  EXPECT_EQ(event->sha, k_head);
  EXPECT_EQ(event->run, (RunNumber{800, 3}));
  EXPECT_EQ(event->conclusion, "failure");
  EXPECT_FALSE(event->pull_request);
  ASSERT_TRUE(event->head);
  EXPECT_EQ(event->head->repository, "someone/fork");
  EXPECT_EQ(event->head->branch, "fix/ü&x");
}

// Since the event, the pull request may have been retargeted, or another one opened.
TEST(Event, OfAWorkflowRunLeavesThePullRequestToTheApi) {
  const auto event =
      read(workflow_run_event(Json::array({{{"number", 7}, {"head", {{"sha", k_head}}}}})),
           runner("workflow_run"));
  ASSERT_TRUE(event) << event.error().message;
  EXPECT_FALSE(event->pull_request);
  EXPECT_TRUE(event->of_pull_request);
  EXPECT_TRUE(event->head);
  EXPECT_EQ(event->base, "");
}

TEST(Event, OfAWorkflowRunThatStillGoesOnHasNoConclusion) {
  Json json = workflow_run_event();
  json["workflow_run"]["conclusion"] = nullptr;
  EXPECT_EQ(read(json, runner("workflow_run"))->conclusion, "");
}

TEST(Event, OfAWorkflowRunForAPushHasNoPullRequestToLookFor) {
  Json json = workflow_run_event();
  json["workflow_run"]["event"] = "push";
  const auto event = read(json, runner("workflow_run"));
  EXPECT_FALSE(event->pull_request);
  EXPECT_FALSE(event->head);
}

TEST(Event, OfOtherKindsKnowsItsCommit) {
  const Json repository = {{"full_name", "o/r"}};
  const auto push = read(
      {{"ref", "refs/heads/main"}, {"after", k_head}, {"repository", repository}}, runner("push"));
  EXPECT_EQ(push->sha, k_head);
  const auto group =
      read({{"merge_group",
             {{"head_sha", k_head}, {"base_sha", k_base}, {"base_ref", "refs/heads/release/1"}}},
            {"repository", repository}},
           runner("merge_group"));
  EXPECT_EQ(group->sha, k_head);
  EXPECT_EQ(group->base, "release/1");
  EXPECT_EQ(group->base_sha, k_base);
  EXPECT_FALSE(group->pull_request);
  for (const char* name : {"schedule", "workflow_dispatch", "release"}) {
    const auto event = read({{"repository", repository}}, runner(name));
    EXPECT_EQ(event->sha, k_merge) << name;
    EXPECT_FALSE(event->pull_request) << name;
  }
}

TEST(Event, OfACommentLeavesTheCommitToTheApi) {
  Json json = {{"issue", {{"number", 7}, {"pull_request", {{"url", "x"}}}}},
               {"comment", {{"id", 1}}},
               {"repository", {{"full_name", "o/r"}}}};
  const auto event = read(json, runner("issue_comment"));
  EXPECT_EQ(event->pull_request, 7);
  EXPECT_EQ(event->sha, "");
  json["issue"].erase("pull_request");  // a plain issue
  EXPECT_FALSE(read(json, runner("issue_comment"))->pull_request);
}

TEST(Event, WithoutANameIsToldByItsShape) {
  EXPECT_EQ(read(pull_event(), {})->name, "pull_request");
  EXPECT_EQ(read(workflow_run_event(), {})->name, "workflow_run");
  EXPECT_EQ(
      read({{"after", k_head}, {"ref", "x"}, {"repository", {{"full_name", "o/r"}}}}, {})->name,
      "push");
}

TEST(Event, WithoutATextIsWhatTheEnvironmentSays) {
  const auto event = read_event(std::nullopt, k_runner, "");
  EXPECT_EQ(event->repository, "o/r");
  EXPECT_EQ(event->sha, k_merge);
  EXPECT_TRUE(read_event(std::nullopt, {}, "")->repository.empty());
}

struct Wrong {
  const char* about;
  const char* pointer;
  Json value;
  const char* message;
};

TEST(Event, ThatIsNotAsItShouldBeSaysWhatAndWhere) {
  const Wrong k_wrong[] = {
      {"a branch in place of a commit", "/pull_request/head/sha", "main",
       "event.json: pull_request.head.sha \"main\" is no commit"},
      {"a deleted branch", "/pull_request/head/sha", std::string(40, '0'), "is no commit"},
      {"no commit", "/pull_request/head/sha", nullptr, "pull_request.head.sha is missing"},
      {"a number as text", "/pull_request/number", "7", "pull_request.number is no number from 1"},
      {"a negative number", "/pull_request/number", -7, "is no number from 1"},
      {"a number beyond all", "/pull_request/number", std::uint64_t{1} << 63U, "no number"},
      {"a path as repository", "/repository/full_name", "o/r/../../x", "is no OWNER/NAME"},
      {"a query in the repository", "/repository/full_name", "o/r?x=1", "is no OWNER/NAME"},
      {"another repository", "/repository/full_name", "evil/r", "is not GITHUB_REPOSITORY"},
      {"a list as pull request", "/pull_request", Json::array(), "pull_request is no object"},
      {"no base", "/pull_request/base/ref", nullptr, "pull_request.base.ref is missing"},
      {"no repository name", "/repository", Json::object(), "repository.full_name is missing"},
  };
  for (const Wrong& wrong : k_wrong) {
    Json json = pull_event();
    json[Json::json_pointer(wrong.pointer)] = wrong.value;
    const auto event = read(json, k_runner);
    ASSERT_FALSE(event) << wrong.about;
    EXPECT_THAT(event.error().message, HasSubstr(wrong.message)) << wrong.about;
    EXPECT_EQ(event.error().code, Code::data) << wrong.about;
  }
}

TEST(Event, ThatIsNoJsonObjectIsRefused) {
  for (const std::string& text :
       {std::string("[]"), std::string("{"), std::string(), std::string(100'000, '['),
        std::string("{\"a\":") + std::string(200, '[') + std::string(200, ']') + "}"}) {
    const auto event = read_event(text, k_runner, "event.json");
    ASSERT_FALSE(event);
    EXPECT_THAT(event.error().message, HasSubstr("event.json: "));
  }
  EXPECT_FALSE(read_event(std::string(k_largest_event + 1, ' '), k_runner, "event.json"));
}

TEST(Event, OfHostileSurroundingsIsRefused) {
  CiVariables surroundings = k_runner;
  surroundings.repository = "o/r#\n::error::x";
  EXPECT_FALSE(read_event(std::nullopt, surroundings, ""));
  surroundings = k_runner;
  surroundings.sha = "HEAD";
  EXPECT_FALSE(read_event(std::nullopt, surroundings, ""));
  surroundings = k_runner;
  surroundings.run_id = "-5";
  EXPECT_FALSE(read_event(std::nullopt, surroundings, "")->run.is_known());
}

TEST(Repository, IsOwnerAndNameAndNothingElse) {
  for (const char* fine : {"o/r", "some-one/my.repo_2", "emu_user/x"})
    EXPECT_TRUE(is_repository(fine));
  for (const char* wrong :
       {"", "o", "o/", "/r", "o/r/x", "o/..", "o/.", "o r/x", "o/r%2f", "o/ü"}) {
    EXPECT_FALSE(is_repository(wrong)) << wrong;
  }
}

}  // namespace event_test
}  // namespace weir::publish
