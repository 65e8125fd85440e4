#include <algorithm>

#include <fmt/format.h>

#include "gate/base/text.hpp"
#include "gate/report/document.hpp"
#include "gate/report/formats.hpp"
#include "gate/report/layout.hpp"
#include "gate/report/pictures.hpp"

namespace weir::report {

using verdict::CellVerdict;
using verdict::GateVerdict;
using verdict::MetricVerdict;
using verdict::Outcome;

namespace {

constexpr std::size_t k_title_indent = 6;
constexpr std::size_t k_row_indent = 8;
constexpr std::size_t k_detail_indent = 10;

// A phrase that no line break parts, unless it is long anyway.
std::string kept_together(std::string_view phrase) {
  if (text::columns(phrase) > 50) return std::string(phrase);
  std::string out;
  for (const char c : phrase) {
    if (c == ' ') {
      out += k_no_break;
    } else {
      out += c;
    }
  }
  return out;
}

class Terminal {
 public:
  Terminal(const GateVerdict& gate, const TerminalStyle& style)
      : gate_(gate),
        style_(style),
        page_(style.color, static_cast<std::size_t>(std::max(style.width, 40))) {}

  std::string write() {
    heading();
    proposals();
    for (const CellVerdict* cell : cells_to_read(gate_)) {
      if (cell->verdict != Outcome::fresh || style_.verbose) problem(*cell);
    }
    if (!style_.verbose) group(Outcome::fresh);
    observed();
    decided();
    doubts();
    fine();
    summary();
    return page_.finish();
  }

 private:
  void heading() {
    std::vector<std::string> parts;
    for (const std::string& part : gate_.not_judged) {
      parts.push_back(kept_together(one_line(part, 200)));
    }
    const std::string missing = text::join(parts);
    const std::string cells = plural(gate_.cells.size(), "cell");
    const std::string config = clip_middle(one_line(gate_.config), page_.width() / 3);
    const std::string name = fmt::format("weir {}  ", one_line(gate_.weir_version, 30));
    const auto column = [](const std::string& text) { return text.empty() ? "" : text + "  "; };
    if (missing.empty()) {
      page_.paragraph("", name + column(config) + cells + "  " + short_rule(gate_), k_title_indent);
      return;
    }
    // What was not judged stands in the very first line: a green must not hide it.
    page_.paragraph("", name + cells + "  " + missing, k_title_indent);
    const std::string rest = column(config) + short_rule(gate_);
    if (!rest.empty()) page_.paragraph(std::string(k_title_indent, ' '), rest, k_title_indent);
  }

  void proposals() {
    const ProposalWords all =
        proposal_words(gate_, style_.verbose ? verdict::k_most_proposals : 12);
    if (all.head.empty()) return;
    page_.blank();
    page_.paragraph("rules ", all.head, k_title_indent, k_dim, k_bold);
    for (const std::string& line : all.lines) {
      page_.paragraph(std::string(k_row_indent, ' '), line, k_detail_indent);
    }
  }

  void title(Outcome outcome, std::string_view words) {
    page_.blank();
    page_.paragraph(pad_right(tag(outcome), k_title_indent - 1) + " ", words, k_title_indent,
                    color_of(outcome), k_bold);
  }

  void detail(std::string_view words, std::string_view color = "") {
    page_.paragraph(std::string(k_detail_indent, ' '), words, k_detail_indent, "", color);
  }

  void problem(const CellVerdict& cell) {
    title(cell.verdict, cell_title(cell.cell));
    if (!cell.reason.empty()) {
      const std::string reason = clip(text::printable(cell.reason), 2000);
      page_.paragraph(std::string(k_row_indent, ' '), reason, k_detail_indent);
    }
    if (cell.verdict == Outcome::error) last_words(cell);
    if (cell.base && cell.base != "same device class" && !cell.base->empty()) {
      detail("judged by: " + one_line(*cell.base), k_dim);
    }
    placement(cell);
    metrics(cell, rows_of(cell));
    why(cell);
    for (const std::string& warning : cell.warnings) detail("doubt: " + one_line(warning));
  }

