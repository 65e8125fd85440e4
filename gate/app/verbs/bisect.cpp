// weir bisect: the first commit that broke a cell.
#include "gate/flow/bisect.hpp"

#include "gate/app/options.hpp"

namespace weir::app {

void add_bisect(const Verb& verb) {
  auto options = std::make_shared<flow::BisectWanted>();
  options->bad = "HEAD";
  verb.takes(Takes::matrix);
  verb.option("good", options->good, "GOOD", "A commit that is good");
  verb.preset("bad", options->bad, "BAD", "A commit that is bad");
  verb.flag("--times", options->times,
            "Judge by times, in pairs beside GOOD's program, in place of counts");
  verb.optional("--resume", options->resume, "[FOLDER]",
                "Go on with an interrupted bisection (default: newest)");
  verb->footer(
      "Examples:\n"
      "  weir bisect v1.2 main --cell '*/vulkan/decode'    by counts: one run decides\n"
      "  weir bisect v1.2 main --cell '*/cpu/*' --times    by times, in pairs beside v1.2\n"
      "  weir bisect --resume                              go on after a kill\n\n"
      "Each commit is checked out and built in weir's cache; your checkout stays as it is.\n"
      "Exit codes: 0 found, 2 usage, or GOOD is bad already, or BAD is good, 3 could not be\n"
      "decided, 130 interrupted.");
  verb.runs(options, flow::bisect);
}

}  // namespace weir::app
