// Google Benchmark's JSON, and the table that it prints. Each benchmark is a case, its repetitions
// are samples; without repetitions, times are those of aggregates. A row with an error has time 0,
// so it is an error.

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
    benchmark.error = fmt::format("{}{}", k_skipped, text::prefix_if_any(": ", text));
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

// The benchmark that a row is of, and the aggregate ("mean", "cv"); "" for a row of one repetition.
struct RowName {
  std::string benchmark;
  std::string aggregate;
};

// Reads a row's name. Releases before 1.5 name aggregates alone: "BM_a_mean" stands after the
// repetitions of "BM_a".
std::optional<RowName> read_name(const Json& row, const Observed& observed) {
  const Json& member = member_or_null(row, row.contains("run_name") ? "run_name" : "name");
  if (!member.is_string()) return std::nullopt;
  constexpr std::size_t k_longest = 400;
  const auto& text = member.get_ref<const std::string&>();
  std::string name = display_text(text, k_longest);
  if (text.size() > k_longest) name += "~" + short_hash(text);
  if (json_text(row, "run_type") == "aggregate")
    return RowName{name, json_text(row, "aggregate_name").value_or("")};
  if (row.contains("run_type")) return RowName{name, ""};
  for (const char* aggregate : {"mean", "median", "stddev", "cv"}) {
    const std::string end = fmt::format("_{}", aggregate);
    if (!name.ends_with(end)) continue;
    const std::string benchmark = name.substr(0, name.size() - end.size());
    const auto is_known = [&](const ObservedCase& part) { return part.name == benchmark; };
    if (std::ranges::any_of(observed.cases, is_known)) return RowName{benchmark, aggregate};
  }
  return RowName{name, ""};
}

constexpr std::string_view k_parts = "rows";

// Reads one benchmark, one repetition or one aggregate of repetitions:
// {"name": "BM_gemv/64", "run_type": "iteration", "iterations": 1000, "real_time": 5.1, …}.
void read_row(const Json& row, Observed& observed) {
  if (!row.is_object()) return add_unread_part(observed, k_parts, "a benchmark is no object");
  if (is_complexity(row)) return add_read_parts(observed, k_parts);
  const auto name = read_name(row, observed);
  if (!name) return add_unread_part(observed, k_parts, "a benchmark has no name");
  ObservedCase* benchmark = find_or_add_case(name->benchmark, observed);
  if (benchmark == nullptr) return;
  if (read_error(row, *benchmark, observed)) return add_read_parts(observed, k_parts);
  if (!name->aggregate.empty()) {
    if (name->aggregate == "mean") {
      if (!seconds_in(row, "real_time"))
        return add_unread_part(observed, k_parts, benchmark->name + ": its mean has no time");
      read_counters(row, *benchmark);
    }
    add_read_parts(observed, k_parts);
    return read_aggregate(row, name->aggregate, *benchmark);
  }
  read_counters(row, *benchmark);
  if (seconds_in(row, "real_time").value_or(0) <= 0) {
    return add_unread_part(
        observed, k_parts,
        fmt::format("{}: real_time is missing, 0 or in no unit of time", benchmark->name));
  }
  add_read_parts(observed, k_parts);
  for (const auto& [key, metric] : k_times) {
    if (const auto seconds = seconds_in(row, key)) add_sample(benchmark->timings, metric, *seconds);
  }
}

// Reads {"host_name": "box", "num_cpus": 8, "library_build_type": "release", …}.
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

