#include "gate/verdict/reference.hpp"

#include <algorithm>
#include <cmath>

#include "gate/stats/quantile.hpp"

namespace weir::verdict {
namespace {

using profile::Reference;

bool same_workload(const Reference& a, const std::optional<Reference>& b) {
  return b && a.cell == b->cell && a.fingerprint == b->fingerprint &&
         a.engine_build == b->engine_build && a.metric == b->metric;
}

bool positive(const std::vector<double>& rates) {
  return !rates.empty() && std::all_of(rates.begin(), rates.end(),
                                       [](double rate) { return std::isfinite(rate) && rate > 0; });
}

// Sample by sample; nothing where a round lacks one of the two.
std::optional<std::vector<double>> at_speed(const std::vector<double>& samples,
                                            const std::vector<double>& rates, double speed,
                                            unit::Better better) {
  if (samples.size() != rates.size() || !positive(rates)) return std::nullopt;
  std::vector<double> made;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const double faster = rates[i] / speed;
    made.push_back(better == unit::Better::higher ? samples[i] / faster : samples[i] * faster);
  }
  return made;
}

const std::vector<baseline::Session>* sessions_here(const Question& question) {
  const baseline::Baseline* base = question.judge();
  if (base == nullptr) return nullptr;
  const auto found = base->sessions.find(question.candidate.provenance.machine_class);
  return found == base->sessions.end() || found->second.empty() ? nullptr : &found->second;
}

}  // namespace

bool is_reference(const profile::Profile& candidate) {
  return candidate.reference && candidate.reference->cell == candidate.cell.str();
}

std::optional<Normalized> normalized(const profile::Profile& candidate,
                                     const profile::Measurement& current,
                                     const std::vector<const baseline::Session*>& sessions) {
  if (!candidate.reference || current.metric.kind != unit::Kind::time || sessions.empty()) {
    return std::nullopt;
  }
  const Reference& now = *candidate.reference;
  if (!positive(now.rates)) return std::nullopt;
  const double speed = *stats::median(now.rates);
  const auto plain = [&](const std::vector<double>& samples, const Reference& beside) {
    return at_speed(samples, beside.rates, speed, current.metric.better);
  };
  Normalized made;
  for (const baseline::Session* session : sessions) {
    if (!same_workload(now, session->reference)) return std::nullopt;
    auto samples = plain(session->samples.at(current.metric.name), *session->reference);
    if (!samples) return std::nullopt;
    made.sessions.push_back(std::move(*samples));
  }
  auto samples = plain(current.samples, now);
  if (!samples) return std::nullopt;
  made.current = std::move(*samples);
  return made;
}

std::optional<std::string> reference_note(const Question& question) {
  const auto& now = question.candidate.reference;
  if (!now || question.pairs != nullptr) return std::nullopt;
  if (is_reference(question.candidate)) {
    return "the reference workload: its times tell how fast the machine is, and are not judged";
  }
  const auto* sessions = sessions_here(question);
  if (sessions == nullptr) return std::nullopt;
  std::vector<double> then;
  for (const baseline::Session& session : *sessions) {
    if (!same_workload(*now, session.reference) || !positive(session.reference->rates)) {
      return fmt::format(
          "the reference workload {} as it is did not run beside the stored samples: times are "
          "held "
          "to them as they are, until this cell is accepted again",
          now->cell);
    }
    then.push_back(*stats::median(session.reference->rates));
  }
  const auto speed = stats::median(now->rates);
  const auto whole = [&](const auto& samples) {
    return std::all_of(sessions->begin(), sessions->end(), [&](const baseline::Session& session) {
      const auto stored = session.samples.find(samples.metric.name);
      return stored == session.samples.end() ||
             stored->second.size() == session.reference->rates.size();
    });
  };
  for (const auto& [name, measured] : question.candidate.metrics) {
    if (measured.metric.kind != unit::Kind::time || measured.samples.empty()) continue;
    if (measured.samples.size() == now->rates.size() && whole(measured)) continue;
    return fmt::format(
        "a round lacks a process of this cell or of the reference workload {}: {} is held to "
        "stored "
        "samples as they are",
        now->cell, unit::label(measured.metric));
  }
  if (!speed || !positive(now->rates)) return std::nullopt;
  return fmt::format(
      "times are held to stored ones by the reference workload {}, which runs at {:.2f} of its "
      "stored speed",
      now->cell, *speed / *stats::median(then));
}

}  // namespace weir::verdict
