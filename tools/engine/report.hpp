// Reports a run in the format that weir reads: weir.observed/1
// (docs/reference/formats.md).
#pragma once

#include <string>
#include <vector>

#include "gate/observed/observed.hpp"

#include "tools/engine/generate.hpp"

namespace weir::engine {

struct Run {
  double load_seconds = 0;
  Work work;
  std::vector<Repeat> repeats;
};

// Has counts per token and per prefill, counters for the totals of the process, and rates and times
// with one sample for each repetition. The first token belongs to the prompt.
[[nodiscard]] observed::Observed observe(const Run& run, const Model& model, const Backend& backend,
                                         const Counts& counts);

[[nodiscard]] std::string join(const std::vector<std::uint32_t>& tokens);  // "1,17,4"

}  // namespace weir::engine
