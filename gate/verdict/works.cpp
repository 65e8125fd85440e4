// Single kernels and ops that limits name ("kernel_calls:mul_mat_vec*"): their calls, out of the
// multiset of kernels that both sides hold anyway.
#include <algorithm>

#include "gate/base/text.hpp"
#include "gate/unit/metric.hpp"
#include "gate/verdict/judging.hpp"

namespace weir::verdict {
namespace {

using profile::KernelSet;
using profile::Measurement;
using Calls = std::map<std::string, Rational>;  // metric name -> calls

std::string_view prefix_of(bool cpu) { return cpu ? "op_calls:" : "kernel_calls:"; }

// "MUL_MAT q8_0,f32->f32 256x64,256->64" is the op MUL_MAT: on the CPU kernels are ops.
std::string metric_of_work(const std::string& name, bool cpu) {
  return unit::work_name(prefix_of(cpu), cpu ? name.substr(0, name.find(' ')) : name);
}

// Nothing where the program does not name its kernels, or they varied.
std::optional<Calls> calls_of(const std::optional<KernelSet>& kernels, bool cpu) {
  if (!kernels || !kernels->named || kernels->varies) return std::nullopt;
  Calls calls;
  for (const auto& [name, count] : kernels->counts) {
    Rational& sum = calls[metric_of_work(name, cpu)];
    sum = sum.plus(count).value_or(sum);
  }
  return calls;
}

// Patterns of the limits of this cell that name such work.
std::vector<std::string> patterns_of(const Question& question) {
  const std::string_view prefix = prefix_of(question.candidate.device == "cpu");
  std::vector<std::string> patterns;
  for (const LimitEntry& entry : question.limits) {
    if (!entry.match.fits(question.candidate.cell)) continue;
    for (const std::string& pattern : entry.metrics) {
      if (pattern.starts_with(prefix)) patterns.push_back(pattern);
    }
  }
  return patterns;
}

void add_named(const std::optional<Calls>& calls, const std::vector<std::string>& patterns,
               std::vector<std::string>& names) {
  if (!calls) return;
  for (const auto& [name, count] : *calls) {
    const bool wanted = std::any_of(patterns.begin(), patterns.end(), [&](const auto& pattern) {
      return text::glob_match(pattern, name);
    });
    // A kernel without a name, in a file from outside, is no metric.
    if (wanted && unit::find_metric(name)) names.push_back(name);
  }
}

// What is not among the kernels of a side that names them ran no time: a fact, not an absence.
Measurement measured(const std::string& name, const Calls& calls) {
  const auto found = calls.find(name);
  Measurement made;
  made.metric = *unit::find_metric(name);
  made.nature = profile::Nature::exact;
  made.source = "kernels";
  made.exact = found == calls.end() ? Rational(0) : found->second;
  return made;
}

bool alike(const std::optional<KernelSet>& a, const std::optional<KernelSet>& b) {
  return a && b && a->scope == b->scope && a->length == b->length;
}

}  // namespace

std::vector<MetricVerdict> judge_works(const Question& question,
                                       std::vector<std::string>& not_judged) {
  const std::vector<std::string> patterns = patterns_of(question);
  if (patterns.empty()) return {};
  const bool cpu = question.candidate.device == "cpu";
  const baseline::Baseline* base = question.judge();
  const auto now = calls_of(question.candidate.kernels, cpu);
  const bool held = base != nullptr && (!now || alike(base->kernels, question.candidate.kernels));
  const auto before = held ? calls_of(base->kernels, cpu) : std::nullopt;
  std::vector<std::string> names;
  add_named(now, patterns, names);
  add_named(before, patterns, names);
  for (const std::string& pattern : patterns) {
    const bool one = pattern.find('*') == std::string::npos;
    if (one && unit::find_metric(pattern)) names.push_back(pattern);
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  std::vector<MetricVerdict> made;
  if (!now) {
    // A pass that ended in an error, or none, has said so already.
    if (question.candidate.errors.empty() && question.candidate.counted_runs > 0) {
      not_judged.push_back(
          fmt::format("{}: not judged, no probe named {} here, or they varied from run to run",
                      text::join(patterns), cpu ? "ops" : "kernels"));
    }
    return made;
  }
  for (const std::string& name : names) {
    const auto stored = before ? std::optional(measured(name, *before)) : std::nullopt;
    made.push_back(judge_count(question, measured(name, *now), stored ? &*stored : nullptr));
  }
  return made;
}

std::vector<std::string> limits_on_nothing(std::span<const CellVerdict> cells,
                                           std::span<const LimitEntry> limits,
                                           const Policy& policy) {
  std::vector<std::string> lines;
  for (const LimitEntry& entry : limits) {
    for (const std::string& pattern : entry.metrics) {
      if (!unit::names_work(pattern)) continue;
      const bool time =
          !pattern.starts_with(prefix_of(true)) && !pattern.starts_with(prefix_of(false));
      if (time && policy.counts_only) continue;
      bool measured = false, seen = false;
      for (const CellVerdict& cell : cells) {
        if (!entry.match.fits(cell.cell)) continue;
        if (cell.verdict == Outcome::error || cell.verdict == Outcome::skipped) {
          seen = true;  // what it would have shown is not known
          break;
        }
        for (const MetricVerdict& metric : cell.metrics) {
          measured = measured || (metric.metric.kind == unit::Kind::count) != time;
          if (!entry.covers(cell.cell, metric.metric.name)) continue;
          seen = seen || text::glob_match(pattern, metric.metric.name);
        }
      }
      if (measured && !seen) {
        lines.push_back(
            fmt::format("\"{}\": nothing by that name was measured ({})", pattern, entry.source));
      }
    }
  }
  return lines;
}

}  // namespace weir::verdict
