// weir calibrate: the configured cells against themselves, through the whole gate but its counts;
// then replays of what was measured. Can this machine hold these limits?
#include "gate/flow/calibrate.hpp"

#include "gate/app/options.hpp"

namespace weir::app {

void add_calibrate(const Verb& verb) {
  auto options = std::make_shared<flow::CalibrateOptions>();
  verb.takes(Takes::cells);
  verb.option("--budget", options->budget, "DURATION",
              "Time for all pairs of the calibration (default: gate.budget)");
  verb.range("--pairs", options->pairs, verdict::k_fewest_replayed, std::int64_t{10'000},
             "Pairs of each cell, at least");
  verb.range("--replays", options->replays, 1, 1'000'000, "Gates to replay");
  verb.optional("--against", options->against, "REF|DIR",
                "Another build of the same source in place of the same program:\n"
                "a REF or DIR, or -- COMMAND… at the end of the line");
  verb.optional("--resume", options->resume, "[RUN]",
                "Go on with an interrupted calibration (default: newest)");
  verb->footer(
      "Examples:\n"
      "  weir calibrate                      every cell, within gate.budget\n"
      "  weir calibrate --cell '*/cpu/*' --budget 30m\n"
      "  weir calibrate --against HEAD       another build of the same commit: what do two builds\n"
      "                                      of one source differ by?\n\n"
      "Exit codes: 0 measured, whatever the answer; 4 the limits can not be held, under\n"
      "on_inconclusive: fail; 2 and 3 as weir gate.");
  verb.runs_with_words(options, flow::calibrate);
}

}  // namespace weir::app
