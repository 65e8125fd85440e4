#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "gate/base/text.hpp"
#include "gate/report/document.hpp"
#include "gate/report/escape.hpp"
#include "gate/report/formats.hpp"
#include "gate/report/layout.hpp"
#include "gate/report/markdown_parts.hpp"
#include "gate/report/pictures.hpp"

namespace weir::report {
namespace {

constexpr std::string_view k_table_head =
    "| cell | what | base | now | change | limit |\n"
    "| --- | --- | ---: | ---: | --- | --- |\n";
constexpr std::size_t k_open_blocks = 30;  // more of them fold: nobody reads on
constexpr std::string_view k_end_fold = "\n</details>\n\n";

// Pieces of text that together stay within a number of bytes.
class Pieces {
 public:
  explicit Pieces(std::size_t limit) : limit_(limit) {}
  // Kept free for what is added by end().
  void reserve(std::size_t bytes) { reserved_ += bytes; }
  // False, and nothing added, when there is no room left beside what is reserved.
  bool add(std::string_view piece, std::size_t also_needed = 0) {
    if (out_.size() + piece.size() + also_needed + reserved_ > limit_) return false;
    out_ += piece;
    return true;
  }
  // Takes room that was reserved.
  void end(std::string_view piece, std::size_t reserved = 0) {
    out_ += piece;
    reserved_ -= reserved;
  }
  [[nodiscard]] std::size_t size() const { return out_.size(); }
  [[nodiscard]] std::string finish() { return std::move(out_); }

 private:
  std::size_t limit_, reserved_ = 0;
  std::string out_;
};

class Markdown {
 public:
  Markdown(const Document& document, const MarkdownStyle& style)
      : document_(document),
        gate_(document.gate),
        style_(style),
        limit_(std::max<std::size_t>(style.limit, 2000)),
        names_(cell_names(document)),
        pieces_(limit_) {}

  std::string write() {
    const std::string foot =
        markdown_foot(document_, style_, std::min<std::size_t>(limit_ / 3, 1500));
    const std::string next = markdown_next(document_, style_, limit_ / 4);
    pieces_.reserve(foot.size() + left_out(gate_.cells.size()).size() + next.size());
    pieces_.add(markdown_heading(document_, style_, limit_ / 5));
    proposals();
    changed();
    errors();
    news();
    pieces_.end(next, next.size());
    more_changed();
    others();
    pairs();
    if (left_out_ > 0) pieces_.end(left_out(left_out_));
    pieces_.end(foot);
    return pieces_.finish();
  }

 private:
  // As many of them as a quarter of the room holds.
  void proposals() {
    constexpr std::size_t k_most = 10;
    for (std::size_t most = k_most; most > 0; --most) {
      const ProposalWords all = proposal_words(gate_, most);
      if (all.head.empty()) return;
      std::string piece = fmt::format("**{}**\n\n", markdown_text(all.head));
      for (const std::string& line : all.lines) piece += fmt::format("- {}\n", markdown_text(line));
      if (piece.size() <= limit_ / 4 && pieces_.add(piece + "\n")) return;
    }
  }

  [[nodiscard]] std::string left_out(std::size_t cells) const {
    return fmt::format("_{} left out: a comment cannot be longer. {} has all._\n\n",
                       plural(cells, "more cell"),
                       markdown_run_link(style_, "The report of the run"));
  }

  // "`a`, `b` and 3 more".
  [[nodiscard]] std::string names(const std::vector<const CellDocument*>& cells) const {
    std::vector<std::string> all;
    for (const CellDocument* cell : cells) all.push_back(markdown_cell_name(*cell, names_));
    return listed(std::move(all), 5);
  }

  // The worst cells open, with what there is to say of them.
  void changed() {
    for (const Block& block : document_.blocks) {
      if (!reason_says_all(block.of()) && !rows_of(block).empty()) table_.push_back(&block);
    }
    std::vector<Paragraph> below;
    std::size_t cells = 0;
    for (const Block* block : table_) {
      if (shown_ == k_open_blocks || pieces_.size() > limit_ / 2) break;
      const std::string head(shown_ == 0 ? k_table_head : "");
      if (!pieces_.add(head + rows_of(*block), 200)) break;
      ++shown_;
      cells += block->cells.size();
      for (Paragraph& one : markdown_paragraphs(*block)) take(below, std::move(one));
    }
    if (shown_ > 0) pieces_.end("\n");
    paragraphs(below, cells);
  }

