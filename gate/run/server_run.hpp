// Steps of cells whose engine serves: start, load, end, and the record of it. Or one that runs
// already is asked. Two steps of a pair (`--against`) have both servers up at the same time.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gate/profile/record.hpp"
#include "gate/run/plan.hpp"
#include "gate/run/runner.hpp"

namespace weir::run {

struct ServerSlot {
  const PreparedCell* cell = nullptr;
  const Step* step = nullptr;
  std::int64_t attempt = 1;
};

// As run_engine(), which calls it for one step. A record's times are figures of its load alone; its
// counts are those between two readings of the probes, after its warm-up and after the last answer,
// so that start, model and warm-up are not in them. A load with more failed requests than a limit
// allows measures nothing. Nothing of the server is left afterwards, however it ended.
[[nodiscard]] Result<std::optional<profile::RunRecord>> run_server(const Effects& effects,
                                                                   const std::string& folder,
                                                                   const ServerSlot& slot);

struct ServedEvents {
  std::function<void(const Step&)> on_begin;
  // A step has measured everything and others follow: its record so far, without what only the
  // server's end tells.
  std::function<void(const profile::RunRecord&)> on_measured;
};

// The same for steps that may share a start (starts.hpp): runs them in order on one server, each
// with its own warm-up. The first step that fails is the last one, because nobody knows what state
// the server is in. Later steps then have no record and need another start. When weir is stopped,
// returns the records of those that were complete before.
[[nodiscard]] Result<std::vector<profile::RunRecord>> run_on_one_server(
    const Effects& effects, const std::string& folder, std::span<const ServerSlot> slots,
    const ServedEvents& events);

// Returns true if the timed steps of a pair of this cell run on two servers that are up at the same
// time. This needs servers that weir starts at a port that it picks, and not `blocks: 0`.
[[nodiscard]] bool takes_turns(const PreparedCell& cell);

// Splits `requests` into the blocks of one server and returns the size of each: as many blocks as
// the config says, none smaller than the number of requests sent at once.
[[nodiscard]] std::vector<std::int64_t> split_into_blocks(const PreparedCell& cell,
                                                          std::int64_t requests);

// Both steps of a pair, in the order that its coin decided. Slot 0 is started first, then slot 1;
// both are warmed up; then each sends its blocks in its turns (RunRecord::turns), and a side's
// figures are those of all its blocks' requests together. So a slot is all that the coin gives a
// program: swapping the programs swaps their numbers and nothing else, which is what the proof of
// the decision rule asks for (docs/explanation/decision-rule.md). A pair gives one number a metric
// and side: requests of one start are never counted as independent of each other.
//
// A server that fails is a record with an error, and the other one goes on without it. On the first
// attempt one that could not be started stops both, and only its record is answered: all is tried
// again. Nothing of either when weir was stopped.
using PairRecords = std::array<std::optional<profile::RunRecord>, 2>;
[[nodiscard]] Result<PairRecords> run_server_pair(const Effects& effects, const std::string& folder,
                                                  std::span<const ServerSlot, 2> slots);

}  // namespace weir::run
