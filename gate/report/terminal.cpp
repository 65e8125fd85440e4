#include "gate/report/terminal.hpp"

#include <algorithm>
#include <span>

#include <fmt/format.h>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/report/document.hpp"
#include "gate/report/layout.hpp"
#include "gate/report/ratios.hpp"

namespace weir::report {
namespace {

constexpr std::size_t k_title_indent = 6;
constexpr std::size_t k_row_indent = 8;
constexpr std::size_t k_detail_indent = 10;

// A phrase that no line break parts, unless it is long anyway.
std::string kept_together(std::string_view phrase) {
  return text::columns(phrase) > 50 ? std::string(phrase) : unbroken(phrase);
}

class Terminal {
 public:
  Terminal(const Document& document, const TerminalStyle& style)
      : document_(document),
        gate_(document.gate),
        style_(style),
        page_(style.color, columns_of(style.width)),
        longest_label_(std::clamp<std::size_t>(page_.width() / 3, 12, 28)) {}

  std::string write() {
    heading();
    proposals();
    causes();
    if (style_.verbose) {
      for (const CellDocument* cell : document_.to_read) problem(alone(*cell));
    } else {
      for (const Block& block : document_.blocks) {
        if (!block.folded) problem(block);
      }
    }
    shared("code  ", document_.other_code());
    observed();
    decided();
    warnings();
    fine();
    summary();
    return page_.finish();
  }

 private:
  void heading() {
    std::string missing =
        text::join(collect<std::string>(gate_.not_judged, [](const std::string& part) {
          return kept_together(one_line(part, 200));
        }));
    if (gate_.unjudged) {
      missing = one_line(*gate_.unjudged, 300) + (missing.empty() ? "" : "; ") + missing;
    }
    const std::string cells = plural(gate_.cells.size(), "cell");
    const std::string config = clip_middle(one_line(gate_.config), page_.width() / 3);
    const std::string name = fmt::format("weir {}  ", one_line(gate_.weir_version, 30));
    const auto column = [](const std::string& text) { return text.empty() ? "" : text + "  "; };
    if (missing.empty()) {
      return page_.paragraph("", name + column(config) + cells + "  " + document_.rule,
                             k_title_indent);
    }
    // What was not judged stands in the very first line: a green must not hide it.
    page_.paragraph("", name + cells + "  " + missing, k_title_indent);
    const std::string rest = column(config) + document_.rule;
    if (!rest.empty()) page_.paragraph(std::string(k_title_indent, ' '), rest, k_title_indent);
  }

  void proposals() {
    const ProposalWords all =
        proposal_words(gate_, style_.verbose ? verdict::k_most_proposals : 12);
    if (all.head.empty()) return;
    page_.blank();
    page_.paragraph("rules ", all.head, k_title_indent, k_dim, k_bold);
    for (const std::string& line : all.lines) at(k_row_indent, line);
  }

  // A paragraph whose further lines stand two columns further in.
  void at(std::size_t indent, std::string_view words, std::string_view color = "") {
    page_.paragraph(std::string(indent, ' '), words, indent + 2, "", color);
  }

  void title(Outcome outcome, std::string_view words) {
    page_.blank();
    const OutcomeLook& look = look_of(outcome);
    page_.paragraph(pad_right(look.tag, k_title_indent - 1) + " ", words, k_title_indent,
                    look.color, k_bold);
  }

  void detail(std::string_view words, std::string_view color = "") {
    page_.paragraph(std::string(k_detail_indent, ' '), words, k_detail_indent, "", color);
  }

  // What broke so many cells, then what nothing explains. The cells' own numbers are left out.
  void causes() {
    if (!document_.cause_first) return;
    constexpr std::size_t k_most_causes = 8, k_most_numbers = 12;
    title(Outcome::fail, document_.headline);
    const std::size_t all = document_.causes.size();
    const std::size_t shown = style_.verbose ? all : std::min(all, k_most_causes);
    for (const CauseWords& cause : std::span(document_.causes).first(shown)) {
      page_.blank();
      page_.paragraph(std::string(k_title_indent, ' '), cause.headline, k_row_indent, "", k_bold);
      at(k_row_indent, cause.where);
      numbers(cause.numbers, cause.numbers.size());
      if (!cause.follow.empty()) at(k_row_indent, cause.follow, k_dim);
      if (!cause.look_at.empty()) look_at(cause.look_at);
    }
    if (shown < all) {
      page_.blank();
      at(k_title_indent, "and " + plural(all - shown, "more cause"), k_bold);
    }
    if (document_.unexplained.empty()) return;
    page_.blank();
    page_.paragraph(std::string(k_title_indent, ' '), "Not explained:", k_row_indent, "", k_bold);
    numbers(document_.unexplained, style_.verbose ? document_.unexplained.size() : k_most_numbers);
  }

