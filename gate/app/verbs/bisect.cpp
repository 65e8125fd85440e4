// weir bisect: finds the first commit that broke a cell.
#include "gate/flow/bisect.hpp"

#include "gate/app/options.hpp"

namespace weir::app {

// Adds `weir bisect`, which finds the commit between a good and a bad one that broke a limit.
void add_bisect(const Verb& verb) {
  const auto options = verb.set_flow_with_new_options(flow::bisect);
  options->bad = "HEAD";
  verb.add_group(OptionGroup::matrix);
  verb.option("good", options->good, "GOOD", "A good commit");
  verb.option_with_default("bad", options->bad, "BAD", "A bad commit");
  verb.flag("--times", options->judges_by_times,
            "Judge times, in pairs with GOOD's program, instead of counts");
  verb.option("--budget", options->budget, "DURATION",
              "Time for all pairs of a commit (default: gate.budget)");
  verb.optional("--resume", options->resume, "[FOLDER]",
                "Continue a bisection (default: the newest); with --budget, try "
                "skipped commits again");
  verb.add_trust_cache_option();
  verb->footer(
      "Examples:\n"
      "  weir bisect v1.2 main --cell '*/vulkan/decode'    by counts: one run decides\n"
      "  weir bisect v1.2 main --cell '*/cpu/*' --times    by times, in pairs with v1.2\n"
      "  weir bisect --resume                              continue after a kill\n\n"
      "weir checks out and builds each commit in its cache. Your checkout stays as it\n"
      "is.\n"
      "Exit codes: 0 found; 2 usage error, GOOD is bad, or BAD is good; 3 could not be\n"
      "decided; 130 interrupted.");
}

}  // namespace weir::app
