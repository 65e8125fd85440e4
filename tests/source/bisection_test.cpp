// Tests the search for the commit that made a number worse.
#include "gate/source/bisection.hpp"

#include <algorithm>
#include <random>
#include <set>

#include <gmock/gmock.h>

#include "scene.hpp"

namespace weir::source {
namespace bisection_test {

using ::testing::ElementsAre;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

// "c199" (bad) … "c1", whose parent "c0" is good.
std::vector<HistoryCommit> line(int commits) {
  std::vector<HistoryCommit> history;
  for (int i = commits; i > 0; --i) {
    history.push_back({"c" + std::to_string(i), {"c" + std::to_string(i - 1)}});
  }
  return history;
}

struct Walked {
  std::vector<std::string> suspects;
  int tried = 0, skipped = 0;
};
// Bisects a history with these bad and broken commits; returns the number of steps and the
// suspects.
Walked walk(const std::vector<HistoryCommit>& history, const std::set<std::string>& bad,
            const std::set<std::string>& broken) {
  Bisection bisection(history);
  Walked walked;
  for (auto next = bisection.next(); next; next = bisection.next()) {
    EXPECT_LT(++walked.tried, 1000);
    if (walked.tried >= 1000) break;
    if (broken.contains(*next)) {
      ++walked.skipped;
      bisection.record_outcome(*next, TrialOutcome::skipped);
    } else {
      bisection.record_outcome(*next, bad.contains(*next) ? TrialOutcome::bad : TrialOutcome::good);
    }
  }
  walked.suspects = bisection.suspects();
  return walked;
}
std::set<std::string> from(int first, int last) {
  std::set<std::string> names;
  for (int i = first; i <= last; ++i) names.insert("c" + std::to_string(i));
  return names;
}

TEST(Bisecting, FindsEveryCommitOfALineInAboutTheLogarithm) {
  const auto history = line(200);
  for (int first = 1; first <= 200; ++first) {
    const Walked walked = walk(history, from(first, 200), {});
    EXPECT_THAT(walked.suspects, ElementsAre("c" + std::to_string(first)));
    EXPECT_LE(walked.tried, 8) << first;  // 2^8 = 256
  }
}

TEST(Bisecting, PaysAFewStepsForTenPerCentThatDoNotBuild) {
  std::mt19937 random(7);
  double tried = 0;
  int most = 0, walks = 0;
  for (int round = 0; round < 200; ++round) {
    std::set<std::string> broken;
    while (broken.size() < 20) broken.insert("c" + std::to_string(1 + random() % 199));
    const int first = 1 + static_cast<int>(random() % 199);
    // The culprit and its parent are not among them; otherwise it could not be identified.
    broken.erase("c" + std::to_string(first));
    broken.erase("c" + std::to_string(first - 1));
    const Walked walked = walk(line(200), from(first, 200), broken);
    ASSERT_THAT(walked.suspects, ElementsAre("c" + std::to_string(first)));
    tried += walked.tried;
    most = std::max(most, walked.tried);
    ++walks;
  }
  EXPECT_LT(tried / walks, 10);
  EXPECT_LE(most, 14);
}

TEST(Bisecting, LeavesALongStretchThatDoesNotBuildQuickly) {
  // The middle third of 300 is broken; the culprit is on either side of it. The last commit before
  // the broken part is the worst case: it alone decides.
  const std::map<int, int> most = {{20, 8}, {99, 25}, {201, 8}, {280, 8}};
  for (const auto& [first, skips] : most) {
    const Walked walked = walk(line(300), from(first, 300), from(100, 198));
    EXPECT_THAT(walked.suspects, ElementsAre("c" + std::to_string(first))) << first;
    EXPECT_LE(walked.skipped, skips) << first;
  }
}

TEST(Bisecting, LeavesARangeWhereTheCulpritCouldNotBeBuilt) {
  const Walked walked = walk(line(50), from(20, 50), from(19, 22));
  EXPECT_THAT(walked.suspects, ElementsAre("c23", "c22", "c21", "c20", "c19"));
  // All commits of the range are tried, each once.
  EXPECT_EQ(walked.skipped, 4);
}

TEST(Bisecting, FollowsASideBranchThatCameInByAMerge) {
  // good - a - b - M - c (bad)
  //   \- x - y - z -/
  const std::vector<HistoryCommit> history = {{"c", {"M"}},   {"M", {"b", "z"}}, {"z", {"y"}},
                                              {"y", {"x"}},   {"x", {"good"}},   {"b", {"a"}},
                                              {"a", {"good"}}};
  const std::vector<std::pair<std::string, std::set<std::string>>> cases = {
      {"x", {"x", "y", "z", "M", "c"}},
      {"y", {"y", "z", "M", "c"}},
      {"z", {"z", "M", "c"}},
      {"a", {"a", "b", "M", "c"}},
      {"b", {"b", "M", "c"}},
      {"M", {"M", "c"}},
      {"c", {"c"}}};
  for (const auto& [culprit, bad] : cases) {
    EXPECT_THAT(walk(history, bad, {}).suspects, ElementsAre(culprit));
  }
}

TEST(Bisecting, HasNothingToTryWhereTheBadCommitStandsAlone) {
  Bisection bisection(line(1));
  EXPECT_EQ(bisection.next(), std::nullopt);
  EXPECT_EQ(bisection.steps_left(), 0U);
  EXPECT_THAT(bisection.suspects(), ElementsAre("c1"));
}

TEST(Bisecting, HeedsNothingThatIsSaidOfACommitOutsideTheSuspects) {
  Bisection bisection(line(10));
  bisection.record_outcome("c5", TrialOutcome::bad);
  bisection.record_outcome("c9", TrialOutcome::good);  // contains the bad c5, so it cannot be good
  bisection.record_outcome("nobody", TrialOutcome::bad);
  EXPECT_THAT(bisection.suspects(), SizeIs(5));
}

class Histories : public Scene {};

TEST_F(Histories, AreWhatTheBadCommitContainsAndTheGoodOneDoesNot) {
  commit("before");
  const std::string good = commit("good");
  git({"checkout", "--quiet", "-b", "side", "HEAD~1"});
  const std::string side = commit("beside the good one");
  git({"checkout", "--quiet", "main"});
  const std::string next = commit("next");
  git({"merge", "--quiet", "--no-ff", "-m", "merge", "side"});
  const std::string merge = git({"rev-parse", "HEAD"});
  const auto opened = effects();
  const auto repository = Git::open(opened, repository_);
  ASSERT_TRUE(repository);
  const auto history = repository->history(good, merge);
  ASSERT_TRUE(history) << history.error().message;
  ASSERT_THAT(*history, SizeIs(3));
  EXPECT_EQ(history->front().name, merge);
  EXPECT_THAT(history->front().parents, ElementsAre(next, side));
  EXPECT_THAT((std::vector{(*history)[1].name, (*history)[2].name}),
              UnorderedElementsAre(next, side));
  EXPECT_THAT(repository->history(merge, good).value(), SizeIs(0));
}

}  // namespace bisection_test
}  // namespace weir::source
