// Makes the data of figures: requests, batches, ratios of pairs, latency against load.
#include "gate/report/figures.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>

#include <fmt/format.h>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/profile/cell.hpp"
#include "gate/profile/load_picture.hpp"
#include "gate/report/layout.hpp"
#include "gate/report/ratios.hpp"
#include "gate/unit/metric.hpp"

namespace weir::report {
namespace {

constexpr std::size_t k_min_requests = 20;

std::string show_microseconds(std::int64_t microseconds) {
  return unit::show(*unit::find_metric("end_to_end_latency_seconds"),
                    static_cast<double>(microseconds) / 1e6);
}

// Returns the figure of the latencies of single requests, in microseconds. A cell keeps the fastest
// and the slowest of every few requests if there are many.
Json requests_figure(const CellVerdict& cell) {
  const auto count =
      static_cast<std::int64_t>(cell.latencies.size() / profile::k_latencies_of_request);
  std::int64_t last = 0, longest = 0;
  for (std::size_t i = 0; i + 2 < cell.latencies.size(); i += profile::k_latencies_of_request) {
    last = std::max(last, cell.latencies[i]);
    longest = std::max(longest, cell.latencies[i + 2]);
  }
  std::string requests = std::to_string(count), selection;
  if (cell.requests.value_or(0) > count) {
    requests += fmt::format(" of {}", *cell.requests);
    selection = ": the fastest and slowest of every few (stalls look more frequent than they are)";
  }
  return {{"kind", "requests"},
          {"title", "latency of each request"},
          {"caption",
           fmt::format("requests of the last timed run, from 0 to {}: end-to-end latency, and "
                       "below it time to first token",
                       show_microseconds(longest))},
          {"words", fmt::format("{} requests over {}{}; end-to-end latency up to {}", requests,
                                show_microseconds(last), selection, show_microseconds(longest))},
          {"latencies", cell.latencies}};
}

// Returns the figure of how many graphs computed how many tokens at once.
Json batches_figure(const CellVerdict& cell) {
  const auto bar_text = [](const profile::BatchBar& bar) {
    return bar.from_tokens == bar.to_tokens
               ? fmt::format("{}: {}", bar.from_tokens, bar.graphs)
               : fmt::format("{} to {}: {}", bar.from_tokens, bar.to_tokens, bar.graphs);
  };
  return {{"kind", "batches"},
          {"title", "graphs by tokens"},
          {"caption",
           "graphs of the last counted run, by how many tokens each computes at once (prompts, and "
           "one of each request that generates)"},
          {"words", text::join(collect<std::string>(cell.batches, bar_text), " \u00b7 ") +
                        " (tokens: graphs)"},
          {"bars", collect<Json>(cell.batches, [](const profile::BatchBar& bar) {
             return Json{bar.from_tokens, bar.to_tokens, bar.graphs};
           })}};
}

constexpr std::array<const char*, 7> k_load_metrics = {
    "time_to_first_token_seconds",       "time_to_first_token_p90_seconds",
    "time_to_first_token_p99_seconds",   "time_per_output_token_seconds",
    "time_per_output_token_p90_seconds", "time_per_output_token_p99_seconds",
    "output_tokens_per_second"};

// Returns the cell's judgement of each load metric; null for one that was not measured.
LoadedCell find_load_metrics(const CellVerdict& cell) {
  LoadedCell out{&cell, {}};
  for (std::size_t at = 0; at < k_load_metrics.size(); ++at) {
    out.metrics.at(at) = find_first(cell.judgements, [&](const Judgement& judgement) {
      return judgement.current && judgement.metric.name == k_load_metrics.at(at);
    });
  }
  return out;
}

}  // namespace

std::vector<Json> served_figures(const CellVerdict& cell) {
  std::vector<Json> out;
  if (cell.latencies.size() >= k_min_requests * profile::k_latencies_of_request) {
    out.push_back(requests_figure(cell));
  }
  if (!cell.batches.empty()) out.push_back(batches_figure(cell));
  return out;
}

// Returns the figure "ratios": how many pairs of base and candidate changed by how much.
Json ratios_figure(const MetricRow& row) {
  const Judgement& metric = *row.judgement;
  const Histogram all = histogram(metric, 60);
  return {
      {"kind", "ratios"},
      {"title", row.number.label + ": now against base, pair by pair"},
      {"caption", fmt::format("{}, now against base: {}", row.number.label, row.number.parts())},
      {"words", picture_text(metric)},
      {"bars", collect<Json>(all.bars,
                             [](const Histogram::Bar& bar) {
                               return Json{bar.from, bar.to, bar.pairs};
                             })},
      {"limit", optional_to_json(all.limit)},
      {"tolerated", optional_to_json(all.tolerated)},
      {"change", optional_to_json(metric.change)},
      {"low", optional_to_json(metric.low)},
      {"high", optional_to_json(metric.high)},
      {"below", all.below},
      {"above", all.above},
      {"failed", metric.verdict == Outcome::fail}};
}

// Returns the cells of each prompt that was measured at several concurrencies, by rising
// concurrency.
std::vector<LoadedCell> loaded_cells(const verdict::GateVerdict& gate) {
  std::map<profile::CellKey, std::vector<LoadedCell>> prompts;
  for (const CellVerdict& cell : gate.cells) {
    const LoadedCell loaded_cell = find_load_metrics(cell);
    const bool has_latency = loaded_cell.metrics[0] != nullptr || loaded_cell.metrics[3] != nullptr;
    if (!cell.cell.concurrency || !has_latency) continue;
    profile::CellKey prompt = cell.cell;
    prompt.concurrency.reset();
    prompts[prompt].push_back(loaded_cell);
  }
  std::vector<LoadedCell> out;
  for (auto& [prompt, cells] : prompts) {
    if (cells.size() < 2) continue;
    std::ranges::sort(cells, {},
                      [](const LoadedCell& cell) { return *cell.cell_verdict->cell.concurrency; });
    out.insert(out.end(), cells.begin(), cells.end());
  }
  return out;
}

// Returns the figure "load": metrics of a prompt's cells over concurrency, and those of their base.
Json load_figure(const std::vector<LoadedCell>& cells) {
  Json metrics = Json::array(), points = Json::array(), bases = Json::array();
  for (const char* name : k_load_metrics) {
    metrics.push_back({{"name", name}, {"unit", unit::to_string(unit::find_metric(name)->unit)}});
  }
  for (const LoadedCell& cell : cells) {
    const std::string title = cell_title(cell.cell_verdict->cell);
    for (std::size_t metric_number = 0; metric_number < cell.metrics.size(); ++metric_number) {
      const Judgement* metric = cell.metrics.at(metric_number);
      if (metric == nullptr) continue;
      points.push_back({nullptr, title, metric_number, *metric->current});
      if (metric->baseline) bases.push_back({title, metric_number, *metric->baseline});
    }
  }
  return {{"kind", "load"},
          {"metrics", std::move(metrics)},
          {"points", std::move(points)},
          {"bases", std::move(bases)}};
}

}  // namespace weir::report
