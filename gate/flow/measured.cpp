#include <algorithm>
#include <map>

#include "gate/base/text.hpp"
#include "gate/flow/configure.hpp"
#include "gate/flow/measure.hpp"
#include "gate/run/unfinished.hpp"
#include "gate/sys/clock.hpp"
#include "gate/verdict/over_depth.hpp"

namespace weir::flow {
namespace {

// What a run that was cut off lacks, in the profiles and words of what was read of it.
// A counted pass that lacks a process gives no counts: two points of three fit a line that nobody
// planned. Times that are missing leave those that are there; the first line of a report tells.
class Interrupted {
 public:
  explicit Interrupted(const run::RunFile& file) : cells_(run::unfinished(file)) {}

  // Before profiles are made of them.
  void leave_out_counts(std::vector<profile::RunRecord>& records) const;
  // Errors of cells, what was not judged, and why nothing of it may be stored.
  void tell(Measured& measured) const;

 private:
  std::map<std::string, run::Unfinished> cells_;
};

std::string ran(std::int64_t missing, std::int64_t planned) {
  return fmt::format("{} of {} processes ran: the run was interrupted", planned - missing, planned);
}

void Interrupted::leave_out_counts(std::vector<profile::RunRecord>& records) const {
  std::erase_if(records, [&](const profile::RunRecord& record) {
    const auto found = cells_.find(record.cell);
    return record.pass == profile::Pass::counted && found != cells_.end() &&
           found->second.counted > 0;
  });
}

void Interrupted::tell(Measured& measured) const {
  std::size_t without_times = 0;
  std::int64_t missing = 0, planned = 0;
  for (profile::Profile& profile : measured.profiles) {
    const auto found = cells_.find(profile.cell.str());
    if (found == cells_.end()) continue;
    const run::Unfinished& lacks = found->second;
    missing += lacks.counted + lacks.timed;
    planned += lacks.counted_planned + lacks.timed_planned;
    if (lacks.timed > 0) ++without_times;
    const bool no_time = lacks.timed > 0 && lacks.timed == lacks.timed_planned;
    if (lacks.counted == 0 && !(no_time && lacks.counted_planned == 0)) continue;
    std::erase(profile.errors, profile::k_no_record);
    profile.errors.push_back(lacks.counted > 0
                                 ? "counted: " + ran(lacks.counted, lacks.counted_planned)
                                 : "timed: " + ran(lacks.timed, lacks.timed_planned));
  }
  if (without_times > 0) {
    measured.not_judged.push_back(
        fmt::format("timed processes missing in {} of {} cells: the run was interrupted",
                    without_times, measured.profiles.size()));
  }
  if (missing > 0) {
    measured.interrupted = fmt::format(
        "{} lacks {} of {} processes of its cells: it was interrupted\n"
        "  weir gate --resume {} goes on with it",
        measured.folder, missing, planned, measured.folder);
  }
}

// The rules that a run was judged by, where these were not the configuration's own, and what it was
// allowed.
Result<void> take_rules_of_run(const run::RunHeader& header, const config::Known& known,
                               Measured& measured) {
  if (header.extra.is_object() && header.extra.contains("allowances")) {
    WEIR_TRY(measured.allowed, allowed_from_json(header.extra["allowances"]));
  }
  if (!header.extra.is_object() || !header.extra.contains("rules")) return {};
  WEIR_TRY(measured.known.rules, rules_used_from_json(header.extra["rules"]));
  const std::string& text = measured.known.rules->config_text;
  if (text.empty()) return {};
  WEIR_TRY(const BaseSettings base, parse_base_settings(text, header.config_file, known));
  config::take_rules(base.settings, *measured.known.settings);
  return {};
}

}  // namespace

Result<Measured> read_measured(const Job& job, const std::string& run) {
  Measured measured;
  measured.folder = run;
  if (run.empty()) {
    WEIR_TRY(measured.folder, run::newest_run(job.files(), job.asked.out));
  }
  WEIR_TRY(run::RunFile file, run::read_run(job.files(), measured.folder));
  // Limits that expired since then still hold for what was measured under them.
  config::Known known = known_now(job.world, file.header.config_file);
  known.today = sys::date_of(file.header.started_at);
  WEIR_TRY(measured.known, configured(file.header.config_text, file.header.config_file, known));
  WEIR_TRY(measured.shard, run::shard_facts(file.header.extra));
  WEIR_CHECK(take_rules_of_run(file.header, known, measured));
  const Interrupted interrupted(file);
  interrupted.leave_out_counts(file.records);
  measured.profiles =
      profile::assemble_all(file.header.cells, file.header.unavailable, file.records);
  take_reference(*measured.known.settings, measured.profiles);
  const auto matrix = config::expand(*measured.known.settings);
  measured.some_cells = matrix && file.header.cells.size() < matrix->cells.size();
  if (!file.header.base_cells.empty()) {
    const Json& said = file.header.extra.value("against", Json());
    const auto facts = base_facts_from_json(said.is_object() ? said : Json::object());
    if (!facts) {
      return fail(Code::data, "{}: it ran beside a base that its journal does not describe",
                  measured.folder);
    }
    measured.beside =
        measured_beside(*facts, file.header, measured.profiles, file.records,
                        CachedCounts(job.files(), base_counts_folder(measured.folder)));
  }
  measured.known.notes = file.header.notes;
  JsonReader extra(file.header.extra, "extra");
  measured.commit = commit_of_run(file.header.extra);
  measured.counts_only = extra.optional_boolean("counts_only").value_or(false);
  if (file.torn)
    measured.known.notes.push_back("the journal's last line was cut short and left out");
  if (!job.asked.cells.empty()) {
    measured.some_cells = true;
    std::erase_if(measured.profiles, [&](const profile::Profile& profile) {
      const profile::CellKey line = profile.cell.line();  // it selects all of its depths
      return std::none_of(
          job.asked.cells.begin(), job.asked.cells.end(), [&](const std::string& glob) {
            return text::glob_match(glob, profile.cell.str()) ||
                   text::glob_match(glob, measured.known.veil.cell(profile.cell).str()) ||
                   text::glob_match(glob, line.str()) ||
                   text::glob_match(glob, measured.known.veil.cell(line).str());
          });
    });
    if (measured.profiles.empty()) {
      return fail(Code::usage, "{}: no cell matches {}", measured.folder,
                  text::join(job.asked.cells));
    }
  }
  interrupted.tell(measured);
  if (!file.header.base_cells.empty() && !file.ended) {
    measured.not_judged.emplace_back("pairs may be missing: the run was interrupted");
    if (measured.interrupted.empty()) {
      measured.interrupted = fmt::format(
          "{} was interrupted beside its base\n  --resume {} and the "
          "same --against go on with it",
          measured.folder, measured.folder);
    }
  }
  tell_shard(measured);
  measured.profiles = verdict::with_fits(std::move(measured.profiles));
  return measured;
}

}  // namespace weir::flow
