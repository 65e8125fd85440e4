#include "gate/explain/checklist.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "gate/explain/patterns.hpp"

namespace weir::explain {
namespace {

using Answer = Check::Answer;

Check unknown(std::string question, std::string why) {
  return {std::move(question), Answer::unknown, std::move(why)};
}

// A count of the later side held to "not more than".
Check at_most(const Evidence& evidence, const Bands& bands, const std::string& metric,
              const std::string& what) {
  const auto band = bands.find(metric);
  const double most = band != bands.end() && band->second.good_to ? *band->second.good_to : 0;
  const std::string question =
      most > 0 ? fmt::format("{}: {:g} a token or fewer", what, most) : what + " a token";
  const auto found = evidence.after.metrics.find(metric);
  if (found == evidence.after.metrics.end()) return unknown(question, "not counted");
  if (most <= 0) return unknown(question, "no band for it");
  const double value = found->second.value();
  return {question, value <= most ? Answer::fine : Answer::wrong, fmt::format("{:g}", value)};
}

bool any_kind(const std::vector<std::string_view>& kinds, std::initializer_list<Kind> wanted) {
  return std::any_of(wanted.begin(), wanted.end(), [&](Kind kind) {
    return std::find(kinds.begin(), kinds.end(), to_string(kind)) != kinds.end();
  });
}

Check slowest(const Evidence& evidence) {
  const std::string question = "The slowest operation is known";
  const Work* most = nullptr;
  double whole = 0;
  for (const Work& work : evidence.after.works) {
    if (!work.seconds) continue;
    whole += *work.seconds;
    if (most == nullptr || *work.seconds > *most->seconds) most = &work;
  }
  if (most == nullptr || whole <= 0) return unknown(question, "no op was timed: weir profile CELL");
  return {question, Answer::fine,
          fmt::format("{}, {:.0f} % of the time", safe(most->name), 100 * *most->seconds / whole)};
}

// Ops on the CPU that are not allowed there; of a verdict only those that changed.
std::string cpu_ops(const Evidence& evidence, const AllowedOps& allowed) {
  std::string names;
  for (const Work& work : evidence.after.works) {
    if (!work.on_cpu || work.kind != Work::Kind::op || work.times == Rational(0)) continue;
    if (allowed && allowed->contains(work.name)) continue;
    names += (names.empty() ? "" : ", ") + safe(work.name);
  }
  return names;
}

Check fallbacks(const Evidence& evidence, const std::vector<std::string_view>& kinds,
                const AllowedOps& allowed) {
  using verdict::Outcome;
  const std::string question = "No op runs on the CPU unasked";
  if (evidence.device == "cpu") return {question, Answer::fine, "a cell of the CPU"};
  if (any_kind(kinds, {Kind::work_moved_to_cpu}))
    return {question, Answer::wrong, "work moved there"};
  if (evidence.gate && evidence.gate->placement == Outcome::fail) {
    return {question, Answer::wrong, "the gate says that work ran elsewhere"};
  }
  const std::string names = cpu_ops(evidence, allowed);
  if (!names.empty() && !allowed) {
    return unknown(question, names + "; whether that is allowed is not known here");
  }
  if (!names.empty()) return {question, Answer::wrong, names};
  const auto counted = evidence.after.metrics.find(metric_name(evidence, "cpu_ops"));
  const bool known = counted != evidence.after.metrics.end();
  if (known && counted->second.exact == Rational(0)) return {question, Answer::fine, "none does"};
  // A verdict holds only the ops that changed; its placement has looked at all that were seen.
  if (evidence.gate && known && evidence.gate->placement == Outcome::pass) {
    return {question, Answer::fine, "the gate found none"};
  }
  if (!evidence.gate && evidence.cpu_ops_known) {
    return {question, Answer::fine, "none does, but for those that are allowed"};
  }
  return unknown(question,
                 evidence.gate ? "the verdict does not tell every op" : "no probe saw ops");
}

Check beside_a_baseline(const Evidence& evidence) {
  using verdict::Outcome;
  const std::string question = "Profiled beside a baseline";
  if (!evidence.gate) return {question, Answer::fine, "both sides are here"};
  const Outcome outcome = evidence.gate->cell;
  if (outcome == Outcome::fresh) return {question, Answer::wrong, "there is none: the cell is new"};
  if (outcome == Outcome::error || outcome == Outcome::skipped) {
    return unknown(question, "the cell was not measured");
  }
  return {question, Answer::fine, "the gate compared them"};
}

Check fusions(const Evidence& evidence, const std::vector<std::string_view>& kinds) {
  const std::string question = "Ops in a row are fused";
  if (any_kind(kinds, {Kind::fusion_lost})) return {question, Answer::wrong, "a fusion was lost"};
  const bool same = evidence.gate && evidence.gate->kernels == verdict::Outcome::pass;
  if (evidence.kernels_known || same) return {question, Answer::fine, "as much as before"};
  return unknown(question,
                 evidence.gate ? "kernels were not compared" : "kernels have no names here");
}

Check batching(const Evidence& evidence, const std::vector<std::string_view>& kinds) {
  const std::string question = "Work that may overlap is batched";
  if (any_kind(kinds, {Kind::batching_lost})) return {question, Answer::wrong, "batching was lost"};
  const std::string name = metric_name(evidence, "barriers");
  if (evidence.before.metrics.contains(name) && evidence.after.metrics.contains(name)) {
    return {question, Answer::fine, "as much as before"};
  }
  return unknown(question, "barriers were not counted on both sides");
}

}  // namespace

std::string_view to_string(Check::Answer answer) {
  switch (answer) {
    case Answer::fine:
      return "fine";
    case Answer::wrong:
      return "wrong";
    case Answer::unknown:
      break;
  }
  return "unknown";
}

std::vector<Check> checklist_of(const Evidence& evidence, const Bands& bands,
                                const std::vector<std::string_view>& kinds,
                                const AllowedOps& cpu_ops_allowed) {
  return {
      beside_a_baseline(evidence),
      at_most(evidence, bands, "syncs_per_token", "Syncs"),
      at_most(evidence, bands, "dispatches_per_token", "Dispatches"),
      slowest(evidence),
      unknown("As fast as other quantizations of the model",
              "a matter of other cells: weir compare"),
      fallbacks(evidence, kinds, cpu_ops_allowed),
      batching(evidence, kinds),
      fusions(evidence, kinds),
  };
}

}  // namespace weir::explain
