// Queries of a history: series, changes, verdicts, projects (docs/how-to/serve.md).
// Parameters are untrusted; answers are bounded and continue at a cursor.
#pragma once

#include <functional>
#include <string>

#include "gate/history/order.hpp"
#include "gate/history/store.hpp"
#include "gate/serve/http.hpp"

namespace weir::serve {

// The kind of resource that a path names.
enum class Route {
  none,
  page,
  badge,
  series,
  changes,
  verdicts,
  projects,
  runs,
  run,
  metrics,
  health,
  description
};

struct Query {
  Route route = Route::series;
  Target target;
  history::Filter filter;
  std::size_t limit = 0;
  std::string cursor;    // "": from the beginning
  bool samples = false;  // series: with all samples
  bool all = false;      // changes: also those that are known
  bool full = false;     // verdicts: with their documents
};

// Code::usage says which parameter is wrong.
[[nodiscard]] Result<Query> parse_query(Route route, const Target& target);

// Code::usage for a cursor that is none. `sees`: may this project be shown?
[[nodiscard]] Result<Response> answer_query(history::ServiceStore& store, const Query& query,
                                            const history::CommitOrder& order,
                                            const std::function<bool(const std::string&)>& sees);

}  // namespace weir::serve
