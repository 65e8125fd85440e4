// Tests a run compared with a base program, with fake engines, clock and coin.
#include "gate/run/against.hpp"

#include <algorithm>

#include <gmock/gmock.h>

#include "gate/verdict/over_depth.hpp"

#include "tests/run/scene.hpp"

namespace weir::run {
namespace against_test {

using profile::Pass;
using profile::RunRecord;
using profile::Side;
using ::testing::HasSubstr;

const std::string k_yaml = R"(version: 1
engines:
  bench:
    command: [./bench, -m, "{model}", -p, "{prompt_tokens}", -n, "{tokens}", -r, "{repeats}"]
    output: llama-bench
    probes: [vulkan]
    timeout: 5s
models: {tiny: tiny.bin}
backends:
  vulkan: {}
prompts:
  decode: {prompt_tokens: 0, tokens: 16}
gate: {repeats: 1, budget: 10m}
)";

class FakeKnownCounts final : public KnownCounts {
 public:
  std::vector<baseline::Baseline> find_counts(const profile::CellKey&) const override {
    ++looks;
    return all;
  }
  std::vector<baseline::Baseline> all;
  mutable int looks = 0;
};

class ScriptedCoin final : public sys::Coin {
 public:
  bool flip() override {
    ++flips;
    return (flips / 2) % 2 == 0;
  }
  int flips = 0;
};

// Counts the dispatches per token of the side's program.
class SidedProbing final : public Probing {
 public:
  Result<config::Environment> attach(std::span<const std::string>, const std::string& folder,
                                     const config::Environment*) override {
    return config::Environment{{"WEIR_PROBE_DIR", folder}};
  }
  Result<std::vector<profile::ProbeCounts>> collect(std::span<const std::string> probes,
                                                    const std::string& folder,
                                                    std::span<const config::ProcessRole>) override {
    profile::ProbeCounts counts;
    counts.probe = probes.front();
    const std::lock_guard hold(mutex);
    counts.counts["dispatches"] = dispatches[folder];
    counts.devices = {{"vulkan", "software", "cpu", "vulkan-1-2-3-4-5"}};
    return std::vector{counts};
  }
  [[nodiscard]] std::string folder() const override { return "/probe"; }
  std::mutex mutex;
  std::map<std::string, std::int64_t> dispatches;  // by folder
};

struct Duel {
  explicit Duel(const std::string& yaml = k_yaml,
                std::optional<std::int64_t> counted_processes = std::nullopt)
      : scene(make_scene(yaml)) {
    scene->files.put("/base/bench", "old program");
    scene->files.set_executable("/base/bench");
    PlanOptions options;
    options.pairs = true;
    options.counted_processes = counted_processes;
    auto cells = preflight(scene->cells, scene->around, scene->files);
    auto base = *cells;
    for (PreparedCell& cell : base) cell.program = "/base/bench";
    plan = make_plan(std::move(*cells), *scene->settings, options, std::move(base));
    if (scene->settings->engines[0].probes.empty()) counts = false;
  }

