// What changed along the series of a history (history/changes.hpp), as the trend site shows it.
// Pure.
#pragma once

#include <vector>

#include "gate/history/changes.hpp"
#include "gate/site/site.hpp"

namespace weir::site {

// By series of `history`, each by index.
[[nodiscard]] std::vector<std::vector<SiteChange>> site_changes(
    const history::History& history, const std::vector<history::SeriesChange>& changes);

}  // namespace weir::site
