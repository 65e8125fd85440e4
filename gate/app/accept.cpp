#include "gate/app/accept.hpp"

#include <algorithm>
#include <map>
#include <memory>

#include "gate/app/session.hpp"
#include "gate/app/stored_baselines.hpp"
#include "gate/app/veiled.hpp"
#include "gate/base/json.hpp"
#include "gate/base/text.hpp"
#include "gate/sys/paths.hpp"
#include "gate/unit/metric.hpp"

namespace weir::app {
namespace {

// "exact" is a promise: so many fresh processes of this engine agreed.
constexpr std::int64_t k_processes_that_agree = 3;
// What only nearly repeats says how nearly.
constexpr std::int64_t k_processes_that_vary = 10;

struct AcceptOptions {
  CommonOptions common;
  std::string run;
  std::vector<std::string> metrics;
};

using AllowedOps = std::map<std::string, std::string>;  // op -> why

struct Taken {
  std::vector<profile::Profile> profiles;
  std::map<std::string, AllowedOps> allowed;  // by engine, as the config has it
  std::vector<std::string> notes;
  config::Veil veil;  // over all that is said
};

bool is_count(const profile::Measurement& measurement) {
  return measurement.metric.kind == unit::Kind::count;
}

// Times of an earlier run beside counts taken just now; both must be of the same engine.
Result<void> add_times(profile::Profile& fresh, const profile::Profile& earlier,
                       const std::string& run, std::vector<std::string>& notes) {
  const std::string cell = fresh.cell.str();
  if (fresh.provenance.fingerprint != earlier.provenance.fingerprint) {
    notes.push_back(
        fmt::format("{}: {} measured another configuration; its times are left out", cell, run));
    return {};
  }
  const auto differ = [](const std::string& a, const std::string& b) {
    return !a.empty() && !b.empty() && a != b;
  };
  // Times belong to one build on one machine class; the session is filed under the fresh run's.
  const bool elsewhere = differ(fresh.provenance.machine_class, earlier.provenance.machine_class) ||
                         differ(fresh.provenance.engine_build.value_or(""),
                                earlier.provenance.engine_build.value_or(""));
  if (elsewhere) {
    notes.push_back(
        fmt::format("{}: {} was measured on another machine class or build; its times are left out",
                    cell, run));
  }
  for (const auto& [name, measurement] : earlier.metrics) {
    if (!is_count(measurement) && elsewhere) continue;
    if (is_count(measurement)) {
      const auto now = fresh.metrics.find(name);
      const bool same = now == fresh.metrics.end() || !measurement.exact || !now->second.exact ||
                        *measurement.exact == *now->second.exact;
      if (!same) {
        return fail(Code::data,
                    "{}: {} was {} in {} and is {} now: the engine changed since\n"
                    "  measure again (weir gate), then accept",
                    cell, unit::label(measurement.metric), measurement.exact->str(), run,
                    now->second.exact->str());
      }
    } else {
      fresh.metrics.insert({name, measurement});
      fresh.timed_runs = earlier.timed_runs;
    }
  }
  if (fresh.provenance.machine_class.empty()) {
    fresh.provenance.machine_class = earlier.provenance.machine_class;
  }
  if (!fresh.provenance.engine_build)
    fresh.provenance.engine_build = earlier.provenance.engine_build;
  if (fresh.provenance.device_class.empty()) {
    fresh.provenance.device_class = earlier.provenance.device_class;
  }
  return {};
}

std::map<std::string, AllowedOps> allowed_ops(const config::Settings& settings) {
  std::map<std::string, AllowedOps> allowed;
  for (const config::EngineSettings& engine : settings.engines) {
    allowed[engine.name] = engine.cpu_ops_allowed;
  }
  return allowed;
}

// They take long: not where they are not to be stored.
bool wants_instructions(const AcceptOptions& options) {
  const auto matches = [](const std::string& glob) {
    for (const char* name :
         {"instructions_per_token", "instructions_per_prefill", "instructions_fixed"}) {
      if (text::glob_match(glob, name)) return true;
    }
    return glob.starts_with("instructions");
  };
  return options.metrics.empty() ||
         std::any_of(options.metrics.begin(), options.metrics.end(), matches);
}

Result<Taken> take(const AcceptOptions& options, sys::Files& files) {
  Taken taken;
  MeasureOptions wanted;
  wanted.plan.counted_processes = k_processes_that_agree;
  wanted.plan.instruction_processes = wants_instructions(options) ? k_processes_that_vary : 0;
  wanted.output_places = {options.common.baselines};
  if (options.common.json && *options.common.json != "-") {
    wanted.output_places.push_back(*options.common.json);
  }
  const bool have_run =
      !options.run.empty() || run::newest_run(files, options.common.out).has_value();
  // Counting to accept is no run to judge or to take times from: it is kept apart.
  CommonOptions counting = options.common;
  counting.out = sys::join_path(options.common.out, "accept");
  if (options.common.counts_only || !have_run) {
    wanted.plan.times = !options.common.counts_only;
    WEIR_TRY(Measured measured,
             measure(options.common.counts_only ? counting : options.common, wanted, files));
    taken.allowed = allowed_ops(*measured.settings);
    taken.veil = std::move(measured.veil);
    taken.profiles = std::move(measured.profiles);
    return taken;
  }
  WEIR_TRY(Measured earlier, read_measured(options.common, options.run, files));
  if (!earlier.interrupted.empty()) return fail(Code::usage, "{}", earlier.interrupted);
  const bool countable =
      std::any_of(earlier.profiles.begin(), earlier.profiles.end(),
                  [](const profile::Profile& profile) { return !profile.counts_skipped; });
  taken.allowed = allowed_ops(*earlier.settings);
  taken.veil = earlier.veil;
  if (!countable) {
    taken.profiles = std::move(earlier.profiles);
    return taken;
  }
  wanted.plan.times = false;
  WEIR_TRY(Measured fresh, measure(counting, wanted, files));
  taken.allowed = allowed_ops(*fresh.settings);
  taken.veil = std::move(fresh.veil);
  for (profile::Profile& profile : fresh.profiles) {
    const auto same_cell =
        std::find_if(earlier.profiles.begin(), earlier.profiles.end(),
                     [&](const profile::Profile& one) { return one.cell == profile.cell; });
    if (same_cell != earlier.profiles.end()) {
      if (!same_cell->errors.empty()) profile.errors = same_cell->errors;
      WEIR_CHECK(
          add_times(profile, *same_cell, earlier.folder, taken.notes).map_error([&](Error error) {
            return veiled(std::move(error), taken.veil);
          }));
    }
    taken.profiles.push_back(std::move(profile));
  }
  return taken;
}

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
  return fmt::format("{} (within {:.2g} %)", unit::show(measurement.metric, *measurement.value()),
                     100 * *measurement.repeatability);
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

Result<ExitCode> accept(const AcceptOptions& options) {
  sys::RealFiles files;
  for (const std::string& glob : options.metrics) {
    const auto& names = unit::metric_names();
    if (glob != "kernels" && glob.find('*') == std::string::npos && !unit::find_metric(glob) &&
        text::nearest(glob, names)) {
      return fail(Code::usage, "unknown metric \"{}\"{}", glob, text::did_you_mean(glob, names));
    }
  }
  WEIR_TRY(const Taken taken, take(options, files));
  const auto veil_error = [&](Error error) { return veiled(std::move(error), taken.veil); };
  const auto say = [&](const std::string& text) { answer(options.common, taken.veil.text(text)); };
  StoredBaselines stored(files, options.common.baselines);
  std::size_t accepted = 0;
  std::size_t left_out = 0;
  Json cells = Json::array();
  const auto keep = [&](const profile::Profile& profile, std::string_view outcome, const char* what,
                        const std::string& words) {
    cells.push_back({{"cell", taken.veil.cell(profile.cell).str()},
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
      left_out += skipped ? 0 : 1;
      continue;
    }
    WEIR_TRY(const std::vector<baseline::Baseline> known,
             stored.of_cell(profile.cell).map_error(veil_error));
    std::optional<baseline::Baseline> old;
    for (const baseline::Baseline& one : known) {
      if (one.device_class == profile.provenance.device_class) old = one;
    }
    const baseline::Baseline now = baseline::accept(profile, old, options.metrics);
    if (old && baseline::to_text(*old) == baseline::to_text(now)) {
      say(fmt::format("same      {}\n", cell));
      keep(profile, "same", "changes", "");
    } else {
      WEIR_TRY(const std::string path, stored.put(now).map_error(veil_error));
      say(fmt::format("accepted  {}\n    {}\n    {}\n", cell, changes(old, now), path));
      keep(profile, "accepted", "changes", changes(old, now));
      cells.back()["path"] = taken.veil.text(path);
    }
    ++accepted;
  }
  for (const std::string& note : taken.notes) say(note + "\n");
  answer(options.common, fmt::format("{} cells accepted, {} left out\n", accepted, left_out));
  WEIR_CHECK(write_json(
      options.common,
      dump_json({{"schema", "weir.accepted/1"}, {"cells", std::move(cells)}}, 1) + "\n"));
  return left_out == 0 ? ExitCode::pass : ExitCode::unmeasured;
}

}  // namespace

void add_accept(CLI::App& baseline) {
  CLI::App* verb = baseline.add_subcommand("accept", "Make what was measured the new baseline");
  auto options = std::make_shared<AcceptOptions>();
  verb->add_option("RUN", options->run, "The run whose times are taken (default: the newest)");
  add_common(*verb, options->common, Takes::measuring);
  verb->add_option("--metric", options->metrics, "Only these metrics (globs); may be repeated")
      ->type_name("GLOB")
      ->allow_extra_args(false);
  verb->footer(
      "Each exact count is taken in three fresh processes first; only if they agree is it exact.\n"
      "Instructions are taken ten times: how far they lie apart is what later counts may vary by.\n"
      "Times come from RUN; with --counts-only, or where no run is kept, nothing older is used.\n\n"
      "Examples:\n  weir baseline accept --counts-only\n"
      "  weir baseline accept --cell 'llama.cpp/*/vulkan/*' --metric 'dispatches*'");
  set_action(*verb, [options] { return accept(*options); });
}

}  // namespace weir::app
