// weir trend: the history of what was measured. One file a subcommand.
#include "gate/app/trend.hpp"

namespace weir::app {

void add_trend(CLI::App& app) {
  CLI::App* verb = app.add_subcommand("trend", "A history of what was measured");
  verb->require_subcommand(1);
  verb->footer(
      "Examples:\n"
      "  weir trend import weir-out/*               keep what was measured, in .weir/history.db\n"
      "  weir trend import --from-dir baselines     from git alone\n"
      "  weir trend list                            one line a series\n"
      "  weir trend changes                         where it changed, and by how much\n"
      "  weir trend site public                     pages, to be opened in a browser");
  add_trend_import(*verb);
  add_trend_export(*verb);
  add_trend_list(*verb);
  add_trend_changes(*verb);
  add_trend_ack(*verb);
  add_trend_notify(*verb);
  add_trend_site(*verb);
}

}  // namespace weir::app
