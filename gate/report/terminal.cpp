// Writes a gate's verdict for a terminal or a log.
#include "gate/report/terminal.hpp"

#include <algorithm>
#include <set>
#include <span>

#include <fmt/format.h>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/report/compose.hpp"
#include "gate/report/document.hpp"
#include "gate/report/layout.hpp"
#include "gate/report/ratios.hpp"

namespace weir::report {
namespace {

constexpr std::size_t k_title_indent = 6;
constexpr std::size_t k_row_indent = 8;
constexpr std::size_t k_detail_indent = 10;

// Makes a phrase that no line break divides, unless it has more than 50 columns.
std::string unbroken_if_short(std::string_view phrase) {
  return text::columns(phrase) > 50 ? std::string(phrase) : without_breaks(phrase);
}

// Writes the parts of a report in lines of a terminal.
class Terminal {
 public:
  Terminal(const Document& document, const TerminalStyle& style)
      : document_(document),
        gate_(document.gate),
        style_(style),
        page_(style.color, columns_of(style.width)),
        reader_(style.verbose ? k_verbose : k_brief),
        longest_label_(std::clamp<std::size_t>(page_.width() / 3, 12, 28)) {}

  std::string write() {
    heading();
    show_all(compose(document_), /*within=*/false);
    summary();
    return page_.finish();
  }

 private:
  // Returns ": syncs/token, kernels", what failed; "" if it is too much for a line.
  static std::string failed_subjects_text(const GateVerdict& gate) {
    constexpr std::size_t k_most = 3;
    std::set<std::string> subjects;
    for (const CellVerdict& cell : gate.cells) {
      for (const Judgement& judgement : cell.judgements) {
        if (judgement.verdict == Outcome::fail)
          subjects.insert(printable_line(unit::display_name(judgement.metric), 40));
      }
    }
    if (subjects.empty() || subjects.size() > k_most) return "";
    return ": " + text::join(std::vector<std::string>(subjects.begin(), subjects.end()));
  }

  // Writes weir's version, the configuration, the number of cells and the rule; in place of these
  // what was not judged, if anything.
  void heading() {
    std::string missing =
        text::join(collect<std::string>(gate_.not_judged, [](const std::string& part) {
          return unbroken_if_short(printable_line(part, 200));
        }));
    if (gate_.nothing_judged_reason) {
      missing = printable_line(*gate_.nothing_judged_reason, 600) + (missing.empty() ? "" : "; ") +
                missing;
    }
    // A failure comes before the reason why nothing else was compared.
    if (gate_.verdict == Outcome::fail && gate_.nothing_judged_reason) {
      missing = "FAIL: " + headline(gate_) + failed_subjects_text(gate_) + "; " + missing;
    }
    const std::string cells = text::plural(gate_.cells.size(), "cell");
    const std::string config = clip_middle(printable_line(gate_.config), page_.width() / 3);
    const std::string name = fmt::format("weir {}  ", printable_line(gate_.weir_version, 30));
    const auto column = [](const std::string& text) { return text.empty() ? "" : text + "  "; };
    if (missing.empty()) {
      return page_.add_paragraph("", name + column(config) + cells + "  " + document_.rule,
                                 k_title_indent);
    }
    // The very first line names what was not judged, because a pass must not hide it.
    page_.add_paragraph("", name + cells + "  " + missing, k_title_indent);
    const std::string rest = column(config) + document_.rule;
    if (!rest.empty()) page_.add_paragraph(std::string(k_title_indent, ' '), rest, k_title_indent);
  }

  // Returns how many of `all` items of the part are shown.
  [[nodiscard]] std::size_t shown_count(const Part& part, std::size_t all) const {
    return style_.verbose || part.max_shown == 0 ? all : std::min(all, part.max_shown);
  }

  void say_more(std::size_t indent, std::size_t count, const std::string& noun) {
    if (count == 0) return;
    say(indent,
        noun.empty() ? fmt::format("and {} more", count)
                     : fmt::format("and {}", text::plural(count, "more " + noun)),
        k_dim);
  }

  void show_all(std::span<const Part> parts, bool within) {
    for (const Part& part : parts) show(part, within);
  }

  // `within`: the part stands in a section.
  void show(const Part& part, bool within) {
    if ((part.readers & reader_) == 0) return;
    switch (part.kind) {
      case Part::Kind::section:
        return section(part, within);
      case Part::Kind::fold:
        return fold(part, within);
      case Part::Kind::paragraph:
        return paragraph(part);
      case Part::Kind::list:
        return list(part);
      case Part::Kind::changes:
        return changes(part);
      case Part::Kind::numbers:
        return numbers(part);
      case Part::Kind::preformatted:
        return output(part);
      case Part::Kind::ratios:
        return ratios(part);
      case Part::Kind::table:
      case Part::Kind::figure:
        return;  // only pages show these
    }
  }

