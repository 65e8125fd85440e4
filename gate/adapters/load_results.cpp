// Results of tools that load inference servers (vllm bench serve, AIPerf, guidellm, …): helpers of
// their readers, and the report of a gate.
#include "gate/adapters/readers.hpp"
#include "gate/base/hash.hpp"
#include "gate/profile/profile.hpp"

namespace weir::adapters {
namespace {

// Returns the metric of a figure that weir judges: a median or p50 ("BASE_seconds"), a p90 or p99
// ("BASE_p90_seconds"). Nothing for other figures.
std::optional<unit::Metric> judged_metric(const ObservedLatency& latency) {
  constexpr std::string_view k_end = "_seconds";
  const bool is_median = latency.figure == "median" || latency.percentile == 50;
  if (!is_median && !latency.percentile) return std::nullopt;
  const std::string& name = latency.metric.name;
  if (!name.ends_with(k_end)) return std::nullopt;
  if (is_median) return unit::find_metric(name);
  return unit::find_metric(fmt::format("{}_p{}{}", name.substr(0, name.size() - k_end.size()),
                                       *latency.percentile, k_end));
}

// Names of latencies in keys of vLLM and SGLang.
constexpr std::pair<std::string_view, const char*> k_keyed_latencies[] = {
    {"ttft", "time_to_first_token_seconds"},
    {"tpot", "time_per_output_token_seconds"},
    {"itl", "inter_token_latency_seconds"},
    {"e2el", "end_to_end_latency_seconds"},
    {"e2e_latency", "end_to_end_latency_seconds"}};

// Facts that say how a tool loaded the server, by the tools' own names.
constexpr const char* k_concurrency_facts[] = {"max_concurrency", "concurrency", "streams",
                                               "Concurrency", "Number of concurrency"};
constexpr const char* k_rate_facts[] = {"request_rate", "rate", "requested_rate",
                                        "Request Rate (req/s)", "Request rate (req/s)"};
// How requests are sent where neither of them is set.
constexpr const char* k_kind_facts[] = {"type_", "fixed_schedule", k_unsaid_load};
constexpr const char* k_size_facts[] = {"arrivals", "num_prompts",        "request_count",
                                        "requests", "benchmark_duration", "duration_limit"};

// Adds "NAME VALUE" of those of the facts that the run has. A rate below 0 means none.
template <class Names>
void add_settings(const ObservedCase& load, const Names& names,
                  std::vector<std::string>& settings) {
  for (const char* name : names) {
    const std::string* value = look_up(load.facts, name);
    if (value != nullptr && !value->starts_with('-'))
      settings.push_back(fmt::format("{} {}", name, *value));
  }
}

// Returns the load of a run as text; "" if neither the result nor the cell says it. Number of
// requests and their duration say nothing about how many there are at once.
std::string load_text(const ObservedCase& load, const config::WantedLoad& wanted) {
  std::vector<std::string> settings;
  add_settings(load, k_concurrency_facts, settings);
  add_settings(load, k_rate_facts, settings);
  if (settings.empty()) add_settings(load, k_kind_facts, settings);
  if (settings.empty() || load.facts.contains(k_unsaid_load)) {
    if (wanted.concurrency) settings.push_back(fmt::format("concurrency {}", *wanted.concurrency));
    if (wanted.rate) settings.push_back(fmt::format("rate {:g}", *wanted.rate));
  }
  if (settings.empty()) return "";
  add_settings(load, k_size_facts, settings);
  if (load.facts.contains(k_not_streamed)) settings.emplace_back(k_not_streamed);
  return text::join(settings);
}

template <class Names>
std::optional<double> first_number(const ObservedCase& load, const Names& names) {
  for (const char* name : names) {
    const auto value = printed_number(look_up(load.facts, name, ""));
    if (value && *value >= 0) return value;
  }
  return std::nullopt;
}

std::optional<std::int64_t> count_fact(const ObservedCase& load, const char* name) {
  return rounded_count(printed_number(look_up(load.facts, name, "")));
}

// Returns the error of a run with failed requests.
std::string failed_requests_text(const ObservedCase& load) {
  const std::int64_t failed = count_fact(load, k_failed_requests).value_or(0);
  return fmt::format("{} of {} requests failed", failed,
                     failed + count_fact(load, k_completed_requests).value_or(0));
}

// Returns how many requests failed, or of those that the cell asks for were not completed. Fails if
// that is not known, or are more than its limit allows.
Result<std::int64_t> count_failed(const ObservedCase& load, const config::WantedLoad& wanted) {
  const auto failed = count_fact(load, k_failed_requests);
  if (!failed && !wanted.requests) {
    return fail(Code::data,
                "not judged: it does not say how many requests failed. Give the number that were "
                "asked for in weir.yaml (prompts: {{NAME: {{requests: N}}}})");
  }
  const std::int64_t completed = count_fact(load, k_completed_requests).value_or(0);
  const std::int64_t all_requests = wanted.requests.value_or(completed + failed.value_or(0));
  const std::int64_t missing = all_requests - completed;
  const bool is_known = missing >= 0 && failed.value_or(missing) == missing;
  if (is_known && wanted.allows_failed(missing, all_requests)) return missing;
  const std::string limit =
      wanted.may_fail && is_known
          ? fmt::format(" (the limit on failed_requests: {})", verdict::show(*wanted.may_fail))
          : "";
  if (failed && is_known) return fail(Code::data, "{}{}", failed_requests_text(load), limit);
  return fail(Code::data, "{} requests were completed, and the cell asks for {}{}", completed,
              all_requests, limit);
}

// Returns how many requests a run sent at once; nothing if it does not say so.
std::optional<double> concurrency_of(const ObservedCase& load) {
  if (look_up(load.facts, "type_", "") == "synchronous") return 1;  // guidellm
  return first_number(load, k_concurrency_facts);
}

// Returns how many requests a run sent a second; nothing if it had no rate.
std::optional<double> rate_of(const ObservedCase& load) {
  const auto rate = first_number(load, k_rate_facts);
  return rate && std::isfinite(*rate) ? rate : std::nullopt;
}

bool has_load(const ObservedCase& load, const config::WantedLoad& wanted) {
  return (!wanted.concurrency ||
          concurrency_of(load) == static_cast<double>(*wanted.concurrency)) &&
         (!wanted.rate || rate_of(load) == *wanted.rate);
}

// Returns the load in words, "concurrency 4, rate 20"; "" if the run does not say it.
std::string describe_load(const ObservedCase& load) {
  std::vector<std::string> parts;
  if (const auto concurrency = concurrency_of(load))
    parts.push_back(fmt::format("concurrency {:g}", *concurrency));
  if (const auto rate = rate_of(load)) parts.push_back(fmt::format("rate {:g}", *rate));
  return parts.empty() ? look_up(load.facts, "type_", "") : text::join(parts);
}

// Names several runs by their loads, but for those that their users named. Equal ones are numbered.
void name_by_load(std::vector<ObservedCase>& loads) {
  if (loads.size() < 2) return;
  std::map<std::string, int> numbers;
  for (std::size_t i = 0; i < loads.size(); ++i) {
    std::string& name = loads[i].name;
    const std::string load = describe_load(loads[i]);
    const bool is_numbered = name.ends_with(fmt::format(" {}", i));
    if (is_numbered && !load.empty()) name = load;
    int& number = numbers[name];
    ++number;
    if (number > 1) name += fmt::format(" ({})", number);
  }
}

// Returns the run of the load that the cell asks for. Fails unless there is one.
Result<const ObservedCase*> choose_run(const Observed& observed, const config::WantedLoad& wanted) {
  if (observed.cases.empty()) {
    return fail(
        Code::data, "{}",
        observed.errors.empty() ? "it holds no run: a gate takes one" : observed.errors.front());
  }
  if (observed.cases.size() == 1) return &observed.cases.front();
  constexpr std::size_t k_max_names = 10;
  std::vector<std::string> names;
  for (const ObservedCase& load : observed.cases) {
    if (names.size() < k_max_names) names.push_back(load.name);
  }
  const std::string runs = fmt::format("{} runs ({}{})", observed.cases.size(), text::join(names),
                                       names.size() < observed.cases.size() ? ", …" : "");
  if (!wanted.concurrency && !wanted.rate) {
    return fail(Code::data,
                "it holds {}: a gate takes the one whose concurrency or rate the "
                "prompt has",
                runs);
  }
  const std::size_t count = count_runs(observed, wanted);
  if (count != 1) {
    return fail(Code::data, "{} of its {} of the load that the cell asks for",
                count == 0 ? "none" : std::to_string(count), runs + (count == 0 ? " is" : " are"));
  }
  return find_first(observed.cases,
                    [&](const ObservedCase& load) { return has_load(load, wanted); });
}

// Returns tokens per completed request; nothing if either is not known.
std::optional<double> tokens_per_request(const std::optional<std::int64_t>& tokens,
                                         const std::optional<std::int64_t>& requests) {
  if (!tokens || requests.value_or(0) <= 0) return std::nullopt;
  return static_cast<double>(*tokens) / static_cast<double>(*requests);
}

// Fails unless the load is the one that the cell asks for.
Result<void> check_load(const ObservedCase& load, const config::WantedLoad& wanted,
                        std::vector<std::string>& warnings) {
  const auto concurrency = concurrency_of(load);
  if (wanted.concurrency && concurrency &&
      *concurrency != static_cast<double>(*wanted.concurrency)) {
    return fail(Code::data, "{:g} requests were sent at once, and the cell asks for {}",
                *concurrency, *wanted.concurrency);
  }
  const auto rate = rate_of(load);
  if (wanted.rate && rate && *rate != *wanted.rate) {
    return fail(Code::data, "{:g} requests were sent a second, and the cell asks for {:g}", *rate,
                *wanted.rate);
  }
  if (wanted.rate && !rate) {
    warnings.push_back(fmt::format(
        "the result is of no rate of requests, and the cell asks for {:g} a second", *wanted.rate));
  }
  const auto tokens =
      tokens_per_request(load.generated_tokens, count_fact(load, k_completed_requests));
  const auto most = static_cast<double>(wanted.tokens.value_or(0));
  // Tools count a token more or less than the server.
  if (wanted.tokens && tokens && *tokens > most && !profile::is_same_mean(*tokens, most)) {
    return fail(Code::data, "{:.4g} tokens were generated a request, and the cell asks for {}",
                *tokens, *wanted.tokens);
  }
  return {};
}

// Fails if the text is surely a result of another tool, whose figures mean something else.
Result<void> check_tool(std::string_view format, const Output& output) {
  const auto formats = find_formats(Printed({output.out, output.err}));
  if (formats.empty() || formats.front()->name == format) return {};
  const Format& other = *formats.front();
  if (other.adapter.counts != Counts::results) return {};
  return fail(Code::data, "it is a result of the format {}: give the cell's engine output: {}",
              other.name, other.adapter.name);
}

Result<Observed> read_complete(std::string_view format, const Output& output) {
  WEIR_CHECK(check_tool(format, output));
  WEIR_TRY(Observed observed, read_as(format, {output.out, output.err}));
  if (observed.truncated) return fail(Code::data, "the result ends in the middle");
  WEIR_CHECK(check_all_parts_read(observed));
  // read_pieces() may have left out another run.
  for (const std::string& warning : observed.warnings) {
    if (warning.ends_with("were left out")) return fail(Code::data, "{}", warning);
  }
  return observed;
}

}  // namespace

// Adds a mean, deviation, median or percentile ("p99") of a latency. Invalid values are left out.
void add_latency_figure(std::vector<ObservedLatency>& latencies, std::string_view metric,
                        std::string_view figure, double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return;
  ObservedLatency latency;
  latency.metric = find_time_metric(metric);
  latency.seconds = seconds;
  latency.figure = figure;
  if (figure.starts_with('p')) {
    latency.figure = "percentile";
    latency.percentile = printed_number(figure.substr(1));
    if (!latency.percentile || *latency.percentile <= 0 || *latency.percentile >= 100) return;
  }
  latencies.push_back(std::move(latency));
}

// Adds a figure by a key such as "mean_ttft_ms" or "p99_itl_ms".
void add_latency_by_key(std::vector<ObservedLatency>& latencies, const std::string& key,
                        double ms) {
  LineScanner scan(key);
  const std::string figure(scan.read_until("_").value_or(""));
  const std::string name(scan.read_until_last("_ms").value_or(""));
  if (name.empty() || name.size() > 60 || !scan.done()) return;
  static const std::map<std::string, std::string> k_figures{
      {"mean", "mean"}, {"median", "median"}, {"std", "stddev"}};
  const std::string known_figure =
      look_up(k_figures, figure, figure.starts_with('p') ? figure : "");
  if (known_figure.empty()) return;
  const auto* match =
      find_first(k_keyed_latencies, [&](const auto& latency) { return latency.first == name; });
  add_latency_figure(latencies, match ? match->second : fmt::format("{}_seconds", name),
                     known_figure, ms / 1e3);
}

void set_rate(ObservedCase& load, const char* metric, std::optional<double> rate) {
  if (rate && *rate >= 0) find_or_add_timing(load.timings, *unit::find_metric(metric)).mean = rate;
}

void copy_facts(const Json& json, std::initializer_list<const char*> keys, ObservedCase& load) {
  for (const char* key : keys) {
    const Json& setting = member_or_null(json, key);
    if (setting.is_primitive() && !setting.is_null()) load.facts[key] = json_display_text(setting);
  }
}

void fail_load(ObservedCase& load, std::string error) {
  if (!load.error) load.error = std::move(error);
}

void set_requests(ObservedCase& load, std::optional<std::int64_t> completed,
                  std::optional<std::int64_t> failed) {
  if (completed) load.facts[k_completed_requests] = fmt::format("{}", *completed);
  if (failed) load.facts[k_failed_requests] = fmt::format("{}", *failed);
  if (completed == 0) {
    const std::string all = failed.value_or(0) > 0 ? fmt::format(", {} failed", *failed) : "";
    return fail_load(load, "no request was completed" + all);
  }
  if (!completed) fail_load(load, "it does not say how many requests were completed");
}

bool has_answers(const ObservedCase& load) {
  return look_up(load.facts, k_completed_requests, "") != "0";
}

void set_model(const std::optional<std::string>& model, Observed& observed) {
  if (!model) return;
  observed.context.model = *model;
  if (model->starts_with('/')) add_place(observed, *model);
}

std::optional<std::int64_t> rounded_count(std::optional<double> count) {
  if (!count || !(*count >= 0 && *count < 1e15)) return std::nullopt;
  return std::llround(*count);
}

// Returns the bytes of all complete elements of a list, with commas, that `rest` begins with.
std::size_t skip_elements(std::string_view rest) {
  std::size_t taken = 0;
  while (true) {
    const std::size_t at = rest.find_first_not_of(" \t\r\n,", taken);
    if (at == std::string_view::npos || rest[at] == ']' || rest[at] == '}') return taken;
    JsonValueEnd end;
    end.scalar = std::string_view("{[\"").find(rest[at]) == std::string_view::npos;
    const std::size_t length = end.find(rest.substr(at));
    if (length == std::string_view::npos) return taken;
    taken = at + length;
  }
}

// Names the loads, and adds their errors and warnings. A single load's tokens are those of the
// whole.
void finish_loads(Observed& observed) {
  name_by_load(observed.cases);
  for (ObservedCase& load : observed.cases) {
    if (has_answers(load)) {
      if (load.generated_tokens == 0) fail_load(load, "no token was generated");
      // A gate may allow some, so any other error of the run comes first.
      if (count_fact(load, k_failed_requests).value_or(0) > 0)
        fail_load(load, failed_requests_text(load));
      if (load.facts.contains(k_completed_requests) && !load.facts.contains(k_failed_requests))
        add_warning(observed, "{}: it does not say how many requests failed", load.name);
    }
    if (load.error) observed.errors.push_back(load.name + ": " + *load.error);
  }
  copy_tokens_of_only_case(observed);
  if (observed.cases.size() != 1) return;
  ObservedCase& only = observed.cases.front();
  observed.timings = only.timings;
  std::ranges::move(std::exchange(only.latencies, {}), std::back_inserter(observed.latencies));
}

std::size_t count_runs(const Observed& result, const config::WantedLoad& wanted) {
  return static_cast<std::size_t>(std::ranges::count_if(
      result.cases, [&](const ObservedCase& load) { return has_load(load, wanted); }));
}

std::vector<std::int64_t> list_concurrencies(const Observed& result) {
  std::set<std::int64_t> concurrencies;
  for (const ObservedCase& load : result.cases) {
    const auto concurrency = rounded_count(concurrency_of(load));
    if (rate_of(load) || concurrency.value_or(0) < 1) return {};
    concurrencies.insert(*concurrency);
  }
  if (result.cases.size() < 2 || concurrencies.size() != result.cases.size()) return {};
  return {concurrencies.begin(), concurrencies.end()};
}

// Makes a report of the load that the gate wants. Fails if it has an error, failed requests beyond
// the limit, or other settings.
Result<profile::EngineReport> make_load_report(std::string_view format, const Output& output) {
  WEIR_TRY(const auto observed, read_complete(format, output));
  WEIR_TRY(const ObservedCase* run, choose_run(observed, output.wanted_load));
  const ObservedCase& load = *run;
  if (load.error && *load.error != failed_requests_text(load))
    return fail(Code::data, "{}", *load.error);
  // With failed requests, the figures are those of another load.
  WEIR_TRY(const std::int64_t failed_requests, count_failed(load, output.wanted_load));
  profile::EngineReport report;
  report.warnings = observed.warnings;
  if (failed_requests > 0)
    report.warnings.push_back(failed_requests_text(load) + ", as the limit allows");
  WEIR_CHECK(check_load(load, output.wanted_load, report.warnings));
  const std::string settings = load_text(load, output.wanted_load);
  if (settings.empty()) {
    return fail(Code::data,
                "not judged: it does not say the load. Give it in weir.yaml (prompts: {{NAME: "
                "{{concurrency: N}}}}, or rate: N)");
  }
  report.load = settings;
  for (const ObservedTiming& rate : load.timings) {
    if (rate.mean && unit::find_metric(rate.metric.name) == rate.metric)
      report.times.push_back({rate.metric, {*rate.mean}});
  }
  const bool is_only = observed.cases.size() == 1;
  for (const ObservedLatency& latency : is_only ? observed.latencies : load.latencies) {
    const auto metric = judged_metric(latency);
    if (!metric || latency.seconds <= 0) continue;
    const auto same = [&](const auto& series) { return series.metric == *metric; };
    if (!std::ranges::any_of(report.times, same))
      report.times.push_back({*metric, {latency.seconds}});
  }
  if (report.times.empty()) return fail(Code::data, "it has no rate and no latency ({})", format);
  if (output.wanted_load.may_fail) {
    report.times.push_back(
        {*unit::find_metric(unit::k_failed_requests), {static_cast<double>(failed_requests)}});
  }
  report.model = observed.context.model;
  report.engine_build = observed.context.engine_build;
  if (const auto completed = printed_number(look_up(load.facts, k_completed_requests, "")))
    report.requests = static_cast<std::int64_t>(*completed);
  report.prompt_tokens_per_request = tokens_per_request(load.prompt_tokens, report.requests);
  report.generated_tokens_per_request = tokens_per_request(load.generated_tokens, report.requests);
  return report;
}

// Makes a report of a whole set of benchmarks. Its time is the sum over all benchmarks.
Result<profile::EngineReport> make_benchmark_report(std::string_view format, const Output& output) {
  // Enough for a spread, and few enough to be stored.
  constexpr std::size_t k_max_samples = 100;
  WEIR_TRY(const Observed observed, read_complete(format, output));
  if (!observed.errors.empty())
    return fail(Code::data, "a benchmark failed: {}", observed.errors.front());
  profile::EngineReport report;
  report.warnings = observed.warnings;
  std::vector<double> sums;
  std::vector<std::string> names;  // their hash shows if the set of benchmarks changes
  std::size_t fewest = k_max_samples;
  for (const ObservedCase& benchmark : observed.cases) {
    if (benchmark.timings.empty() || benchmark.timings.front().samples.empty())
      return fail(Code::data, "{}: it has no time", benchmark.name);
    fewest = std::min(fewest, benchmark.timings.front().samples.size());
    names.push_back(benchmark.name);
  }
  for (const ObservedCase& benchmark : observed.cases) {
    // Benchmarks repeat until they took long enough, so each has another number of samples.
    std::vector<double> samples = benchmark.timings.front().samples;
    const std::string name = unit::work_name("op:", benchmark.name);
    const auto wanted = [&](const auto& pattern) { return text::glob_match(pattern, name); };
    samples.resize(std::min(samples.size(), k_max_samples));
    if (std::ranges::any_of(output.works, wanted) && unit::find_metric(name))
      report.times.push_back({*unit::find_metric(name), samples});
    sums.resize(fewest);
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += samples[i];
  }
  report.times.push_back({*unit::find_metric("iteration_seconds"), std::move(sums)});
  std::ranges::sort(names);
  report.output_digest = hash_hex(text::join(names, "\n"));
  return report;
}

}  // namespace weir::adapters
