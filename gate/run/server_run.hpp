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
// so that start, model and warm-up are not in them. A load with any failed request measures
// nothing. Nothing of the server is left afterwards, however it ended.
[[nodiscard]] Result<std::optional<profile::RunRecord>> run_server(const Effects& effects,
                                                                   const std::string& folder,
                                                                   const ServerSlot& slot);

// The same for steps that may share a start (starts.hpp), in their order, on one: each has its own
// warm-up. The first that fails is the last one: those behind it have no record and want another
// start, for nobody knows what state the server is in. When weir is stopped, the records of those
// that were whole before.
struct ServedSoFar {
  std::function<void(const Step&)> begins;
  // A step that has measured all while others are to come: its record without what only the
  // server's end will tell.
  std::function<void(const profile::RunRecord&)> whole;
};
[[nodiscard]] Result<std::vector<profile::RunRecord>> run_on_one_server(
    const Effects& effects, const std::string& folder, std::span<const ServerSlot> slots,
    const ServedSoFar& told);

// Do the timed steps of a pair of this cell run beside each other? Of servers that weir starts at a
// port that it picks, unless `blocks: 0` says otherwise.
[[nodiscard]] bool serves_in_turns(const PreparedCell& cell);

// How many requests each block of one server has: as many blocks as the config says, of as many
// requests as are asked at once at least.
[[nodiscard]] std::vector<std::int64_t> blocks_of(const PreparedCell& cell, std::int64_t requests);

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
