// The formats, each defined where it is read, and what their readers share. Used by this module
// alone.
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

// A new one is named here, and nowhere else. In the order in which they are listed and, where two
// are as sure of a text, asked.
#define WEIR_FORMATS(F)                                                                           \
  F(weir_observed), F(weir_timeline), F(agave), F(llama_bench_json), F(llama_bench_table),        \
      F(llama_perf), F(llama_server), F(vk_perf), F(vk_sync), F(sched_debug), F(ggml_profile),    \
      F(ggml_profile_text), F(backend_ops), F(graph_ops), F(hf2q), F(mlx_lm), F(ollama), F(vllm), \
      F(aiperf), F(guidellm), F(google_benchmark), F(tracy), F(prometheus), F(chrome)
#define WEIR_FORMAT_NAME(name) k_##name
#define WEIR_FORMAT_ADDRESS(name) &k_##name
extern const Format WEIR_FORMATS(WEIR_FORMAT_NAME);
inline constexpr std::array k_formats_in_order{WEIR_FORMATS(WEIR_FORMAT_ADDRESS)};
#undef WEIR_FORMATS
#undef WEIR_FORMAT_NAME
#undef WEIR_FORMAT_ADDRESS

template <class List>
std::vector<std::string> names_of(const List& all) {
  return collect<std::string>(all, [](const auto& one) { return one.name; });
}

// What the output says of rates, counts and tokens. Fails with Code::data when it is not of the
// format, ends in the middle, tells of an error and no time, has no time in a timed pass, or
// (llama-bench-table) has other tests than those asked for.
[[nodiscard]] Result<profile::EngineReport> report_of(std::string_view format,
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

// The most rows that are kept of a document; what follows is counted in a warning.
constexpr std::size_t k_most_rows = 200'000;

void add_warning(Observed& observed, std::string warning);  // once
template <class... Args>
void add_warning(Observed& observed, fmt::format_string<Args...> format, Args&&... args) {
  add_warning(observed, fmt::format(format, std::forward<Args>(args)...));
}
// What is published hides it; once.
void add_place(Observed& observed, std::string place);

// A list that stops growing at k_most_rows and says so.
template <class T>
bool keep_row(std::vector<T>& rows, T row, Observed& observed) {
  if (rows.size() < k_most_rows) {
    rows.push_back(std::move(row));
    return true;
  }
  const char* said = "it has more rows than weir keeps: only the first 200000 of a kind are read";
  if (observed.warnings.empty() || observed.warnings.back() != said) {
    observed.warnings.emplace_back(said);
  }
  return false;
}
// The same of an op, with what its shape tells; one whose times, operations or bytes are not finite
// or below 0 is left out.
bool keep_op(ObservedOp op, Observed& observed);
// One more call of what the row adds up.
void add_call(ObservedOp& row, double seconds);

// One more sample of a metric that weir knows; one that is not above 0 and finite is left out.
void add_sample(std::vector<ObservedTiming>& timings, std::string_view metric, double sample);
// The same of the whole, and of a part of it (null: none).
void add_sample(Observed& observed, ObservedCase* part, std::string_view metric, double sample);
ObservedTiming& timing_of(std::vector<ObservedTiming>& timings, const unit::Metric& metric);
ObservedCount& count_of(Observed& observed, std::string_view metric);
// Of a metric weir does not know: a time in seconds.
unit::Metric own_time(std::string_view name);
unit::Metric time_named(std::string_view name);  // known, or its own

// For engines that say so: they are slow.
inline constexpr const char* k_asserts =
    "the engine was built with asserts enabled: its times are not those of a release build";

void add_unknown_version(std::string_view version, std::string_view known, Observed& observed);
// Marks it as truncated, with the warning that goes with it.
void mark_truncated(Observed& observed);

// What an engine says of one request; tokens of the prompt without those from the cache.
struct Request {
  std::optional<std::int64_t> prompt, cached, generated;
  std::optional<double> prompt_time, generate_time;
  double unit = 1;  // of the times, in one second
};
// As a case with its rates, which are those of the whole as well. `untimed`: of what was generated,
// so many tokens are not in its time.
void add_request(const Request& request, std::int64_t untimed, Observed& observed);
// The tokens of the only case are those of the whole.
void take_tokens_of_only_case(Observed& observed);

// Of tools that load inference servers (load_results.cpp), each run a case.
//
// A figure of a distribution of latencies: "mean", "median", "stddev", or "p99". One that is no
// time is left out, as is a rate that is not above 0.
void add_figure(Observed& observed, std::string_view metric, std::string_view figure,
                double seconds);
void set_rate(ObservedCase& load, const char* metric, std::optional<double> rate);
inline constexpr const char* k_whole_requests = "completed";  // a fact of the case
// A run in which requests failed has an error.
void set_requests(ObservedCase& load, std::optional<std::int64_t> whole,
                  std::optional<std::int64_t> failed, Observed& observed);
// The rates and tokens of the only run are those of the whole.
void finish_loads(Observed& observed);
// What a gate takes of such a result. Fails with Code::data where it is not of one whole run.
[[nodiscard]] Result<profile::EngineReport> report_of_load(std::string_view format,
                                                           const Output& output);

// Reads documents of JSON on both streams by pieces, and says what was lost.
void read_pieces(const Printed& printed, std::vector<std::string> lists, JsonPieces::Takers takers,
                 Observed& observed, JsonPieceLimits limits = {});
// The same where each document, or each element of one that is an array, is one thing.
void read_documents(const Printed& printed, const std::function<void(const Json&)>& take,
                    Observed& observed);

// Values of a JSON object where they are of that type, else nothing. Numbers are finite.
std::optional<double> json_number(const Json& object, const char* key);
std::optional<std::int64_t> json_whole(const Json& object, const char* key);  // at least 0
std::optional<std::string> json_text(const Json& object, const char* key);    // shown_text
bool json_flag(const Json& object, const char* key);                          // true there
// A text as it is shown, any other value as JSON.
std::string json_shown(const Json& value);
// Members of an object that are texts, numbers or flags, by their names; 64 at most.
void add_facts(const Json& object, std::map<std::string, std::string>& facts);

// "nothing of this format was found" as the format's own words.
tl::unexpected<Error> nothing_found(std::string_view format);

// Tables of values in quotes: a line of CSV, or the values of an INSERT. An empty list when it
// cannot be taken apart. SQL's '' within a value stands for ', CSV's "" for ".
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
