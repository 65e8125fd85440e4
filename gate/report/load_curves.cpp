#include "gate/report/load_curves.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/report/document.hpp"
#include "gate/report/escape.hpp"
#include "gate/report/html_style.hpp"

namespace weir::report {
namespace {

constexpr std::array<const char*, 3> k_percentiles{"p50", "p90", "p99"};

std::optional<double> side(const CellVerdict& cell, std::string_view name,
                           std::optional<double> MetricVerdict::*which) {
  const MetricVerdict* found =
      first_of(cell.metrics, [&](const MetricVerdict& one) { return one.metric.name == name; });
  return found == nullptr ? std::nullopt : found->*which;
}
std::optional<double> current(const CellVerdict& cell, std::string_view name) {
  return side(cell, name, &MetricVerdict::current);
}
std::optional<double> before(const CellVerdict& cell, std::string_view name) {
  return side(cell, name, &MetricVerdict::baseline);
}

std::array<std::optional<double>, 3> latencies(const CellVerdict& cell, std::string_view base) {
  return {current(cell, fmt::format("{}_seconds", base)),
          current(cell, fmt::format("{}_p90_seconds", base)),
          current(cell, fmt::format("{}_p99_seconds", base))};
}

// Three digits, and no power of ten however many stand before the point.
std::string show_digits(double value) {
  return value < 999.5 ? fmt::format("{:.3g}", value) : fmt::format("{:.0f}", value);
}

// "12.3 ms", "1.5 s".
std::string show_time(double seconds) {
  return seconds < 0.9995 ? show_digits(seconds * 1e3) + " ms" : show_digits(seconds) + " s";
}

std::string show_rate(double rate) { return show_digits(rate) + " tok/s"; }

std::string range_words(const std::vector<std::optional<double>>& values, const LoadCurve& curve,
                        std::string (*show)(double)) {
  std::vector<std::string> words;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!values[i]) continue;
    words.push_back(fmt::format("{} at {}", show(*values[i]), curve.points[i].concurrency));
  }
  return words.empty() ? "not measured" : words.front() + ", " + words.back();
}

// One panel. Places across are shares of the width, so that it fits any screen while its letters
// keep their size; concurrencies stand at even distances.
class Panel {
 public:
  struct Line {
    const char* name;  // class and label
    std::vector<std::optional<double>> values;
  };

  Panel(const LoadCurve& curve, const char* title, std::vector<Line> lines,
        std::string (*show)(double))
      : curve_(curve), title_(title), lines_(std::move(lines)), show_(show) {
    for (const Line& line : lines_) {
      for (const auto& value : line.values) most_ = std::max(most_, value.value_or(0));
    }
  }

  [[nodiscard]] std::string write() {
    if (most_ <= 0) return "";
    std::vector<std::string> described;
    for (const Line& line : lines_) {
      described.push_back(line.name + (": " + range_words(line.values, curve_, show_)));
    }
    out_ = fmt::format(
        "<svg class=\"load\" role=\"img\" width=\"100%\" height=\"{}\"><title>{} against "
        "concurrency</title><desc>{}</desc>\n",
        k_height, title_, xml_text(text::join(described, "; ")));
    out_ += fmt::format("<text class=\"head\" x=\"0\" y=\"11\">{}</text>\n", title_);
    out_ += fmt::format("<text x=\"100%\" y=\"11\" text-anchor=\"end\">up to {}</text>\n",
                        show_(most_));
    line("axis", 0, k_floor, 100, k_floor);
    // No more of them than have room on a telephone; the last one always.
    const std::size_t last = curve_.points.size() - 1, every = last / k_most_ticks + 1;
    for (std::size_t i = last % every; i <= last; i += every) {
      out_ += fmt::format("<text x=\"{:.2f}%\" y=\"{}\" text-anchor=\"middle\">{}</text>\n", at(i),
                          k_floor + 14, curve_.points[i].concurrency);
    }
    for (const Line& one : lines_) draw(one);
    if (lines_.size() > 1) label();
    return out_ + "</svg>\n";
  }

 private:
  static constexpr int k_top = 22, k_floor = 104, k_height = 122;
  static constexpr double k_line = 12;  // of letters
  static constexpr std::size_t k_most_ticks = 8;
  static constexpr double k_left = 6, k_right = 84;  // the labels of lines stand behind them

  [[nodiscard]] double at(std::size_t place) const {
    return k_left + (k_right - k_left) * static_cast<double>(place) /
                        static_cast<double>(curve_.points.size() - 1);
  }
  [[nodiscard]] double height(double value) const {
    return k_floor - (k_floor - k_top) * std::clamp(value / most_, 0.0, 1.0);
  }

  void line(const char* name, double x1, double y1, double x2, double y2) {
    out_ += fmt::format(
        "<line class=\"{}\" x1=\"{:.2f}%\" y1=\"{:.1f}\" x2=\"{:.2f}%\" y2=\"{:.1f}\"/>\n", name,
        x1, y1, x2, y2);
  }

  void draw(const Line& one) {
    std::optional<std::size_t> before;
    for (std::size_t i = 0; i < one.values.size(); ++i) {
      const auto& value = one.values[i];
      if (!value) continue;  // what was not measured joins nothing
      if (before && *before + 1 == i) {
        line(one.name, at(*before), height(*one.values[*before]), at(i), height(*value));
      }
      out_ += fmt::format("<circle class=\"{}\" cx=\"{:.2f}%\" cy=\"{:.1f}\" r=\"2.5\"/>\n",
                          one.name, at(i), height(*value));
      before = i;
    }
    if (before) labels_.push_back({at(*before), height(*one.values[*before]) + 4, one.name});
  }

