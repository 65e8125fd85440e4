// Tests the description of edits to stored baselines.
#include "gate/verdict/proposal.hpp"

#include <gmock/gmock.h>

#include "gate/base/json.hpp"

#include "build.hpp"

namespace weir::verdict {
namespace proposal_test {

using ::testing::ElementsAre;

constexpr const char* k_cell = "llama.cpp/tiny/vulkan/decode";

baseline::Baseline stored(Rational dispatches) {
  profile::Profile profile;
  profile.cell = *profile::CellKey::parse(k_cell);
  test::add_count(profile, "dispatches_per_token", dispatches);
  baseline::Baseline baseline;
  baseline.cell = k_cell;
  baseline.device_class = "vulkan-1";
  baseline.counts = profile.metrics;
  return baseline;
}

std::vector<std::string> proposal_texts(const baseline::Baseline* base,
                                        const baseline::Baseline* head) {
  std::vector<std::string> texts;
  for (const Proposal& proposal : compare_baselines(base, head)) texts.push_back(proposal.words());
  return texts;
}

TEST(ProposedBaselines, SayWhichCountWouldLetMoreOrLessPass) {
  const auto base = stored(65), more = stored(77), less = stored(*Rational::make(129, 2));
  EXPECT_THAT(
      proposal_texts(&base, &more),
      ElementsAre("baseline dispatches_per_token of llama.cpp/tiny/vulkan/decode (vulkan-1): "
                  "65 → 77: looser"));
  EXPECT_THAT(
      proposal_texts(&base, &less),
      ElementsAre("baseline dispatches_per_token of llama.cpp/tiny/vulkan/decode (vulkan-1): "
                  "65 → 129/2: tighter"));
}

TEST(ProposedBaselines, SayThatACountMayVaryInAnotherRange) {
  auto base = stored(65), head = base;
  profile::Profile varied;
  test::add_nearly(varied, "dispatches_per_token", {63, 64, 64});
  base.counts = varied.metrics;
  test::add_nearly(varied, "dispatches_per_token", {64, 64, 65});
  head.counts = varied.metrics;
  const std::string name =
      "baseline dispatches_per_token varies of llama.cpp/tiny/vulkan/decode (vulkan-1): ";
  EXPECT_THAT(proposal_texts(&base, &head), ElementsAre(name + "63 to 64 → 64 to 65: looser"));
  head.counts["dispatches_per_token"].samples = {64};
  EXPECT_THAT(proposal_texts(&base, &head), ElementsAre(name + "63 to 64 → removed: looser"));
}

TEST(ProposedBaselines, SayWhatIsAddedAndWhatGoes) {
  const auto base = stored(65);
  EXPECT_THAT(proposal_texts(nullptr, &base),
              ElementsAre("baseline of llama.cpp/tiny/vulkan/decode (vulkan-1): added, 1 count: "
                          "tighter"));
  EXPECT_THAT(proposal_texts(&base, nullptr),
              ElementsAre("baseline of llama.cpp/tiny/vulkan/decode (vulkan-1): 1 count → removed: "
                          "looser"));
  auto without = base;
  without.counts.clear();
  EXPECT_THAT(
      proposal_texts(&base, &without),
      ElementsAre("baseline dispatches_per_token of llama.cpp/tiny/vulkan/decode (vulkan-1): "
                  "65 → removed: looser"));
}

TEST(ProposedBaselines, TellOpsOnTheCpuAndSlowerSamples) {
  auto base = stored(65), head = base;
  head.placement.cpu_ops["MUL_MAT"] = 2;
  base.sessions["m"] = {{"b", {{"decode_tokens_per_second", {100, 102, 104}}}}};
  head.sessions["m"] = {{"b", {{"decode_tokens_per_second", {80, 82, 84}}}}};
  const std::string of = "llama.cpp/tiny/vulkan/decode (vulkan-1)";
  EXPECT_THAT(
      proposal_texts(&base, &head),
      ElementsAre("baseline placement of " + of + ": unknown → on the CPU 2 MUL_MAT: looser",
                  "baseline samples of decode_tokens_per_second on m of " + of +
                      ": 102 (median of 3) → 82.0 (median of 3): looser"));
}

TEST(Proposals, ComeLooserFirstAndSoManyAtMost) {
  using Effect = Proposal::Effect;
  std::vector<Proposal> all{{"a", "", "", Effect::tighter},
                            {"b", "", "", Effect::looser},
                            {"c", "", "", Effect::looser, true}};
  const auto sorted = in_order(all);
  EXPECT_EQ(sorted[0].what, "c");  // applies already
  EXPECT_EQ(sorted[1].what, "b");
  EXPECT_EQ(sorted[2].what, "a");
  const auto many = in_order(std::vector<Proposal>(k_max_proposals + 10, all[1]));
  ASSERT_EQ(many.size(), k_max_proposals);
  EXPECT_EQ(many.back().what, "11 more edits");
}

TEST(Proposals, AreTheSameWhenReadBack) {
  Proposal proposal{"max_drop of x", "5 %", "", Proposal::Effect::looser, true};
  proposal.about(std::vector<std::string>(k_max_cells_listed + 20, k_cell));
  const auto back = read_fields<Proposal>(write_fields(proposal), "proposals");
  ASSERT_TRUE(back);
  EXPECT_EQ(*back, proposal);
  EXPECT_EQ(back->words(), "max_drop of x: 5 % → removed: looser, and holds already, in 120 cells");
  Json broken = write_fields(proposal);
  broken["effect"] = "nicer";
  EXPECT_FALSE(read_fields<Proposal>(broken, "proposals"));
}

}  // namespace proposal_test
}  // namespace weir::verdict
