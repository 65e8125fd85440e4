#include "gate/report/markdown.hpp"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "gate/base/text.hpp"
#include "gate/report/layout.hpp"
#include "gate/report/markdown_cell.hpp"
#include "gate/report/ratios.hpp"
#include "gate/report/words.hpp"

namespace weir::report {

using verdict::CellVerdict;
using verdict::GateVerdict;
using verdict::MetricVerdict;
using verdict::Outcome;

namespace {

constexpr std::string_view k_table_head =
    "| cell | what | base | now | change | limit |\n"
    "| --- | --- | ---: | ---: | --- | --- |\n";

std::string_view sign_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::fail:
      return "\u274c";  // cross
    case Outcome::error:
      return "\u26a0\ufe0f";  // warning
    case Outcome::inconclusive:
      return "\u2753";  // question mark
    case Outcome::fresh:
      return "\U0001f195";  // new
    default:
      return "\u2705";  // tick
  }
}

// Pieces of text that together stay within a number of bytes.
class Pieces {
 public:
  Pieces(std::size_t limit, std::size_t reserve) : limit_(limit), reserve_(reserve) {}
  // False, and nothing added, when there is no room left beside what is reserved for the end.
  bool add(std::string_view piece, std::size_t also_needed = 0) {
    if (out_.size() + piece.size() + also_needed + reserve_ > limit_) return false;
    out_ += piece;
    return true;
  }
  void end(std::string_view piece) { out_ += piece; }
  [[nodiscard]] std::string finish() { return std::move(out_); }

 private:
  std::size_t limit_, reserve_;
  std::string out_;
};

class Markdown {
 public:
  Markdown(const GateVerdict& gate, const MarkdownStyle& style)
      : gate_(gate), style_(style), pieces_(std::max<std::size_t>(style.limit, 2000), k_reserve) {}

  std::string write() {
    heading();
    problems();
    news();
    hint();
    others();
    pairs();
    if (left_out_ > 0) {
      pieces_.end(
          fmt::format("_{} left out here: the text would be longer than GitHub takes. The "
                      "HTML report has all._\n\n",
                      plural(left_out_, "more cell")));
    }
    pieces_.end(footer());
    return pieces_.finish();
  }

 private:
  // For the note on what was left out and the footer, both of limited length.
  static constexpr std::size_t k_reserve = 1600;

  void heading() {
    std::string line = fmt::format("### {} weir: {}", sign_of(gate_.verdict), headline(gate_));
    if (const std::string missing = not_judged_line(gate_); !missing.empty()) {
      line += fmt::format(" \u00b7 {}", markdown_text(missing, 300));
    }
    pieces_.add(line + "\n\n");
  }

  void problems() {
    std::vector<const CellVerdict*> table;
    std::vector<const CellVerdict*> errors;
    for (const CellVerdict* cell : cells_to_read(gate_)) {
      if (cell->verdict == Outcome::fresh) continue;
      if (!markdown_rows(*cell).empty()) table.push_back(cell);
      if (cell->verdict == Outcome::error) errors.push_back(cell);
    }
    std::vector<const CellVerdict*> shown;
    bool open = false;
    for (const CellVerdict* cell : table) {
      if (pieces_.add((open ? "" : std::string(k_table_head)) + markdown_rows(*cell), 200)) {
        shown.push_back(cell);
        open = true;
      } else {
        ++left_out_;
      }
    }
    if (open) pieces_.end("\n");
    for (const CellVerdict* cell : shown) pieces_.add(markdown_below(*cell, shown.size() > 1));
    for (const CellVerdict* cell : errors) {
      if (!pieces_.add(markdown_error(*cell)) &&
          std::find(table.begin(), table.end(), cell) == table.end()) {
        ++left_out_;
      }
    }
  }

  void news() {
    for (const Shared& fresh : by_reason(gate_, Outcome::fresh)) {
      std::string line = fmt::format("**{} new:** {}", plural(fresh.cells.size(), "cell"),
                                     markdown_text(fresh.text));
      constexpr std::size_t k_most = 10;
      std::vector<std::string> names;
      for (std::size_t i = 0; i < std::min(k_most, fresh.cells.size()); ++i) {
        names.push_back(markdown_code(fresh.cells[i]));
      }
      line += fmt::format(" ({})", text::join(names));
      if (fresh.cells.size() > k_most)
        line += fmt::format(" and {} more", fresh.cells.size() - k_most);
      if (!pieces_.add(line + "\n\n")) left_out_ += fresh.cells.size();
    }
  }

  void hint() {
    std::vector<std::string> parts;
    for (const Hint& one : hints(gate_, style_.verbs, 200)) {
      const std::string_view what = one.what == "accept"  ? "Meant?"
                                    : one.what == "again" ? "Try it:"
                                    : one.what == "why"   ? "Why:"
                                                          : "See:";
      parts.push_back(fmt::format("{} {}", what, markdown_code(text::join(one.words, " "), 2000)));
    }
    if (!parts.empty()) pieces_.add(text::join(parts, " \u00b7 ") + "\n\n");
  }

