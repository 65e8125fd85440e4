#include "gate/app/checkouts.hpp"

#include <algorithm>

namespace weir::app {

void add_build(std::vector<source::Build>& builds, const config::Cell& cell) {
  if (cell.engine == nullptr || cell.engine->build.empty()) return;
  const bool known = std::any_of(builds.begin(), builds.end(), [&](const source::Build& build) {
    return build.command == cell.engine->build;
  });
  if (!known) builds.push_back({cell.engine->name, cell.engine->build});
}

std::vector<source::Build> builds_of_cells(const std::vector<config::Cell>& cells) {
  std::vector<source::Build> builds;
  for (const config::Cell& cell : cells) add_build(builds, cell);
  return builds;
}

}  // namespace weir::app
