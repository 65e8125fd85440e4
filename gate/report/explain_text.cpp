#include "gate/report/explain_text.hpp"

#include <fmt/format.h>

#include "gate/base/json.hpp"
#include "gate/base/text.hpp"
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

// "690 / 690 / 1 → 706 / 930 / 17   dispatches / barriers / syncs a token"
std::string totals_line(const Explanation& one) {
  std::vector<std::string> names, before, after;
  for (const explain::Total& total : one.totals) {
    names.push_back(total.name);
    before.push_back(show(total.before));
    after.push_back(show(total.after));
  }
  if (names.empty()) return "";
  const std::string per = explain::per_words(one.scope);
  return text::join(before, " / ") + std::string(k_arrow) + text::join(after, " / ") + "   " +
         text::join(names, " / ") + (per.empty() ? "" : " " + per);
}

// In place of findings.
std::string unexplained(const Explanation& one) {
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
    Grouped<const Explanation*, Cells> blocks;
    for (const Explanation& one : all) {
      if (!one.differs && one.verdict.empty() && !style_.checklist && one.doubts.empty()) {
        same.push_back(one.cell);
        continue;
      }
      blocks.of(key_of(one), &one).push_back(&one);
    }
    for (const auto& [first, block] : blocks.all) {
      page_.part();
      head(block, all.size());
      body(*first);
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
  using Cells = std::vector<const Explanation*>;

  // Equal for cells of one block, whose totals alone may differ.
  [[nodiscard]] std::string key_of(const Explanation& one) const {
    ExplainPage alone(style_);
    alone.body(one);
    return alone.page_.finish() + (profile::CellKey::parse(one.cell) ? "" : one.cell);
  }

  void head(const Cells& block, std::size_t all) {
    Together words{explain_title(block.front()->cell), {}};
    if (block.size() > 1) {
      std::vector<profile::CellKey> keys;
      for (const Explanation* one : block) keys.push_back(*profile::CellKey::parse(one->cell));
      words = together(keys, all);
    }
    page_.paragraph("", words.title, 2, "", k_bold);
    Grouped<std::string, std::vector<std::string>> each;  // totals, who has them
    for (std::size_t i = 0; i < block.size(); ++i) {
      const std::string totals = totals_line(*block[i]);
      std::vector<std::string>& names = each.of(totals, totals);
      if (!words.names.empty()) names.push_back(words.names[i]);
    }
    for (const auto& [totals, names] : each.all) {
      const std::string indent(k_number_indent, ' ');
      if (!totals.empty()) page_.paragraph(indent, totals, k_number_indent);
      if (!names.empty()) page_.paragraph(indent + "in ", text::join(names), k_line_indent);
    }
  }

  void body(const Explanation& one) {
    std::size_t number = 0;
    for (const Finding& finding : one.findings) show_finding(finding, ++number);
    if (one.findings.empty()) {
      page_.paragraph(k_before, unexplained(one), k_number_indent);
    }
    for (const std::string& doubt : one.doubts) labelled("   warning: ", doubt);
    if (style_.checklist) checklist(one);
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
