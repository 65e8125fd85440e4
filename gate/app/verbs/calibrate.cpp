// weir calibrate: compares cells with themselves and replays gates from these pairs, to find out
// which time limits this machine can hold.
#include "gate/flow/calibrate.hpp"

#include "gate/app/options.hpp"

namespace weir::app {

// Adds `weir calibrate`, which runs cells against themselves and reports the smallest drop that a
// gate could find here.
void add_calibrate(const Verb& verb) {
  const auto options = verb.set_flow_with_new_options(flow::calibrate);
  verb.add_group(OptionGroup::cells);
  verb.option("--budget", options->budget, "DURATION", "Time for all pairs (default: gate.budget)");
  verb.range("--pairs", options->pairs, verdict::k_min_replays, std::int64_t{10'000},
             "Fewest pairs per cell");
  verb.range("--replays", options->replays, 1, 1'000'000,
             "Gates to simulate from the measured pairs");
  verb.optional("--against", options->against, "REF|DIR",
                "Compare with another build of the same source instead of the same program: a REF "
                "or DIR, or -- COMMAND… at the end of the line");
  verb.optional("--resume", options->resume, "[RUN]",
                "Continue an interrupted calibration (default: the newest)");
  verb.add_trust_cache_option();
  verb->footer(
      "weir runs each cell against itself, in pairs, and reports the smallest drop that\n"
      "a gate on this machine can find.\n\n"
      "Examples:\n"
      "  weir calibrate                      every cell, within gate.budget\n"
      "  weir calibrate --cell '*/cpu/*' --budget 30m\n"
      "  weir calibrate --against HEAD       how far two builds of one commit differ\n\n"
      "Exit codes: 0 measured, whatever the answer; 4 the limits cannot be held (if\n"
      "gate.on_inconclusive is fail); 2 and 3 as for weir gate.");
}

}  // namespace weir::app
