#include "gate/report/compare_text.hpp"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "gate/base/text.hpp"
#include "gate/report/compare_words.hpp"
#include "gate/report/explain_text.hpp"
#include "gate/report/layout.hpp"
#include "gate/report/markdown.hpp"

namespace weir::report {
namespace {

using explain::Comparison;
using explain::OpChange;
using explain::Shift;

constexpr std::size_t k_most_same = 5;  // rows of what did not change

struct SectionOf {
  CompareSection section;
  std::vector<const OpChange*> shown;
  std::size_t left_out = 0;
};

std::vector<SectionOf> sections_of(const Comparison& one, std::size_t most_rows) {
  std::vector<SectionOf> sections;
  for (const CompareSection& section : k_compare_sections) {
    SectionOf made{section, {}, 0};
    const std::size_t most =
        section.change == Shift::same ? std::min(most_rows, k_most_same) : most_rows;
    for (const OpChange& op : one.ops) {
      if (op.change != section.change) continue;
      if (made.shown.size() < most) {
        made.shown.push_back(&op);
      } else {
        ++made.left_out;
      }
    }
    if (!made.shown.empty()) sections.push_back(std::move(made));
  }
  return sections;
}

std::string left_out_words(std::size_t number) { return fmt::format("and {} more", number); }

// One table in all, with headings between its rows.
void ops_table(std::string& out, const Comparison& one, const CompareStyle& style,
               std::size_t width) {
  const CompareColumns columns = compare_columns(one);
  const auto sections = sections_of(one, style.most_rows);
  if (sections.empty()) return;
  const auto row_of = [&](std::vector<std::string> cells, std::string what) {
    cells.push_back(std::move(what));
    return cells;
  };
  const auto head = row_of(compare_head(columns), "op");
  std::vector<std::size_t> widths;
  for (const std::string& cell : head) widths.push_back(text::columns(cell));
  const auto measure = [&](const std::vector<std::string>& cells) {
    for (std::size_t i = 0; i < cells.size(); ++i) {
      widths[i] = std::max(widths[i], text::columns(cells[i]));
    }
  };
  for (const SectionOf& section : sections) {
    for (const OpChange* op : section.shown) measure(compare_cells(*op, columns));
  }
  const auto table_of = [&](std::vector<std::vector<std::string>> rows) {
    TextTable table;
    table.right.assign(head.size() - 1, true);
    for (auto& row : rows) {
      for (std::size_t i = 0; i + 1 < row.size(); ++i) row[i] = pad_left(row[i], widths[i]);
    }
    table.rows = std::move(rows);
    return table.str(2, width);
  };
  out += "\n" + table_of({head});
  for (const SectionOf& section : sections) {
    out += std::string(section.section.title) + "\n";
    std::vector<std::vector<std::string>> rows;
    for (const OpChange* op : section.shown) {
      rows.push_back(row_of(compare_cells(*op, columns), compare_what(*op, columns)));
    }
    out += table_of(std::move(rows));
    if (section.left_out != 0) {
      say(out, left_out_words(section.left_out) + " (--top shows more)", width, 2);
    }
  }
}

void metrics_table(std::string& out, const Comparison& one, const CompareStyle& style,
                   std::size_t width) {
  const auto rows = compare_metrics(one);
  if (rows.empty()) return;
  TextTable table;
  table.head = {"", "A", "B", "ratio"};
  table.right = {false, true, true, true};
  const std::size_t most = std::max<std::size_t>(style.most_rows, 20);
  for (const MetricRow& row : rows) {
    if (table.rows.size() == most) break;
    table.rows.push_back({row.name, row.a, row.b, row.ratio});
  }
  out += "\n" + table.str(2, width);
  if (rows.size() > most) say(out, left_out_words(rows.size() - most), width, 2);
}

// What nothing can be said of has to say so.
std::string nothing_words(const Comparison& one) {
  if (!one.ops.empty() || !one.metrics.empty()) return "";
  return "Neither side tells ops, times or counts.";
}

void add_text(std::string& out, const Comparison& one, const CompareStyle& style) {
  const auto width = static_cast<std::size_t>(std::max(style.width, 60));
  say(out, "A  " + compare_side(one.a), width);
  say(out, "B  " + compare_side(one.b), width);
  if (const std::string basis = compare_basis(one); !basis.empty()) say(out, basis, width);
  if (const std::string nothing = nothing_words(one); !nothing.empty()) say(out, nothing, width);
  metrics_table(out, one, style, width);
  ops_table(out, one, style, width);
  if (!one.findings.empty()) {
    out += "\nWhat fits it (weir explain)\n";
    out += findings_text(one.findings, {.color = style.color, .width = static_cast<int>(width)});
  }
  if (!one.doubts.empty()) out += "\n";
  for (const std::string& doubt : one.doubts) say(out, "doubt: " + one_line(doubt, 300), width);
}

// A row of a Markdown table.
void add_cells(std::string& out, const std::vector<std::string>& cells) {
  out += "|";
  for (const std::string& cell : cells) out += " " + cell + " |";
  out += "\n";
}

void add_markdown(std::string& out, const Comparison& one, std::size_t most_rows) {
  out += "**A** " + markdown_text(compare_side(one.a)) + "<br>\n";
  out += "**B** " + markdown_text(compare_side(one.b)) + "\n\n";
  if (const std::string basis = compare_basis(one); !basis.empty()) {
    out += markdown_text(basis) + "\n\n";
  }
  if (const std::string nothing = nothing_words(one); !nothing.empty()) out += nothing + "\n\n";
  const auto metrics = compare_metrics(one);
  if (!metrics.empty()) {
    out += "| metric | A | B | ratio |\n| --- | ---: | ---: | ---: |\n";
    for (std::size_t i = 0; i < std::min<std::size_t>(metrics.size(), 20); ++i) {
      const MetricRow& row = metrics[i];
      add_cells(out,
                {markdown_text(row.name), markdown_text(row.a), markdown_text(row.b), row.ratio});
    }
    out += "\n";
  }
  const CompareColumns columns = compare_columns(one);
  const auto sections = sections_of(one, most_rows);
  if (!sections.empty()) {
    const auto head = compare_head(columns);
    out += "| |";
    for (const std::string& cell : head) out += " " + cell + " |";
    out += " op |\n| --- |";
    for (std::size_t i = 0; i < head.size(); ++i) out += " ---: |";
    out += " --- |\n";
  }
  for (const SectionOf& section : sections) {
    bool first = true;
    for (const OpChange* op : section.shown) {
      std::vector<std::string> cells = compare_cells(*op, columns);
      cells.insert(cells.begin(), first ? std::string(section.section.title) : "");
      cells.push_back(markdown_code(compare_what(*op, columns)));
      add_cells(out, cells);
      first = false;
    }
    if (section.left_out == 0) continue;
    std::vector<std::string> cells(compare_head(columns).size() + 1);
    cells.push_back(left_out_words(section.left_out));
    add_cells(out, cells);
  }
  if (!one.findings.empty()) out += "\n";
  for (const auto& finding : one.findings) {
    out += "- " + markdown_text(finding.headline) + "\n";
  }
  if (!one.doubts.empty()) out += "\n";
  for (const std::string& doubt : one.doubts) out += "- doubt: " + markdown_text(doubt) + "\n";
}

}  // namespace

std::string compare_text(std::span<const Comparison> comparisons, const CompareStyle& style) {
  std::string out;
  for (const Comparison& one : comparisons) {
    if (!out.empty()) out += "\n";
    add_text(out, one, style);
  }
  return out;
}

std::string compare_markdown(std::span<const Comparison> comparisons, std::size_t most_rows,
                             std::size_t limit) {
  std::string out = "### weir: two profiles compared\n\n";
  for (std::size_t i = 0; i < comparisons.size(); ++i) {
    std::string more;
    add_markdown(more, comparisons[i], most_rows);
    if (out.size() + more.size() + 100 > limit) {
      out += fmt::format("{} left out: the report would be too long.\n",
                         plural(comparisons.size() - i, "comparison"));
      break;
    }
    out += more + "\n";
  }
  return out;
}

Json compare_json(std::span<const Comparison> comparisons) {
  Json list = Json::array();
  for (const Comparison& one : comparisons) list.push_back(explain::to_json(one));
  return {{"schema", "weir.comparison/1"}, {"comparisons", std::move(list)}};
}

}  // namespace weir::report
