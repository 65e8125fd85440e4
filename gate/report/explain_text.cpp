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
  return key ? cell_title(*key) : one_line(cell, 200);
}

using Cells = std::vector<const Explanation*>;

// Cells whose findings have the same causes, as a gate has it.
struct Block {
  std::string text;  // where that is compared word by word
  std::vector<explain::Subject> subjects;
  std::vector<std::string> doubts;
  Cells cells;

  [[nodiscard]] bool says_the_same(const Block& other) const {
    return text == other.text && doubts == other.doubts &&
           std::ranges::equal(subjects, other.subjects, &explain::Subject::same_as);
  }
};

// "dispatches / barriers / syncs a token"
std::string total_names(const Explanation& one) {
  const std::string per = explain::per_words(one.scope);
  return text::join(collect<std::string>(one.totals, &explain::Total::name), " / ") +
         (per.empty() ? "" : " " + per);
}

// "690 / 690 / 1 → 706 / 930 / 17   dispatches / barriers / syncs a token" of cells with the same
// names, with ranges where they differ.
std::string totals_line(const Cells& cells) {
  const Explanation& first = *cells.front();
  if (first.totals.empty()) return "";
  const auto side = [&](Rational explain::Total::*value) {
    std::vector<std::string> ranges;
    for (std::size_t i = 0; i < first.totals.size(); ++i) {
      ranges.push_back(range_words(collect<ValueWords>(cells, [&](const Explanation* one) {
        const Rational& number = one->totals[i].*value;
        return ValueWords{number.value(), show(number)};
      })));
    }
    return text::join(ranges, " / ");
  };
  const std::string before =
      first.alone ? "" : side(&explain::Total::before) + std::string(k_arrow);
  return before + side(&explain::Total::after) + "   " + total_names(first);
}

// In place of findings.
std::string unexplained(const Explanation& one) {
  if (one.alone) return "One profile, compared with nothing.";
  if (one.differs) return "Something differs, and no known pattern fits it.";
  if (one.verdict.empty()) return "Nothing differs beyond what varies by itself.";
  const std::string said = fmt::format("The verdict is {}", one.verdict);
  return one.reason.empty() ? said + ", and no difference here explains it."
                            : said + ": " + one_line(one.reason);
}

class ExplainPage {
 public:
  explicit ExplainPage(const ExplainStyle& style)
      : style_(style), page_(style.color, columns_of(style.width)) {}

  std::string write(std::span<const Finding> findings) {
    std::size_t number = 0;
    for (const Finding& finding : findings) show_finding(finding, ++number);
    return page_.finish();
  }

  std::string write(std::span<const Explanation> all) {
    std::vector<std::string> same;
    // Of cells of which the same is to be said, as a gate reports them.
    std::vector<Block> blocks;
    Cells cells;
    for (const Explanation& one : all) {
      cells.push_back(&one);
      if (!one.alone && !one.differs && one.verdict.empty() && !style_.checklist &&
          one.doubts.empty()) {
        same.push_back(one.cell);
        continue;
      }
      Block fresh = block_of(one);
      Block* block =
          first_of(blocks, [&](const Block& known) { return known.says_the_same(fresh); });
      if (block == nullptr) block = &blocks.emplace_back(std::move(fresh));
      block->cells.push_back(&one);
    }
    const std::vector<profile::CellKey> keys = keys_of(cells);
    for (const Block& block : blocks) {
      page_.part();
      head(block.cells, keys);
      body(*block.cells.front());
    }
    if (!same.empty()) {
      page_.part();
      page_.say(0, same.size() == 1
                       ? explain_title(same.front()) + ": nothing differs."
                       : fmt::format("Nothing differs in {}.", plural(same.size(), "cell")));
    }
    return page_.finish();
  }

 private:
  [[nodiscard]] std::string body_text(const Explanation& one) const {
    ExplainPage alone(style_);
    alone.body(one);
    return alone.page_.finish();
  }

  // What is to be said of a cell.
  [[nodiscard]] Block block_of(const Explanation& one) const {
    Block block{profile::CellKey::parse(one.cell) ? "" : one.cell, {}, one.doubts, {}};
    if (style_.checklist || one.findings.empty()) {
      block.text += body_text(one);
      return block;
    }
    // Of a cell that a gate judged, findings that explain a judgement: the others follow from them.
    const auto explains = [](const Finding& finding) { return !finding.claims.empty(); };
    const bool judged = std::ranges::any_of(one.findings, explains);
    for (const Finding& finding : one.findings) {
      if (!judged || explains(finding)) block.subjects.push_back(explain::subject_of(finding));
    }
    return block;
  }

