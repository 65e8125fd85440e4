// Writes explanations of changed cells as text and as JSON.
#include "gate/report/explain_text.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "gate/base/find.hpp"
#include "gate/base/json.hpp"
#include "gate/base/text.hpp"
#include "gate/explain/causes.hpp"
#include "gate/report/document.hpp"
#include "gate/report/layout.hpp"

namespace weir::report {
namespace {

using explain::Check;
using explain::Explanation;
using explain::Finding;

constexpr std::size_t k_number_indent = 3;
constexpr std::size_t k_line_indent = 5;
constexpr std::string_view k_before = "   ";

std::string explain_title(const std::string& cell) {
  const auto key = profile::CellKey::parse(cell);
  return key ? cell_title(*key) : printable_line(cell, 200);
}

using Cells = std::vector<const Explanation*>;

// Cells whose findings have the same causes.
struct Block {
  std::string text;  // full text, if blocks have to be the same word by word
  std::vector<explain::Subject> subjects;
  std::vector<std::string> warnings;
  Cells cells;

  [[nodiscard]] bool says_the_same(const Block& other) const {
    return text == other.text && warnings == other.warnings &&
           std::ranges::equal(subjects, other.subjects, &explain::Subject::same_as);
  }
};

// Returns the names of the totals: "dispatches / barriers / syncs a token".
std::string totals_label(const Explanation& explanation) {
  const std::string per = explain::per_text(explanation.scope);
  return text::join(collect<std::string>(explanation.totals, &explain::Total::name), " / ") +
         text::prefix_if_any(" ", per);
}

// Returns the totals of cells that have the same ones, as ranges if they differ: "690 / 690 / 1 →
// 706 / 930 / 17   dispatches / barriers / syncs a token".
std::string totals_text(const Cells& cells) {
  const Explanation& first = *cells.front();
  if (first.totals.empty()) return "";
  const auto join_ranges = [&](Rational explain::Total::*value) {
    std::vector<std::string> ranges;
    for (std::size_t i = 0; i < first.totals.size(); ++i) {
      ranges.push_back(value_range(collect<ShownValue>(cells, [&](const Explanation* cell) {
        const Rational& number = cell->totals[i].*value;
        return ShownValue{number.value(), show(number)};
      })));
    }
    return text::join(ranges, " / ");
  };
  const std::string before =
      first.is_alone ? "" : join_ranges(&explain::Total::before) + std::string(k_arrow);
  return before + join_ranges(&explain::Total::after) + "   " + totals_label(first);
}

// Returns the sentence for a cell without findings.
std::string no_finding_text(const Explanation& explanation) {
  if (explanation.is_alone) return "One profile, compared with nothing.";
  if (explanation.sides_differ) return "Something differs, and no known pattern fits it.";
  if (explanation.verdict.empty()) return "Nothing differs beyond what varies by itself.";
  const std::string verdict = fmt::format("The verdict is {}", explanation.verdict);
  if (explanation.reason.empty()) return verdict + ", and no difference here explains it.";
  return verdict + ": " + printable_line(explanation.reason);
}

// Writes findings, or explanations of cells grouped into blocks.
class ExplainPage {
 public:
  explicit ExplainPage(const ExplainStyle& style)
      : style_(style), page_(style.color, columns_of(style.width)) {}

  std::string write(std::span<const Finding> findings) {
    std::size_t number = 0;
    for (const Finding& finding : findings) {
      ++number;
      show_finding(finding, number);
    }
    return page_.finish();
  }

  // Writes each block of cells with the same findings, and then counts the cells without
  // differences.
  std::string write(std::span<const Explanation> all) {
    std::vector<std::string> unchanged;
    std::vector<Block> blocks;
    Cells cells;
    for (const Explanation& explanation : all) {
      cells.push_back(&explanation);
      const bool is_unchanged =
          !explanation.is_alone && !explanation.sides_differ && explanation.verdict.empty();
      if (is_unchanged && !style_.checklist && explanation.warnings.empty()) {
        unchanged.push_back(explanation.cell);
        continue;
      }
      Block new_block = make_block(explanation);
      Block* block =
          find_first(blocks, [&](const Block& other) { return other.says_the_same(new_block); });
      if (block == nullptr) block = &blocks.emplace_back(std::move(new_block));
      block->cells.push_back(&explanation);
    }
    const std::vector<profile::CellKey> keys = parse_keys(cells);
    for (const Block& block : blocks) {
      page_.start_part();
      head(block.cells, keys);
      body(*block.cells.front());
    }
    if (!unchanged.empty()) {
      page_.start_part();
      page_.add_text(unchanged.size() == 1 ? explain_title(unchanged.front()) + ": nothing differs."
                                           : fmt::format("Nothing differs in {}.",
                                                         text::plural(unchanged.size(), "cell")));
    }
    return page_.finish();
  }

 private:
  [[nodiscard]] std::string body_text(const Explanation& explanation) const {
    ExplainPage alone(style_);
    alone.body(explanation);
    return alone.page_.finish();
  }

  // Makes the block of a single cell: the causes of its findings, or its full text without
  // findings.
  [[nodiscard]] Block make_block(const Explanation& explanation) const {
    Block block{profile::CellKey::parse(explanation.cell) ? "" : explanation.cell,
                {},
                explanation.warnings,
                {}};
    if (style_.checklist || explanation.findings.empty()) {
      block.text += body_text(explanation);
      return block;
    }
    // In a cell that a gate judged, only findings that explain a judgement count: others follow
    // from them.
    const auto explains = [](const Finding& finding) { return !finding.claims.empty(); };
    const bool judged = std::ranges::any_of(explanation.findings, explains);
    for (const Finding& finding : explanation.findings) {
      if (!judged || explains(finding)) block.subjects.push_back(explain::finding_subject(finding));
    }
    return block;
  }

