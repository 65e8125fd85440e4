#include "gate/app/trend_changes.hpp"

namespace weir::app {

bool is_change_to_tell(const history::SeriesChange& change) {
  // Another class alone is none; where a step is clear besides, somebody has to look at it.
  const bool alone = change.kind == history::SeriesChangeKind::device_class && !change.low;
  return !change.known && change.worse.value_or(true) && !alone;
}

void add_repository_option(CLI::App& verb, std::string& repository) {
  verb.add_option("--repository", repository,
                  "The checkout whose commits give the order (default: the current folder's;\n"
                  "without one, series go by time)")
      ->type_name("DIR");
}

}  // namespace weir::app
