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

// `once`: this look is taken for the only one, and is not noted in the store.
[[nodiscard]] Result<ChangedHistory> read_changes(history::Store& store,
                                                  const history::Filter& filter,
                                                  const history::CommitOrder& order,
                                                  const history::ChangesWanted& wanted, bool once);

// Whether a nightly job has to say it: nobody has acknowledged it, and it is for the worse, or
// which way is worse is not known. Another device or machine class is no news of the engine.
[[nodiscard]] bool is_change_to_tell(const history::SeriesChange& change);

// --repository
void add_repository_option(CLI::App& verb, std::string& repository);

}  // namespace weir::app
