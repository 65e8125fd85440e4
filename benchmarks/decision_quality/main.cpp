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

Result<std::vector<std::string>> chosen(const std::vector<std::string>& asked,
                                        std::vector<std::string> known, std::string_view what) {
  if (asked.empty() || asked == std::vector<std::string>{"all"}) return known;
  if (asked == std::vector<std::string>{"none"}) return std::vector<std::string>{};
  for (const std::string& name : asked) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      return fail(Code::usage, "no {} is named \"{}\"{}", what, text::printable(name),
                  text::did_you_mean(name, known));
    }
  }
  return asked;
}

Result<std::vector<Trace>> traces_of(const Options& options) {
  const sys::RealFiles files;
  std::vector<Trace> traces;
  for (const std::string& file : options.traces) {
    WEIR_TRY(const std::string text, files.read(file, k_trace_bytes));
    WEIR_TRY(const std::vector<Trace> found, read_trace(file, text));
    traces.insert(traces.end(), found.begin(), found.end());
  }
  return traces;
}

Result<std::vector<Scenario>> scenarios_of(const Options& options) {
  std::vector<std::string> asked = options.noises;
  for (std::string& name : asked) {
    if (asked.size() == 1 && (name == "all" || name == "none")) break;
    WEIR_TRY(name, noise_called(name));
  }
  WEIR_TRY(const std::vector<std::string> names, chosen(asked, noise_names(), "noise"));
  std::vector<Scenario> scenarios;
  for (const std::string& name : names) scenarios.push_back(*noise(name));
  std::vector<KnownRatio> known;
  for (const std::string& text : options.divide) {
    WEIR_TRY(KnownRatio ratio, read_known_ratio(text));
    known.push_back(std::move(ratio));
  }
  WEIR_TRY(const std::vector<Trace> traces, traces_of(options));
  for (const Trace& trace : traces) {
    std::optional<double> ratio;
    for (const KnownRatio& one : known) {
      if (one.trace.empty() || one.trace == trace.name) ratio = one.ratio;
    }
    scenarios.push_back(scenario_of_trace(trace, ratio));
  }
  for (std::size_t i = 0; i < scenarios.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (scenarios[i].name == scenarios[j].name) {
        return fail(Code::usage, "two noises or traces are named \"{}\"",
                    text::printable(scenarios[i].name));
      }
    }
  }
  if (scenarios.empty()) return fail(Code::usage, "nothing to replay: no noise and no trace");
  return scenarios;
}

std::vector<Effect> effects_of(const Scenario& scenario, const std::vector<double>& drops) {
  if (!scenario.effects.empty()) return scenario.effects;
  std::vector<Effect> effects;
  for (const double drop : drops) {
    effects.push_back({drop, stats::effect_of_drop(drop)});
  }
  return effects;
}

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

  void measure(const Scenario& scenario, const std::string& name) {
    std::optional<std::string> note;
    std::optional<Rule> found = rule(name, limits_);
    if (name == k_fixed_n) {
      const std::optional<FixedN> fixed = find_fixed_n(scenario, limits_, settings_);
      note = fixed ? name_of(fixed->test) : "no number up to the cap is enough";
      found = fixed_rule_of(fixed, limits_);
    }
    std::optional<Tally> unchanged;
    for (const Effect& effect : effects_of(scenario, drops_)) {
      Replay settings = settings_;
      const bool nothing = effect.drop == 0.0;
      if (nothing && options_.unchanged_trials != 0) settings.trials = options_.unchanged_trials;
      const Tally tally = replay(scenario, effect.log, *found, settings);
      if (nothing) unchanged = tally;
      rows_.push_back({name, scenario.name, effect.drop, tally, unchanged, note});
      if (!options_.markdown) tell(rows_.back());
    }
  }

  void tell(const Row& row) const {
    std::puts((options_.json ? to_json(row, limits_) : to_line(row)).c_str());
    std::fflush(stdout);
  }

  [[nodiscard]] const std::vector<Row>& rows() const { return rows_; }

 private:
  const Options& options_;
  Limits limits_;
  std::vector<double> drops_;
  Replay settings_;
  std::vector<Row> rows_;
};

void tell_tilted(const std::string& name, const Tilted& one) {
  fmt::print(
      "{:<14} {:>8} trials, S crossed in {:>8}; false fails {:.3g} % of gates (± {:.2g}), at most "
      "{:.3g} %\n",
      name, one.trials, one.crossed, 100 * per_gate(one.share, k_gate_metrics),
      100 * k_gate_metrics * one.error, 100 * per_gate(one.upper, k_gate_metrics));
  std::fflush(stdout);
}

