// Builds cells as a gate judged them, and lists judgements that a gate neither explains nor lists
// as unexplained.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "gate/base/find.hpp"
#include "gate/explain/explain.hpp"

namespace weir::explain::test {

struct JudgedCell {
  verdict::CellVerdict verdict;

  explicit JudgedCell(const std::string& backend, const std::string& model = "tiny",
                      const std::string& prompt = "decode") {
    verdict.cell = *profile::CellKey::parse("llama.cpp/" + model + "/" + backend + "/" + prompt);
    verdict.device = backend;
    verdict.verdict = verdict::Outcome::fail;
  }

  JudgedCell& count(const std::string& name, std::int64_t before, std::int64_t after,
                    verdict::Outcome outcome = verdict::Outcome::fail) {
    verdict::Judgement& metric = add(name, outcome);
    metric.nature = profile::Nature::exact;
    metric.baseline = static_cast<double>(before);
    metric.current = static_cast<double>(after);
    metric.baseline_text = std::to_string(before);
    metric.current_text = std::to_string(after);
    return *this;
  }
  JudgedCell& rate(const std::string& name, double before, double after,
                   verdict::Outcome outcome = verdict::Outcome::fail) {
    verdict::Judgement& metric = add(name, outcome);
    metric.baseline = before;
    metric.current = after;
    return *this;
  }
  JudgedCell& kernel(const std::string& name, std::int64_t before, std::int64_t after) {
    verdict.put("kernels").changed.push_back(changed(name, before, after));
    verdict.put("kernels").verdict = verdict::Outcome::fail;
    return *this;
  }
  JudgedCell& op(const std::string& name, std::int64_t before, std::int64_t after) {
    verdict.put("placement").changed.push_back(changed(name, before, after));
    verdict.put("placement").verdict = verdict::Outcome::fail;
    return *this;
  }

 private:
  verdict::Judgement& add(const std::string& name, verdict::Outcome outcome) {
    verdict::Judgement& metric = *verdict.judgements.insert(
        verdict.judgements.begin() + std::ssize(verdict.metrics()), verdict::Judgement());
    metric.metric = unit::find_metric(name).value();
    metric.verdict = outcome;
    return metric;
  }
  static verdict::Changed changed(const std::string& name, std::int64_t before,
                                  std::int64_t after) {
    const auto side = [](std::int64_t count) {
      return count == 0 ? std::optional<Rational>() : Rational(count);
    };
    return {name, side(before), side(after)};
  }
};

// Returns judgements that need a reader and are neither in a cause of its cell nor unexplained, or
// is in both.
inline std::vector<std::string> lost(const verdict::GateVerdict& gate) {
  std::vector<std::string> list;
  for (const verdict::CellVerdict& cell : gate.cells) {
    if (cell.verdict != verdict::Outcome::fail) continue;
    const std::string name = cell.cell.str();
    std::set<std::string> claimed;
    for (const verdict::Cause& cause : gate.causes) {
      if (!holds(cause.cells, name)) continue;
      for (const Finding& finding : cell.findings) {
        if (finding.kind == cause.kind)
          claimed.insert(finding.claims.begin(), finding.claims.end());
      }
    }
    const auto look = [&](const std::string& what, verdict::Outcome outcome) {
      if (outcome != verdict::Outcome::fail && outcome != verdict::Outcome::inconclusive) return;
      const auto* rest = find_first(gate.unexplained, [&](const verdict::Unexplained& unexplained) {
        return unexplained.what == what;
      });
      const bool unexplained = rest != nullptr && holds(rest->cells, name);
      if (unexplained == claimed.contains(what)) list.push_back(name + ": " + what);
    };
    for (const auto& judgement : cell.judgements) look(judgement.metric.name, judgement.verdict);
  }
  return list;
}

}  // namespace weir::explain::test