  [[nodiscard]] std::string rows_of(const Block& block) const {
    return markdown_rows(block, document_, names_);
  }

  // What several blocks say alike stands once.
  static void take(std::vector<Paragraph>& all, Paragraph said) {
    const auto same =
        std::ranges::find_if(all, [&](const Paragraph& one) { return one.says_as(said); });
    if (same == all.end()) return all.push_back(std::move(said));
    same->cells.insert(same->cells.end(), said.cells.begin(), said.cells.end());
  }

  void paragraphs(const std::vector<Paragraph>& all, std::size_t cells) {
    std::size_t left = 0;
    for (const Paragraph& one : all) {
      std::string where;
      if (one.cells.size() < cells) where = fmt::format(" in {}", names(one.cells));
      const std::string text = fmt::format("**{}**{}: {}\n\n", one.what, where, one.text);
      const std::string behind = one.behind.empty() ? "" : one.behind + "\n";
      // Half of what is left is for the rest.
      if (!pieces_.add(text + behind, (limit_ - std::min(limit_, pieces_.size())) / 4)) ++left;
    }
    if (left > 0) pieces_.add(fmt::format("_and {} more about these cells_\n\n", left));
  }

  void errors() {
    std::vector<Shared> all;
    for (const CellDocument* cell : document_.to_read) {
      if (cell->of->verdict == Outcome::error) share(all, markdown_text(cell->reason, 1500), *cell);
    }
    for (const auto& [reason, cells] : all) {
      const std::string text = fmt::format(
          "**Not {}:** {}: {}\n\n", cells.front()->of->not_compared ? "compared" : "measured",
          names(cells), reason);
      if (!pieces_.add(text)) {
        left_out_ +=
            static_cast<std::size_t>(std::ranges::count_if(cells, [&](const CellDocument* cell) {
              return std::ranges::none_of(table_, [&](const Block* block) {
                return std::ranges::find(block->cells, cell) != block->cells.end();
              });
            }));
        continue;
      }
      for (const CellDocument* cell : cells) {
        const std::string last = markdown_last_words(
            *cell, cells.size() == 1 ? "its last words" : "last words of one of them");
        if (last.empty()) continue;
        pieces_.add(last);
        break;
      }
    }
  }

  void news() {
    for (const Shared& fresh : document_.by_reason(Outcome::fresh)) {
      const std::string text =
          fmt::format("**{} new:** {} ({})\n\n", plural(fresh.cells.size(), "cell"),
                      markdown_text(fresh.text), names(fresh.cells));
      if (!pieces_.add(text)) left_out_ += fresh.cells.size();
    }
  }

  // Rows under a heading within a fold; how many there was no room for.
  std::size_t fold(std::string_view summary, std::string_view head,
                   const std::vector<std::string>& rows, const std::string& behind = "") {
    const std::size_t end = behind.size() + k_end_fold.size() + 40;
    if (!pieces_.add(fmt::format("<details><summary>{}</summary>\n\n", summary), end + 200)) {
      return rows.size();
    }
    std::size_t shown = 0;
    for (const std::string& row : rows) {
      if (!pieces_.add((shown == 0 ? std::string(head) : "") + row, end)) break;
      ++shown;
    }
    if (shown < rows.size()) pieces_.end(fmt::format("\nand {} more\n", rows.size() - shown));
    if (!behind.empty()) pieces_.end((shown > 0 ? "\n" : "") + behind);
    pieces_.end(k_end_fold);
    return rows.size() - shown;
  }

