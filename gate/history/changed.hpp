// A history in the order of its commits, with where it changed: what weir trend changes, ack,
// notify, the pages and the service read.
#pragma once

#include "gate/history/changes.hpp"
#include "gate/history/store.hpp"

namespace weir::history {

struct ChangedHistory {
  History history;
  std::vector<SeriesChange> changes;
};

// What this look is to the store: one of many, which is noted; the same, but a reader's alone,
// which keeps nothing; or the only one there will ever be.
enum class Looks { noted, known, once };

// Of a part in time or of a branch the points are others every night: each is taken for a look,
// from the first on, and none is noted.
[[nodiscard]] Result<ChangedHistory> read_changes(Store& store, const Filter& filter,
                                                  const CommitOrder& order,
                                                  const ChangesWanted& wanted, Looks looks);

}  // namespace weir::history
