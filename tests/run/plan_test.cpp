// Tests which steps a plan has, in which order, and what it refuses.
#include "gate/run/plan.hpp"

#include "tests/run/scene.hpp"

namespace weir::run {
namespace plan_test {

using profile::Pass;

std::string shape(const Plan& plan) {
  std::string text;
  for (const Step& step : plan.steps) {
    text += fmt::format("{}{}:{}x{} ", step.pass == Pass::counted ? 'c' : 't', step.cell,
                        step.parameters.tokens, step.parameters.repeats);
  }
  return text;
}

// Cell 0 is cpu (no probe sees it), cell 1 is vulkan. Lengths: n = max(4, min(8, 16 / 4)) = 4.
TEST(Plan, CountsFirstThenTakesTimesInRoundsOverTheCells) {
  const auto scene = make_scene();
  const Plan plan = plan_scene(*scene);
  EXPECT_EQ(shape(plan), "c1:4x1 c1:8x1 c1:12x1 t0:16x2 t1:16x2 t0:16x2 t1:16x2 t0:16x2 t1:16x2 ");
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    EXPECT_EQ(plan.steps[i].order, static_cast<std::int64_t>(i));
  }
  EXPECT_EQ(plan.cells[1].facts.provenance.lengths, (std::vector<std::int64_t>{4, 8, 12}));
}

TEST(Plan, LeavesOutWhatTheOptionsLeaveOut) {
  const auto scene = make_scene();
  const auto with = [&](const PlanOptions& options) { return shape(plan_scene(*scene, options)); };
  EXPECT_EQ(with({.times = false}), "c1:4x1 c1:8x1 c1:12x1 ");
  EXPECT_EQ(with({.counts = false, .runs = 1}), "t0:16x2 t1:16x2 ");
  EXPECT_EQ(with({.times = false, .counted_processes = 3}),
            "c1:4x1 c1:8x1 c1:12x1 c1:4x1 c1:8x1 c1:12x1 c1:4x1 c1:8x1 c1:12x1 ");
  const PlanOptions varying{.times = false, .varying_cells = {{"bench/tiny/vulkan/decode", 2}}};
  EXPECT_EQ(with(varying), "c1:4x1 c1:8x1 c1:12x1 c1:4x1 c1:8x1 c1:12x1 ");
  EXPECT_EQ(with({.times = false, .lengths = {{"bench/tiny/vulkan/decode", {5, 10, 15}}}}),
            "c1:5x1 c1:10x1 c1:15x1 ");
}

TEST(Plan, RunsPairsWithProbesAndWithoutWhereTheirCostIsAsked) {
  const auto scene = make_scene();
  const Plan plan = plan_scene(*scene, {.counts = false, .times = false, .cost_pairs = 2});
  // Timed commands of the cell with a probe; with and without it take turns in going first.
  EXPECT_EQ(shape(plan), "t1:16x2 t1:16x2 t1:16x2 t1:16x2 ");
  std::vector<bool> probed;
  for (const Step& step : plan.steps) probed.push_back(step.with_probes.value());
  EXPECT_EQ(probed, (std::vector<bool>{false, true, true, false}));
  EXPECT_NE(plan.identity, plan_scene(*scene, {.counts = false, .times = false}).identity);
}

// No probe counts on metal here. The engine's own report may still name its backend.
TEST(Plan, AsksTheEngineOnceWhereNothingCountsAndNoTimesFollow) {
  std::string yaml = k_scene_yaml;
  yaml.insert(yaml.find("prompts:"), "  metal: {}\n");
  const auto scene = make_scene(yaml);
  EXPECT_EQ(shape(plan_scene(*scene, {.times = false})), "c1:4x1 c1:8x1 c1:12x1 c2:4x1 ");
  EXPECT_EQ(shape(plan_scene(*scene, {.runs = 1})),
            "c1:4x1 c1:8x1 c1:12x1 t0:16x2 t1:16x2 t2:16x2 ");
  std::string generic = yaml;
  generic.replace(generic.find("llama-bench\n"), 12,
                  "generic\n    metrics: {decode_tokens_per_second: {regex: '(.)'}}\n");
  EXPECT_EQ(shape(plan_scene(*make_scene(generic), {.times = false})), "c1:4x1 c1:8x1 c1:12x1 ");
}

// Same configuration with instructions, which the probe counts on the CPU only.
std::string yaml_with_instructions(const std::string& how = "") {
  std::string yaml = k_scene_yaml;
  const std::string probes = "probes: [vulkan]";
  yaml.replace(yaml.find(probes), probes.size(), "probes: [vulkan, instructions]" + how);
  return yaml;
}

TEST(Plan, CountsInstructionsInProcessesOfTheirOwn) {
  const auto scene = make_scene(yaml_with_instructions());
  const Plan plan = plan_scene(*scene, {.times = false});
  EXPECT_EQ(shape(plan), "c0:4x1 c0:36x1 c0:68x1 c1:4x1 c1:8x1 c1:12x1 ");
  for (const Step& step : plan.steps) {
    EXPECT_EQ(step.counts == profile::Counts::instructions, step.cell == 0);
  }
  EXPECT_EQ(plan.cells[0].instructions, CountInstructions::perf);
  EXPECT_FALSE(plan.cells[1].instructions) << "beside a device the processor only waits";
  EXPECT_EQ(shape(plan_scene(*scene, {.times = false, .instruction_processes = 2})),
            "c0:4x1 c0:36x1 c0:68x1 c0:4x1 c0:36x1 c0:68x1 c1:4x1 c1:8x1 c1:12x1 ");
  EXPECT_EQ(shape(plan_scene(*scene, {.times = false, .instruction_processes = 0})),
            "c1:4x1 c1:8x1 c1:12x1 ");
}

TEST(Plan, CountsSystemCallsInProcessesOfTheirOwn) {
  std::string yaml = k_scene_yaml;
  yaml.replace(yaml.find("probes: [vulkan]"), 16, "probes: [vulkan, host]");
  const auto scene = make_scene(yaml);
  const Plan plan = plan_scene(*scene, {.times = false});
  EXPECT_EQ(shape(plan), "c0:4x1 c0:8x1 c0:12x1 c1:4x1 c1:4x1 c1:8x1 c1:8x1 c1:12x1 c1:12x1 ");
  for (const Step& step : plan.steps) {
    const bool is_traced = step.counts == profile::Counts::system_calls;
    EXPECT_TRUE(is_traced || step.cell == 1);
    EXPECT_EQ(step.is_counted_apart(), is_traced);
  }
  scene->around.no_trace = "not allowed\nAllow it";
  const Plan without = plan_scene(*scene, {.times = false});
  EXPECT_EQ(shape(without), "c1:4x1 c1:8x1 c1:12x1 ");
  EXPECT_EQ(without.cells[0].facts.counts_skip_reason,
            "system calls are not counted: not allowed; Allow it");
}

TEST(Plan, SaysWhereInstructionsCanNotBeCounted) {
  const auto scene = make_scene(yaml_with_instructions());
  scene->around.no_perf = "no counters\nBuy some";
  const Plan plan = plan_scene(*scene, {.times = false});
  EXPECT_EQ(shape(plan), "c1:4x1 c1:8x1 c1:12x1 ");
  const std::string why = "instructions are not counted: no counters; Buy some";
  EXPECT_EQ(plan.cells[0].facts.instructions_skip_reason, why);
  EXPECT_EQ(plan.cells[0].facts.counts_skip_reason, why) << "nothing else counts in this cell";
  const auto written = read_fields<profile::CellFacts>(write_fields(plan.cells[0].facts), "cell");
  ASSERT_TRUE(written) << written.error().message;
  EXPECT_EQ(written->instructions_skip_reason, why);
}

TEST(Plan, RefusesAWayOfCountingThatThisMachineDoesNotHave) {
  const auto problem = [](const std::string& how) {
    const auto scene = make_scene(yaml_with_instructions("\n    instructions: " + how));
    scene->around.no_perf = "no counters\nBuy some";
    const auto prepared = preflight(scene->cells, scene->around, scene->files);
    return prepared ? std::string() : prepared.error().message;
  };
  EXPECT_NE(problem("perf").find("instructions: no counters; Buy some"), std::string::npos);
  EXPECT_NE(problem("valgrind").find("apt-get install valgrind"), std::string::npos);
}

TEST(Plan, HasNothingToDoForADeviceThatIsNotThere) {
  const auto scene = make_scene();
  scene->around.devices["vulkan"].absent = "this machine has no Vulkan device";
  const Plan plan = plan_scene(*scene);
  EXPECT_EQ(shape(plan), "t0:16x2 t0:16x2 t0:16x2 ");
  EXPECT_EQ(plan.cells[1].unavailable, "this machine has no Vulkan device");
}

TEST(Plan, GoesOnOnlyWithTheSamePlan) {
  const auto identity = [](const std::string& from, const std::string& to,
                           const std::function<void(Scene&)>& change = {}) {
    std::string yaml = k_scene_yaml;
    if (!from.empty()) yaml.replace(yaml.find(from), from.size(), to);
    const auto scene = make_scene(yaml);
    if (change) change(*scene);
    return plan_scene(*scene).identity;
  };
  const auto begun = identity("", "");
  EXPECT_TRUE(check_same_plan(begun, identity("", "")).has_value());
  EXPECT_TRUE(check_same_plan(begun, identity("version: 1", "# a comment\nversion: 1")));
  EXPECT_TRUE(check_same_plan(begun, identity("repeats: 2", "repeats: 2, budget: 1h")));

  const auto refused = [&](const std::map<std::string, std::string>& wanted) {
    const auto same = check_same_plan(begun, wanted);
    if (same) return std::string("accepted");
    EXPECT_EQ(same.error().code, Code::usage);
    const std::string& all = same.error().message;
    return all.substr(0, all.find(':'));
  };
  EXPECT_EQ(refused(identity("gate:", "limits: [{metrics: syncs_per_token, max: 3}]\ngate:")),
            "this run was begun with other limits");
  EXPECT_EQ(refused(identity("runs: 3", "runs: 4")),
            "this run was begun with other number and order of runs");
  EXPECT_EQ(refused(identity("PLAIN: value", "PLAIN: other")),
            "this run was begun with other cells");
  EXPECT_EQ(refused(identity("probes: [vulkan]", "probes: []")),
            "this run was begun with other metrics, number and order of runs");
  EXPECT_EQ(refused(identity("", "",
                             [](Scene& scene) {
                               scene.files.put("/project/bench", "built again");
                               scene.files.put("/project/bench", "built once more");
                             })),
            "this run was begun with other programs");
  EXPECT_EQ(
      refused(identity(
          "", "", [](Scene& scene) { scene.files.put("/project/tiny.bin", "other weights"); })),
      "this run was begun with other cells, models");
}

}  // namespace plan_test
}  // namespace weir::run
