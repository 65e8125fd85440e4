// Recorded requests for a load: prompts, lengths of answers and arrival times.
//
//   JSON lines   {"prompt": "…", "output_tokens": 64, "timestamp": 1500}
//   ShareGPT     [{"conversations": [{"from": "human", "value": "…"}, {"from": "gpt", "value":
//   …}]}] Mooncake     {"timestamp": 1500, "input_length": 6758, "output_length": 500, "hash_ids":
//   [0, 1]}
//
// A Mooncake trace (FAST '25; one object a line, times in milliseconds) has no texts: each hash
// stands for 512 tokens. Each hash is turned into words of its own, always the same, so that
// requests with a shared prefix share one again.
//
// A fourth form holds no requests but says how to draw them, the same for the same seed.
//
//   {"prompt_tokens": {"median": 512, "p99": 4096}, "output_tokens": {"least": 16, "most": 256},
//    "shared_prefix_tokens": 256, "prefixes": 4, "seed": 7}
//
// A number is drawn from a log-normal or a uniform distribution, or is always the same. Hostile
// text. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gate/base/result.hpp"

namespace weir::adapters {

struct WorkloadRequest {
  std::string prompt;
  std::int64_t tokens = 0;             // to generate
  std::optional<double> at{};          // seconds after the first
  std::optional<std::size_t> after{};  // the turn before it, whose answer comes first
  friend bool operator==(const WorkloadRequest&, const WorkloadRequest&) = default;
};

// Returns the first `most` requests, in the file's order. `tokens` is for those that do not say how
// many to generate. `turns` is the most turns of a conversation. Each turn is a request whose
// prompt holds the dialogue before it: as recorded, or as many words as were requested.
// Fails with Code::data, with the line, if an entry is no request or out of the order of times, or
// if all texts together are larger than 256 MiB.
[[nodiscard]] Result<std::vector<WorkloadRequest>> read_workload(std::string_view text,
                                                                 std::int64_t tokens,
                                                                 std::size_t most,
                                                                 std::int64_t turns = 1);

}  // namespace weir::adapters
