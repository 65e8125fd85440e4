// Writes the comparison of two profiles as text, Markdown and JSON.
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

// Sections of a comparison, in the order in which they are listed.
constexpr auto k_compare_sections = std::to_array<Name<Shift>>({
    {Shift::fresh, "new"},
    {Shift::gone, "gone"},
    {Shift::slower, "slower, each call"},
    {Shift::more_calls, "called more often"},
    {Shift::fewer_calls, "called less often"},
    {Shift::faster, "faster, each call"},
    {Shift::unchanged, "same"},
});

const Texts k_none;

// Joins up to three texts ("a, b"), or counts them ("5 shapes").
std::string list_texts(const Texts& texts, std::string_view many) {
  constexpr std::size_t k_max_texts_listed = 3;
  if (texts.size() > k_max_texts_listed) return text::plural(texts.size(), many);
  return text::join(
      collect<std::string>(texts, [](const auto& name) { return printable_line(name, 80); }));
}

// Returns "a → b", or the texts alone if they did not change or one side has none.
std::string change_text(const Texts& a, const Texts& b, std::string_view many) {
  if (a == b || b.empty()) return list_texts(a, many);
  return a.empty() ? list_texts(b, many)
                   : list_texts(a, many) + std::string(k_arrow) + list_texts(b, many);
}

const Texts& side_texts(const std::optional<ComparedOp>& side, Texts ComparedOp::*member) {
  return side ? (*side).*member : k_none;
}

// Cuts each type at its first "," or "->": "q4_0" of "q4_0,f32->f32".
Texts shorten_types(const Texts& types) {
  Texts brief;
  for (const std::string& type : types) {
    brief.insert(type.substr(0, std::min(type.find(','), type.find("->"))));
  }
  return brief;
}

// Returns the quantizations of both sides if they differ ("q4_0 → q8_0"), else "". They are shown
// in full only if their short forms are the same.
std::string types_text(const OpChange& op) {
  const Texts& a = side_texts(op.a, &ComparedOp::types);
  const Texts& b = side_texts(op.b, &ComparedOp::types);
  if (op.a && op.b && (a == b || a.empty() || b.empty())) return "";
  const Texts brief_a = shorten_types(a), brief_b = shorten_types(b);
  return brief_a == brief_b ? change_text(a, b, "type") : change_text(brief_a, brief_b, "type");
}

Texts to_lower(const Texts& names) {
  Texts out;
  for (const std::string& name : names) out.insert(text::lower(name));
  return out;
}

// Returns the names of an op if they say more than its role, else "". An op with a single name gets
// it in place of the role, see only_name().
std::string names_text(const OpChange& op, bool types_shown) {
  const Texts& a = side_texts(op.a, &ComparedOp::names);
  const Texts& b = side_texts(op.b, &ComparedOp::names);
  const bool both = op.a && op.b;
  if (both && (types_shown || to_lower(a) == to_lower(b))) return "";
  return both || a.size() + b.size() > 1 ? change_text(a, b, "name") : "";
}

// Returns the name of an op that has a single name, the same on both sides.
std::optional<std::string> only_name(const OpChange& op) {
  const Texts& a = side_texts(op.a, &ComparedOp::names);
  const Texts& b = side_texts(op.b, &ComparedOp::names);
  const Texts& names = op.a ? a : b;
  if (names.size() != 1 || (op.a && op.b && a != b)) return std::nullopt;
  return *names.begin();
}

std::string count_text(double calls) {
  if (calls == std::floor(calls) && calls < 1e15) return fmt::format("{:.0f}", calls);
  return calls >= 100 ? fmt::format("{:.1f}", calls) : fmt::format("{:.3g}", calls);
}

// Appends `more` to the text, after `separator` if there is text already.
void append(std::string& text, std::string_view separator, const std::string& more) {
  if (more.empty()) return;
  text += (text.empty() ? "" : std::string(separator)) + more;
}

// Returns "0.96×".
std::string ratio_text(double ratio) {
  return fmt::format("{}\u00d7",
                     ratio < 100 ? fmt::format("{:.2f}", ratio) : fmt::format("{:.3g}", ratio));
}

// A column of the table; `cell` returns the text for an op, "" if it has none.
struct CompareColumn {
  const char* head;
  std::function<std::string(const OpChange&)> cell;
};