  void look_at(const std::string& words) {
    page_.paragraph(std::string(k_row_indent, ' ') + "look at: ", words, k_detail_indent, k_dim);
  }

  void numbers(const std::vector<NumberWords>& all, std::size_t most) {
    const auto shown = std::span(all).first(std::min(most, all.size()));
    // Long values, and reasons in place of them, make no column.
    const auto in_column = [&](const NumberWords& one) {
      return !one.change.empty() && text::columns(one.from_to) <= page_.width() / 4;
    };
    std::size_t label = 0, from_to = 0;
    for (const NumberWords& one : shown) {
      label = std::max(label, std::min(text::columns(one.label), longest_label_));
      if (in_column(one)) from_to = std::max(from_to, text::columns(one.from_to));
    }
    for (const NumberWords& one : shown) {
      std::string line(k_detail_indent, ' ');
      line += pad_right(clip(one.label, longest_label_), label) + "  ";
      if (in_column(one)) line += pad_right(one.from_to, from_to) + "  ";
      std::vector<std::string> rest{in_column(one) ? "" : kept_together(one.from_to),
                                    kept_together(one.change), one.where};
      std::erase(rest, "");
      page_.paragraph(line, text::join(rest), k_detail_indent + 2);
    }
    if (shown.size() < all.size()) {
      at(k_detail_indent, fmt::format("and {} more", all.size() - shown.size()), k_dim);
    }
  }

  [[nodiscard]] static Block alone(const CellDocument& cell) { return Block({&cell}); }

  void problem(const Block& block) {
    const CellVerdict& cell = block.of();
    title(cell.verdict, block.title);
    if (!block.one()) at(k_row_indent, block.list(block.cells, 12), k_dim);
    const bool says_all = reason_says_all(cell) && !style_.verbose;
    const std::string& reason = says_all ? block.first().reason : block.reason;
    if (!reason.empty()) at(k_row_indent, clip(text::printable(reason), 2000));
    if (says_all) return;
    if (cell.verdict == Outcome::error) last_words(block);
    if (const std::string base = judged_by(cell); !base.empty()) detail(base, k_dim);
    for (const MetricRow* row : block.rows) {
      if (row->broken_rule()) broken(*row, block);
    }
    metrics(block);
    why(block);
  }

  // A rule that is about no metric, and what changed.
  void broken(const MetricRow& row, const Block& block) {
    const verdict::Judgement& of = *row.of;
    page_.paragraph(fmt::format("{:{}}{}   ", "", k_row_indent, row.words.label),
                    one_line(of.reason, 600), k_detail_indent, "", look_of(of.verdict).color);
    if (of.metric.name == verdict::k_placement) changes(block, block.ops);
    if (of.metric.name == verdict::k_kernels) changes(block, block.kernels);
  }

  // The best explanation alone; weir explain has the others, and the arithmetic.
  void why(const Block& block) {
    constexpr std::size_t k_most = 3;
    for (const Shared& one : std::span(block.why).first(std::min(k_most, block.why.size()))) {
      page_.paragraph(std::string(k_row_indent, ' ') + "why: ", block.in(one.cells) + one.text,
                      k_detail_indent, k_bold);
    }
    if (!style_.verbose || block.of().findings.empty()) return;
    for (const std::string& line : block.of().findings.front().lines) {
      detail(one_line(line, 400), k_dim);
    }
  }

