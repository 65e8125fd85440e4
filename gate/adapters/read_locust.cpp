// Locust: PREFIX_stats.csv of --csv, a row an endpoint and one of all, and the list of --json.
//
// Response times are in ms, rounded to two digits. Neither file says how many users there were, and
// failed requests are among those that are counted.
#include "gate/adapters/readers.hpp"

namespace weir::adapters::locust {
namespace {

constexpr const char* k_latency = "end_to_end_latency_seconds";
constexpr std::pair<const char*, const char*> k_percentiles[] = {
    {"50%", "p50"}, {"90%", "p90"}, {"95%", "p95"}, {"99%", "p99"}};

// Returns a run with its numbers of requests and failures, still without times.
ObservedCase make_run(std::int64_t requests, std::int64_t failures, Observed& observed) {
  ObservedCase load;
  load.name = "all requests";
  set_requests(load, std::max<std::int64_t>(requests - failures, 0), failures);
  load.facts[k_unsaid_load] = "not in the file";
  add_warning(observed, "it does not say how many users there were: runs of others look like it");
  return load;
}

// Reads the row of all requests, with times in milliseconds, as one run. It is counted as unread if
// a number of requests is missing or impossible. Without answers its times mean nothing.
void read_total(const TableRow& row, Observed& observed) {
  constexpr double k_max_requests = 1e15, k_seconds_per_ms = 1e-3;
  const auto number = [&](const char* column) { return printed_number(look_up(row, column, "")); };
  const auto requests = number("Request Count"), failures = number("Failure Count");
  const bool are_counts = requests && failures && *requests >= 0 && *requests < k_max_requests &&
                          *failures >= 0 && *failures <= *requests;
  if (!are_counts) {
    return add_unread_part(observed, "rows", "the number of requests or failures is none");
  }
  ObservedCase load = make_run(std::llround(*requests), std::llround(*failures), observed);
  set_rate(load, "requests_per_second", number("Requests/s"));
  if (has_answers(load)) {
    if (const auto mean = number("Average Response Time"))
      add_latency_figure(load.latencies, k_latency, "mean", *mean * k_seconds_per_ms);
    for (const auto& [column, figure] : k_percentiles) {
      if (const auto value = number(column))
        add_latency_figure(load.latencies, k_latency, figure, *value * k_seconds_per_ms);
    }
  }
  append_row_within_limit(observed.cases, std::move(load), observed);
}

// Reads the table; rows before that of all requests are those of single endpoints.
void read_table(const Printed& printed, Observed& observed) {
  std::vector<std::string> columns;
  std::string endpoints;
  for (const std::string_view line : printed.lines()) {
    const std::vector<std::string> fields = csv_fields(line);
    if (fields.size() > 3 && fields[0] == "Type" && fields[1] == "Name") {
      columns = fields;
      continue;
    }
    if (columns.empty() || fields.size() < 2) continue;
    if (fields[1] != "Aggregated" && fields[1] != "Total") continue;
    if (fields.size() != columns.size()) return mark_truncated(observed);
    TableRow row;
    for (std::size_t i = 0; i < columns.size(); ++i) row.emplace(columns[i], fields[i]);
    read_total(row, observed);
  }
  if (!columns.empty() && observed.cases.empty() && observed.parts.empty())
    mark_truncated(observed);
}

// Requests of all endpoints of the JSON together.
struct Totals {
  std::int64_t requests = 0, failures = 0;
  double first = INFINITY, last = -INFINITY;
  std::map<double, std::int64_t> response_times;  // ms -> requests
};

// Adds one endpoint of the list of --json to the totals.
void add_endpoint(const Json& json, Totals& totals, Observed& observed) {
  const auto requests = json_integer(json, "num_requests");
  const auto failures = json_integer(json, "num_failures");
  constexpr std::int64_t k_max_requests = 1'000'000'000'000;
  if (!requests || !failures || *failures > *requests || *requests > k_max_requests)
    return add_unread_part(observed, "endpoints", "the number of requests or failures is none");
  add_read_parts(observed, "endpoints");
  totals.requests += *requests;
  totals.failures += *failures;
  totals.first = std::min(totals.first, json_number(json, "start_time").value_or(INFINITY));
  totals.last = std::max(totals.last, json_number(json, "last_request_timestamp").value_or(0));
  for (const auto& [time, count] : member_or_null(json, "response_times").items()) {
    const auto ms = printed_number(time);
    if (ms && *ms >= 0 && count.is_number_integer() && totals.response_times.size() < k_max_rows)
      totals.response_times[*ms] +=
          std::clamp<std::int64_t>(count.get<std::int64_t>(), 0, k_max_requests);
  }
}

// Returns the least time that `share` of the requests do not exceed, as Locust does.
std::optional<double> percentile(const Totals& totals, double share) {
  std::int64_t total = 0, after = 0;
  for (const auto& [ms, count] : totals.response_times) total += count;
  const auto within = static_cast<std::int64_t>(static_cast<double>(total) * share);
  for (auto entry = totals.response_times.rbegin(); entry != totals.response_times.rend();
       ++entry) {
    after += entry->second;
    if (total - after <= within) return entry->first;
  }
  return std::nullopt;
}

// Reads [{"num_requests": 120, "num_failures": 0, "response_times": {"88": 31, …}, …}, …], one
// object an endpoint, as one load.
void read_list(const Printed& printed, Observed& observed) {
  Totals totals;
  bool has_endpoint = false;
  const auto take = [&](const Json& json) {
    if (!json.is_object() || !json.contains("num_requests")) return;
    has_endpoint = true;
    add_endpoint(json, totals, observed);
  };
  read_documents(printed, take, observed);
  if (!has_endpoint) return;
  ObservedCase load = make_run(totals.requests, totals.failures, observed);
  if (totals.last > totals.first) {
    set_rate(load, "requests_per_second",
             static_cast<double>(totals.requests) / (totals.last - totals.first));
  }
  if (has_answers(load)) {
    for (const auto& [figure, share] :
         {std::pair{"p50", 0.5}, {"p90", 0.9}, {"p95", 0.95}, {"p99", 0.99}}) {
      if (const auto ms = percentile(totals, share))
        add_latency_figure(load.latencies, k_latency, figure, *ms * 1e-3);
    }
  }
  append_row_within_limit(observed.cases, std::move(load), observed);
}

// Reads a list of --json or a table of --csv. Other tables of Locust are an error.
void read(const Printed& printed, Observed& observed) {
  if (printed.holds("\"num_requests\"")) {
    read_list(printed, observed);
  } else {
    read_table(printed, observed);
  }
  const bool is_other = printed.holds("User Count") || printed.holds("Occurrences");
  if (observed.cases.empty() && is_other) {
    observed.truncated = false;
    observed.errors.emplace_back("another table of Locust's: give the PREFIX_stats.csv of the run");
  }
  finish_loads(observed);
}

Result<profile::EngineReport> make_locust_report(const Output& output) {
  return make_load_report("locust", output);
}

}  // namespace
}  // namespace weir::adapters::locust

const weir::adapters::Format weir::adapters::k_locust(
    "locust", "Locust: PREFIX_stats.csv, --json", "", locust::read,
    {{90,
      {"\"num_requests\" & \"num_failures\" & \"response_times\"",
       "Request Count & Failure Count & Median Response Time", "^Timestamp,User Count,Type,Name",
       "^\"Timestamp\",\"User Count\"", "^Method,Name,Error,Occurrences"}}},
    {"locust", 20, Counts::results, locust::make_locust_report});
