// Writes what an engine or a profiler reported as text: context, metrics and one table.
#include "gate/report/observed_text.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "gate/base/add_capped.hpp"
#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/observed/totals.hpp"
#include "gate/report/layout.hpp"
#include "gate/report/observed_tables.hpp"
#include "gate/report/timeline_document.hpp"

namespace weir::report {
namespace {

using observed::Observed;

// Returns the facts that the document states: "llama.cpp · tiny.gguf · Vulkan · llvmpipe (format
// vk-perf-logger)".
std::string context_line(const Observed& observed) {
  std::vector<std::string> words;
  const auto& context = observed.context;
  for (const auto* part : {&context.engine, &context.engine_build, &context.model, &context.backend,
                           &context.device}) {
    if (!part->value_or("").empty()) words.push_back(printable_line(**part, 120));
  }
  const std::string format = "format " + printable_line(observed.format, 60);
  return words.empty() ? format : fmt::format("{} ({})", text::join(words, " \u00b7 "), format);
}

// Adds a blank line and the first rows of the table.
void add(Page& page, TextTable table, const ObservedStyle& style) {
  page.add_blank_line();
  page.add_first_rows(std::move(table), style.max_rows);
}

void add_metrics(Page& page, const Observed& observed, const ObservedStyle& style) {
  TextTable table{.right_aligned = {false, true}};
  for (const observed::ObservedFigure& figure : observed::figures_of(observed)) {
    table.rows.push_back(
        {printable_line(figure.name, 160),
         printable_line(figure.value ? unit::show(figure.metric, *figure.value) : *figure.error,
                        60)});
  }
  if (!table.rows.empty()) add(page, std::move(table), style);
}

std::string seconds_cell(const Json& seconds) { return brief_time(seconds.get<double>()); }
std::string share_cell(const Json& share) { return fmt::format("{:.1f} %", share.get<double>()); }
std::string calls_cell(const Json& calls) { return fmt::format("{}", calls.get<std::int64_t>()); }
std::string giga_cell(const Json& cell) {
  const auto giga = cell.get<double>();
  return giga >= 1e9 ? fmt::format("{:.3g}", giga)
                     : fmt::format("{:.{}f}", giga, giga < 100 ? 2 : 0);
}

// Adds the page's table of ops with fewer columns: time, share, calls, time of each call, rates.
void add_ops(Page& page, const Observed& observed, const ObservedStyle& style) {
  const PageTable ops = op_table(observed, style.by);
  if (ops.rows.empty()) return;
  const auto has_values = [&](std::size_t column) {
    return column < ops.columns.size() &&
           std::ranges::any_of(ops.rows, [&](const auto& row) { return !row[column].is_null(); });
  };
  struct OpColumn {
    std::size_t from;    // column of the page
    std::size_t needed;  // shown only if this column of the page has values
    const char* head;
    std::string (*show)(const Json&);
  };
  std::vector<OpColumn> columns{{2, 2, "time", seconds_cell}, {3, 2, "share", share_cell},
                                {1, 0, "calls", calls_cell},  {4, 2, "each", seconds_cell},
                                {7, 7, "GFLOP/s", giga_cell}, {8, 8, "GB/s", giga_cell},
                                {9, 9, "of peak", share_cell}};
  std::erase_if(columns, [&](const OpColumn& column) { return !has_values(column.needed); });
  TextTable table;
  for (const OpColumn& column : columns) table.headings.emplace_back(column.head);
  table.right_aligned.assign(columns.size(), true);
  table.headings.emplace_back("work");
  for (const std::vector<Json>& cells : ops.rows) {
    std::vector<std::string>& row = table.rows.emplace_back();
    for (const OpColumn& column : columns) {
      const Json& cell = cells[column.from];
      row.push_back(cell.is_null() ? "" : column.show(cell));
    }
    row.push_back(printable_line(cells[0].get_ref<const std::string&>(), 160));
  }
  add(page, std::move(table), style);
}

std::string cell_text(const PageTable::Column& column, const Json& value) {
  if (value.is_string()) return printable_line(value.get_ref<const std::string&>(), 100);
  if (!value.is_number()) return "";
  if (column.unit == "s") return brief_time(value.get<double>());
  if (value.is_number_integer()) return fmt::format("{}", value.get<std::int64_t>());
  const auto number = value.get<double>();
  return std::fabs(number) < 1e12 ? fmt::format("{:.2f}", number) : fmt::format("{:.3g}", number);
}

// Adds a table of the page. The column of names moves to the end, because names may be long.
void add_table(Page& page, const PageTable& source, const ObservedStyle& style) {
  const std::size_t columns = source.columns.size();
  const auto source_column = [&](std::size_t i) { return i + 1 < columns ? i + 1 : 0; };
  TextTable table;
  for (std::size_t i = 0; i < columns; ++i) {
    const PageTable::Column& column = source.columns[source_column(i)];
    const bool is_unit = column.title.find('/') != std::string::npos;  // "GB/s"
    table.headings.push_back(is_unit ? column.title : text::lower(column.title));
    table.right_aligned.push_back(column.unit.has_value());
  }
  for (const std::vector<Json>& cells : source.rows) {
    std::vector<std::string>& row = table.rows.emplace_back();
    for (std::size_t i = 0; i < columns; ++i) {
      row.push_back(cell_text(source.columns[source_column(i)], cells[source_column(i)]));
    }
  }
  add(page, std::move(table), style);
}

// Lists the tables that are not shown, with the options that show them: "also there: 3 backends
// (--by backend), 2 steps (--by step)". "" if there are none.
std::string other_tables(const Observed& observed, const ObservedStyle& style) {
  std::vector<std::string> others;
  const auto add_if_any = [&](std::size_t count, const char* what, const char* word) {
    if (count > 0) others.push_back(fmt::format("{} (--by {})", text::plural(count, what), word));
  };
  using observed::GroupBy;
  for (const auto& [by, word] :
       {std::pair{GroupBy::backend, "backend"}, {GroupBy::layer, "layer"}}) {
    if (style.list == ObservedList::ops && style.by == by) continue;
    const auto groups = observed::op_totals(observed, by);
    const auto count = static_cast<std::size_t>(std::ranges::count_if(
        groups, [](const auto& group) { return !group.name.starts_with("(no "); }));
    add_if_any(count > 1 ? count : 0, word, word);
  }
  if (style.list != ObservedList::buffers) {
    std::int64_t buffers = 0;
    for (const auto& buffer : observed.buffers) add_capped(buffers, buffer.buffers);
    add_if_any(static_cast<std::size_t>(std::max<std::int64_t>(buffers, 0)), "command buffer",
               "buffer");
  }
  if (style.list != ObservedList::steps) add_if_any(observed.steps.size(), "step", "step");
  if (style.list != ObservedList::splits) add_if_any(observed.splits.size(), "split", "split");
  if (others.empty()) return "";
  return fmt::format("also there: {}", fmt::join(others, ", "));
}

// Returns the table that `style.list` asks for.
PageTable list_table(const Observed& observed, const ObservedStyle& style) {
  switch (style.list) {
    case ObservedList::ops:
      return op_table(observed, style.by);
    case ObservedList::tokens:
      return token_table(observed, style.by);
    case ObservedList::steps:
      return step_table(observed);
    case ObservedList::buffers:
      return buffer_table(observed);
    case ObservedList::splits:
      return split_table(observed);
  }
  return {};
}

// Returns the sentence for a document that has no rows for the list.
std::string_view missing_text(ObservedList list) {
  switch (list) {
    case ObservedList::ops:
      return "";
    case ObservedList::tokens:
      return "it does not show which work belongs to which token";
    case ObservedList::steps:
      return "it does not tell tokens or graphs apart";
    case ObservedList::buffers:
      return "it names no command buffers";
    case ObservedList::splits:
      return "it names no splits of a graph";
  }
  return "";
}

// Adds the table that `style.list` asks for, or says why there is none. A document without ops
// shows its command buffers.
void add_list(Page& page, const Observed& observed, const ObservedStyle& style) {
  if (style.list == ObservedList::ops && !observed.ops.empty()) {
    return add_ops(page, observed, style);
  }
  const PageTable table =
      style.list == ObservedList::ops ? buffer_table(observed) : list_table(observed, style);
  if (!table.rows.empty()) return add_table(page, table, style);
  if (missing_text(style.list).empty()) return;
  page.add_blank_line();
  page.add_indented(2, missing_text(style.list));
}

// A word of --by.
struct Grouping {
  std::string word;
  ObservedList list;
  observed::GroupBy by = observed::GroupBy::kernel;
};
const std::vector<Grouping> k_groupings{
    {"kernel", ObservedList::ops, observed::GroupBy::kernel},
    {"op", ObservedList::ops, observed::GroupBy::op},
    {"shape", ObservedList::ops, observed::GroupBy::shape},
    {"op-shape", ObservedList::ops, observed::GroupBy::op_shape},
    {"backend", ObservedList::ops, observed::GroupBy::backend},
    {"layer", ObservedList::ops, observed::GroupBy::layer},
    {"phase", ObservedList::ops, observed::GroupBy::phase},
    {"category", ObservedList::ops, observed::GroupBy::category},
    {"token", ObservedList::tokens},
    {"step", ObservedList::steps},
    {"buffer", ObservedList::buffers},
    {"split", ObservedList::splits},
};

}  // namespace

const std::vector<std::string>& observed_groupings() {
  static const auto words = collect<std::string>(k_groupings, &Grouping::word);
  return words;
}

// Parses how to group a list: one word ("op"), or several with commas ("token,layer,op"). Returns
// false for other words.
bool set_grouping(ObservedStyle& style, std::string_view words) {
  ObservedList list = ObservedList::ops;
  std::vector<observed::GroupBy> by;
  const std::vector<std::string> parts = text::split(words, ',');
  for (const std::string& word : parts) {
    if (word == "buffer" && parts.size() > 1) {
      by.push_back(observed::GroupBy::buffer);
      continue;
    }
    const Grouping* grouping =
        find_first(k_groupings, [&](const Grouping& entry) { return entry.word == word; });
    if (grouping == nullptr) return false;
    if (list != ObservedList::ops && list != ObservedList::tokens) return false;
    if (grouping->list == ObservedList::ops) {
      by.push_back(grouping->by);
    } else if (list == ObservedList::ops && by.empty()) {
      list = grouping->list;
    } else {
      return false;
    }
  }
  if (by.size() > 2 || (by.size() == 2 && by.front() == by.back())) return false;
  if (by.empty()) by = {observed::GroupBy::kernel};
  style.list = list;
  style.by = by.front();
  if (by.size() == 2) style.by.within = by.back();
  return true;
}

PageTable table_by(const Observed& observed, std::string_view by) {
  ObservedStyle style;
  (void)set_grouping(style, by);
  return list_table(observed, style);
}

std::string observed_rows(const Observed& observed, const ObservedStyle& style) {
  Page page(style.width);
  add_list(page, observed, style);
  return page.finish();
}

// Writes a measurement by others for a terminal: what it is of, its metrics, and one list of work.
std::string observed_text(const Observed& observed, const ObservedStyle& style) {
  Page page(style.width);
  page.add_text(context_line(observed));
  add_metrics(page, observed, style);
  add_list(page, observed, style);
  if (const std::string more = other_tables(observed, style); !more.empty()) {
    page.add_blank_line();
    page.add_indented(2, more);
  }
  if (!observed.errors.empty() || !observed.warnings.empty()) page.add_blank_line();
  for (const std::string& error : observed.errors)
    page.add_indented(2, "error: " + printable_line(error, 300));
  for (const std::string& doubt : observed.warnings)
    page.add_indented(2, "warning: " + printable_line(doubt, 300));
  return page.finish();
}

}  // namespace weir::report
