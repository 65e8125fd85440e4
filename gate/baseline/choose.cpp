// What `weir baseline accept` stores, and which stored baseline may judge a candidate; if none, why
// not.

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/baseline/baseline.hpp"
#include "gate/unit/device_api.hpp"

namespace weir::baseline {
namespace {

using Stored = std::vector<const Baseline*>;

// How many parts two classes have in common from the left ("vulkan-10005-0-d-1-0a").
std::size_t shared_parts(std::string_view a, std::string_view b) {
  const auto left = text::split(a, '-'), right = text::split(b, '-');
  const auto [end, other] = std::mismatch(left.begin(), left.end(), right.begin(), right.end());
  return static_cast<std::size_t>(end - left.begin());
}

// The same API and device, in any version.
bool same_device(std::string_view a, std::string_view b) {
  const std::string device = unit::device_without_version(a);
  return !device.empty() && (b == device || b.starts_with(device + "-"));
}

// Of two versions of one preset ("llama-bench 1"), which explain a change that nobody wrote.
std::string preset_words(const std::string& then, const std::string& now) {
  const auto old = text::split(then, ' '), present = text::split(now, ' ');
  if (old.size() != 2 || present.size() != 2 || old[0] != present[0] || then == now) return "";
  return fmt::format("; preset {} is version {} now, the baseline was made with version {}",
                     text::printable(present[0]), present[1], text::printable(old[1]));
}

// ": model, prompt changed".
std::string changed_parts(const Baseline& stored, const profile::Provenance& candidate) {
  std::vector<std::string> changed =
      profile::other_parts(candidate.fingerprint_parts, stored.fingerprint_parts);
  for (const auto& [name, hash] : stored.fingerprint_parts) {
    if (name != profile::k_variables && !candidate.fingerprint_parts.contains(name)) {
      changed.push_back(name);
    }
  }
  return (changed.empty() ? "" : ": " + text::join(changed) + " changed") +
         preset_words(stored.preset, candidate.preset);
}

// "llvmpipe (LLVM 15.0.6, 256 bits)" -> "llvmpipe": what stands in brackets may differ between
// machines of one device class, and the file must not. So may a CPU's model: its class alone names
// it.
std::string stored_device_name(const std::string& device_class, const std::string& device_name) {
  if (unit::device_without_version(device_class) == unit::k_cpu) return "";
  const std::size_t bracket = device_name.find(" (");
  return bracket == 0 ? device_name : device_name.substr(0, bracket);
}

std::string shown_device(const Baseline& stored) {
  const std::string name = stored_device_name(stored.device_class, stored.device_name);
  return text::printable(name.empty() ? stored.device_class : name);
}

using profile::Measurement;
using profile::Profile;

struct Chosen {
  std::span<const std::string> globs;
  [[nodiscard]] bool all() const { return globs.empty(); }
  [[nodiscard]] bool holds(std::string_view name) const {
    const auto fits = [&](const std::string& glob) { return text::glob_match(glob, name); };
    return all() || std::ranges::any_of(globs, fits);
  }
};

// A drift is a number of timed runs, which has a limit and needs no base.
bool is_count(const Measurement& measured) {
  return measured.metric.kind == unit::Kind::count && measured.value().has_value() &&
         measured.nature != profile::Nature::sampled &&
         !(measured.metric.name.ends_with("_drift") && unit::find_metric(measured.metric.name));
}

// A baseline holds what decides and nothing of the machine: no warnings, and of counts that vary
// only their median.
Measurement stored(Measurement measured) {
  measured.warnings.clear();
  if (measured.exact) {
    measured.samples.clear();
    measured.repeatability.reset();
  } else {
    measured.samples = {*measured.value()};
  }
  return measured;
}

void accept_counts(const Profile& measured, const Chosen& chosen, Baseline& into) {
  std::erase_if(into.counts, [&](const auto& item) {
    return chosen.holds(item.first) &&
           !profile::why_skipped(measured, item.second.metric, item.second.source);
  });
  const std::string fits(unit::k_fits);
  if (!measured.metrics.contains(fits)) into.counts.erase(fits);
  bool dispatches = false, instructions = false;
  for (const auto& [name, measurement] : measured.metrics) {
    if (!is_count(measurement) || !chosen.holds(name)) continue;
    into.counts[name] = stored(measurement);
    dispatches = dispatches || measurement.metric.base == "dispatches";
    instructions = instructions || measurement.metric.base == "instructions" ||
                   measurement.metric.base == "system_calls";
  }
  // Kernels are what the dispatches are made of: one without the other would contradict itself.
  if (dispatches || chosen.holds("kernels")) {
    into.kernels = measured.kernels;
    into.codes = measured.codes;
    into.code_groups = measured.code_groups;
    into.code_facts = measured.code_facts;
    into.compiler = measured.compiler;
    into.graph_ops = measured.graph_ops;
  }
  const bool keeps = measured.instructions_skipped || measured.host_skipped;
  if (instructions || (chosen.all() && !keeps)) into.functions = measured.functions;
  if (chosen.all() || chosen.holds("placement")) {
    into.placement = measured.placement;
    into.work = measured.work;
  }
  if (into.lengths.empty() || chosen.all()) into.lengths = measured.provenance.lengths;
}

void accept_session(const Profile& measured, const Chosen& chosen, Baseline& into) {
  Session session;
  session.engine_build = measured.provenance.engine_build.value_or("");
  for (const auto& [name, measurement] : measured.metrics) {
    const auto kind = measurement.metric.kind;
    if (kind == unit::Kind::count || kind == unit::Kind::usage || measurement.samples.empty()) {
      continue;
    }
    if (chosen.holds(name)) session.samples[name] = measurement.samples;
  }
  if (session.samples.empty()) return;
  session.reference = measured.reference;
  std::vector<Session>& sessions = into.sessions[measured.provenance.machine_class];
  if (!sessions.empty() && sessions.back().engine_build != session.engine_build) sessions.clear();
  // The same run accepted twice is one session: counted twice it would look like agreement.
  if (std::ranges::count(sessions, session.samples, &Session::samples) > 0) return;
  sessions.push_back(std::move(session));
  if (sessions.size() > k_sessions_kept) {
    sessions.erase(sessions.begin(), sessions.end() - static_cast<std::ptrdiff_t>(k_sessions_kept));
  }
}

}  // namespace

Choice choose(const profile::Profile& candidate, std::span<const Baseline> stored) {
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
  const auto of_class = [&](const Stored& list) {
    return std::ranges::find(list, from.device_class, &Baseline::device_class);
  };

  if (const auto found = of_class(same_cell); found != same_cell.end()) {
    return {Choice::Match::same, **found, ""};
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
    return {Choice::Match::nearest, *nearest,
            "the baseline is of the nearest device class, " + nearest->device_class};
  }
  if (const auto found = of_class(others); found != others.end()) {
    return {Choice::Match::fingerprint, **found,
            "the baselines have another fingerprint" + changed_parts(**found, from)};
  }
  if (!same_cell.empty()) {
    const auto devices =
        collect<std::string>(same_cell, [](const Baseline* one) { return shown_device(*one); });
    return {Choice::Match::other_class, *same_cell.front(),
            fmt::format("the baselines are of another device class: {}", text::join(devices))};
  }
  if (!others.empty()) {
    return {Choice::Match::fingerprint, *others.front(),
            fmt::format("the baselines have another fingerprint and device class ({}){}",
                        shown_device(*others.front()), changed_parts(*others.front(), from))};
  }
  return {Choice::Match::none, std::nullopt, "no baseline is stored"};
}

std::vector<std::int64_t> kept_lengths(const profile::CellKey& cell,
                                       const profile::Provenance& from,
                                       std::span<const Baseline> stored) {
  constexpr std::size_t k_points = 3;
  std::vector<Baseline> usable;
  for (const Baseline& one : stored) {
    if (one.fingerprint == from.fingerprint && one.lengths.size() == k_points) {
      usable.push_back(one);
    }
  }
  profile::Profile candidate;
  candidate.cell = cell;
  candidate.provenance = from;
  const Choice choice = choose(candidate, usable);
  return choice.baseline ? choice.baseline->lengths : std::vector<std::int64_t>{};
}

Choice choice_of(const profile::Profile& candidate, const profile::Profile& base) {
  if (!base.errors.empty()) {
    std::string why = "the base could not measure this cell: " + base.errors.front();
    const auto last_words = text::lines(base.stderr_tail);
    if (!last_words.empty()) why += ": " + text::printable(last_words.back());
    return {Choice::Match::none, std::nullopt, std::move(why), !profile::only_does_not_fit(base)};
  }
  Choice choice;
  choice.baseline = accept(base, std::nullopt, {});
  // Two runs are compared whatever their fingerprints; the differences are told.
  const auto& mine = candidate.provenance.fingerprint_parts;
  const auto parts = profile::other_parts(base.provenance.fingerprint_parts, mine);
  if (!parts.empty()) choice.reason = "differs in " + text::join(parts);
  choice.baseline->fingerprint = candidate.provenance.fingerprint;
  choice.baseline->fingerprint_parts = mine;
  const Choice by_class = choose(candidate, {&*choice.baseline, 1});
  choice.match = by_class.match;
  if (!by_class.reason.empty()) {
    choice.reason += (choice.reason.empty() ? "" : "; ") + by_class.reason;
  }
  return choice;
}

Baseline accept(const Profile& measured, const std::optional<Baseline>& old,
                std::span<const std::string> metric_globs, const std::string& reason) {
  const Chosen chosen{metric_globs};
  const profile::Provenance& from = measured.provenance;
  Baseline made;
  // Another fingerprint or device class is another cell: nothing of the old one describes it.
  if (old && old->fingerprint == from.fingerprint && old->device_class == from.device_class) {
    made = *old;
  }
  made.cell = measured.cell.str();
  made.fingerprint = from.fingerprint;
  made.fingerprint_parts = from.fingerprint_parts;
  made.preset = from.preset;
  made.device_class = from.device_class;
  made.device_name = stored_device_name(from.device_class, from.device_name);
  const bool counted =
      std::ranges::any_of(measured.metrics, [](const auto& item) { return is_count(item.second); });
  // A run that counted nothing says nothing about the counts that are stored.
  if (counted) {
    accept_counts(measured, chosen, made);
  } else if (made.counts.empty()) {
    made.placement = measured.placement;
    made.work = measured.work;
  }
  const auto without_times = [](Baseline one) {
    one.sessions.clear();
    one.device_name.clear();        // for people
    one.work.likely.clear();        // which rounding may move
    one.fingerprint_parts.clear();  // which may name more, and make the same fingerprint
    return to_text(one);
  };
  if (!reason.empty() || (old && without_times(*old) != without_times(made))) made.reason = reason;
  accept_session(measured, chosen, made);
  return made;
}

}  // namespace weir::baseline
