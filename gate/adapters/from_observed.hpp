// Adapters made of readers: an engine whose output is read as a profile (reading.hpp) is gated by
// what that says of rates, counts and tokens.
#pragma once

#include "gate/adapters/adapter.hpp"

namespace weir::adapters {

// Fails with Code::data when the output is not of the format, ends in the middle, tells of an
// error and no time, has no time in a timed pass, or (llama-bench-table) has other tests than those
// asked for.
[[nodiscard]] Result<profile::EngineReport> read_with(std::string_view format,
                                                      const Output& output);

[[nodiscard]] Result<profile::EngineReport> read_agave(const Output& output);
[[nodiscard]] Result<profile::EngineReport> read_hf2q(const Output& output);
[[nodiscard]] Result<profile::EngineReport> read_llama_bench_table(const Output& output);
[[nodiscard]] Result<profile::EngineReport> read_llama_perf(const Output& output);
[[nodiscard]] Result<profile::EngineReport> read_mlx_lm(const Output& output);
[[nodiscard]] Result<profile::EngineReport> read_ollama(const Output& output);
[[nodiscard]] Result<profile::EngineReport> read_weir_observed(const Output& output);

}  // namespace weir::adapters
