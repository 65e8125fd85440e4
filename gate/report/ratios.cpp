// Draws the ratios of a metric's pairs as a line of text, and says the same in words.
#include "gate/report/ratios.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>

#include <fmt/format.h>

#include "gate/base/text.hpp"
#include "gate/report/document.hpp"
#include "gate/report/layout.hpp"
#include "gate/stats/quantile.hpp"
#include "gate/unit/metric.hpp"

namespace weir::report {
namespace {

constexpr std::string_view k_limit_mark = "\u2503", k_tolerated_mark = "\u254e",
                           k_no_change_mark = "\u2502";

// Returns the relative changes (candidate / base - 1) of pairs that ended on both sides, in order.
std::vector<double> relative_changes(const Judgement& metric) {
  std::vector<double> changes;
  for (const auto& ratio : metric.ratios) {
    if (ratio && std::isfinite(*ratio)) changes.push_back(*ratio - 1);
  }
  std::ranges::sort(changes);
  return changes;
}

const std::optional<verdict::MaxChange>& change_limit(const Judgement& metric) {
  return metric.metric.better == unit::Better::higher ? metric.limit.max_drop
                                                      : metric.limit.max_increase;
}

// Returns an amount of the limit as a relative change of the metric, negative for a drop. Nothing
// if it is no share of the base.
std::optional<double> as_change(const Judgement& metric, const verdict::Amount& amount) {
  const double share = amount.relative ? amount.value : amount.value / metric.baseline.value_or(0);
  if (!std::isfinite(share) || !(share > 0)) return std::nullopt;
  return metric.metric.better == unit::Better::higher ? -share : share;
}

// Returns a relative amount as it was written ("−5 %"), any other as `change` in percent.
std::string amount_text(const Judgement& metric, const verdict::Amount& amount, double change) {
  if (!amount.relative) return unit::signed_percent(change);
  const bool higher = metric.metric.better == unit::Better::higher;
  return std::string(higher ? k_minus : std::string_view("+")) + verdict::show(amount);
}

// Returns the ends of the axis. It reaches all marks, and pairs up to three quartile distances
// beyond the quartiles (Tukey's "far out"). Pairs further out would press all others together.
std::pair<double, double> axis_range(const std::vector<double>& changes,
                                     const std::vector<double>& marks) {
  const double first = *stats::quantile(changes, 0.25);
  const double third = *stats::quantile(changes, 0.75);
  const double far_out = 3 * (third - first);
  const double low = std::min(std::max(changes.front(), first - far_out), marks.front());
  const double high = std::max(std::min(changes.back(), third + far_out), marks.back());
  // Room on both sides of the outermost mark, also where all ratios are the same.
  const double margin = std::max((high - low) / 16, 1e-4);
  // Nothing drops by more than all of it.
  return {std::max(low - margin, std::min(low, -1.0)), high + margin};
}

// Adds bars of equal width, about `width`, from `from` exactly to `to`.
void add_bars(double from, double to, double width, std::vector<Histogram::Bar>& bars) {
  const auto number = std::max<long>(1, std::lround((to - from) / width));
  const auto parts = static_cast<double>(number);
  for (long i = 1; i <= number; ++i) {
    const double end = i == number ? to : from + (to - from) * static_cast<double>(i) / parts;
    bars.push_back({i == 1 ? from : bars.back().to, end, 0});
  }
}

// Returns the block character for a bar of `pairs`, if the highest bar has `most`; "_" for none.
std::string_view bar_glyph(std::size_t pairs, std::size_t highest_bar) {
  static constexpr std::string_view k_blocks[] = {"\u2582", "\u2583", "\u2584", "\u2585",
                                                  "\u2586", "\u2587", "\u2588"};
  if (pairs == 0) return "_";
  constexpr std::size_t k_heights = std::size(k_blocks);
  const std::size_t scale = std::max<std::size_t>(highest_bar, 3);  // a single pair is no full bar
  return k_blocks[(pairs * k_heights + scale - 1) / scale - 1];
}

// Returns the mark at the end of a bar; "" for none.
std::string_view mark_at(const Histogram& all, double end) {
  if (all.limit && end == *all.limit) return k_limit_mark;
  if (all.tolerated && end == *all.tolerated) return k_tolerated_mark;
  return end == 0 ? k_no_change_mark : "";
}

std::string spread_text(const unit::Metric& metric, const verdict::RunSpread& runs) {
  const auto show = [&](double value) {
    return std::isfinite(value) && value > 0 ? unit::show(metric, value)
                                             : std::string("did not end");
  };
  return fmt::format("fastest tenth {}, middle {}, mean {}, slowest tenth {}", show(runs.fast),
                     show(runs.median), show(runs.mean), show(runs.slow));
}

// Labels an end of the axis: "−12.0 %", or "+1.25e+06 %" for changes of a hundredfold and more.
std::string end_label(double change) {
  if (std::fabs(change) < 100) return unit::signed_percent(change);
  return fmt::format("{}{:.3g} %", change < 0 ? k_minus : std::string_view("+"),
                     std::fabs(change) * 100);
}

}  // namespace

std::size_t Histogram::highest_bar() const {
  return bars.empty() ? 0 : std::ranges::max(bars, {}, &Bar::pairs).pairs;
}

bool has_picture(const Judgement& metric) {
  return metric.pairs && metric.limit.is_set() && !relative_changes(metric).empty();
}

bool has_paired_times(const verdict::GateVerdict& gate) {
  if (!gate.against) return false;
  return std::ranges::any_of(gate.cells, [](const verdict::CellVerdict& cell) {
    return std::ranges::any_of(cell.metrics(), [](const Judgement& metric) {
      return metric.pairs && metric.limit.is_set();
    });
  });
}

std::vector<const MetricRow*> rows_with_picture(const CellDocument& cell) {
  std::vector<const MetricRow*> out = cell.worst_first;
  std::erase_if(out, [](const MetricRow* row) { return !has_picture(*row->judgement); });
  return out;
}

// Sorts the changes of pairs into about `bars` bars. Limits and "no change" lie between bars, so
// that these show.
Histogram histogram(const Judgement& metric, std::size_t bars) {
  Histogram all;
  const std::vector<double> changes = relative_changes(metric);
  all.pairs = changes.size();
  all.not_ended = metric.ratios.size() - changes.size();
  if (changes.empty()) return all;
  std::vector<double> marks{0};
  if (const auto& limit = change_limit(metric)) {
    all.limit = as_change(metric, limit->amount);
    all.tolerated = as_change(metric, limit->tolerate);
    if (all.limit) marks.push_back(*all.limit);
    if (all.tolerated) marks.push_back(*all.tolerated);
  }
  std::ranges::sort(marks);
  const auto [low, high] = axis_range(changes, marks);
  const double width = (high - low) / static_cast<double>(std::max<std::size_t>(bars, 4));
  marks.insert(marks.begin(), low);
  marks.push_back(high);
  for (std::size_t i = 0; i + 1 < marks.size(); ++i) {
    if (marks[i] < marks[i + 1]) add_bars(marks[i], marks[i + 1], width, all.bars);
  }
  for (const double change : changes) {
    if (change < low) ++all.below;
    if (change > high) ++all.above;
    // The last bar takes what is beyond all ends.
    const auto bar =
        std::find_if(all.bars.begin(), all.bars.end() - 1,
                     [&](const Histogram::Bar& candidate) { return change < candidate.to; });
    ++bar->pairs;
  }
  return all;
}

// Draws the changes of pairs as one line: "−12.0 % ▂▆█▃_┃__╎__│__ +3.0 %". "" without pairs.
std::string ratio_strip(const Judgement& metric, std::size_t columns) {
  if (!has_picture(metric)) return "";
  // Two labels with their spaces, three marks and what rounding adds.
  constexpr std::size_t k_label_columns = 34;
  const Histogram all =
      histogram(metric, std::clamp<std::size_t>(columns, 50, 82) - k_label_columns);
  std::string strip = end_label(all.bars.front().from) + " ";
  if (all.below > 0) strip = fmt::format("{} below {}", all.below, strip);
  for (const Histogram::Bar& bar : all.bars) {
    strip += bar_glyph(bar.pairs, all.highest_bar());
    strip += mark_at(all, bar.to);
  }
  strip += " " + end_label(all.bars.back().to);
  if (all.above > 0) strip += fmt::format(", {} above", all.above);
  if (all.not_ended > 0) strip += fmt::format(", {} not ended", all.not_ended);
  return strip;
}

// Returns the legend of a picture's marks: "┃ limit −5 %   ╎ tolerated −2.5 %   │ no change".
std::string strip_legend(const Judgement& metric) {
  std::vector<std::string> parts;
  if (const auto& limit = change_limit(metric)) {
    for (const auto& [mark, what, amount] :
         {std::tuple(k_limit_mark, "limit", limit->amount),
          std::tuple(k_tolerated_mark, "tolerated", limit->tolerate)}) {
      const auto change = as_change(metric, amount);
      if (!change) continue;
      parts.push_back(fmt::format("{} {} {}", mark, what, amount_text(metric, amount, *change)));
    }
  }
  parts.push_back(fmt::format("{} no change", k_no_change_mark));
  return text::join(parts, "   ");
}

// Describes the picture in words: "8 pairs from −14.2 % to −9.8 %; 8 beyond the limit of −5 %".
std::string picture_text(const Judgement& metric) {
  const std::vector<double> changes = relative_changes(metric);
  if (changes.empty()) return "no pair ended on both sides";
  std::string text =
      fmt::format("{} from {} to {}", text::plural(changes.size(), "pair"),
                  unit::signed_percent(changes.front()), unit::signed_percent(changes.back()));
  if (const auto& limit = change_limit(metric)) {
    if (const auto limit_change = as_change(metric, limit->amount)) {
      const auto beyond = std::ranges::count_if(changes, [&](double change) {
        return *limit_change < 0 ? change < *limit_change : change > *limit_change;
      });
      text += fmt::format("; {} beyond the limit of {}", beyond,
                          amount_text(metric, limit->amount, *limit_change));
    }
  }
  const std::size_t not_ended = metric.ratios.size() - changes.size();
  if (not_ended > 0) text += fmt::format("; {} more did not end", not_ended);
  return text;
}

// Describes how the runs of base and candidate spread, a line each, if they spread differently;
// else empty.
std::vector<std::string> spread_lines(const Judgement& metric) {
  if (!metric.spread_ratio || !metric.baseline_runs || !metric.current_runs) return {};
  std::vector<std::string> lines;
  // An inconclusive verdict without an estimate of pairs has this line as its reason.
  if (metric.verdict != verdict::Outcome::inconclusive || metric.more_pairs) {
    lines.push_back(fmt::format("the candidate's runs spread {:.1f} times as wide as the base's:",
                                *metric.spread_ratio));
  }
  lines.push_back("base: " + spread_text(metric.metric, *metric.baseline_runs));
  lines.push_back("now:  " + spread_text(metric.metric, *metric.current_runs));
  return lines;
}

}  // namespace weir::report