  void last_words(const Block& block) {
    const auto tail = last_lines(block.of().stderr_tail, style_.verbose ? 100 : 8);
    if (tail.empty()) return;
    at(k_row_indent, block.one() ? "its last words:" : "last words of one of them:");
    for (const std::string& line : tail) {
      page_.paragraph(std::string(k_detail_indent, ' ') + "| ", clip(line, 400),
                      k_detail_indent + 2, k_dim, k_dim);
    }
  }

  using Rows = std::vector<const MetricRow*>;
  [[nodiscard]] Rows rows_of(const Block& block) const {
    Rows rows = block.rows;
    std::erase_if(rows, [&](const MetricRow* row) {
      const Judgement& metric = *row->of;
      const bool wrong = metric.verdict < Outcome::pass;
      const bool shown = metric.verdict == Outcome::pass && key_metric(metric.metric);
      if (!metric.is_metric()) return true;
      return !style_.verbose && !wrong && !shown && !observed_change(metric);
    });
    return rows;
  }

  // Rows of numbers, kernels and functions below the count they explain, and a reason where numbers
  // and limit do not say it all.
  void metrics(const Block& block) {
    const CellVerdict& cell = block.of();
    const Rows rows = rows_of(block);
    const Widths widths = widths_of(rows);
    const verdict::Judgement& kernels = cell.of(verdict::k_kernels);
    bool kernels_shown = std::ranges::any_of(block.rows, [&](const MetricRow* row) {
      return row->of == &kernels && row->broken_rule();
    });
    for (const MetricRow* one : rows) {
      row(cell, *one, widths);
      if (!kernels_shown && adds_up_kernels(cell, one->of->metric) && one->words.differs) {
        kernels_shown = true;
        if (style_.verbose && !kernels.reason.empty()) {
          detail(one_line(kernels.reason, 600), k_dim);
        }
        changes(block, block.kernels);
      }
      if (explained_by_functions(cell, one->of->metric)) changes(block, block.functions);
    }
    if (!block.one()) return;
    const auto shown = static_cast<std::size_t>(std::ranges::count_if(
        rows, [](const MetricRow* row) { return row->of->verdict == Outcome::pass; }));
    if (block.first().passed > shown) {
      at(k_row_indent, plural(block.first().passed - shown, "more metric") + " within limits",
         k_dim);
    }
  }

  struct Widths {
    std::size_t label = 0, baseline = 0, current = 0, change = 0;
  };
  [[nodiscard]] Widths widths_of(const Rows& rows) const {
    Widths widths;
    for (const MetricRow* row : rows) {
      const MetricWords& all = row->words;
      const std::string& left = all.baseline.empty() || !all.differs ? all.current : all.baseline;
      widths.label = std::max(widths.label, std::min(text::columns(all.label), longest_label_));
      widths.baseline = std::max(widths.baseline, text::columns(left));
      if (all.differs) widths.current = std::max(widths.current, text::columns(all.current));
      // Only short changes make a column: an interval may take the room of the limit.
      if (row->of->metric.kind == unit::Kind::count) {
        widths.change = std::max(widths.change, text::columns(all.change));
      }
    }
    return widths;
  }

  void row(const CellVerdict& cell, const MetricRow& row, const Widths& widths) {
    const Judgement& metric = *row.of;
    const MetricWords& all = row.words;
    const OutcomeLook& look = look_of(metric.verdict);
    const bool wrong = metric.verdict < Outcome::pass;
    // A metric that came out as its cell, or says so in its limit, needs no word of its own.
    const bool tagged = wrong && metric.verdict != cell.verdict && !limit_says_improved(metric);
    std::string line = tagged ? fmt::format("  {:5} ", look.tag) : std::string(k_row_indent, ' ');
    line += pad_right(clip(all.label, longest_label_), widths.label) + "  ";
    if (all.differs) {
      line += pad_left(all.baseline, widths.baseline) + std::string(k_arrow) +
              pad_right(all.current, widths.current) + "   ";
    } else if (all.current.empty() && !all.baseline.empty()) {
      line += pad_left(all.baseline, widths.baseline) + std::string(k_arrow) + "not measured   ";
    } else {
      line += pad_left(all.current, widths.baseline) + "   ";
    }
    std::string tail = tail_words(metric, all, widths);
    // "improved: accept to keep" has no room everywhere, and a command below says the latter.
    if (text::columns(line) + text::columns(tail) > page_.width() && limit_says_improved(metric)) {
      tail = tail.substr(0, tail.rfind(':'));
    }
    if (text::columns(line) > page_.width()) {  // no columns on so narrow a page
      tail = fmt::format("{} {}", text::trim(line), tail);
      line = std::string(k_row_indent, ' ');
    }
    page_.paragraph(line, tail, k_detail_indent, "", wrong ? look.color : "");
    const bool silent = metric.verdict == Outcome::pass && !all.differs;
    const bool wanted = style_.verbose ? !silent : !reason_is_plain(metric);
    if (wanted && !metric.reason.empty() && metric.reason != cell.reason) {
      detail(one_line(metric.reason, 600));
    }
    picture(metric);
  }

