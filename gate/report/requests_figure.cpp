#include "gate/report/requests_figure.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "gate/unit/metric.hpp"

namespace weir::report {
namespace {

constexpr std::size_t k_least_requests = 20;
constexpr double k_figure_width = 1000, k_figure_height = 100;

std::string show_microseconds(double microseconds) {
  return unit::show(*unit::find_metric("end_to_end_latency_seconds"), microseconds / 1e6);
}

}  // namespace

std::string requests_figure(std::span<const std::int64_t> latencies,
                            std::optional<std::int64_t> requests) {
  const std::size_t count = latencies.size() / profile::k_latencies_of_request;
  if (count < k_least_requests) return "";
  std::string paths[2];
  double last = 1, most = 1;
  for (std::size_t i = 0; i < count; ++i) {
    last = std::max(last, static_cast<double>(latencies[profile::k_latencies_of_request * i]));
    most = std::max(most, static_cast<double>(latencies[profile::k_latencies_of_request * i + 2]));
  }
  for (std::size_t i = 0; i < count; ++i) {
    const auto at = [&](std::size_t which) {
      return static_cast<double>(latencies[profile::k_latencies_of_request * i + which]);
    };
    const double x = k_figure_width * std::clamp(at(0) / last, 0.0, 1.0);
    for (const std::size_t which : {1UL, 2UL}) {
      const double y = k_figure_height * (1 - std::clamp(at(which) / most, 0.0, 1.0));
      paths[which - 1] += fmt::format("M{:.1f} {:.1f}h0", x, y);
    }
  }
  const bool chosen = requests && *requests > static_cast<std::int64_t>(count);
  const std::string words = fmt::format(
      "{}{} requests over {}{}; end-to-end latency up to {}", count,
      chosen ? fmt::format(" of {}", *requests) : "", show_microseconds(last),
      chosen ? ": the fastest and slowest of every few (stalls look more frequent than they are)"
             : "",
      show_microseconds(most));
  return fmt::format(
      "<figure>\n<figcaption>requests of the last timed run, from 0 to {}: end-to-end latency, "
      "and below it time to first token</figcaption>\n<svg class=\"requests\" role=\"img\" "
      "viewBox=\"0 0 {:.0f} {:.0f}\" preserveAspectRatio=\"none\"><title>latency of each request"
      "</title><desc>{}</desc>\n<path class=\"whole\" d=\"{}\"/>\n<path class=\"first\" d=\"{}\"/>"
      "</svg>\n<p class=\"soft\">{}</p>\n</figure>\n",
      show_microseconds(most), k_figure_width, k_figure_height, words, paths[1], paths[0], words);
}

std::string batches_figure(std::span<const profile::BatchBar> bars) {
  if (bars.empty()) return "";
  std::int64_t most = 1;
  for (const profile::BatchBar& bar : bars) most = std::max(most, bar.graphs);
  const double width = k_figure_width / static_cast<double>(bars.size());
  std::string drawn, words;
  for (std::size_t i = 0; i < bars.size(); ++i) {
    const profile::BatchBar& bar = bars[i];
    const double height =
        k_figure_height * static_cast<double>(bar.graphs) / static_cast<double>(most);
    const std::string range = bar.from_tokens == bar.to_tokens
                                  ? fmt::format("{}", bar.from_tokens)
                                  : fmt::format("{} to {}", bar.from_tokens, bar.to_tokens);
    drawn += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"/>",
                         width * (static_cast<double>(i) + 0.1), k_figure_height - height,
                         0.8 * width, height);
    words += fmt::format("{}{}: {}", i == 0 ? "" : " \u00b7 ", range, bar.graphs);
  }
  return fmt::format(
      "<figure>\n<figcaption>graphs of the last counted run, by how many tokens each computes at "
      "once (prompts, and one of each request that generates)</figcaption>\n<svg class=\"batches\" "
      "role=\"img\" viewBox=\"0 0 {:.0f} {:.0f}\" preserveAspectRatio=\"none\"><title>graphs by "
      "tokens</title><desc>{}</desc>\n{}</svg>\n<p class=\"soft\">{} (tokens: graphs)</p>\n"
      "</figure>\n",
      k_figure_width, k_figure_height, words, drawn, words);
}

}  // namespace weir::report
