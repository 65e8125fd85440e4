// What is left on GitHub when posts have ended, whatever went on between.
#include "gate/publish/post.hpp"

#include <gmock/gmock.h>

#include "tests/publish/store_api.hpp"

namespace weir::publish {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using tests::GithubStore;
using tests::StoreApi;
using Outcome = Part::Outcome;

const std::string k_sha(40, 'a');

Target target_of(RunNumber run) {
  return {.repository = "o/r",
          .pull_request = 7,
          .sha = k_sha,
          .run = run,
          .run_url = run_url_of("https://github.com", "o/r", run)};
}

Texts texts_saying(const std::string& words, int annotations = 0) {
  Texts texts;
  texts.comment = words;
  texts.check = {"failure", words, "summary: " + words, {}};
  for (int i = 0; i < annotations; ++i) {
    texts.check.annotations.push_back(
        {"weir.yaml", 1, "failure", fmt::format("cell {}", i), "dispatches"});
  }
  texts.status = {"failure", words};
  return texts;
}

class Post : public testing::Test {
 protected:
  Post() { store_.add_pull(7, k_sha); }

  std::vector<Part> post(StoreApi& api, const Texts& texts, RunNumber run = {1, 1},
                         const PostOptions& options = {}) {
    return publish::post(api, target_of(run), texts, options,
                         [this](double seconds) { waited_ += seconds; });
  }
  std::vector<Part> post(const std::string& words, RunNumber run = {1, 1},
                         const PostOptions& options = {}) {
    StoreApi api(store_);
    return post(api, texts_saying(words), run, options);
  }
  [[nodiscard]] std::string comment(std::size_t i = 0) const {
    return store_.comments(7).at(i)["body"].get<std::string>();
  }

