#include "gate/flow/calibrate.hpp"

#include "gate/base/find.hpp"
#include "gate/base/hash.hpp"
#include "gate/flow/reports.hpp"
#include "gate/report/calibration_text.hpp"
#include "gate/sys/clock.hpp"
#include "gate/sys/paths.hpp"
#include "gate/verdict/over_depth.hpp"

namespace weir::flow {
namespace {

constexpr std::int64_t k_cost_pairs = 8;
constexpr std::uint64_t k_largest_calibration = std::uint64_t{1} << 20;

bool judged_a_time(const verdict::CellVerdict& cell) {
  using verdict::Outcome;
  return std::ranges::any_of(cell.metrics(), [](const auto& metric) {
    return metric.metric.kind != unit::Kind::count && metric.limit.mode == verdict::Mode::gate &&
           (metric.limit.max_drop || metric.limit.max_increase) &&
           (metric.verdict == Outcome::pass || metric.verdict == Outcome::fail ||
            metric.verdict == Outcome::improved || metric.verdict == Outcome::inconclusive);
  });
}

// Below the folder of all of them.
std::string path_of(const profile::CellKey& cell, const std::string& machine_class,
                    const std::string& fingerprint) {
  return fmt::format("{}/{}.json", machine_class, short_hash(cell.str() + "\n" + fingerprint, 16));
}

}  // namespace

Calibrations::Calibrations(sys::Files& files) : files_(files) {
  if (const auto cache = source::default_cache_folder()) {
    folder_ = sys::join_path(*cache, "calibration");
  }
}

std::optional<verdict::CalibratedCell> Calibrations::of(
    const profile::CellKey& cell, const profile::Provenance& provenance) const {
  if (folder_.empty() || provenance.machine_class.empty()) return std::nullopt;
  const std::string path = path_of(cell, provenance.machine_class, provenance.fingerprint);
  const auto text = files_.read(sys::join_path(folder_, path), k_largest_calibration);
  if (!text) return std::nullopt;
  auto read = parse_json(*text).and_then(verdict::calibrated_cell_from_json);
  const bool is_it = read && read->cell == cell && read->fingerprint == provenance.fingerprint &&
                     read->machine_class == provenance.machine_class;
  return is_it ? std::optional(std::move(*read)) : std::nullopt;
}

Result<std::string> Calibrations::keep(const verdict::CalibratedCell& cell) {
  if (folder_.empty())
    return fail(Code::config, "no place for a cache: set WEIR_CACHE to a folder");
  const std::string path =
      sys::join_path(folder_, path_of(cell.cell, cell.machine_class, cell.fingerprint));
  WEIR_CHECK(files_.make_dirs(sys::folder_of(path)));
  WEIR_CHECK(files_.write_atomic(path, document(write_fields(cell))));
  return path;
}

std::map<std::string, double> calibrated_pairs(const Calibrations& calibrations,
                                               const std::vector<run::PreparedCell>& cells,
                                               const config::Settings& settings) {
  std::map<std::string, double> pairs;
  for (const run::PreparedCell& cell : cells) {
    const auto known = calibrations.of(cell.cell.key, cell.facts.provenance);
    if (known && verdict::still_holds(*known, settings.limits)) {
      pairs[cell.cell.key.str()] = known->typical_pairs();
    }
  }
  return pairs;
}

void tell_calibration(const Measured& measured, const Calibrations& calibrations,
                      verdict::GateVerdict& verdict) {
  const auto keys = collect<profile::CellKey>(measured.profiles, &profile::Profile::cell);
  std::set<std::string> lines;
  for (const verdict::DepthGroup& group : verdict::depth_groups(keys))
    lines.insert(group.fit.str());
  std::size_t timed = 0, unknown = 0;
  for (std::size_t i = 0; i < verdict.cells.size() && i < measured.profiles.size(); ++i) {
    // A line over depths is made of cells that are calibrated, and is not itself.
    if (!judged_a_time(verdict.cells[i])) continue;
    if (lines.contains(verdict.cells[i].cell.str())) continue;
    ++timed;
    const profile::Profile& profile = measured.profiles[i];
    const auto known = calibrations.of(profile.cell, profile.provenance);
    if (known && verdict::still_holds(*known, measured.known.settings->limits)) {
      verdict.cells[i].notes.push_back(verdict::words(*known));
    } else {
      ++unknown;
    }
  }
  if (unknown == 0) return;
  const std::string which =
      unknown == timed ? std::string("these limits on times were")
                       : fmt::format("the limits on times of {} of {} cells were", unknown, timed);
  verdict.notes.push_back(which + " never calibrated on this machine: weir calibrate");
}

namespace {

Result<BaseRequest> wanted_base(const CalibrateOptions& options) {
  const std::vector<std::string>& words = options.words;
  if (!options.against) {
    if (words.empty()) return BaseRequest{.spec = "", .command = {}, .own = true};
    return fail(Code::usage, "words after \"--\" are another build: --against -- COMMAND…");
  }
  if (options.against->empty() == words.empty()) {
    return fail(Code::usage,
                "--against takes another build of the same source: a REF, a DIR, or -- COMMAND…");
  }
  return BaseRequest{*options.against, words};
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
verdict::Calibration judge(const Job& job, const Measured& measured,
                           const CalibrateOptions& options, double budget) {
  std::vector<profile::PairedRuns> runs = measured.beside->pairs;
  std::map<std::string, std::string> errors;
  for (const profile::Profile& profile : measured.profiles) {
    if (!profile.errors.empty()) errors[profile.cell.str()] = profile.errors.front();
  }
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const std::string* error = look_up(errors, measured.beside->cells[i].cell.str());
    if (!runs[i].error && error != nullptr) runs[i].error = *error;
  }
  verdict::CalibrationFacts facts;
  facts.weir_version = k_version;
  facts.date = sys::date_of(job.world.clock.now());
  facts.config = measured.known.file;
  facts.base = measured.beside->facts.words;
  facts.two_builds = options.against.has_value();
  facts.budget_seconds = budget;
  facts.replays = options.replays;
  verdict::Calibration made =
      verdict::calibrate(facts, measured.beside->cells, runs, measured.known.settings->limits,
                         policy_of(measured.known.settings->gate));
  for (const profile::Profile& profile : measured.profiles) {
    if (!profile.profiling_cost) continue;
    made.notes.push_back(fmt::format("probes cost {:.1f} % of throughput in {}",
                                     *profile.profiling_cost * 100, profile.cell.str()));
  }
  const std::vector<std::string>& notes = measured.beside->facts.notes;
  made.notes.insert(made.notes.end(), notes.begin(), notes.end());
  return made;
}

}  // namespace

Result<Answer> calibrate(const Job& asked, const CalibrateOptions& options) {
  // Apart from the runs that `gate --from` and `baseline accept` look for.
  const Job job = asked.below("calibrations");
  MeasureOptions wanted;
  wanted.plan.counts = false;
  wanted.plan.cost_pairs = k_cost_pairs;
  wanted.resume = options.resume;
  wanted.verb = "calibrate";
  wanted.least_pairs = static_cast<std::size_t>(options.pairs);
  WEIR_TRY(wanted.against, wanted_base(options));
  WEIR_TRY(wanted.output_places, places_of(job));
  WEIR_TRY(Loaded loaded, load_config(job));
  double& budget_seconds = loaded.known.settings->gate.budget_seconds;
  const double budget = budget_seconds;
  if (options.budget) WEIR_SET(budget_seconds, unit::parse_duration_seconds(*options.budget));
  const config::Redactor redactor = loaded.known.redactor;
  WEIR_TRY(const Measured measured,
           measure_loaded(std::move(loaded), job, wanted).map_error([&](Error error) {
             return of_calibration(redacted(std::move(error), redactor), options);
           }));
  job.talk(fmt::format("replaying {} gates", options.replays));
  const verdict::Calibration made = judge(job, measured, options, budget);
  if (made.cells.empty()) {
    return fail(Code::config,
                "{}: no cell has a limit on a time that gates (max_drop, max_increase): there is "
                "nothing to calibrate",
                job.asked.config);
  }
  Calibrations kept(job.files());
  bool broken = false;
  for (const verdict::CalibratedCell& cell : made.cells) {
    broken = broken || cell.error;
    if (cell.error) continue;
    const auto path = kept.keep(cell);
    if (!path) job.talk("weir: the calibration is not kept: " + path.error().message);
  }
  const verdict::Calibration shown = redacted(made, redactor);
  const bool fits = made.holds || !measured.known.settings->gate.fail_on_inconclusive;
  return Answer{report::calibration_text(shown, {job.width(), job.colored()}),
                document(verdict::to_json(shown)),
                broken ? ExitCode::unmeasured
                : fits ? ExitCode::pass
                       : ExitCode::inconclusive};
}

}  // namespace weir::flow
