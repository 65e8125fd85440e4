#include <algorithm>

#include "gate/app/interrupted.hpp"
#include "gate/app/known.hpp"
#include "gate/app/reference.hpp"
#include "gate/app/session_ready.hpp"
#include "gate/base/text.hpp"
#include "gate/sys/clock.hpp"
#include "gate/verdict/over_depth.hpp"

namespace weir::app {
namespace {

// The rules that a run was judged by, where these were not the configuration's own, and what it was
// allowed.
Result<void> take_rules_of_run(const run::RunHeader& header, const config::Known& known,
                               Measured& measured) {
  if (header.extra.is_object() && header.extra.contains("allowances")) {
    WEIR_TRY(measured.allowed, allowed_from_json(header.extra["allowances"]));
  }
  if (!header.extra.is_object() || !header.extra.contains("rules")) return {};
  WEIR_TRY(measured.rules, rules_used_from_json(header.extra["rules"]));
  const std::string& text = measured.rules->config_text;
  if (text.empty()) return {};
  WEIR_TRY(const BaseSettings base, parse_base_settings(text, header.config_file, known));
  config::take_rules(base.settings, *measured.settings);
  return {};
}

}  // namespace

Result<Measured> read_measured(const CommonOptions& options, const std::string& run,
                               const sys::Files& files) {
  Measured measured;
  measured.folder = run;
  if (run.empty()) {
    WEIR_TRY(measured.folder, run::newest_run(files, options.out));
  }
  WEIR_TRY(run::RunFile file, run::read_run(files, measured.folder));
  // Limits that expired since then still hold for what was measured under them.
  config::Known known = known_now(files, file.header.config_file);
  known.today = sys::date_of(file.header.started_at);
  WEIR_TRY(config::Settings settings,
           config::parse_settings(file.header.config_text, file.header.config_file, known));
  measured.settings = std::make_unique<config::Settings>(std::move(settings));
  measured.veil = veil_of(*measured.settings, file.header.config_file);
  WEIR_TRY(measured.shard, run::shard_facts(file.header.extra));
  WEIR_CHECK(take_rules_of_run(file.header, known, measured));
  const Interrupted interrupted(file);
  interrupted.leave_out_counts(file.records);
  measured.profiles =
      profile::assemble_all(file.header.cells, file.header.unavailable, file.records);
  take_reference(*measured.settings, measured.profiles);
  const auto matrix = config::expand(*measured.settings);
  measured.some_cells = matrix && file.header.cells.size() < matrix->cells.size();
  if (!file.header.base_cells.empty()) {
    const Json& said = file.header.extra.value("against", Json());
    const auto facts = base_facts_from_json(said.is_object() ? said : Json::object());
    if (!facts) {
      return fail(Code::data, "{}: it ran beside a base that its journal does not describe",
                  measured.folder);
    }
    sys::RealFiles reading;
    measured.beside = measured_beside(*facts, file.header, measured.profiles, file.records,
                                      CachedCounts(reading, base_counts_folder(measured.folder)));
  }
  measured.config_file = file.header.config_file;
  measured.notes = file.header.notes;
  JsonReader extra(file.header.extra, "extra");
  measured.commit = commit_of_run(file.header.extra);
  measured.counts_only = extra.optional_boolean("counts_only").value_or(false);
  if (file.torn) measured.notes.push_back("the journal's last line was cut short and left out");
  if (!options.cells.empty()) {
    measured.some_cells = true;
    std::erase_if(measured.profiles, [&](const profile::Profile& profile) {
      const profile::CellKey line = profile.cell.line();  // it selects all of its depths
      return std::none_of(options.cells.begin(), options.cells.end(), [&](const std::string& glob) {
        return text::glob_match(glob, profile.cell.str()) ||
               text::glob_match(glob, measured.veil.cell(profile.cell).str()) ||
               text::glob_match(glob, line.str()) ||
               text::glob_match(glob, measured.veil.cell(line).str());
      });
    });
    if (measured.profiles.empty()) {
      return fail(Code::usage, "{}: no cell matches {}", measured.folder,
                  text::join(options.cells));
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

}  // namespace weir::app