  // The best explanation alone; weir explain has the others, and the arithmetic.
  void why(const CellVerdict& cell) {
    if (cell.findings.empty()) return;
    const verdict::Finding& best = cell.findings.front();
    page_.paragraph(std::string(k_row_indent, ' ') + "why: ", one_line(best.headline, 400),
                    k_detail_indent, k_bold);
    if (!style_.verbose) return;
    for (const std::string& line : best.lines) detail(one_line(line, 400), k_dim);
  }

  void last_words(const CellVerdict& cell) {
    const auto tail = last_lines(cell.stderr_tail, style_.verbose ? 100 : 8);
    if (tail.empty()) return;
    page_.paragraph(std::string(k_row_indent, ' '), "its last words:", k_detail_indent);
    for (const std::string& line : tail) {
      page_.paragraph(std::string(k_detail_indent, ' ') + "| ", clip(line, 400),
                      k_detail_indent + 2, k_dim, k_dim);
    }
  }

  void placement(const CellVerdict& cell) {
    if (cell.placement_verdict >= Outcome::pass) return;
    page_.paragraph(std::string(k_row_indent, ' ') + "placement   ",
                    one_line(cell.placement_reason, 600), k_detail_indent, "",
                    color_of(cell.placement_verdict));
    changes(changed_words(cell.ops));
  }

  [[nodiscard]] std::vector<const MetricVerdict*> rows_of(const CellVerdict& cell) const {
    std::vector<const MetricVerdict*> rows;
    for (const MetricVerdict* metric : worst_first(cell)) {
      const bool wrong = metric->verdict < Outcome::pass;
      const bool shown = metric->verdict == Outcome::pass && key_metric(metric->metric);
      if (style_.verbose || wrong || shown || observed_change(*metric)) rows.push_back(metric);
    }
    return rows;
  }

  // Rows of numbers, kernels and functions below the count they explain, and a reason where numbers
  // and limit do not say it all.
  void metrics(const CellVerdict& cell, const std::vector<const MetricVerdict*>& rows) {
    const Widths widths = widths_of(rows);
    bool kernels_told = false;
    for (const MetricVerdict* metric : rows) {
      row(cell, *metric, widths);
      if (!kernels_told && adds_up_kernels(cell, metric->metric) && words(*metric).differs) {
        kernels_told = true;
        kernel_reason(cell);
        changes(changed_words(cell.kernels));
      }
      if (explained_by_functions(cell, metric->metric)) changes(function_words(cell.functions));
    }
    if (!kernels_told && cell.kernels_verdict < Outcome::pass) {
      page_.paragraph(std::string(k_row_indent, ' ') + "kernels   ",
                      one_line(cell.kernels_reason, 600), k_detail_indent, "",
                      color_of(cell.kernels_verdict));
      changes(changed_words(cell.kernels));
    }
    hidden(cell, rows);
  }

  void kernel_reason(const CellVerdict& cell) {
    if (style_.verbose && !cell.kernels_reason.empty()) {
      detail(one_line(cell.kernels_reason, 600), k_dim);
    }
  }

  [[nodiscard]] std::size_t longest_label() const {
    return std::clamp<std::size_t>(page_.width() / 3, 12, 28);
  }

  struct Widths {
    std::size_t label = 0, baseline = 0, current = 0, change = 0;
  };
  [[nodiscard]] Widths widths_of(const std::vector<const MetricVerdict*>& rows) const {
    Widths widths;
    for (const MetricVerdict* metric : rows) {
      const MetricWords all = words(*metric);
      const std::string& left = all.baseline.empty() || !all.differs ? all.current : all.baseline;
      widths.label = std::max(widths.label, std::min(text::columns(all.label), longest_label()));
      widths.baseline = std::max(widths.baseline, text::columns(left));
      if (all.differs) widths.current = std::max(widths.current, text::columns(all.current));
      // Only short changes make a column: an interval may take the room of the limit.
      if (metric->metric.kind == unit::Kind::count) {
        widths.change = std::max(widths.change, text::columns(all.change));
      }
    }
    return widths;
  }

