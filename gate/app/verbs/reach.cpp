// weir reach: what each cell runs, recorded once; which cells run what changed.
#include "gate/flow/reach.hpp"

#include "gate/app/options.hpp"

namespace weir::app {

void add_reach(const Verb& verb) {
  auto options = std::make_shared<flow::ReachOptions>();
  verb.takes(Takes::cells);
  verb.flag("--record", options->record,
            "Run each cell once under valgrind and keep what it ran (needs an engine with\n"
            "debug information; some fifty times slower than the engine itself)");
  verb.repeated("--coverage", options->coverage, "FILE",
                "With --record, of one cell: take the files from its coverage build's JSON\n"
                "(llvm-cov export, gcov --json-format --stdout) and run nothing");
  verb.option("--diff", options->diff, "BASE",
              "What changed since the merge-base of BASE and HEAD");
  verb.preset("--format", options->format, "", "text, or cells: their names, one a line")
      ->check(CLI::IsMember({"text", "cells"}));
  verb->footer(
      "Examples:\n"
      "  weir reach --record                          once, and after larger changes\n"
      "  weir reach --diff origin/main                which cells, why, and what none of them "
      "runs\n"
      "  weir reach --diff origin/main --format cells for scripts");
  verb.runs(options, flow::reach);
}

}  // namespace weir::app
