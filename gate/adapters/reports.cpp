// Makes the report of a gated engine: from an Observed, or from llama-bench's JSON directly.
// llama-bench's JSON is read strictly: missing or nonsensical values are errors.

#include "gate/adapters/own_counts.hpp"
#include "gate/adapters/readers.hpp"

namespace weir::adapters {
namespace {

// Takes times of weir's own metrics; a format's other figures are for `weir profile`.
void add_times(const Observed& observed, profile::EngineReport& report) {
  for (const auto& timing : observed.timings) {
    if (unit::find_metric(timing.metric.name) != timing.metric) continue;
    std::vector<double> samples = timing.samples;
    if (samples.empty() && timing.mean) samples.push_back(*timing.mean);
    if (!samples.empty()) report.times.push_back({timing.metric, std::move(samples)});
  }
}

void add_counts(const Observed& observed, const profile::RunParameters& request,
                profile::EngineReport& report) {
  for (const auto& count : observed.counts) {
    if (count.values.empty() || unit::find_metric(count.metric.name) != count.metric) continue;
    // If the counted tokens are unknown, the reason is in the report's `uncounted`.
    std::ignore =
        add_own_count(report, count.metric, count.values, /*of_all_tokens=*/false, request);
  }
}

bool matches_works(const Output& output, const std::string& name) {
  return std::ranges::any_of(
      output.works, [&](const std::string& pattern) { return text::glob_match(pattern, name); });
}

constexpr std::string_view k_buffer_time = "buffer:";

// Adds single ops and kernels of the engine's own profile that limits name, per token: times in a
// timed pass, calls otherwise. Names that become the same metric are added up.
void add_works(const Observed& observed, const Output& output, profile::EngineReport& report) {
  using observed::GroupBy;
  const auto names_ops = [](const std::string& pattern) { return !pattern.starts_with("buffer"); };
  if (std::ranges::none_of(output.works, names_ops)) return;
  if (observed.ops.empty()) {
    report.warnings.push_back(
        "the engine printed no table of its ops, so none is counted: its profile has to be turned "
        "on (profile_args), and it may have none for this architecture");
  }
  const bool timed = output.pass == profile::Pass::timed;
  for (const auto& [by, time, calls] : {std::tuple{GroupBy::op, "op:", "op_calls:"},
                                        {GroupBy::kernel, "kernel:", "kernel_calls:"}}) {
    std::map<std::string, double> sums;
    for (const auto& total : observed::op_totals_per_token(observed, by)) {
      const std::string name = unit::work_name(timed ? time : calls, total.name);
      const auto& value = timed ? total.seconds : total.calls;
      if (value && unit::find_metric(name) && matches_works(output, name)) sums[name] += *value;
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

// Adds command buffers by label: how many a token takes, or in a timed pass the device's time in
// those that limits name. Labels that become the same metric are added up.
void add_buffers(const Observed& observed, const Output& output, profile::EngineReport& report) {
  const bool timed = output.pass == profile::Pass::timed;
  const bool has_limit = std::ranges::any_of(output.works, [](const std::string& pattern) {
    return pattern.starts_with(k_buffer_time) || pattern.starts_with(unit::k_buffers);
  });
  const observed::BuffersOfTokens buffers = observed::buffers_per_token(observed);
  if (buffers.labels.empty() || !buffers.is_complete) {
    if (!observed.buffers.empty() || has_limit) {
      const char* reason = "the engine does not list all of them";
      if (buffers.labels.empty())
        reason = "the engine does not tell which are of a generated token";
      if (observed.buffers.empty()) {
        reason =
            "the engine printed no table of them, which has to be turned on (hf2q: "
            "MLX_PROFILE_CB=1)";
      }
      report.warnings.push_back(
          fmt::format("command buffers are not counted by label: {}", reason));
    }
    if (buffers.labels.empty() || !timed) return;
  }
  std::map<std::string, double> seconds;
  for (const observed::BuffersPerToken& label_buffers : buffers.labels) {
    const std::string time = unit::work_name(k_buffer_time, label_buffers.label);
    const std::string name = unit::work_name(unit::k_buffers, label_buffers.label);
    if (!unit::find_metric(name)) continue;  // no label
    if (timed) {
      if (label_buffers.seconds && matches_works(output, time))
        seconds[time] += *label_buffers.seconds;
    } else {
      Rational& sum = report.shares[name];
      sum = sum.plus(label_buffers.buffers).value_or(sum);
    }
  }
  for (const auto& [name, sum] : seconds) {
    report.times.push_back({*unit::find_metric(name), {sum}});
  }
}

// Returns why the work did not run on the requested device. An engine that falls back to the CPU
// shows this only by the backend that it names.
std::optional<std::string> refutation_reason(const Observed& observed, const Output& output) {
  const auto& backend = observed.context.backend;
  if (!backend || output.device.empty() || output.device == "cpu") return std::nullopt;
  if (text::lower(*backend) != "cpu") return std::nullopt;
  return fmt::format("the engine reports the backend {}: the CPU did the work", *backend);
}

// Fails unless llama-bench's text has as many tests as lengths were requested (of the prompt, and
// of the generated tokens), each of a requested length and depth.
Result<void> check_llama_bench_tests(const Observed& observed,
                                     const profile::RunParameters& request) {
  std::size_t expected = 0;
  if (request.prompt_tokens > 0) ++expected;
  if (request.tokens > 0) ++expected;
  if (observed.cases.size() != expected) {
    return fail(Code::data,
                "llama-bench reports {} results, expected {} (it adds up flags that stand twice)",
                observed.cases.size(), expected);
  }
  for (const auto& test : observed.cases) {
    const bool decode = test.generated_tokens.has_value();
    const auto tokens = decode ? test.generated_tokens : test.prompt_tokens;
    if (tokens != (decode ? request.tokens : request.prompt_tokens) ||
        test.depth.value_or(0) != request.depth || (decode && test.prompt_tokens)) {
      return fail(Code::data, "llama-bench reports a test {} that was not asked for", test.name);
    }
  }
  // One that stands twice would take the place of the other kind.
  const auto decodes = std::ranges::count_if(
      observed.cases, [](const auto& test) { return test.generated_tokens.has_value(); });
  const std::ptrdiff_t expected_decodes = request.tokens > 0 ? 1 : 0;
  if (decodes != expected_decodes) {
    return fail(Code::data, "llama-bench reports {} tests that generate tokens, expected {}",
                decodes, expected_decodes);
  }
  return {};
}

// llama-bench -o json and -o jsonl.
//
// Rates are made from samples_ns: avg_ts is a mean of rates, which one disturbed repetition spoils.
// It names the devices present, not those used, so it can only refute a device.
constexpr std::size_t k_max_results = 64;

// One test of llama-bench: a prompt alone (prefill) or tokens alone (decode).
struct BenchTest {
  std::int64_t prompt_tokens = 0, tokens = 0, depth = 0;
  std::vector<double> seconds;
  std::string model, build, refuted;
};

std::string describe_test(std::int64_t prompt_tokens, std::int64_t tokens) {
  if (tokens == 0) return fmt::format("prompt of {} tokens", prompt_tokens);
  if (prompt_tokens == 0) return fmt::format("{} tokens", tokens);
  return fmt::format("prompt of {} tokens and {} tokens", prompt_tokens, tokens);
}

// Returns the model's type, parameters and bytes as text.
std::string describe_model(JsonReader& read) {
  std::string model = display_text(read.optional_string("model_type").value_or(""));
  for (const auto& [key, what] :
       {std::pair{"model_n_params", "parameters"}, {"model_size", "bytes"}}) {
    if (const auto value = read.optional_integer(key))
      model += fmt::format(", {} {}", *value, what);
  }
  return model;
}

// Returns why a result cannot be of a GPU; "" if nothing speaks against it.
std::string find_refutation(JsonReader& read) {
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

// Reads one result of llama-bench's JSON: a test of one length, with a time per repetition. Fails
// if a field is missing, a time is not above 0, or the mean rate is not.
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
                  display_text(dump_json(sample)));
    }
    test.seconds.push_back(nanoseconds * 1e-9);
  }
  const auto average = read.optional_number("avg_ts");
  if (average && *average <= 0) {
    return fail(Code::data, "llama-bench reports {} tokens a second", *average);
  }
  test.model = describe_model(read);
  test.build = display_text(read.optional_string("build_commit").value_or(""));
  test.refuted = find_refutation(read);
  if (auto problem = read.problem()) return tl::unexpected(std::move(*problem));
  return test;
}

// Reads all results in a text: an array, or an object per line.
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
    return tests.size() <= k_max_results;
  };
  const auto broken = for_each_document(text, [&](const Json& json) {
    if (!json.is_array()) return take_one(json);
    return std::all_of(json.begin(), json.end(), take_one);
  });
  if (problem) return tl::unexpected(std::move(*problem));
  if (broken) return fail(Code::data, "llama-bench's JSON cannot be read: {}", *broken);
  return tests;
}

