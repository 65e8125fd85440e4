// Tests ops counted by a probe of ggml, next to the counts of a device: kernels of CPU cells,
// placement.
#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gate/profile/assemble.hpp"

namespace weir::profile {
namespace ops_test {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using State = Placement::State;

struct Op {
  const char* op;
  const char* shape;
  const char* backend;
  std::int64_t each;
};

// Ops of one layer on Vulkan in llama.cpp. The CPU looks up the embedding row.
const std::vector<Op> k_on_gpu = {{"GET_ROWS", "256x512,1->256", "CPU", 1},
                                  {"MUL_MAT", "256x768,256->768", "Vulkan0", 2},
                                  {"MUL_MAT", "768x256,768->256", "Vulkan0", 1},
                                  {"ROPE", "64x4,1->64x4", "Vulkan0", 2}};

std::vector<Op> with(std::vector<Op> ops, std::size_t which, const char* backend) {
  ops[which].backend = backend;
  return ops;
}

CellFacts facts(const std::string& device = "vulkan", Sweep sweep = Sweep::tokens) {
  CellFacts facts;
  facts.cell = *CellKey::parse("llama.cpp/tiny-llama/" + device + "/decode");
  facts.device = device;
  facts.sweep = sweep;
  facts.engine_source = "llama-bench";
  facts.cpu_ops_allowed = {{"GET_ROWS", "one look-up"}};
  return facts;
}

ProbeCounts ggml(const std::vector<Op>& ops, std::int64_t graphs) {
  ProbeCounts probe;
  probe.probe = "ggml";
  GraphCount graph;
  graph.rows = 1;
  graph.computed = graphs;
  graph.splits = 2;
  for (const Op& op : ops) {
    const bool on_cpu = std::string_view(op.backend) == "CPU";
    probe.ops.push_back({op.op, "f16,f32->f32", op.shape, op.backend, on_cpu, 0, op.each * graphs});
    graph.ops += op.each;
    graph.cpu_ops += on_cpu ? op.each : 0;
  }
  probe.counts = {{"graphs", graphs},
                  {"ops", graph.ops * graphs},
                  {"cpu_ops", graph.cpu_ops * graphs},
                  {"splits", 2 * graphs},
                  {"tensor_gets", 3 * graphs}};
  probe.graphs = {graph};
  return probe;
}

// Builds a run of `tokens` tokens and a warm-up of one: the graph is computed once more.
RunRecord make_run(const CellFacts& facts, std::int64_t order, std::int64_t tokens,
                   const std::vector<Op>& ops) {
  RunRecord record;
  record.cell = facts.cell.str();
  record.pass = Pass::counted;
  record.order = order;
  record.parameters.tokens = facts.sweep == Sweep::repeats ? 0 : tokens;
  record.parameters.repeats = facts.sweep == Sweep::repeats ? tokens : 1;
  record.report.emplace();
  record.report->generated_tokens = record.parameters.tokens;
  if (facts.device == "vulkan") {
    ProbeCounts vulkan;
    vulkan.probe = "vulkan";
    vulkan.devices = {{"vulkan", "llvmpipe", "cpu", "vulkan-10005-0-d-1-0a"}};
    vulkan.counts = {{"dispatches", 5 * tokens + 5}};
    vulkan.kernels = {{"mul", 5 * tokens + 5}};
    vulkan.kernels_named = true;
    record.probes.push_back(vulkan);
  }
  record.probes.push_back(ggml(ops, tokens + 1));
  return record;
}

std::vector<RunRecord> make_runs(const CellFacts& facts, const std::vector<Op>& ops) {
  const bool repeats = facts.sweep == Sweep::repeats;
  std::vector<RunRecord> records;
  for (const std::int64_t length : {1, 2, 3}) {
    records.push_back(make_run(facts, length, repeats ? length : 4 * length, ops));
  }
  return records;
}

std::optional<Rational> exact(const Profile& profile, const char* name) {
  const auto match = profile.metrics.find(name);
  return match == profile.metrics.end() ? std::nullopt : match->second.exact;
}

TEST(FusibleRows, AreCountedPerTokenWhereTheOrderOfEachGraphIsKnown) {
  auto records = make_runs(facts(), k_on_gpu);
  EXPECT_EQ(assemble(facts(), records).fusible, std::nullopt);
  for (RunRecord& record : records) {
    record.probes.back().graphs.front().fusible = {{"RMS_NORM+MUL", 2}};
  }
  const auto rows = assemble(facts(), records).fusible;
  ASSERT_TRUE(rows);
  EXPECT_EQ(rows->counts, (std::map<std::string, Rational>{{"RMS_NORM+MUL", 2}}));
  for (RunRecord& record : records) record.probes.back().graphs.front().fusible->clear();
  ASSERT_TRUE(assemble(facts(), records).fusible) << "there are none, and that is known";
}

TEST(OpCounts, StandBesideThoseOfTheDevice) {
  const Profile profile = assemble(facts(), make_runs(facts(), k_on_gpu));
  EXPECT_EQ(exact(profile, "dispatches_per_token"), Rational(5));
  EXPECT_EQ(exact(profile, "graphs_per_token"), Rational(1));
  EXPECT_EQ(exact(profile, "splits_per_token"), Rational(2));
  EXPECT_EQ(exact(profile, "cpu_ops_per_token"), Rational(1));
  EXPECT_EQ(exact(profile, "cpu_ops_fixed"), Rational(1)) << "the warm-up's";
  EXPECT_EQ(profile.metrics.at("cpu_ops_per_token").source, "ggml");
  EXPECT_EQ(profile.metrics.at("dispatches_per_token").source, "vulkan");
  EXPECT_FALSE(profile.metrics.contains("tensor_gets_per_token")) << "kept, not gated";
  ASSERT_TRUE(profile.kernels);
  EXPECT_EQ(profile.kernels->counts, (std::map<std::string, Rational>{{"mul", 5}}));
  EXPECT_EQ(profile.placement.state, State::shown);
  EXPECT_EQ(profile.placement.cpu_ops, (std::map<std::string, std::int64_t>{{"GET_ROWS", 1}}));
  EXPECT_THAT(profile.warnings, IsEmpty());
}

TEST(OpCounts, AreTheKernelsOfACellThatNoDeviceProbeSees) {
  std::vector<Op> ops = k_on_gpu;
  for (Op& op : ops) op.backend = "CPU";
  const Profile profile = assemble(facts("cpu"), make_runs(facts("cpu"), ops));
  ASSERT_TRUE(profile.kernels);
  EXPECT_TRUE(profile.kernels->has_names);
  EXPECT_EQ(profile.kernels->scope, unit::Scope::per_token);
  EXPECT_EQ(profile.kernels->counts,
            (std::map<std::string, Rational>{{"GET_ROWS f16,f32->f32 256x512,1->256", 1},
                                             {"MUL_MAT f16,f32->f32 256x768,256->768", 2},
                                             {"MUL_MAT f16,f32->f32 768x256,768->256", 1},
                                             {"ROPE f16,f32->f32 64x4,1->64x4", 2}}));
  EXPECT_EQ(exact(profile, "cpu_ops_per_token"), Rational(6)) << "all ops";
  EXPECT_EQ(profile.placement.state, State::shown);
  EXPECT_THAT(profile.placement.cpu_ops, IsEmpty());
}

TEST(OpCounts, KeepNoShapesAsKernelsWhereThoseGrowWithTheContext) {
  const CellFacts cpu = facts("cpu");
  std::vector<RunRecord> records;
  for (const std::int64_t tokens : {4, 8, 12}) {
    RunRecord record = make_run(cpu, tokens, tokens, {{"SWIGLU", "768", "CPU", 1}});
    // One multiplication over a cache of 4, 8 and 12 rows, for four tokens each. The first includes
    // the warm-up.
    for (std::int64_t rows = 4; rows <= tokens; rows += 4) {
      record.probes[0].ops.push_back(
          {"MUL_MAT", "", std::to_string(rows), "CPU", true, 0, rows == 4 ? 5 : 4});
    }
    record.probes[0].counts["ops"] += tokens + 1;
    records.push_back(record);
  }
  const Profile profile = assemble(cpu, records);
  ASSERT_TRUE(profile.kernels);
  EXPECT_EQ(profile.kernels->counts,
            (std::map<std::string, Rational>{{"MUL_MAT", 1}, {"SWIGLU f16,f32->f32", 1}}));
  EXPECT_THAT(profile.warnings, Not(Contains(HasSubstr("straight line"))));
}

TEST(OpCounts, WarnWhereATokensGraphAndTheSlopeDisagree) {
  std::vector<RunRecord> records = make_runs(facts(), k_on_gpu);
  for (RunRecord& record : records) record.probes[1].graphs[0].splits = 3;
  EXPECT_THAT(assemble(facts(), records).warnings,
              Contains("splits: the graph of one token has 3, the slope says 2 a token"));
}

TEST(OpCounts, ThatSawNoGraphSkipACpuCellInsteadOfCountingZeros) {
  const CellFacts cpu = facts("cpu");
  std::vector<RunRecord> records = make_runs(cpu, k_on_gpu);
  ProbeCounts nothing;
  nothing.probe = "ggml";
  for (RunRecord& record : records) record.probes = {nothing};
  const Profile profile = assemble(cpu, records);
  EXPECT_THAT(profile.metrics, IsEmpty());
  EXPECT_THAT(profile.errors, IsEmpty());
  ASSERT_TRUE(profile.counts_skip_reason);
  EXPECT_THAT(*profile.counts_skip_reason, HasSubstr("saw no graph"));
}

struct Elsewhere {
  const char* backend;
  const char* api;
  std::map<std::string, std::int64_t> other_ops;
};

class OtherDevice : public ::testing::TestWithParam<Elsewhere> {};

// The ROPEs run on another backend of the engine.
TEST_P(OtherDevice, IsListedWithTheOpsThatItRan) {
  std::vector<RunRecord> records = make_runs(facts(), with(k_on_gpu, 3, GetParam().backend));
  for (RunRecord& record : records) {
    for (OpCount& op : record.probes.back().ops) {
      if (op.backend == "Vulkan0") op.api = "vulkan";
      if (op.backend == GetParam().backend) op.api = GetParam().api;
    }
  }
  const Profile profile = assemble(facts(), records);
  EXPECT_EQ(profile.placement.state, State::shown);
  EXPECT_EQ(profile.placement.other_ops, GetParam().other_ops);
  EXPECT_EQ(profile.placement.cpu_ops, (std::map<std::string, std::int64_t>{{"GET_ROWS", 1}}));
}

INSTANTIATE_TEST_SUITE_P(All, OtherDevice,
                         ::testing::Values(Elsewhere{"Accelerate", "blas", {{"ROPE on blas", 2}}},
                                           Elsewhere{"llvmpipe", "opencl", {{"ROPE on opencl", 2}}},
                                           Elsewhere{"RPC0", "", {{"ROPE on RPC0", 2}}},
                                           Elsewhere{"Vulkan1", "vulkan", {}}));

// Where no backend's API is known, none is another.
TEST(OtherDevices, AreNotGuessedFromNames) {
  EXPECT_THAT(assemble(facts(), make_runs(facts(), k_on_gpu)).placement.other_ops, IsEmpty());
}

struct Refuted {
  const char* name;
  std::string device;
  Sweep sweep;
  std::vector<Op> ops;
  State state;
  const char* says;
  std::map<std::string, std::int64_t> cpu_ops;
  std::set<std::string> not_allowed{};
};

class OpPlaces : public ::testing::TestWithParam<Refuted> {};

TEST_P(OpPlaces, IsToldByOpShapeAndNumber) {
  const Refuted& refuted = GetParam();
  const CellFacts cell_facts = facts(refuted.device, refuted.sweep);
  const Profile profile = assemble(cell_facts, make_runs(cell_facts, refuted.ops));
  EXPECT_EQ(profile.placement.state, refuted.state);
  EXPECT_EQ(profile.placement.reason, refuted.says);
  EXPECT_EQ(profile.placement.cpu_ops, refuted.cpu_ops);
  EXPECT_EQ(profile.placement.not_allowed, refuted.not_allowed);
}

INSTANTIATE_TEST_SUITE_P(
    All, OpPlaces,
    ::testing::Values(
        Refuted{"one op",
                "vulkan",
                Sweep::tokens,
                with(k_on_gpu, 1, "CPU"),
                State::ran_elsewhere,
                "asked for vulkan: MUL_MAT 256x768,256->768 ran on the CPU twice a token, which "
                "cpu_ops_allowed does not name",
                {{"GET_ROWS", 1}, {"MUL_MAT", 2}},
                {"MUL_MAT"}},
        Refuted{"several",
                "vulkan",
                Sweep::repeats,
                with(with(with(k_on_gpu, 1, "CPU"), 2, "CPU"), 3, "CPU"),
                State::ran_elsewhere,
                "asked for vulkan: all 6 ops a prefill ran on the CPU: MUL_MAT 3 times "
                "(256x768,256->768 and 1 more), ROPE twice (64x4,1->64x4), GET_ROWS once "
                "(256x512,1->256)",
                {}},
        Refuted{"an engine whose device no probe sees",
                "cuda",
                Sweep::tokens,
                with(with(k_on_gpu, 1, "CUDA0"), 2, "CPU"),
                State::ran_elsewhere,
                "asked for cuda: MUL_MAT 768x256,768->256 ran on the CPU once a token, which "
                "cpu_ops_allowed does not name",
                {{"GET_ROWS", 1}, {"MUL_MAT", 1}},
                {"MUL_MAT"}},
        Refuted{"one length only",
                "cuda",
                Sweep::none,
                with(k_on_gpu, 3, "CPU"),
                State::ran_elsewhere,
                "asked for cuda: ROPE 64x4,1->64x4 ran on the CPU twice a graph, which "
                "cpu_ops_allowed does not name",
                {{"GET_ROWS", 1}, {"ROPE", 2}},
                {"ROPE"}},
        Refuted{"a CPU cell that went to a GPU",
                "cpu",
                Sweep::tokens,
                {{"GET_ROWS", "1", "CPU", 1}, {"MUL_MAT", "256x768,256x16->768x16", "Vulkan0", 7}},
                State::ran_elsewhere,
                "asked for cpu: MUL_MAT 256x768,256x16->768x16 ran on Vulkan0 7 times a token",
                {}},
        Refuted{"all as it should be",
                "vulkan",
                Sweep::repeats,
                k_on_gpu,
                State::shown,
                "",
                {{"GET_ROWS", 1}}}),
    [](const auto& entry) {
      std::string name = entry.param.name;
      std::replace(name.begin(), name.end(), ' ', '_');
      return name;
    });

TEST(OpPlacement, DoesNotCountOpsOfTheStart) {
  std::vector<RunRecord> records = make_runs(facts(), k_on_gpu);
  for (RunRecord& record : records) {
    record.probes[1].ops.push_back({"SOFT_MAX", "", "32", "CPU", true, 0, 9});
    record.probes[1].counts["ops"] += 9;
    record.probes[1].counts["cpu_ops"] += 9;
  }
  const Profile profile = assemble(facts(), records);
  EXPECT_EQ(profile.placement.state, State::shown);
  EXPECT_EQ(exact(profile, "cpu_ops_fixed"), Rational(10));
}

TEST(OpPlacement, IsNotShownByAListWithGaps) {
  std::vector<RunRecord> records = make_runs(facts(), k_on_gpu);
  for (RunRecord& record : records) record.probes[1].ops.pop_back();
  const Profile profile = assemble(facts(), records);
  EXPECT_EQ(profile.placement.state, State::seen) << "the device got work: that much is known";
  EXPECT_THAT(profile.warnings, Contains(HasSubstr("could not list every op")));
}

TEST(OpPlacement, LeavesTheDevicesOwnReasonWhereItGotNoWork) {
  std::vector<Op> ops = k_on_gpu;
  for (Op& op : ops) op.backend = "CPU";
  std::vector<RunRecord> records = make_runs(facts(), ops);
  for (RunRecord& record : records) record.probes[0].counts["dispatches"] = 0;
  const Profile profile = assemble(facts(), records);
  EXPECT_EQ(profile.placement.state, State::ran_elsewhere);
  EXPECT_THAT(profile.placement.reason, HasSubstr("gave it no work, though llvmpipe is there"));
}

TEST(OpPlaces, HoldOpsThatMayStayForSomeShapesToThose) {
  const std::vector<Op> ops = {{"MUL_MAT", "256x768,256->768", "Vulkan0", 2},
                               {"SOFT_MAX", "64,1->64", "CPU", 3},
                               {"SOFT_MAX", "512,1->512", "CPU", 1}};
  CellFacts cell_facts = facts();
  cell_facts.cpu_ops_allowed = {{"SOFT_MAX", "cheaper than a dispatch"}};
  const auto find_placement = [&](const std::vector<Op>& listed) {
    return assemble(cell_facts, make_runs(cell_facts, listed)).placement;
  };
  EXPECT_EQ(find_placement(ops).state, State::shown);
  cell_facts.cpu_ops_when = {{"SOFT_MAX", {"ne0 < 128"}}};
  EXPECT_EQ(find_placement(ops).state, State::ran_elsewhere);
  EXPECT_EQ(find_placement(ops).reason,
            "asked for vulkan: SOFT_MAX 512,1->512 ran on the CPU once a token, which "
            "cpu_ops_allowed does not name (SOFT_MAX: only where ne0 < 128)");
  EXPECT_THAT(find_placement(ops).not_allowed, testing::ElementsAre("SOFT_MAX"));
  EXPECT_EQ(find_placement({ops[0], ops[1]}).state, State::shown);
}

TEST(ShapeCondition, IsOfTheSizesOfAnOpsResult) {
  const struct {
    const char *condition, *shape;
    bool fits;
  } cases[] = {
      {"ne0 < 128", "256x768,256->127", true},
      {"ne0 < 128", "64x64,64->128", false},
      {"ne0 <= 128", "64->128", true},
      {"ne1 == 1", "64->128", true},
      {"ne1 == 1", "64->128x2", false},
      {"ne1 > 1", "64->128x2", true},
      {"ne0 >= 128 and ne1 < 3", "->128x2", true},
      {"ne0 >= 128 and ne1 < 2", "->128x2", false},
      {"ne0 < 128", "", false},
      {"ne0 < 128", "64xy", false},
  };
  for (const auto& entry : cases) {
    const auto fits = shape_fits(entry.condition, entry.shape);
    ASSERT_TRUE(fits) << entry.condition;
    EXPECT_EQ(*fits, entry.fits) << entry.condition << " of \"" << entry.shape << '"';
  }
  for (const char* bad : {"", "ne0", "ne4 < 1", "ne0 < x", "ne0 <> 1", "ne0 != 1",
                          "ne0 < 1 or ne1 < 1", "ne0 < 1 and", "and ne0 < 1", "ne0 < 1 ne1 < 2"}) {
    EXPECT_FALSE(shape_fits(bad, "1")) << bad;
  }
}

}  // namespace ops_test
}  // namespace weir::profile
