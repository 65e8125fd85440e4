// weir calibrate: finds out if this machine can decide the limits, and keeps the answer.
#include "gate/flow/calibrate.hpp"

#include "gate/base/find.hpp"
#include "gate/base/hash.hpp"
#include "gate/flow/reports.hpp"
#include "gate/report/calibration_text.hpp"
#include "gate/run/against.hpp"
#include "gate/sys/clock.hpp"
#include "gate/sys/paths.hpp"
#include "gate/verdict/over_depth.hpp"

namespace weir::flow {
namespace {

constexpr std::int64_t k_cost_pairs = 8;
constexpr std::uint64_t k_largest_calibration = std::uint64_t{1} << 20;

// Returns true if the cell has a judged limit on a time.
bool has_judged_time(const verdict::CellVerdict& cell) {
  using verdict::Outcome;
  return std::ranges::any_of(cell.metrics(), [](const auto& metric) {
    return metric.metric.kind != unit::Kind::count && metric.limit.mode == verdict::Mode::gate &&
           (metric.limit.max_drop || metric.limit.max_increase) &&
           (metric.verdict == Outcome::pass || metric.verdict == Outcome::fail ||
            metric.verdict == Outcome::improved || metric.verdict == Outcome::inconclusive);
  });
}

// Returns the file of a cell's calibration, relative to the folder of calibrations.
std::string calibration_path(const profile::CellKey& cell, const std::string& machine_class,
                             const std::string& fingerprint) {
  return fmt::format("{}/{}.json", machine_class, short_hash(cell.str() + "\n" + fingerprint, 16));
}

}  // namespace

Calibrations::Calibrations(sys::Files& files) : files_(files) {
  if (const auto cache = source::default_cache_folder()) {
    folder_ = sys::join_path(*cache, "calibration");
  }
}

// Returns the stored calibration of a cell with this fingerprint on this machine class; nullopt if
// there is none.
std::optional<verdict::CalibratedCell> Calibrations::find(
    const profile::CellKey& cell, const profile::Provenance& provenance) const {
  if (folder_.empty() || provenance.machine_class.empty()) return std::nullopt;
  const std::string path = calibration_path(cell, provenance.machine_class, provenance.fingerprint);
  const auto text = files_.read(sys::join_path(folder_, path), k_largest_calibration);
  if (!text) return std::nullopt;
  auto calibrated = parse_json(*text).and_then(verdict::calibrated_cell_from_json);
  const bool matches = calibrated && calibrated->cell == cell &&
                       calibrated->fingerprint == provenance.fingerprint &&
                       calibrated->machine_class == provenance.machine_class;
  return matches ? std::optional(std::move(*calibrated)) : std::nullopt;
}

Result<std::string> Calibrations::keep(const verdict::CalibratedCell& cell) {
  if (folder_.empty())
    return fail(Code::config, "no place for a cache: set WEIR_CACHE to a folder");
  const std::string path =
      sys::join_path(folder_, calibration_path(cell.cell, cell.machine_class, cell.fingerprint));
  WEIR_CHECK(files_.make_dirs(sys::folder_of(path)));
  WEIR_CHECK(files_.write_atomic(path, json_document(write_fields(cell))));
  return path;
}

// Returns, by cell, the number of pairs that its limits typically take, for cells calibrated with
// the present limits.
std::map<std::string, double> calibrated_pairs(const Calibrations& calibrations,
                                               const std::vector<run::PreparedCell>& cells,
                                               const config::Settings& settings) {
  const verdict::LimitTable limits(settings.limits);
  std::map<std::string, double> pairs;
  for (const run::PreparedCell& cell : cells) {
    const auto calibrated = calibrations.find(cell.cell.key, cell.facts.provenance);
    if (calibrated && verdict::still_holds(*calibrated, limits)) {
      pairs[cell.cell.key.str()] = calibrated->typical_pairs();
    }
  }
  return pairs;
}

// Notes at each cell with judged times how many pairs its limits take, and in the verdict how many
// cells were never calibrated.
void add_calibration_notes(const MeasuredRun& measured, const Calibrations& calibrations,
                           verdict::GateVerdict& verdict) {
  const auto keys = collect<profile::CellKey>(measured.profiles, &profile::Profile::cell);
  std::set<std::string> lines;
  for (const verdict::DepthGroup& group : verdict::depth_groups(keys))
    lines.insert(group.fit.str());
  const verdict::LimitTable limits(measured.configuration.settings->limits);
  std::size_t timed = 0, uncalibrated = 0;
  for (std::size_t i = 0; i < verdict.cells.size() && i < measured.profiles.size(); ++i) {
    // A line over depths has no calibration of its own; its cells have.
    if (!has_judged_time(verdict.cells[i])) continue;
    if (lines.contains(verdict.cells[i].cell.str())) continue;
    ++timed;
    const profile::Profile& profile = measured.profiles[i];
    const auto calibrated = calibrations.find(profile.cell, profile.provenance);
    if (calibrated && verdict::still_holds(*calibrated, limits)) {
      verdict.cells[i].notes.push_back(verdict::words(*calibrated));
    } else {
      ++uncalibrated;
    }
  }
  if (uncalibrated == 0) return;
  const std::string limits_text =
      uncalibrated == timed ? std::string("these time limits")
                            : fmt::format("the time limits of {} of {} cells", uncalibrated, timed);
  verdict.notes.push_back(fmt::format(
      "weir calibrate tells if this machine is quiet enough for {}; it has not run here yet",
      limits_text));
}

namespace {

// Returns the base to calibrate with: the same program, or another build that --against names.
Result<BaseRequest> base_request(const CalibrateOptions& options) {
  const std::vector<std::string>& command = options.trailing_arguments;
  if (!options.against) {
    if (command.empty()) return BaseRequest{.spec = "", .command = {}, .own = true};
    return fail(Code::usage, "words after \"--\" are another build: --against -- COMMAND…");
  }
  const bool has_place = !options.against->empty(), has_command = !command.empty();
  if (has_place == has_command) {
    return fail(Code::usage,
                "--against takes another build of the same source: a REF, a DIR, or -- COMMAND…");
  }
  return BaseRequest{*options.against, command};
}

// Rewrites an error about gate.budget so that it names the options of weir calibrate.
Error add_budget_hint(Error error, const CalibrateOptions& options) {
  if (!run::is_about_budget(error)) return error;
  if (options.budget) error = run::name_budget_option(std::move(error));
  error.message += fmt::format(
      "\n  {} pairs a cell are asked for: --budget gives more time, --pairs asks for fewer",
      options.pairs);
  return error;
}

// Calibrates each cell of a run by replays of its pairs: simulated gates on the measured times. A
// cell that could not be run keeps its error.
verdict::Calibration calibrate_run(const Job& job, const MeasuredRun& measured,
                                   const CalibrateOptions& options, double budget) {
  std::vector<profile::PairedRuns> runs = measured.base_runs->pairs;
  std::map<std::string, std::string> errors;
  for (const profile::Profile& profile : measured.profiles) {
    if (!profile.errors.empty()) errors[profile.cell.str()] = profile.errors.front();
  }
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const std::string* error = look_up(errors, measured.base_runs->cells[i].cell.str());
    if (!runs[i].error && error != nullptr) runs[i].error = *error;
  }
  verdict::CalibrationFacts facts;
  facts.weir_version = k_version;
  facts.date = sys::date_of(job.world.clock.now());
  facts.config = measured.configuration.file;
  facts.base = measured.base_runs->facts.words;
  facts.two_builds = options.against.has_value();
  facts.budget_seconds = budget;
  facts.replays = options.replays;
  verdict::Calibration calibration = verdict::calibrate(
      facts, measured.base_runs->cells, runs, measured.configuration.settings->limits,
      gate_policy(measured.configuration.settings->gate));
  for (const profile::Profile& profile : measured.profiles) {
    if (!profile.profiling_cost) continue;
    calibration.notes.push_back(fmt::format("probes cost {:.1f} % of throughput in {}",
                                            *profile.profiling_cost * 100, profile.cell.str()));
  }
  const std::vector<std::string>& notes = measured.base_runs->facts.notes;
  calibration.notes.insert(calibration.notes.end(), notes.begin(), notes.end());
  return calibration;
}

}  // namespace

