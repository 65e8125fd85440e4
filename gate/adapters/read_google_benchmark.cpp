// Google Benchmark's JSON. Each benchmark is a case, its repetitions are samples; without
// repetitions, times are those of aggregates. A row with an error has time 0, so it is an error.

#include "gate/adapters/readers.hpp"
#include "gate/base/hash.hpp"

namespace weir::adapters::google_benchmark {
namespace {

// Numbers that are no counter of the user's own.
constexpr std::string_view k_not_counters[] = {"family_index",     "per_family_instance_index",
                                               "threads",          "repetitions",
                                               "repetition_index", "iterations",
                                               "real_time",        "cpu_time"};

std::optional<double> seconds_in(const Json& row, const char* key) {
  const auto value = json_number(row, key);
  const auto unit = json_text(row, "time_unit");
  const auto scale = unit ? unit::parse_scale(*unit) : std::nullopt;
  if (!value || !scale || scale->unit != unit::Unit::seconds) return std::nullopt;
  return *value * scale->factor;
}

ObservedCase* find_or_add_case(const std::string& name, Observed& observed) {
  // Repetitions are adjacent, unless they were shuffled.
  for (auto part = observed.cases.rbegin(); part != observed.cases.rend(); ++part) {
    if (part->name == name) return &*part;
    if (part - observed.cases.rbegin() > 1000) break;
  }
  const bool is_kept =
      append_row_within_limit(observed.cases, {name, {}, {}, {}, {}, {}, {}}, observed);
  return is_kept ? &observed.cases.back() : nullptr;
}

// Adds user-defined counters and other values that have no metric as facts.
void read_counters(const Json& row, ObservedCase& benchmark) {
  if (const auto label = json_text(row, "label")) benchmark.facts["label"] = *label;
  for (const auto& [key, value] : row.items()) {
    if (!value.is_number() || benchmark.facts.size() >= 64 || holds(k_not_counters, key)) continue;
    benchmark.facts[display_text(key, 100)] = dump_json(value);
  }
  if (const auto iterations = json_integer(row, "iterations")) {
    benchmark.facts["iterations"] = fmt::format("{}", *iterations);
  }
}

constexpr std::string_view k_skipped = "skipped";  // begins the error of such a benchmark

// Reads the error of a row, or why the benchmark skipped itself, which is no failure. Returns false
// if there is none.
bool read_error(const Json& row, ObservedCase& benchmark, Observed& observed) {
  const bool error = json_flag(row, "error_occurred");
  if (!error && !json_flag(row, "skipped")) return false;
  const auto message = json_text(row, error ? "error_message" : "skip_message");
  const std::string text = message.value_or("");
  if (!error) {
    benchmark.error = fmt::format("{}{}{}", k_skipped, text.empty() ? "" : ": ", text);
    add_warning(observed, "{}: {}", benchmark.name, *benchmark.error);
    return true;
  }
  benchmark.error = text.empty() ? "an error" : text;
  if (observed.errors.size() < 1000)
    observed.errors.push_back(benchmark.name + ": " + *benchmark.error);
  return true;
}

constexpr std::pair<const char*, const char*> k_times[] = {{"real_time", "real_seconds"},
                                                           {"cpu_time", "cpu_seconds"}};

// Reads a row with the aggregate `name` ("mean", "stddev", …) of a benchmark's repetitions.
void read_aggregate(const Json& row, const std::string& name, ObservedCase& benchmark) {
  for (const auto& [key, metric] : k_times) {
    auto& timing = find_or_add_timing(benchmark.timings, custom_time_metric(metric));
    // A "cv" is a fraction, whatever its time_unit says.
    if (const auto seconds = seconds_in(row, key)) {
      if (name == "mean") timing.mean = seconds;
      if (name == "stddev") timing.stddev = seconds;
      if (name == "median")
        benchmark.facts[fmt::format("median {}", metric)] = fmt::format("{}", *seconds);
    }
  }
}

// Returns true for the fitted complexity of a family (->Complexity()), which is no benchmark.
bool is_complexity(const Json& row) {
  return !row.contains("real_time") && (row.contains("big_o") || row.contains("rms"));
}

// Returns the name of the benchmark that a row is of. Releases before 1.5 name aggregates alone:
// "BM_a_mean" stands after the repetitions of "BM_a".
std::optional<std::pair<std::string, std::string>> read_name(const Json& row,
                                                             const Observed& observed) {
  const Json& member = member_or_null(row, row.contains("run_name") ? "run_name" : "name");
  if (!member.is_string()) return std::nullopt;
  constexpr std::size_t k_longest = 400;
  const auto& text = member.get_ref<const std::string&>();
  std::string name = display_text(text, k_longest);
  if (text.size() > k_longest) name += "~" + short_hash(text);
  if (json_text(row, "run_type") == "aggregate")
    return std::pair(name, json_text(row, "aggregate_name").value_or(""));
  if (row.contains("run_type")) return std::pair(name, "");
  for (const char* aggregate : {"mean", "median", "stddev", "cv"}) {
    const std::string end = fmt::format("_{}", aggregate);
    if (!name.ends_with(end)) continue;
    const std::string benchmark = name.substr(0, name.size() - end.size());
    const auto is_known = [&](const ObservedCase& part) { return part.name == benchmark; };
    if (std::ranges::any_of(observed.cases, is_known)) return std::pair(benchmark, aggregate);
  }
  return std::pair(name, "");
}

constexpr std::string_view k_parts = "rows";

void read_row(const Json& row, Observed& observed) {
  if (!row.is_object()) return count_unread(observed, k_parts, "a benchmark is no object");
  if (is_complexity(row)) return count_read(observed, k_parts);
  const auto name = read_name(row, observed);
  if (!name) return count_unread(observed, k_parts, "a benchmark has no name");
  ObservedCase* benchmark = find_or_add_case(name->first, observed);
  if (benchmark == nullptr) return;
  if (read_error(row, *benchmark, observed)) return count_read(observed, k_parts);
  if (!name->second.empty()) {
    if (name->second == "mean") {
      if (!seconds_in(row, "real_time"))
        return count_unread(observed, k_parts, benchmark->name + ": its mean has no time");
      read_counters(row, *benchmark);
    }
    count_read(observed, k_parts);
    return read_aggregate(row, name->second, *benchmark);
  }
  read_counters(row, *benchmark);
  if (seconds_in(row, "real_time").value_or(0) <= 0) {
    return count_unread(
        observed, k_parts,
        fmt::format("{}: real_time is missing, 0 or in no unit of time", benchmark->name));
  }
  count_read(observed, k_parts);
  for (const auto& [key, metric] : k_times) {
    if (const auto seconds = seconds_in(row, key)) add_sample(benchmark->timings, metric, *seconds);
  }
}

void read_context(const Json& json, Observed& observed) {
  const Json& context = member_or_null(json, "context");
  if (!context.is_object()) return;
  auto& facts = observed.context.facts;
  add_facts(context, facts);
  for (const char* key : {"executable", "host_name"}) {
    if (const auto place = json_text(context, key)) add_place(observed, *place);
  }
  if (json_text(context, "library_build_type") == "debug") {
    add_warning(observed, "the benchmark library is a debug build: short times are too long");
  }
  if (look_up(facts, "cpu_scaling_enabled", "") == "true") {
    add_warning(observed, "the processor's frequency was not fixed");
  }
  if (const auto version = json_integer(context, "json_schema_version")) {
    observed.version = fmt::format("{}", *version);
    if (*version != 1) add_unknown_version(*observed.version, "1", observed);
  }
}

}  // namespace

void read(const Printed& printed, Observed& observed) {
  read_pieces(printed, {"benchmarks"},
              {[&](std::string_view, const Json& row) { read_row(row, observed); },
               [&](const Json& members) { read_context(members, observed); }},
              observed);
}

namespace {

// Makes the report: one iteration of all benchmarks added up, and benchmarks that limits name
// ("op:BM_gemv/64"), with a sample per repetition.
Result<profile::EngineReport> report_benchmarks(const Output& output) {
  WEIR_TRY(const Observed observed, read_as("google-benchmark", {output.out, output.err}));
  WEIR_CHECK(check_all_parts_read(observed));
  if (observed.truncated) return fail(Code::data, "the benchmarks' output ends in the middle");
  if (!observed.errors.empty()) {
    return fail(Code::data, "a benchmark failed: {}", observed.errors.front());
  }
  profile::EngineReport report;
  report.warnings = observed.warnings;
  std::vector<double> sums;
  std::vector<std::string> names;              // their hash shows if the set of benchmarks changes
  std::map<std::string, std::string> metrics;  // benchmarks by their metrics
  for (const ObservedCase& benchmark : observed.cases) {
    if (benchmark.timings.empty() && benchmark.error.value_or("").starts_with(k_skipped)) continue;
    if (benchmark.timings.empty() || benchmark.timings.front().samples.empty()) {
      return fail(Code::data,
                  "{}: no repetition is reported: run it without "
                  "--benchmark_report_aggregates_only",
                  benchmark.name);
    }
    const std::vector<double>& samples = benchmark.timings.front().samples;
    if (sums.empty()) sums.resize(samples.size());
    if (samples.size() != sums.size()) {
      return fail(Code::data, "{}: {} repetitions, and {} of others", benchmark.name,
                  samples.size(), sums.size());
    }
    std::ranges::transform(sums, samples, sums.begin(), std::plus());
    names.push_back(benchmark.name);
    const std::string name = unit::work_name("op:", benchmark.name);
    const auto [metric, is_new] = metrics.emplace(name, benchmark.name);
    if (!is_new) {
      return fail(Code::data, "{} and {} have the same metric, {}: rename one", metric->second,
                  benchmark.name, name);
    }
    const auto wanted = [&](const auto& pattern) { return text::glob_match(pattern, name); };
    if (std::ranges::any_of(output.works, wanted) && unit::find_metric(name)) {
      report.times.push_back({*unit::find_metric(name), samples});
    }
  }
  if (names.empty()) return fail(Code::data, "no benchmark ran: all were skipped");
  report.times.push_back({*unit::find_metric("iteration_seconds"), std::move(sums)});
  std::ranges::sort(names);
  report.output_digest = hash_hex(text::join(names, "\n"));
  return report;
}

}  // namespace
}  // namespace weir::adapters::google_benchmark

const weir::adapters::Format weir::adapters::k_google_benchmark(
    "google-benchmark", "Google Benchmark, JSON", "google-benchmark", google_benchmark::read,
    {{90, {"\"library_build_type\"", "\"benchmarks\" & \"real_time\""}}},
    {"google-benchmark", 10, Counts::none, google_benchmark::report_benchmarks});
