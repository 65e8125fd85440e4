// weir trend: the history of what was measured. One file a subcommand.
#include "gate/app/trend.hpp"

namespace weir::app {

void add_trend(CLI::App& app) {
  CLI::App* verb = app.add_subcommand("trend", "Every run kept: import, export, list");
  verb->require_subcommand(1);
  add_trend_import(*verb);
  add_trend_export(*verb);
  add_trend_list(*verb);
}

}  // namespace weir::app