  sys::Finished engine(const sys::ProcessSpec& spec) {
    const bool base = spec.argv.front() == "/base/bench";
    sys::Finished finished;
    const double depth = std::stod(argument(spec.argv, "-d"));
    const double factor = (base ? 1 : slower) * (1 + (base ? 1 : steeper) * depth / 1024);
    finished.out = bench_output(spec.argv);
    const std::string time_text = "1000000";
    for (auto at = finished.out.find(time_text); at != std::string::npos;
         at = finished.out.find(time_text, at + 8)) {
      // Each process has a little noise of its own.
      const long jitter = static_cast<long>(++processes * 37 % 101) * (is_noisy ? 20'000 : 20);
      finished.out.replace(at, time_text.size(),
                           std::to_string(static_cast<long>(1e6 * factor) + jitter));
    }
    finished.wall_seconds = base ? 2 : candidate_seconds;
    const bool counting = argument(spec.argv, "-n") != "16";
    if (!base && !counting && depth > 0 && ++deep > crashes_after) finished.exit_code = 1;
    for (const auto& [name, value] : spec.env) {
      if (name != "WEIR_PROBE_DIR") continue;
      const std::lock_guard hold(probing.mutex);
      probing.dispatches[value] =
          (base ? 65 : candidate_dispatches) * std::stol(argument(spec.argv, "-n"));
      // Begins with the first process, so that the first look differs.
      if (!base && varies_every > 0 && counted++ % varies_every == 0) ++probing.dispatches[value];
    }
    return finished;
  }
  static std::string argument(const std::vector<std::string>& argv, const std::string& name) {
    const auto match = std::find(argv.begin(), argv.end(), name);
    return match == argv.end() ? "0" : *(match + 1);
  }

  Result<std::vector<RunRecord>> run() {
    auto journal = scene->files.exists("/out/run.jsonl")
                       ? Journal::resume(scene->files, "/out", plan)
                       : Journal::create(scene->files, "/out", make_header(plan));
    if (!journal) return tl::unexpected(journal.error());
    AgainstOptions options;
    options.limits = scene->settings->limits;
    options.gate = scene->settings->gate;
    options.calibrated_pairs = calibrated;
    options.counts = counts;
    const auto against = make_against(plan, options, known_counts, coin,
                                      [this](const PairsPlan& shown) { plans.push_back(shown); });
    FakeProcesses fake([this](const sys::ProcessSpec& spec) {
      if (stop_after > 0 && ++started >= stop_after) stop.request();
      return engine(spec);
    });
    return Runner({fake, scene->files, clock, locks, load, probing, progress, stop}, 1)
        .run(plan, *journal, against.get());
  }

  std::unique_ptr<Scene> scene;
  Plan plan;
  FakeKnownCounts known_counts;
  ScriptedCoin coin;
  FakeClock clock;
  FakeLocks locks;
  FakeLoad load;
  SidedProbing probing;
  FakeProgress progress;
  sys::Stop stop;
  std::vector<PairsPlan> plans;
  double slower = 1, steeper = 1;      // time of the candidate; extra time by context
  double candidate_seconds = 2;        // wall time of its processes
  bool is_noisy = false;               // times spread too widely to be decided
  int deep = 0, crashes_after = 1000;  // counts the candidate's timed processes with a context
  std::int64_t candidate_dispatches = 65;
  int varies_every = 0, counted = 0;  // one more dispatch in each so many counted processes
  bool counts = true;
  std::map<std::string, double> calibrated;
  int processes = 0, started = 0, stop_after = 0;
};

std::int64_t count(const std::vector<RunRecord>& records, Pass pass, Side side) {
  return std::count_if(records.begin(), records.end(), [&](const RunRecord& record) {
    return record.pass == pass && record.side == side && record.pair.value_or(1) > 0;
  });
}

TEST(Against, CountsTheBaseOnceAndPairsUntilItIsSure) {
  Duel duel;
  const auto records = duel.run();
  ASSERT_TRUE(records) << records.error().message;
  EXPECT_EQ(count(*records, Pass::counted, Side::candidate), 3);
  EXPECT_EQ(count(*records, Pass::counted, Side::base), 3);
  EXPECT_EQ(count(*records, Pass::timed, Side::base), 8);  // the fewest that can pass
  EXPECT_EQ(count(*records, Pass::timed, Side::candidate), 8);
  ASSERT_EQ(duel.plans.size(), 1U);
  EXPECT_EQ(duel.plans[0].cells.at(0).pair_seconds, 4);
  EXPECT_TRUE(duel.plans[0].cells[0].now);
}

TEST(Against, ASlowerCandidateGetsThePairsThatItWouldGetAtTheBasesPace) {
  Duel duel;
  duel.slower = duel.candidate_seconds = 40;  // 11 pairs of 42 s each are not within 48 s
  duel.scene->settings->gate.budget_seconds = 48;
  const auto records = duel.run();
  ASSERT_TRUE(records) << records.error().message;
  ASSERT_EQ(duel.plans.size(), 1U);
  EXPECT_EQ(duel.plans[0].cells.at(0).pair_seconds, 42);
  EXPECT_TRUE(duel.plans[0].cells[0].now);
  EXPECT_EQ(count(*records, Pass::timed, Side::candidate), 11);
  const auto& facts = duel.plan.cells[0].facts;
  const verdict::CellVerdict cell = verdict::judge_cell(
      profile::assemble(facts, *records), {{}, profile::paired_runs(facts, *records)}, {}, {});
  EXPECT_EQ(cell.judgement_of("decode_tokens_per_second").verdict, verdict::Outcome::fail);
}

TEST(Against, PairsThatAreNotDecidedSoonCostTheBudgetWhatTheyTake) {
  Duel duel;
  duel.candidate_seconds = 8;
  duel.is_noisy = true;
  duel.scene->settings->gate.budget_seconds = 200;
  const auto records = duel.run();
  ASSERT_TRUE(records) << records.error().message;
  // 24 pairs of 4 s, and 10 s each for the others.
  EXPECT_EQ(count(*records, Pass::timed, Side::candidate), 24 + 10);
}

TEST(Against, TheCoinDecidesTheOrderOfEachPairAndTheJournalHoldsItFirst) {
  Duel duel;
  const auto records = duel.run();
  ASSERT_TRUE(records);
  EXPECT_EQ(duel.coin.flips, 8);
  std::vector<bool> base_first;
  for (std::size_t i = 0; i + 1 < records->size(); ++i) {
    const RunRecord &current = (*records)[i], &next = (*records)[i + 1];
    if (current.pair.value_or(0) == 0 || current.pair != next.pair) continue;
    base_first.push_back(current.side == Side::base);
  }
  // flip k swaps when (k / 2) is even: k = 1, 4, 5, 8.
  EXPECT_EQ(base_first, (std::vector<bool>{false, true, true, false, false, true, true, false}));
  const std::string text = *duel.scene->files.read("/out/run.jsonl", 1 << 20);
  const auto declared = text.find(R"("pair":3)");
  ASSERT_NE(declared, std::string::npos);
  EXPECT_EQ(text.rfind("{\"steps\"", declared), text.rfind('\n', declared) + 1);
}

// Of three lengths each.
TEST(Against, WhereCountsDifferEachSideIsRunUntilItHasFourProcesses) {
  Duel duel;
  duel.candidate_dispatches = 85;
  const auto records = duel.run();
  ASSERT_TRUE(records) << records.error().message;
  EXPECT_EQ(count(*records, Pass::counted, Side::candidate), 12);
  EXPECT_EQ(count(*records, Pass::counted, Side::base), 12);
}

TEST(Against, WhereCountsVaryEachSideIsRunUntilItHasFiveProcesses) {
  Duel duel;
  duel.varies_every = 5;
  const auto records = duel.run();
  ASSERT_TRUE(records) << records.error().message;
  EXPECT_EQ(count(*records, Pass::counted, Side::candidate), 15);
  EXPECT_EQ(count(*records, Pass::counted, Side::base), 15);
}

TEST(Against, ProcessesThatWereAskedForCountBothSides) {
  Duel duel(k_yaml, 6);
  duel.candidate_dispatches = 85;
  const auto records = duel.run();
  ASSERT_TRUE(records) << records.error().message;
  EXPECT_EQ(count(*records, Pass::counted, Side::candidate), 18);
  EXPECT_EQ(count(*records, Pass::counted, Side::base), 18);
}

TEST(Against, CountsThatAreKnownOfTheBaseAreNotTakenAgain) {
  Duel first;
  const auto records = first.run();
  ASSERT_TRUE(records);
  Duel second;
  second.known_counts.all = {baseline::accept(
      profile::assemble(first.plan.base_cells[0].facts, *records, Side::base), std::nullopt, {})};
  const auto again = second.run();
  ASSERT_TRUE(again);
  EXPECT_EQ(count(*again, Pass::counted, Side::base), 0);
  EXPECT_EQ(count(*again, Pass::timed, Side::base), 8);
  const auto choice =
      choose_base_counts(profile::assemble(second.plan.cells[0].facts, *again),
                         second.plan.base_cells[0].facts, *again, second.known_counts.all);
  EXPECT_EQ(choice.match, baseline::BaselineChoice::Match::same);

  Duel changed;
  changed.known_counts.all = second.known_counts.all;
  changed.candidate_dispatches = 85;
  const auto confirmed = changed.run();
  ASSERT_TRUE(confirmed);
  EXPECT_EQ(count(*confirmed, Pass::counted, Side::base), 12);
  EXPECT_EQ(count(*confirmed, Pass::counted, Side::candidate), 12);
}

// An engine may declare its device: beside its base, another one is no excuse.
TEST(Against, ABaseOnAnotherDeviceIsAnErrorAndAnotherVersionIsTheSameDevice) {
  using Match = baseline::BaselineChoice::Match;
  const struct {
    const char *base, *candidate;
    Match match;
    const char* reason;
  } cases[] = {
      {"metal-106b-m4-0", "metal-106b-m4-0", Match::same, ""},
      {"metal-106b-m4-0", "metal-106b-m4-1", Match::same,
       "base and candidate ran on different versions of one device: metal-106b-m4-0 and "
       "metal-106b-m4-1"},
      {"metal-106b-m4-0", "metal-106b-m5-0", Match::other_class,
       "base and candidate ran on different devices: metal-106b-m4-0 and metal-106b-m5-0"},
  };
  Duel duel;
  const auto measured = duel.run();
  ASSERT_TRUE(measured);
  profile::CellFacts facts = duel.plan.cells[0].facts, base_facts = duel.plan.base_cells[0].facts;
  facts.provenance.device_class.clear();  // the engine's marks tell it
  base_facts.provenance.device_class.clear();
  for (const auto& c : cases) {
    std::vector<RunRecord> records = *measured;
    for (RunRecord& record : records) {
      for (profile::ProbeCounts& probe : record.probes) {
        const char* device_class = record.side == Side::base ? c.base : c.candidate;
        probe.devices = {{"vulkan", "a GPU", "discrete", device_class}};
      }
    }
    const auto choice = choose_base_counts(profile::assemble(facts, records), base_facts, records,
                                           duel.known_counts.all);
    EXPECT_EQ(choice.match, c.match) << c.candidate;
    EXPECT_EQ(choice.reason, c.reason);
    EXPECT_EQ(choice.devices_differ, c.match == Match::other_class);
    EXPECT_EQ(choice.base_failed, c.match == Match::other_class);
  }
}

// Work between two timed processes happens while the machine should be quiet.
TEST(Against, LooksForNoCountsOncePairsHaveBegun) {
  Duel quick, longer;
  longer.slower = 1.3;
  const auto few = quick.run(), many = longer.run();
  ASSERT_TRUE(few);
  ASSERT_TRUE(many);
  ASSERT_GT(count(*many, Pass::timed, Side::base), count(*few, Pass::timed, Side::base));
  EXPECT_EQ(longer.known_counts.looks, quick.known_counts.looks);
}

TEST(Against, ASlowCandidateIsRunUntilThatIsSure) {
  Duel duel;
  duel.slower = 1.3;
  const auto records = duel.run();
  ASSERT_TRUE(records);
  const auto runs = profile::paired_runs(duel.plan.cells[0].facts, *records);
  EXPECT_GE(runs.pairs, 10);
  EXPECT_LE(runs.pairs, 20);
  verdict::Policy policy;
  const auto profile = profile::assemble(duel.plan.cells[0].facts, *records);
  const auto cell = verdict::judge_cell(profile, {{}, runs}, {}, policy);
  EXPECT_EQ(cell.verdict, verdict::Outcome::fail) << cell.reason;
}

TEST(Against, TheBudgetEndsIt) {
  Duel duel;
  duel.slower = 1.026;                             // tolerated < 1.026 < limit: hard to decide
  duel.scene->settings->gate.budget_seconds = 60;  // 15 pairs of 4 s
  const auto records = duel.run();
  ASSERT_TRUE(records);
  EXPECT_EQ(profile::paired_runs(duel.plan.cells[0].facts, *records).pairs, 9);
}

TEST(Against, AnAbsoluteLimitGetsARunOfTheCandidateWhereNoPairFitsTheBudget) {
  const std::string bound = "limits: [{metrics: decode_tokens_per_second, min: 1}]\n";
  struct Case {
    std::string limits;
    double budget_seconds;
    std::int64_t runs, pairs;
  };
  const std::vector<Case> cases = {{"", 5, 0, 0}, {bound, 5, 1, 0}, {bound, 600, 8, 8}};
  for (const auto& [limits, budget_seconds, runs, pairs] : cases) {
    SCOPED_TRACE(fmt::format("{}{} s", limits, budget_seconds));
    std::string yaml = k_yaml + limits;
    if (!limits.empty()) yaml.replace(yaml.find("    probes: [vulkan]\n"), 21, "");
    Duel duel(yaml);
    duel.scene->settings->gate.budget_seconds = budget_seconds;
    const auto records = duel.run();
    ASSERT_TRUE(records) << records.error().message;
    const profile::CellFacts& facts = duel.plan.cells[0].facts;
    EXPECT_EQ(profile::assemble(facts, *records).timed_runs, runs);
    EXPECT_EQ(profile::paired_runs(facts, *records).pairs, pairs);
  }
}

TEST(Against, ThePlanTellsWhatLimitsTakeOnAMachineThatWasCalibrated) {
  Duel duel;
  duel.calibrated["bench/tiny/vulkan/decode"] = 33.5;
  duel.calibrated["bench/tiny/vulkan/another"] = 1;
  ASSERT_TRUE(duel.run());
  ASSERT_EQ(duel.plans.size(), 1U);
  EXPECT_EQ(duel.plans[0].cells.at(0).calibrated, 33.5);
  Duel unknown;
  ASSERT_TRUE(unknown.run());
  EXPECT_FALSE(unknown.plans.at(0).cells.at(0).calibrated);
}

TEST(Against, ABudgetThatCanDecideNothingIsAnErrorThatSaysWhatWouldDo) {
  std::string yaml = k_yaml;
  yaml.replace(yaml.find("    probes: [vulkan]\n"), 21, "");
  Duel duel(yaml);
  duel.scene->settings->gate.budget_seconds = 20;
  const auto records = duel.run();
  ASSERT_FALSE(records);
  EXPECT_EQ(records.error().code, Code::config);
  EXPECT_THAT(records.error().message, HasSubstr("one needs 32 s at least"));
}

TEST(Against, GoesOnAfterAnInterruptionWithinAPairInTheOrderThatWasDrawn) {
  Duel uninterrupted;
  const auto expected = uninterrupted.run();
  ASSERT_TRUE(expected);
  for (int stop_after = 1; stop_after <= 22; ++stop_after) {
    SCOPED_TRACE(stop_after);
    Duel duel;
    duel.stop_after = stop_after;
    const auto cut = duel.run();
    ASSERT_FALSE(cut);
    EXPECT_EQ(cut.error().code, Code::interrupted);
    duel.stop_after = 0;
    Duel resumed;
    resumed.scene->files.put("/out/run.jsonl", *duel.scene->files.read("/out/run.jsonl", 1 << 20));
    resumed.coin.flips = duel.coin.flips;
    const auto records = resumed.run();
    ASSERT_TRUE(records) << records.error().message;
    ASSERT_EQ(records->size(), expected->size());
    for (std::size_t i = 0; i < records->size(); ++i) {
      EXPECT_EQ((*records)[i].side, (*expected)[i].side) << i;
      EXPECT_EQ((*records)[i].pair, (*expected)[i].pair) << i;
    }
  }
}

// --- over the depths of a list

std::string with_depths() {
  std::string yaml = k_yaml;
  yaml.replace(yaml.find("-r, "), 4, "-d, \"{depth}\", -r, ");
  yaml.replace(yaml.find("tokens: 16}"), 11, "tokens: 16, depth: [0, 1024]}");
  return yaml;
}

profile::PairedRuns pairs_in_cell(const Duel& duel, std::size_t cell,
                                  const std::vector<RunRecord>& records) {
  return profile::paired_runs(duel.plan.cells[cell].facts, records);
}

TEST(AgainstOverDepths, EveryRoundRunsOnePairOfEachDepthInTheOrderOfOneCoin) {
  Duel duel(with_depths());
  const auto records = duel.run();
  ASSERT_TRUE(records) << records.error().message;
  ASSERT_EQ(duel.plans.size(), 1U);
  ASSERT_EQ(duel.plans[0].cells.size(), 1U);
  EXPECT_EQ(duel.plans[0].cells[0].cell, "bench/tiny/vulkan/decode");
  EXPECT_EQ(duel.plans[0].cells[0].pair_seconds, 8);
  EXPECT_EQ(duel.plans[0].cells[0].metrics, 4U) << "a rate each, and two of the line";
  const auto shallow = pairs_in_cell(duel, 0, *records), deep = pairs_in_cell(duel, 1, *records);
  EXPECT_EQ(shallow.pairs, deep.pairs);
  EXPECT_EQ(duel.coin.flips, shallow.pairs);
  for (std::size_t k = 0; k < static_cast<std::size_t>(shallow.pairs); ++k) {
    EXPECT_EQ(shallow.metrics[0].pairs[k].base_first, deep.metrics[0].pairs[k].base_first) << k;
  }
}

TEST(AgainstOverDepths, GoOnUntilTheLineIsDecidedToo) {
  Duel duel(with_depths());
  duel.steeper = 1.06;  // 3 % at the deepest passes, but the line is steeper
  const auto records = duel.run();
  ASSERT_TRUE(records) << records.error().message;
  const auto deep = pairs_in_cell(duel, 1, *records);
  EXPECT_GT(deep.pairs, 8);
  const std::vector<profile::PairedRuns> all{pairs_in_cell(duel, 0, *records), deep};
  const std::vector<profile::CellKey> keys{duel.plan.cells[0].facts.cell,
                                           duel.plan.cells[1].facts.cell};
  const auto line = verdict::fit_pairs(verdict::depth_groups(keys).at(0), all);
  EXPECT_EQ(line.pairs, deep.pairs);
}

TEST(AgainstOverDepths, ADepthWhoseProgramFailsLeavesTheOthersToTheirPairs) {
  Duel duel(with_depths());
  duel.crashes_after = 3;  // the warm-up and two pairs
  const auto records = duel.run();
  ASSERT_TRUE(records) << records.error().message;
  EXPECT_EQ(pairs_in_cell(duel, 0, *records).pairs, 8);
  const auto deep = pairs_in_cell(duel, 1, *records);
  EXPECT_TRUE(deep.error);
  EXPECT_EQ(deep.pairs, 4) << "after its second crash";
}

}  // namespace against_test
}  // namespace weir::run
