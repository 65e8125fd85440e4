// weir calibrate: the configured cells against themselves, through the whole gate but its counts;
// then replays of what was measured. Can this machine hold these limits?
#include <map>
#include <memory>

#include "gate/app/calibrations.hpp"
#include "gate/app/command_line.hpp"
#include "gate/app/session.hpp"
#include "gate/app/veiled.hpp"
#include "gate/app/version.hpp"
#include "gate/report/texts.hpp"
#include "gate/sys/clock.hpp"
#include "gate/sys/paths.hpp"

namespace weir::app {
namespace {

struct CalibrateOptions {
  CommonOptions common;
  std::optional<std::string> against, budget, resume;
  std::int64_t pairs = 40;
  std::int64_t replays = 1000;
};

Result<AgainstWanted> wanted_base(const CalibrateOptions& options) {
  const std::vector<std::string>& words = words_behind();
  if (!options.against) {
    if (words.empty()) return AgainstWanted{.spec = "", .command = {}, .own = true};
    return fail(Code::usage, "words behind \"--\" are another build: --against -- COMMAND…");
  }
  if (options.against->empty() == words.empty()) {
    return fail(Code::usage,
                "--against takes another build of the same source: a REF, a DIR, or -- COMMAND…");
  }
  return AgainstWanted{*options.against, words};
}

Error of_calibration(Error error, const CalibrateOptions& options) {
  constexpr std::string_view k_budget = "gate.budget: ";
  if (error.code == Code::config && error.message.starts_with(k_budget)) {
    error.message.replace(0, k_budget.size(), options.budget ? "--budget " : "gate.budget: ");
    error.message += fmt::format(
        "\n  {} pairs a cell are asked for: --budget gives more time, --pairs asks for "
        "fewer",
        options.pairs);
  }
  return error;
}

// What a run says of each cell, with its error where it could not be run at all.
verdict::Calibration judge(const Measured& measured, const CalibrateOptions& options,
                           double budget) {
  std::vector<profile::PairedRuns> runs = measured.beside->pairs;
  std::map<std::string, std::string> errors;
  for (const profile::Profile& profile : measured.profiles) {
    if (!profile.errors.empty()) errors[profile.cell.str()] = profile.errors.front();
  }
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const auto error = errors.find(measured.beside->cells[i].cell.str());
    if (!runs[i].error && error != errors.end()) runs[i].error = error->second;
  }
  verdict::CalibrationFacts facts;
  facts.weir_version = k_version;
  facts.date = sys::date_of(sys::RealClock().now());
  facts.config = measured.config_file;
  facts.base = measured.beside->facts.words;
  facts.two_builds = options.against.has_value();
  facts.budget_seconds = budget;
  facts.replays = options.replays;
  verdict::Calibration made =
      verdict::calibrate(facts, measured.beside->cells, runs, measured.settings->limits,
                         policy_of(measured.settings->gate));
  const std::vector<std::string>& notes = measured.beside->facts.notes;
  made.notes.insert(made.notes.end(), notes.begin(), notes.end());
  return made;
}

Result<ExitCode> calibrate(const CalibrateOptions& options) {
  sys::RealFiles files;
  CommonOptions common = options.common;
  // Apart from the runs that `gate --from` and `baseline accept` look for.
  common.out = sys::join_path(common.out, "calibrations");
  MeasureOptions wanted;
  wanted.plan.counts = false;
  wanted.resume = options.resume;
  wanted.least_pairs = static_cast<std::size_t>(options.pairs);
  WEIR_TRY(wanted.against, wanted_base(options));
  if (common.json && *common.json != "-") wanted.output_places.push_back(*common.json);
  WEIR_TRY(Loaded loaded, load_config(common, files));
  const double budget = loaded.settings->gate.budget_seconds;
  if (options.budget) {
    WEIR_TRY(loaded.settings->gate.budget_seconds, unit::parse_duration_seconds(*options.budget));
  }
  const config::Veil veil = loaded.veil;
  WEIR_TRY(const Measured measured,
           measure_loaded(std::move(loaded), common, wanted, files).map_error([&](Error error) {
             return of_calibration(veiled(std::move(error), veil), options);
           }));
  talk(common, fmt::format("replaying {} gates", options.replays));
  const verdict::Calibration made = judge(measured, options, budget);
  if (made.cells.empty()) {
    return fail(Code::config,
                "{}: no cell has a limit on a time that gates (max_drop, max_increase): there is "
                "nothing to calibrate",
                common.config);
  }
  Calibrations kept(files);
  for (const verdict::CalibratedCell& cell : made.cells) {
    if (cell.error) continue;
    const auto path = kept.keep(cell);
    if (!path) talk(common, "weir: the calibration is not kept: " + path.error().message);
  }
  const verdict::Calibration shown = veiled(made, veil);
  const int stream = answer_stream(common);
  answer(common, report::calibration_text(shown, {width_of(stream), colored(common, stream)}));
  WEIR_CHECK(write_json(common, dump_json(verdict::to_json(shown), 1) + "\n"));
  const bool broken = std::any_of(made.cells.begin(), made.cells.end(),
                                  [](const verdict::CalibratedCell& cell) { return cell.error; });
  if (broken) return ExitCode::unmeasured;
  return made.holds || !measured.settings->gate.fail_on_inconclusive ? ExitCode::pass
                                                                     : ExitCode::inconclusive;
}

}  // namespace

void add_calibrate(CLI::App& app) {
  CLI::App* verb = app.add_subcommand(
      "calibrate", "Each cell against itself: can this machine hold the limits on times?");
  auto options = std::make_shared<CalibrateOptions>();
  add_common(*verb, options->common, Takes::cells);
  verb->add_option("--budget", options->budget,
                   "Time for all pairs of the calibration (default: gate.budget)")
      ->type_name("DURATION");
  verb->add_option("--pairs", options->pairs, "Pairs of each cell, at least")
      ->check(CLI::Range(verdict::k_fewest_replayed, std::int64_t{10'000}))
      ->capture_default_str();
  verb->add_option("--replays", options->replays, "Gates to replay")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  verb->add_option("--against", options->against,
                   "Another build of the same source in place of the same program:\n"
                   "a REF or DIR, or -- COMMAND… at the end of the line")
      ->type_name("REF|DIR")
      ->expected(0, 1)
      ->default_str("");
  verb->add_option("--resume", options->resume,
                   "Go on with an interrupted calibration (default: newest)")
      ->type_name("[RUN]")
      ->expected(0, 1)
      ->default_str("");
  verb->footer(
      "Examples:\n"
      "  weir calibrate                      every cell, within gate.budget\n"
      "  weir calibrate --cell '*/cpu/*' --budget 30m\n"
      "  weir calibrate --against HEAD       another build of the same commit: what do two builds\n"
      "                                      of one source differ by?\n\n"
      "Exit codes: 0 measured, whatever the answer; 4 the limits can not be held, under\n"
      "on_inconclusive: fail; 2 and 3 as weir gate.");
  set_action_with_words(*verb, [options] { return calibrate(*options); });
}

}  // namespace weir::app