  void row(const CellVerdict& cell, const MetricVerdict& metric, const Widths& widths) {
    const MetricWords all = words(metric);
    const bool wrong = metric.verdict < Outcome::pass;
    // A metric that came out as its cell needs no word of its own.
    const bool tagged = wrong && metric.verdict != cell.verdict;
    std::string line =
        tagged ? "  " + pad_right(tag(metric.verdict), 5) + " " : std::string(k_row_indent, ' ');
    if (text::columns(line) > k_row_indent) line = "  " + tag(metric.verdict) + " ";
    line += pad_right(clip(all.label, longest_label()), widths.label) + "  ";
    if (all.differs) {
      line += pad_left(all.baseline, widths.baseline) + std::string(k_arrow) +
              pad_right(all.current, widths.current) + "   ";
    } else if (all.current.empty() && !all.baseline.empty()) {
      line += pad_left(all.baseline, widths.baseline) + std::string(k_arrow) + "not measured   ";
    } else {
      line += pad_left(all.current, widths.baseline) + "   ";
    }
    page_.paragraph(line, tail_words(metric, all, widths), k_detail_indent, "",
                    wrong ? color_of(metric.verdict) : "");
    const bool silent = metric.verdict == Outcome::pass && !all.differs;
    const bool wanted = style_.verbose ? !silent : !reason_is_plain(metric);
    if (wanted && !metric.reason.empty() && metric.reason != cell.reason) {
      detail(one_line(metric.reason, 600));
    }
    picture(metric);
    for (const std::string& warning : metric.warnings) detail("doubt: " + one_line(warning));
  }

  // The ratios of pairs, what the marks mean where that was not just said, and how the sides
  // spread.
  void picture(const MetricVerdict& metric) {
    const std::string strip = ratio_strip(metric, page_.width() - k_detail_indent);
    if (strip.empty()) return;
    detail(kept_together(strip));
    std::string legend = strip_legend(metric);
    if (legend != legend_) detail(legend, k_dim);
    legend_ = std::move(legend);
    for (const std::string& line : spread_words(metric)) detail(line);
  }

  [[nodiscard]] std::string tail_words(const MetricVerdict& metric, const MetricWords& all,
                                       const Widths& widths) const {
    const bool show_limit = !all.limit.empty() && metric.verdict != Outcome::pass;
    const std::string limit = show_limit || style_.verbose ? all.limit : "";
    if (metric.metric.kind == unit::Kind::count) {
      if (limit.empty()) return all.change;
      return pad_right(all.change, widths.change) + "   " + limit;
    }
    // Sessions and runs matter where something is to be decided; what is fine gets the short form.
    const bool brief = metric.verdict == Outcome::pass && !style_.verbose;
    const std::string evidence =
        brief ? all.evidence.substr(0, all.evidence.find(',')) : all.evidence;
    std::vector<std::string> parts;
    for (const std::string& part : {all.change, evidence, limit}) {
      if (!part.empty()) parts.push_back(kept_together(part));
    }
    return text::join(parts);
  }

  void changes(const std::vector<ChangedWords>& all) {
    const std::size_t most = style_.verbose ? all.size() : 12;
    std::string line;
    for (std::size_t i = 0; i < std::min(most, all.size()); ++i) {
      line += fmt::format("{}{}{}{}", i == 0 ? "" : "   ", kept_together(all[i].change), k_no_break,
                          all[i].name);
    }
    if (all.size() > most) line += fmt::format("   and {} more", all.size() - most);
    if (!line.empty()) detail(line);
  }

  void hidden(const CellVerdict& cell, const std::vector<const MetricVerdict*>& rows) {
    const auto shown = static_cast<std::size_t>(std::count_if(
        rows.begin(), rows.end(),
        [](const MetricVerdict* metric) { return metric->verdict == Outcome::pass; }));
    const std::size_t passed = passed_metrics(cell);
    if (passed > shown) {
      page_.paragraph(std::string(k_row_indent, ' '),
                      plural(passed - shown, "more metric") + " within limits", k_detail_indent, "",
                      k_dim);
    }
  }

