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

constexpr std::size_t k_most_rows = 2000;  // of each table: it has to open

template <class T>
Json known(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

Json ratio(const std::optional<double>& over, const std::optional<double>& under) {
  if (!over || !under || *under <= 0) return {};
  const double value = *over / *under;
  return std::isfinite(value) ? Json(value) : Json();
}

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

// Columns in which nobody has anything go.
PageTable filled(PageTable table) {
  for (std::size_t i = table.columns.size(); i-- > 1;) drop_if_empty(table, i);
  return table;
}

// Rows beyond the most go.
void add(std::vector<PageTable>& tables, PageTable table) {
  if (table.rows.empty()) return;
  if (table.rows.size() > k_most_rows) {
    const std::size_t more = table.rows.size() - k_most_rows;
    table.note +=
        fmt::format("{}{} left out.", table.note.empty() ? "" : " ", plural(more, "more row"));
    table.rows.resize(k_most_rows);
  }
  tables.push_back(filled(std::move(table)));
}

// Sample standard deviation (n - 1), as llama-bench has it; the document's own where it says one.
std::optional<double> deviation(const ObservedTiming& timing) {
  if (timing.stddev) return timing.stddev;
  const auto count = static_cast<double>(timing.samples.size());
  if (count < 2) return std::nullopt;
  double mean = 0, squares = 0;
  for (const double one : timing.samples) mean += one / count;
  for (const double one : timing.samples) squares += (one - mean) * (one - mean);
  return std::sqrt(squares / (count - 1));
}

std::string unit_of(const unit::Metric& metric) {
  if (metric.unit == unit::Unit::count || metric.unit == unit::Unit::ratio) return "";
  return std::string(unit::to_string(metric.unit));
}

// A size or a count as llama-bench writes it: "2526208", "2.41 MiB", "2.36 M". Nothing for words.
std::optional<double> number_of_setting(std::string_view text) {
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

// A column of a setting becomes numbers where every row has one.
void make_numbers(PageTable& table, std::size_t column, const char* unit) {
  std::vector<Json> numbers;
  for (const auto& row : table.rows) {
    if (row[column].is_null()) {
      numbers.emplace_back();
      continue;
    }
    const auto number = number_of_setting(row[column].get_ref<const std::string&>());
    if (!number || !std::isfinite(*number)) return;
    const bool whole = *number == std::floor(*number) && std::fabs(*number) < 9e15;
    numbers.push_back(whole ? Json(static_cast<std::int64_t>(*number)) : Json(*number));
  }
  for (std::size_t i = 0; i < numbers.size(); ++i) table.rows[i][column] = std::move(numbers[i]);
  table.columns[column].unit = unit;
}

// As llama-bench prints its own: a row a test, what was set, each rate or time with its deviation.
PageTable results(const Observed& observed) {
  PageTable out{"Results", "", {{"Test"}}};
  struct Setting {
    const char *fact, *title;
    std::optional<const char*> unit{};  // of what is a number; "" for counts
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
  for (const auto& one : observed.cases) {
    for (const ObservedTiming& timing : one.timings) {
      const std::string& name = timing.metric.name;
      if (metrics.size() >= 20 || holds(metrics, name)) continue;
      metrics.push_back(name);
      out.columns.push_back({unit::label(timing.metric), unit_of(timing.metric)});
      out.columns.push_back({"\u00b1", unit_of(timing.metric)});
    }
  }
  out.columns.push_back({"Error"});
  for (const auto& one : observed.cases) {
    std::vector<Json> row{one.name};
    for (const Setting& setting : k_settings) {
      const std::string* value = look_up(one.facts, setting.fact);
      row.push_back(value == nullptr ? Json() : Json(*value));
    }
    for (const std::string& metric : metrics) {
      const ObservedTiming* timing =
          first_of(one.timings, [&](const auto& it) { return it.metric.name == metric; });
      row.push_back(timing == nullptr ? Json() : known(timing->value()));
      row.push_back(timing == nullptr ? Json() : known(deviation(*timing)));
    }
    row.push_back(one.error ? Json(*one.error) : Json());
    out.rows.push_back(std::move(row));
  }
  for (std::size_t i = 0; i < std::size(k_settings); ++i) {
    if (k_settings[i].unit) make_numbers(out, i + 1, *k_settings[i].unit);
  }
  return out;
}

// Of the whole run: rates, times, memory, latencies, counts. In words, as each has its own unit.
PageTable measured(const Observed& observed) {
  PageTable out{"Measured", "", {{"What"}, {"Value"}, {"\u00b1"}, {"Samples", ""}}};
  for (const ObservedTiming& timing : observed.timings) {
    const auto value = timing.value();
    if (!value) continue;
    const auto spread = deviation(timing);
    out.rows.push_back({timing.metric.name, unit::show(timing.metric, *value),
                        spread ? Json(unit::show(timing.metric, *spread)) : Json(),
                        timing.samples.empty() ? Json() : Json(timing.samples.size())});
  }
  for (const auto& one : observed.latencies) {
    out.rows.push_back({fmt::format("{} {}", one.metric.name, observed::figure_name(one)),
                        (one.at_most ? "at most " : "") + unit::show(one.metric, one.seconds),
                        Json(), Json()});
  }
  for (const auto& count : observed.counts) {
    if (count.values.empty()) continue;
    const auto [least, most] = std::ranges::minmax_element(count.values);
    const auto mean = count.mean();
    std::string value = mean ? show(*mean) : "?";
    if (*least != *most) value += fmt::format(", {} to {}", *least, *most);
    out.rows.push_back({count.metric.name, std::move(value), Json(), count.values.size()});
  }
  return out;
}

PageTable gauges(const Observed& observed) {
  PageTable out{"Counters", "", {{"Counter"}, {"Of"}, {"Last", ""}, {"Values", ""}}};
  for (const auto& one : observed.counters) {
    if (one.points.empty()) continue;
    out.rows.push_back({one.name, one.track, one.points.back().value, one.points.size()});
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
  for (const OpTotal& one : totals) sum += one.nested ? 0 : one.seconds.value_or(0);
  const auto add_total = [&](const OpTotal& one, Json share) {
    const bool whole = one.seconds && !one.partly;
    Json average, flops, bytes, peak;
    if (whole && one.calls.value_or(0) > 0) {
      average = *one.seconds / static_cast<double>(*one.calls);
    }
    if (const auto rate = one.flops_per_second()) flops = *rate / 1e9;
    if (const auto rate = one.bytes_per_second()) bytes = *rate / 1e9;
    if (const auto of_peak = one.share_of_peak()) peak = 100 * *of_peak;
    out.rows.push_back({one.name, known(one.calls), known(one.seconds), std::move(share), average,
                        known(one.least), known(one.most), flops, bytes, peak});
  };
  for (const OpTotal& one : totals) {
    const bool shares = one.seconds && sum > 0 && std::isfinite(sum);
    add_total(one, shares ? Json(100 * *one.seconds / sum) : Json());
  }
  for (const OpTotal& one : observed::cpu_totals(observed, by.by)) add_total(one, {});
  drop_if_empty(out, out.columns.size() - 1);  // a peak is there only where one was named
  const bool nested = std::ranges::any_of(
      observed.ops, [](const observed::ObservedOp& op) { return op.own_seconds.has_value(); });
  if (nested) out.note = "Total is without what is nested in it; least and most are with it.";
  if (!observed.cpu_calls.empty()) {
    out.note += fmt::format("{}The CPU's calls have no share, as devices work meanwhile.",
                            out.note.empty() ? "" : " ");
  }
  if (std::ranges::any_of(totals, &OpTotal::partly)) {
    out.note += fmt::format("{}Where only some calls have a time, the total is of those.",
                            out.note.empty() ? "" : " ");
  }
  return out;
}

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
  for (const ObservedBuffer& one : observed::buffer_totals(observed)) {
    const observed::Phase phase =
        one.step ? observed.steps[*one.step].phase : observed::Phase::unknown;
    out.rows.push_back(
        {one.label,
         phase == observed::Phase::unknown ? Json() : Json(std::string(observed::to_string(phase))),
         one.buffers, known(one.dispatches), known(one.barriers), known(one.syncs),
         known(one.seconds), known(one.least), known(one.most)});
  }
  return filled(std::move(out));
}

PageTable step_table(const Observed& observed) {
  PageTable out{"Steps", "", {{"Step"}, {"Phase"}, {"Tokens", ""}, {"Time", "s"}}};
  for (const auto& one : observed.steps) {
    const bool phase = one.phase != observed::Phase::unknown;
    out.rows.push_back({one.label,
                        phase ? Json(std::string(observed::to_string(one.phase))) : Json(),
                        known(one.tokens), known(one.seconds)});
  }
  return filled(std::move(out));
}

PageTable split_table(const Observed& observed) {
  PageTable out{"Splits",
                "Stretches of a graph on one backend, and what is copied there first.",
                {{"Backend"}, {"Graph", ""}, {"Split", ""}, {"Ops", ""}, {"Copied", "B"}}};
  // Where none says what is copied, nobody looked.
  const bool told = std::ranges::any_of(
      observed.splits, [](const observed::ObservedSplit& one) { return !one.inputs.empty(); });
  if (!told) out.note = "Stretches of a graph on one backend.";
  for (const auto& one : observed.splits) {
    std::int64_t bytes = 0;
    for (const auto& input : one.inputs) bytes += input.bytes;
    out.rows.push_back(
        {one.backend, one.graph, one.number, known(one.ops), told ? Json(bytes) : Json()});
  }
  return filled(std::move(out));
}

PageTable token_table(const Observed& observed, const observed::Grouping& by) {
  PageTable out{"A token",
                "Decoding alone, divided by the tokens that it covers.",
                {{"What"}, {"Calls", ""}, {"Time", "s"}, {"GFLOP/s", ""}, {"GB/s", ""}}};
  for (const auto& one : observed::op_totals_per_token(observed, by)) {
    Json flops, bytes;
    if (one.flops.value_or(0) > 0) flops = ratio(*one.flops / 1e9, one.seconds);
    if (one.bytes.value_or(0) > 0) bytes = ratio(*one.bytes / 1e9, one.seconds);
    out.rows.push_back({one.name, known(one.calls), known(one.seconds), flops, bytes});
  }
  return filled(std::move(out));
}

std::vector<PageTable> observed_tables(const Observed& observed, const observed::Grouping& by,
                                       bool counters) {
  std::vector<PageTable> out;
  add(out, results(observed));
  add(out, measured(observed));
  add(out, op_table(observed, by));
  add(out, buffer_table(observed));
  add(out, step_table(observed));
  add(out, split_table(observed));
  if (counters) add(out, gauges(observed));
  return out;
}

}  // namespace weir::report