  // The ratios of pairs, what the marks mean where that was not just said, and how the sides
  // spread.
  void picture(const Judgement& metric) {
    const std::string strip = ratio_strip(metric, page_.width() - k_detail_indent);
    if (strip.empty()) return;
    detail(kept_together(strip));
    std::string legend = strip_legend(metric);
    if (legend != legend_) detail(legend, k_dim);
    legend_ = std::move(legend);
    for (const std::string& line : spread_words(metric)) detail(line);
  }

  [[nodiscard]] std::string tail_words(const Judgement& metric, const MetricWords& all,
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

  // What all cells of a block share, then what only some have.
  void changes(const Block& block, const std::vector<ChangedIn>& shared) {
    constexpr std::size_t k_most_sets = 4;
    for (std::size_t i = 0; i < shared.size(); ++i) {
      if (i == k_most_sets && !style_.verbose) {
        detail(fmt::format("and others in {} more",
                           plural(shared.size() - i, "set of cells", "sets of cells")),
               k_dim);
        return;
      }
      std::vector<std::string> all;
      for (const auto& [change, name] : shared[i].changes) {
        all.push_back(fmt::format("{}{}{}", kept_together(change), k_no_break, name));
      }
      const std::size_t most = style_.verbose ? all.size() : 12;
      detail(block.in(shared[i].cells) + text::join(shortened(std::move(all), most), "   "));
    }
  }

  void rows_alone(const CellDocument& cell, const Rows& rows) {
    const Widths widths = widths_of(rows);
    for (const MetricRow* one : rows) row(*cell.of, *one, widths);
  }

  // Metrics at `mode: report` that moved in cells that are otherwise fine.
  void observed() {
    if (style_.verbose) return;  // shown with their cells
    std::size_t shown = 0;
    for (const CellDocument& cell : document_.cells) {
      if (cell.of->verdict < Outcome::pass) continue;
      Rows moved;
      for (const MetricRow& one : cell.rows) {
        if (observed_change(*one.of)) moved.push_back(&one);
      }
      if (moved.empty() || ++shown > 8) continue;
      page_.blank();
      page_.paragraph("seen  ", cell.title, k_title_indent, k_dim, k_bold);
      rows_alone(cell, moved);
    }
  }

  // Where nothing is wrong: cells whose times pairs have judged, for how sure that is can be seen.
  void decided() {
    constexpr std::size_t k_most = 8;
    if (style_.verbose || gate_.verdict < Outcome::new_) return;  // verbose: with their cells
    std::size_t shown = 0;
    for (const CellDocument& cell : document_.cells) {
      if (cell.of->verdict < Outcome::pass) continue;
      Rows judged = pictured(cell);
      std::erase_if(judged, [](const MetricRow* one) { return one->of->verdict > Outcome::pass; });
      if (judged.empty() || ++shown > k_most) continue;
      title(Outcome::pass, cell.title);
      rows_alone(cell, judged);
    }
    if (shown > k_most) {
      page_.paragraph(std::string(k_title_indent, ' '),
                      fmt::format("and {} whose times passed", plural(shown - k_most, "more cell")),
                      k_title_indent, "", k_dim);
    }
  }

  // Once a run, with their cells.
  void warnings() {
    shared("warn  ", document_.warnings());
    shared("note  ", document_.notes());
  }

  void shared(std::string_view head, const std::vector<Shared>& list) {
    if (list.empty()) return;
    page_.blank();
    std::vector<std::string> lines;
    for (const auto& [text, cells] : list) {
      std::string where;
      if (cells.size() == 1) where = one_line(cells.front()->of->cell.str(), 300) + ": ";
      if (cells.size() > 1) {
        where = fmt::format("{} of {}: ", cells.size(), plural(gate_.cells.size(), "cell"));
      }
      lines.push_back(where + text);
    }
    const std::size_t most = document_.cause_first ? 3 : 8;
    for (const std::string& line :
         shortened(std::move(lines), style_.verbose ? list.size() : most)) {
      page_.paragraph(head, line, k_title_indent, k_dim);
    }
  }

  void fine() {
    std::size_t cells = 0, passed = 0;
    for (const CellDocument& cell : document_.cells) {
      if (cell.of->verdict != Outcome::pass) continue;
      ++cells;
      passed += cell.passed;
      if (style_.verbose) problem(alone(cell));
    }
    const bool alone = cells == gate_.cells.size();  // then the summary says the same
    if (cells > 0 && !alone) {
      title(Outcome::pass, fmt::format("{}, {}", plural(cells, "cell"), plural(passed, "metric")));
    }
    for (const Shared& skipped : document_.by_reason(Outcome::skipped)) {
      title(Outcome::skipped,
            fmt::format("{}: {}", plural(skipped.cells.size(), "cell"), skipped.text));
      if (!style_.verbose) continue;
      for (const CellDocument* cell : skipped.cells)
        at(k_row_indent, one_line(cell->of->cell.str(), 300));
    }
  }

  void summary() {
    page_.blank();
    std::string line = document_.headline + ".";
    if (gate_.exit_code == verdict::ExitCode::inconclusive) {
      line += "  Inconclusive fails here (on_inconclusive: fail).";
    }
    if (gate_.seconds) line += "  " + unit::show_duration(*gate_.seconds) + ".";
    if (gate_.profiling_cost) {
      line += fmt::format("  Profiling cost {:.1f} % of throughput.", *gate_.profiling_cost * 100);
    }
    // For whole sentences: "FAIL", "ERROR", "OPEN", "SKIPPED", …
    const OutcomeLook& look = look_of(gate_.verdict);
    std::string tag(gate_.verdict == Outcome::skipped ? "skipped" : look.tag);
    for (char& c : tag) c = text::is_letter(c) ? static_cast<char>(c & ~0x20) : c;
    page_.paragraph(pad_right(tag, k_title_indent - 1) + " ", line, k_title_indent, look.color);
    const auto fact = [&](std::string_view what, const std::string& value) {
      if (value.empty()) return;
      page_.paragraph(fmt::format("{:6}{:<9}", "", what), value, 15, k_dim);
    };
    fact("base", document_.base);
    if (gate_.run) fact("run", one_line(*gate_.run, 300));
    if (style_.verbose || document_.beside_base) fact("rule", one_line(gate_.decision_rule, 2000));
    // What servers said of themselves judges nothing: here stands where it is shown.
    const bool some = std::ranges::any_of(
        gate_.cells, [](const CellVerdict& cell) { return !cell.server.empty(); });
    if (some && gate_.run && holds(style_.verbs, "profile")) {
      command({"servers", {"weir profile", text::shell_word(one_line(*gate_.run, 300))}});
    }
    const std::vector<Hint> known = hints(gate_, style_.verbs, page_.width() - 19);
    if (document_.cause_first && !style_.verbose) {
      const Hint* why = first_of(known, [](const Hint& hint) { return hint.what == "why"; });
      fact("numbers",
           fmt::format("of each cell: {}--html FILE, --json FILE",
                       why != nullptr ? text::join(why->words, " ") + " --cell CELL, " : ""));
    }
    for (const Hint& hint : known) {
      if (hint.what == "allow") {
        fact(hint.what, hint.words.front());
      } else {
        command(hint);
      }
    }
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

  const Document& document_;
  const GateVerdict& gate_;
  const TerminalStyle& style_;
  Page page_;
  std::size_t longest_label_;
  std::string legend_;  // of the last picture
};

}  // namespace

std::string terminal(const Document& document, const TerminalStyle& style) {
  return Terminal(document, style).write();
}

}  // namespace weir::report