  // Cells that share a verdict and a reason, told once.
  void group(Outcome outcome) {
    for (const Shared& shared : by_reason(gate_, outcome)) {
      if (shared.cells.size() == 1) {
        const auto found = std::find_if(
            gate_.cells.begin(), gate_.cells.end(),
            [&](const CellVerdict& cell) { return cell.cell.str() == shared.cells.front(); });
        if (found != gate_.cells.end()) problem(*found);
        continue;
      }
      title(outcome, fmt::format("{}: {}", plural(shared.cells.size(), "cell"), shared.text));
      names(shared.cells, k_row_indent);
    }
  }

  void names(const std::vector<std::string>& cells, std::size_t indent) {
    const std::size_t most = style_.verbose ? cells.size() : 6;
    for (std::size_t i = 0; i < std::min(most, cells.size()); ++i) {
      page_.paragraph(std::string(indent, ' '), one_line(cells[i], 300), indent + 2);
    }
    if (cells.size() > most) {
      page_.paragraph(std::string(indent, ' '), fmt::format("and {} more", cells.size() - most),
                      indent + 2, "", k_dim);
    }
  }

  // Metrics at `mode: report` that moved in cells that are otherwise fine.
  void observed() {
    if (style_.verbose) return;  // shown with their cells
    std::size_t left = 8;
    for (const CellVerdict& cell : gate_.cells) {
      if (cell.verdict < Outcome::pass) continue;
      std::vector<const MetricVerdict*> moved;
      for (const MetricVerdict& metric : cell.metrics) {
        if (observed_change(metric)) moved.push_back(&metric);
      }
      if (moved.empty() || left == 0) continue;
      --left;
      page_.blank();
      page_.paragraph("seen  ", cell_title(cell.cell), k_title_indent, k_dim, k_bold);
      const Widths widths = widths_of(moved);
      for (const MetricVerdict* metric : moved) row(cell, *metric, widths);
    }
  }

  // Where nothing is wrong: cells whose times pairs have judged, for how sure that is can be seen.
  void decided() {
    if (style_.verbose || gate_.verdict < Outcome::fresh) return;  // verbose: with their cells
    std::size_t left = 8, more = 0;
    for (const CellVerdict& cell : gate_.cells) {
      if (cell.verdict < Outcome::pass) continue;
      std::vector<const MetricVerdict*> judged = pictured(cell);
      std::erase_if(judged, [](const MetricVerdict* one) { return one->verdict > Outcome::pass; });
      if (judged.empty()) continue;
      if (left == 0) {
        ++more;
        continue;
      }
      --left;
      title(Outcome::pass, cell_title(cell.cell));
      const Widths widths = widths_of(judged);
      for (const MetricVerdict* metric : judged) row(cell, *metric, widths);
    }
    if (more > 0) {
      page_.paragraph(std::string(k_title_indent, ' '),
                      fmt::format("and {} whose times passed", plural(more, "more cell")),
                      k_title_indent, "", k_dim);
    }
  }

  // Doubts about cells that are fine (the others carry theirs), and notes about any.
  void doubts() {
    GateVerdict quiet;
    for (const CellVerdict& cell : gate_.cells) {
      const bool told = style_.verbose || cell.verdict < Outcome::fresh ||
                        cell.verdict == Outcome::improved || cell.verdict == Outcome::accepted;
      if (!told) quiet.cells.push_back(cell);
    }
    shared("doubt ", shared_warnings(quiet));
    auto notes = shared_notes(gate_);
    for (const std::string& note : gate_.notes) notes.push_back({one_line(note), {}});
    shared("note  ", notes);
  }

  void shared(std::string_view head, const std::vector<Shared>& list) {
    if (list.empty()) return;
    page_.blank();
    const std::size_t most = style_.verbose ? list.size() : 8;
    for (std::size_t i = 0; i < std::min(most, list.size()); ++i) {
      const Shared& one = list[i];
      std::string where;
      if (one.cells.size() == 1) where = one_line(one.cells.front(), 300) + ": ";
      if (one.cells.size() > 1) where = plural(one.cells.size(), "cell") + ": ";
      page_.paragraph(head, where + one.text, k_title_indent, k_dim);
    }
    if (list.size() > most) {
      page_.paragraph(head, fmt::format("and {} more", list.size() - most), k_title_indent, k_dim);
    }
  }