  GithubStore store_;
  double waited_ = 0;
};

const PostOptions k_comment_only{.check = false, .status = false};
const PostOptions k_check_only{.comment = false, .status = false};
const PostOptions k_status_only{.comment = false, .check = false};

TEST_F(Post, LeavesOneCommentOneCheckRunAndOneStatus) {
  const auto parts = post("1 of 8 cells broke a limit");
  for (const Part& part : parts) EXPECT_EQ(part.outcome, Outcome::created) << part.name;
  ASSERT_EQ(store_.comments(7).size(), 1U);
  EXPECT_EQ(comment(), "<!-- weir:gate=gate run=1 attempt=1 -->\n1 of 8 cells broke a limit");
  EXPECT_THAT(parts.at(0).url, HasSubstr("issuecomment"));
  ASSERT_EQ(store_.check_runs().size(), 1U);
  const Json check = store_.check_runs()[0];
  EXPECT_EQ(check["name"], "weir");
  EXPECT_EQ(check["head_sha"], k_sha);
  EXPECT_EQ(check["conclusion"], "failure");
  EXPECT_EQ(check["status"], "completed");
  EXPECT_EQ(check["details_url"], "https://github.com/o/r/actions/runs/1/attempts/1");
  ASSERT_EQ(store_.statuses(k_sha).size(), 1U);
  EXPECT_EQ(store_.statuses(k_sha)[0]["context"], "weir/gate");
  EXPECT_LE(waited_, 7.001);
}

TEST_F(Post, OfTheSameAgainSendsNothing) {
  post("red");
  StoreApi api(store_);
  for (const Part& part : post(api, texts_saying("red"))) {
    EXPECT_EQ(part.outcome, Outcome::unchanged) << part.name;
  }
  EXPECT_EQ(api.writes(), 0);
}

TEST_F(Post, OfARerunEditsAndNeverDoubles) {
  post("red", {1, 1});
  const auto parts = post("green", {1, 2});
  EXPECT_EQ(parts[0].outcome, Outcome::edited);
  EXPECT_EQ(parts[1].outcome, Outcome::edited);
  ASSERT_EQ(store_.comments(7).size(), 1U);
  EXPECT_THAT(comment(), HasSubstr("green"));
  ASSERT_EQ(store_.check_runs().size(), 1U);
  EXPECT_EQ(store_.check_runs()[0]["output"]["title"], "green");
  EXPECT_EQ(store_.statuses(k_sha)[0]["description"], "green");
}

TEST_F(Post, OfAnOlderRunLeavesTheNewersAlone) {
  post("newer", {2, 1});
  StoreApi api(store_);
  for (const Part& part : post(api, texts_saying("older"), {1, 9})) {
    EXPECT_EQ(part.outcome, Outcome::superseded) << part.name;
    EXPECT_THAT(part.reason, HasSubstr("newer run, 2")) << part.name;
  }
  EXPECT_EQ(api.writes(), 0);
  EXPECT_THAT(comment(), HasSubstr("newer"));
}

TEST_F(Post, ByHandOverwritesWhatARunLeftAndIsOverwrittenByTheNext) {
  post("run", {5, 1});
  post("by hand", {});
  EXPECT_THAT(comment(), HasSubstr("by hand"));
  post("run again", {4, 1});
  EXPECT_THAT(comment(), HasSubstr("run again"));
  EXPECT_EQ(store_.comments(7).size(), 1U);
}

TEST_F(Post, OfTwoGatesLeavesACommentOfEach) {
  post("cpu", {1, 1}, {.gate = "cpu"});
  post("gpu", {1, 1}, {.gate = "gpu"});
  EXPECT_EQ(store_.comments(7).size(), 2U);
  EXPECT_EQ(store_.check_runs().size(), 2U);
  EXPECT_EQ(store_.check_runs()[0]["name"], "weir: cpu");
  EXPECT_EQ(store_.statuses(k_sha).size(), 2U);
}

TEST_F(Post, ThatOnlyEditsMakesNoNewComment) {
  StoreApi api(store_);
  Texts texts = texts_saying("not measured");
  texts.only_edit_comment = true;
  EXPECT_EQ(post(api, texts)[0].outcome, Outcome::left_out);
  EXPECT_TRUE(store_.comments(7).empty());
  post("red");
  EXPECT_EQ(post(api, texts, {2, 1})[0].outcome, Outcome::edited);
}

TEST_F(Post, WithoutAPullRequestHasNoComment) {
  StoreApi api(store_);
  Target target = target_of({1, 1});
  target.pull_request.reset();
  const auto parts = publish::post(api, target, texts_saying("red"), {}, [](double) {});
  EXPECT_EQ(parts[0].outcome, Outcome::left_out);
  EXPECT_EQ(parts[1].outcome, Outcome::created);
  EXPECT_EQ(parts[2].outcome, Outcome::created);
}

TEST_F(Post, GivesACommentThatAnybodyWroteWithTheMarkerNoTrust) {
  const std::string marker = Marker{"gate", {9999999, 1}}.hidden();
  store_.add_comment(7, "mallory", marker + "\nall green");
  store_.add_comment(7, "quoting[bot]", "> " + marker + "\nall green");
  const auto parts = post("red");
  EXPECT_EQ(parts[0].outcome, Outcome::created);
  ASSERT_EQ(store_.comments(7).size(), 3U);
  EXPECT_THAT(comment(2), HasSubstr("red"));
  EXPECT_THAT(comment(0), HasSubstr("all green")) << "others' comments are theirs";
  post("red again", {2, 1});
  EXPECT_EQ(store_.comments(7).size(), 3U);
  EXPECT_THAT(comment(2), HasSubstr("red again"));
}

TEST_F(Post, WithAPersonsTokenTakesNoBotsCommentForItsOwn) {
  store_.add_comment(7, "other[bot]", Marker{"gate", {3, 1}}.hidden() + "\nold");
  store_.login = "maintainer";
  store_.checks_allowed = false;
  const auto parts = post("red", {4, 1});
  EXPECT_EQ(parts[0].outcome, Outcome::created);
  EXPECT_EQ(store_.comments(7).size(), 2U);
  post("green", {5, 1});
  EXPECT_EQ(store_.comments(7).size(), 2U);
  EXPECT_THAT(comment(1), HasSubstr("green"));
}

TEST_F(Post, GoesRoundACommentThatItMayNotEdit) {
  store_.add_comment(7, "other[bot]", Marker{"gate", {3, 1}}.hidden() + "\nold");
  const auto parts = post("red", {4, 1});
  EXPECT_EQ(parts[0].outcome, Outcome::created);
  EXPECT_THAT(comment(1), HasSubstr("red"));
}

TEST_F(Post, WithATokenThatMayNotMakeCheckRunsTellsAndPostsTheRest) {
  store_.checks_allowed = false;
  const auto parts = post("red");
  EXPECT_EQ(parts[0].outcome, Outcome::created);
  EXPECT_EQ(parts[1].outcome, Outcome::failed);
  EXPECT_THAT(parts[1].reason, HasSubstr("checks: write"));
  EXPECT_EQ(parts[2].outcome, Outcome::created);
}

TEST_F(Post, ToAPullRequestThatIsNotThereTellsAndPostsTheRest) {
  store_.remove_pull(7);
  const auto parts = post("red");
  EXPECT_EQ(parts[0].outcome, Outcome::failed);
  EXPECT_EQ(parts[1].outcome, Outcome::created);
}

TEST_F(Post, RemovesWhatCrashedPostersLeft) {
  for (int i = 1; i <= 3; ++i) {
    store_.add_comment(7, "github-actions[bot]",
                       fmt::format("{}\nrun {}", Marker{"gate", {i, 1}}.hidden(), i));
  }
  post("now", {4, 1});
  ASSERT_EQ(store_.comments(7).size(), 1U);
  EXPECT_THAT(comment(), HasSubstr("now"));
}

TEST_F(Post, SendsAnnotationsInBatchesOfFifty) {
  StoreApi api(store_);
  post(api, texts_saying("red", 120), {1, 1}, k_check_only);
  ASSERT_EQ(store_.check_runs().size(), 1U);
  EXPECT_EQ(store_.check_runs()[0]["annotations"].size(), 120U);
  EXPECT_EQ(api.writes(), 3);
  for (const auto& request : api.seen) {
    EXPECT_EQ(request.once, request.method == "PATCH") << request.path;
  }
}

TEST_F(Post, OfARerunWithOtherAnnotationsMakesAnotherCheckRunSinceNoneCanBeTakenOff) {
  StoreApi api(store_);
  post(api, texts_saying("red", 3), {1, 1}, k_check_only);
  Texts now = texts_saying("still red", 5);  // the same three, and two more
  post(api, now, {1, 2}, k_check_only);
  ASSERT_EQ(store_.check_runs().size(), 1U);
  EXPECT_EQ(store_.check_runs()[0]["annotations"].size(), 5U);
  now.check.annotations.erase(now.check.annotations.begin());
  EXPECT_EQ(post(api, now, {1, 3}, k_check_only)[0].outcome, Outcome::created);
  ASSERT_EQ(store_.check_runs().size(), 2U);
  EXPECT_EQ(store_.check_runs()[1]["annotations"].size(), 4U);
  post(api, now, {1, 4}, k_check_only);
  EXPECT_EQ(store_.check_runs().size(), 2U) << "the latest is edited from then on";
}

// Each request of a post in turn loses its answer, once carried out and once not.
TEST_F(Post, WithAnyOneAnswerLostLeavesOneOfEachAllTheSame) {
  std::size_t requests = 0;
  for (const bool carried_out : {false, true}) {
    for (std::size_t lost = 0; lost == 0 || lost < requests; ++lost) {
      for (const int lag : {0, 1}) {
        store_ = GithubStore();
        store_.add_pull(7, k_sha);
        store_.create_lag = lag;
        StoreApi api(store_);
        std::size_t number = 0;
        std::string what;
        api.wrong = [&](const ApiRequest& request) -> std::optional<StoreApi::Wrong> {
          if (number++ != lost) return std::nullopt;
          what = request.method + " " + request.path;
          return StoreApi::Wrong{{Code::unavailable, "the answer was lost"}, carried_out};
        };
        const auto parts = post(api, texts_saying("red", 60));
        requests = api.seen.size();
        store_.create_lag = 0;
        const std::string about = fmt::format("{} carried out: {} lag {}", what, carried_out, lag);
        EXPECT_LE(store_.comments(7).size(), 1U) << about;
        EXPECT_LE(store_.check_runs().size(), 1U) << about;
        // A look that fails is told: there is nothing to be sure of then.
        if (what.rfind("GET", 0) == 0) continue;
        for (const Part& part : parts) EXPECT_NE(part.outcome, Outcome::failed) << about;
        EXPECT_EQ(store_.comments(7).size(), 1U) << about;
        ASSERT_EQ(store_.check_runs().size(), 1U) << about;
        EXPECT_EQ(store_.check_runs()[0]["annotations"].size(), 60U) << about;
        EXPECT_FALSE(store_.statuses(k_sha).empty()) << about;
      }
    }
  }
  EXPECT_GT(requests, 10U);
}

TEST_F(Post, WithAnApiThatIsDownFailsInAllPartsAfterAFewRequests) {
  StoreApi api(store_);
  api.wrong = [](const ApiRequest&) {
    return StoreApi::Wrong{{Code::unavailable, "no answer"}, false};
  };
  const auto parts = post(api, texts_saying("red"));
  for (const Part& part : parts) {
    EXPECT_EQ(part.outcome, Outcome::failed);
    EXPECT_THAT(part.reason, HasSubstr("no answer"));
  }
  EXPECT_LT(api.seen.size(), 20U);
}

TEST_F(Post, WhoseTokenCanNotBeAskedForRightNowMakesNoSecondComment) {
  store_.login = "maintainer";
  post("red", {1, 1}, k_comment_only);
  StoreApi api(store_);
  api.wrong = [](const ApiRequest& request) -> std::optional<StoreApi::Wrong> {
    if (request.path != "/user") return std::nullopt;
    return StoreApi::Wrong{{Code::unavailable, "HTTP 502"}, false};
  };
  EXPECT_EQ(post(api, texts_saying("red"), {2, 1}, k_comment_only)[0].outcome, Outcome::failed);
  EXPECT_EQ(store_.comments(7).size(), 1U);
}

TEST(PartOfAPost, HasAWord) {
  EXPECT_EQ(to_string(Outcome::left_out), "left out");
  EXPECT_EQ(to_string(Outcome::failed), "failed");
}

}  // namespace
}  // namespace weir::publish
