#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "gate/base/text.hpp"
#include "gate/report/escape.hpp"
#include "gate/report/formats.hpp"
#include "gate/report/layout.hpp"
#include "gate/report/texts.hpp"

namespace weir::report {
namespace {

using explain::ComparedOp;
using explain::Comparison;
using explain::OpChange;
using explain::Shift;
using Texts = std::set<std::string>;

struct CompareSection {
  explain::Shift change;
  std::string_view title;
};
// In the order in which they are listed.
constexpr std::array k_compare_sections{
    CompareSection{explain::Shift::fresh, "new"},
    CompareSection{explain::Shift::gone, "gone"},
    CompareSection{explain::Shift::slower, "slower, each call"},
    CompareSection{explain::Shift::more_calls, "called more often"},
    CompareSection{explain::Shift::fewer_calls, "called less often"},
    CompareSection{explain::Shift::faster, "faster, each call"},
    CompareSection{explain::Shift::same, "same"},
};

// Columns that any row fills in; the others are left out.
struct CompareColumns {
  bool times = false, calls = false;
  bool backends = false;  // not all the work of both sides is on one
};

struct ComparedMetric {
  std::string name, a, b, ratio;
};

const Texts k_none;

// "a, b", "5 shapes".
std::string listed(const Texts& texts, std::string_view many) {
  constexpr std::size_t k_most = 3;
  if (texts.size() > k_most) return plural(texts.size(), many);
  std::string words;
  for (const std::string& one : texts) words += (words.empty() ? "" : ", ") + one_line(one, 80);
  return words;
}

// "a → b", or what it is where it did not change.
std::string moved(const Texts& a, const Texts& b, std::string_view many) {
  if (a == b || b.empty()) return listed(a, many);
  return a.empty() ? listed(b, many) : listed(a, many) + std::string(k_arrow) + listed(b, many);
}

const Texts& of(const std::optional<ComparedOp>& side, Texts ComparedOp::*what) {
  return side ? (*side).*what : k_none;
}

Texts briefly(const Texts& types) {
  Texts brief;
  for (const std::string& type : types) {
    brief.insert(type.substr(0, std::min(type.find(','), type.find("->"))));
  }
  return brief;
}

// Quantizations, where they differ: in full only where their beginnings are the same.
std::string type_words(const OpChange& op) {
  const Texts& a = of(op.a, &ComparedOp::types);
  const Texts& b = of(op.b, &ComparedOp::types);
  if (op.a && op.b && (a == b || a.empty() || b.empty())) return "";
  const Texts brief_a = briefly(a), brief_b = briefly(b);
  return brief_a == brief_b ? moved(a, b, "type") : moved(brief_a, brief_b, "type");
}

Texts lowered(const Texts& names) {
  Texts out;
  for (const std::string& name : names) out.insert(text::lower(name));
  return out;
}

// Its names, where they say more than the role. One name alone stands in the role's
// place.
std::string name_words(const OpChange& op, bool types_shown) {
  const Texts& a = of(op.a, &ComparedOp::names);
  const Texts& b = of(op.b, &ComparedOp::names);
  const bool both = op.a && op.b;
  if (both && (types_shown || lowered(a) == lowered(b))) return "";
  return both || a.size() + b.size() > 1 ? moved(a, b, "name") : "";
}

std::optional<std::string> only_name(const OpChange& op) {
  const Texts& a = of(op.a, &ComparedOp::names);
  const Texts& b = of(op.b, &ComparedOp::names);
  const Texts& names = op.a ? a : b;
  if (names.size() != 1 || (op.a && op.b && a != b)) return std::nullopt;
  return *names.begin();
}

std::string count_words(double calls) {
  if (calls == std::floor(calls) && calls < 1e15) return fmt::format("{:.0f}", calls);
  return calls >= 100 ? fmt::format("{:.1f}", calls) : fmt::format("{:.3g}", calls);
}

void add(std::string& words, std::string_view separator, const std::string& more) {
  if (more.empty()) return;
  words += (words.empty() ? "" : std::string(separator)) + more;
}

// "0.96×"
std::string ratio_words(double ratio) {
  return fmt::format("{}\u00d7",
                     ratio < 100 ? fmt::format("{:.2f}", ratio) : fmt::format("{:.3g}", ratio));
}

CompareColumns compare_columns(const explain::Comparison& comparison) {
  CompareColumns columns;
  Texts backends;
  for (const OpChange& op : comparison.ops) {
    for (const auto* side : {&op.a, &op.b}) {
      if (!*side) continue;
      columns.times = columns.times || (*side)->seconds;
      columns.calls = columns.calls || (*side)->calls;
      backends.insert((*side)->backends.begin(), (*side)->backends.end());
    }
  }
  columns.backends = backends.size() > 1;
  return columns;
}

std::vector<std::string> compare_head(const CompareColumns& columns) {
  std::vector<std::string> head;
  if (columns.times) head = {"time A", "B", "ratio"};
  if (columns.calls) head.insert(head.end(), {"calls A", "B"});
  return head;
}

// Time on A, on B, their ratio, calls on A, on B: those of `columns`; "" where absent.
std::vector<std::string> compare_cells(const OpChange& op, const CompareColumns& columns) {
  std::vector<std::string> cells;
  const auto number = [&](const std::optional<ComparedOp>& side,
                          std::optional<double> ComparedOp::*what, auto&& words) {
    const auto value = side ? (*side).*what : std::nullopt;
    cells.push_back(value ? words(*value) : "");
  };
  if (columns.times) {
    number(op.a, &ComparedOp::seconds, brief_time);
    number(op.b, &ComparedOp::seconds, brief_time);
    const auto ratio = op.time_ratio();
    cells.push_back(ratio ? ratio_words(*ratio) : "");
  }
  if (columns.calls) {
    number(op.a, &ComparedOp::calls, count_words);
    number(op.b, &ComparedOp::calls, count_words);
  }
  return cells;
}

// "MUL_MAT (ffn) 256x256,256->256, q4_0 → q8_0, Vulkan0 → CPU"; hostile names made printable.
std::string compare_what(const OpChange& op, const CompareColumns& columns) {
  const std::string types = type_words(op);
  const auto name = only_name(op);
  std::string words = one_line(name.value_or(op.role), 120);
  if (!name && !op.part.empty()) words += " (" + one_line(op.part, 40) + ")";
  add(words, " ", moved(of(op.a, &ComparedOp::shapes), of(op.b, &ComparedOp::shapes), "shape"));
  add(words, ", ", name_words(op, !types.empty()));
  add(words, ", ", types);
  if (columns.backends) {
    add(words, ", ",
        moved(of(op.a, &ComparedOp::backends), of(op.b, &ComparedOp::backends), "backend"));
  }
  const auto whole = op.time_ratio(), each = op.each_ratio();
  if (whole && each && ratio_words(*whole) != ratio_words(*each)) {
    words += fmt::format(" (each {})", ratio_words(*each));
  }
  return words;
}

// "old.txt: llama.cpp · Vulkan (vk-perf-logger)".
std::string compare_side(const explain::ComparedInput& side) {
  std::string words = one_line(side.name, 200);
  add(words, ": ", one_line(side.words, 200));
  return fmt::format("{} ({})", words, one_line(side.format, 60));
}

// "Decoding, a token (of 2 and 2). All ops: 44.9 ms → 43.2 ms, 0.96×."
std::string compare_basis(const explain::Comparison& comparison) {
  std::string words;
  if (!comparison.ops.empty()) {
    if (!comparison.per.empty()) {
      words = fmt::format("{}a {}", comparison.decoding ? "Decoding, " : "Times and calls of ",
                          comparison.per);
      if (comparison.a.tokens && comparison.b.tokens) {
        words += fmt::format(" (of {} and {})", *comparison.a.tokens, *comparison.b.tokens);
      }
    } else {
      words = comparison.decoding ? "All that decodes" : "All of both runs";
    }
    words += ".";
  }
  if (comparison.seconds_a && comparison.seconds_b) {
    words += fmt::format(" All ops: {} \u2192 {}", brief_time(*comparison.seconds_a),
                         brief_time(*comparison.seconds_b));
    if (*comparison.seconds_a > 0) {
      words += ", " + ratio_words(*comparison.seconds_b / *comparison.seconds_a);
    }
    words += ".";
  }
  return words;
}

// Those that both sides have; where there are none, those of either.
std::vector<ComparedMetric> compare_metrics(const explain::Comparison& comparison) {
  std::vector<ComparedMetric> both, either;
  for (const explain::MetricChange& one : comparison.metrics) {
    const auto words = [&](const std::optional<double>& value) {
      return value ? one_line(unit::show(one.metric, *value), 40) : "";
    };
    // "tg8 decode tok/s": the case stands before the metric's name.
    std::string name = one.name;
    if (name.ends_with(one.metric.name)) {
      name.resize(name.size() - one.metric.name.size());
      name += unit::label(one.metric);
    }
    ComparedMetric row{one_line(name, 60), words(one.a), words(one.b), ""};
    if (one.a && one.b && *one.a > 0) row.ratio = ratio_words(*one.b / *one.a);
    (one.a && one.b ? both : either).push_back(std::move(row));
  }
  return both.empty() ? either : both;
}

constexpr std::size_t k_most_same = 5;  // rows of what did not change

struct SectionOf {
  CompareSection section;
  std::vector<const OpChange*> shown;
  std::size_t left_out = 0;
};

std::vector<SectionOf> sections_of(const Comparison& one, std::size_t most_rows) {
  std::vector<SectionOf> sections;
  for (const CompareSection& section : k_compare_sections) {
    SectionOf filled{section, {}, 0};
    const std::size_t most =
        section.change == Shift::same ? std::min(most_rows, k_most_same) : most_rows;
    for (const OpChange& op : one.ops) {
      if (op.change != section.change) continue;
      if (filled.shown.size() < most) {
        filled.shown.push_back(&op);
      } else {
        ++filled.left_out;
      }
    }
    if (!filled.shown.empty()) sections.push_back(std::move(filled));
  }
  return sections;
}

// One table in all, with headings between its rows.
void ops_table(Page& page, const Comparison& one, const CompareStyle& style) {
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
  const auto add = [&](std::vector<std::vector<std::string>> rows) {
    TextTable table;
    table.right.assign(head.size() - 1, true);
    for (auto& row : rows) {
      for (std::size_t i = 0; i + 1 < row.size(); ++i) row[i] = pad_left(row[i], widths[i]);
    }
    table.rows = std::move(rows);
    page.table(table);
  };
  page.blank();
  add({head});
  for (const SectionOf& section : sections) {
    page.say(0, section.section.title);
    std::vector<std::vector<std::string>> rows;
    for (const OpChange* op : section.shown) {
      rows.push_back(row_of(compare_cells(*op, columns), compare_what(*op, columns)));
    }
    add(std::move(rows));
    if (section.left_out != 0) page.say(2, "and {} more (--top shows more)", section.left_out);
  }
}

void metrics_table(Page& page, const Comparison& one, const CompareStyle& style) {
  const auto rows = compare_metrics(one);
  if (rows.empty()) return;
  TextTable table{{"", "A", "B", "ratio"}, {false, true, true, true}};
  const std::size_t most = std::max<std::size_t>(style.most_rows, 20);
  for (const ComparedMetric& row : rows) {
    if (table.rows.size() == most) break;
    table.rows.push_back({row.name, row.a, row.b, row.ratio});
  }
  page.blank();
  page.table(table);
  if (rows.size() > most) page.say(2, "and {} more", rows.size() - most);
}

// What nothing can be said of has to say so.
std::string nothing_words(const Comparison& one) {
  if (!one.ops.empty() || !one.metrics.empty()) return "";
  return "Neither side reports ops, times or counts.";
}

void add_text(Page& page, const Comparison& one, const CompareStyle& style) {
  page.say(0, "A  " + compare_side(one.a));
  page.say(0, "B  " + compare_side(one.b));
  if (const std::string basis = compare_basis(one); !basis.empty()) page.say(0, basis);
  if (const std::string nothing = nothing_words(one); !nothing.empty()) page.say(0, nothing);
  metrics_table(page, one, style);
  ops_table(page, one, style);
  if (!one.findings.empty()) {
    page.add("\nWhat fits it (weir explain)\n");
    page.add(findings_text(one.findings, {style.color, static_cast<int>(page.width())}));
  }
  if (!one.doubts.empty()) page.blank();
  for (const std::string& doubt : one.doubts) page.say(0, "warning: " + one_line(doubt, 300));
}

// A row of a Markdown table.
void add_cells(std::string& out, const std::vector<std::string>& cells) {
  out += fmt::format("| {} |\n", fmt::join(cells, " | "));
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
      const ComparedMetric& row = metrics[i];
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
    cells.push_back(fmt::format("and {} more", section.left_out));
    add_cells(out, cells);
  }
  if (!one.findings.empty()) out += "\n";
  for (const auto& finding : one.findings) {
    out += "- " + markdown_text(finding.headline) + "\n";
  }
  if (!one.doubts.empty()) out += "\n";
  for (const std::string& doubt : one.doubts) out += "- warning: " + markdown_text(doubt) + "\n";
}

}  // namespace

std::string compare_text(std::span<const Comparison> comparisons, const CompareStyle& style) {
  Page page(columns_of(style.width, 60));
  for (const Comparison& one : comparisons) {
    if (&one != &comparisons.front()) page.blank();
    add_text(page, one, style);
  }
  return page.finish();
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
