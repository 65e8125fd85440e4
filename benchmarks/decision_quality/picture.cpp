// Draws the SVG of mean pairs to a verdict, one row per noise.
#include "benchmarks/decision_quality/picture.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>

namespace weir::quality {
namespace {

constexpr double k_left = 120, k_right = 690, k_top = 62, k_row = 24;

// The x coordinate of a number of pairs, on a logarithmic axis from 5 to 10 000.
double x_position(double pairs) {
  constexpr double k_min_pairs = 5, k_max_pairs = 10'000;
  const double share = std::log(std::clamp(pairs, k_min_pairs, k_max_pairs) / k_min_pairs) /
                       std::log(k_max_pairs / k_min_pairs);
  return k_left + share * (k_right - k_left);
}

// Returns the name with the characters that have a meaning in XML escaped.
std::string escape_xml(const std::string& name) {
  std::string text;
  for (const char letter : name) {
    if (letter == '&')
      text += "&amp;";
    else if (letter == '<')
      text += "&lt;";
    else if (letter == '>')
      text += "&gt;";
    else
      text += letter;
  }
  return text;
}

// A row of the picture: mean pairs of weir without a change and at max_drop, and of fixed-n.
struct Line {
  std::string noise;
  std::optional<double> weir_without_change, weir_at_max_drop, best_fixed;
  bool is_fixed_enough = true;  // false if no number of pairs that was tried is enough
};

// Returns the line of `noise`, appended first if there is none.
Line& find_line(std::vector<Line>& lines, const std::string& noise) {
  for (Line& line : lines) {
    if (line.noise == noise) return line;
  }
  lines.push_back({noise, {}, {}, {}});
  return lines.back();
}

// Returns one line of the picture per noise for which weir's rule was replayed without a change.
std::vector<Line> make_lines(std::span<const Row> rows, double max_drop) {
  std::vector<Line> lines;
  for (const Row& row : rows) {
    if (!row.drop) continue;
    const bool is_at_limit = std::fabs(*row.drop - max_drop) < 1e-12;
    const double pairs = row.tally.pairs_mean();
    if (row.rule == "weir" && *row.drop == 0)
      find_line(lines, row.noise).weir_without_change = pairs;
    if (row.rule == "weir" && is_at_limit) find_line(lines, row.noise).weir_at_max_drop = pairs;
    if (row.rule == k_fixed_n && is_at_limit) {
      Line& line = find_line(lines, row.noise);
      line.best_fixed = pairs;
      line.is_fixed_enough = row.tally.inconclusive == 0;
    }
  }
  std::erase_if(lines, [](const Line& line) { return !line.weir_without_change; });
  return lines;
}

std::string text_at(double x, double y, const char* attributes, const std::string& text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\"{}>{}</text>\n", x, y, attributes, text);
}
std::string open_dot(double x, double y) {
  return fmt::format(
      "<circle class=\"weir\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4.5\" fill=\"none\"/>\n", x, y);
}
std::string full_dot(double x, double y) {
  return fmt::format("<circle class=\"weir full\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4.5\"/>\n", x, y);
}
// Draws a bar, or an arrow if `enough` is false: more pairs are needed than were tried.
std::string mark_of_fixed(double x, double y, bool enough) {
  return enough
             ? fmt::format("<path class=\"fixed\" d=\"M{:.1f} {:.1f}v14\"/>\n", x, y - 7)
             : fmt::format("<path class=\"fixed\" d=\"M{:.1f} {:.1f}l6 6l-6 6\"/>\n", x - 6, y - 6);
}

}  // namespace

// Draws the legend, the logarithmic axis of pairs to a verdict, and one line per noise. A line has
// an open dot (weir's mean without a change), a full dot (its mean at a drop of max_drop), and the
// mark of the best fixed number of pairs. make_lines() leaves out lines without the open dot.
std::string to_svg(std::span<const Row> rows, const Limits& limits) {
  const std::vector<Line> lines = make_lines(rows, limits.max_drop);
  const double bottom = k_top + k_row * static_cast<double>(lines.size());
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 720 {0:.0f}\" width=\"720\" "
      "height=\"{0:.0f}\" font-family=\"sans-serif\" font-size=\"12\" role=\"img\">\n"
      "<title>Pairs of runs to a verdict: weir's rule and the best fixed number</title>\n"
      "<style>svg{{color:#24292f;--weir:#0969da;--fixed:#bc4c00}}\n"
      "@media(prefers-color-scheme:dark){{svg{{color:#e6edf3;--weir:#58a6ff;--fixed:#f0883e}}}}\n"
      "text{{fill:currentColor}}.grid{{stroke:currentColor;opacity:.18}}"
      ".span{{stroke:currentColor;opacity:.4}}\n"
      ".weir{{stroke:var(--weir);stroke-width:1.6}}.full{{fill:var(--weir)}}"
      ".fixed{{stroke:var(--fixed);stroke-width:2.2;fill:none}}</style>\n",
      bottom + 34);
  const std::string drop = fmt::format("{:g} %", 100 * limits.max_drop);
  constexpr double k_legend = 18;
  svg += open_dot(k_left, k_legend) + text_at(k_left + 10, k_legend + 4, "", "weir, no change");
  svg += full_dot(250, k_legend) + text_at(260, k_legend + 4, "", "weir, " + drop + " slower");
  svg += mark_of_fixed(390, k_legend, /*enough=*/true) +
         text_at(400, k_legend + 4, "", "best fixed number at the same error rates");
  for (const int mark : {5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000}) {
    const double x = x_position(mark);
    svg += fmt::format("<path class=\"grid\" d=\"M{:.1f} {:.1f}V{:.1f}\"/>\n", x, k_top - 12,
                       bottom - 6);
    svg += text_at(x, bottom + 10, " text-anchor=\"middle\"", std::to_string(mark));
  }
  svg += text_at((k_left + k_right) / 2, bottom + 28, " text-anchor=\"middle\"",
                 "pairs of runs, mean (logarithmic)");
  double y = k_top;
  for (const Line& line : lines) {
    svg += text_at(k_left - 12, y + 4, " text-anchor=\"end\"", escape_xml(line.noise));
    if (line.weir_at_max_drop) {
      svg += fmt::format("<path class=\"span\" d=\"M{:.1f} {:.1f}H{:.1f}\"/>\n",
                         x_position(*line.weir_without_change), y,
                         x_position(line.best_fixed.value_or(*line.weir_at_max_drop)));
    }
    if (line.best_fixed)
      svg += mark_of_fixed(x_position(*line.best_fixed), y, line.is_fixed_enough);
    svg += open_dot(x_position(*line.weir_without_change), y);
    if (line.weir_at_max_drop) svg += full_dot(x_position(*line.weir_at_max_drop), y);
    y += k_row;
  }
  return svg + "</svg>\n";
}

}  // namespace weir::quality
