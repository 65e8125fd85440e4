// Reports made of a server's answers, and prompts made up as text. Pure.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "gate/profile/record.hpp"
#include "gate/profile/served.hpp"
#include "gate/run/prepare.hpp"
#include "gate/stats/theil_sen.hpp"

namespace weir::run {

// Makes the report of a load. A failed request only takes its time, so no more than a limit allows
// may fail. Tokens and the output's digest are set if all others agree. Requests that shared
// batches have no digest, because sums in another order may give other words.
[[nodiscard]] profile::EngineReport served_report(const PreparedCell& cell,
                                                  std::span<const profile::ServedRequest> requests);

// How much worse a server got over a load of some length, by its requests and by its memory over
// time (seconds, bytes): metrics "…_drift", which are 0 where chance could have done it.
void add_drifts(std::span<const profile::ServedRequest> requests,
                std::span<const stats::Point> memory, profile::EngineReport& report);

// Each request's latencies, for a picture of them; of too many as thin_latencies() chooses.
void add_latencies(std::span<const profile::ServedRequest> requests, profile::EngineReport& report);

// "3 of 16 requests failed: 2 timeout_token, 1 status (HTTP 500: out of memory)"; nothing when all
// went well.
[[nodiscard]] std::optional<std::string> served_failures(
    std::span<const profile::ServedRequest> requests);

// How many requests were answered otherwise than most of their prompt's were.
[[nodiscard]] std::int64_t different_outputs(std::span<const profile::ServedRequest> requests);

// Adds the server's own metrics to the report, with a warning if they count other numbers of tokens
// than weir.
void add_server_figures(std::vector<profile::ServerFigure> figures,
                        std::span<const profile::ServedRequest> requests,
                        bool allows_cached_prompts, profile::EngineReport& report);
// Do they agree on the tokens, as far as the server counts any?
[[nodiscard]] bool token_counts_agree(const std::vector<profile::ServerFigure>& figures,
                                      std::span<const profile::ServedRequest> requests);

// A text of about so many tokens, the same for the same number: common words, most of which
// vocabularies have whole.
[[nodiscard]] std::string made_up_prompt(std::int64_t tokens);

}  // namespace weir::run
