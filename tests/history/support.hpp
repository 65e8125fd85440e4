// Builds runs and points for the tests of the history.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "gate/base/hash.hpp"
#include "gate/history/history.hpp"

namespace weir::history {

inline Point time_point(const std::string& cell, double value, std::vector<double> samples = {}) {
  Point point;
  point.cell = cell;
  point.metric = metric_named("decode_tokens_per_second");
  point.value = value;
  point.samples = std::move(samples);
  point.source = "llama-bench";
  return point;
}

inline Point count_point(const std::string& cell, const Rational& value,
                         const std::string& metric = "dispatches_per_token") {
  Point point;
  point.cell = cell;
  point.metric = metric_named(metric);
  point.nature = profile::Nature::exact;
  point.exact = value;
  point.value = value.value();
  point.source = "vulkan";
  return point;
}

inline Run run_at(const std::string& id, double time, std::vector<Point> points,
                  std::optional<std::string> commit = std::nullopt) {
  Run run;
  run.facts.id = id;
  run.facts.time = time;
  run.facts.machine = "m";
  run.facts.commit = std::move(commit);
  run.points = std::move(points);
  return run;
}

inline StoredVerdict verdict_at(const std::string& run, double time, const std::string& outcome) {
  StoredVerdict verdict;
  verdict.run = run;
  verdict.time = time;
  verdict.kept_at = time + 1;
  verdict.outcome = outcome;
  verdict.text = R"({"schema":"weir.verdict/1","verdict":")" + outcome + R"("})";
  verdict.id = hash_hex(verdict.text);
  return verdict;
}

inline Acknowledgement acknowledged(const std::string& cell, const std::string& reason) {
  Acknowledgement result;
  result.cell = cell;
  result.metric = "dispatches_per_token";
  result.machine = "m";
  result.kind = "step";
  result.commit = std::string(40, 'a');
  result.time = 100;
  result.reason = reason;
  result.who = "somebody";
  result.acknowledged_at = 200.5;
  return result;
}

}  // namespace weir::history
