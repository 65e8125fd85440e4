// Replays recorded and made-up noise through weir's rule and others. See README.md.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include <CLI/CLI.hpp>

#include "gate/base/json.hpp"
#include "gate/base/text.hpp"
#include "gate/stats/replay.hpp"
#include "gate/sys/files.hpp"

#include "benchmarks/decision_quality/classic.hpp"
#include "benchmarks/decision_quality/fixed.hpp"
#include "benchmarks/decision_quality/noise.hpp"
#include "benchmarks/decision_quality/picture.hpp"
#include "benchmarks/decision_quality/report.hpp"
#include "benchmarks/decision_quality/stored.hpp"
#include "benchmarks/decision_quality/tilted.hpp"
#include "benchmarks/decision_quality/trace.hpp"

namespace weir::quality {
namespace {

struct Options {
  std::vector<std::string> traces, noises, rules, divide;
  std::vector<double> drops;
  double tolerate = 0, max_drop = 0.1;
  std::uint64_t trials = 1000, unchanged_trials = 0, seed = 1;
  std::uint32_t pairs = 0;
  unsigned threads = std::max(1U, std::thread::hardware_concurrency());
  std::string coin = "fair", svg;
  bool json = false, markdown = false, tilted = false, stored = false;
};

constexpr std::uint32_t k_safety = 100'000;

// Returns the names that an option selects: none or "all" selects every valid name, "none" nothing.
// Fails on a name that is not valid; `kind` ("rule", "noise") is for the message.
Result<std::vector<std::string>> select_names(const std::vector<std::string>& requested,
                                              std::vector<std::string> valid,
                                              std::string_view kind) {
  if (requested.empty() || requested == std::vector<std::string>{"all"}) return valid;
  if (requested == std::vector<std::string>{"none"}) return std::vector<std::string>{};
  for (const std::string& name : requested) {
    if (std::find(valid.begin(), valid.end(), name) == valid.end()) {
      return fail(Code::usage, "no {} is named \"{}\"{}", kind, text::printable(name),
                  text::did_you_mean(name, valid));
    }
  }
  return requested;
}

// Reads the files of --trace; one file may hold several traces.
Result<std::vector<Trace>> read_traces(const Options& options) {
  const sys::RealFiles files;
  std::vector<Trace> traces;
  for (const std::string& file : options.traces) {
    WEIR_TRY(const std::string text, files.read(file, k_trace_bytes));
    WEIR_TRY(const std::vector<Trace> traces_in_file, read_trace(file, text));
    traces.insert(traces.end(), traces_in_file.begin(), traces_in_file.end());
  }
  return traces;
}

// Fails if two scenarios (noises or traces to replay) have the same name, or if there are none.
Result<void> check_scenarios(const std::vector<Scenario>& scenarios) {
  for (std::size_t i = 0; i < scenarios.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (scenarios[i].name == scenarios[j].name) {
        return fail(Code::usage, "two noises or traces are named \"{}\"",
                    text::printable(scenarios[i].name));
      }
    }
  }
  if (scenarios.empty()) return fail(Code::usage, "nothing to replay: no noise and no trace");
  return {};
}

// Returns the noises of --noise, then the traces of --trace with the ratios that --divide gives
// them.
Result<std::vector<Scenario>> make_scenarios(const Options& options) {
  std::vector<std::string> requested = options.noises;
  for (std::string& name : requested) {
    if (requested.size() == 1 && (name == "all" || name == "none")) break;
    WEIR_TRY(name, find_noise_name(name));
  }
  WEIR_TRY(const std::vector<std::string> names, select_names(requested, noise_names(), "noise"));
  std::vector<Scenario> scenarios;
  for (const std::string& name : names) scenarios.push_back(*noise(name));
  std::vector<KnownRatio> ratios;
  for (const std::string& text : options.divide) {
    WEIR_TRY(KnownRatio ratio, read_known_ratio(text));
    ratios.push_back(std::move(ratio));
  }
  WEIR_TRY(const std::vector<Trace> traces, read_traces(options));
  for (const Trace& trace : traces) {
    std::optional<double> ratio_of_trace;
    for (const KnownRatio& ratio : ratios) {
      if (ratio.trace.empty() || ratio.trace == trace.name) ratio_of_trace = ratio.ratio;
    }
    scenarios.push_back(scenario_of_trace(trace, ratio_of_trace));
  }
  WEIR_CHECK(check_scenarios(scenarios));
  return scenarios;
}

// The effects that the scenario prescribes; if it prescribes none, those of `drops`.
std::vector<Effect> list_effects(const Scenario& scenario, const std::vector<double>& drops) {
  if (!scenario.effects.empty()) return scenario.effects;
  std::vector<Effect> effects;
  for (const double drop : drops) {
    effects.push_back({drop, stats::effect_of_drop(drop)});
  }
  return effects;
}

// Replays rules on scenarios, prints each result and keeps it as a row.
class Bench {
 public:
  Bench(const Options& options, const Limits& limits)
      : options_(options), limits_(limits), drops_(options.drops) {
    if (drops_.empty()) drops_ = {0, limits.tolerate, limits.max_drop, 1.5 * limits.max_drop};
    std::sort(drops_.begin(), drops_.end());  // no change first: the others show its false fails
    settings_.seed = options.seed;
    settings_.trials = options.trials;
    settings_.threads = options.threads;
    settings_.coin = options.coin == "off" ? Coin::off : Coin::fair;
  }

