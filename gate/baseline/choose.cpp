// Chooses which stored baseline may judge a candidate, and makes what `weir baseline accept`
// stores.

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/baseline/baseline.hpp"
#include "gate/profile/variation.hpp"
#include "gate/unit/device_api.hpp"

namespace weir::baseline {
namespace {

using Stored = std::vector<const Baseline*>;

// The number of parts that two classes have in common from the left ("vulkan-10005-0-d-1-0a").
std::size_t shared_parts(std::string_view a, std::string_view b) {
  const auto parts_of_a = text::split(a, '-'), parts_of_b = text::split(b, '-');
  const auto mismatch = std::ranges::mismatch(parts_of_a, parts_of_b);
  return static_cast<std::size_t>(mismatch.in1 - parts_of_a.begin());
}

// The same API and device, in any version.
bool same_device(std::string_view a, std::string_view b) {
  const std::string device = unit::device_without_version(a);
  return !device.empty() && (b == device || b.starts_with(device + "-"));
}

// Says that two versions of one preset ("llama-bench 1") are compared: that explains a change that
// nobody wrote. "" if they are equal or of other presets.
std::string preset_text(const std::string& stored, const std::string& candidate) {
  const auto old_parts = text::split(stored, ' '), new_parts = text::split(candidate, ' ');
  if (old_parts.size() != 2 || new_parts.size() != 2 || stored == candidate) return "";
  if (old_parts[0] != new_parts[0]) return "";
  return fmt::format("; preset {} is version {} now, the baseline was made with version {}",
                     text::printable(new_parts[0]), new_parts[1], text::printable(old_parts[1]));
}

// Returns how the fingerprint differs: ": model, prompt changed", and another version of a preset.
std::string changed_parts(const Baseline& stored, const profile::Provenance& candidate) {
  std::vector<std::string> changed =
      profile::other_parts(candidate.fingerprint_parts, stored.fingerprint_parts);
  for (const auto& [name, hash] : stored.fingerprint_parts) {
    if (name != profile::k_variables && !candidate.fingerprint_parts.contains(name)) {
      changed.push_back(name);
    }
  }
  return (changed.empty() ? "" : ": " + text::join(changed) + " changed") +
         preset_text(stored.preset, candidate.preset);
}

// "llvmpipe (LLVM 15.0.6, 256 bits)" -> "llvmpipe": the text in brackets may differ between
// machines of one device class, and the file must not. A CPU's model may differ too: its class
// alone names it.
std::string stored_device_name(const std::string& device_class, const std::string& device_name) {
  if (unit::device_without_version(device_class) == unit::k_cpu) return "";
  const std::size_t bracket = device_name.find(" (");
  return bracket == 0 ? device_name : device_name.substr(0, bracket);
}

std::string device_text(const Baseline& stored) {
  const std::string name = stored_device_name(stored.device_class, stored.device_name);
  return text::printable(name.empty() ? stored.device_class : name);
}

using profile::Measurement;
using profile::Profile;

// The metrics that are accepted; none named: all.
struct MetricSelection {
  std::span<const std::string> globs;
  [[nodiscard]] bool all() const { return globs.empty(); }
  [[nodiscard]] bool holds(std::string_view name) const {
    const auto fits = [&](const std::string& glob) { return text::glob_match(glob, name); };
    return all() || std::ranges::any_of(globs, fits);
  }
};

// Returns true for a count that a baseline stores.
bool is_count(const Measurement& measured) {
  return measured.metric.kind == unit::Kind::count && measured.value().has_value() &&
         measured.nature != profile::Nature::sampled && !unit::is_load_count(measured.metric);
}

// Returns a measurement as a baseline stores it: no warnings, and of counts that no
// machine repeats only their median.
Measurement strip_machine_facts(Measurement measured) {
  measured.warnings.clear();
  if (measured.exact) {
    measured.samples.clear();
    measured.relative_spread.reset();
  } else if (!profile::find_variation(measured)) {
    measured.samples = {*measured.value()};
  }
  return measured;
}

// Replaces how many values of the metric a process prints, and in which form.
void accept_printed_values(const Profile& measured, const std::string& metric, Baseline& into) {
  const auto is_of_metric = [&](const auto& entry) {
    return profile::printed_metric(entry.first) == metric;
  };
  std::erase_if(into.work.printed_values, is_of_metric);
  for (const auto& entry : measured.work.printed_values) {
    if (is_of_metric(entry)) into.work.printed_values.insert(entry);
  }
}

// Replaces the selected counts in the baseline `into` by the measured ones, and with them kernels,
// functions and placement.
void accept_counts(const Profile& measured, const MetricSelection& chosen, Baseline& into) {
  std::erase_if(into.counts, [&](const auto& item) {
    return chosen.holds(item.first) &&
           !profile::skip_reason(measured, item.second.metric, item.second.source);
  });
  const std::string fits(unit::k_fits);
  if (!measured.metrics.contains(fits)) into.counts.erase(fits);
  bool has_dispatches = false, has_instructions = false;
  for (const auto& [name, measurement] : measured.metrics) {
    if (!is_count(measurement) || !chosen.holds(name)) continue;
    into.counts[name] = strip_machine_facts(measurement);
    accept_printed_values(measured, name, into);
    has_dispatches = has_dispatches || measurement.metric.base == "dispatches";
    has_instructions = has_instructions || measurement.metric.base == "instructions" ||
                       measurement.metric.base == "system_calls" ||
                       measurement.metric.base == "python_calls";
  }
  // Kernels are what the dispatches add up to: one without the other would contradict itself.
  if (has_dispatches || chosen.holds("kernels")) {
    into.kernels = measured.kernels;
    into.codes = measured.codes;
    into.code_groups = measured.code_groups;
    into.code_facts = measured.code_facts;
    into.compiler = measured.compiler;
    into.graph_ops = measured.graph_ops;
  }
  const bool lacks_functions = measured.instructions_skip_reason || measured.host_skip_reason;
  if (has_instructions || (chosen.all() && !lacks_functions)) into.functions = measured.functions;
  if (chosen.all() || chosen.holds("placement")) {
    into.placement = measured.placement;
    into.work = measured.work;
  }
  if (into.lengths.empty() || chosen.all()) into.lengths = measured.provenance.lengths;
}

// Adds a session (the selected times of one run) to the baseline `into`. Another engine build
// replaces all sessions; only the newest few are kept.
void accept_session(const Profile& measured, const MetricSelection& chosen, Baseline& into) {
  Session session;
  session.engine_build = measured.provenance.engine_build.value_or("");
  for (const auto& [name, measurement] : measured.metrics) {
    const auto kind = measurement.metric.kind;
    if (kind == unit::Kind::count || kind == unit::Kind::usage || measurement.samples.empty()) {
      continue;
    }
    if (!chosen.holds(name)) continue;
    session.samples[name] = measurement.samples;
    accept_printed_values(measured, name, into);
  }
  if (session.samples.empty()) return;
  session.reference = measured.reference;
  std::vector<Session>& sessions = into.sessions[measured.provenance.machine_class];
  if (!sessions.empty() && sessions.back().engine_build != session.engine_build) sessions.clear();
  session.run = measured.provenance.timed_run;
  // The same run accepted twice is one session: two would look like agreement. Another run may have
  // equal samples, where memory does not vary.
  const bool is_stored = std::ranges::any_of(sessions, [&](const Session& stored) {
    const bool is_other_run =
        !stored.run.empty() && !session.run.empty() && stored.run != session.run;
    return stored.samples == session.samples && !is_other_run;
  });
  if (is_stored) return;
  sessions.push_back(std::move(session));
  if (sessions.size() > k_sessions_kept) {
    sessions.erase(sessions.begin(), sessions.end() - static_cast<std::ptrdiff_t>(k_sessions_kept));
  }
}

}  // namespace

BaselineChoice choose_baseline(const profile::Profile& candidate,
                               std::span<const Baseline> stored) {
  const profile::Provenance& from = candidate.provenance;
  const std::string cell = candidate.cell.str();
  Stored same_cell, others;
  for (const Baseline& baseline : stored) {
    if (baseline.cell != cell) continue;
    Stored& list = baseline.fingerprint == from.fingerprint ? same_cell : others;
    list.push_back(&baseline);
  }
  std::ranges::sort(same_cell, {}, &Baseline::device_class);
  std::ranges::sort(others, {}, &Baseline::device_class);
  const auto find_class = [&](const Stored& list) {
    return std::ranges::find(list, from.device_class, &Baseline::device_class);
  };

  if (const auto match = find_class(same_cell); match != same_cell.end()) {
    return {BaselineChoice::Match::same, **match, ""};
  }
  const Baseline* nearest = nullptr;
  for (const Baseline* baseline : same_cell) {
    if (!same_device(baseline->device_class, from.device_class)) continue;
    if (nearest == nullptr || shared_parts(baseline->device_class, from.device_class) >
                                  shared_parts(nearest->device_class, from.device_class)) {
      nearest = baseline;
    }
  }
  if (nearest != nullptr) {
    return {BaselineChoice::Match::nearest, *nearest,
            "the baseline is of the nearest device class, " + nearest->device_class};
  }
  if (const auto match = find_class(others); match != others.end()) {
    return {BaselineChoice::Match::fingerprint, **match,
            std::string(k_other_settings) + changed_parts(**match, from)};
  }
  if (!same_cell.empty()) {
    const auto devices =
        collect<std::string>(same_cell, [](const Baseline* item) { return device_text(*item); });
    return {BaselineChoice::Match::other_class, *same_cell.front(),
            fmt::format("the baselines are of another device class: {}", text::join(devices))};
  }
  if (!others.empty()) {
    return {BaselineChoice::Match::fingerprint, *others.front(),
            fmt::format("{}, on another device class ({}){}", k_other_settings,
                        device_text(*others.front()), changed_parts(*others.front(), from))};
  }
  return {BaselineChoice::Match::none, std::nullopt, "no baseline is stored"};
}

// Returns the lengths (in tokens) at which the baseline that would judge this cell was counted.
// Empty if no stored one has three.
std::vector<std::int64_t> comparable_lengths(const profile::CellKey& cell,
                                             const profile::Provenance& provenance,
                                             std::span<const Baseline> stored) {
  constexpr std::size_t k_lengths_per_fit = 3;
  std::vector<Baseline> usable;
  for (const Baseline& baseline : stored) {
    if (baseline.fingerprint == provenance.fingerprint &&
        baseline.lengths.size() == k_lengths_per_fit) {
      usable.push_back(baseline);
    }
  }
  profile::Profile candidate;
  candidate.cell = cell;
  candidate.provenance = provenance;
  const BaselineChoice choice = choose_baseline(candidate, usable);
  return choice.baseline ? choice.baseline->lengths : std::vector<std::int64_t>{};
}

std::optional<std::size_t> fewest_varying_values(const profile::Provenance& from,
                                                 std::span<const Baseline> stored) {
  std::optional<std::size_t> fewest;
  for (const Baseline& baseline : stored) {
    if (baseline.fingerprint != from.fingerprint) continue;
    for (const auto& [name, count] : baseline.counts) {
      const auto varied = profile::find_variation(count);
      if (varied && varied->low < varied->high)
        fewest = std::min(fewest.value_or(varied->runs), varied->runs);
    }
  }
  return fewest;
}

// Chooses another run's profile of the same cell as the base, whatever its fingerprint (what
// identifies the cell). Without a baseline if that run could not measure the cell.
BaselineChoice choose_run(const profile::Profile& candidate, const profile::Profile& base) {
  BaselineChoice choice;
  if (!base.errors.empty()) {
    choice.reason = "the base could not measure this cell: " + base.errors.front();
    const auto last_words = text::lines(base.stderr_tail);
    if (!last_words.empty()) choice.reason += ": " + text::printable(last_words.back());
    choice.base_failed = !profile::only_does_not_fit(base);
    return choice;
  }
  const auto& candidate_parts = candidate.provenance.fingerprint_parts;
  const auto other_parts = profile::other_parts(base.provenance.fingerprint_parts, candidate_parts);
  // With the candidate's fingerprint, the base is chosen by its device class alone.
  Baseline baseline = accept(base, /*old=*/std::nullopt, /*metric_globs=*/{});
  baseline.fingerprint = candidate.provenance.fingerprint;
  baseline.fingerprint_parts = candidate_parts;
  const std::span<const Baseline> only_base(&baseline, 1);
  const BaselineChoice by_class = choose_baseline(candidate, only_base);
  choice.match = by_class.match;
  choice.is_run = true;
  choice.processes = profile::count_processes(base);
  choice.baseline = std::move(baseline);
  if (!other_parts.empty()) choice.reason = "differs in " + text::join(other_parts);
  if (!by_class.reason.empty()) text::append_item(choice.reason, "; ", by_class.reason);
  return choice;
}

// Returns the text of a baseline without its times and all that may change without meaning.
static std::string counts_text(Baseline baseline) {
  baseline.sessions.clear();
  baseline.device_name.clear();        // for people
  baseline.work.likely.clear();        // rounding may move it
  baseline.fingerprint_parts.clear();  // more parts may make the same fingerprint
  return to_text(baseline);
}
// Returns the baseline to store: the old one with the selected metrics of a run. Starts anew if
// fingerprint or device class differ.
Baseline accept(const Profile& measured, const std::optional<Baseline>& old,
                std::span<const std::string> metric_globs, const std::string& reason) {
  const MetricSelection chosen{metric_globs};
  const profile::Provenance& from = measured.provenance;
  Baseline result;
  // Another fingerprint or device class is another cell: the old baseline does not describe it.
  if (old && old->fingerprint == from.fingerprint && old->device_class == from.device_class) {
    result = *old;
  }
  result.cell = measured.cell.str();
  result.fingerprint = from.fingerprint;
  result.fingerprint_parts = from.fingerprint_parts;
  result.preset = from.preset;
  result.device_class = from.device_class;
  result.device_name = stored_device_name(from.device_class, from.device_name);
  const bool counted =
      std::ranges::any_of(measured.metrics, [](const auto& item) { return is_count(item.second); });
  // A run that counted nothing says nothing about the counts that are stored.
  if (counted) {
    accept_counts(measured, chosen, result);
  } else if (result.counts.empty()) {
    result.placement = measured.placement;
    result.work = measured.work;
  }
  // A reason of counts that stay as they were belongs to them.
  const bool has_changed = old && counts_text(*old) != counts_text(result);
  if (has_changed || result.reason.empty()) result.reason = reason;
  accept_session(measured, chosen, result);
  return result;
}

}  // namespace weir::baseline
