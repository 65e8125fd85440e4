// Servers under rising load, for the pictures of latency against load. All numbers are invented.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "tests/browser/site_scene.hpp"

namespace weir::site::scene {

struct ServedPoint {
  std::string cell, metric;
  double value;
};

// Three concurrencies, percentiles apart; and eleven of a server with hardly any tail.
inline std::vector<ServedPoint> served_points() {
  std::vector<ServedPoint> points;
  const auto add = [&](const std::string& prompt, std::int64_t at_once, double first,
                       std::array<double, 3> tail) {
    const std::string cell = fmt::format("llama-server/tiny-llama/cpu/{}@c{}", prompt, at_once);
    const std::array<const char*, 3> percentiles{"", "_p90", "_p99"};
    for (std::size_t i = 0; i < percentiles.size(); ++i) {
      points.push_back({cell, fmt::format("time_to_first_token{}_seconds", percentiles.at(i)),
                        first * tail.at(i)});
      points.push_back({cell, fmt::format("time_per_output_token{}_seconds", percentiles.at(i)),
                        first / 7 * tail.at(i)});
    }
    const auto load = static_cast<double>(at_once);
    points.push_back({cell, "output_tokens_per_second", 12000 * load / (load + 40)});
  };
  for (const std::int64_t at_once : {1, 4, 16}) {
    add("chat", at_once, 0.018 * static_cast<double>(at_once), {1, 1.5, 1.8});
  }
  for (std::int64_t at_once = 1; at_once <= 1024; at_once *= 2) {
    add("a-prompt-with-a-long-name-and-many-loads", at_once,
        0.018 + 0.001 * static_cast<double>(at_once), {1, 1.001, 1.002});
  }
  return points;
}

inline verdict::GateVerdict served_gate();

inline SiteModel served_scene() {
  SiteModel model;
  model.title = "servers";
  model.history.runs.push_back(night_run(0, "box"));
  model.history.places.emplace_back();
  for (const ServedPoint& point : served_points()) {
    model.history.series.push_back(
        make_series({point.cell, point.metric, "box", {point.value}, 3}));
    model.changes.emplace_back();
  }
  model.verdicts = {stored(0, served_gate().cells, "box")};
  return model;
}

inline verdict::GateVerdict served_gate() {
  std::vector<verdict::CellVerdict> cells;
  for (const ServedPoint& point : served_points()) {
    const auto key = profile::CellKey::parse(point.cell).value();
    if (cells.empty() || !(cells.back().cell == key)) {
      verdict::CellVerdict& cell = cells.emplace_back();
      cell.cell = key;
      cell.device = "cpu";
      cell.verdict = cell.put("kernels").verdict = cell.put("placement").verdict =
          verdict::Outcome::pass;
      cell.server = {{"llamacpp:tokens_predicted_total", profile::ServerFigure::Kind::counter, 512},
                     {k_hostile, profile::ServerFigure::Kind::gauge, 0.5}};
    }
    verdict::Judgement& metric = *cells.back().judgements.insert(
        cells.back().judgements.begin() + std::ssize(cells.back().metrics()), verdict::Judgement());
    metric.metric = unit::find_metric(point.metric).value();
    metric.current = point.value;
    metric.samples = 3;
    metric.verdict = verdict::Outcome::pass;
    // The base was a fifth faster.
    const bool is_rate = point.metric == "output_tokens_per_second";
    metric.baseline = is_rate ? point.value / 0.8 : point.value * 0.8;
  }
  // Ten thousand requests, one in a hundred of them stalled; and the batches of a held burst.
  constexpr std::int64_t k_requests = 10'000, k_gap = 5000;
  for (std::int64_t i = 0; i < k_requests; ++i) {
    const std::int64_t latency = i % 100 == 0 ? 400'000 : 60'000 + 37 * (i * 7919 % 1000);
    for (const std::int64_t number : {i * k_gap, latency / 3, latency}) {
      cells.front().latencies.push_back(number);
    }
  }
  cells.front().requests = k_requests;
  cells.front().batches = profile::batch_bars({{1, 3}, {2, 8}, {3, 5}, {4, 70}, {36, 2}});
  verdict::GateVerdict gate = verdict::judge_gate(std::move(cells), {});
  gate.config = "weir.yaml";
  return gate;
}

}  // namespace weir::site::scene