  // Adds one row per effect of the scenario for the rule of this name, and prints it unless a
  // Markdown table is printed at the end.
  void measure(const Scenario& scenario, const std::string& rule_name) {
    std::optional<std::string> note;
    std::optional<Rule> rule = make_rule(rule_name, limits_);
    if (rule_name == k_fixed_n) {
      const std::optional<FixedN> fixed = find_fixed_n(scenario, limits_, settings_);
      note = fixed ? test_name(fixed->test) : "no number up to the cap is enough";
      rule = make_fixed_n_rule(fixed, limits_);
    }
    std::optional<Tally> unchanged;
    for (const Effect& effect : list_effects(scenario, drops_)) {
      ReplaySettings settings = settings_;
      const bool is_unchanged = effect.drop == 0.0;
      if (is_unchanged && options_.unchanged_trials != 0) {
        settings.trials = options_.unchanged_trials;
      }
      const Tally tally = replay(scenario, effect.log, *rule, settings);
      if (is_unchanged) unchanged = tally;
      rows_.push_back({rule_name, scenario.name, effect.drop, tally, unchanged, note});
      if (!options_.markdown) print_row(rows_.back());
    }
  }

  void print_row(const Row& row) const {
    std::puts((options_.json ? to_json(row, limits_) : to_line(row)).c_str());
    std::fflush(stdout);
  }

  [[nodiscard]] const std::vector<Row>& rows() const { return rows_; }

