// A history in the order of its commits, with where it changed: what weir trend changes, ack,
// notify, the pages and the service read.
#pragma once

#include <vector>

#include "gate/app/trend.hpp"
#include "gate/history/changes.hpp"

namespace weir::app {

struct ChangedHistory {
  history::History history;
  std::vector<history::SeriesChange> changes;
};

// What this look is to the store: one of many, which is noted; the same, but a reader's alone,
// which keeps nothing; or the only one there will ever be.
enum class Looks { noted, known, once };

// Of a part in time or of a branch the points are others every night: each is taken for a look,
// from the first on, and none is noted.
[[nodiscard]] Result<ChangedHistory> read_changes(history::Store& store,
                                                  const history::Filter& filter,
                                                  const history::CommitOrder& order,
                                                  const history::ChangesWanted& wanted,
                                                  Looks looks);

// Whether a nightly job has to say it: nobody has acknowledged it, and it is for the worse, or
// which way is worse is not known. Another device or machine class alone is no news of the engine.
[[nodiscard]] bool is_change_to_tell(const history::SeriesChange& change);

// --repository
void add_repository_option(CLI::App& verb, std::string& repository);

}  // namespace weir::app
