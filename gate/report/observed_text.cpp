#include "gate/report/observed_text.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "gate/observed/totals.hpp"
#include "gate/report/layout.hpp"
#include "gate/report/observed_tables.hpp"

namespace weir::report {
namespace {

using observed::Observed;
using observed::OpTotal;

std::string more_rows(std::size_t all, std::size_t most) {
  return fmt::format("and {} more (--top {} shows them)", all - most, all);
}

// "llama.cpp · tiny.gguf · Vulkan · llvmpipe (vk-perf-logger)": what of it is said.
std::string observed_head(const Observed& observed) {
  std::string words;
  const auto& context = observed.context;
  for (const auto* part : {&context.engine, &context.engine_build, &context.model, &context.backend,
                           &context.device}) {
    if (!*part || (*part)->empty()) continue;
    words += words.empty() ? "" : " \u00b7 ";
    words += one_line(**part, 120);
  }
  const std::string format = "format " + one_line(observed.format, 60);
  return words.empty() ? format : fmt::format("{} ({})", words, format);
}

void observed_metrics(std::string& out, const Observed& observed, const ObservedStyle& style) {
  TextTable table;
  table.right = {false, true};
  for (const observed::ObservedFigure& one : observed::figures_of(observed)) {
    table.rows.push_back(
        {one_line(one.name, 60),
         one_line(one.value ? unit::show(one.metric, *one.value) : *one.error, 60)});
  }
  const std::size_t all = table.rows.size();
  table.rows.resize(std::min(all, style.most_rows));
  if (all != 0) out += "\n" + table.str(2, style.width);
  if (all > style.most_rows) say(out, more_rows(all, style.most_rows), style.width, 2);
}

void observed_ops(std::string& out, const Observed& observed, const ObservedStyle& style) {
  const std::vector<OpTotal> totals = observed::op_totals(observed, style.by);
  if (totals.empty()) return;
  double sum = 0;
  bool times = false, flops = false, bytes = false;
  for (const OpTotal& one : totals) {
    sum += one.seconds.value_or(0);
    times = times || one.seconds;
    flops = flops || one.flops_per_second();
    bytes = bytes || one.bytes_per_second();
  }
  TextTable table;
  if (times) table.head = {"time", "share"};
  table.head.emplace_back("calls");
  if (times) table.head.emplace_back("each");
  if (flops) table.head.emplace_back("GFLOP/s");
  if (bytes) table.head.emplace_back("GB/s");
  table.right.assign(table.head.size(), true);
  table.head.emplace_back("work");
  table.right.push_back(false);
  const auto giga = [](const std::optional<double>& rate) {
    if (!rate) return std::string();
    if (*rate >= 1e18) return fmt::format("{:.3g}", *rate / 1e9);
    return fmt::format("{:.{}f}", *rate / 1e9, *rate < 1e11 ? 2 : 0);
  };
  for (std::size_t i = 0; i < std::min(totals.size(), style.most_rows); ++i) {
    const OpTotal& one = totals[i];
    const bool timed = one.seconds.has_value();
    const bool each = timed && !one.partly && one.calls && *one.calls > 0;
    std::vector<std::string> row;
    if (times) {
      row = {timed ? brief_time(*one.seconds) : "",
             timed && sum > 0 && std::isfinite(sum)
                 ? fmt::format("{:.1f} %", 100 * *one.seconds / sum)
                 : ""};
    }
    row.push_back(one.calls ? fmt::format("{}", *one.calls) : "");
    if (times) {
      row.push_back(each ? brief_time(*one.seconds / static_cast<double>(*one.calls)) : "");
    }
    if (flops) row.push_back(giga(one.flops_per_second()));
    if (bytes) row.push_back(giga(one.bytes_per_second()));
    row.push_back(one_line(one.name, 160));
    table.rows.push_back(std::move(row));
  }
  out += "\n" + table.str(2, style.width);
  if (totals.size() > style.most_rows) {
    say(out, more_rows(totals.size(), style.most_rows), style.width, 2);
  }
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
void add_table(std::string& out, const PageTable& page, const ObservedStyle& style) {
  const std::size_t columns = page.columns.size();
  const auto place = [&](std::size_t i) { return i + 1 < columns ? i + 1 : 0; };
  TextTable table;
  for (std::size_t i = 0; i < columns; ++i) {
    const PageTable::Column& column = page.columns[place(i)];
    std::string head = column.title;
    std::transform(head.begin(), head.end(), head.begin(), [&](char c) {
      const bool word = head.find('/') == std::string::npos;  // "GB/s" stays
      return word && c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    table.head.push_back(std::move(head));
    table.right.push_back(column.unit.has_value());
  }
  for (std::size_t at = 0; at < std::min(page.rows.size(), style.most_rows); ++at) {
    std::vector<std::string> row;
    for (std::size_t i = 0; i < columns; ++i) {
      row.push_back(cell_of(page.columns[place(i)], page.rows[at][place(i)]));
    }
    table.rows.push_back(std::move(row));
  }
  out += "\n" + table.str(2, style.width);
  if (page.rows.size() > style.most_rows) {
    say(out, more_rows(page.rows.size(), style.most_rows), style.width, 2);
  }
}

// What else there is, and by which word it is seen.
std::string other_tables(const Observed& observed, const ObservedStyle& style) {
  std::vector<std::string> found;
  const auto add = [&](std::size_t count, const char* what, const char* word) {
    if (count > 0) found.push_back(fmt::format("{} (--by {})", plural(count, what), word));
  };
  using observed::GroupBy;
  const bool ops = style.list == ObservedList::ops;
  for (const auto& [by, what, word] :
       {std::tuple{GroupBy::backend, "backend", "backend"}, {GroupBy::layer, "layer", "layer"}}) {
    const bool shown = ops && style.by == by;
    const std::size_t count = shown ? 0 : observed::op_totals(observed, by).size();
    add(count > 1 ? count : 0, what, word);
  }
  if (style.list != ObservedList::buffers) add(observed.buffers.size(), "command buffer", "buffer");
  if (style.list != ObservedList::steps) add(observed.steps.size(), "step", "step");
  if (style.list != ObservedList::splits) add(observed.splits.size(), "split", "split");
  if (found.empty()) return "";
  return fmt::format("also there: {}", fmt::join(found, ", "));
}

void observed_list(std::string& out, const Observed& observed, const ObservedStyle& style) {
  const auto as_is = [](std::string_view text) { return std::string(text); };
  PageTable table;
  std::string none;
  switch (style.list) {
    case ObservedList::ops: {
      if (!observed.ops.empty()) return observed_ops(out, observed, style);
      table = buffer_table(observed, as_is);
      break;
    }
    case ObservedList::tokens:
      table = token_table(observed, as_is);
      none = "it does not say which work is of which token";
      break;
    case ObservedList::steps:
      table = step_table(observed, as_is);
      none = "it does not tell tokens or graphs apart";
      break;
    case ObservedList::buffers:
      table = buffer_table(observed, as_is);
      none = "it names no command buffers";
      break;
    case ObservedList::splits:
      table = split_table(observed, as_is);
      none = "it names no splits of a graph";
      break;
  }
  if (!table.rows.empty()) return add_table(out, table, style);
  if (!none.empty()) {
    out += "\n";
    say(out, none, style.width, 2);
  }
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
  static const std::vector<std::string> words = [] {
    std::vector<std::string> out;
    for (const Grouping& one : k_groupings) out.push_back(one.word);
    return out;
  }();
  return words;
}

bool set_grouping(ObservedStyle& style, std::string_view word) {
  for (const Grouping& one : k_groupings) {
    if (one.word != word) continue;
    style.list = one.list;
    style.by = one.by;
    return true;
  }
  return false;
}

std::string observed_text(const Observed& observed, const ObservedStyle& style) {
  std::string out;
  say(out, observed_head(observed), style.width);
  observed_metrics(out, observed, style);
  observed_list(out, observed, style);
  if (const std::string more = other_tables(observed, style); !more.empty()) {
    out += "\n";
    say(out, more, style.width, 2);
  }
  if (!observed.errors.empty() || !observed.warnings.empty()) out += "\n";
  for (const std::string& error : observed.errors) {
    say(out, "error: " + one_line(error, 300), style.width, 2);
  }
  for (const std::string& doubt : observed.warnings) {
    say(out, "doubt: " + one_line(doubt, 300), style.width, 2);
  }
  return out;
}

}  // namespace weir::report
