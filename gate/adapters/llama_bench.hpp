// llama.cpp's llama-bench, -o json or jsonl: decode and prefill rates, one sample a repetition.
#pragma once

#include "gate/adapters/adapter.hpp"

namespace weir::adapters {

// Fails with Code::data unless there is exactly one result for each of prompt_tokens and tokens
// asked for that is not 0, with as many samples as repeats.
[[nodiscard]] Result<profile::EngineReport> read_llama_bench(const Output& output);

}  // namespace weir::adapters
