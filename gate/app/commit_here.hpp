// Which commit a run measures, as far as the repository around its configuration tells: kept in
// the run's header, for a history.
#pragma once

#include <optional>
#include <string>

#include "gate/base/json.hpp"

namespace weir::app {

struct CommitHere {
  std::string commit;
  std::optional<std::string> branch;
  double time = 0;     // of the commit; seconds since the epoch
  bool dirty = false;  // files that git knows differ from it
};

// Of the repository that `config` lies in. Nothing where there is none, or no git: it is a fact on
// the side, and nothing fails for it.
[[nodiscard]] std::optional<CommitHere> commit_here(const std::string& config);

[[nodiscard]] Json to_json(const CommitHere& here);
[[nodiscard]] std::optional<CommitHere> commit_here_from_json(const Json& json);

}  // namespace weir::app
