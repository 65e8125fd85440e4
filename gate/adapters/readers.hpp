// The readers of single formats (reading.hpp has the contract of both functions), and what they
// share. Used by this module alone.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "gate/adapters/json_pieces.hpp"
#include "gate/adapters/printed.hpp"
#include "gate/base/result.hpp"
#include "gate/observed/observed.hpp"
#include "gate/observed/totals.hpp"

#define WEIR_READER(format)                                \
  namespace format {                                       \
  int recognises(const Printed& printed);                  \
  Result<observed::Observed> read(const Printed& printed); \
  }

namespace weir::adapters {

WEIR_READER(agave)
WEIR_READER(backend_ops)
WEIR_READER(chrome)
WEIR_READER(ggml_profile)
WEIR_READER(ggml_profile_text)
WEIR_READER(google_benchmark)
WEIR_READER(graph_ops)
WEIR_READER(hf2q)
WEIR_READER(llama_bench_json)
WEIR_READER(llama_bench_table)
WEIR_READER(llama_perf)
WEIR_READER(llama_server)
WEIR_READER(mlx_lm)
WEIR_READER(ollama)
WEIR_READER(prometheus)
WEIR_READER(sched_debug)
WEIR_READER(vk_perf)
WEIR_READER(vk_sync)
WEIR_READER(vllm)
WEIR_READER(weir_observed)
WEIR_READER(weir_timeline)

// The most rows that are kept of a document; what follows is counted in a warning.
constexpr std::size_t k_most_rows = 200'000;

void add_warning(observed::Observed& observed, std::string warning);  // once
// Its times, operations and bytes are finite and not below 0, where they are there.
bool possible(const observed::ObservedOp& op);

// A list that stops growing at k_most_rows and says so.
template <class T>
bool keep_row(std::vector<T>& rows, T row, observed::Observed& observed) {
  if constexpr (std::is_same_v<T, observed::ObservedOp>) {
    if (!possible(row)) {
      add_warning(observed, "a row with a time below 0 is left out");
      return false;
    }
  }
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

// One more sample of a metric that weir knows; one that is not above 0 and finite is left out.
void add_sample(std::vector<observed::ObservedTiming>& timings, std::string_view metric,
                double sample);
observed::ObservedTiming& timing_of(std::vector<observed::ObservedTiming>& timings,
                                    const unit::Metric& metric);
observed::ObservedCount& count_of(observed::Observed& observed, std::string_view metric);
// Of a metric weir does not know: kind count, or a time in seconds.
unit::Metric own_count(std::string_view name);
unit::Metric own_time(std::string_view name);

// Marks it as truncated, with the warning that goes with it.
void mark_truncated(observed::Observed& observed);

// Reads documents of JSON on both streams by pieces, and says what was lost.
void read_pieces(const Printed& printed, std::vector<std::string> lists, JsonPieces::Takers takers,
                 observed::Observed& observed);

// Values of a JSON object where they are of that type, else nothing. Numbers are finite.
std::optional<double> json_number(const Json& object, const char* key);
std::optional<std::int64_t> json_whole(const Json& object, const char* key);  // at least 0
std::optional<std::string> json_text(const Json& object, const char* key);    // shown_text

// "nothing of this format was found" as the format's own words.
tl::unexpected<Error> nothing_found(std::string_view format);

// Tables of values in quotes: a line of CSV, or the values of an INSERT. An empty list when it
// can not be taken apart. SQL's '' within a value stands for ', CSV's "" for ".
std::vector<std::string> csv_fields(std::string_view line);
// Whether one line of SQL is an INSERT into `table`; its columns and values.
struct SqlRow {
  std::vector<std::string> columns, values;
};
std::optional<SqlRow> sql_row(std::string_view line, std::string_view table);

// "[256, 64, 1, 1]" as sizes -> "256x64": without trailing ones, "1" when all are. Empty when one
// is 0 or below.
std::string shape_text(const std::vector<std::int64_t>& sizes);
// The name of a ggml type's number, "f32"; "" when unknown.
std::string type_text(std::int64_t number);

}  // namespace weir::adapters
