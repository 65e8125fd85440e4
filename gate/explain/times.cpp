// Works that take longer, or less long, each time they run; and rates, times and memory that differ
// beyond their noise where nothing before explains them.

#include "gate/explain/patterns.hpp"
#include "gate/observed/totals.hpp"
#include "gate/stats/quantile.hpp"

namespace weir::explain {
namespace {

using observed::time_text;

// One run's times vary, and all of them together when the machine does. A work is slower only where
// it stands out among all the others of the same pair of runs, and where it matters.
struct Timed {
  const Move* move = nullptr;
  double before = 0, after = 0;  // seconds of one of its runs
  double log_ratio = 0;          // of these
  double share = 0;              // of the larger side's time
  bool of_buffers = false;       // command buffers of one label
};

double each(double seconds, const Rational& times) {
  return times.value() > 0 ? seconds / times.value() : seconds;
}

std::vector<Timed> timed_of(const std::vector<Move>& timed, bool of_buffers) {
  double before = 0, after = 0;
  for (const Move& move : timed) {
    before += *move.seconds_before;
    after += *move.seconds_after;
  }
  const double whole = std::max(before, after);
  std::vector<Timed> list;
  for (const Move& move : timed) {
    if (*move.seconds_before <= 0 || *move.seconds_after <= 0 || whole <= 0) continue;
    const double was = each(*move.seconds_before, move.before);
    const double is = each(*move.seconds_after, move.after);
    list.push_back({&move, was, is, std::log(is / was),
                    std::max(*move.seconds_before, *move.seconds_after) / whole, of_buffers});
  }
  return list;
}

// Command buffers of which each side's mean lies outside of all that the other side's many times
// are.
bool ranges_apart(const Timed& one) {
  constexpr double k_many_times = 8;
  const auto outside = [](double mean, const std::optional<TimeRange>& range) {
    return range && (mean < range->least || mean > range->most);
  };
  const Move& move = *one.move;
  return one.of_buffers && std::min(move.before.value(), move.after.value()) >= k_many_times &&
         outside(one.before, move.range_after) && outside(one.after, move.range_before);
}

// By a factor that no run varies by, or by less where its ranges lie apart; and by as much from
// what the others do.
bool by_a_factor(const Timed& one, const std::vector<double>& others) {
  constexpr double k_factor = 3, k_factor_apart = 1.1;
  const double least = std::log(ranges_apart(one) ? k_factor_apart : k_factor);
  const double way = one.log_ratio < 0 ? -1 : 1;
  const double usual = stats::median(others).value_or(0);
  return way * one.log_ratio >= least && way * (one.log_ratio - usual) >= least;
}

// Beyond what one more work would do by chance, beside the others, in one of a thousand pairs of
// runs: a prediction interval for the logarithm of the ratio, shared among all works. Times that
// look the same to the last digit still vary by some per cent.
bool beyond_chance(const Timed& one, const std::vector<double>& others) {
  constexpr std::size_t k_least_works = 4;
  constexpr double k_false = 0.001;
  constexpr double k_least_deviation = 0.03;
  if (others.size() < k_least_works) return false;  // too few tell how much times vary
  const auto n = static_cast<double>(others.size());
  double mean = 0, squares = 0;
  for (const double other : others) {
    mean += other / n;
    squares += other * other;
  }
  const double deviation = std::sqrt(std::max(0.0, squares - n * mean * mean) / (n - 1));
  const double least = std::log(1.2);
  const double step = std::fabs(one.log_ratio - mean);
  if (step < least || std::fabs(one.log_ratio) < least) return false;
  const double t = stats::student_quantile(1 - k_false / (2 * (n + 1)), n - 1);
  return step > t * std::max(deviation, k_least_deviation) * std::sqrt(1 + 1 / n);
}

// A share of the time from which a work matters.
constexpr double k_least_share = 0.03;

// How likely all times of one side lie above all of the other where nothing changed: one order of
// all is that, and one the reverse (Wilcoxon's rank sum at its largest; Biometrics 1, 1945). 1
// where they do not, or the sides tell no times.
double chance_of_order(const Move& move, bool slower) {
  const auto& below = slower ? move.range_before : move.range_after;
  const auto& above = slower ? move.range_after : move.range_before;
  if (!below || !above || below->most >= above->least) return 1;
  const double a = below->times, b = above->times;
  return 2 * std::exp(std::lgamma(a + 1) + std::lgamma(b + 1) - std::lgamma(a + b + 1));
}

// Of few works no spread of the others tells how much one varies: its own times have to, or else
// those of each command buffer that it is in. They are told apart from the machine's by the others,
// which do not change.
bool each_time(const Timed& one, const std::vector<Timed>& list, const std::vector<Move>& buffers) {
  constexpr double k_false = 0.001;
  constexpr double k_least = 1.2, k_still = 1.1;
  const bool slower = one.log_ratio > 0;
  if (std::fabs(one.log_ratio) < std::log(k_least)) return false;
  const auto matters = [&](const Timed& other) {
    return &other != &one && other.share >= k_least_share;
  };
  const bool alone =
      std::ranges::any_of(list, matters) && std::ranges::all_of(list, [&](const Timed& other) {
        return !matters(other) || std::fabs(other.log_ratio) <= std::log(k_still);
      });
  const double most = k_false / static_cast<double>(list.size());
  const auto ordered = [&](const Move& move) { return chance_of_order(move, slower) <= most; };
  const auto buffer_ordered = [&](const std::string& label) {
    const Move* buffer = first_of(buffers, [&](const Move& other) { return other.name == label; });
    return buffer != nullptr && ordered(*buffer);
  };
  const bool in_buffers = !one.move->range_before && !one.move->range_after &&
                          !one.move->labels.empty() &&
                          std::ranges::all_of(one.move->labels, buffer_ordered);
  return alone && (ordered(*one.move) || in_buffers);
}

bool stands_out(const Timed& one, const std::vector<Timed>& list,
                const std::vector<Move>& buffers) {
  constexpr std::size_t k_few = 5;
  if (list.size() < 2 || one.share < k_least_share) return false;
  std::vector<double> others;  // logarithms of ratios
  for (const Timed& other : list) {
    if (&other != &one) others.push_back(other.log_ratio);
  }
  return by_a_factor(one, others) || beyond_chance(one, others) ||
         (list.size() < k_few && each_time(one, list, buffers));
}

// Each of several works changed by more than sessions differ, all by about as much.
bool all_alike(const std::vector<Timed>& list) {
  constexpr std::size_t k_several = 4;
  constexpr double k_least = 1.2, k_spread = 1.5;
  std::vector<double> large;  // logarithms of ratios, of what matters
  for (const Timed& one : list) {
    if (one.share >= k_least_share) large.push_back(one.log_ratio);
  }
  if (list.size() < k_several || large.empty()) return false;
  const auto [low, high] = std::ranges::minmax(large);
  const double way = low < 0 ? -1 : 1;
  return high - low <= std::log(k_spread) && std::ranges::all_of(list, [&](const Timed& one) {
           return way * one.log_ratio >= std::log(k_least);
         });
}

struct LayerTimes {
  std::int64_t layer = 0;
  double before = 0, after = 0;  // seconds

