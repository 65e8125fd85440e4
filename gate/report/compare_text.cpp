#include "gate/report/compare_text.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "gate/base/find.hpp"
#include "gate/base/names.hpp"
#include "gate/base/text.hpp"
#include "gate/report/escape.hpp"
#include "gate/report/explain_text.hpp"
#include "gate/report/layout.hpp"

namespace weir::report {
namespace {

using explain::ComparedOp;
using explain::Comparison;
using explain::OpChange;
using explain::Shift;
using Texts = std::set<std::string>;

// In the order in which they are listed.
constexpr auto k_compare_sections = std::to_array<Name<Shift>>({
    {Shift::fresh, "new"},
    {Shift::gone, "gone"},
    {Shift::slower, "slower, each call"},
    {Shift::more_calls, "called more often"},
    {Shift::fewer_calls, "called less often"},
    {Shift::faster, "faster, each call"},
    {Shift::same, "same"},
});

const Texts k_none;

// "a, b", "5 shapes".
std::string listed(const Texts& texts, std::string_view many) {
  constexpr std::size_t k_most = 3;
  if (texts.size() > k_most) return plural(texts.size(), many);
  return text::join(collect<std::string>(texts, [](const auto& one) { return one_line(one, 80); }));
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

// What a column says of an op; "" where that is absent.
struct CompareColumn {
  const char* head;
  std::function<std::string(const OpChange&)> cell;
};

// Rows of one table: ops, or command buffers by label.
struct CompareRows {
  const std::vector<OpChange>& rows;
  const char* what;   // the head of their names
  const char* calls;  // the head of how often they come
  bool backends;      // not all of it is on one
};

// Of times and calls, where any row has them.
std::vector<CompareColumn> compare_columns(const CompareRows& of_rows) {
  const auto number = [](std::optional<ComparedOp> OpChange::*side,
                         std::optional<double> ComparedOp::*what, std::string (*words)(double)) {
    return [=](const OpChange& op) {
      const auto value = op.*side ? (*(op.*side)).*what : std::nullopt;
      return value ? words(*value) : "";
    };
  };
  const auto any = [&](std::optional<double> ComparedOp::*what) {
    return std::ranges::any_of(of_rows.rows, [&](const OpChange& op) {
      return (op.a && (*op.a).*what) || (op.b && (*op.b).*what);
    });
  };
  std::vector<CompareColumn> columns;
  if (any(&ComparedOp::seconds)) {
    columns = {{"time A", number(&OpChange::a, &ComparedOp::seconds, brief_time)},
               {"B", number(&OpChange::b, &ComparedOp::seconds, brief_time)},
               {"ratio", [](const OpChange& op) {
                  const auto ratio = op.time_ratio();
                  return ratio ? ratio_words(*ratio) : "";
                }}};
  }
  if (any(&ComparedOp::calls)) {
    columns.push_back({of_rows.calls, number(&OpChange::a, &ComparedOp::calls, count_words)});
    columns.push_back({"B", number(&OpChange::b, &ComparedOp::calls, count_words)});
  }
  return columns;
}

std::vector<std::string> cells_of(const OpChange& op, const std::vector<CompareColumn>& columns) {
  return collect<std::string>(columns, [&](const auto& column) { return column.cell(op); });
}

// Not all the work of both sides is on one.
bool several_backends(const Comparison& comparison) {
  Texts backends;
  for (const OpChange& op : comparison.ops) {
    for (const auto* side : {&op.a, &op.b}) {
      if (*side) backends.insert((*side)->backends.begin(), (*side)->backends.end());
    }
  }
  return backends.size() > 1;
}

// "MUL_MAT (ffn) 256x256,256->256, q4_0 → q8_0, Vulkan0 → CPU"; hostile names made printable.
std::string compare_what(const OpChange& op, bool backends) {
  const std::string types = type_words(op);
  const auto name = only_name(op);
  std::string words = one_line(name.value_or(op.role), 120);
  if (!name && !op.part.empty()) words += " (" + one_line(op.part, 40) + ")";
  add(words, " ", moved(of(op.a, &ComparedOp::shapes), of(op.b, &ComparedOp::shapes), "shape"));
  add(words, ", ", name_words(op, !types.empty()));
  add(words, ", ", types);
  if (backends) {
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

// " 2 ops that only one side times are left out."; "" of none.
std::string left_out_words(std::size_t untimed, std::string_view what) {
  if (untimed == 0) return "";
  return fmt::format(" {} that only one side times {} left out.", plural(untimed, what),
                     untimed == 1 ? "is" : "are");
}

// "Decoding, a token (of 2 and 2). All ops: 44.9 ms → 43.2 ms, 0.96×."
std::string compare_basis(const Comparison& comparison) {
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
    words += "." + left_out_words(comparison.untimed, "op");
  }
  return words;
}

// "+1.2 ms"
std::string gap_time(double seconds) {
  return (seconds < 0 ? "\u2212" : "+") + brief_time(std::fabs(seconds));
}

// "A token takes +1.7 ms. Command buffers take +1.2 ms of it: layer.attn +1.2 ms." Without "of it"
// where they changed by more than the token, or the other way.
std::string gap_text(const Comparison& comparison) {
  const auto gap = explain::token_gap(comparison);
  if (!gap) return "";
  const auto is_part = [&] {
    return gap->buffers * *gap->seconds >= 0 && std::fabs(gap->buffers) <= std::fabs(*gap->seconds);
  };
  std::string words =
      gap->seconds
          ? fmt::format("A token takes {}. Command buffers take {}{}", gap_time(*gap->seconds),
                        gap_time(gap->buffers), is_part() ? " of it" : "")
          : fmt::format("Command buffers of a token take {}", gap_time(gap->buffers));
  std::vector<std::string> labels;
  for (const auto& [op, by] : gap->labels) {
    if (by != 0 && labels.size() < explain::k_gap_labels)
      labels.push_back(one_line(op->role, 60) + " " + gap_time(by));
  }
  if (!labels.empty()) words += ": " + text::join(labels);
  return words + "." + left_out_words(gap->untimed, "command buffer");
}

// Those that both sides have; where there are none, those of either.
std::vector<std::vector<std::string>> compare_metrics(const Comparison& comparison) {
  std::vector<std::vector<std::string>> both, either;
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
    const bool has_ratio = one.a && one.b && *one.a > 0;
    (one.a && one.b ? both : either)
        .push_back({one_line(name, 60), words(one.a), words(one.b),
                    has_ratio ? ratio_words(*one.b / *one.a) : ""});
  }
  return both.empty() ? either : both;
}

constexpr std::size_t k_most_same = 5;  // rows of what did not change

struct Section {
  std::string_view title;
  std::vector<const OpChange*> shown{};
  std::size_t left_out = 0;
};

std::vector<Section> sections_of(const std::vector<OpChange>& rows, std::size_t most_rows) {
  std::vector<Section> sections;
  for (const auto& [change, title] : k_compare_sections) {
    Section filled{title};
    const std::size_t most = change == Shift::same ? std::min(most_rows, k_most_same) : most_rows;
    for (const OpChange& op : rows) {
      if (op.change == change) filled.shown.push_back(&op);
    }
    filled.left_out = filled.shown.size() - std::min(most, filled.shown.size());
    filled.shown.resize(filled.shown.size() - filled.left_out);
    if (!filled.shown.empty()) sections.push_back(std::move(filled));
  }
  return sections;
}

std::vector<CompareRows> compare_tables(const Comparison& one) {
  return {{one.ops, "op", "calls A", several_backends(one)},
          {one.buffers, "command buffer", "buffers A", false}};
}

// One table in all, with headings between its rows.
void rows_table(Page& page, const CompareRows& one, const CompareStyle& style) {
  const auto columns = compare_columns(one);
  const auto sections = sections_of(one.rows, style.most_rows);
  if (sections.empty()) return;
  TextTable table;
  for (const CompareColumn& column : columns) table.head.emplace_back(column.head);
  table.head.emplace_back(one.what);
  table.right.assign(columns.size(), true);
  for (const Section& section : sections) {
    for (const OpChange* op : section.shown) {
      table.rows.push_back(cells_of(*op, columns));
      table.rows.back().push_back(compare_what(*op, one.backends));
    }
  }
  table.least = table.widths();
  const auto rows = std::exchange(table.rows, {});
  page.blank();
  page.table(table);
  table.head.clear();
  auto row = rows.begin();
  for (const Section& section : sections) {
    page.say(0, section.title);
    const auto end = row + std::ssize(section.shown);
    table.rows.assign(row, end);
    row = end;
    page.table(table);
    if (section.left_out != 0) page.say(2, "and {} more (--top shows more)", section.left_out);
  }
}

void metrics_table(Page& page, const Comparison& one, const CompareStyle& style) {
  TextTable table{{"", "A", "B", "ratio"}, {false, true, true, true}, compare_metrics(one)};
  if (table.rows.empty()) return;
  const std::size_t all = table.rows.size(), most = std::max<std::size_t>(style.most_rows, 20);
  table.rows.resize(std::min(all, most));
  page.blank();
  page.table(table);
  if (all > most) page.say(2, "and {} more", all - most);
}

// What nothing can be said of has to say so.
std::string nothing_words(const Comparison& one) {
  if (!one.ops.empty() || !one.buffers.empty() || !one.metrics.empty()) return "";
  return "Neither side reports ops, times or counts.";
}

void add_text(Page& page, const Comparison& one, const CompareStyle& style) {
  page.say(0, "A  " + compare_side(one.a));
  page.say(0, "B  " + compare_side(one.b));
  if (const std::string basis = compare_basis(one); !basis.empty()) page.say(0, basis);
  if (const std::string gap = gap_text(one); !gap.empty()) page.say(0, gap);
  if (const std::string nothing = nothing_words(one); !nothing.empty()) page.say(0, nothing);
  metrics_table(page, one, style);
  for (const CompareRows& table : compare_tables(one)) rows_table(page, table, style);
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

void add_rows(std::string& out, const CompareRows& one, std::size_t most_rows) {
  const auto columns = compare_columns(one);
  const auto sections = sections_of(one.rows, most_rows);
  if (sections.empty()) return;
  if (out.ends_with("|\n")) out += "\n";  // behind another table
  out += "| |";
  for (const CompareColumn& column : columns) out += fmt::format(" {} |", column.head);
  out += fmt::format(" {} |\n| --- |", one.what);
  for (std::size_t i = 0; i < columns.size(); ++i) out += " ---: |";
  out += " --- |\n";
  for (const Section& section : sections) {
    std::string_view title = section.title;
    for (const OpChange* op : section.shown) {
      std::vector<std::string> cells = cells_of(*op, columns);
      cells.insert(cells.begin(), std::string(std::exchange(title, "")));
      cells.push_back(markdown_code(compare_what(*op, one.backends)));
      add_cells(out, cells);
    }
    if (section.left_out == 0) continue;
    std::vector<std::string> cells(columns.size() + 1);
    cells.push_back(fmt::format("and {} more", section.left_out));
    add_cells(out, cells);
  }
}

void add_markdown(std::string& out, const Comparison& one, std::size_t most_rows) {
  out += "**A** " + markdown_text(compare_side(one.a)) + "<br>\n";
  out += "**B** " + markdown_text(compare_side(one.b)) + "\n\n";
  if (const std::string basis = compare_basis(one); !basis.empty()) {
    out += markdown_text(basis) + "\n\n";
  }
  if (const std::string gap = gap_text(one); !gap.empty()) out += markdown_text(gap) + "\n\n";
  if (const std::string nothing = nothing_words(one); !nothing.empty()) out += nothing + "\n\n";
  const auto metrics = compare_metrics(one);
  if (!metrics.empty()) {
    out += "| metric | A | B | ratio |\n| --- | ---: | ---: | ---: |\n";
    for (std::size_t i = 0; i < std::min<std::size_t>(metrics.size(), 20); ++i) {
      std::vector<std::string> cells = metrics[i];
      for (std::string& cell : cells) cell = markdown_text(cell);
      add_cells(out, cells);
    }
    out += "\n";
  }
  for (const CompareRows& table : compare_tables(one)) add_rows(out, table, most_rows);
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
    page.part();
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
  return {{"schema", "weir.comparison/1"}, {"comparisons", write_fields(comparisons)}};
}

}  // namespace weir::report