 private:
  const Options& options_;
  Limits limits_;
  std::vector<double> drops_;
  ReplaySettings settings_;
  std::vector<Row> rows_;
};

void print_estimate(const std::string& name, const FalseFailEstimate& estimate) {
  fmt::print(
      "{:<14} {:>8} trials, S crossed in {:>8}; false fails {:.3g} % of gates (± {:.2g}), at most "
      "{:.3g} %\n",
      name, estimate.trials, estimate.crossed, 100 * share_per_gate(estimate.share, k_gate_metrics),
      100 * k_gate_metrics * estimate.error, 100 * share_per_gate(estimate.upper, k_gate_metrics));
  std::fflush(stdout);
}

// Prints the estimated false fails of weir's rule on each scenario in which nothing changed. The
// last line is the mean; its upper bound comes from the crossings of all trials together.
void measure_tilted(const Options& options, const Limits& limits,
                    const std::vector<Scenario>& scenarios) {
  const stats::PairedRule rule = paired_rule(limits, /*strict=*/false);
  FalseFailEstimate sum;
  double scenario_count = 0, sum_of_squares = 0;
  for (const Scenario& scenario : scenarios) {
    if (!scenario.same_program) continue;
    const FalseFailEstimate estimate =
        estimate_false_fails(scenario, rule, limits.cap, options.seed, options.trials);
    print_estimate(scenario.name, estimate);
    sum.trials += estimate.trials;
    sum.crossed += estimate.crossed;
    sum.share += estimate.share;
    sum_of_squares += estimate.error * estimate.error;
    ++scenario_count;
  }
  if (scenario_count == 0) return;
  sum.share /= scenario_count;
  sum.error = std::sqrt(sum_of_squares) / scenario_count;
  sum.upper = rule.false_alarm * stats::max_share(sum.crossed, sum.trials, 0.95);
  print_estimate("pooled", sum);
}

// Prints a Markdown row for each machine, simulated ones first. It has how often the interval from
// stored runs covers the truth, its half width, and how many stored runs decide --max-drop.
Result<void> measure_stored(const Options& options) {
  constexpr std::size_t k_stored[] = {1, 2, 5, 10, 20};
  constexpr std::size_t k_max_stored_runs = 20;  // baseline::k_sessions_kept
  std::vector<SimulatedMachine> machines;
  for (const auto& [run, process] :
       {std::pair{0.002, 0.005}, {0.004, 0.01}, {0.01, 0.01}, {0.03, 0.03}, {0.1, 0.03}}) {
    machines.push_back(simulated_machine(run, process));
  }
  WEIR_TRY(const std::vector<Trace> traces, read_traces(options));
  for (const RunOrder order : {RunOrder::scattered, RunOrder::consecutive}) {
    for (const Trace& trace : traces) machines.push_back(recorded_machine(trace, order));
  }
  fmt::print("| machine | covers, % | reach, % | runs for {:.3g} % |\n| --- | --- | --- | ---: |\n",
             options.max_drop * 100);
  for (const SimulatedMachine& machine : machines) {
    std::vector<std::string> covers, reaches;
    for (const std::size_t stored : k_stored) {
      const Coverage coverage =
          measure_coverage(machine, stored, options.max_drop, options.trials, options.seed);
      const double covered_share =
          static_cast<double>(coverage.covered) / static_cast<double>(coverage.trials);
      covers.push_back(fmt::format("{:.1f}", 100 * covered_share));
      reaches.push_back(fmt::format("{:.2g}", 100 * coverage.reach));
    }
    const auto runs = fewest_stored_runs(machine, options.max_drop, k_max_stored_runs,
                                         options.trials / 10 + 1, options.seed);
    fmt::print("| {} | {} | {} | {} |\n", machine.name, fmt::join(covers, " · "),
               fmt::join(reaches, " · "), runs ? std::to_string(*runs) : "–");
    std::fflush(stdout);
  }
  return {};
}

// Runs what the options ask for and prints it: --stored, --tilted, or rules on scenarios.
Result<void> measure(const Options& options) {
  if (options.stored) return measure_stored(options);
  Limits limits{options.tolerate, options.max_drop, options.pairs == 0 ? k_safety : options.pairs};
  if (limits.tolerate == 0) limits.tolerate = limits.max_drop / 2;
  if (!(limits.max_drop > 0 && limits.max_drop <= 0.6 && limits.tolerate > 0 &&
        limits.tolerate < limits.max_drop)) {
    return fail(Code::usage, "needs 0 < tolerate < max-drop <= 60 %");
  }
  WEIR_TRY(const std::vector<Scenario> scenarios, make_scenarios(options));
  if (options.tilted) {
    measure_tilted(options, limits, scenarios);
    return {};
  }
  WEIR_TRY(const std::vector<std::string> rules,
           select_names(
               options.rules.empty() ? std::vector<std::string>{"weir", "strict"} : options.rules,
               rule_names(), "rule"));
  Bench bench(options, limits);
  if (!options.json && !options.markdown) std::puts(heading().c_str());
  std::vector<std::string> same_program;
  for (const Scenario& scenario : scenarios) {
    if (scenario.same_program) same_program.push_back(scenario.name);
    for (const std::string& name : rules) bench.measure(scenario, name);
  }
  const std::vector<Row> sums = pool_unchanged_rows(bench.rows(), same_program);
  if (options.markdown) {
    std::fputs(to_markdown(bench.rows()).c_str(), stdout);
    for (const Row& sum : sums) {
      const GateFalseFail gate = gate_false_fail(sum.tally);
      fmt::print(
          "\n{}: {} of {} metrics failed with nothing changed, {:.3g} % of gates, at most {:.3g} % "
          "(95 %).\n",
          sum.rule, sum.tally.fail, sum.tally.trials, 100 * gate.share, 100 * gate.upper);
    }
  } else {
    for (const Row& sum : sums) bench.print_row(sum);
  }
  if (options.svg.empty()) return {};
  return sys::RealFiles().write_atomic(options.svg, to_svg(bench.rows(), limits));
}

// Reads "5%", "5 %" or "0.05" as 0.05.
Result<double> read_share(std::string_view text) {
  const bool percent = !text.empty() && text.back() == '%';
  if (percent) text.remove_suffix(1);
  const std::optional<double> number = text::to_double(text::trim(text));
  if (!number) return fail(Code::usage, "\"{}\": neither 5% nor 0.05", text::printable(text));
  return percent ? *number / 100 : *number;
}

}  // namespace
}  // namespace weir::quality

