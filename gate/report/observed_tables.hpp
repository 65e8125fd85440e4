// Tables of what an engine or a profiler wrote, for its page (observed_page) and its text
// (observed_text). Pure.
#pragma once

#include <string_view>
#include <vector>

#include "gate/observed/observed.hpp"
#include "gate/observed/totals.hpp"
#include "gate/report/timeline_document.hpp"

namespace weir::report {

// Returns the tables that hold something, in the order of the page. `counters`: also a table of
// counters, which the caller shows on no track.
[[nodiscard]] std::vector<PageTable> observed_tables(const observed::Observed& observed,
                                                     const observed::Grouping& by, bool counters);

// Single tables, with a row for each item in the document's order. Empty columns are left out,
// except in the table of ops. A table may have no rows.
[[nodiscard]] PageTable op_table(const observed::Observed& observed, const observed::Grouping& by);
[[nodiscard]] PageTable buffer_table(const observed::Observed& observed);
[[nodiscard]] PageTable step_table(const observed::Observed& observed);
[[nodiscard]] PageTable split_table(const observed::Observed& observed);
// Returns the table that `by` asks for, written as set_grouping() takes it.
[[nodiscard]] PageTable table_by(const observed::Observed& observed, std::string_view by);
// Returns the work of decoding, each figure divided by the number of tokens.
[[nodiscard]] PageTable token_table(const observed::Observed& observed,
                                    const observed::Grouping& by);

}  // namespace weir::report
