// Works that take longer, or less long, each time they run.
//
// One run's times vary, and all of them together when the machine does. A work is slower only where
// it stands out among all the others of the same pair of runs, and where it matters.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "gate/explain/patterns.hpp"
#include "gate/stats/quantile.hpp"

namespace weir::explain {
namespace {

struct Timed {
  const Move* move = nullptr;
  double log_ratio = 0;  // of the time of one of its runs
  double share = 0;      // of the larger side's time
};

double each(double seconds, const Rational& times) {
  return times.value() > 0 ? seconds / times.value() : seconds;
}

std::vector<Timed> timed_of(const Differences& found) {
  double before = 0, after = 0;
  for (const Move& move : found.timed) {
    before += *move.seconds_before;
    after += *move.seconds_after;
  }
  const double whole = std::max(before, after);
  std::vector<Timed> list;
  for (const Move& move : found.timed) {
    if (*move.seconds_before <= 0 || *move.seconds_after <= 0 || whole <= 0) continue;
    list.push_back(
        {&move,
         std::log(each(*move.seconds_after, move.after) / each(*move.seconds_before, move.before)),
         std::max(*move.seconds_before, *move.seconds_after) / whole});
  }
  return list;
}

// What the others did: their mean, and their standard deviation.
struct Rest {
  double mean = 0, deviation = 0;
  std::size_t works = 0;
};
std::optional<Rest> rest_of(const std::vector<Timed>& list, std::size_t without) {
  constexpr std::size_t k_least_works = 4;
  Rest rest;
  double squares = 0;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (i == without) continue;
    rest.mean += list[i].log_ratio;
    squares += list[i].log_ratio * list[i].log_ratio;
    ++rest.works;
  }
  if (rest.works < k_least_works) return std::nullopt;
  const auto n = static_cast<double>(rest.works);
  rest.mean /= n;
  rest.deviation = std::sqrt(std::max(0.0, squares - n * rest.mean * rest.mean) / (n - 1));
  return rest;
}

// Beyond what one more work would do by chance, beside the others, in one of a thousand pairs of
// runs: a prediction interval for the logarithm of the ratio, shared among all works. Times that
// look the same to the last digit still vary by some per cent.
bool stands_out(const Timed& one, const Rest& rest) {
  constexpr double k_least_share = 0.03;
  constexpr double k_false = 0.001;
  constexpr double k_least_deviation = 0.03;
  const double least = std::log(1.2);
  const double step = std::fabs(one.log_ratio - rest.mean);
  if (one.share < k_least_share || step < least || std::fabs(one.log_ratio) < least) return false;
  const auto n = static_cast<double>(rest.works);
  const double t = stats::student_quantile(1 - k_false / (2 * (n + 1)), n - 1);
  return step > t * std::max(rest.deviation, k_least_deviation) * std::sqrt(1 + 1 / n);
}

std::string time_text(double seconds) {
  if (seconds >= 1) return fmt::format("{:.3g} s", seconds);
  if (seconds >= 1e-3) return fmt::format("{:.3g} ms", seconds * 1e3);
  return fmt::format("{:.3g} us", seconds * 1e6);
}

void add_slow(Board& board, const Timed& one) {
  const Move& move = *one.move;
  const bool slower = one.log_ratio > 0;
  Finding finding;
  finding.kind = to_string(slower ? Kind::op_slower : Kind::op_faster);
  finding.ops = {move.name};
  const double factor = std::exp(std::fabs(one.log_ratio));
  const double times = slower ? factor : 1 / factor;
  const std::string shown =
      times < 10 ? fmt::format("{:.2g}", times) : fmt::format("{:.0f}", times);
  finding.headline = fmt::format("{} takes {} times as long{}.", safe(move.name), shown,
                                 slower ? "" : " as before");
  finding.lines.push_back(fmt::format(
      "{} → {} each time, {:.0f} % of all time", time_text(each(*move.seconds_before, move.before)),
      time_text(each(*move.seconds_after, move.after)), 100 * one.share));
  if (slower) finding.cause = "another shape, type or kernel, or memory further away.";
  board.add(std::move(finding), 100 * one.share);
}

}  // namespace

void find_slow(Board& board) {
  const std::vector<Timed> list = timed_of(board.found);
  for (std::size_t i = 0; i < list.size(); ++i) {
    const auto rest = rest_of(list, i);
    if (rest && stands_out(list[i], *rest)) add_slow(board, list[i]);
  }
}

}  // namespace weir::explain