  // Writes a section's head after the tag of its outcome: "FAIL  tiny / vulkan".
  void title(const Part& part, bool within) {
    page_.add_blank_line();
    const std::string head = plain_text(part.head);
    if (within && !part.outcome) {
      return page_.add_paragraph(std::string(k_title_indent, ' '), head, k_row_indent, "", k_bold);
    }
    const std::string_view tag = part.outcome ? outcome_look(*part.outcome).tag : part.tag;
    page_.add_paragraph(pad_right(tag, k_title_indent - 1) + " ", head, k_title_indent,
                        part.outcome ? outcome_look(*part.outcome).color : k_dim, k_bold);
  }

  // Writes title and parts of a section, and how many more parts there are.
  void section(const Part& part, bool within) {
    if ((part.titled & reader_) != 0) title(part, within);
    const std::optional<Outcome> outer = outcome_;
    outcome_ = part.outcome;
    const std::size_t shown = shown_count(part, part.parts.size());
    for (const Part& child : std::span(part.parts).first(shown)) show(child, /*within=*/true);
    if (shown < part.parts.size()) page_.add_blank_line();
    say_more(k_title_indent, part.parts.size() - shown, part.noun);
    outcome_ = outer;
  }

  void fold(const Part& part, bool within) {
    const bool open = (part.open & reader_) != 0;
    if (part.outcome) title(part, within);
    if (!open) return;
    const std::size_t shown = shown_count(part, part.parts.size());
    show_all(std::span(part.parts).first(shown), within);
    say_more(k_title_indent, part.parts.size() - shown, part.noun);
  }

  // Writes a wrapped text; its further lines are indented by two more columns.
  void say(std::size_t indent, std::string_view words, std::string_view color = "") {
    page_.add_paragraph(std::string(indent, ' '), words, indent + 2, "", color);
  }

  void detail(std::string_view words, std::string_view color = "") {
    page_.add_paragraph(std::string(k_detail_indent, ' '), words, k_detail_indent, "", color);
  }

  void paragraph(const Part& part) {
    const std::string words = part.in + plain_text(part.words);
    if (words.empty()) return;
    const std::string_view color = part.soft ? k_dim : "";
    if (part.head.empty()) return say(k_row_indent, words, color);
    const std::string head = text::lower(plain_text(part.head));
    page_.add_paragraph(fmt::format("{:{}}{}: ", "", k_row_indent, head), words, k_detail_indent,
                        part.soft ? k_dim : k_bold, color);
  }

  // Writes a line for each item, after the part's tag or indented, and how many more there are.
  void list(const Part& part) {
    if (part.items.empty()) return;
    if (!part.tag.empty()) page_.add_blank_line();
    const std::size_t shown = shown_count(part, part.items.size());
    const std::string first =
        part.tag.empty() ? std::string(k_row_indent, ' ') : pad_right(part.tag, k_title_indent);
    const std::size_t indent = part.tag.empty() ? k_detail_indent : k_title_indent;
    const auto line = [&](const std::string& words) {
      page_.add_paragraph(first, words, indent, k_dim);
    };
    for (const Words& item : std::span(part.items).first(shown)) line(plain_text(item));
    if (shown < part.items.size()) line(fmt::format("and {} more", part.items.size() - shown));
  }

  void changes(const Part& part) {
    auto all = collect<std::string>(part.items, [](const Words& item) {
      return fmt::format("{}{}{}", unbroken_if_short(item.front().text), k_no_break,
                         item.back().text);
    });
    const std::size_t shown = shown_count(part, all.size());
    detail(part.in + text::join(shortened(std::move(all), shown), "   "));
  }

  // Writes the last lines of an engine's output.
  void output(const Part& part) {
    say(k_row_indent, plain_text(part.head) + ":");
    for (const std::string& line : last_lines(part.text, style_.verbose ? 100 : 8)) {
      page_.add_paragraph(std::string(k_detail_indent, ' ') + "| ", clip(line, 400),
                          k_detail_indent + 2, k_dim, k_dim);
    }
  }