  [[nodiscard]] std::string text() const {
    return fmt::format("{} → {}", time_text(before), time_text(after));
  }
};

// Layers that take longer, or less long, by more than runs vary; the largest change first. None
// where all of them do: no single one is the place then.
std::vector<LayerTimes> layers_that_moved(const Evidence& evidence, bool slower) {
  constexpr double k_least = 1.2;
  std::vector<LayerTimes> moved;
  for (const auto& [layer, after] : evidence.after.layers) {
    const double before = look_up(evidence.before.layers, layer, 0.0);
    const double from = slower ? before : after, to = slower ? after : before;
    if (from > 0 && to >= k_least * from) moved.push_back({layer, before, after});
  }
  if (moved.size() == evidence.after.layers.size()) return {};
  std::ranges::stable_sort(moved, std::greater(),
                           [](const LayerTimes& one) { return std::fabs(one.after - one.before); });
  return moved;
}

// "2", "0.5", "12" times.
std::string times_text(double times) {
  return times < 10 ? fmt::format("{:.3g}", times) : fmt::format("{:.0f}", times);
}

// Names the layers in place of the rest of their time that is in no op.
void name_layers(const std::vector<LayerTimes>& moved, bool slower, Finding& finding) {
  constexpr std::size_t k_most = 4;
  const LayerTimes& first = moved.front();
  finding.headline =
      moved.size() == 1 ? fmt::format("Layer {} takes {} times as long{} ({}).", first.layer,
                                      times_text(first.after / first.before),
                                      slower ? "" : " as before", first.text())
                        : fmt::format("{} layers take {}, most of all layer {} ({}).", moved.size(),
                                      slower ? "longer" : "less long", first.layer, first.text());
  finding.lines.front().insert(0, "in no op that is listed: ");
  for (std::size_t i = 1; i < std::min(moved.size(), k_most); ++i) {
    finding.lines.push_back(fmt::format("layer {}: {}", moved[i].layer, moved[i].text()));
  }
  if (moved.size() > k_most) {
    finding.lines.push_back(fmt::format("and {} more layers", moved.size() - k_most));
  }
  for (const LayerTimes& one : moved) finding.layers.push_back(one.layer);
  std::ranges::sort(finding.layers);
}

// `what` stands in front of the name.
void add_slow(Board& board, const Timed& one, const char* what) {
  const bool slower = one.log_ratio > 0;
  Finding finding = finding_of(slower ? kind::op_slower : kind::op_faster);
  finding.ops = {one.move->name};
  const double factor = std::exp(std::fabs(one.log_ratio));
  finding.headline =
      fmt::format("{}{} takes {} times as long{}.", what, safe(one.move->name),
                  times_text(slower ? factor : 1 / factor), slower ? "" : " as before");
  finding.lines.push_back(fmt::format("{} → {} each time, {:.0f} % of all time",
                                      time_text(one.before), time_text(one.after),
                                      100 * one.share));
  if (slower) finding.cause = "another shape, type or kernel, or memory further away.";
  if (one.move->name == observed::k_not_listed) {
    const auto moved = layers_that_moved(board.evidence, slower);
    if (!moved.empty()) name_layers(moved, slower, finding);
  }
  board.add(std::move(finding), 100 * one.share);
}

void add_alike(Board& board, const std::vector<Timed>& list) {
  const auto [low, high] = std::ranges::minmax(list, {}, &Timed::log_ratio);
  const bool slower = low.log_ratio > 0;
  double before = 0, after = 0;
  for (const Timed& one : list) {
    before += *one.move->seconds_before;
    after += *one.move->seconds_after;
  }
  Finding finding = finding_of(kind::time_changed);
  finding.headline = fmt::format("All {} ops take {}, {:.3g} to {:.3g} times{}.", list.size(),
                                 slower ? "longer" : "less time", std::exp(low.log_ratio),
                                 std::exp(high.log_ratio), slower ? "" : " as long as before");
  finding.lines.push_back(
      fmt::format("all of them: {} → {}{}", time_text(before), time_text(after), board.per()));
  finding.cause = "the device's clock or power limit, another machine, or the speed of memory.";
  finding.look_at = "clocks, temperature, and what else runs there.";
  board.add(std::move(finding), 1, 2);
}

// "decode tok/s 28.6 → 25.1 (−12.2 %)"
std::string time_words(const Evidence& evidence, const std::string& name, double ratio) {
  const auto metric = metric_of(evidence, name);
  const auto shown = [&](const Side& side) {
    const double value = side.metrics.at(name).value();
    return metric ? unit::show(*metric, value) : fmt::format("{:g}", value);
  };
  const double percent = 100 * (ratio - 1);
  const int digits = std::fabs(percent) >= 99.95 ? 0 : 1;  // as in the rows of reports
  return fmt::format("{} {} → {} ({}{:.{}f} %)", metric ? unit::label(*metric) : safe(name),
                     shown(evidence.before), shown(evidence.after), percent < 0 ? "\u2212" : "+",
                     std::fabs(percent), digits);
}

// Some count is known on both sides: only then "unchanged" says anything.
bool counts_known(const Evidence& evidence) {
  return std::ranges::any_of(evidence.before.metrics, [&](const auto& one) {
    const auto metric = metric_of(evidence, one.first);
    return metric && metric->kind == unit::Kind::count && one.second.exact &&
           evidence.after.metrics.contains(one.first);
  });
}

}  // namespace

void find_slow(Board& board) {
  for (const auto& [timed, what] : {std::pair(&board.found.timed, ""),
                                    {&board.found.timed_buffers, "A command buffer labelled "}}) {
    const std::vector<Timed> list = timed_of(*timed, timed == &board.found.timed_buffers);
    bool any = false;
    for (const Timed& one : list) {
      if (!stands_out(one, list, board.found.timed_buffers)) continue;
      add_slow(board, one, what);
      any = true;
    }
    if (!any && timed == &board.found.timed && all_alike(list)) add_alike(board, list);
  }
}

void find_times(Board& board) {
  // What is done once explains no rate; anything else that was found may.
  const bool explained = std::ranges::any_of(board.entries, [](const Board::Entry& entry) {
    return !entry.finding.metric.ends_with("_fixed");
  });
  if (board.found.times.empty() || explained || board.found.work_changed()) return;
  std::vector<std::pair<std::string, double>> times(board.found.times.begin(),
                                                    board.found.times.end());
  std::ranges::stable_sort(times, std::greater(),
                           [](const auto& one) { return std::fabs(std::log(one.second)); });
  const bool counted = counts_known(board.evidence);
  Finding finding = finding_of(kind::time_changed, times.front().first);
  for (const auto& [name, ratio] : std::span(times).first(std::min<std::size_t>(times.size(), 6))) {
    finding.lines.push_back(time_words(board.evidence, name, ratio));
  }
  finding.headline = finding.lines.front() + (counted ? ", counts unchanged." : ".");
  finding.lines.erase(finding.lines.begin());
  if (counted) {
    finding.cause =
        "the same work takes another time: other code in the kernels, another compiler or driver, "
        "memory, or the machine.";
    finding.look_at = "times by op: weir profile CELL on both sides.";
  }
  board.add(std::move(finding), 1);
}

}  // namespace weir::explain
