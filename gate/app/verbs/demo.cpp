// weir demo: shows one injected regression, from the baseline to its cause.
#include "gate/flow/demo.hpp"

#include "gate/app/options.hpp"

namespace weir::app {

// Adds `weir demo`, which gates a tiny engine with an injected regression.
void add_demo(const Verb& verb) {
  const auto options = verb.set_flow_with_new_options(flow::demo);
  verb.option("--inject", options->plant, "NAME",
              "Regression to inject (default: cpu-split; on the CPU unbatched-qkv). An "
              "unknown name lists them");
  verb.option("--keep", options->keep, "DIR", "Keep all files in this new folder");
  verb.option("--engine", options->engine, "FILE", "Path of weir-engine (default: beside weir)");
  verb.add_color_option();
  verb->footer(
      "The demo makes a tiny model and a weir.yaml, stores baselines, injects a\n"
      "regression into weir's own small engine, gates it again and explains the\n"
      "verdict. Each command is real, and shown as you would type it. It needs no GPU:\n"
      "without a Vulkan device the engine runs on the CPU.\n\n"
      "Examples:\n"
      "  weir demo\n"
      "  weir demo --inject op-on-cpu --keep try      then cd try, and go on yourself\n\n"
      "Exit codes: 0 all went as it should (one gate exits 1 on purpose), 3 it did not.");
}

}  // namespace weir::app
