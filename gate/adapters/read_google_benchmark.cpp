// Google Benchmark's JSON. A case a benchmark (its repetitions are samples); times of aggregates
// where there are no repetitions. A row with an error has time 0 and is not fast: it is an error.

#include "gate/adapters/readers.hpp"
#include "gate/base/hash.hpp"

namespace weir::adapters::google_benchmark {
namespace {

// Numbers that are no counter of the user's own.
constexpr std::string_view k_known[] = {"family_index",     "per_family_instance_index",
                                        "threads",          "repetitions",
                                        "repetition_index", "iterations",
                                        "real_time",        "cpu_time"};

std::optional<double> seconds_in(const Json& row, const char* key) {
  const auto value = json_number(row, key);
  const auto unit = json_text(row, "time_unit").value_or("ns");
  const auto scale = unit::parse_scale(unit);
  if (!value || !scale || scale->unit != unit::Unit::seconds) return std::nullopt;
  return *value * scale->factor;
}

ObservedCase* case_named(const std::string& name, Observed& observed) {
  // Repetitions stand together, unless they were shuffled.
  for (auto one = observed.cases.rbegin(); one != observed.cases.rend(); ++one) {
    if (one->name == name) return &*one;
    if (one - observed.cases.rbegin() > 1000) break;
  }
  const bool kept = keep_row(observed.cases, {name, {}, {}, {}, {}, {}, {}}, observed);
  return kept ? &observed.cases.back() : nullptr;
}

// Counters of the user's own, and what else weir has no place for.
void read_counters(const Json& row, ObservedCase& one) {
  if (const auto label = json_text(row, "label")) one.facts["label"] = *label;
  for (const auto& [key, value] : row.items()) {
    if (!value.is_number() || one.facts.size() >= 64 || holds(k_known, key)) continue;
    one.facts[shown_text(key, 100)] = dump_json(value);
  }
  if (const auto iterations = json_whole(row, "iterations")) {
    one.facts["iterations"] = fmt::format("{}", *iterations);
  }
}

bool read_error(const Json& row, ObservedCase& one, Observed& observed) {
  const bool error = json_flag(row, "error_occurred");
  if (!error && !json_flag(row, "skipped")) return false;
  const auto message = json_text(row, error ? "error_message" : "skip_message");
  one.error = message.value_or(error ? "an error" : "skipped");
  if (observed.errors.size() < 1000) observed.errors.push_back(one.name + ": " + *one.error);
  return true;
}

constexpr std::pair<const char*, const char*> k_times[] = {{"real_time", "real_seconds"},
                                                           {"cpu_time", "cpu_seconds"}};

void read_aggregate(const Json& row, const std::string& name, ObservedCase& one) {
  for (const auto& [key, metric] : k_times) {
    auto& timing = timing_of(one.timings, own_time(metric));
    // A "cv" is a fraction, whatever its time_unit says.
    if (const auto seconds = seconds_in(row, key)) {
      if (name == "mean") timing.mean = seconds;
      if (name == "stddev") timing.stddev = seconds;
      if (name == "median")
        one.facts[fmt::format("median {}", metric)] = fmt::format("{}", *seconds);
    }
  }
}

void read_row(const Json& row, Observed& observed) {
  if (!row.is_object()) return;
  const auto name = json_text(row, row.contains("run_name") ? "run_name" : "name");
  ObservedCase* one = name ? case_named(*name, observed) : nullptr;
  if (one == nullptr || read_error(row, *one, observed)) return;
  if (json_text(row, "run_type") == "aggregate") {
    const auto aggregate = json_text(row, "aggregate_name").value_or("");
    if (aggregate == "mean") read_counters(row, *one);
    return read_aggregate(row, aggregate, *one);
  }
  read_counters(row, *one);
  for (const auto& [key, metric] : k_times) {
    if (const auto seconds = seconds_in(row, key)) add_sample(one->timings, metric, *seconds);
  }
}

void read_context(const Json& json, Observed& observed) {
  const Json& found = below(json, "context");
  if (!found.is_object()) return;
  auto& facts = observed.context.facts;
  add_facts(found, facts);
  for (const char* key : {"executable", "host_name"}) {
    if (const auto place = json_text(found, key)) add_place(observed, *place);
  }
  if (json_text(found, "library_build_type") == "debug") {
    add_warning(observed, "the benchmark library is a debug build: short times are too long");
  }
  if (look_up(facts, "cpu_scaling_enabled", "") == "true") {
    add_warning(observed, "the processor's frequency was not fixed");
  }
  if (const auto version = json_whole(found, "json_schema_version")) {
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

// One iteration of each benchmark, added up, and those that limits name ("op:BM_gemv/64"): a sample
// a repetition.
Result<profile::EngineReport> report(const Output& output) {
  WEIR_TRY(const Observed observed, read_as("google-benchmark", {output.out, output.err}));
  if (observed.truncated) return fail(Code::data, "the benchmarks' output ends in the middle");
  if (!observed.errors.empty()) {
    return fail(Code::data, "a benchmark failed: {}", observed.errors.front());
  }
  profile::EngineReport made;
  made.warnings = observed.warnings;
  std::vector<double> sums;
  std::vector<std::string> names;  // another set of them is other work
  for (const ObservedCase& one : observed.cases) {
    if (one.timings.empty() || one.timings.front().samples.empty()) {
      return fail(Code::data, "{}: no repetition is reported (without aggregates alone)", one.name);
    }
    const std::vector<double>& samples = one.timings.front().samples;
    if (sums.empty()) sums.resize(samples.size());
    if (samples.size() != sums.size()) {
      return fail(Code::data, "{}: {} repetitions, and {} of others", one.name, samples.size(),
                  sums.size());
    }
    std::ranges::transform(sums, samples, sums.begin(), std::plus());
    names.push_back(one.name);
    const std::string name = unit::work_name("op:", one.name);
    const auto wanted = [&](const auto& pattern) { return text::glob_match(pattern, name); };
    if (std::ranges::any_of(output.works, wanted) && unit::find_metric(name)) {
      made.times.push_back({*unit::find_metric(name), samples});
    }
  }
  made.times.push_back({*unit::find_metric("iteration_seconds"), std::move(sums)});
  std::ranges::sort(names);
  made.output_digest = hash_hex(text::join(names, "\n"));
  return made;
}

}  // namespace
}  // namespace weir::adapters::google_benchmark

const weir::adapters::Format weir::adapters::k_google_benchmark(
    "google-benchmark", "Google Benchmark, JSON", "google-benchmark", google_benchmark::read,
    {{90, {"\"library_build_type\"", "\"benchmarks\" & \"real_time\""}}},
    {"google-benchmark", 10, Counts::none, google_benchmark::report});