  // Cells by their totals; many by what these are of.
  static Grouped<const Explanation*, Cells> by_totals(const Cells& block) {
    constexpr std::size_t k_most = 3;
    Grouped<const Explanation*, Cells> each, wide;
    for (const Explanation* one : block) {
      each.of(totals_line({one}), one).push_back(one);
      wide.of(total_names(*one), one).push_back(one);
    }
    return each.all.size() > k_most ? wide : each;
  }

  // Profiles that are no cells have none.
  static std::vector<profile::CellKey> keys_of(const Cells& explanations) {
    std::vector<profile::CellKey> keys;
    for (const Explanation* one : explanations) {
      if (const auto key = profile::CellKey::parse(one->cell)) keys.push_back(*key);
    }
    return keys;
  }

  void head(const Cells& block, const std::vector<profile::CellKey>& all) {
    constexpr std::size_t k_most_names = 12;
    Together words{explain_title(block.front()->cell), {}};
    if (block.size() > 1) words = together(keys_of(block), all);
    std::map<const Explanation*, std::string> names;
    for (std::size_t i = 0; i < words.names.size(); ++i) names[block[i]] = words.names[i];
    page_.paragraph("", words.title, 2, "", k_bold);
    for (const auto& [first, cells] : by_totals(block).all) {
      const std::string indent(k_number_indent, ' ');
      const std::string totals = totals_line(cells);
      if (!totals.empty()) page_.paragraph(indent, totals, k_number_indent);
      if (names.empty()) continue;
      const auto in = collect<std::string>(cells, [&](auto* one) { return names.at(one); });
      page_.paragraph(indent + "in ", listed(in, k_most_names), k_line_indent);
    }
    const std::string told = body_text(*block.front());
    if (std::ranges::all_of(block, [&](auto* one) { return body_text(*one) == told; })) return;
    page_.blank();
    page_.paragraph(k_before,
                    fmt::format("Numbers below are those of {}. --cell shows another cell.",
                                explain_title(block.front()->cell)),
                    k_number_indent, "", k_dim);
  }

  void body(const Explanation& one) {
    std::size_t number = 0;
    for (const Finding& finding : one.findings) show_finding(finding, ++number);
    if (one.findings.empty()) {
      page_.paragraph(k_before, unexplained(one), k_number_indent);
    }
    for (const std::string& doubt : one.doubts) labelled("   warning: ", doubt);
    if (style_.checklist || one.alone) checklist(one);
  }

  void show_finding(const Finding& finding, std::size_t number) {
    page_.blank();
    page_.paragraph(pad_right(std::to_string(number), k_number_indent), one_line(finding.headline),
                    k_number_indent, k_bold);
    for (const std::string& line : finding.lines) {
      page_.say(k_line_indent, one_line(line));
    }
    labelled("   Typical cause: ", finding.cause);
    labelled("   Look at: ", finding.look_at);
  }

  void labelled(std::string_view label, const std::string& words) {
    if (!words.empty()) page_.paragraph(label, one_line(words), k_line_indent, k_dim);
  }

  void checklist(const Explanation& one) {
    page_.blank();
    page_.paragraph("", "   Checklist for slow engines", k_number_indent, "", k_dim);
    for (const Check& check : one.checklist) {
      const std::string_view mark = check.answer == Check::Answer::fine    ? "   [x] "
                                    : check.answer == Check::Answer::wrong ? "   [!] "
                                                                           : "   [ ] ";
      page_.paragraph(mark,
                      one_line(check.question + (check.note.empty() ? "" : ": " + check.note)),
                      k_number_indent + 4);
    }
    for (const explain::Hint& hint : one.hints) labelled("   hint: ", hint.text);
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

Json explain_json(std::span<const Explanation> explanations) {
  Json findings = Json::array(), cells = Json::array();
  for (const Explanation& one : explanations) {
    cells.push_back(write_fields(one));
    for (const Finding& finding : one.findings) {
      Json json = write_fields(finding);
      json["cell"] = one.cell;
      findings.push_back(std::move(json));
    }
  }
  return {{"schema", "weir.explanation/1"},
          {"findings", std::move(findings)},
          {"cells", std::move(cells)}};
}

}  // namespace weir::report
