// llama-bench -o json and -o jsonl (llama.cpp).
//
// Rates are made from samples_ns: avg_ts is a mean of rates, which one disturbed repetition spoils.
// What it says of devices can only refute: it names those present, not those used.
#include "gate/adapters/llama_bench.hpp"

#include <algorithm>
#include <cmath>

#include "gate/adapters/documents.hpp"
#include "gate/base/text.hpp"

namespace weir::adapters {
namespace {

constexpr std::size_t k_most_results = 64;
constexpr std::size_t k_longest_text = 200;

// One test of llama-bench: a prompt alone (prefill) or tokens alone (decode).
struct Test {
  std::int64_t prompt_tokens = 0;
  std::int64_t tokens = 0;
  std::int64_t depth = 0;
  std::vector<double> seconds;
  std::string model;
  std::string build;
  std::string refuted;
};

std::string cut(std::string_view text) { return text::printable(text.substr(0, k_longest_text)); }

std::string words(std::int64_t prompt_tokens, std::int64_t tokens) {
  if (tokens == 0) return fmt::format("prompt of {} tokens", prompt_tokens);
  if (prompt_tokens == 0) return fmt::format("{} tokens", tokens);
  return fmt::format("prompt of {} tokens and {} tokens", prompt_tokens, tokens);
}

std::string describe_model(JsonReader& read) {
  std::string model = cut(read.optional_string("model_type").value_or(""));
  if (const auto parameters = read.optional_integer("model_n_params")) {
    model += fmt::format(", {} parameters", *parameters);
  }
  if (const auto bytes = read.optional_integer("model_size")) {
    model += fmt::format(", {} bytes", *bytes);
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
  if (read.optional_string("gpu_info") == "") {
    return "llama-bench reports no GPU (gpu_info is empty): the CPU did the work";
  }
  return "";
}

Result<Test> read_test(const Json& json) {
  JsonReader read(json, "llama-bench's result");
  Test test;
  test.prompt_tokens = read.integer("n_prompt");
  test.tokens = read.integer("n_gen");
  test.depth = read.optional_integer("n_depth").value_or(0);
  for (const Json& sample : read.array("samples_ns")) {
    const double nanoseconds = sample.is_number() ? sample.get<double>() : 0;
    if (!std::isfinite(nanoseconds) || nanoseconds <= 0) {
      return fail(Code::data, "llama-bench reports a repetition that took {} ns",
                  cut(dump_json(sample)));
    }
    test.seconds.push_back(nanoseconds * 1e-9);
  }
  const auto average = read.optional_number("avg_ts");
  if (average && *average <= 0) {
    return fail(Code::data, "llama-bench reports {} tokens a second", *average);
  }
  test.model = describe_model(read);
  test.build = cut(read.optional_string("build_commit").value_or(""));
  test.refuted = refutation(read);
  if (auto problem = read.problem()) return tl::unexpected(std::move(*problem));
  return test;
}

bool is_result(const Json& json) {
  return json.is_object() && json.contains("n_prompt") && json.contains("n_gen");
}

// All results in one stream, as an array or as an object a line.
Result<std::vector<Test>> read_tests(std::string_view text) {
  std::vector<Test> tests;
  std::optional<Error> problem;
  const auto take_one = [&](const Json& json) {
    if (!is_result(json)) return true;
    auto test = read_test(json);
    if (!test) {
      problem = std::move(test).error();
      return false;
    }
    tests.push_back(std::move(*test));
    return tests.size() <= k_most_results;
  };
  const auto found = for_each_document(text, [&](const Json& json) {
    if (!json.is_array()) return take_one(json);
    return std::all_of(json.begin(), json.end(), take_one);
  });
  if (problem) return tl::unexpected(std::move(*problem));
  if (found.broken) {
    return fail(Code::data, "llama-bench's JSON can not be read: {}", *found.broken);
  }
  return tests;
}

std::string beginning(std::string_view text) {
  const auto first = text::lines(text::printable(text.substr(0, 4 * k_longest_text)));
  for (const std::string& line : first) {
    if (!text::trim(line).empty()) return cut(text::trim(line));
  }
  return "";
}

// "…/libggml-cpu-zen4.so" -> "zen4": which of its CPU libraries the engine took.
std::optional<std::string> cpu_variant(std::string_view err) {
  constexpr std::string_view k_before = "libggml-cpu-";
  const std::size_t at = err.find(k_before);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view rest = err.substr(at + k_before.size());
  const std::size_t end =
      rest.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-");
  const std::string_view name = rest.substr(0, end);
  if (name.empty() || name.size() > 64 || end == std::string_view::npos || rest[end] != '.') {
    return std::nullopt;
  }
  return std::string(name);
}

Result<bool> check_repeats(const Test& test, const profile::Asked& asked) {
  if (std::cmp_not_equal(test.seconds.size(), asked.repeats)) {
    return fail(Code::data, "llama-bench reports {} repetitions of its {}, and {} were asked for",
                test.seconds.size(), words(test.prompt_tokens, test.tokens), asked.repeats);
  }
  if (test.depth != asked.depth) {
    return fail(Code::data, "llama-bench ran at depth {}, and {} was asked for", test.depth,
                asked.depth);
  }
  return true;
}

void add_rate(profile::EngineReport& report, const Test& test) {
  const bool decode = test.tokens > 0;
  const auto tokens = static_cast<double>(decode ? test.tokens : test.prompt_tokens);
  const auto metric =
      unit::find_metric(decode ? "decode_tokens_per_second" : "prefill_tokens_per_second");
  profile::EngineReport::Series series{metric.value_or(unit::Metric{}), {}};
  for (const double seconds : test.seconds) series.samples.push_back(tokens / seconds);
  report.times.push_back(std::move(series));
  (decode ? report.generated_tokens : report.prompt_tokens) =
      decode ? test.tokens : test.prompt_tokens;
}

}  // namespace

Result<profile::EngineReport> read_llama_bench(const Output& output) {
  WEIR_TRY(auto tests, read_tests(output.out));
  if (tests.empty()) {  // -oe json writes to the other stream
    if (auto other = read_tests(output.err); other && !other->empty()) tests = std::move(*other);
  }
  if (tests.empty()) {
    const std::string seen = beginning(output.out);
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
                "llama-bench reports {}{} results, expected {} (it adds up flags that "
                "stand twice)",
                tests.size() > k_most_results ? "more than " : "",
                std::min(tests.size(), k_most_results), wanted.size());
  }
  profile::EngineReport report;
  for (const auto& want : wanted) {
    const std::int64_t prompt_tokens = want.first;
    const std::int64_t tokens = want.second;
    const auto test = std::find_if(tests.begin(), tests.end(), [&](const Test& one) {
      return one.prompt_tokens == prompt_tokens && one.tokens == tokens;
    });
    if (test == tests.end()) {
      return fail(Code::data, "llama-bench reports no result for the {} asked for, but for a {}",
                  words(prompt_tokens, tokens),
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
    report.warnings.emplace_back(
        "the engine was built with asserts enabled: its times are not "
        "those of a release build");
  }
  return report;
}

}  // namespace weir::adapters