  // Writes the ratios of pairs, and how base and candidate spread. The legend comes only if it
  // differs from the last one.
  void ratios(const Part& part) {
    const std::string strip = ratio_strip(*part.judged, page_.width() - k_detail_indent);
    detail(unbroken_if_short(strip));
    std::string legend = strip_legend(*part.judged);
    if (legend != legend_) detail(legend, k_dim);
    legend_ = std::move(legend);
    for (const Words& line : part.items) detail(plain_text(line));
  }

  // Widths of the columns of a table of numbers.
  struct Widths {
    std::size_t label = 0, base = 0, candidate = 0, change = 0;
  };
  // Finds the widths for these rows. Values wider than a quarter of the page are ignored, and so
  // are changes with an interval, which may run into the column of the limit.
  [[nodiscard]] Widths measure_widths(std::span<const Number* const> all) const {
    Widths widths;
    const auto widen = [&](std::size_t& width, const std::string& text) {
      const std::size_t columns = text::columns(text);
      if (columns <= page_.width() / 4) width = std::max(width, columns);
    };
    for (const Number* row : all) {
      widths.label = std::max(widths.label, std::min(text::columns(row->label), longest_label_));
      widen(widths.base, row->base.empty() ? row->candidate : row->base);
      if (!row->base.empty()) widen(widths.candidate, row->candidate);
      if (row->evidence.empty()) widen(widths.change, row->change);
    }
    return widths;
  }

  // Writes a line for each row that this reader sees, with what stands below it, and counts fine
  // metrics that are not shown.
  void numbers(const Part& part) {
    std::vector<const Number*> rows;
    std::size_t fine = 0;
    for (const Number& row : part.numbers) {
      if ((row.readers & reader_) != 0) {
        if (has_numbers(row) || !row.why.empty() || !row.where.empty()) rows.push_back(&row);
      } else if (row.outcome == Outcome::pass && !row.candidate.empty()) {
        ++fine;
      }
    }
    const std::size_t shown = shown_count(part, rows.size());
    const std::size_t hidden = rows.size() - shown;
    rows.resize(shown);
    const Widths widths = measure_widths(rows);
    for (const Number* row : rows) {
      number(*row, widths);
      show_all(row->below, /*within=*/true);
    }
    say_more(k_detail_indent, hidden, "");
    if (fine > 0 && !part.noun.empty())
      say(k_row_indent, text::plural(fine, "more metric") + " within limits", k_dim);
  }

  // Writes a row in columns: label, base → candidate, change, limit; then its reason below. A row
  // too wide for the page is written without columns.
  void number(const Number& row, const Widths& widths) {
    const bool wrong = row.outcome && *row.outcome < Outcome::pass;
    const std::string_view color = wrong ? outcome_look(*row.outcome).color : "";
    const bool improved = row.limit.starts_with("improved");
    // A row whose outcome is the section's, or stands in its limit, needs no tag.
    const bool tagged = wrong && outcome_ && row.outcome != outcome_ && !improved;
    std::string line = tagged ? fmt::format("  {:5} ", outcome_look(*row.outcome).tag)
                              : std::string(k_row_indent, ' ');
    line += pad_right(clip(row.label, longest_label_), widths.label) + "  ";
    if (row.base.empty() && row.candidate.empty() && row.change.empty()) {
      std::vector<std::string> words{row.why, row.where};
      std::erase(words, "");
      return page_.add_paragraph(line + " ", text::join(words), k_detail_indent, "", color);
    }
    if (row.base.empty()) {
      line += pad_left(row.candidate, widths.base) + "   ";
    } else {
      line += pad_left(row.base, widths.base) + std::string(k_arrow) +
              pad_right(row.candidate, widths.candidate) + "   ";
    }
    std::string tail = row_tail(row, widths);
    // Shorten "improved: accept to keep" if it doesn't fit: a command below says how to keep it.
    if (text::columns(line) + text::columns(tail) > page_.width() && improved) {
      tail = tail.substr(0, tail.rfind(':'));
    }
    if (text::columns(line) > page_.width()) {
      tail = fmt::format("{} {}", text::trim(line), tail);
      line = std::string(k_row_indent, ' ');
    }
    page_.add_paragraph(line, tail, k_detail_indent, "", color);
    if (!row.why.empty()) detail(row.why);
  }

