// Servers that weir starts: which cells have one, and which steps of a plan share a start. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "gate/base/result.hpp"
#include "gate/base/secret.hpp"
#include "gate/run/plan.hpp"

namespace weir::run {

// The cell's server where weir starts it; null of one that runs already, and of other engines.
[[nodiscard]] const config::ServerSettings* server_to_start(const PreparedCell& cell);
// Its url, where that names a port of its own, so that two of them cannot be up at once; else "".
[[nodiscard]] std::string only_address(const PreparedCell& cell);

// By order, the first step of each one's start: its own where it shares none. Steps share one that
// are of the same pass and the same round (each cell's process of a round is its own, so that how
// far processes lie apart can still be seen), and whose servers would be started in the same way:
// the same command line, environment and probes. Never pairs, whose coins are each cell's own, and
// none of an engine with `share_start: false`, or without a warm-up: what a server does once would
// be in the first cell's numbers alone.
[[nodiscard]] std::vector<std::size_t> group_starts(const Plan& plan);

// The token that a server asks for: out of weir's environment, and in no file. Pure.

// Checks the token in the variable that token_env names. Fails with Code::config and advice if no
// request can be sent with it; the token is in no error.
[[nodiscard]] Result<Secret> check_server_token(const std::string& variable, Secret token);

}  // namespace weir::run