// Returns which CPU library the engine loaded: "zen4" of "…/libggml-cpu-zen4.so".
std::optional<std::string> cpu_variant(std::string_view err) {
  LineScanner scan(err);
  const auto name = scan.read_until("libggml-cpu-") ? scan.read_until(".") : std::nullopt;
  const auto fits = [](char c) { return text::is_alphanumeric(c) || c == '_' || c == '-'; };
  if (!name || name->empty() || name->size() > 64 || !std::ranges::all_of(*name, fits)) {
    return std::nullopt;
  }
  return std::string(*name);
}

// Fails if a test has other repetitions or another depth than requested.
Result<void> check_repeats(const BenchTest& test, const profile::RunParameters& request) {
  if (std::cmp_not_equal(test.seconds.size(), request.repeats)) {
    return fail(Code::data, "llama-bench reports {} repetitions of its {}, and {} were asked for",
                test.seconds.size(), describe_test(test.prompt_tokens, test.tokens),
                request.repeats);
  }
  if (test.depth != request.depth) {
    return fail(Code::data, "llama-bench ran at depth {}, and {} was asked for", test.depth,
                request.depth);
  }
  return {};
}

// Adds the rate of a test, a sample per repetition, and its number of tokens.
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

// Turns an engine's output into a report: times, counts, tokens and facts. Fails if the output is
// cut, or lacks what this pass needs.
Result<profile::EngineReport> make_report(std::string_view format, const Output& output) {
  WEIR_TRY(const auto observed, read_as(format, {output.out, output.err}));
  if (observed.truncated) return fail(Code::data, "the engine's output ends in the middle");
  WEIR_CHECK(check_all_parts_read(observed));
  profile::EngineReport report;
  add_times(observed, report);
  if (!observed.errors.empty() && report.times.empty()) {
    return fail(Code::data, "the engine reports: {}", observed.errors.front());
  }
  if (format == "llama-bench-table")
    WEIR_CHECK(check_llama_bench_tests(observed, output.parameters));
  report.generated_tokens = observed.generated_tokens;
  add_counts(observed, output.parameters, report);
  add_works(observed, output, report);
  add_buffers(observed, output, report);
  const bool timed = output.pass == profile::Pass::timed;
  if (report.times.empty() && (timed || (report.counts.empty() && report.shares.empty()))) {
    const char* missing = timed ? "rate or time" : "rate, time or count";
    const std::string why = report.warnings.empty() ? "" : "; " + report.warnings.front();
    return fail(Code::data, "the engine's output has no {} ({}){}", missing, format, why);
  }
  report.prompt_tokens = observed.prompt_tokens;
  report.model = observed.context.model;
  report.engine_build = observed.context.engine_build;
  report.device_refuted = refutation_reason(observed, output);
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
    const std::string beginning = display_text(text::first_line(text::trim(text)));
    if (beginning.empty())
      return fail(Code::data, "llama-bench printed nothing on standard output");
    return fail(Code::data,
                "no llama-bench result in the output, which begins with \"{}\": is \"-o, json\" or "
                "\"-o, jsonl\" among the arguments?",
                beginning);
  }
  std::vector<std::pair<std::int64_t, std::int64_t>> requested;
  if (output.parameters.prompt_tokens > 0)
    requested.emplace_back(output.parameters.prompt_tokens, 0);
  if (output.parameters.tokens > 0) requested.emplace_back(0, output.parameters.tokens);
  if (tests.size() != requested.size()) {
    return fail(Code::data,
                "llama-bench reports {}{} results, expected {} (it adds up flags that stand twice)",
                tests.size() > k_max_results ? "more than " : "",
                std::min(tests.size(), k_max_results), requested.size());
  }
  profile::EngineReport report;
  for (const auto& lengths : requested) {
    const BenchTest* test = find_first(tests, [&](const BenchTest& candidate) {
      return std::pair(candidate.prompt_tokens, candidate.tokens) == lengths;
    });
    if (test == nullptr) {
      return fail(Code::data, "llama-bench reports no result for the {} asked for, but for a {}",
                  describe_test(lengths.first, lengths.second),
                  describe_test(tests.front().prompt_tokens, tests.front().tokens));
    }
    WEIR_CHECK(check_repeats(*test, output.parameters));
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
