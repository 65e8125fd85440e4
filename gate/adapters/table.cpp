// The adapters of this build: one line each.
#include <algorithm>

#include "gate/adapters/adapter.hpp"
#include "gate/adapters/from_observed.hpp"
#include "gate/adapters/generic.hpp"
#include "gate/adapters/llama_bench.hpp"

namespace weir::adapters {

const std::vector<Adapter>& table() {
  static const std::vector<Adapter> k_table{
      {"llama-bench",
       "llama.cpp's llama-bench, -o json or jsonl",
       read_llama_bench,
       {"llama-bench"}},
      {"llama-bench-table",
       "llama-bench, -o csv, sql or md: a mean alone",
       read_llama_bench_table,
       {}},
      {"llama-perf",
       "llama-completion and others: the timings they end with",
       read_llama_perf,
       {"llama-completion"}},
      {"agave",
       "Agave's statistics, --json and counters",
       read_agave,
       {"agave"},
       Adapter::Counts::asked},
      {"hf2q",
       "hf2q's decode rate and counts per token",
       read_hf2q,
       {"hf2q"},
       Adapter::Counts::asked},
      {"mlx-lm", "mlx_lm.benchmark", read_mlx_lm, {"mlx_lm.benchmark"}},
      {"ollama", "Ollama's replies, and ollama run --verbose", read_ollama, {}},
      {"weir-observed",
       "weir.observed/1: an engine that writes weir's own format",
       read_weir_observed,
       {},
       Adapter::Counts::always},
      {"generic",
       "any engine, by regular expressions or JSON pointers in the config",
       read_generic,
       {}},
  };
  return k_table;
}

const Adapter* find(std::string_view name) {
  const auto& adapters = table();
  const auto found = std::find_if(adapters.begin(), adapters.end(),
                                  [&](const Adapter& adapter) { return adapter.name == name; });
  return found == adapters.end() ? nullptr : &*found;
}

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const Adapter& adapter : table()) all.emplace_back(adapter.name);
  return all;
}

}  // namespace weir::adapters
