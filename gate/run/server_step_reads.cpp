// What is read of a server beside its answers: its own metrics, and what the probes in it count.
#include "gate/run/served_report.hpp"
#include "gate/run/server_step.hpp"
#include "gate/sys/pause.hpp"

namespace weir::run {

using profile::ProbeCounts;

std::optional<adapters::ServerMetrics> ServerStep::ask_metrics() {
  constexpr double k_connect = 1, k_answer = 5;
  const auto answer = effects_.speaking.http()->send(
      start_.get(start_.metrics_url()),
      {.connect_seconds = k_connect, .total_seconds = k_answer, .body_bytes = std::size_t{4} << 20},
      start_.over());
  if (answer && answer->status == 200) return adapters::read_server_metrics(answer->body);
  const std::string why = answer ? fmt::format("HTTP {}", answer->status) : answer.error().message;
  const std::string warning = fmt::format("the server's own metrics could not be read: {}", why);
  if (record_.warnings.empty() || record_.warnings.back() != warning) {
    record_.warnings.push_back(warning);
  }
  return std::nullopt;
}

void ServerStep::report_metrics() {
  if (!metrics_before_) return;
  constexpr int k_readings = 20;
  for (int reading = 1;; ++reading) {
    const auto after = ask_metrics();
    if (!after) return;
    auto figures = adapters::between(*metrics_before_, *after);
    // A server may count a request a moment after its last token is out.
    if (reading < k_readings && !counts_the_same(figures, requests_) &&
        sys::RealPause().wait(k_ask_again, start_.over())) {
      continue;
    }
    if (after->left_out > 0) {
      record_.warnings.push_back(
          fmt::format("the server has {} metrics more than are kept of it", after->left_out));
    }
    return add_server_figures(std::move(figures), requests_, *record_.report);
  }
}

// Once they rest: what the server still does for a request that is answered belongs to it.
bool ServerStep::read_counts(std::vector<ProbeCounts>& counts) {
  constexpr int k_readings = 100;
  for (int reading = 0; reading < k_readings; ++reading) {
    auto now = effects_.probing.collect(cell_.probes, start_.probe_folder());
    if (!now) {
      return give_up("what the probes counted could not be read: " + now.error().message);
    }
    const bool rests = reading > 0 && *now == counts;
    counts = std::move(*now);
    if (rests || !sys::RealPause().wait(k_ask_again, start_.over())) return true;
  }
  record_.warnings.emplace_back(
      "the server's counts do not rest between requests: what it does by itself is in them");
  return true;
}

}  // namespace weir::run
