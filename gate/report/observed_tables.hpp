// Tables of what an engine or a profiler wrote, for its page (observed_page) and its text
// (observed_text). Pure.
#pragma once

#include <string_view>
#include <vector>

#include "gate/observed/observed.hpp"
#include "gate/observed/totals.hpp"
#include "gate/report/timeline_document.hpp"

namespace weir::report {

// Those that hold something, in the order of the page. `counters`: also a table of those, as no
// track shows them.
[[nodiscard]] std::vector<PageTable> observed_tables(const observed::Observed& observed,
                                                     const observed::Grouping& by, bool counters);

// Single ones, with a row for each in the document's order; columns in which nobody has anything
// are left out, but in the table of ops. No rows where there are none.
[[nodiscard]] PageTable op_table(const observed::Observed& observed, const observed::Grouping& by);
[[nodiscard]] PageTable buffer_table(const observed::Observed& observed);
[[nodiscard]] PageTable step_table(const observed::Observed& observed);
[[nodiscard]] PageTable split_table(const observed::Observed& observed);
// The one that `by`, as set_grouping() takes it, asks for.
[[nodiscard]] PageTable table_by(const observed::Observed& observed, std::string_view by);
// Work of the decode rows, each figure divided by the tokens that they cover.
[[nodiscard]] PageTable token_table(const observed::Observed& observed,
                                    const observed::Grouping& by);

}  // namespace weir::report
