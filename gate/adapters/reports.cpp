// What an engine that is gated reports: of what its output says as a profile, and llama-bench's
// JSON itself, of which nothing is passed over: what is missing or makes no sense is an error.

#include "gate/adapters/own_counts.hpp"
#include "gate/adapters/readers.hpp"

namespace weir::adapters {
namespace {

// Metrics of weir's own alone: a format's other figures are for `weir profile`.
void take_times(const Observed& observed, profile::EngineReport& report) {
  for (const auto& timing : observed.timings) {
    if (unit::find_metric(timing.metric.name) != timing.metric) continue;
    std::vector<double> samples = timing.samples;
    if (samples.empty() && timing.mean) samples.push_back(*timing.mean);
    if (!samples.empty()) report.times.push_back({timing.metric, std::move(samples)});
  }
}

void take_counts(const Observed& observed, const profile::Asked& asked,
                 profile::EngineReport& report) {
  for (const auto& count : observed.counts) {
    if (count.values.empty() || unit::find_metric(count.metric.name) != count.metric) continue;
    // What nobody can say the tokens of is in the report's warnings.
    std::ignore = add_own_count(report, count.metric, count.values, false, asked);
  }
}

bool wanted(const Output& output, const std::string& name) {
  return std::ranges::any_of(
      output.works, [&](const std::string& pattern) { return text::glob_match(pattern, name); });
}

constexpr std::string_view k_buffer_time = "buffer:";

// Single ops of the engine's own profile, as limits name them, a token: their time of a timed pass,
// their calls else. Names that become one metric are added up.
void take_works(const Observed& observed, const Output& output, profile::EngineReport& report) {
  using observed::GroupBy;
  const auto of_ops = [](const std::string& pattern) { return !pattern.starts_with("buffer"); };
  if (std::ranges::none_of(output.works, of_ops)) return;
  if (observed.ops.empty()) {
    report.warnings.push_back(
        "the engine printed no table of its ops, so none is counted: its profile has to be turned "
        "on (profile_args), and it may have none for this architecture");
  }
  const bool timed = output.pass == profile::Pass::timed;
  for (const auto& [by, time, calls] : {std::tuple{GroupBy::op, "op:", "op_calls:"},
                                        {GroupBy::kernel, "kernel:", "kernel_calls:"}}) {
    std::map<std::string, double> sums;
    for (const auto& one : observed::op_totals_per_token(observed, by)) {
      const std::string name = unit::work_name(timed ? time : calls, one.name);
      const auto& value = timed ? one.seconds : one.calls;
      if (value && unit::find_metric(name) && wanted(output, name)) sums[name] += *value;
    }
    for (const auto& [name, sum] : sums) {
      if (timed) {
        report.times.push_back({*unit::find_metric(name), {sum}});
      } else if (sum == std::floor(sum) && sum < 1e15) {
        report.counts[name] = static_cast<std::int64_t>(sum);
      } else {
        report.warnings.push_back(
            fmt::format("{}: {:.4g} a token: not the same for each, so not counted", name, sum));
      }
    }
  }
}

// Command buffers by label: how many a token takes wherever the engine prints them, the device's
// time in those that limits name in a timed pass. Labels that become one metric are added up.
void take_buffers(const Observed& observed, const Output& output, profile::EngineReport& report) {
  const bool timed = output.pass == profile::Pass::timed;
  const bool named = std::ranges::any_of(output.works, [](const std::string& pattern) {
    return pattern.starts_with(k_buffer_time) || pattern.starts_with(unit::k_buffers);
  });
  const observed::BuffersOfTokens found = observed::buffers_per_token(observed);
  if (found.labels.empty() || !found.whole) {
    if (!observed.buffers.empty() || named) {
      report.warnings.push_back(fmt::format(
          "command buffers are not counted by label: {}",
          observed.buffers.empty() ? "the engine printed no table of them, which has to be turned "
                                     "on (hf2q: MLX_PROFILE_CB=1)"
          : found.labels.empty()   ? "the engine does not tell which are of a generated token"
                                   : "the engine does not list all of them"));
    }
    if (found.labels.empty() || !timed) return;
  }
  std::map<std::string, double> seconds;
  for (const observed::BuffersPerToken& one : found.labels) {
    const std::string time = unit::work_name(k_buffer_time, one.label);
    const std::string name = unit::work_name(unit::k_buffers, one.label);
    if (!unit::find_metric(name)) continue;  // no label
    if (timed) {
      if (one.seconds && wanted(output, time)) seconds[time] += *one.seconds;
    } else {
      Rational& sum = report.shares[name];
      sum = sum.plus(one.buffers).value_or(sum);
    }
  }
  for (const auto& [name, sum] : seconds) {
    report.times.push_back({*unit::find_metric(name), {sum}});
  }
}

// An engine that falls back to the CPU says so nowhere but in the backend that it names.
std::optional<std::string> refutation_of(const Observed& observed, const Output& output) {
  const auto& backend = observed.context.backend;
  if (!backend || output.device.empty() || output.device == "cpu") return std::nullopt;
  if (text::lower(*backend) != "cpu") return std::nullopt;
  return fmt::format("the engine reports the backend {}: the CPU did the work", *backend);
}

// As many tests as were asked for, each of the asked lengths and depth.
Result<void> check_tests(const Observed& observed, const profile::Asked& asked) {
  const std::size_t wanted = (asked.prompt_tokens > 0 ? 1U : 0U) + (asked.tokens > 0 ? 1U : 0U);
  if (observed.cases.size() != wanted) {
    return fail(Code::data,
                "llama-bench reports {} results, expected {} (it adds up flags that stand twice)",
                observed.cases.size(), wanted);
  }
  for (const auto& test : observed.cases) {
    const bool decode = test.generated_tokens.has_value();
    const auto tokens = decode ? test.generated_tokens : test.prompt_tokens;
    if (tokens != (decode ? asked.tokens : asked.prompt_tokens) ||
        test.depth.value_or(0) != asked.depth || (decode && test.prompt_tokens)) {
      return fail(Code::data, "llama-bench reports a test {} that was not asked for", test.name);
    }
  }
  return {};
}

// llama-bench -o json and -o jsonl.
//
// Rates are made from samples_ns: avg_ts is a mean of rates, which one disturbed repetition spoils.
// What it says of devices can only refute: it names those present, not those used.
constexpr std::size_t k_most_results = 64;

// One test of llama-bench: a prompt alone (prefill) or tokens alone (decode).
struct BenchTest {
  std::int64_t prompt_tokens = 0, tokens = 0, depth = 0;
  std::vector<double> seconds;
  std::string model, build, refuted;
};

std::string words(std::int64_t prompt_tokens, std::int64_t tokens) {
  if (tokens == 0) return fmt::format("prompt of {} tokens", prompt_tokens);
  if (prompt_tokens == 0) return fmt::format("{} tokens", tokens);
  return fmt::format("prompt of {} tokens and {} tokens", prompt_tokens, tokens);
}

std::string describe_model(JsonReader& read) {
  std::string model = shown_text(read.optional_string("model_type").value_or(""));
  for (const auto& [key, what] :
       {std::pair{"model_n_params", "parameters"}, {"model_size", "bytes"}}) {
    if (const auto value = read.optional_integer(key))
      model += fmt::format(", {} {}", *value, what);
  }
  return model;
}

std::string refutation(JsonReader& read) {
  if (read.optional_integer("n_gpu_layers") == 0) {
    return "llama-bench reports n_gpu_layers 0: no layer was put on the device";
  }
  if (read.optional_string("devices") == "none") {
    return "llama-bench reports devices \"none\": no device was used";
  }
  // llama.cpp b4753 and older ask for gpu_info before backends are loaded, so that it may be empty.
  // (A build of a shallow clone has a number of 1.)
  const auto build = read.optional_integer("build_number").value_or(0);
  const bool asks_too_early = build > 1000 && build <= 4753;
  if (read.optional_string("gpu_info") == "" && !asks_too_early) {
    return "llama-bench reports no GPU (gpu_info is empty): the CPU did the work";
  }
  return "";
}

Result<BenchTest> read_test(const Json& json) {
  JsonReader read(json, "llama-bench's result");
  BenchTest test;
  test.prompt_tokens = read.integer("n_prompt");
  test.tokens = read.integer("n_gen");
  test.depth = read.optional_integer("n_depth").value_or(0);
  for (const Json& sample : read.array("samples_ns")) {
    const double nanoseconds = sample.is_number() ? sample.get<double>() : 0;
    if (!std::isfinite(nanoseconds) || nanoseconds <= 0) {
      return fail(Code::data, "llama-bench reports a repetition that took {} ns",
                  shown_text(dump_json(sample)));
    }
    test.seconds.push_back(nanoseconds * 1e-9);
  }
  const auto average = read.optional_number("avg_ts");
  if (average && *average <= 0) {
    return fail(Code::data, "llama-bench reports {} tokens a second", *average);
  }
  test.model = describe_model(read);
  test.build = shown_text(read.optional_string("build_commit").value_or(""));
  test.refuted = refutation(read);
  if (auto problem = read.problem()) return tl::unexpected(std::move(*problem));
  return test;
}

// All results in one stream, as an array or as an object a line.
Result<std::vector<BenchTest>> read_tests(std::string_view text) {
  std::vector<BenchTest> tests;
  std::optional<Error> problem;
  const auto take_one = [&](const Json& json) {
    if (!json.is_object() || !json.contains("n_prompt") || !json.contains("n_gen")) return true;
    auto test = read_test(json);
    if (!test) {
      problem = std::move(test).error();
      return false;
    }
    tests.push_back(std::move(*test));
    return tests.size() <= k_most_results;
  };
  const auto broken = for_each_document(text, [&](const Json& json) {
    if (!json.is_array()) return take_one(json);
    return std::all_of(json.begin(), json.end(), take_one);
  });
  if (problem) return tl::unexpected(std::move(*problem));
  if (broken) return fail(Code::data, "llama-bench's JSON cannot be read: {}", *broken);
  return tests;
}

// "…/libggml-cpu-zen4.so" -> "zen4": which of its CPU libraries the engine took.
std::optional<std::string> cpu_variant(std::string_view err) {
  Scan scan(err);
  const auto name = scan.until("libggml-cpu-") ? scan.until(".") : std::nullopt;
  const auto fits = [](char c) { return text::is_alphanumeric(c) || c == '_' || c == '-'; };
  if (!name || name->empty() || name->size() > 64 || !std::ranges::all_of(*name, fits)) {
    return std::nullopt;
  }
  return std::string(*name);
}

Result<void> check_repeats(const BenchTest& test, const profile::Asked& asked) {
  if (std::cmp_not_equal(test.seconds.size(), asked.repeats)) {
    return fail(Code::data, "llama-bench reports {} repetitions of its {}, and {} were asked for",
                test.seconds.size(), words(test.prompt_tokens, test.tokens), asked.repeats);
  }
  if (test.depth != asked.depth) {
    return fail(Code::data, "llama-bench ran at depth {}, and {} was asked for", test.depth,
                asked.depth);
  }
  return {};
}

void add_rate(profile::EngineReport& report, const BenchTest& test) {
  const bool decode = test.tokens > 0;
  const std::int64_t tokens = decode ? test.tokens : test.prompt_tokens;
  auto& series = report.times.emplace_back();
  series.metric =
      *unit::find_metric(decode ? "decode_tokens_per_second" : "prefill_tokens_per_second");
  for (const double seconds : test.seconds) {
    series.samples.push_back(static_cast<double>(tokens) / seconds);
  }
  if (decode) {
    report.generated_tokens = tokens;
  } else {
    report.prompt_tokens = tokens;
  }
}

}  // namespace

Result<profile::EngineReport> report_of(std::string_view format, const Output& output) {
  WEIR_TRY(const auto observed, read_as(format, {output.out, output.err}));
  if (observed.truncated) return fail(Code::data, "the engine's output ends in the middle");
  profile::EngineReport report;
  take_times(observed, report);
  if (!observed.errors.empty() && report.times.empty()) {
    return fail(Code::data, "the engine reports: {}", observed.errors.front());
  }
  if (format == "llama-bench-table") WEIR_CHECK(check_tests(observed, output.asked));
  report.generated_tokens = observed.generated_tokens;
  take_counts(observed, output.asked, report);
  take_works(observed, output, report);
  take_buffers(observed, output, report);
  const bool timed = output.pass == profile::Pass::timed;
  if (report.times.empty() && (timed || (report.counts.empty() && report.shares.empty()))) {
    return fail(Code::data, "the engine's output has no {} ({}){}",
                timed ? "rate or time" : "rate, time or count", format,
                report.warnings.empty() ? "" : "; " + report.warnings.front());
  }
  report.prompt_tokens = observed.prompt_tokens;
  report.model = observed.context.model;
  report.engine_build = observed.context.engine_build;
  report.device_refuted = refutation_of(observed, output);
  report.warnings.insert(report.warnings.end(), observed.warnings.begin(), observed.warnings.end());
  for (std::string& doubt : observed::cross_checks(observed)) {
    report.warnings.push_back("the engine's own profile: " + std::move(doubt));
  }
  return report;
}

Result<profile::EngineReport> read_llama_bench(const Output& output) {
  WEIR_TRY(auto tests, read_tests(output.out));
  if (tests.empty()) {  // -oe json writes to the other stream
    if (auto other = read_tests(output.err); other && !other->empty()) tests = std::move(*other);
  }
  if (tests.empty()) {
    const std::string text = text::printable(output.out.substr(0, 800));
    const std::string seen = shown_text(text::first_line(text::trim(text)));
    if (seen.empty()) return fail(Code::data, "llama-bench printed nothing on standard output");
    return fail(Code::data,
                "no llama-bench result in the output, which begins with \"{}\": is \"-o, json\" or "
                "\"-o, jsonl\" among the arguments?",
                seen);
  }
  std::vector<std::pair<std::int64_t, std::int64_t>> wanted;
  if (output.asked.prompt_tokens > 0) wanted.emplace_back(output.asked.prompt_tokens, 0);
  if (output.asked.tokens > 0) wanted.emplace_back(0, output.asked.tokens);
  if (tests.size() != wanted.size()) {
    return fail(Code::data,
                "llama-bench reports {}{} results, expected {} (it adds up flags that stand twice)",
                tests.size() > k_most_results ? "more than " : "",
                std::min(tests.size(), k_most_results), wanted.size());
  }
  profile::EngineReport report;
  for (const auto& want : wanted) {
    const BenchTest* test = first_of(tests, [&](const BenchTest& one) {
      return std::pair(one.prompt_tokens, one.tokens) == want;
    });
    if (test == nullptr) {
      return fail(Code::data, "llama-bench reports no result for the {} asked for, but for a {}",
                  words(want.first, want.second),
                  words(tests.front().prompt_tokens, tests.front().tokens));
    }
    WEIR_CHECK(check_repeats(*test, output.asked));
    add_rate(report, *test);
    if (!test->model.empty()) report.model = test->model;
    if (!test->build.empty()) report.engine_build = test->build;
    if (output.device != "cpu" && !test->refuted.empty()) report.device_refuted = test->refuted;
  }
  report.cpu_variant = cpu_variant(output.err);
  if (output.err.find("asserts enabled") != std::string_view::npos) {
    report.warnings.emplace_back(k_asserts);
  }
  return report;
}

}  // namespace weir::adapters