// Rows of one table: ops, or command buffers by label.
struct CompareRows {
  const std::vector<OpChange>& rows;
  const char* what;     // title of the column of names
  const char* calls;    // title of the column of calls
  bool names_backends;  // the ops run on several backends
};

// Returns the columns of times and calls that any row has, for A, for B, and their ratio.
std::vector<CompareColumn> compare_columns(const CompareRows& table_rows) {
  const auto show_number = [](std::optional<ComparedOp> OpChange::*side,
                              std::optional<double> ComparedOp::*member,
                              std::string (*show)(double)) {
    return [=](const OpChange& op) {
      const auto value = op.*side ? (*(op.*side)).*member : std::nullopt;
      return value ? show(*value) : "";
    };
  };
  const auto any_row_has = [&](std::optional<double> ComparedOp::*member) {
    return std::ranges::any_of(table_rows.rows, [&](const OpChange& op) {
      return (op.a && (*op.a).*member) || (op.b && (*op.b).*member);
    });
  };
  std::vector<CompareColumn> columns;
  if (any_row_has(&ComparedOp::seconds)) {
    columns = {{"time A", show_number(&OpChange::a, &ComparedOp::seconds, brief_time)},
               {"B", show_number(&OpChange::b, &ComparedOp::seconds, brief_time)},
               {"ratio", [](const OpChange& op) {
                  const auto ratio = op.time_ratio();
                  return ratio ? ratio_text(*ratio) : "";
                }}};
  }
  if (any_row_has(&ComparedOp::calls)) {
    columns.push_back(
        {table_rows.calls, show_number(&OpChange::a, &ComparedOp::calls, count_text)});
    columns.push_back({"B", show_number(&OpChange::b, &ComparedOp::calls, count_text)});
  }
  return columns;
}

std::vector<std::string> column_cells(const OpChange& op,
                                      const std::vector<CompareColumn>& columns) {
  return collect<std::string>(columns, [&](const auto& column) { return column.cell(op); });
}

// Returns true if the ops of both sides run on several backends.
bool several_backends(const Comparison& comparison) {
  Texts backends;
  for (const OpChange& op : comparison.ops) {
    for (const auto* side : {&op.a, &op.b}) {
      if (*side) backends.insert((*side)->backends.begin(), (*side)->backends.end());
    }
  }
  return backends.size() > 1;
}

// Describes an op: "MUL_MAT (ffn) 256x256,256->256, q4_0 → q8_0, Vulkan0 → CPU". Hostile names are
// made printable.
std::string op_text(const OpChange& op, bool names_backends) {
  const std::string types = types_text(op);
  const auto name = only_name(op);
  std::string text = printable_line(name.value_or(op.role), 120);
  if (!name && !op.part.empty()) text += " (" + printable_line(op.part, 40) + ")";
  append(text, " ",
         change_text(side_texts(op.a, &ComparedOp::shapes), side_texts(op.b, &ComparedOp::shapes),
                     "shape"));
  append(text, ", ", names_text(op, !types.empty()));
  append(text, ", ", types);
  if (names_backends) {
    append(text, ", ",
           change_text(side_texts(op.a, &ComparedOp::backends),
                       side_texts(op.b, &ComparedOp::backends), "backend"));
  }
  const auto total = op.time_ratio(), each = op.each_ratio();
  if (total && each && ratio_text(*total) != ratio_text(*each)) {
    text += fmt::format(" (each {})", ratio_text(*each));
  }
  return text;
}

// Describes one of the two profiles: "old.txt: llama.cpp · Vulkan (vk-perf-logger)".
std::string input_text(const explain::ComparedInput& input) {
  std::string text = printable_line(input.name, 200);
  append(text, ": ", printable_line(input.words, 200));
  return fmt::format("{} ({})", text, printable_line(input.format, 60));
}

// Returns " 2 ops that only one side times are left out."; "" if there are none.
std::string left_out_text(std::size_t untimed, std::string_view what) {
  if (untimed == 0) return "";
  return fmt::format(" {} that only one side times {} left out.", text::plural(untimed, what),
                     untimed == 1 ? "is" : "are");
}

