// Tests of the tally of verdicts over commits.
#include <gtest/gtest.h>

#include "gate/site/parts.hpp"

#include "tests/browser/site_scene.hpp"

namespace weir::site {
namespace tally_test {

using verdict::Outcome;

constexpr const char* k_cell = "llama.cpp/tiny-llama/vulkan/decode";

struct NightlyOutcome {
  std::size_t night;  // its commit
  Outcome outcome;
  double now, base;
  std::string branch = "main";
};

std::vector<history::StoredVerdict> make_verdicts(const std::vector<NightlyOutcome>& outcomes) {
  std::vector<history::StoredVerdict> all;
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    auto verdict = scene::stored(outcomes[i].night,
                                 {scene::cell_with_dispatches(k_cell, outcomes[i].outcome,
                                                              outcomes[i].now, outcomes[i].base)},
                                 "box");
    verdict.time = static_cast<double>(i);  // in the order they are told
    verdict.branch = outcomes[i].branch;
    all.push_back(std::move(verdict));
  }
  return all;
}

std::vector<std::string> fates(const Tally& tally) {
  std::vector<std::string> fates;
  for (const Red& red : tally.reds) fates.emplace_back(to_string(red.fate));
  return fates;
}

TEST(SiteTally, SaysWhatBecameOfARed) {
  const struct {
    std::vector<NightlyOutcome> outcomes;
    std::vector<std::string> fates;
  } k_cases[] = {
      {{{1, Outcome::pass, 65, 65}}, {}},
      {{{1, Outcome::fail, 77, 65}}, {"open"}},
      // The count came back beside the same baseline.
      {{{1, Outcome::fail, 77, 65}, {2, Outcome::pass, 65, 65}}, {"reverted"}},
      // The baseline followed the count.
      {{{1, Outcome::fail, 77, 65}, {2, Outcome::pass, 77, 77}}, {"accepted"}},
      {{{1, Outcome::fail, 77, 65}, {1, Outcome::waived, 77, 65}}, {"accepted"}},
      // The same commit, judged again.
      {{{1, Outcome::fail, 77, 65}, {1, Outcome::pass, 65, 65}}, {"disputed"}},
      // One that stays red is one.
      {{{1, Outcome::fail, 77, 65}, {2, Outcome::fail, 78, 65}, {3, Outcome::pass, 65, 65}},
       {"reverted"}},
      {{{1, Outcome::fail, 77, 65}, {2, Outcome::fail, 77, 65}}, {"open"}},
      // An undecided verdict says nothing about it.
      {{{1, Outcome::fail, 77, 65}, {2, Outcome::inconclusive, 70, 65}, {3, Outcome::pass, 65, 65}},
       {"reverted"}},
      // Red, gone, and red again: two, the newest first.
      {{{1, Outcome::fail, 77, 65}, {2, Outcome::pass, 65, 65}, {3, Outcome::fail, 77, 65}},
       {"open", "reverted"}},
      // Another branch says nothing about this one.
      {{{1, Outcome::fail, 77, 65, "topic"}, {2, Outcome::pass, 65, 65, "main"}}, {"open"}},
  };
  for (const auto& c : k_cases) {
    const auto stored = make_verdicts(c.outcomes);
    EXPECT_EQ(fates(tally(read_verdicts(stored))), c.fates);
  }
}

TEST(SiteTally, CountsACommitThatIsJudgedAgainOnce) {
  const auto stored = make_verdicts({{1, Outcome::inconclusive, 66, 65},
                                     {1, Outcome::pass, 65, 65},
                                     {2, Outcome::inconclusive, 66, 65}});
  const Tally result = tally(read_verdicts(stored));
  EXPECT_EQ(result.verdicts, 3);
  EXPECT_EQ(result.undecided, 1);  // the undecided one of the second commit
  // The count of the first one, and kernels and placement of both.
  EXPECT_EQ(result.judged, 5);
}

TEST(SiteTally, LeavesOutVerdictsThatCanNotBeRead) {
  auto stored = make_verdicts({{1, Outcome::pass, 65, 65}});
  stored.push_back(stored.front());
  stored.back().text = "{\"schema\": \"weir.verdict/1\", \"cells\": 7}";
  stored.push_back(stored.front());
  stored.back().text = "</script>";
  EXPECT_EQ(read_verdicts(stored).size(), 1U);
}

}  // namespace tally_test
}  // namespace weir::site
