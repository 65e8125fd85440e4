// The picture of a metric's ratios for a page. Positions across are shares of the width, so that
// the picture fits any screen while its letters keep their size.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "gate/report/junit.hpp"
#include "gate/report/ratios.hpp"
#include "gate/report/words.hpp"

namespace weir::report {
namespace {

using verdict::MetricVerdict;
using verdict::Outcome;

// Down the page, in pixels: two rows of labels, bars, the interval, the axis and its numbers.
constexpr int k_limit_text = 11, k_tolerated_text = 25, k_top = 31, k_floor = 87, k_interval = 96,
              k_axis = 105, k_axis_text = 119, k_height = 124;

class Picture {
 public:
  Picture(const MetricVerdict& metric, const Histogram& all)
      : metric_(metric), all_(all), low_(all.bars.front().from), high_(all.bars.back().to) {}

  std::string write() {
    const std::string label = xml_text(words(metric_).label);
    out_ = fmt::format(
        "<svg class=\"ratios\" role=\"img\" width=\"100%\" height=\"{}\"><title>{}: now against "
        "base, pair by pair</title><desc>{}</desc>\n",
        k_height, label, xml_text(picture_words(metric_)));
    bars();
    if (all_.tolerated) mark(*all_.tolerated, "tolerated", k_tolerated_text);
    if (all_.limit) mark(*all_.limit, "limit", k_limit_text);
    out_ += line("zero", at(0), k_top, at(0), k_axis);
    interval();
    axis();
    return out_ + letters_ + "</svg>\n";
  }

 private:
  // Hundredths of the width.
  [[nodiscard]] double at(double change) const {
    return std::clamp((change - low_) / (high_ - low_), 0.0, 1.0) * 100;
  }

  static std::string line(std::string_view name, double x1, int y1, double x2, int y2) {
    return fmt::format("<line class=\"{}\" x1=\"{:.2f}%\" y1=\"{}\" x2=\"{:.2f}%\" y2=\"{}\"/>\n",
                       name, x1, y1, x2, y2);
  }

  // At its place, towards the middle where that is near an end of the axis. Letters come last, so
  // that no line runs through them.
  void letters(std::string_view words, double x, int y) {
    const std::string_view anchor = x < 25 ? "start" : x > 75 ? "end" : "middle";
    letters_ += fmt::format("<text x=\"{:.2f}%\" y=\"{}\" text-anchor=\"{}\">{}</text>\n", x, y,
                            anchor, words);
  }

  void bars() {
    const auto most = static_cast<double>(all_.most());
    for (const Histogram::Bar& bar : all_.bars) {
      if (bar.pairs == 0) continue;
      const double height =
          std::max(2.0, (k_floor - k_top) * static_cast<double>(bar.pairs) / most);
      const double middle = (bar.from + bar.to) / 2;
      const bool beyond =
          all_.limit && (*all_.limit < 0 ? middle < *all_.limit : middle > *all_.limit);
      out_ += fmt::format(
          "<rect class=\"{}\" x=\"{:.2f}%\" y=\"{:.1f}\" width=\"{:.2f}%\" height=\"{:.1f}\"/>\n",
          beyond && metric_.verdict == Outcome::fail ? "beyond" : "bar", at(bar.from),
          k_floor - height, std::max(0.3, at(bar.to) - at(bar.from) - 0.15), height);
    }
  }

  void mark(double change, std::string_view name, int y) {
    out_ += line(name, at(change), y + 3, at(change), k_axis);
    letters(fmt::format("{} {}", name, percent(change)), at(change), y);
  }

  void interval() {
    if (!metric_.change) return;
    const double left = metric_.low.value_or(low_);
    const double right = metric_.high.value_or(high_);
    out_ += line("interval", at(left), k_interval, at(right), k_interval);
    out_ += fmt::format("<circle class=\"estimate\" cx=\"{:.2f}%\" cy=\"{}\" r=\"3.5\"/>\n",
                        at(*metric_.change), k_interval);
  }

  void axis() {
    out_ += line("axis", 0, k_axis, 100, k_axis);
    // Numbers of the ends give way to the one of no change.
    if (at(0) > 20) letters(end_words(all_.below, low_), 0, k_axis_text);
    letters("no change", at(0), k_axis_text);
    if (at(0) < 80) letters(end_words(all_.above, high_), 100, k_axis_text);
  }

  static std::string end_words(std::size_t beyond, double change) {
    return beyond > 0 ? fmt::format("{} ({} beyond)", end_label(change), beyond)
                      : end_label(change);
  }

  const MetricVerdict& metric_;
  const Histogram& all_;
  double low_, high_;
  std::string out_, letters_;
};

}  // namespace

std::string ratio_svg(const MetricVerdict& metric) {
  if (!has_picture(metric)) return "";
  const Histogram all = histogram(metric, 60);
  return Picture(metric, all).write();
}

}  // namespace weir::report
