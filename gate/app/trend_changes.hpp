// Changes of a history, as verbs read and tell them.
#pragma once

#include <string>

#include "gate/app/trend.hpp"
#include "gate/history/changes.hpp"

namespace weir::app {

using history::ChangedHistory, history::Looks, history::read_changes;

// Whether a nightly job has to say it: nobody has acknowledged it, and it is for the worse, or
// which way is worse is not known. Another device or machine class alone is no news of the engine.
[[nodiscard]] bool is_change_to_tell(const history::SeriesChange& change);

// --repository
void add_repository_option(CLI::App& verb, std::string& repository);

}  // namespace weir::app