int main(int argc, char** argv) {
  using namespace weir;
  using namespace weir::quality;
  Options options;
  std::string tolerate, max_drop = "10%";
  std::vector<std::string> drops;
  CLI::App app("How often rules fail, pass and stay open, and after how many pairs of runs");
  app.add_option("--trace", options.traces, "Files of recorded runs; README.md has their form");
  app.add_option("--noise", options.noises,
                 "Made-up noises: " + text::join(noise_names()) +
                     "; spelt freely, the beginning is enough; all (default), none");
  app.add_option("--rule", options.rules,
                 text::join(rule_names()) + "; all (default: weir strict)");
  app.add_option("--tolerate", tolerate, "T: 5% or 0.05 (default: half of --max-drop)");
  app.add_option("--max-drop", max_drop, "D")->capture_default_str();
  app.add_option("--drop", drops, "True drops to replay (default: 0, T, D, 1.5 D)");
  app.add_option("--trials", options.trials, "Of each rule on each noise at each effect")
      ->check(CLI::Range(1, 100'000'000))
      ->capture_default_str();
  app.add_option("--unchanged-trials", options.unchanged_trials,
                 "The same where nothing changed (default: --trials)")
      ->check(CLI::Range(1, 100'000'000));
  app.add_option("--seed", options.seed)->capture_default_str();
  app.add_option("--pairs", options.pairs,
                 "The most pairs of a trial (default: 100 000, for safety)")
      ->check(CLI::Range(1, 10'000'000));
  app.add_option("--threads", options.threads, "Changes nothing but the time it takes")
      ->check(CLI::Range(1, 256));
  app.add_option(
      "--divide", options.divide,
      "[TRACE=]53/48: the known ratio of a trace of pairs, candidate's time over base's; "
      "replays it divided by that as well");
  app.add_option("--coin", options.coin, "off: always the base first, to see what the coin is for")
      ->check(CLI::IsMember({"fair", "off"}))
      ->capture_default_str();
  app.add_flag("--tilted", options.tilted,
               "False fails of weir by importance sampling: too rare to count");
  app.add_flag("--stored", options.stored,
               "The interval against stored runs: how often it holds the truth, how far it goes, "
               "how many runs decide --max-drop");
  app.add_flag("--json", options.json, "One object a line");
  app.add_flag("--markdown", options.markdown, "A table");
  app.add_option("--svg", options.svg, "Writes a picture: pairs of weir and fixed-n");
  CLI11_PARSE(app, argc, argv);
  const auto run = [&]() -> Result<void> {
    if (!tolerate.empty()) {
      WEIR_TRY(options.tolerate, read_share(tolerate));
      if (!(options.tolerate > 0)) return fail(Code::usage, "--tolerate must be above 0");
    }
    WEIR_TRY(options.max_drop, read_share(max_drop));
    for (const std::string& text : drops) {
      WEIR_TRY(const double drop, read_share(text));
      if (!(drop >= 0 && drop < 1)) return fail(Code::usage, "--drop {}: not from 0 to 1", text);
      options.drops.push_back(drop);
    }
    return measure(options);
  };
  if (const Result<void> result = run(); !result) {
    std::fprintf(stderr, "decision_quality: %s\n", result.error().message.c_str());
    return result.error().code == Code::usage ? 2 : 1;
  }
  return 0;
}