namespace console {
namespace {

// A row of the console: "BM_gemv/64   1234 ns   1230 ns   567 items_per_second=1.2M/s".
struct Row {
  std::string name;
  std::optional<double> real, cpu;  // seconds
  std::optional<std::int64_t> iterations;
  std::string error, skipped;
  bool is_share = false;  // a cv, or the RMS of a complexity
};

// Reads a time and its unit from two words; nothing if they are none.
std::optional<double> read_time(const std::string& number, const std::string& unit) {
  const auto value = printed_number(number);
  const auto scale = unit::parse_scale(unit);
  if (!value || !scale || scale->unit != unit::Unit::seconds) return std::nullopt;
  return *value * scale->factor;
}

std::vector<std::string> split_words(std::string_view line) {
  std::vector<std::string> words;
  LineScanner scan(line);
  while (const auto word = scan.word()) words.emplace_back(*word);
  return words;
}

// Reads "BM_gemv/7   ERROR OCCURRED: 'size must be even'". Returns nothing for another line.
std::optional<Row> parse_error(std::string_view line) {
  Row row;
  for (const auto& [mark, message] : {std::pair{std::string_view(" ERROR OCCURRED: "), &row.error},
                                      {std::string_view(" SKIPPED: "), &row.skipped}}) {
    const std::size_t at = line.find(mark);
    if (at == line.npos) continue;
    row.name = display_text(text::trim(line.substr(0, at)), 400);
    std::string_view quoted = text::trim(line.substr(at + mark.size()));
    if (quoted.size() >= 2 && quoted.front() == '\'') quoted = quoted.substr(1, quoted.size() - 2);
    *message = display_text(quoted);
    return row;
  }
  return std::nullopt;
}

// Returns the row of these words; nothing if they are none. Names may hold blanks.
std::optional<Row> parse_row(const std::vector<std::string>& words) {
  Row row;
  for (std::size_t i = 1; i + 4 < words.size(); ++i) {
    row.is_share = words[i + 1] == "%" && words[i + 3] == "%" && printed_number(words[i]);
    row.real = read_time(words[i], words[i + 1]);
    row.cpu = read_time(words[i + 2], words[i + 3]);
    row.iterations = text::to_int(words[i + 4]);
    if ((!row.real && !row.is_share) || !row.iterations) continue;
    row.name = text::join(std::vector(words.begin(), words.begin() + static_cast<long>(i)), " ");
    return row;
  }
  return std::nullopt;
}

// Returns true if a line that is no row looks like one: its times have a unit.
bool looks_like_row(const std::vector<std::string>& words) {
  return words.size() > 4 && std::ranges::any_of(words, [](const std::string& word) {
           return word == "ns" || word == "us" || word == "ms";
         });
}

// Returns the row as JSON has it. `names`: all of the table. "BM_a_mean" is an aggregate if there
// is a BM_a, or a BM_a_stddev as well.
Json make_json(const Row& row, const std::set<std::string>& names) {
  Json json = {{"name", row.name}, {"time_unit", "s"}};
  if (!row.error.empty()) json.update({{"error_occurred", true}, {"error_message", row.error}});
  if (!row.skipped.empty()) json.update({{"skipped", true}, {"skip_message", row.skipped}});
  if (row.real) json["real_time"] = *row.real;
  if (row.cpu) json["cpu_time"] = *row.cpu;
  if (row.iterations) json["iterations"] = *row.iterations;
  for (const char* aggregate : {"mean", "median", "stddev", "cv"}) {
    const std::string end = fmt::format("_{}", aggregate);
    if (!row.name.ends_with(end)) continue;
    const std::string benchmark = row.name.substr(0, row.name.size() - end.size());
    if (!names.contains(benchmark) && !names.contains(benchmark + "_stddev")) continue;
    json["name"] = benchmark;
    json.update({{"run_type", "aggregate"}, {"aggregate_name", aggregate}});
  }
  return json;
}

}  // namespace

// Reads the rows of the printed table, of standard output and of standard error:
//
//   Benchmark           Time             CPU   Iterations
//   BM_gemv/64       5.10 ns         5.09 ns    137000000
void read(const Printed& printed, Observed& observed) {
  std::vector<Row> rows;
  std::set<std::string> names;
  const auto take_line = [&](std::string_view line) {
    const std::vector<std::string> words = split_words(line);
    auto row = parse_error(line);
    if (!row) row = parse_row(words);
    if (!row && looks_like_row(words))
      add_unread_part(observed, k_parts, "a row has no time and iterations");
    if (!row || rows.size() >= k_max_rows) return;
    names.insert(row->name);
    rows.push_back(std::move(*row));
  };
  for (const auto* lines : {&printed.out(), &printed.err()}) {
    bool in_table = false;
    for (const std::string_view line : *lines) {
      if (line.find("***WARNING*** CPU scaling") != line.npos)
        add_warning(observed, "the processor's frequency was not fixed");
      if (line.find("***WARNING*** Library was built as DEBUG") != line.npos)
        add_warning(observed, "the benchmark library is a debug build: short times are too long");
      if (in_table && printed.may_be_cut(line)) {
        mark_truncated(observed);
      } else if (in_table) {
        take_line(line);
      }
      in_table = in_table || (text::trim(line).starts_with("Benchmark ") &&
                              line.find("Iterations") != line.npos);
    }
  }
  for (const Row& row : rows) {
    if (!row.is_share) read_row(make_json(row, names), observed);  // a cv is none
  }
}

}  // namespace console

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
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += samples[i];
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

const weir::adapters::Format weir::adapters::k_google_benchmark_console(
    "google-benchmark-console", "Google Benchmark, the table that it prints", "google-benchmark",
    google_benchmark::console::read, {{88, {"^Benchmark & Time & CPU & Iterations"}}});
