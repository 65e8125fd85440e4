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

// "llama.cpp · tiny.gguf · Vulkan · llvmpipe (vk-perf-logger)": what of it is said.
std::string observed_head(const Observed& observed) {
  std::vector<std::string> words;
  const auto& context = observed.context;
  for (const auto* part : {&context.engine, &context.engine_build, &context.model, &context.backend,
                           &context.device}) {
    if (!part->value_or("").empty()) words.push_back(one_line(**part, 120));
  }
  const std::string format = "format " + one_line(observed.format, 60);
  return words.empty() ? format : fmt::format("{} ({})", text::join(words, " \u00b7 "), format);
}

// A blank line, and the first rows.
void add(Page& page, TextTable table, const ObservedStyle& style) {
  page.blank();
  page.rows(std::move(table), style.most_rows);
}

void observed_metrics(Page& page, const Observed& observed, const ObservedStyle& style) {
  TextTable table{{}, {false, true}};
  for (const observed::ObservedFigure& one : observed::figures_of(observed)) {
    table.rows.push_back(
        {one_line(one.name, 60),
         one_line(one.value ? unit::show(one.metric, *one.value) : *one.error, 60)});
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

// The page's table of ops, with fewer columns.
void observed_ops(Page& page, const Observed& observed, const ObservedStyle& style) {
  const PageTable ops = op_table(observed, style.by);
  if (ops.rows.empty()) return;
  const auto any = [&](std::size_t column) {
    return column < ops.columns.size() &&
           std::ranges::any_of(ops.rows, [&](const auto& row) { return !row[column].is_null(); });
  };
  struct Wanted {
    std::size_t from;    // of the page
    std::size_t needed;  // a column of the page in which anything is
    const char* head;
    std::string (*words)(const Json&);
  };
  std::vector<Wanted> columns{{2, 2, "time", seconds_cell}, {3, 2, "share", share_cell},
                              {1, 0, "calls", calls_cell},  {4, 2, "each", seconds_cell},
                              {7, 7, "GFLOP/s", giga_cell}, {8, 8, "GB/s", giga_cell},
                              {9, 9, "of peak", share_cell}};
  std::erase_if(columns, [&](const Wanted& one) { return !any(one.needed); });
  TextTable table;
  for (const Wanted& one : columns) table.head.emplace_back(one.head);
  table.right.assign(columns.size(), true);
  table.head.emplace_back("work");
  for (const std::vector<Json>& cells : ops.rows) {
    std::vector<std::string>& row = table.rows.emplace_back();
    for (const Wanted& one : columns) {
      const Json& cell = cells[one.from];
      row.push_back(cell.is_null() ? "" : one.words(cell));
    }
    row.push_back(one_line(cells[0].get_ref<const std::string&>(), 160));
  }
  add(page, std::move(table), style);
}

std::string cell_of(const PageTable::Column& column, const Json& value) {
  if (value.is_string()) return one_line(value.get_ref<const std::string&>(), 100);
  if (!value.is_number()) return "";
  if (column.unit == "s") return brief_time(value.get<double>());
  if (value.is_number_integer()) return fmt::format("{}", value.get<std::int64_t>());
  const auto number = value.get<double>();
  return std::fabs(number) < 1e12 ? fmt::format("{:.2f}", number) : fmt::format("{:.3g}", number);
}

// Names stand last, as they are of any length.
void add_table(Page& page, const PageTable& from, const ObservedStyle& style) {
  const std::size_t columns = from.columns.size();
  const auto place = [&](std::size_t i) { return i + 1 < columns ? i + 1 : 0; };
  TextTable table;
  for (std::size_t i = 0; i < columns; ++i) {
    const PageTable::Column& column = from.columns[place(i)];
    const bool word = column.title.find('/') == std::string::npos;  // "GB/s" stays
    table.head.push_back(word ? text::lower(column.title) : column.title);
    table.right.push_back(column.unit.has_value());
  }
  for (const std::vector<Json>& cells : from.rows) {
    std::vector<std::string>& row = table.rows.emplace_back();
    for (std::size_t i = 0; i < columns; ++i) {
      row.push_back(cell_of(from.columns[place(i)], cells[place(i)]));
    }
  }
  add(page, std::move(table), style);
}

// What else there is, and by which word it is seen.
std::string other_tables(const Observed& observed, const ObservedStyle& style) {
  std::vector<std::string> found;
  const auto add = [&](std::size_t count, const char* what, const char* word) {
    if (count > 0) found.push_back(fmt::format("{} (--by {})", plural(count, what), word));
  };
  using observed::GroupBy;
  for (const auto& [by, word] :
       {std::pair{GroupBy::backend, "backend"}, {GroupBy::layer, "layer"}}) {
    if (style.list == ObservedList::ops && style.by == by) continue;
    const auto groups = observed::op_totals(observed, by);
    const auto count = static_cast<std::size_t>(std::ranges::count_if(
        groups, [](const auto& group) { return !group.name.starts_with("(no "); }));
    add(count > 1 ? count : 0, word, word);
  }
  if (style.list != ObservedList::buffers) {
    std::int64_t buffers = 0;
    for (const auto& one : observed.buffers) add_capped(buffers, one.buffers);
    add(static_cast<std::size_t>(std::max<std::int64_t>(buffers, 0)), "command buffer", "buffer");
  }
  if (style.list != ObservedList::steps) add(observed.steps.size(), "step", "step");
  if (style.list != ObservedList::splits) add(observed.splits.size(), "split", "split");
  if (found.empty()) return "";
  return fmt::format("also there: {}", fmt::join(found, ", "));
}

PageTable table_of(const Observed& observed, const ObservedStyle& style) {
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

std::string_view none_of(ObservedList list) {
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

void observed_list(Page& page, const Observed& observed, const ObservedStyle& style) {
  if (style.list == ObservedList::ops && !observed.ops.empty()) {
    return observed_ops(page, observed, style);
  }
  const PageTable table =
      style.list == ObservedList::ops ? buffer_table(observed) : table_of(observed, style);
  if (!table.rows.empty()) return add_table(page, table, style);
  if (none_of(style.list).empty()) return;
  page.blank();
  page.say(2, none_of(style.list));
}

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

bool set_grouping(ObservedStyle& style, std::string_view words) {
  ObservedList list = ObservedList::ops;
  std::vector<observed::GroupBy> by;
  const std::vector<std::string> asked = text::split(words, ',');
  for (const std::string& word : asked) {
    if (word == "buffer" && asked.size() > 1) {
      by.push_back(observed::GroupBy::buffer);
      continue;
    }
    const Grouping* one =
        first_of(k_groupings, [&](const Grouping& known) { return known.word == word; });
    if (one == nullptr || (list != ObservedList::ops && list != ObservedList::tokens)) return false;
    if (one->list == ObservedList::ops) {
      by.push_back(one->by);
    } else if (list == ObservedList::ops && by.empty()) {
      list = one->list;
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
  return table_of(observed, style);
}

std::string observed_rows(const Observed& observed, const ObservedStyle& style) {
  Page page(style.width);
  observed_list(page, observed, style);
  return page.finish();
}

std::string observed_text(const Observed& observed, const ObservedStyle& style) {
  Page page(style.width);
  page.say(0, observed_head(observed));
  observed_metrics(page, observed, style);
  observed_list(page, observed, style);
  if (const std::string more = other_tables(observed, style); !more.empty()) {
    page.blank();
    page.say(2, more);
  }
  if (!observed.errors.empty() || !observed.warnings.empty()) page.blank();
  for (const std::string& error : observed.errors) page.say(2, "error: " + one_line(error, 300));
  for (const std::string& doubt : observed.warnings)
    page.say(2, "warning: " + one_line(doubt, 300));
  return page.finish();
}

}  // namespace weir::report
