// Tests which cells share one start of a server.
#include "gate/run/starts.hpp"

#include "tests/run/scene.hpp"

namespace weir::run {
namespace starts_test {

using profile::Pass;

// Configuration of two inference servers, two backends, two cells of each, ordered by engine.
std::string yaml(const std::string& keys = "", const std::string& command = "") {
  const std::string engine = "{kind: server, command: [./bench, '{port}'" + command +
                             "], api: completions, probes: [vulkan]" + keys + "}";
  return "version: 1\nengines: {a: " + engine + ", b: " + engine +
         "}\nmodels: {tiny: tiny.bin}\n"
         "backends: {vulkan: {}, other: {device: vulkan, env: {OTHER: '1'}}}\n"
         "prompts: {p: {text: Hello, tokens: 4, concurrency: [1, 2], hold: none}}\ngate: {runs: "
         "2}\n";
}

// Returns "0 0 2": for each step in order, the start that it belongs to.
std::string shape(const Plan& plan, Pass pass) {
  std::string text;
  const auto starts = group_starts(plan);
  for (const Step& step : plan.steps) {
    if (step.pass != pass) continue;
    text +=
        (text.empty() ? "" : " ") + std::to_string(starts[static_cast<std::size_t>(step.order)]);
  }
  return text;
}

// Cells in plan order: a/vulkan c1, c2, a/other c1, c2, then b's; two rounds of all of them.
TEST(Starts, AreSharedByTheCellsOfOneServerInEachRound) {
  const auto scene = make_scene(yaml());
  EXPECT_EQ(shape(plan_scene(*scene, {.counts = false}), Pass::timed),
            "0 0 2 2 4 4 6 6 8 8 10 10 12 12 14 14");
}

// Cell c1 has three lengths, counted twice; c2 has two runs. A round has one of each.
TEST(Starts, OfCountedOnesAreSharedByTheLengthsToo) {
  const auto scene = make_scene(yaml());
  const Plan plan =
      plan_scene(*scene, {.times = false, .counted_processes = 2, .overlapping_processes = 2});
  const std::string all = shape(plan, Pass::counted);
  EXPECT_EQ(all.substr(0, all.find(" 8")), "0 0 0 3 3 3 0 3") << all;
}

TEST(Starts, AreTheirOwnWhereTheConfigOrTheCommandSaysSo) {
  const auto own = make_scene(yaml(", share_start: false"));
  EXPECT_EQ(shape(plan_scene(*own, {.counts = false, .runs = 1}), Pass::timed), "0 1 2 3 4 5 6 7");
  const auto with_tokens = make_scene(yaml("", ", '{tokens}'"));
  EXPECT_EQ(shape(plan_scene(*with_tokens, {.counts = false, .runs = 1}), Pass::timed),
            "0 0 2 2 4 4 6 6");
  const auto starts = group_starts(plan_scene(*with_tokens, {.times = false}));
  EXPECT_NE(starts[0], starts[1]) << "another number of tokens, another command line";
}

TEST(Starts, OfServersThatAreNotWarmedUpAreTheirOwn) {
  const auto scene = make_scene(yaml(", warm_up: 0"));
  EXPECT_EQ(shape(plan_scene(*scene, {.counts = false, .runs = 1}), Pass::timed),
            "0 1 2 3 4 5 6 7");
}

TEST(Starts, OfEnginesThatServeNothingAreTheirOwn) {
  const auto scene = make_scene();
  const auto starts = group_starts(plan_scene(*scene));
  for (std::size_t i = 0; i < starts.size(); ++i) EXPECT_EQ(starts[i], i);
}

}  // namespace starts_test
}  // namespace weir::run
