// Finds changes in what a server reports of a counted burst: accepted drafts, and prompts answered
// from a cache.

#include "gate/explain/patterns.hpp"

namespace weir::explain {
namespace {

// Shares that a server reports of a counted burst.
struct Share {
  const char *metric, *words, *cause, *look_at;
};
constexpr std::array k_shares{
    Share{"cached_prompt_share", "of the prompts came from a cache",
          "the cache of prompts is off, too small, or no longer recognizes what it holds.",
          "the server's options for caches, and how it compares a prompt with its slots."},
    Share{"draft_acceptance", "of the drafted tokens were accepted",
          "the draft model is another one, or sees another context than the model.",
          "the draft model's file, and what both are given."},
};

}  // namespace

// Adds a finding for each share of requests' tokens, such as those from a cache, that a server
// reports otherwise than before. It explains the counts that follow from it.
void find_served(ExplainState& state) {
  for (const Share& share : k_shares) {
    const auto both = exact_values(state.evidence, share.metric);
    if (!both || both->before == both->after) continue;
    const double share_before = both->before.value(), share_after = both->after.value();
    Finding finding = make_finding(kind::served_changed, share.metric);
    constexpr double k_percent = 100;
    finding.headline = fmt::format("{:.3g} % {}, before {:.3g} %.", k_percent * share_after,
                                   share.words, k_percent * share_before);
    if (share_after < share_before) {
      finding.cause = share.cause;
      finding.look_at = share.look_at;
    }
    // The server computes the rest itself, in more graphs. A small change of the share may itself
    // follow from other work, so it does not explain the graphs.
    constexpr double k_min_share_change = 0.1;
    const Rational graphs = state.unexplained_change("graphs");
    const bool computes_more = share_after < share_before;
    const bool explains_graphs = std::fabs(share_after - share_before) >= k_min_share_change &&
                                 graphs != k_zero && computes_more == (graphs > k_zero);
    state.mark_all_explained({"graphs", "splits", "backend_syncs", "tensor_sets", "cpu_ops"});
    if (explains_graphs) {
      for (const auto& [count, delta] : state.differences.counts) state.mark_explained(count);
    }
    state.mark_explained(share.metric);
    state.add(std::move(finding), /*units=*/1, /*rank=*/explains_graphs ? -1 : 0);
  }
}

}  // namespace weir::explain