// Says what times and calls are of, and how long all ops take: "Decoding, a token (of 2 and 2). All
// ops: 44.9 ms → 43.2 ms, 0.96×."
std::string basis_text(const Comparison& comparison) {
  std::string text;
  if (!comparison.ops.empty()) {
    if (!comparison.per.empty()) {
      text = fmt::format("{}a {}", comparison.decoding ? "Decoding, " : "Times and calls of ",
                         comparison.per);
      if (comparison.a.tokens && comparison.b.tokens) {
        text += fmt::format(" (of {} and {})", *comparison.a.tokens, *comparison.b.tokens);
      }
    } else {
      text = comparison.decoding ? "All that decodes" : "All of both runs";
    }
    text += ".";
  }
  if (comparison.seconds_a && comparison.seconds_b) {
    text += fmt::format(" All ops: {} \u2192 {}", brief_time(*comparison.seconds_a),
                        brief_time(*comparison.seconds_b));
    if (*comparison.seconds_a > 0) {
      text += ", " + ratio_text(*comparison.seconds_b / *comparison.seconds_a);
    }
    text += "." + left_out_text(comparison.untimed_ops, "op");
  }
  return text;
}

// Returns a difference of times with its sign: "+1.2 ms".
std::string gap_time(double seconds) {
  return (seconds < 0 ? "\u2212" : "+") + brief_time(std::fabs(seconds));
}

// Says how much longer a token takes, and in which command buffers; "" if that is not known: "A
// token takes +1.7 ms. Command buffers take +1.2 ms of it: layer.attn +1.2 ms." Without "of it" if
// buffers changed by more, or in the other direction.
std::string gap_text(const Comparison& comparison) {
  const auto gap = explain::token_gap(comparison);
  if (!gap) return "";
  std::string text;
  if (gap->seconds) {
    const bool is_part =
        gap->buffers * *gap->seconds >= 0 && std::fabs(gap->buffers) <= std::fabs(*gap->seconds);
    text = fmt::format("A token takes {}. Command buffers take {}{}", gap_time(*gap->seconds),
                       gap_time(gap->buffers), is_part ? " of it" : "");
  } else {
    text = fmt::format("Command buffers of a token take {}", gap_time(gap->buffers));
  }
  std::vector<std::string> labels;
  for (const auto& [op, difference] : gap->labels) {
    if (difference != 0 && labels.size() < explain::k_gap_labels)
      labels.push_back(printable_line(op->role, 60) + " " + gap_time(difference));
  }
  if (!labels.empty()) text += ": " + text::join(labels);
  return text + "." + left_out_text(gap->untimed_labels, "command buffer");
}

// Returns a row for each metric that both profiles have; if there is none, for each metric of
// either.
std::vector<std::vector<std::string>> metric_rows(const Comparison& comparison) {
  std::vector<std::vector<std::string>> both, either;
  for (const explain::MetricChange& metric : comparison.metrics) {
    const auto show = [&](const std::optional<double>& value) {
      return value ? printable_line(unit::show(metric.metric, *value), 40) : "";
    };
    // A benchmark case stands before the metric's name: "tg8 decode tok/s".
    std::string name = metric.name;
    if (name.ends_with(metric.metric.name)) {
      name.resize(name.size() - metric.metric.name.size());
      name += unit::display_name(metric.metric);
    }
    const bool has_ratio = metric.a && metric.b && *metric.a > 0;
    auto& rows = metric.a && metric.b ? both : either;
    rows.push_back({printable_line(name, 60), show(metric.a), show(metric.b),
                    has_ratio ? ratio_text(*metric.b / *metric.a) : ""});
  }
  return both.empty() ? either : both;
}

constexpr std::size_t k_max_unchanged_rows = 5;  // rows without a change

// Ops that changed in the same way.
struct Section {
  std::string_view title;
  std::vector<const OpChange*> shown{};
  std::size_t left_out = 0;
};

// Sorts rows into sections by how the op changed, each with at most `row_limit` rows; empty
// sections are left out.
std::vector<Section> fill_sections(const std::vector<OpChange>& rows, std::size_t row_limit) {
  std::vector<Section> sections;
  for (const auto& [shift, title] : k_compare_sections) {
    Section section{title};
    const std::size_t max_rows =
        shift == Shift::unchanged ? std::min(row_limit, k_max_unchanged_rows) : row_limit;
    for (const OpChange& op : rows) {
      if (op.shift == shift) section.shown.push_back(&op);
    }
    section.left_out = section.shown.size() - std::min(max_rows, section.shown.size());
    section.shown.resize(section.shown.size() - section.left_out);
    if (!section.shown.empty()) sections.push_back(std::move(section));
  }
  return sections;
}

