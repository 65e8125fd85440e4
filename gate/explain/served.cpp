// What a server says of a counted burst: drafts that were accepted, prompts that a cache answered.

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

void find_served(Board& board) {
  for (const Share& share : k_shares) {
    const auto both = exact_values(board.evidence, share.metric);
    if (!both || both->before == both->after) continue;
    const double was = both->before.value(), is = both->after.value();
    Finding finding = finding_of(kind::served_changed, share.metric);
    constexpr double k_percent = 100;
    finding.headline =
        fmt::format("{:.3g} % {}, before {:.3g} %.", k_percent * is, share.words, k_percent * was);
    if (is < was) {
      finding.cause = share.cause;
      finding.look_at = share.look_at;
    }
    // What the server computes itself instead is graphs, and all that is in them. A small change of
    // the share may itself follow from other work, and explains little of it.
    constexpr double k_much = 0.1;
    const Rational graphs = board.open("graphs");
    const bool leads =
        std::fabs(is - was) >= k_much && graphs != k_none && (is < was) == (graphs > k_none);
    board.take_all({"graphs", "splits", "backend_syncs", "tensor_sets", "cpu_ops"});
    if (leads) {
      for (const auto& [count, delta] : board.found.counts) board.take(count);
    }
    board.take(share.metric);
    board.add(std::move(finding), 1, leads ? -1 : 0);
  }
}

}  // namespace weir::explain