  // Groups cells with equal totals; by the names of the totals if that makes more than three
  // groups.
  static Grouped<const Explanation*, Cells> group_by_totals(const Cells& block) {
    constexpr std::size_t k_max_values_listed = 3;
    Grouped<const Explanation*, Cells> by_value, by_name;
    for (const Explanation* explanation : block) {
      by_value.find_or_add(totals_text({explanation}), explanation).push_back(explanation);
      by_name.find_or_add(totals_label(*explanation), explanation).push_back(explanation);
    }
    return by_value.all.size() > k_max_values_listed ? by_name : by_value;
  }

  // Returns the cells' keys; a profile that is no cell has none.
  static std::vector<profile::CellKey> parse_keys(const Cells& explanations) {
    std::vector<profile::CellKey> keys;
    for (const Explanation* explanation : explanations) {
      if (const auto key = profile::CellKey::parse(explanation->cell)) keys.push_back(*key);
    }
    return keys;
  }

  // Writes the title of a block, its totals, and which cell the numbers below belong to.
  void head(const Cells& block, const std::vector<profile::CellKey>& all) {
    constexpr std::size_t k_max_names = 12;
    GroupNames group{explain_title(block.front()->cell), {}};
    if (block.size() > 1) group = name_group(parse_keys(block), all);
    std::map<const Explanation*, std::string> names;
    for (std::size_t i = 0; i < group.names.size(); ++i) names[block[i]] = group.names[i];
    page_.add_paragraph("", group.title, 2, "", k_bold);
    for (const auto& [first, cells] : group_by_totals(block).all) {
      const std::string indent(k_number_indent, ' ');
      const std::string totals = totals_text(cells);
      if (!totals.empty()) page_.add_paragraph(indent, totals, k_number_indent);
      if (names.empty()) continue;
      const auto cell_names =
          collect<std::string>(cells, [&](auto* cell) { return names.at(cell); });
      page_.add_paragraph(indent + "in ", list_names(cell_names, k_max_names), k_line_indent);
    }
    const std::string text = body_text(*block.front());
    if (std::ranges::all_of(block, [&](auto* cell) { return body_text(*cell) == text; })) return;
    page_.add_blank_line();
    page_.add_paragraph(k_before,
                        fmt::format("Numbers below are those of {}. --cell shows another cell.",
                                    explain_title(block.front()->cell)),
                        k_number_indent, "", k_dim);
  }

  void body(const Explanation& explanation) {
    std::size_t number = 0;
    for (const Finding& finding : explanation.findings) show_finding(finding, ++number);
    if (explanation.findings.empty() && explanation.has_work) {
      page_.add_paragraph(k_before, no_finding_text(explanation), k_number_indent);
    }
    for (const std::string& doubt : explanation.warnings) labelled_line("   warning: ", doubt);
    const bool shows_checklist = style_.checklist || explanation.is_alone;
    if (shows_checklist && explanation.has_work) checklist(explanation);
  }

  void show_finding(const Finding& finding, std::size_t number) {
    page_.add_blank_line();
    page_.add_paragraph(pad_right(std::to_string(number), k_number_indent),
                        printable_line(finding.headline), k_number_indent, k_bold);
    for (const std::string& line : finding.lines) {
      page_.add_indented(k_line_indent, printable_line(line));
    }
    labelled_line("   Typical cause: ", finding.cause);
    labelled_line("   Look at: ", finding.look_at);
  }

  void labelled_line(std::string_view label, const std::string& words) {
    if (!words.empty()) page_.add_paragraph(label, printable_line(words), k_line_indent, k_dim);
  }

  void checklist(const Explanation& explanation) {
    page_.add_blank_line();
    page_.add_paragraph("", "   Checklist for slow engines", k_number_indent, "", k_dim);
    for (const Check& check : explanation.checklist) {
      std::string_view mark = "   [ ] ";
      if (check.answer == Check::Answer::fine) mark = "   [x] ";
      if (check.answer == Check::Answer::wrong) mark = "   [!] ";
      page_.add_paragraph(mark,
                          printable_line(check.question + text::prefix_if_any(": ", check.note)),
                          k_number_indent + 4);
    }
    for (const explain::Hint& hint : explanation.hints) labelled_line("   hint: ", hint.text);
  }

  ExplainStyle style_;
  Page page_;
};

}  // namespace

std::string explain_text(std::span<const Explanation> explanations, const ExplainStyle& style) {
  return ExplainPage(style).write(explanations);
}

std::string findings_text(std::span<const Finding> findings, const ExplainStyle& style) {
  return ExplainPage(style).write(findings);
}

// Returns explanations as JSON: the findings of all cells in one list, then cell by cell with
// totals.
Json explain_json(std::span<const Explanation> explanations) {
  Json findings = Json::array(), cells = Json::array();
  for (const Explanation& explanation : explanations) {
    cells.push_back(write_fields(explanation));
    for (const Finding& finding : explanation.findings) {
      Json json = write_fields(finding);
      json["cell"] = explanation.cell;
      findings.push_back(std::move(json));
    }
  }
  return {{"schema", "weir.explanation/1"},
          {"findings", std::move(findings)},
          {"cells", std::move(cells)}};
}

}  // namespace weir::report