std::vector<CompareRows> compare_tables(const Comparison& comparison) {
  return {{comparison.ops, "op", "calls A", several_backends(comparison)},
          {comparison.buffers, "command buffer", "buffers A", false}};
}

// Adds the sections as one table, with the section's title before its rows.
void add_op_table(Page& page, const CompareRows& table_rows, const CompareStyle& style) {
  const auto columns = compare_columns(table_rows);
  const auto sections = fill_sections(table_rows.rows, style.max_rows);
  if (sections.empty()) return;
  TextTable table;
  for (const CompareColumn& column : columns) table.headings.emplace_back(column.head);
  table.headings.emplace_back(table_rows.what);
  table.right_aligned.assign(columns.size(), true);
  for (const Section& section : sections) {
    for (const OpChange* op : section.shown) {
      table.rows.push_back(column_cells(*op, columns));
      table.rows.back().push_back(op_text(*op, table_rows.names_backends));
    }
  }
  table.min_widths = table.widths();
  const auto rows = std::move(table.rows);
  table.rows.clear();
  page.add_blank_line();
  page.add_table(table);
  table.headings.clear();
  auto row = rows.begin();
  for (const Section& section : sections) {
    page.add_text(section.title);
    const auto end = row + std::ssize(section.shown);
    table.rows.assign(row, end);
    row = end;
    page.add_table(table);
    if (section.left_out != 0)
      page.add_indented(2, "and {} more (--top shows more)", section.left_out);
  }
}

void add_metrics_table(Page& page, const Comparison& comparison, const CompareStyle& style) {
  TextTable table{.headings = {"", "A", "B", "ratio"},
                  .right_aligned = {false, true, true, true},
                  .rows = metric_rows(comparison)};
  if (table.rows.empty()) return;
  const std::size_t all = table.rows.size(), max_rows = std::max<std::size_t>(style.max_rows, 20);
  table.rows.resize(std::min(all, max_rows));
  page.add_blank_line();
  page.add_table(table);
  if (all > max_rows) page.add_indented(2, "and {} more", all - max_rows);
}

// Returns a sentence if there is nothing to compare, else "".
std::string nothing_text(const Comparison& comparison) {
  if (!comparison.ops.empty() || !comparison.buffers.empty() || !comparison.metrics.empty())
    return "";
  return "Neither side reports ops, times or counts.";
}

// Adds a comparison of two profiles: what A and B are, the gap between them, and tables of metrics
// and work.
void add_text(Page& page, const Comparison& comparison, const CompareStyle& style) {
  page.add_text("A  " + input_text(comparison.a));
  page.add_text("B  " + input_text(comparison.b));
  if (const std::string basis = basis_text(comparison); !basis.empty()) page.add_text(basis);
  if (const std::string gap = gap_text(comparison); !gap.empty()) page.add_text(gap);
  if (const std::string nothing = nothing_text(comparison); !nothing.empty())
    page.add_text(nothing);
  add_metrics_table(page, comparison, style);
  for (const CompareRows& table : compare_tables(comparison)) add_op_table(page, table, style);
  if (!comparison.findings.empty()) {
    page.add_lines("\nWhat fits it (weir explain)\n");
    page.add_lines(
        findings_text(comparison.findings, {style.color, static_cast<int>(page.width())}));
  }
  if (!comparison.warnings.empty()) page.add_blank_line();
  for (const std::string& doubt : comparison.warnings)
    page.add_text("warning: " + printable_line(doubt, 300));
}

// Adds a row of a Markdown table.
void add_cells(std::string& out, const std::vector<std::string>& cells) {
  out += fmt::format("| {} |\n", fmt::join(cells, " | "));
}