  void fine() {
    std::size_t cells = 0;
    std::size_t passed = 0;
    for (const CellVerdict& cell : gate_.cells) {
      if (cell.verdict != Outcome::pass) continue;
      ++cells;
      passed += passed_metrics(cell);
      if (style_.verbose) problem(cell);
    }
    const bool alone = cells == gate_.cells.size();  // then the summary says the same
    if (cells > 0 && !alone) {
      title(Outcome::pass, fmt::format("{}, {}", plural(cells, "cell"), plural(passed, "metric")));
    }
    for (const Shared& skipped : by_reason(gate_, Outcome::skipped)) {
      title(Outcome::skipped,
            fmt::format("{}: {}", plural(skipped.cells.size(), "cell"), skipped.text));
      if (style_.verbose) names(skipped.cells, k_row_indent);
    }
  }

  void summary() {
    page_.blank();
    std::string line = headline(gate_) + ".";
    if (gate_.exit_code == verdict::ExitCode::inconclusive) {
      line += "  Undecided fails here (on_inconclusive: fail).";
    }
    if (gate_.seconds) line += "  " + unit::show_duration(*gate_.seconds) + ".";
    if (gate_.profiling_cost) {
      line += fmt::format("  Profiling cost {:.1f} % of throughput.", *gate_.profiling_cost * 100);
    }
    page_.paragraph(pad_right(upper_tag(gate_.verdict), k_title_indent - 1) + " ", line,
                    k_title_indent, color_of(gate_.verdict));
    const auto fact = [&](std::string_view what, const std::string& value) {
      if (value.empty()) return;
      page_.paragraph(fmt::format("{:6}{:<9}", "", what), value, 15, k_dim);
    };
    fact("base", base_words(gate_));
    if (gate_.run) fact("run", one_line(*gate_.run, 300));
    if (style_.verbose || beside_base(gate_)) fact("rule", one_line(gate_.decision_rule, 2000));
    own_metrics();
    for (const Hint& hint : hints(gate_, style_.verbs, page_.width() - 19)) command(hint);
  }

  // What servers said of themselves judges nothing: here stands where it is shown.
  void own_metrics() {
    const bool some = std::any_of(gate_.cells.begin(), gate_.cells.end(),
                                  [](const CellVerdict& cell) { return !cell.server.empty(); });
    const auto& verbs = style_.verbs;
    if (!some || !gate_.run || std::find(verbs.begin(), verbs.end(), "profile") == verbs.end()) {
      return;
    }
    command({"servers", {"weir profile", text::shell_word(one_line(*gate_.run, 300))}});
  }

  // Broken between words only, with a backslash, so that it can be pasted.
  void command(const Hint& hint) {
    constexpr std::size_t k_at = 15;
    std::string line = fmt::format("{:6}{:<9}", "", hint.what);
    for (std::size_t i = 0; i < hint.words.size(); ++i) {
      const bool last = i + 1 == hint.words.size();
      const bool fresh = text::columns(line) <= k_at + 2;
      const std::size_t tail = last ? 0 : 2;
      if (!fresh && text::columns(line) + 1 + text::columns(hint.words[i]) + tail > page_.width()) {
        page_.paragraph(line + " \\", "", 0);
        line = std::string(k_at + 2, ' ');
      } else if (i > 0) {
        line += ' ';
      }
      line += hint.words[i];
    }
    page_.paragraph(line, "", 0);
  }

  const GateVerdict& gate_;
  const TerminalStyle& style_;
  Page page_;
  std::string legend_;  // of the last picture
};

}  // namespace

std::string terminal(const GateVerdict& gate, const TerminalStyle& style) {
  return Terminal(gate, style).write();
}

}  // namespace weir::report