// Measures the cells against themselves in pairs, replays gates from the pairs, and stores how well
// this machine decides the limits.
Result<Answer> calibrate(const Job& given_job, const CalibrateOptions& options) {
  // These runs stay apart from those that `gate --from` and `baseline accept` look for.
  const Job job = given_job.below("calibrations");
  MeasureOptions measure_options;
  measure_options.plan.counts = false;
  measure_options.plan.cost_pairs = k_cost_pairs;
  measure_options.resume = options.resume;
  measure_options.verb = "calibrate";
  measure_options.min_pairs = static_cast<std::size_t>(options.pairs);
  WEIR_TRY(measure_options.against, base_request(options));
  WEIR_TRY(measure_options.output_places, report_places(job));
  WEIR_TRY(LoadedConfig loaded, load_config(job));
  double& budget_seconds = loaded.configuration.settings->gate.budget_seconds;
  const double budget = budget_seconds;
  if (options.budget) WEIR_TRY_SET(budget_seconds, unit::parse_duration_seconds(*options.budget));
  const config::Redactor redactor = loaded.configuration.redactor;
  WEIR_TRY(const MeasuredRun measured,
           measure_loaded(std::move(loaded), job, measure_options).map_error([&](Error error) {
             return add_budget_hint(redacted(std::move(error), redactor), options);
           }));
  job.log(fmt::format("replaying {} gates", options.replays));
  const verdict::Calibration calibration = calibrate_run(job, measured, options, budget);
  if (calibration.cells.empty()) {
    return fail(Code::config,
                "{}: no cell has a limit on a time that gates (max_drop, max_increase): there is "
                "nothing to calibrate",
                job.selection.config);
  }
  Calibrations calibrations(job.files());
  bool has_errors = false;
  for (const verdict::CalibratedCell& cell : calibration.cells) {
    has_errors = has_errors || cell.error;
    if (cell.error) continue;
    const auto path = calibrations.keep(cell);
    if (!path) job.log("weir: the calibration is not kept: " + path.error().message);
  }
  const verdict::Calibration redacted_calibration = redacted(calibration, redactor);
  const bool fits =
      calibration.keeps_budget || !measured.configuration.settings->gate.fail_on_inconclusive;
  ExitCode code = fits ? ExitCode::pass : ExitCode::inconclusive;
  if (has_errors) code = ExitCode::unmeasured;
  return Answer{report::calibration_text(redacted_calibration, {job.width(), job.colored()}),
                json_document(verdict::to_json(redacted_calibration)), code};
}

}  // namespace weir::flow