// Adds the sections as a Markdown table; the first column has the section's title.
void add_op_rows(std::string& out, const CompareRows& table_rows, std::size_t row_limit) {
  const auto columns = compare_columns(table_rows);
  const auto sections = fill_sections(table_rows.rows, row_limit);
  if (sections.empty()) return;
  if (out.ends_with("|\n")) out += "\n";  // ends the table before it
  out += "| |";
  for (const CompareColumn& column : columns) out += fmt::format(" {} |", column.head);
  out += fmt::format(" {} |\n| --- |", table_rows.what);
  for (std::size_t i = 0; i < columns.size(); ++i) out += " ---: |";
  out += " --- |\n";
  for (const Section& section : sections) {
    std::string title(section.title);  // in the first row alone
    for (const OpChange* op : section.shown) {
      std::vector<std::string> cells = column_cells(*op, columns);
      cells.insert(cells.begin(), title);
      title.clear();
      cells.push_back(markdown_code(op_text(*op, table_rows.names_backends)));
      add_cells(out, cells);
    }
    if (section.left_out == 0) continue;
    std::vector<std::string> cells(columns.size() + 1);
    cells.push_back(fmt::format("and {} more", section.left_out));
    add_cells(out, cells);
  }
}

// Adds one comparison as Markdown: its inputs, basis, metrics, ops, findings and warnings.
void add_markdown(std::string& out, const Comparison& comparison, std::size_t row_limit) {
  out += "**A** " + markdown_text(input_text(comparison.a)) + "<br>\n";
  out += "**B** " + markdown_text(input_text(comparison.b)) + "\n\n";
  if (const std::string basis = basis_text(comparison); !basis.empty()) {
    out += markdown_text(basis) + "\n\n";
  }
  if (const std::string gap = gap_text(comparison); !gap.empty())
    out += markdown_text(gap) + "\n\n";
  if (const std::string nothing = nothing_text(comparison); !nothing.empty())
    out += nothing + "\n\n";
  const auto metrics = metric_rows(comparison);
  if (!metrics.empty()) {
    out += "| metric | A | B | ratio |\n| --- | ---: | ---: | ---: |\n";
    for (std::size_t i = 0; i < std::min<std::size_t>(metrics.size(), 20); ++i) {
      std::vector<std::string> cells = metrics[i];
      for (std::string& cell : cells) cell = markdown_text(cell);
      add_cells(out, cells);
    }
    out += "\n";
  }
  for (const CompareRows& table : compare_tables(comparison)) add_op_rows(out, table, row_limit);
  if (!comparison.findings.empty()) out += "\n";
  for (const auto& finding : comparison.findings) {
    out += "- " + markdown_text(finding.headline) + "\n";
  }
  if (!comparison.warnings.empty()) out += "\n";
  for (const std::string& doubt : comparison.warnings)
    out += "- warning: " + markdown_text(doubt) + "\n";
}

// Returns the sentence that times of single profiles are uncertain; "" if none is compared.
std::string noise_text(std::span<const Comparison> comparisons) {
  const auto compares_times = [](const OpChange& op) {
    return op.shift == Shift::slower || op.shift == Shift::faster;
  };
  const bool has_times = std::ranges::any_of(comparisons, [&](const Comparison& comparison) {
    return std::ranges::any_of(comparison.ops, compares_times) ||
           std::ranges::any_of(comparison.buffers, compares_times);
  });
  if (!has_times) return "";
  return "Each side is one profile, and times of calls vary between runs: weir ab compares two "
         "programs in pairs.";
}

}  // namespace

// Writes comparisons as text, and then how far their times can be relied on.
std::string compare_text(std::span<const Comparison> comparisons, const CompareStyle& style) {
  Page page(columns_of(style.width, 60));
  for (const Comparison& comparison : comparisons) {
    page.start_part();
    add_text(page, comparison, style);
  }
  if (const std::string noise = noise_text(comparisons); !noise.empty()) {
    page.add_blank_line();
    page.add_text(noise);
  }
  return page.finish();
}

// Writes comparisons as Markdown of at most `limit` bytes. Says how many are left out.
std::string compare_markdown(std::span<const Comparison> comparisons, std::size_t row_limit,
                             std::size_t limit) {
  std::string out = "### weir: two profiles compared\n\n";
  for (std::size_t i = 0; i < comparisons.size(); ++i) {
    std::string more;
    add_markdown(more, comparisons[i], row_limit);
    if (out.size() + more.size() + 100 > limit) {
      out += fmt::format("{} left out: the report would be too long.\n",
                         text::plural(comparisons.size() - i, "comparison"));
      break;
    }
    out += more + "\n";
  }
  if (const std::string noise = noise_text(comparisons); !noise.empty()) out += noise + "\n";
  return out;
}

Json compare_json(std::span<const Comparison> comparisons) {
  return {{"schema", "weir.comparison/1"}, {"comparisons", write_fields(comparisons)}};
}

}  // namespace weir::report
