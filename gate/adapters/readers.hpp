// The list of formats, each defined in its own file, and helpers that their readers share. Used
// only by this module.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <tuple>

#include "gate/adapters/format.hpp"
#include "gate/adapters/json_pieces.hpp"
#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/observed/totals.hpp"

namespace weir::adapters {

// The formats in the order in which they are listed, and tried if several are equally sure of a
// text. A new format is added only here.
#define WEIR_FORMATS(F)                                                                           \
  F(weir_observed), F(weir_timeline), F(agave), F(llama_bench_json), F(llama_bench_table),        \
      F(llama_perf), F(llama_server), F(vk_perf), F(vk_sync), F(sched_debug), F(ggml_profile),    \
      F(ggml_profile_text), F(backend_ops), F(graph_ops), F(hf2q), F(mlx_lm), F(ollama), F(vllm), \
      F(sglang), F(aiperf), F(genai_perf), F(guidellm), F(inference_perf), F(evalscope),          \
      F(locust), F(google_benchmark), F(hyperfine), F(pytest_benchmark), F(tracy), F(prometheus), \
      F(chrome), F(batched_bench), F(serving_console), F(vllm_latency), F(vllm_throughput),       \
      F(nsys), F(nvprof), F(rocprof), F(torch_table), F(google_benchmark_console),                \
      F(aiperf_console), F(sglang_batch), F(torch_benchmark)
#define WEIR_FORMAT_NAME(name) k_##name
#define WEIR_FORMAT_ADDRESS(name) &k_##name
extern const Format WEIR_FORMATS(WEIR_FORMAT_NAME);
inline constexpr std::array k_formats_in_order{WEIR_FORMATS(WEIR_FORMAT_ADDRESS)};
#undef WEIR_FORMATS
#undef WEIR_FORMAT_NAME
#undef WEIR_FORMAT_ADDRESS

template <class List>
std::vector<std::string> list_names(const List& all) {
  return collect<std::string>(all, [](const auto& item) { return item.name; });
}

// Returns the rates, counts and tokens in the output. Fails with Code::data when the output is not
// of the format, ends in the middle, reports an error and no time, or has no time in a timed pass;
// llama-bench-table also when it has other tests than those requested.
[[nodiscard]] Result<profile::EngineReport> make_report(std::string_view format,
                                                        const Output& output);
// llama.cpp's llama-bench, -o json or jsonl: decode and prefill rates, one sample a repetition.
// Fails with Code::data unless there is exactly one result for each of prompt_tokens and tokens
// asked for that is not 0, with as many samples as repeats.
[[nodiscard]] Result<profile::EngineReport> read_llama_bench(const Output& output);
// Any engine: values found by regular expressions or JSON pointers that the config names.
// Expressions look at one line at a time (the first 64 KiB of it, colours removed) of standard
// output and, where nothing is found there, of standard error; pointers into each JSON document
// among the lines, in the same order. Fails with Code::data when nothing at all is found, a value
// is no number, a time is not above 0, a count is not whole, or a value that this pass is for is
// missing: times in a timed pass, counts in a counted one.
[[nodiscard]] Result<profile::EngineReport> read_generic(const Output& output);

// The most rows that are kept of a document; later ones are dropped with a warning.
constexpr std::size_t k_max_rows = 200'000;

void add_warning(Observed& observed, std::string warning);  // once
template <class... Args>
void add_warning(Observed& observed, fmt::format_string<Args...> format, Args&&... args) {
  add_warning(observed, fmt::format(format, std::forward<Args>(args)...));
}
// Counts a part of the document that was recognised, and read or not. The parts not read of a kind
// become one warning, an error if nothing at all was read, and fail a gate.
void add_read_parts(Observed& observed, std::string_view kind, std::int64_t parts = 1);
void add_unread_part(Observed& observed, std::string_view kind, std::string reason);
// Fails if a part was not read: a gate never takes a part for the whole.
[[nodiscard]] Result<void> check_all_parts_read(const Observed& observed);
// Returns true if the text has the mark of a format: "^A" must begin a line, "A & B" needs both.
[[nodiscard]] bool has_mark(const Printed& printed, std::string_view mark);
// Describes a text that no format recognises: the two nearest formats and the marks that it lacks,
// or "it looks like …" if weir has no reader for its tool. "" if nothing is near.
[[nodiscard]] std::string describe_nearest_formats(const Printed& printed);

// Adds a path or host name, once; published output hides it.
void add_place(Observed& observed, std::string place);

// Appends `row` to a list. Returns false, with a warning, if the list has k_max_rows already.
template <class T>
bool append_row_within_limit(std::vector<T>& rows, T row, Observed& observed) {
  if (rows.size() < k_max_rows) {
    rows.push_back(std::move(row));
    return true;
  }
  const char* warning =
      "it has more rows than weir keeps: only the first 200000 of a kind are read";
  if (observed.warnings.empty() || observed.warnings.back() != warning) {
    observed.warnings.emplace_back(warning);
  }
  return false;
}
// Appends an op, with the bytes and operations that follow from its shape. Returns false if its
// times, operations or bytes are negative or not finite.
bool append_valid_op(ObservedOp op, Observed& observed);
// Adds one call that took `seconds` to the row.
void add_call(ObservedOp& row, double seconds);

// Adds a sample of a metric. A sample that is not finite and above 0 is left out.
void add_sample(std::vector<ObservedTiming>& timings, std::string_view metric, double sample);
// Adds a sample to the whole, and to a part of it (null: none).
void add_sample(Observed& observed, ObservedCase* part, std::string_view metric, double sample);
ObservedTiming& find_or_add_timing(std::vector<ObservedTiming>& timings,
                                   const unit::Metric& metric);
ObservedCount& find_or_add_count(Observed& observed, std::string_view metric);
// A metric that weir does not have: a time in seconds.
unit::Metric custom_time_metric(std::string_view name);
unit::Metric find_time_metric(std::string_view name);  // weir's metric, else a custom one

// Warning for engines with asserts, which are slow.
inline constexpr const char* k_asserts =
    "the engine was built with asserts enabled: its times are not those of a release build";

void add_unknown_version(std::string_view version, std::string_view supported, Observed& observed);
// Marks it as truncated, with the warning that goes with it.
void mark_truncated(Observed& observed);

// An engine's report of one request; tokens of the prompt without those from the cache.
struct Request {
  std::optional<std::int64_t> prompt, cached, generated;
  std::optional<double> prompt_time, generate_time;
  double unit = 1;  // units of the times in one second
};
// Adds a request as a case, and its rates to the whole as well. `untimed`: generated tokens that
// are not in the generation time.
void add_request(const Request& request, std::int64_t untimed, Observed& observed);
// Sets the tokens of the whole to those of the case, if there is only one.
void copy_tokens_of_only_case(Observed& observed);

// For results of tools that load inference servers (load_results.cpp), each run a case.
//
// Adds a figure of a distribution of latencies: "mean", "median", "stddev", or "p99". Values that
// are no time are left out.
void add_latency_figure(std::vector<ObservedLatency>& latencies, std::string_view metric,
                        std::string_view figure, double seconds);
// Adds a latency by its key in results of vLLM and SGLang: "p99_ttft_ms", "mean_e2el_ms". Other
// keys are ignored.
void add_latency_by_key(std::vector<ObservedLatency>& latencies, const std::string& key, double ms);
// Sets the mean of a rate; 0 is a value.
void set_rate(ObservedCase& load, const char* metric, std::optional<double> rate);
// Copies members of an object that are texts, numbers or flags to the facts of the case.
void copy_facts(const Json& json, std::initializer_list<const char*> keys, ObservedCase& load);
// Facts of the case that readers of all tools set.
inline constexpr const char* k_completed_requests = "completed";
inline constexpr const char* k_failed_requests = "failed";
inline constexpr const char* k_not_streamed = "not streamed";
inline constexpr const char* k_unsaid_load = "load";  // of tools that never say it
// Sets the error of the run. The first one stays.
void fail_load(ObservedCase& load, std::string error);
// Keeps the numbers of completed and failed requests. A run without the number of failed ones is
// not judged unless the cell asks for a number.
void set_requests(ObservedCase& load, std::optional<std::int64_t> completed,
                  std::optional<std::int64_t> failed);
// Returns true unless no request was completed, so that latencies mean nothing.
[[nodiscard]] bool has_answers(const ObservedCase& load);
void set_model(const std::optional<std::string>& model, Observed& observed);
// Returns a count that a document has as a sum or mean of fractions; nothing if it is none.
[[nodiscard]] std::optional<std::int64_t> rounded_count(std::optional<double> count);
// Returns the bytes of the whole elements at the beginning of `rest`, the text of a list of JSON.
[[nodiscard]] std::size_t skip_elements(std::string_view rest);
// Completes the runs when all are read. Several are named by their loads ("concurrency 4"). A run
// that generated no token or has failed requests gets an error, and errors become the document's.
// The whole gets the rates, latencies and tokens of an only run.
void finish_loads(Observed& observed);
// Returns the values of such a result that a gate uses. Fails with Code::data unless it holds one
// run of the load that the cell asks for, and that run is complete.
[[nodiscard]] Result<profile::EngineReport> make_load_report(std::string_view format,
                                                             const Output& output);

// For results of tools that time programs, each a case with its times as samples.
//
// Returns one iteration of all benchmarks added up, and those benchmarks that limits name ("op:X").
// Fails with Code::data if one failed or has no time.
[[nodiscard]] Result<profile::EngineReport> make_benchmark_report(std::string_view format,
                                                                  const Output& output);

// Reads JSON documents on both streams by pieces, and adds warnings about lost pieces.
void read_pieces(const Printed& printed, std::vector<std::string> lists, JsonPieces::Takers takers,
                 Observed& observed, JsonPieceLimits limits = {});
// Calls `take` for each document, or for each element of one that is an array.
void read_documents(const Printed& printed, const std::function<void(const Json&)>& take,
                    Observed& observed);

// Values of a JSON object if they are of that type, else nothing. Numbers are finite.
std::optional<double> json_number(const Json& object, const char* key);
std::optional<std::int64_t> json_integer(const Json& object, const char* key);  // at least 0
std::optional<std::string> json_text(const Json& object, const char* key);      // display_text
bool json_flag(const Json& object, const char* key);                            // present and true
// A text made printable, or any other value as JSON.
std::string json_display_text(const Json& value);
// Members of an object that are texts, numbers or flags, by their names; 64 at most.
void add_facts(const Json& object, std::map<std::string, std::string>& facts);

// The error that nothing of this format was found.
tl::unexpected<Error> nothing_found(std::string_view format);

// Splits a line of CSV, with values in quotes or without; an empty list if a quote is not closed.
// "" within a quoted value stands for ".
std::vector<std::string> csv_fields(std::string_view line);
// The values of a row by its columns, where one line of SQL is an INSERT into `table`.
using TableRow = std::map<std::string, std::string, std::less<>>;
std::optional<TableRow> sql_row(std::string_view line, std::string_view table);

// "[256, 64, 1, 1]" as sizes -> "256x64": without trailing ones, "1" when all are. Empty when one
// is 0 or below.
std::string shape_text(const std::vector<std::int64_t>& sizes);
// The name of a ggml type's number, "f32"; "" when unknown.
std::string type_text(std::int64_t number);

}  // namespace weir::adapters