  // Returns the end of a row: change, evidence, limit and cells; in columns if there are only
  // change and limit.
  [[nodiscard]] std::string row_tail(const Number& row, const Widths& widths) const {
    const bool fine = row.outcome == Outcome::pass && !style_.verbose;
    const std::string limit = fine && row.limit == "must not change" ? "" : row.limit;
    if (row.evidence.empty() && row.where.empty() && text::columns(row.change) <= widths.change) {
      return limit.empty() ? row.change : pad_right(row.change, widths.change) + "   " + limit;
    }
    // A fine row gets only the first part of its evidence: "10 runs" of "10 runs, 3 stored runs".
    const std::string evidence =
        fine ? row.evidence.substr(0, row.evidence.find(',')) : row.evidence;
    std::vector<std::string> parts;
    for (const std::string& part : {row.change, evidence, limit, row.where}) {
      if (!part.empty()) parts.push_back(unbroken_if_short(part));
    }
    return text::join(parts);
  }

  // Writes the headline with its outcome, facts of the run, and commands to try next.
  void summary() {
    page_.add_blank_line();
    std::string line = document_.headline + ".";
    if (gate_.exit_code == verdict::ExitCode::inconclusive) {
      line += "  Inconclusive fails here (on_inconclusive: fail).";
    }
    if (gate_.seconds) line += "  " + without_breaks(unit::show_duration(*gate_.seconds)) + ".";
    if (gate_.profiling_cost) {
      line += fmt::format("  Profiling cost {:.1f} % of throughput.", *gate_.profiling_cost * 100);
    }
    // The tag in capitals: "FAIL", "ERROR", "OPEN", "SKIPPED", …
    const OutcomeLook& look = outcome_look(gate_.verdict);
    std::string tag(gate_.verdict == Outcome::skipped ? "skipped" : look.tag);
    for (char& c : tag) c = text::is_letter(c) ? static_cast<char>(c & ~0x20) : c;
    page_.add_paragraph(pad_right(tag, k_title_indent - 1) + " ", line, k_title_indent, look.color);
    const auto fact = [&](std::string_view what, const std::string& value) {
      if (value.empty()) return;
      page_.add_paragraph(fmt::format("{:6}{:<9}", "", what), value, 15, k_dim);
    };
    fact("base", document_.base);
    if (gate_.run) fact("run", printable_line(*gate_.run, 300));
    if (style_.verbose || document_.has_paired_times)
      fact("rule", printable_line(gate_.decision_rule, 2000));
    // The servers' own metrics judge nothing, so only name the command that shows them.
    const bool has_server_metrics = std::ranges::any_of(
        gate_.cells, [](const CellVerdict& cell) { return !cell.server.empty(); });
    if (has_server_metrics && gate_.run && holds(style_.verbs, "profile")) {
      command({"servers", {"weir profile", text::shell_word(printable_line(*gate_.run, 300))}});
    }
    const std::vector<Hint> commands = hints(gate_, style_.verbs, page_.width() - 19);
    // Only a report that begins with causes leaves out the numbers of each cell.
    const bool lacks_numbers = document_.cause_first && !style_.verbose;
    const auto is_of_numbers = [](const Hint& hint) { return hint.what == "numbers"; };
    if (lacks_numbers && std::ranges::none_of(commands, is_of_numbers)) {
      fact("numbers", "of each cell: --html FILE, --json FILE");
    }
    for (const Hint& hint : commands) {
      if (is_of_numbers(hint) && !lacks_numbers) continue;
      if (hint.what == "allow") {
        fact(hint.what, hint.words.front());
      } else {
        command(hint);
      }
    }
  }

  // Writes a command that can be pasted: lines end between words, with a backslash.
  void command(const Hint& hint) {
    constexpr std::size_t k_at = 15;
    std::string line = fmt::format("{:6}{:<9}", "", hint.what);
    for (std::size_t i = 0; i < hint.words.size(); ++i) {
      const bool is_last = i + 1 == hint.words.size();
      const bool is_new_line = text::columns(line) <= k_at + 2;
      const std::size_t backslash = is_last ? 0 : 2;
      const std::size_t width = text::columns(line) + 1 + text::columns(hint.words[i]) + backslash;
      if (!is_new_line && width > page_.width()) {
        page_.add_paragraph(line + " \\", "", 0);
        line = std::string(k_at + 2, ' ');
      } else if (i > 0) {
        line += ' ';
      }
      line += hint.words[i];
    }
    page_.add_paragraph(line, "", 0);
  }

  const Document& document_;
  const GateVerdict& gate_;
  const TerminalStyle& style_;
  Page page_;
  Readers reader_;
  std::size_t longest_label_;
  std::optional<Outcome> outcome_;  // outcome of the section around
  std::string legend_;              // legend of the last picture
};

}  // namespace

std::string terminal(const Document& document, const TerminalStyle& style) {
  return Terminal(document, style).write();
}

}  // namespace weir::report
