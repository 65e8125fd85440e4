// Requests that people recorded, for a load: what was asked, how much was answered, when it came.
//
//   JSON lines   {"prompt": "…", "output_tokens": 64, "timestamp": 1500}
//   ShareGPT     [{"conversations": [{"from": "human", "value": "…"}, {"from": "gpt", "value":
//   …}]}] Mooncake     {"timestamp": 1500, "input_length": 6758, "output_length": 500, "hash_ids":
//   [0, 1]}
//
// A Mooncake trace (FAST '25; one object a line, times in milliseconds) has no texts: each hash
// stands for 512 tokens. Here a hash makes words of its own, the same wherever it comes, so that
// what shared a prefix shares one again.
//
// A fourth form holds no requests: it says how they are drawn, the same for the same seed.
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

// The first `most` requests, in the file's order. `tokens`: of those that do not say how many.
// `turns`: of a conversation so many at most, each a request whose prompt holds what was said
// before: what was recorded, or as many words as were asked for.
// Fails with Code::data, with the line, where one is no request or they do not come in the order of
// their times, and where their texts together are larger than 256 MiB.
[[nodiscard]] Result<std::vector<WorkloadRequest>> read_workload(std::string_view text,
                                                                 std::int64_t tokens,
                                                                 std::size_t most,
                                                                 std::int64_t turns = 1);

}  // namespace weir::adapters