  // Those that would lie on each other are moved apart, between the title and the floor.
  void label() {
    std::vector<Label*> down;
    for (Label& one : labels_) down.push_back(&one);
    std::ranges::stable_sort(down, {}, &Label::y);
    double least = k_top + 2;
    for (Label* one : down) {
      one->y = std::max(one->y, least);
      least = one->y + k_line;
    }
    double most = k_floor + 2;
    for (auto one = down.rbegin(); one != down.rend(); ++one) {
      (*one)->y = std::min((*one)->y, most);
      most = (*one)->y - k_line;
    }
    for (const Label& one : labels_) {
      out_ += fmt::format("<text x=\"{:.2f}%\" dx=\"6\" y=\"{:.1f}\">{}</text>\n", one.x, one.y,
                          one.name);
    }
  }

  struct Label {
    double x, y;
    const char* name;
  };
  const LoadCurve& curve_;
  const char* title_;
  std::vector<Line> lines_;
  std::string (*show_)(double);
  double most_ = 0;
  std::string out_;
  std::vector<Label> labels_;
};

// That of the base, below the others; none where nothing is known of it.
std::vector<Panel::Line> base_line(const LoadCurve& curve, std::optional<double> LoadPoint::*base) {
  auto values = collect<std::optional<double>>(curve.points, base);
  if (std::ranges::none_of(values, [](const auto& value) { return value.has_value(); })) return {};
  return {{"base", std::move(values)}};
}

std::string latency_panel(const LoadCurve& curve, const char* title,
                          std::array<std::optional<double>, 3> LoadPoint::*member,
                          std::optional<double> LoadPoint::*base) {
  std::vector<Panel::Line> lines = base_line(curve, base);
  for (std::size_t k = 0; k < k_percentiles.size(); ++k) {
    Panel::Line& line = lines.emplace_back(Panel::Line{k_percentiles.at(k), {}});
    for (const LoadPoint& point : curve.points) line.values.push_back((point.*member).at(k));
  }
  return Panel(curve, title, std::move(lines), show_time).write();
}

std::string numbers(const LoadCurve& curve) {
  const auto cell = [](const std::optional<double>& value, std::string (*show)(double)) {
    return fmt::format("<td class=\"number\">{}</td>", value ? show(*value) : "not measured");
  };
  std::string rows;
  for (const LoadPoint& point : curve.points) {
    rows += fmt::format("<tr><th scope=\"row\">{} at once</th>", point.concurrency);
    for (const auto& value : point.first_token) rows += cell(value, show_time);
    for (const auto& value : point.per_token) rows += cell(value, show_time);
    rows += cell(point.tokens_per_second, show_rate) + "</tr>\n";
  }
  return html_table(
      "latency against load of " + cell_title(curve.cell),
      {"requests", "#TTFT p50", "#p90", "#p99", "#TPOT p50", "#p90", "#p99", "#output"}, rows);
}

}  // namespace

std::vector<LoadCurve> load_curves(const verdict::GateVerdict& gate) {
  std::vector<LoadCurve> curves;
  for (const CellVerdict& cell : gate.cells) {
    if (!cell.cell.concurrency) continue;
    const LoadPoint point{*cell.cell.concurrency,
                          latencies(cell, "time_to_first_token"),
                          latencies(cell, "time_per_output_token"),
                          current(cell, "output_tokens_per_second"),
                          before(cell, "time_to_first_token_seconds"),
                          before(cell, "time_per_output_token_seconds"),
                          before(cell, "output_tokens_per_second")};
    if (!point.first_token[0] && !point.per_token[0]) continue;
    profile::CellKey key = cell.cell;
    key.concurrency.reset();
    LoadCurve* known = first_of(curves, [&](const LoadCurve& one) { return one.cell == key; });
    if (known == nullptr) known = &curves.emplace_back(LoadCurve{key, {}});
    known->points.push_back(point);
  }
  std::erase_if(curves, [](const LoadCurve& curve) { return curve.points.size() < 2; });
  for (LoadCurve& curve : curves) {
    std::ranges::sort(curve.points, {}, &LoadPoint::concurrency);
  }
  return curves;
}

std::string load_figure(const LoadCurve& curve) {
  std::vector<Panel::Line> rates = base_line(curve, &LoadPoint::base_tokens_per_second);
  const char* name = rates.empty() ? "rate" : "now";
  rates.push_back(
      {name, collect<std::optional<double>>(curve.points, &LoadPoint::tokens_per_second)});
  return fmt::format(
      "<figure class=\"load\">\n<figcaption>{}: against requests at once</figcaption>\n"
      "<div class=\"panels\">\n{}{}{}</div>\n{}</figure>\n",
      xml_text(cell_title(curve.cell)),
      latency_panel(curve, "time to first token", &LoadPoint::first_token,
                    &LoadPoint::base_first_token),
      latency_panel(curve, "time per output token", &LoadPoint::per_token,
                    &LoadPoint::base_per_token),
      Panel(curve, "output tokens/s", std::move(rates), show_rate).write(), numbers(curve));
}

}  // namespace weir::report
