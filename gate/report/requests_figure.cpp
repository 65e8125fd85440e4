#include <algorithm>

#include <fmt/format.h>

#include "gate/report/pictures.hpp"
#include "gate/stats/quantile.hpp"
#include "gate/unit/metric.hpp"

namespace weir::report {
namespace {

constexpr std::size_t k_numbers = 3;  // of a request
constexpr std::size_t k_least_requests = 20;
constexpr double k_figure_width = 1000, k_figure_height = 100;

std::string show_microseconds(double microseconds) {
  return unit::show(*unit::find_metric("end_to_end_latency_seconds"), microseconds / 1e6);
}

}  // namespace

std::string requests_figure(std::span<const std::int64_t> latencies) {
  const std::size_t count = latencies.size() / k_numbers;
  if (count < k_least_requests) return "";
  std::vector<double> whole;
  std::string paths[2];
  double last = 1, most = 1;
  for (std::size_t i = 0; i < count; ++i) {
    last = std::max(last, static_cast<double>(latencies[k_numbers * i]));
    whole.push_back(static_cast<double>(latencies[k_numbers * i + 2]));
    most = std::max(most, whole.back());
  }
  for (std::size_t i = 0; i < count; ++i) {
    const auto at = [&](std::size_t which) {
      return static_cast<double>(latencies[k_numbers * i + which]);
    };
    const double x = k_figure_width * std::clamp(at(0) / last, 0.0, 1.0);
    for (const std::size_t which : {1, 2}) {
      const double y = k_figure_height * (1 - std::clamp(at(which) / most, 0.0, 1.0));
      paths[which - 1] += fmt::format("M{:.1f} {:.1f}h0", x, y);
    }
  }
  const std::string words =
      fmt::format("{} requests over {}; end-to-end latency: median {}, p99 {}, up to {}", count,
                  show_microseconds(last), show_microseconds(*stats::quantile(whole, 0.5)),
                  show_microseconds(*stats::quantile(whole, 0.99)), show_microseconds(most));
  return fmt::format(
      "<figure>\n<figcaption>each request of the last timed run, from 0 to {}: end-to-end latency, "
      "and below it time to first token</figcaption>\n<svg class=\"requests\" role=\"img\" "
      "viewBox=\"0 0 {:.0f} {:.0f}\" preserveAspectRatio=\"none\"><title>latency of each request"
      "</title><desc>{}</desc>\n<path class=\"whole\" d=\"{}\"/>\n<path class=\"first\" d=\"{}\"/>"
      "</svg>\n<p class=\"soft\">{}</p>\n</figure>\n",
      show_microseconds(most), k_figure_width, k_figure_height, words, paths[1], paths[0], words);
}

}  // namespace weir::report
