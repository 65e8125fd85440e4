// An engine's own counters: what it printed of one count, once or again for each token, as one
// number. Pure.
#pragma once

#include "gate/adapters/format.hpp"

namespace weir::adapters {

// Puts the count into `report`, of which generated_tokens is read; false, with the reason in it,
// where nobody can say what the values are of. `values`: as printed, in order, none negative, at
// least one. A count that was printed several times is a share: their sum over what they are of.
//
// `of_all_tokens`: values of a count per token are of all tokens together. Else one that was
// printed once for each repetition or for each token (one more or fewer a repetition, for the
// prefill makes a token, too) is the mean. Any other count is their sum over the repetitions, if
// they are a multiple of them.
[[nodiscard]] bool add_own_count(profile::EngineReport& report, const unit::Metric& metric,
                                 const std::vector<std::int64_t>& values, bool of_all_tokens,
                                 const profile::Asked& asked);

}  // namespace weir::adapters
