#include "gate/observed/cross_checks.hpp"

#include <cmath>

#include <fmt/format.h>

#include "gate/base/text.hpp"
#include "gate/observed/totals.hpp"

namespace weir::observed {
namespace {

// As mlx-native has it: dispatches are timed one by one, so their sum is a little more than their
// buffer's time; 5 % is good, more than 10 % is suspicious.
constexpr double k_drift_good = 0.05, k_drift_bad = 0.10;

std::string led_by(const std::string& side) { return side.empty() ? "" : side + ": "; }

std::string in_ms(double seconds) { return fmt::format("{:.3g} ms", seconds * 1e3); }

void against_buffers(const Observed& observed, const std::string& side,
                     std::vector<std::string>& doubts) {
  double rows = 0, buffers = 0;
  for (const auto& op : observed.ops) {
    const bool on_cpu = text::lower(op.backend) == "cpu";  // in no command buffer
    if (!op.covers_others && !on_cpu) rows += time_of_its_own(op).value_or(0);
  }
  for (const auto& buffer : observed.buffers) buffers += buffer.seconds.value_or(0);
  if (rows <= 0 || buffers <= 0) return;
  const double drift = rows / buffers - 1;
  if (std::fabs(drift) <= k_drift_good) return;
  doubts.push_back(
      fmt::format("{}dispatches add up to {}, command buffers to {}: {:.0f} % apart{}",
                  led_by(side), in_ms(rows), in_ms(buffers), 100 * std::fabs(drift),
                  std::fabs(drift) > k_drift_bad ? ", too much to trust their times" : ""));
}

std::optional<double> wall_seconds_per_token(const Observed& observed) {
  for (const auto& timing : observed.timings) {
    const auto value = timing.value();
    if (timing.metric.name == "decode_tokens_per_second" && value && *value > 0) return 1 / *value;
  }
  return std::nullopt;
}

void against_the_clock(const Observed& observed, const std::string& side,
                       std::vector<std::string>& doubts) {
  const auto wall = wall_seconds_per_token(observed);
  if (!wall) return;
  double rows = 0;
  for (const auto& op : op_totals_per_token(observed, GroupBy::op)) {
    rows += op.seconds.value_or(0);
  }
  if (rows <= 0) return;
  const double share = rows / *wall;
  if (share > 1.1) {
    doubts.push_back(
        fmt::format("{}ops take {} a token, the token {}: they overlap, or profiling "
                    "slows them",
                    led_by(side), in_ms(rows), in_ms(*wall)));
  } else if (share < 0.5) {
    doubts.push_back(
        fmt::format("{}ops take {} a token, the token {}: most of its time is in no op",
                    led_by(side), in_ms(rows), in_ms(*wall)));
  }
}

}  // namespace

std::vector<std::string> cross_checks(const Observed& observed, const std::string& side) {
  std::vector<std::string> doubts;
  against_buffers(observed, side, doubts);
  against_the_clock(observed, side, doubts);
  return doubts;
}

}  // namespace weir::observed
