// What a history is asked for: series, changes, verdicts, projects (docs/how-to/serve.md).
// Parameters are anybody's; answers are bounded and go on at a cursor.
#pragma once

#include <functional>
#include <string>

#include "gate/history/order.hpp"
#include "gate/history/store.hpp"
#include "gate/serve/http.hpp"

namespace weir::serve {

enum class QueryKind { series, changes, verdicts, projects };

struct Query {
  QueryKind kind = QueryKind::series;
  Target target;
  history::Filter filter;
  std::size_t limit = 0;
  std::string cursor;    // "": from the beginning
  bool samples = false;  // series: with all samples
  bool all = false;      // changes: also those that are known
  bool full = false;     // verdicts: with their documents
};

// Code::usage says which parameter is wrong.
[[nodiscard]] Result<Query> parse_query(QueryKind kind, const Target& target);

// Code::usage for a cursor that is none. `sees`: may this project be shown?
[[nodiscard]] Result<Response> answer_query(history::ServiceStore& store, const Query& query,
                                            const history::CommitOrder& order,
                                            const std::function<bool(const std::string&)>& sees);

// Series with their points, in pages. Of queries.hpp; used by this module alone.

// Points stand in the order of their commits within each series; a page ends within one where it
// has to. What comes between two pages may shift the second by that many points.
[[nodiscard]] Result<Response> answer_series(history::ServiceStore& store, const Query& query,
                                             const history::CommitOrder& order);

}  // namespace weir::serve
