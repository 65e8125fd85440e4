// Tests the state of GitHub after posts have ended, with whatever happens in between.
#include "gate/publish/post.hpp"

#include <gmock/gmock.h>

#include "tests/publish/store_api.hpp"

namespace weir::publish {
namespace post_test {

using ::testing::HasSubstr;
using ::testing::Not;
using tests::GithubStore;
using tests::StoreApi;
using Outcome = Part::Outcome;

const std::string k_sha(40, 'a');

Target make_target(RunNumber run) {
  return {.repository = "o/r",
          .pull_request = 7,
          .sha = k_sha,
          .run = run,
          .run_url = make_run_url("https://github.com", "o/r", run),
          .base = "main",
          .base_sha = std::string(40, 'b')};
}
std::string run_marker(RunNumber run) { return make_target(run).marker("gate").hidden(); }

Texts make_texts(const std::string& words, int annotations = 0) {
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
    return publish::post(api, make_target(run), texts, options,
                         [this](double seconds) { waited_ += seconds; });
  }
  std::vector<Part> post(const std::string& words, RunNumber run = {1, 1},
                         const PostOptions& options = {}) {
    StoreApi api(store_);
    return post(api, make_texts(words), run, options);
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
  EXPECT_EQ(comment(),
            "<!-- weir:gate=gate pr=7 base=main run=1 attempt=1 -->\n1 of 8 cells broke a limit");
  EXPECT_THAT(parts.at(0).url, HasSubstr("issuecomment"));
  ASSERT_EQ(store_.check_runs().size(), 1U);
  const Json check = store_.check_runs()[0];
  EXPECT_EQ(check["name"], "weir (main)");
  EXPECT_EQ(check["external_id"], "weir:gate=gate pr=7 base=main run=1 attempt=1");
  EXPECT_EQ(check["head_sha"], k_sha);
  EXPECT_EQ(check["conclusion"], "failure");
  EXPECT_EQ(check["status"], "completed");
  EXPECT_EQ(check["details_url"], "https://github.com/o/r/actions/runs/1/attempts/1");
  ASSERT_EQ(store_.statuses(k_sha).size(), 1U);
  EXPECT_EQ(store_.statuses(k_sha)[0]["context"], "weir/gate (main #7)");
  EXPECT_LE(waited_, 7.001);
}

TEST_F(Post, OfTheSameAgainSendsNothing) {
  post("red");
  StoreApi api(store_);
  for (const Part& part : post(api, make_texts("red"))) {
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
  for (const Part& part : post(api, make_texts("older"), {1, 9})) {
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
  EXPECT_EQ(store_.check_runs()[0]["name"], "weir: cpu (main)");
  EXPECT_EQ(store_.statuses(k_sha).size(), 2U);
}

Texts texts_with_reach(Texts::Reach reach, const std::string& words) {
  Texts texts = make_texts(words);
  texts.reach = reach;
  texts.reach_reason = "nobody needs it";
  return texts;
}

TEST_F(Post, ThatOnlyEditsMakesNoNewComment) {
  StoreApi api(store_);
  const Texts texts = texts_with_reach(Texts::Reach::edit, "green");
  const auto parts = post(api, texts);
  EXPECT_EQ(parts[0].outcome, Outcome::left_out);
  EXPECT_EQ(parts[0].reason, "nobody needs it");
  EXPECT_EQ(parts[1].outcome, Outcome::created);
  EXPECT_EQ(parts[2].outcome, Outcome::created);
  EXPECT_TRUE(store_.comments(7).empty());
  post("red", {2, 1});
  const Part edited = post(api, texts, {3, 1})[0];
  EXPECT_EQ(edited.outcome, Outcome::edited);
  EXPECT_EQ(edited.reason, "");
  EXPECT_THAT(comment(), HasSubstr("green"));
  EXPECT_EQ(post(api, texts, {1, 1})[0].outcome, Outcome::superseded);
}

TEST_F(Post, ThatOnlyEditsMakesNoNewCommentWhereTheOneThatItEditedIsGone) {
  post("red", {1, 1});
  StoreApi api(store_);
  const Texts texts = texts_with_reach(Texts::Reach::edit, "green");
  const auto parts = publish::post(api, make_target({2, 1}), texts, k_comment_only, [&](double) {
    for (const Json& entry : store_.comments(7)) {
      (void)api.call(
          {.method = "DELETE",
           .path = fmt::format("/repos/o/r/issues/comments/{}", entry["id"].get<std::int64_t>())});
    }
  });
  EXPECT_EQ(parts[0].outcome, Outcome::edited);
  EXPECT_TRUE(store_.comments(7).empty());
}

// The poster of an older run comes a little later and finds no newer comment.
TEST_F(Post, ThatOnlyEditsCorrectsTheCommentThatAnOlderRunMakesMeanwhile) {
  StoreApi api(store_);
  const Texts texts = texts_with_reach(Texts::Reach::edit, "green");
  int waits = 0;
  const auto parts = publish::post(api, make_target({2, 1}), texts, k_comment_only, [&](double) {
    if (++waits == 2) post("red", {1, 1}, k_comment_only);
  });
  EXPECT_EQ(parts[0].outcome, Outcome::edited);
  ASSERT_EQ(store_.comments(7).size(), 1U);
  EXPECT_THAT(comment(), HasSubstr("green"));
}

TEST_F(Post, ThatIsToLeaveCommentsAloneAsksForNone) {
  post("red", {1, 1});
  StoreApi api(store_);
  const auto parts = post(api, texts_with_reach(Texts::Reach::nothing, "green"), {2, 1});
  EXPECT_EQ(parts[0].outcome, Outcome::left_out);
  EXPECT_EQ(parts[0].reason, "nobody needs it");
  EXPECT_EQ(parts[1].outcome, Outcome::edited);
  EXPECT_THAT(comment(), HasSubstr("red"));
  for (const ApiRequest& request : api.requests) {
    EXPECT_THAT(request.path, Not(HasSubstr("comments"))) << "a token may not even read them";
  }
}

TEST_F(Post, WithoutAPullRequestHasNoComment) {
  StoreApi api(store_);
  Target target = make_target({1, 1});
  target.pull_request.reset();
  const auto parts = publish::post(api, target, make_texts("red"), {}, [](double) {});
  EXPECT_EQ(parts[0].outcome, Outcome::left_out);
  EXPECT_EQ(parts[1].outcome, Outcome::created);
  EXPECT_EQ(parts[2].outcome, Outcome::created);
}

TEST_F(Post, GivesACommentThatAnybodyWroteWithTheMarkerNoTrust) {
  const std::string marker = run_marker({9999999, 1});
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
  store_.add_comment(7, "other[bot]", run_marker({3, 1}) + "\nold");
  store_.login = "maintainer";
  store_.checks_allowed = false;
  const auto parts = post("red", {4, 1});
  EXPECT_EQ(parts[0].outcome, Outcome::created);
  EXPECT_EQ(store_.comments(7).size(), 2U);
  post("green", {5, 1});
  EXPECT_EQ(store_.comments(7).size(), 2U);
  EXPECT_THAT(comment(1), HasSubstr("green"));
}

// Any bot may be tricked into writing the line.
TEST_F(Post, TakesNoOtherBotsCommentForItsOwnWhereItsTokenMayNotSayWhoseItIs) {
  store_.add_comment(7, "other[bot]", run_marker({9, 1}) + "\nall green");
  StoreApi api(store_);
  const auto parts = post(api, make_texts("red"), {4, 1});
  EXPECT_EQ(parts[0].outcome, Outcome::created);
  EXPECT_THAT(comment(1), HasSubstr("red"));
  EXPECT_EQ(post("red again", {5, 1})[0].outcome, Outcome::edited);
  EXPECT_THAT(comment(1), HasSubstr("red again"));
  EXPECT_THAT(comment(0), HasSubstr("all green"));
  store_.login = "other[bot]";
  PostOptions options;
  options.app = "other";
  EXPECT_EQ(post("of another app", {10, 1}, options)[0].outcome, Outcome::edited);
  EXPECT_THAT(comment(0), HasSubstr("of another app"));
}

// Two pull requests of one head, into two branches: neither takes the other's place.
TEST_F(Post, OfAnotherBaseOrPullRequestLeavesThisOnesAlone) {
  StoreApi api(store_);
  store_.add_pull(8, k_sha);
  post(api, make_texts("red"), {1, 1});
  Target second_target = make_target({2, 1});
  second_target.pull_request = 8;
  second_target.base = "lax";
  Texts green = make_texts("green");
  green.check.conclusion = green.status.state = "success";
  for (const Part& part : publish::post(api, second_target, green, {}, [](double) {})) {
    EXPECT_EQ(part.outcome, Outcome::created) << part.name;
  }
  ASSERT_EQ(store_.check_runs().size(), 2U);
  EXPECT_EQ(store_.check_runs()[0]["conclusion"], "failure");
  EXPECT_EQ(store_.check_runs()[1]["name"], "weir (lax)");
  EXPECT_EQ(store_.check_runs()[1]["conclusion"], "success");
  EXPECT_EQ(store_.statuses(k_sha)[0]["context"], "weir/gate (lax #8)");
  EXPECT_EQ(store_.statuses(k_sha)[1]["state"], "failure");
  // Retargeted: comments about main stay there.
  second_target.pull_request = 7;
  (void)publish::post(api, second_target, green, {}, [](double) {});
  EXPECT_EQ(store_.comments(7).size(), 2U);
  EXPECT_THAT(comment(), HasSubstr("red"));
}

// GitHub shows the latest check of a name. With two pull requests of one head into one branch,
// one's green would also stand for the other.
TEST_F(Post, OfASecondPullRequestIntoTheSameBaseIsNoGreenWhileTheFirstIsRed) {
  StoreApi api(store_);
  store_.add_pull(8, k_sha);
  const auto post_for = [&](std::int64_t pull, const char* conclusion, RunNumber run) {
    Target target = make_target(run);
    target.pull_request = pull;
    Texts texts = make_texts(conclusion);
    texts.check.conclusion = conclusion;
    (void)publish::post(api, target, texts, k_check_only, [](double) {});
  };
  const auto shown = [&] { return store_.check_runs().back()["conclusion"]; };
  post_for(7, "failure", {1, 1});
  post_for(8, "success", {2, 1});
  ASSERT_EQ(store_.check_runs().size(), 2U);
  EXPECT_EQ(shown(), "failure");
  EXPECT_THAT(store_.check_runs()[1]["output"]["title"].get<std::string>(),
              HasSubstr("not judged: pull request 7 has the same commit and base"));
  // A check that waits for the other pull request does not block it.
  post_for(7, "success", {3, 1});
  EXPECT_EQ(shown(), "success");
  post_for(8, "success", {4, 1});
  EXPECT_EQ(store_.check_runs()[1]["conclusion"], "success");
  // GitHub shows a later red.
  post_for(7, "failure", {5, 1});
  EXPECT_EQ(shown(), "failure");
  post_for(8, "failure", {5, 2});
  post_for(7, "success", {6, 1});
  EXPECT_EQ(shown(), "failure");
  // A pull request that is closed or has another commit is no longer waited for.
  store_.add_pull(8, k_sha, {{"state", "closed"}});
  post_for(7, "success", {7, 1});
  for (const Json& check : store_.check_runs()) {
    if (check["external_id"] == "weir:gate=gate pr=7 base=main run=7 attempt=1") {
      EXPECT_EQ(check["conclusion"], "success");
    }
  }
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
    store_.add_comment(7, "github-actions[bot]", fmt::format("{}\nrun {}", run_marker({i, 1}), i));
  }
  post("now", {4, 1});
  ASSERT_EQ(store_.comments(7).size(), 1U);
  EXPECT_THAT(comment(), HasSubstr("now"));
}

TEST_F(Post, SendsAnnotationsInBatchesOfFifty) {
  StoreApi api(store_);
  post(api, make_texts("red", 120), {1, 1}, k_check_only);
  ASSERT_EQ(store_.check_runs().size(), 1U);
  EXPECT_EQ(store_.check_runs()[0]["annotations"].size(), 120U);
  EXPECT_EQ(api.writes(), 3);
  for (const auto& request : api.requests) {
    EXPECT_EQ(request.once, request.method == "PATCH") << request.path;
  }
}

TEST_F(Post, OfARerunWithOtherAnnotationsMakesAnotherCheckRunSinceNoneCanBeTakenOff) {
  StoreApi api(store_);
  post(api, make_texts("red", 3), {1, 1}, k_check_only);
  Texts now = make_texts("still red", 5);  // the same three, and two more
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

// Loses the answer of each request of a post in turn, once carried out and once not.
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
        const auto parts = post(api, make_texts("red", 60));
        requests = api.requests.size();
        store_.create_lag = 0;
        const std::string about = fmt::format("{} carried out: {} lag {}", what, carried_out, lag);
        EXPECT_LE(store_.comments(7).size(), 1U) << about;
        EXPECT_LE(store_.check_runs().size(), 1U) << about;
        // A look-up that fails is reported, as nothing is certain then.
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
  const auto parts = post(api, make_texts("red"));
  for (const Part& part : parts) {
    EXPECT_EQ(part.outcome, Outcome::failed);
    EXPECT_THAT(part.reason, HasSubstr("no answer"));
  }
  EXPECT_LT(api.requests.size(), 20U);
}

TEST_F(Post, WhoseTokenCanNotBeAskedForRightNowMakesNoSecondComment) {
  store_.login = "maintainer";
  post("red", {1, 1}, k_comment_only);
  StoreApi api(store_);
  api.wrong = [](const ApiRequest& request) -> std::optional<StoreApi::Wrong> {
    if (request.path != "/user") return std::nullopt;
    return StoreApi::Wrong{{Code::unavailable, "HTTP 502"}, false};
  };
  EXPECT_EQ(post(api, make_texts("red"), {2, 1}, k_comment_only)[0].outcome, Outcome::failed);
  EXPECT_EQ(store_.comments(7).size(), 1U);
}

TEST(PartOfAPost, HasAWord) {
  EXPECT_EQ(to_string(Outcome::left_out), "left out");
  EXPECT_EQ(to_string(Outcome::failed), "failed");
}

}  // namespace post_test
}  // namespace weir::publish
