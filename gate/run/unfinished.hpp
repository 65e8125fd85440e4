// What an interrupted run lacks, cell by cell. Pure.
#pragma once

#include <map>
#include <string>

#include "gate/run/journal.hpp"

namespace weir::run {

// Processes of one cell that were planned and of which no record is there. A pass in which a
// process failed lacks nothing: weir gave it up, and its error says so.
struct Unfinished {
  std::int64_t counted = 0, counted_planned = 0;
  std::int64_t timed = 0, timed_planned = 0;
};

// By cell name; cells that lack nothing are not in it.
[[nodiscard]] std::map<std::string, Unfinished> unfinished(const RunFile& run);

}  // namespace weir::run
