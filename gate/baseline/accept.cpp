// What `weir baseline accept` stores.
#include <algorithm>

#include "gate/base/text.hpp"
#include "gate/baseline/baseline.hpp"

namespace weir::baseline {
namespace {

using profile::Measurement;
using profile::Profile;

class Chosen {
 public:
  explicit Chosen(std::span<const std::string> globs) : globs_(globs) {}
  [[nodiscard]] bool all() const { return globs_.empty(); }
  [[nodiscard]] bool holds(std::string_view name) const {
    return all() || std::any_of(globs_.begin(), globs_.end(), [&](const std::string& glob) {
             return text::glob_match(glob, name);
           });
  }

 private:
  std::span<const std::string> globs_;
};

bool is_count(const Measurement& measured) {
  return measured.metric.kind == unit::Kind::count && measured.value().has_value() &&
         measured.nature != profile::Nature::sampled;
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

// "llvmpipe (LLVM 15.0.6, 256 bits)" -> "llvmpipe": what stands in brackets may differ between
// machines of one device class, and the file must not.
std::string without_details(const std::string& device_name) {
  const std::size_t bracket = device_name.find(" (");
  return bracket == 0 ? device_name : device_name.substr(0, bracket);
}

void accept_counts(const Profile& measured, const Chosen& chosen, Baseline& into) {
  const bool keeps_instructions = measured.instructions_skipped.has_value();
  std::erase_if(into.counts, [&](const auto& item) {
    return chosen.holds(item.first) &&
           !(keeps_instructions && item.second.metric.base == "instructions");
  });
  bool dispatches = false, instructions = false;
  for (const auto& [name, measurement] : measured.metrics) {
    if (!is_count(measurement) || !chosen.holds(name)) continue;
    into.counts[name] = stored(measurement);
    dispatches = dispatches || measurement.metric.base == "dispatches";
    instructions = instructions || measurement.metric.base == "instructions";
  }
  // Kernels are what the dispatches are made of: one without the other would contradict itself.
  if (dispatches || chosen.holds("kernels")) into.kernels = measured.kernels;
  if (instructions || (chosen.all() && !keeps_instructions)) into.functions = measured.functions;
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
    if (measurement.metric.kind == unit::Kind::count || measurement.samples.empty()) continue;
    if (chosen.holds(name)) session.samples[name] = measurement.samples;
  }
  if (session.samples.empty()) return;
  session.reference = measured.reference;
  std::vector<Session>& sessions = into.sessions[measured.provenance.machine_class];
  if (!sessions.empty() && sessions.back().engine_build != session.engine_build) sessions.clear();
  // The same run accepted twice is one session: counted twice it would look like agreement.
  for (const Session& known : sessions) {
    if (known.samples == session.samples) return;
  }
  sessions.push_back(std::move(session));
  if (sessions.size() > k_sessions_kept) {
    sessions.erase(sessions.begin(), sessions.end() - static_cast<std::ptrdiff_t>(k_sessions_kept));
  }
}

}  // namespace

Baseline accept(const Profile& measured, const std::optional<Baseline>& old,
                std::span<const std::string> metric_globs) {
  const Chosen chosen(metric_globs);
  const profile::Provenance& from = measured.provenance;
  Baseline made;
  // Another fingerprint or device class is another cell: nothing of the old one describes it.
  if (old && old->fingerprint == from.fingerprint && old->device_class == from.device_class) {
    made = *old;
  }
  made.cell = measured.cell.str();
  made.fingerprint = from.fingerprint;
  made.fingerprint_parts = from.fingerprint_parts;
  made.device_class = from.device_class;
  made.device_name = without_details(from.device_name);
  const bool counted = std::any_of(measured.metrics.begin(), measured.metrics.end(),
                                   [](const auto& item) { return is_count(item.second); });
  // A run that counted nothing says nothing about the counts that are stored.
  if (counted) {
    accept_counts(measured, chosen, made);
  } else if (made.counts.empty()) {
    made.placement = measured.placement;
    made.work = measured.work;
  }
  accept_session(measured, chosen, made);
  return made;
}

}  // namespace weir::baseline
