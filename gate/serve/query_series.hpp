// Series with their points, in pages. Of queries.hpp; used by this module alone.
#pragma once

#include "gate/serve/queries.hpp"

namespace weir::serve {

// Points stand in the order of their commits within each series; a page ends within one where it
// has to. What comes between two pages may shift the second by that many points.
[[nodiscard]] Result<Response> answer_series(history::ServiceStore& store, const Query& query,
                                             const history::CommitOrder& order);

}  // namespace weir::serve
