// weir reach: records the code that each cell runs, and lists the cells that run changed code.
#include "gate/flow/reach.hpp"

#include "gate/app/options.hpp"

namespace weir::app {

// Adds `weir reach`, which shows which cells run code that a change touches.
void add_reach(const Verb& verb) {
  const auto options = verb.set_flow_with_new_options(flow::reach);
  verb.add_group(OptionGroup::cells);
  verb.flag("--record", options->record,
            "Run each cell once under valgrind and record the code it runs (needs debug "
            "information; about fifty times slower)");
  verb.list_option("--coverage", options->coverage, "FILE",
                   "With --record, for one cell: read a coverage build's JSON instead (llvm-cov "
                   "export, or gcov --json-format --stdout)");
  verb.option("--diff", options->diff, "BASE", "Base of the change: its merge-base with HEAD");
  verb.option_with_default("--format", options->format, "",
                           "What to print; cells is one name a line")
      ->check(CLI::IsMember({"text", "cells"}));
  verb->footer(
      "weir reach judges nothing.\n\n"
      "Examples:\n"
      "  weir reach --record                            once, and after larger changes\n"
      "  weir reach --diff origin/main                  which cells, and why\n"
      "  weir reach --diff origin/main --format cells   for scripts");
}

}  // namespace weir::app
