// Cells as a gate judged them, in a few words.
#pragma once

#include <string>

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
    verdict::MetricVerdict& metric = add(name, outcome);
    metric.nature = profile::Nature::exact;
    metric.baseline = static_cast<double>(before);
    metric.current = static_cast<double>(after);
    metric.baseline_text = std::to_string(before);
    metric.current_text = std::to_string(after);
    return *this;
  }
  JudgedCell& rate(const std::string& name, double before, double after,
                   verdict::Outcome outcome = verdict::Outcome::fail) {
    verdict::MetricVerdict& metric = add(name, outcome);
    metric.baseline = before;
    metric.current = after;
    return *this;
  }
  JudgedCell& kernel(const std::string& name, std::int64_t before, std::int64_t after) {
    verdict.kernels.push_back(changed(name, before, after));
    verdict.kernels_verdict = verdict::Outcome::fail;
    return *this;
  }
  JudgedCell& op(const std::string& name, std::int64_t before, std::int64_t after) {
    verdict.ops.push_back(changed(name, before, after));
    verdict.placement_verdict = verdict::Outcome::fail;
    return *this;
  }

 private:
  verdict::MetricVerdict& add(const std::string& name, verdict::Outcome outcome) {
    verdict::MetricVerdict& metric = verdict.metrics.emplace_back();
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

}  // namespace weir::explain::test
