// Tables of what an engine or a profiler wrote, for its page (observed_page) and its text
// (observed_text). Pure.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "gate/observed/observed.hpp"
#include "gate/observed/totals.hpp"
#include "gate/report/timeline_document.hpp"

namespace weir::report {

using Shown = std::function<std::string(std::string_view)>;  // takes out of a text what is private

// Those that hold something, in the order of the page. `counters`: also a table of those, as no
// track shows them.
[[nodiscard]] std::vector<PageTable> observed_tables(const observed::Observed& observed,
                                                     observed::GroupBy by, const Shown& shown,
                                                     bool counters);

// Single ones, with a row for each in the document's order; columns in which nobody has anything
// are left out. No rows where there are none.
[[nodiscard]] PageTable buffer_table(const observed::Observed& observed, const Shown& shown);
[[nodiscard]] PageTable step_table(const observed::Observed& observed, const Shown& shown);
[[nodiscard]] PageTable split_table(const observed::Observed& observed, const Shown& shown);
// Work of the decode rows, by kernel, each figure divided by the tokens that they cover.
[[nodiscard]] PageTable token_table(const observed::Observed& observed, const Shown& shown);

}  // namespace weir::report
