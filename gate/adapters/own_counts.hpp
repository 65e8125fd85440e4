// An engine's own counters: a count that it printed once, or again for each token, as one number.
// Pure.
#pragma once

#include "gate/adapters/format.hpp"

namespace weir::adapters {

// Adds the count to `report`, whose generated_tokens must be set. Returns false, with the reason in
// the report, if it is unknown how many tokens the values cover. `values` are as printed, in order,
// none negative, at least one. A count that was printed several times becomes a share: the sum of
// its values over the tokens that they cover.
//
// `of_all_tokens`: the values of a count per token cover all tokens together. Otherwise, a count
// that was printed once per repetition or per token is the mean of its values. (There may be one
// more or fewer per repetition, as the prefill makes a token too.) Any other count is the sum over
// the repetitions, if the number of values is a multiple of them.
[[nodiscard]] bool add_own_count(profile::EngineReport& report, const unit::Metric& metric,
                                 const std::vector<std::int64_t>& values, bool of_all_tokens,
                                 const profile::RunParameters& request);

}  // namespace weir::adapters
