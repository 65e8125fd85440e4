// Makes the tables of what an engine or a profiler reported: results, metrics, ops, steps, buffers.
#include "gate/report/observed_tables.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/observed/totals.hpp"
#include "gate/report/document.hpp"
#include "gate/report/layout.hpp"
#include "gate/report/timeline_document.hpp"
#include "gate/unit/metric.hpp"

namespace weir::report {
namespace {

using observed::Observed;
using observed::ObservedBuffer;
using observed::ObservedTiming;
using observed::OpTotal;

constexpr std::size_t k_max_rows = 2000;  // in each table, so that a browser can open the page

template <class T>
Json json_or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

// Returns the quotient; null if a number is missing or the quotient is not finite.
Json ratio(const std::optional<double>& numerator, const std::optional<double>& denominator) {
  if (!numerator || !denominator || *denominator <= 0) return {};
  const double value = *numerator / *denominator;
  return std::isfinite(value) ? Json(value) : Json();
}

// Removes a column in which all cells are null or "".
void drop_if_empty(PageTable& table, std::size_t column) {
  const auto empty = [&](const std::vector<Json>& row) {
    const Json& cell = row[column];
    return cell.is_null() || (cell.is_string() && cell.get_ref<const std::string&>().empty());
  };
  if (!std::ranges::all_of(table.rows, empty)) return;
  const auto at = static_cast<std::ptrdiff_t>(column);
  table.columns.erase(table.columns.begin() + at);
  for (auto& row : table.rows) row.erase(row.begin() + at);
}

// Removes empty columns, but never the first.
PageTable drop_empty_columns(PageTable table) {
  for (std::size_t i = table.columns.size(); i-- > 1;) drop_if_empty(table, i);
  return table;
}

// Adds a table that has rows; rows beyond the most are cut, and a note counts them.
void add(std::vector<PageTable>& tables, PageTable table) {
  if (table.rows.empty()) return;
  if (table.rows.size() > k_max_rows) {
    const std::size_t more = table.rows.size() - k_max_rows;
    text::append_item(table.note, " ", text::plural(more, "more row") + " left out.");
    table.rows.resize(k_max_rows);
  }
  tables.push_back(drop_empty_columns(std::move(table)));
}

// Returns the standard deviation that the document states, else that of the samples (n - 1), as
// llama-bench does. Nothing for fewer than two samples.
std::optional<double> standard_deviation(const ObservedTiming& timing) {
  if (timing.stddev) return timing.stddev;
  const auto count = static_cast<double>(timing.samples.size());
  if (count < 2) return std::nullopt;
  double mean = 0, squares = 0;
  for (const double sample : timing.samples) mean += sample / count;
  for (const double sample : timing.samples) squares += (sample - mean) * (sample - mean);
  return std::sqrt(squares / (count - 1));
}

std::string column_unit(const unit::Metric& metric) {
  if (metric.unit == unit::Unit::count || metric.unit == unit::Unit::ratio) return "";
  return std::string(unit::to_string(metric.unit));
}

// Parses a size or a count as llama-bench writes it: "2526208", "2.41 MiB", "2.36 M". Nothing for
// other texts.
std::optional<double> setting_number(std::string_view text) {
  constexpr std::pair<std::string_view, double> k_units[] = {
      {" KiB", 1024}, {" MiB", 1048576}, {" GiB", 1073741824}, {" TiB", 1099511627776},
      {" M", 1e6},    {" B", 1e9},       {" T", 1e12}};
  for (const auto& [unit, size] : k_units) {
    if (!text.ends_with(unit)) continue;
    const auto number = text::to_double(text.substr(0, text.size() - unit.size()));
    return number ? std::optional(std::round(*number * size)) : std::nullopt;
  }
  return text::to_double(text);
}

// Turns a column of texts into numbers with a unit, if every text is a number.
void make_numbers(PageTable& table, std::size_t column, const char* unit) {
  std::vector<Json> numbers;
  for (const auto& row : table.rows) {
    if (row[column].is_null()) {
      numbers.emplace_back();
      continue;
    }
    const auto number = setting_number(row[column].get_ref<const std::string&>());
    if (!number || !std::isfinite(*number)) return;
    const bool is_integer = *number == std::floor(*number) && std::fabs(*number) < 9e15;
    numbers.push_back(is_integer ? Json(static_cast<std::int64_t>(*number)) : Json(*number));
  }
  for (std::size_t i = 0; i < numbers.size(); ++i) table.rows[i][column] = std::move(numbers[i]);
  table.columns[column].unit = unit;
}

// Returns a table like that of llama-bench: a row for each test, with its settings, and each rate
// or time with its standard deviation.
PageTable results_table(const Observed& observed) {
  PageTable out{"Results", "", {{"Test"}}};
  struct Setting {
    const char *fact, *title;
    std::optional<const char*> unit{};  // unit of a number; "" for counts; absent for texts
  };
  constexpr Setting k_settings[] = {{"model_type", "Model"},
                                    {"model_size", "Size", "B"},
                                    {"model_n_params", "Parameters", ""},
                                    {"backends", "Backend"},
                                    {"n_gpu_layers", "GPU layers", ""},
                                    {"n_threads", "Threads", ""},
                                    {"n_batch", "Batch", ""},
                                    {"n_ubatch", "Micro-batch", ""},
                                    {"type_k", "K"},
                                    {"type_v", "V"},
                                    {"flash_attn", "Flash attention"}};
  for (const Setting& setting : k_settings) out.columns.push_back({setting.title});
  std::vector<std::string> metrics;
  for (const auto& test : observed.cases) {
    for (const ObservedTiming& timing : test.timings) {
      const std::string& name = timing.metric.name;
      if (metrics.size() >= 20 || holds(metrics, name)) continue;
      metrics.push_back(name);
      out.columns.push_back({unit::display_name(timing.metric), column_unit(timing.metric)});
      out.columns.push_back({"\u00b1", column_unit(timing.metric)});
    }
  }
  out.columns.push_back({"Error"});
  for (const auto& test : observed.cases) {
    std::vector<Json> row{observed::case_name(test, observed.case_settings)};
    for (const Setting& setting : k_settings) {
      const std::string* value = look_up(test.facts, setting.fact);
      row.push_back(value == nullptr ? Json() : Json(*value));
    }
    for (const std::string& metric : metrics) {
      const ObservedTiming* timing =
          find_first(test.timings, [&](const auto& entry) { return entry.metric.name == metric; });
      row.push_back(timing == nullptr ? Json() : json_or_null(timing->value()));
      row.push_back(timing == nullptr ? Json() : json_or_null(standard_deviation(*timing)));
    }
    row.push_back(test.error ? Json(*test.error) : Json());
    out.rows.push_back(std::move(row));
  }
  for (std::size_t i = 0; i < std::size(k_settings); ++i) {
    if (k_settings[i].unit) make_numbers(out, i + 1, *k_settings[i].unit);
  }
  return out;
}

// Returns the metrics of the whole run: rates, times, memory, latencies, counts. Values are texts,
// because each has its own unit.
PageTable measured_table(const Observed& observed) {
  PageTable out{"Measured", "", {{"What"}, {"Value"}, {"\u00b1"}, {"Samples", ""}}};
  for (const ObservedTiming& timing : observed.timings) {
    const auto value = timing.value();
    if (!value) continue;
    const auto spread = standard_deviation(timing);
    out.rows.push_back({timing.metric.name, unit::show(timing.metric, *value),
                        spread ? Json(unit::show(timing.metric, *spread)) : Json(),
                        timing.samples.empty() ? Json() : Json(timing.samples.size())});
  }
  const auto add_latencies = [&](const std::string& prefix, const auto& latencies) {
    for (const auto& latency : latencies) {
      out.rows.push_back(
          {fmt::format("{}{} {}", prefix, latency.metric.name, observed::figure_name(latency)),
           (latency.at_most ? "at most " : "") + unit::show(latency.metric, latency.seconds),
           Json(), Json()});
    }
  };
  add_latencies("", observed.latencies);
  for (const auto& test : observed.cases) {
    add_latencies(observed::case_name(test, observed.case_settings) + " ", test.latencies);
  }
  for (const auto& count : observed.counts) {
    if (count.values.empty()) continue;
    const auto [min_value, max_value] = std::ranges::minmax_element(count.values);
    const auto mean = count.mean();
    std::string value = mean ? show(*mean) : "?";
    if (*min_value != *max_value) value += fmt::format(", {} to {}", *min_value, *max_value);
    out.rows.push_back({count.metric.name, std::move(value), Json(), count.values.size()});
  }
  return out;
}

PageTable counter_table(const Observed& observed) {
  PageTable out{"Counters", "", {{"Counter"}, {"Of"}, {"Last", ""}, {"Values", ""}}};
  for (const auto& counter : observed.counters) {
    if (counter.points.empty()) continue;
    out.rows.push_back(
        {counter.name, counter.track, counter.points.back().value, counter.points.size()});
  }
  return out;
}

}  // namespace

PageTable op_table(const Observed& observed, const observed::Grouping& by) {
  PageTable out{"Ops",
                "",
                {{"What"},
                 {"Calls", ""},
                 {"Total", "s"},
                 {"Share, %", ""},
                 {"Average", "s"},
                 {"Least", "s"},
                 {"Most", "s"},
                 {"GFLOP/s", ""},
                 {"GB/s", ""},
                 {"Of peak, %", ""}}};
  const std::vector<OpTotal> totals = observed::op_totals(observed, by);
  double sum = 0;
  for (const OpTotal& total : totals) sum += total.nested ? 0 : total.seconds.value_or(0);
  const auto add_total = [&](const OpTotal& op_total, Json share) {
    const bool all_timed = op_total.seconds && !op_total.partly;
    Json average, flops, bytes, peak;
    if (all_timed && op_total.calls.value_or(0) > 0) {
      average = *op_total.seconds / static_cast<double>(*op_total.calls);
    }
    if (const auto rate = op_total.flops_per_second()) flops = *rate / 1e9;
    if (const auto rate = op_total.bytes_per_second()) bytes = *rate / 1e9;
    if (const auto of_peak = op_total.share_of_peak()) peak = 100 * *of_peak;
    out.rows.push_back({op_total.name, json_or_null(op_total.calls), json_or_null(op_total.seconds),
                        std::move(share), average, json_or_null(op_total.min_seconds),
                        json_or_null(op_total.max_seconds), flops, bytes, peak});
  };
  for (const OpTotal& total : totals) {
    const bool has_share = total.seconds && sum > 0 && std::isfinite(sum);
    add_total(total, has_share ? Json(100 * *total.seconds / sum) : Json());
  }
  for (const OpTotal& cpu_total : observed::cpu_totals(observed, by.by)) add_total(cpu_total, {});
  drop_if_empty(out, out.columns.size() - 1);  // the share of peak, which needs a measured peak
  const bool nested = std::ranges::any_of(observed.ops, [](const observed::ObservedOp& op) {
    return op.seconds_without_nested.has_value();
  });
  if (nested) out.note = "Total is without what is nested in it; least and most are with it.";
  if (!observed.cpu_calls.empty()) {
    text::append_item(out.note, " ", "The CPU's calls have no share, as devices work meanwhile.");
  }
  if (std::ranges::any_of(totals, &OpTotal::partly)) {
    text::append_item(out.note, " ", "Where only some calls have a time, the total is of those.");
  }
  return out;
}

// Returns the table of command buffers by label: how many, what they contain, and their time.
PageTable buffer_table(const Observed& observed) {
  PageTable out{"Command buffers",
                "",
                {{"Label"},
                 {"Phase"},
                 {"Buffers", ""},
                 {"Dispatches", ""},
                 {"Barriers", ""},
                 {"Syncs", ""},
                 {"Total", "s"},
                 {"Least", "s"},
                 {"Most", "s"}}};
  for (const ObservedBuffer& buffer_total : observed::buffer_totals(observed)) {
    const observed::Phase phase =
        buffer_total.step ? observed.steps[*buffer_total.step].phase : observed::Phase::unknown;
    out.rows.push_back(
        {buffer_total.label,
         phase == observed::Phase::unknown ? Json() : Json(std::string(observed::to_string(phase))),
         buffer_total.buffers, json_or_null(buffer_total.dispatches),
         json_or_null(buffer_total.barriers), json_or_null(buffer_total.syncs),
         json_or_null(buffer_total.seconds), json_or_null(buffer_total.min_seconds),
         json_or_null(buffer_total.max_seconds)});
  }
  return drop_empty_columns(std::move(out));
}

PageTable step_table(const Observed& observed) {
  PageTable out{"Steps", "", {{"Step"}, {"Phase"}, {"Tokens", ""}, {"Time", "s"}}};
  for (const auto& step : observed.steps) {
    const bool phase = step.phase != observed::Phase::unknown;
    out.rows.push_back({step.label,
                        phase ? Json(std::string(observed::to_string(step.phase))) : Json(),
                        json_or_null(step.tokens), json_or_null(step.seconds)});
  }
  return drop_empty_columns(std::move(out));
}

// Returns the table of splits: parts of a graph on one backend, and the bytes copied before each.
PageTable split_table(const Observed& observed) {
  PageTable out{"Splits",
                "Stretches of a graph on one backend, and what is copied there first.",
                {{"Backend"}, {"Graph", ""}, {"Split", ""}, {"Ops", ""}, {"Copied", "B"}}};
  // If no split lists inputs, copies were not recorded.
  const bool has_inputs = std::ranges::any_of(
      observed.splits, [](const observed::ObservedSplit& split) { return !split.inputs.empty(); });
  if (!has_inputs) out.note = "Stretches of a graph on one backend.";
  for (const auto& split : observed.splits) {
    std::int64_t bytes = 0;
    for (const auto& input : split.inputs) bytes += input.bytes;
    out.rows.push_back({split.backend, split.graph, split.number, json_or_null(split.ops),
                        has_inputs ? Json(bytes) : Json()});
  }
  return drop_empty_columns(std::move(out));
}

// Returns the work of decoding, by op, divided by the number of tokens.
PageTable token_table(const Observed& observed, const observed::Grouping& by) {
  PageTable out{"A token",
                "Decoding alone, divided by the tokens that it covers.",
                {{"What"}, {"Calls", ""}, {"Time", "s"}, {"GFLOP/s", ""}, {"GB/s", ""}}};
  for (const auto& op : observed::op_totals_per_token(observed, by)) {
    Json flops, bytes;
    if (op.flops.value_or(0) > 0) flops = ratio(*op.flops / 1e9, op.seconds);
    if (op.bytes.value_or(0) > 0) bytes = ratio(*op.bytes / 1e9, op.seconds);
    out.rows.push_back({op.name, json_or_null(op.calls), json_or_null(op.seconds), flops, bytes});
  }
  return drop_empty_columns(std::move(out));
}

// Returns all tables that have rows, in the order of the page.
std::vector<PageTable> observed_tables(const Observed& observed, const observed::Grouping& by,
                                       bool counters) {
  std::vector<PageTable> out;
  add(out, results_table(observed));
  add(out, measured_table(observed));
  add(out, op_table(observed, by));
  add(out, buffer_table(observed));
  add(out, step_table(observed));
  add(out, split_table(observed));
  if (counters) add(out, counter_table(observed));
  return out;
}

}  // namespace weir::report
