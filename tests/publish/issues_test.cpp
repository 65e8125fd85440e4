// Tests one issue per change point, on the tests' own GitHub.
#include "gate/publish/issues.hpp"

#include <gmock/gmock.h>

#include "gate/publish/api.hpp"

#include "tests/publish/store_api.hpp"

namespace weir::publish {
namespace issues_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using Outcome = Part::Outcome;

class Issues : public testing::Test {
 protected:
  static WantedIssue change(const std::string& at = "c3", const std::string& body = "slower") {
    return {"mine/m/cpu/decode decode_tokens_per_second lab", at, {"c2", "c4"}, "it fell", body};
  }
  std::vector<Part> post(const std::vector<WantedIssue>& wanted) {
    const auto parts = post_issues(api_, "o/r", wanted, options_, [&](double) { ++waits_; });
    EXPECT_TRUE(parts) << parts.error().message;
    return parts.value_or(std::vector<Part>());
  }
  static std::vector<Outcome> outcomes(const std::vector<Part>& parts) {
    std::vector<Outcome> all;
    for (const Part& part : parts) all.push_back(part.outcome);
    return all;
  }

  tests::GithubStore store_;
  tests::StoreApi api_{store_};
  IssueOptions options_;
  int waits_ = 0;
};

TEST_F(Issues, AreOpenedOnceAndEditedWhenMoreIsKnown) {
  EXPECT_THAT(outcomes(post({change()})), ElementsAre(Outcome::created));
  ASSERT_THAT(store_.issues(), SizeIs(1));
  EXPECT_EQ(store_.issues()[0]["labels"][0]["name"], "weir");
  EXPECT_EQ(waits_, 1);
  EXPECT_THAT(outcomes(post({change()})), ElementsAre(Outcome::unchanged));
  EXPECT_EQ(waits_, 1) << "nothing was made that another could have made too";
  EXPECT_THAT(outcomes(post({change("c3", "slower, by more than was thought")})),
              ElementsAre(Outcome::edited));
  EXPECT_THAT(store_.issues()[0]["body"].get<std::string>(), HasSubstr("than was thought"));
  EXPECT_THAT(store_.issues(), SizeIs(1));
}

TEST_F(Issues, StayWithAChangeWhosePlaceMovesByAPoint) {
  post({change("c3")});
  WantedIssue moved = change("c4");
  moved.near = {"c3", "c5"};
  EXPECT_THAT(outcomes(post({moved})), ElementsAre(Outcome::edited));
  moved = change("c5");
  moved.near = {"c4", "c6"};
  EXPECT_THAT(outcomes(post({moved})), ElementsAre(Outcome::edited)) << "it is followed";
  EXPECT_THAT(store_.issues(), SizeIs(1));
  WantedIssue far = change("c9");
  far.near = {"c8", "c10"};
  EXPECT_THAT(outcomes(post({far})), ElementsAre(Outcome::created));
  WantedIssue elsewhere = change();
  elsewhere.series = "mine/m/cpu/decode decode_tokens_per_second another machine";
  EXPECT_THAT(outcomes(post({elsewhere})), ElementsAre(Outcome::created));
}

TEST_F(Issues, ThatSomebodyClosedStayClosed) {
  const auto parts = post({change()});
  store_.close_issue(parts[0].id);
  const auto again = post({change("c3", "other words")});
  EXPECT_THAT(outcomes(again), ElementsAre(Outcome::left_out));
  EXPECT_THAT(again[0].reason, HasSubstr("was closed"));
  EXPECT_THAT(store_.issues(), SizeIs(1));
}

TEST_F(Issues, WithAMarkerThatOthersWroteOrWithoutTheLabelMeanNothing) {
  store_.add_issue("eve", "mine", issue_marker(change()) + "\nnot so", "weir");
  store_.add_issue("github-actions[bot]", "mine", issue_marker(change()) + "\nnot so", "other");
  EXPECT_THAT(outcomes(post({change()})), ElementsAre(Outcome::created));
  EXPECT_THAT(store_.issues(), SizeIs(3));
}

TEST_F(Issues, AreNoMoreThanSoManyAtOnce) {
  options_.max_new_issues = 2;
  std::vector<WantedIssue> many;
  for (const char* series : {"a", "b", "c"}) {
    many.push_back(change());
    many.back().series = series;
  }
  EXPECT_THAT(outcomes(post(many)),
              ElementsAre(Outcome::created, Outcome::created, Outcome::left_out));
  EXPECT_THAT(outcomes(post(many)),
              ElementsAre(Outcome::unchanged, Outcome::unchanged, Outcome::created));
}

TEST_F(Issues, OfTwoPostersAtOnceTheLowestStays) {
  bool came_in = false;
  api_.before = [&](const ApiRequest& request) {
    if (request.method != "POST" || came_in) return;
    came_in = true;  // just before we create ours
    store_.add_issue(store_.login, "it fell", issue_marker(change()) + "\nslower", "weir");
  };
  const auto parts = post({change()});
  EXPECT_THAT(outcomes(parts), ElementsAre(Outcome::unchanged));
  ASSERT_THAT(store_.issues(), SizeIs(2));
  EXPECT_EQ(store_.issues()[0]["state"], "open");
  EXPECT_EQ(store_.issues()[1]["state"], "closed");
  EXPECT_EQ(parts[0].id, store_.issues()[0]["number"]);
  // The issue that we closed does not count as closed by somebody.
  EXPECT_THAT(outcomes(post({change("c3", "more")})), ElementsAre(Outcome::edited));
}

// Otherwise it would not be found tomorrow, and a new one would be created every night.
TEST_F(Issues, WithoutTheirLabelAreClosedAgainAndThatIsSaid) {
  store_.labels_allowed = false;
  WantedIssue second = change();
  second.series = "another";
  const auto parts = post({change(), second});
  EXPECT_THAT(outcomes(parts), ElementsAre(Outcome::failed, Outcome::left_out));
  EXPECT_THAT(parts[0].reason, HasSubstr("without its label"));
  ASSERT_THAT(store_.issues(), SizeIs(1));
  EXPECT_EQ(store_.issues()[0]["state"], "closed");
}

TEST_F(Issues, OfTwoChangesThatAreNearEachOtherAreTwo) {
  WantedIssue next = change("c4", "and again");
  next.near = {"c3", "c5"};
  EXPECT_THAT(outcomes(post({change(), next})), ElementsAre(Outcome::created, Outcome::created));
  EXPECT_THAT(outcomes(post({change(), next})),
              ElementsAre(Outcome::unchanged, Outcome::unchanged));
  EXPECT_EQ(store_.issues()[0]["state"], "open");
  EXPECT_EQ(store_.issues()[1]["state"], "open");
}

// A person's token may ask for its login; then only issues of that login count.
TEST_F(Issues, OfAPersonsTokenAreThatPersonsAlone) {
  store_.login = "ada";
  store_.add_issue("github-actions[bot]", "it fell", issue_marker(change()) + "\nslower", "weir");
  EXPECT_THAT(outcomes(post({change()})), ElementsAre(Outcome::created));
  EXPECT_THAT(outcomes(post({change()})), ElementsAre(Outcome::unchanged));
}

TEST_F(Issues, ThatCanNotBeMadeKeepNoOtherFromBeingPosted) {
  int posts = 0;
  api_.wrong = [&](const ApiRequest& request) -> std::optional<tests::StoreApi::Wrong> {
    if (request.method == "POST" && ++posts == 1) return tests::StoreApi::Wrong{{Code::io, "lost"}};
    return std::nullopt;
  };
  WantedIssue second = change();
  second.series = "another";
  EXPECT_THAT(outcomes(post({change(), second})), ElementsAre(Outcome::failed, Outcome::created));
  EXPECT_FALSE(post_issues(api_, "nobody/here", {change()}, options_, [](double) {}));
}

TEST_F(Issues, AreRehearsedAsTheyWouldBeMade) {
  Rehearsal rehearsal;
  const auto parts = post_issues(rehearsal, "o/r", {change()}, options_, [](double) {});
  ASSERT_TRUE(parts);
  EXPECT_THAT(outcomes(*parts), ElementsAre(Outcome::created));
  EXPECT_THAT(rehearsal.sent(), SizeIs(1));
}

}  // namespace issues_test
}  // namespace weir::publish