  // What is fine, folded away; a green has one line of it in the heading already.
  void others() {
    std::vector<std::string> lines;
    std::size_t fine = 0;
    std::size_t skipped = 0;
    for (const CellVerdict& cell : gate_.cells) {
      if (cell.verdict == Outcome::pass) {
        ++fine;
        lines.push_back(fmt::format("| {} | {} | {} |\n", markdown_cell_name(cell),
                                    tag(cell.verdict), plural(passed_metrics(cell), "metric")));
      } else if (cell.verdict == Outcome::skipped) {
        ++skipped;
        lines.push_back(fmt::format("| {} | {} | {} |\n", markdown_cell_name(cell),
                                    tag(cell.verdict), markdown_text(reason_of(cell), 200)));
      }
    }
    std::string doubts;
    for (const Shared& doubt : shared_warnings(gate_)) {
      if (doubts.size() > 4000) break;
      doubts +=
          fmt::format("- {} ({})\n", markdown_text(doubt.text), plural(doubt.cells.size(), "cell"));
    }
    if (lines.empty() && doubts.empty()) return;
    if (gate_.verdict == Outcome::pass && doubts.empty()) {
      pieces_.add(short_line());
      return;
    }
    std::vector<std::string> summary;
    if (fine > 0) summary.push_back(plural(fine, "cell") + " unchanged");
    if (skipped > 0) summary.push_back(fmt::format("{} skipped", skipped));
    if (!doubts.empty()) summary.emplace_back("doubts about data");
    if (!pieces_.add(fmt::format("<details><summary>{}</summary>\n\n", text::join(summary)), 400)) {
      left_out_ += lines.size();
      return;
    }
    bool open = false;
    for (const std::string& line : lines) {
      const std::string head = open ? "" : "| cell | verdict | what |\n| --- | --- | --- |\n";
      if (pieces_.add(head + line, 40)) {
        open = true;
      } else {
        ++left_out_;
      }
    }
    pieces_.add("\n" + doubts, 40);
    pieces_.end("\n</details>\n\n");
  }

  // Times that pairs have found fine, and what a verdict by pairs promises.
  void pairs() {
    if (!beside_base(gate_)) return;
    std::vector<std::string> lines;
    for (const CellVerdict& cell : gate_.cells) {
      for (const MetricVerdict* metric : pictured(cell)) {
        if (metric->verdict != Outcome::pass) continue;
        const MetricWords all = words(*metric);
        lines.push_back(fmt::format("| {} | {} | {} | {} | {} |\n", markdown_cell_name(cell),
                                    markdown_text(all.label), all.change, all.evidence,
                                    markdown_code(ratio_strip(*metric, k_markdown_strip))));
      }
    }
    const std::string rule = markdown_text(gate_.decision_rule, 2000) + "\n\n</details>\n\n";
    if (!pieces_.add("<details><summary>Times beside the base program</summary>\n\n",
                     rule.size())) {
      return;
    }
    std::size_t shown = 0;
    for (const std::string& line : lines) {
      const std::string head = shown > 0 ? ""
                                         : "| cell | what | change | evidence | now / base |\n| "
                                           "--- | --- | --- | --- | --- |\n";
      if (!pieces_.add(head + line, rule.size() + 40)) break;
      ++shown;
    }
    if (shown < lines.size()) pieces_.end(fmt::format("\nand {} more\n", lines.size() - shown));
    pieces_.end("\n" + rule);
  }

  [[nodiscard]] std::string short_line() const {
    std::string line = "Checked: " + short_rule(gate_);
    for (const CellVerdict& cell : gate_.cells) {
      if (cell.verdict == Outcome::skipped) {
        line += fmt::format("; {} skipped", cells_with(gate_, Outcome::skipped));
        break;
      }
    }
    return line + ".\n\n";
  }

  [[nodiscard]] std::string footer() const {
    std::vector<std::string> parts;
    if (gate_.commit) parts.push_back(markdown_text(*gate_.commit, 12));
    if (const std::string base = base_words(gate_); !base.empty()) {
      parts.push_back("against " + markdown_text(base, 200));
    }
    for (const CellVerdict& cell : gate_.cells) {
      if (cell.device_name.empty()) continue;
      parts.push_back(markdown_text(cell.device_name, 100));
      break;
    }
    if (gate_.seconds) parts.push_back(unit::show_duration(*gate_.seconds));
    if (style_.run_url && style_.run_url->starts_with("https://") &&
        style_.run_url->find_first_of(" <>()\"'`\\\n\r") == std::string::npos &&
        style_.run_url->size() < 400) {
      parts.push_back(fmt::format("[run]({})", *style_.run_url));
    }
    parts.push_back("weir " + markdown_text(gate_.weir_version, 30));
    return fmt::format("<sub>{}</sub>\n", text::join(parts, " \u00b7 "));
  }

  const GateVerdict& gate_;
  const MarkdownStyle& style_;
  Pieces pieces_;
  std::size_t left_out_ = 0;
};

}  // namespace

std::string markdown(const GateVerdict& gate, const MarkdownStyle& style) {
  return Markdown(gate, style).write();
}

}  // namespace weir::report
