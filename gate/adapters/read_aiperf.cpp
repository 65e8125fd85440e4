// AIPerf's profile_export_aiperf.json: one JSON object a run. Each metric is an object of figures
// in the unit that it names: {"unit": "ms", "avg": 81.5, "p50": 70.25, …, "std": 20.5}.
//
// genai-perf, its predecessor, writes the same metrics (profile_export_genai_perf.json), but not
// how many requests failed.
#include "gate/adapters/work_table.hpp"

namespace weir::adapters::aiperf {
namespace {

// AIPerf's inter-token latency is one number per request, weir's time per output token.
constexpr std::pair<const char*, const char*> k_latencies[] = {
    {"time_to_first_token", "time_to_first_token_seconds"},
    {"inter_token_latency", "time_per_output_token_seconds"},
    {"inter_chunk_latency", "inter_token_latency_seconds"},
    {"request_latency", "end_to_end_latency_seconds"}};
constexpr std::pair<const char*, const char*> k_rates[] = {
    {"output_token_throughput", "output_tokens_per_second"},
    {"request_throughput", "requests_per_second"},
    {"goodput", "goodput_requests_per_second"},
    {"request_goodput", "goodput_requests_per_second"}};
constexpr std::pair<const char*, const char*> k_statistics[] = {{"avg", "mean"}, {"std", "stddev"},
                                                                {"p50", "p50"},  {"p90", "p90"},
                                                                {"p95", "p95"},  {"p99", "p99"}};

// Returns the unit of a time in seconds; nothing for other units.
std::optional<double> time_scale(const Json& metric) {
  static const std::map<std::string, double> k_scales{
      {"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"sec", 1}, {"s", 1}};
  const double* scale = look_up(k_scales, json_text(metric, "unit").value_or(""));
  return scale ? std::optional(*scale) : std::nullopt;
}

std::optional<std::int64_t> average_count(const Json& json, const char* key) {
  return json_integer(member_or_null(json, key), "avg");
}

// Sums up tokens of all requests: a total, or the figures of each request's.
std::optional<std::int64_t> total_tokens(const Json& json, const char* total, const char* each) {
  const auto sum = average_count(json, total);
  if (sum) return sum;
  const Json& figures = member_or_null(json, each);
  if (const auto added = json_integer(figures, "sum")) return added;
  const auto mean = json_number(figures, "avg");
  const auto requests = average_count(json, "request_count");
  if (!mean || !requests) return std::nullopt;
  return rounded_count(*mean * static_cast<double>(*requests));
}

// Adds the settings of a phase of the load (AIPerf 0.13); those of several follow one another.
void read_phase(const Json& phase, ObservedCase& load) {
  const bool is_measured = json_text(phase, "kind").value_or("profiling") == "profiling" &&
                           !json_flag(phase, "exclude_from_results");
  if (!phase.is_object() || !is_measured) return;
  const auto add = [&](const char* key, const std::string& value) {
    std::string& fact = load.facts[key];
    text::append_item(fact, " then ", value);
  };
  for (const auto& [key, fact] : {std::pair{"concurrency", "concurrency"},
                                  {"rate", "rate"},
                                  {"requests", "requests"},
                                  {"duration", "duration_limit"}}) {
    const Json& value = member_or_null(phase, key);
    if (value.is_number() || value.is_string()) add(fact, json_display_text(value));
  }
  const auto type = json_text(phase, "type");
  if (type && *type != "concurrency") add("arrivals", *type);
}

// Reads how the server was loaded, by the settings of several versions.
void read_settings(const Json& config, const Json& metrics, ObservedCase& load,
                   Observed& observed) {
  for (const char* place : {"loadgen", "load_generator"}) {
    copy_facts(member_or_null(config, place),
               {"concurrency", "request_rate", "request_count", "benchmark_duration"}, load);
  }
  for (const Json& phase : list_or_empty(config, "phases")) read_phase(phase, load);
  const auto mode = json_text(member_or_null(config, "loadgen"), "request_rate_mode");
  if (mode && load.facts.contains("request_rate")) load.facts["arrivals"] = *mode;
  if (json_flag(member_or_null(config, "input"), "fixed_schedule"))
    load.facts["fixed_schedule"] = "true";
  const Json& endpoint = member_or_null(config, "endpoint");
  const Json& streaming = member_or_null(endpoint, "streaming");
  if (streaming == Json(false) || (streaming.is_null() && !metrics.contains("time_to_first_token")))
    load.facts[k_not_streamed] = "true";
  for (const Json* models :
       {&list_or_empty(endpoint, "model_names"), &list_or_empty(config, "model_names"),
        &list_or_empty(config, "model")}) {
    if (!models->empty() && models->front().is_string())
      return set_model(json_display_text(models->front()), observed);
  }
  const Json& items = list_or_empty(member_or_null(config, "models"), "items");
  if (!items.empty()) set_model(json_text(items.front(), "name"), observed);
}

// Returns the number of requests that failed; nothing if the document does not say.
std::optional<std::int64_t> count_failed(const Json& json, const Json& metrics) {
  std::optional<std::int64_t> failed = average_count(metrics, "error_request_count");
  const Json& summary = member_or_null(json, "error_summary");
  if (!summary.is_array()) return failed;
  // The number is missing if there are none.
  std::int64_t listed = 0;
  for (const Json& error : summary) {
    listed += std::min<std::int64_t>(json_integer(error, "count").value_or(1), 1'000'000'000);
  }
  return std::max(failed.value_or(0), listed);
}

// Reads counts of tokens, rates and latencies. Without an answered request there are no latencies.
void read_metrics(const Json& metrics, ObservedCase& load) {
  load.prompt_tokens = total_tokens(metrics, "total_isl", "input_sequence_length");
  load.generated_tokens = total_tokens(metrics, "total_output_tokens", "output_sequence_length");
  for (const auto& [key, metric] : k_rates) {
    set_rate(load, metric, json_number(member_or_null(metrics, key), "avg"));
  }
  if (!has_answers(load)) return;
  for (const auto& [key, metric] : k_latencies) {
    const Json& latency = member_or_null(metrics, key);
    const auto scale = time_scale(latency);
    if (!scale) continue;
    for (const auto& [statistic_key, statistic] : k_statistics) {
      const auto value = json_number(latency, statistic_key);
      if (value) add_latency_figure(load.latencies, metric, statistic, *value * *scale);
    }
  }
}

bool is_aggregate(const Json& json) {
  return json.contains("aggregation_type") ||
         member_or_null(json, "metadata").contains("aggregation_type");
}

// Reads the result of one run.
void read_result(const Json& json, Observed& observed) {
  if (!json.is_object()) return;
  if (is_aggregate(json)) {
    observed.errors.emplace_back(
        "an aggregate of AIPerf's runs: give the profile_export_aiperf.json of a run");
    return;
  }
  const Json& records = member_or_null(json, "records");  // of AIPerf 0.1
  const Json& metrics = records.is_object() ? records : json;
  const bool has_requests = member_or_null(metrics, "request_count").is_object() ||
                            member_or_null(metrics, "error_request_count").is_object();
  if (!has_requests) return;
  ObservedCase load;
  load.name = fmt::format("run {}", observed.cases.size());
  read_settings(member_or_null(json, "input_config"), metrics, load, observed);
  if (json_flag(json, "was_cancelled")) fail_load(load, "the run was cancelled");
  if (member_or_null(json, "is_complete") == Json(false))
    fail_load(load, "the run is not complete");
  auto completed = average_count(metrics, "request_count");
  if (!completed && average_count(metrics, "error_request_count")) completed = 0;
  set_requests(load, completed, count_failed(json, metrics));
  read_metrics(metrics, load);
  append_row_within_limit(observed.cases, std::move(load), observed);
}

// Reads the result of genai-perf.
void read_older_result(const Json& json, Observed& observed) {
  if (!member_or_null(json, "request_throughput").is_object()) return;
  ObservedCase load;
  load.name = fmt::format("run {}", observed.cases.size());
  const Json& config = member_or_null(json, "input_config");
  const Json& stimulus = member_or_null(member_or_null(config, "perf_analyzer"), "stimulus");
  for (const Json* settings : {&config, &stimulus}) {
    copy_facts(*settings, {"concurrency", "request_rate", "request_count"}, load);
  }
  // 0 and "" stand for none.
  std::erase_if(load.facts,
                [](const auto& fact) { return fact.second == "0" || fact.second == ""; });
  read_settings(config, json, load, observed);
  set_requests(load, average_count(json, "request_count"), std::nullopt);
  read_metrics(json, load);
  append_row_within_limit(observed.cases, std::move(load), observed);
}

void read(const Printed& printed, Observed& observed) {
  read_documents(
      printed, [&](const Json& json) { read_result(json, observed); }, observed);
  if (observed.cases.empty() && observed.errors.empty() && !observed.truncated) {
    observed.errors.emplace_back(
        "it holds no run of AIPerf: give the profile_export_aiperf.json of a run");
  }
  finish_loads(observed);
}

void read_older(const Printed& printed, Observed& observed) {
  read_documents(
      printed, [&](const Json& json) { read_older_result(json, observed); }, observed);
  finish_loads(observed);
}

}  // namespace

namespace console {
namespace {

// Returns the cells of a row of a box; empty for other lines.
std::vector<std::string> split_box(std::string_view line) {
  std::vector<std::string> cells;
  for (const std::string_view bar : {"\u2502", "\u2503"}) {  // thin, and thick in the heading
    std::string_view rest = text::trim(line);
    if (!rest.starts_with(bar) || !rest.ends_with(bar) || rest.size() < 2 * bar.size()) continue;
    rest.remove_prefix(bar.size());
    for (std::size_t at = rest.find(bar); at != rest.npos; at = rest.find(bar)) {
      cells.emplace_back(text::trim(rest.substr(0, at)));
      rest.remove_prefix(at + bar.size());
    }
  }
  return cells;
}

// A metric of the table. Its name may go over several lines.
struct Row {
  std::string name;
  std::vector<std::string> cells;
};

// Returns the member of the JSON form for "Time to First Token (ms)", and its unit.
std::pair<std::string, std::string> parse_name(std::string_view name) {
  std::string unit;
  if (const std::size_t open = name.rfind(" ("); open != name.npos && name.ends_with(')')) {
    unit = name.substr(open + 2, name.size() - open - 3);
    name = name.substr(0, open);
  }
  std::string key = text::lower(name);
  std::ranges::replace(key, ' ', '_');
  return {key, unit};
}

// Returns the settings in "CLI Command: aiperf profile --model 'm' --concurrency 4".
Json read_command(std::string_view command) {
  Json config = Json::object();
  const auto option = [&](const char* name) -> std::optional<std::string> {
    LineScanner scan(command);
    if (!scan.read_until(fmt::format("{} ", name))) return std::nullopt;
    const std::string value = display_text(scan.word().value_or(""));
    const bool is_quoted = value.size() > 2 && value.starts_with('\'');
    return is_quoted ? value.substr(1, value.size() - 2) : value;
  };
  if (const auto model = option("--model")) config["endpoint"]["model_names"] = {*model};
  config["endpoint"]["streaming"] = command.find("--streaming") != command.npos;
  for (const char* setting : {"concurrency", "request-rate", "request-count"}) {
    std::string key = setting;
    std::ranges::replace(key, '-', '_');
    if (const auto value = option(fmt::format("--{}", setting).c_str()))
      config["loadgen"][key] = *value;
  }
  return config;
}

// A run: its table, the errors above it (AIPerf 0.13) or below it, and the command that ends it.
struct Run {
  std::vector<std::string> titles;
  std::vector<Row> rows;
  bool in_errors = false, has_table = false;
  std::string command;
  Json errors = Json::array();

  void take_cells(std::vector<std::string> cells) {
    if (cells.size() < 2) return;
    if (in_errors) {
      if (const auto count = number_cell(cells.back())) errors.push_back({{"count", *count}});
    } else if (cells.front() == "Metric") {
      // Rows have as many cells as the heading above them.
      if (rows.empty()) titles = std::move(cells);
    } else if (cells.size() == titles.size()) {
      const bool goes_on =
          !rows.empty() && std::all_of(cells.begin() + 1, cells.end(),
                                       [](const auto& cell) { return cell.empty(); });
      if (goes_on) {
        rows.back().name += " " + cells.front();
      } else {
        rows.push_back({cells.front(), cells});
      }
    }
  }

  [[nodiscard]] Json make_json() const {
    Json json = {{"input_config", read_command(command)}, {"error_summary", errors}};
    // There is no table of figures if each request failed.
    if (!has_table) json["error_request_count"] = {{"avg", 0}};
    for (const Row& row : rows) {
      const auto [key, unit] = parse_name(row.name);
      json[key] = {{"unit", unit}};
      for (std::size_t i = 1; i < row.cells.size(); ++i) {
        if (const auto value = number_cell(row.cells[i])) json[key][titles[i]] = *value;
      }
    }
    return json;
  }
};

// Returns the run that a table is of: a new one after a command, or after another table of figures.
Run& find_run(std::vector<Run>& runs, bool is_table) {
  const bool is_new =
      runs.empty() || !runs.back().command.empty() || (is_table && runs.back().has_table);
  return is_new ? runs.emplace_back() : runs.back();
}

// Returns true for a line of the command, which goes over several where the console is narrow.
bool goes_on(std::string_view line) {
  return !text::trim(line).empty() && line.find("Benchmark Duration:") == line.npos &&
         line.find(" Export: ") == line.npos;
}

}  // namespace

// Reads the tables that AIPerf prints, run after run, each with the command line that is printed
// below them.
void read(const Printed& printed, Observed& observed) {
  std::vector<Run> runs;
  bool is_read = false, has_end = true, in_command = false;
  for (const std::string_view line : printed.lines()) {
    LineScanner scan(line);
    if (scan.read_until("NVIDIA AIPerf |")) {  // tables of other things are left out
      const bool is_table = scan.rest() == "LLM Metrics",
                 is_errors = scan.rest() == "Error Summary";
      is_read = is_table || is_errors;
      if (is_read) {
        Run& run = find_run(runs, is_table);
        run.in_errors = is_errors;
        run.has_table = run.has_table || is_table;
      }
      has_end = false;
    }
    if (runs.empty() || printed.may_be_cut(line)) continue;
    in_command = in_command && goes_on(line);
    if (in_command) runs.back().command += fmt::format(" {}", line);
    if (scan.skip_prefix("CLI Command:")) {
      runs.back().command = scan.rest();
      in_command = true;
    }
    if (scan.skip_prefix("\u2514")) has_end = true;  // the lower left corner
    if (is_read) runs.back().take_cells(split_box(line));
  }
  if (!has_end) mark_truncated(observed);
  for (const Run& run : runs) read_result(run.make_json(), observed);
  finish_loads(observed);
}

}  // namespace console

namespace {

Result<profile::EngineReport> make_aiperf_report(const Output& output) {
  return make_load_report("aiperf", output);
}

Result<profile::EngineReport> make_genai_perf_report(const Output& output) {
  return make_load_report("genai-perf", output);
}

}  // namespace
}  // namespace weir::adapters::aiperf

const weir::adapters::Format weir::adapters::k_aiperf(
    "aiperf", "AIPerf: profile_export_aiperf.json", "", aiperf::read,
    {{95,
      {"\"aiperf_version\"", "\"aggregation_type\" & \"num_profile_runs\"",
       "\"request_latency\" & \"was_cancelled\"", "\"request_latency\" & \"error_summary\""}}},
    {"aiperf", 12, Counts::results, aiperf::make_aiperf_report});

const weir::adapters::Format weir::adapters::k_genai_perf(
    "genai-perf", "genai-perf: profile_export_genai_perf.json", "", aiperf::read_older,
    {{85, {"\"request_throughput\" & \"request_latency\" & \"avg\""}}},
    {"genai-perf", 17, Counts::results, aiperf::make_genai_perf_report});

const weir::adapters::Format weir::adapters::k_aiperf_console(
    "aiperf-console", "AIPerf: the table that it prints", "", aiperf::console::read,
    {{92, {"NVIDIA AIPerf | LLM Metrics"}}});
