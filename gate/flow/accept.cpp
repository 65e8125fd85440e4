#include "gate/flow/accept.hpp"

#include <memory>

#include "gate/base/json.hpp"
#include "gate/base/text.hpp"
#include "gate/flow/allowances.hpp"
#include "gate/flow/measure.hpp"
#include "gate/flow/repository.hpp"
#include "gate/flow/stored_baselines.hpp"
#include "gate/flow/veiled.hpp"
#include "gate/report/layout.hpp"
#include "gate/source/tree_files.hpp"
#include "gate/sys/paths.hpp"
#include "gate/unit/metric.hpp"

namespace weir::flow {
namespace {

std::string why_not(const profile::Profile& profile) {
  if (!profile.errors.empty()) return profile.errors.front();
  if (profile.placement.state == profile::Placement::State::refuted) {
    return "its work did not run where it was asked to: " + profile.placement.reason;
  }
  if (profile.metrics.empty()) return profile.counts_skipped.value_or("nothing was measured");
  return "";
}

// What to write in the config so that the ops a cell ran on the CPU may stay there; "" when that is
// not what keeps it out.
std::string proposal(const profile::Profile& profile, const Taken& taken) {
  const auto engine = taken.allowed.find(profile.cell.engine);
  if (engine == taken.allowed.end()) return "";
  AllowedOps ops = engine->second;
  for (const auto& [op, times] : profile.placement.cpu_ops) {
    ops.insert({op, fmt::format("why it may stay on the CPU ({} times now)", times)});
  }
  if (ops.size() == engine->second.size()) return "";
  std::string lines =
      "    If they belong there, say so under the engine in the config:\n"
      "      cpu_ops_allowed:\n";
  for (const auto& [op, why] : ops) {
    // Quoted as JSON, which YAML reads too.
    lines += fmt::format("        {}: {}\n", dump_json(Json(op)), dump_json(Json(why)));
  }
  return lines;
}

std::string stored_value(const profile::Measurement& measurement) {
  if (measurement.exact) return measurement.exact->str();
  if (!measurement.value() || !measurement.repeatability) return "varies";
  return fmt::format("{} (within {} %)", unit::show(measurement.metric, *measurement.value()),
                     report::about(100 * *measurement.repeatability));
}

std::string changes(const std::optional<baseline::Baseline>& old, const baseline::Baseline& now) {
  std::vector<std::string> parts;
  for (const auto& [name, measurement] : now.counts) {
    if (measurement.metric.scope == unit::Scope::fixed) continue;
    const std::string value = stored_value(measurement);
    std::string before;
    if (old) {
      const auto found = old->counts.find(name);
      if (found != old->counts.end()) before = stored_value(found->second);
    }
    if (before == value) continue;
    const std::string change = before.empty() ? value : fmt::format("{} → {}", before, value);
    parts.push_back(fmt::format("{} {}", unit::label(measurement.metric), change));
  }
  if (parts.empty()) return "counts as they were";
  return text::join(parts);
}

// Counts that lie so far apart that no limit on them tells much.
std::string blind(const baseline::Baseline& now) {
  constexpr double k_too_far = 0.2;  // three times that is allowed
  std::vector<std::string> names;
  for (const auto& [name, measurement] : now.counts) {
    if (measurement.repeatability.value_or(0) > k_too_far && measurement.value() != 0)
      names.push_back(unit::label(measurement.metric));
  }
  if (names.empty()) return "";
  return fmt::format(
      "{} of its runs lie so far apart that a gate can hardly tell a regression from this\n"
      "    machine's noise: accept the cell again when fewer programs run beside it",
      text::join(names));
}

// What storing came to: told, and written as JSON, once it is kept.
struct Kept {
  std::string said;
  Json cells = Json::array();
  std::size_t accepted = 0, left_out = 0;
  std::vector<std::string> names;  // of cells whose files changed
};

Result<Kept> store(const AcceptOptions& options, const Taken& taken, StoredBaselines& stored) {
  Kept kept;
  const auto veil_error = [&](Error error) { return veiled(std::move(error), taken.veil); };
  const auto say = [&](const std::string& text) { kept.said += taken.veil.text(text); };
  const auto keep = [&](const profile::Profile& profile, std::string_view outcome, const char* what,
                        const std::string& words) {
    kept.cells.push_back({{"cell", taken.veil.cell(profile.cell).str()},
                          {"outcome", outcome},
                          {what, taken.veil.text(words)}});
  };
  for (const profile::Profile& profile : taken.profiles) {
    const std::string cell = profile.cell.str();
    if (const std::string why = why_not(profile); !why.empty()) {
      const bool skipped = profile.errors.empty() && profile.metrics.empty();
      say(fmt::format("{}  {}\n    {}\n", skipped ? "skipped " : "left out", cell, why));
      keep(profile, skipped ? "skipped" : "left out", "reason", why);
      if (profile.errors.empty()) say(proposal(profile, taken));
      kept.left_out += skipped ? 0 : 1;
      continue;
    }
    WEIR_TRY(const std::optional<baseline::Baseline> old,
             stored.of_class(profile.cell, profile.provenance.device_class).map_error(veil_error));
    const baseline::Baseline now = baseline::accept(profile, old, options.metrics);
    if (old && baseline::to_text(*old) == baseline::to_text(now)) {
      say(fmt::format("same      {}\n", cell));
      keep(profile, "same", "changes", "");
    } else {
      WEIR_TRY(const std::string path, stored.put(now).map_error(veil_error));
      say(fmt::format("accepted  {}\n    {}\n    {}\n", cell, changes(old, now), path));
      keep(profile, "accepted", "changes", changes(old, now));
      kept.cells.back()["path"] = taken.veil.text(path);
      if (const std::string why = blind(now); !why.empty()) {
        say(fmt::format("    warning: {}\n", why));
        kept.cells.back()["warning"] = taken.veil.text(why);
      }
      kept.names.push_back(cell);
    }
    ++kept.accepted;
  }
  return kept;
}

// Onto a branch, whose files are read again where somebody else was faster.
Result<Kept> store_on_branch(const Job& job, const AcceptOptions& options, const Taken& taken) {
  WEIR_TRY(const BaselinesPlace place, baselines_place(*options.baselines_ref));
  WEIR_TRY(const auto repository, Repository::around(job.world, job.folder()));
  Kept kept;
  const auto edit = [&](const std::optional<std::string>& parent) -> Result<BranchEdit> {
    std::unique_ptr<source::TreeFiles> files;
    if (parent) {
      WEIR_TRY(const std::string folder, baselines_folder(repository->git(), *parent, place));
      WEIR_TRY(files,
               source::TreeFiles::open(repository->git(), *parent, folder, job.asked.baselines));
    } else {
      files = source::TreeFiles::nothing(repository->git(), place.path.value_or("baselines"),
                                         job.asked.baselines);
    }
    StoredBaselines stored(*files, job.asked.baselines);
    WEIR_TRY(kept, store(options, taken, stored));
    return BranchEdit{files->changes(),
                      kept.names.size() == 1
                          ? "Accept " + kept.names.front() + " as the baseline"
                          : fmt::format("Accept {} cells as baselines", kept.names.size())};
  };
  WEIR_TRY(const std::string commit, edit_branch(*repository, place.ref, edit));
  kept.said += written_words(place.ref, commit);
  return kept;
}

}  // namespace

Result<Answer> accept(const Job& asked, const AcceptOptions& options) {
  for (const std::string& glob : options.metrics) {
    const auto& names = unit::metric_names();
    if (glob != "kernels" && glob.find('*') == std::string::npos && !unit::find_metric(glob) &&
        text::nearest(glob, names)) {
      return fail(Code::usage, "unknown metric \"{}\"{}", glob, text::did_you_mean(glob, names));
    }
  }
  if (options.allowances) {
    if (options.artifact || !options.run.empty() || asked.asked.counts_only) {
      return fail(Code::usage, "--allowances measures nothing: leave {} out",
                  options.artifact          ? "--from-artifact"
                  : asked.asked.counts_only ? "--counts-only"
                                            : "RUN");
    }
    return accept_allowed({*options.allowances, options.allowances_ref, options.baselines_ref},
                          asked);
  }
  if (options.artifact && !options.run.empty()) {
    return fail(Code::usage, "--from-artifact names the run itself: leave RUN out");
  }
  Job job = asked;
  if (options.baselines_ref) {
    WEIR_TRY(job.rules, rules_of_branch(*options.baselines_ref, job));
  }
  WEIR_TRY(const Taken taken, take(job, options));
  Kept kept;
  if (options.baselines_ref) {
    WEIR_TRY(kept, store_on_branch(job, options, taken));
  } else {
    StoredBaselines stored(job.files(), job.asked.baselines);
    WEIR_TRY(kept, store(options, taken, stored));
  }
  for (const std::string& note : taken.notes) kept.said += taken.veil.text(note + "\n");
  return Answer{kept.said + fmt::format("{} accepted, {} left out\n",
                                        report::plural(kept.accepted, "cell"), kept.left_out),
                document({{"schema", "weir.accepted/1"}, {"cells", std::move(kept.cells)}}),
                kept.left_out == 0 ? ExitCode::pass : ExitCode::unmeasured};
}

}  // namespace weir::flow
