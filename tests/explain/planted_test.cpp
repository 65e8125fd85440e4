// Tests if the cause of an injected change is the first finding, on generated engines and models.
#include "tests/explain/planted.hpp"

#include <cmath>
#include <iostream>

#include <gtest/gtest.h>

#include "tests/explain/scored.hpp"

namespace weir::explain {
namespace planted_test {

using test::Change;
using test::Dice;
using test::Score;
using test::World;

Score planted(std::uint64_t first_seed, std::uint64_t last_seed) {
  Score score;
  for (std::uint64_t seed = first_seed; seed <= last_seed; ++seed) {
    for (const Change& change : test::changes()) {
      Dice dice(seed);
      World before = test::world(dice);
      // Both profiles have the metrics of a line over depths and of the start.
      before.per_token["dispatches_per_context_token"] = 0;
      before.per_token["dispatches_fixed"] = 500;
      World after = before;
      change.plant(after, dice);
      if (after.cpu_ops.empty()) before.cpu_ops.clear();
      if (!after.per_token.contains("cpu_ops")) before.per_token.erase("cpu_ops");
      const auto why = explain(test::evidence(before.side(), after.side()), &before.model,
                               {default_bands(), {}});
      score.add({change.name + std::string(", seed ") + std::to_string(seed) + ", layers " +
                     std::to_string(before.layers) + " ssm " + std::to_string(before.ssm.size()),
                 change.want, why});
    }
  }
  return score;
}

TEST(PlantedChanges, NameTheCauseFirst) {
  const Score score = planted(1, 20);
  std::cout << score.right << " of " << score.cases << "\n";
  EXPECT_GE(score.cases, 40U);
  EXPECT_GE(score.share(), 0.97) << score.wrong;
}

TEST(PlantedSyncs, AreAscribedToTheLayersThatHaveThem) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Dice dice(seed);
    const World before = test::world(dice);
    if (before.ssm.empty()) continue;
    World after = before;
    World::add(after.per_token, "syncs", before.some());
    World::add(after.per_token, "barriers", 3 * before.some());
    const auto why = test::explained(before.side(), after.side(), &before.model);
    ASSERT_FALSE(why.findings.empty());
    EXPECT_EQ(why.findings.front().layers, before.ssm) << "seed " << seed;
    EXPECT_EQ(why.findings.front().per_layer, 1) << "seed " << seed;
  }
}

// Two runs of the same engine: counts are the same, times vary.
Evidence noise_only(Dice& dice, double sigma) {
  const World world = test::world(dice);
  const auto noisy = [&](const World& of) {
    Side side = of.side();
    const double machine = std::exp(0.05 * dice.noise());  // a whole run is slower or faster
    for (Work& work : side.works) {
      const double each = 1e-5 * (1 + static_cast<double>(work.name.size()));
      work.seconds = work.times.value() * each * machine * std::exp(sigma * dice.noise());
    }
    MetricValue rate;
    for (int i = 0; i < 10; ++i)
      rate.samples.push_back(30 * machine * std::exp(sigma * dice.noise()));
    side.metrics["decode_tokens_per_second"] = rate;
    MetricValue instructions;
    for (int i = 0; i < 3; ++i) {
      instructions.samples.push_back(2.5e6 * (1 + 0.0005 * dice.noise()));
    }
    side.metrics["instructions_per_token"] = instructions;
    return side;
  };
  Side before = noisy(world), after = noisy(world);
  return test::evidence(std::move(before), std::move(after));
}

TEST(NoiseAlone, HasNoFinding) {
  std::size_t match = 0;
  std::string what;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    Dice dice(seed);
    const Evidence evidence = noise_only(dice, seed % 2 == 0 ? 0.05 : 0.15);
    const ModelFacts model = test::plain_model(32);
    const auto why = explain(evidence, &model, {default_bands(), {}});
    if (why.findings.empty()) continue;
    ++match;
    what += std::to_string(seed) + ": " + why.findings.front().text() + "\n";
  }
  EXPECT_EQ(match, 0U) << what;
}

TEST(OpThatIsSlower, StandsOutOfNoise) {
  std::size_t right = 0;
  std::string wrong;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Dice dice(seed);
    Evidence evidence = noise_only(dice, 0.05);
    std::string slow;
    double most = 0;
    for (const Work& work : evidence.after.works) {
      if (*work.seconds <= most) continue;
      most = *work.seconds;
      slow = work.name;
    }
    for (Work& work : evidence.after.works) {
      if (work.name == slow) *work.seconds *= 3;
    }
    const auto why = explain(evidence, nullptr, {default_bands(), {}});
    const bool hit = !why.findings.empty() && why.findings.front().kind == "op_slower" &&
                     why.findings.front().ops.front() == slow;
    right += hit ? 1 : 0;
    if (!hit) wrong += std::to_string(seed) + " " + slow + "\n";
  }
  EXPECT_GE(right, 54U) << wrong;
}

TEST(SameSides, HaveNoFindingAndNoDifference) {
  Dice dice(7);
  const World world = test::world(dice);
  const auto why = test::explained(world.side(), world.side(), &world.model);
  EXPECT_TRUE(why.findings.empty());
  EXPECT_FALSE(why.sides_differ);
}

}  // namespace planted_test
}  // namespace weir::explain