  void more_changed() {
    std::vector<std::string> rows;
    std::size_t cells = 0;
    for (std::size_t i = shown_; i < table_.size(); ++i) {
      rows.push_back(rows_of(*table_[i]));
      cells += table_[i]->cells.size();
    }
    if (rows.empty()) return;
    const std::size_t left =
        fold(fmt::format("{} that changed", plural(cells, "more cell")), k_table_head, rows);
    for (std::size_t i = table_.size() - left; i < table_.size(); ++i) {
      left_out_ += table_[i]->cells.size();
    }
  }

  // What is fine, folded away; a green has one line of it.
  void others() {
    std::vector<std::string> lines;
    std::size_t fine = 0, skipped = 0;
    for (const CellDocument& cell : document_.cells) {
      const Outcome outcome = cell.of->verdict;
      if (outcome != Outcome::pass && outcome != Outcome::skipped) continue;
      const bool passed = outcome == Outcome::pass;
      ++(passed ? fine : skipped);
      lines.push_back(
          fmt::format("| {} | {} | {} |\n", markdown_cell_name(cell, names_), look_of(outcome).tag,
                      passed ? plural(cell.passed, "metric") : markdown_text(cell.reason, 200)));
    }
    const std::string warnings = shared_list(document_.warnings());
    if (lines.empty() && warnings.empty()) return;
    if (gate_.verdict == Outcome::pass && warnings.empty()) {
      pieces_.add(short_line());
      return;
    }
    std::vector<std::string> summary;
    if (fine > 0) summary.push_back(plural(fine, "cell") + " unchanged");
    if (skipped > 0) summary.push_back(fmt::format("{} skipped", skipped));
    if (!warnings.empty()) summary.emplace_back("warnings");
    fold(text::join(summary), "| cell | verdict | what |\n| --- | --- | --- |\n", lines,
         warnings + shared_list(document_.notes()));
  }

  // A list of what several cells say alike.
  [[nodiscard]] std::string shared_list(const std::vector<Shared>& all) const {
    std::string out;
    for (const Shared& one : all) {
      const std::string cells = one.cells.empty()
                                    ? ""
                                    : fmt::format(" ({} of {})", one.cells.size(),
                                                  plural(document_.cells.size(), "cell"));
      const std::string line = fmt::format("- {}{}\n", markdown_text(one.text), cells);
      if (out.size() + line.size() > std::min<std::size_t>(limit_ / 8, 4000)) break;
      out += line;
    }
    return out;
  }

  // Times that pairs have found fine, and what a verdict by pairs promises.
  void pairs() {
    if (!document_.beside_base) return;
    std::vector<std::string> lines;
    for (const CellDocument& cell : document_.cells) {
      for (const MetricRow* row : pictured(cell)) {
        if (row->of->verdict != Outcome::pass) continue;
        lines.push_back(
            fmt::format("| {} | {} | {} | {} | {} |\n", markdown_cell_name(cell, names_),
                        markdown_text(row->words.label), row->words.change, row->words.evidence,
                        markdown_code(ratio_strip(*row->of, k_markdown_strip))));
      }
    }
    fold("Times compared with the base build",
         "| cell | what | change | evidence | now / base |\n| --- | --- | --- | --- | --- |\n",
         lines, markdown_text(gate_.decision_rule, 2000) + "\n");
  }

  [[nodiscard]] std::string short_line() const {
    const std::string& rule = document_.rule;
    std::string line = "Checked: ";
    line += rule.empty() ? plural(static_cast<std::size_t>(gate_.metrics_judged), "metric") : rule;
    const std::size_t skipped = document_.cells_with(Outcome::skipped);
    if (skipped > 0) line += fmt::format("; {} skipped", skipped);
    return line + ".\n\n";
  }

  const Document& document_;
  const GateVerdict& gate_;
  const MarkdownStyle& style_;
  std::size_t limit_;
  CellNames names_;
  Pieces pieces_;
  std::vector<const Block*> table_;  // all that have rows, the worst first
  std::size_t shown_ = 0;            // of these, above
  std::size_t left_out_ = 0;
};

}  // namespace

std::string markdown(const Document& document, const MarkdownStyle& style) {
  return Markdown(document, style).write();
}

}  // namespace weir::report