// Nothing changed, rule weir. The last line is the mean over the noises.
void measure_tilted(const Options& options, const Limits& limits,
                    const std::vector<Scenario>& scenarios) {
  const stats::PairedRule rule = paired_rule(limits, false);
  Tilted sum;
  double count = 0, squares = 0;
  for (const Scenario& scenario : scenarios) {
    if (!scenario.same_program) continue;
    const Tilted one = tilted_false_fails(scenario, rule, limits.cap, options.seed, options.trials);
    tell_tilted(scenario.name, one);
    sum.trials += one.trials;
    sum.crossed += one.crossed;
    sum.share += one.share;
    squares += one.error * one.error;
    ++count;
  }
  if (count == 0) return;
  sum.share /= count;
  sum.error = std::sqrt(squares) / count;
  sum.upper = rule.false_alarm * stats::share_at_most(sum.crossed, sum.trials, 0.95);
  tell_tilted("pooled", sum);
}

// The interval against stored runs: a row of Markdown for each machine, made-up ones first.
Result<void> measure_stored(const Options& options) {
  constexpr std::size_t k_stored[] = {1, 2, 5, 10, 20};
  constexpr std::size_t k_most = 20;  // baseline::k_sessions_kept
  std::vector<Machine> machines;
  for (const auto& [run, process] :
       {std::pair{0.002, 0.005}, {0.004, 0.01}, {0.01, 0.01}, {0.03, 0.03}, {0.1, 0.03}}) {
    machines.push_back(made_machine(run, process));
  }
  WEIR_TRY(const std::vector<Trace> traces, traces_of(options));
  for (const RunsOfTrace order : {RunsOfTrace::apart, RunsOfTrace::in_a_row}) {
    for (const Trace& trace : traces) machines.push_back(machine_of_trace(trace, order));
  }
  fmt::print("| machine | covers, % | reach, % | runs for {:.3g} % |\n| --- | --- | --- | ---: |\n",
             options.max_drop * 100);
  for (const Machine& machine : machines) {
    std::vector<std::string> covers, reaches;
    for (const std::size_t stored : k_stored) {
      const Coverage found =
          coverage_of(machine, stored, options.max_drop, options.trials, options.seed);
      covers.push_back(fmt::format(
          "{:.1f}", 100 * static_cast<double>(found.covered) / static_cast<double>(found.trials)));
      reaches.push_back(fmt::format("{:.2g}", 100 * found.reach));
    }
    const auto runs =
        runs_for(machine, options.max_drop, k_most, options.trials / 10 + 1, options.seed);
    fmt::print("| {} | {} | {} | {} |\n", machine.name, fmt::join(covers, " · "),
               fmt::join(reaches, " · "), runs ? std::to_string(*runs) : "–");
    std::fflush(stdout);
  }
  return {};
}

Result<void> measure(const Options& options) {
  if (options.stored) return measure_stored(options);
  Limits limits{options.tolerate, options.max_drop, options.pairs == 0 ? k_safety : options.pairs};
  if (limits.tolerate == 0) limits.tolerate = limits.max_drop / 2;
  if (!(limits.max_drop > 0 && limits.max_drop <= 0.6 && limits.tolerate > 0 &&
        limits.tolerate < limits.max_drop)) {
    return fail(Code::usage, "needs 0 < tolerate < max-drop <= 60 %");
  }
  WEIR_TRY(const std::vector<Scenario> scenarios, scenarios_of(options));
  if (options.tilted) {
    measure_tilted(options, limits, scenarios);
    return {};
  }
  WEIR_TRY(
      const std::vector<std::string> rules,
      chosen(options.rules.empty() ? std::vector<std::string>{"weir", "strict"} : options.rules,
             rule_names(), "rule"));
  Bench bench(options, limits);
  if (!options.json && !options.markdown) std::puts(heading().c_str());
  std::vector<std::string> same_program;
  for (const Scenario& scenario : scenarios) {
    if (scenario.same_program) same_program.push_back(scenario.name);
    for (const std::string& name : rules) bench.measure(scenario, name);
  }
  const std::vector<Row> sums = pooled(bench.rows(), same_program);
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
    for (const Row& sum : sums) bench.tell(sum);
  }
  if (options.svg.empty()) return {};
  return sys::RealFiles().write_atomic(options.svg, to_svg(bench.rows(), limits));
}

// "5%", "5 %" or "0.05".
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
  if (const Result<void> done = run(); !done) {
    std::fprintf(stderr, "decision_quality: %s\n", done.error().message.c_str());
    return done.error().code == Code::usage ? 2 : 1;
  }
  return 0;
}
