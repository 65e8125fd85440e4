// weir demo: a newcomer's first regression.
#include "gate/flow/demo.hpp"

#include "gate/app/options.hpp"

namespace weir::app {

void add_demo(const Verb& verb) {
  auto options = std::make_shared<flow::DemoOptions>();
  verb.option("--plant", options->plant, "NAME",
              "The regression (default: cpu-split; on the CPU unbatched-qkv).\n"
              "weir-engine --plant list shows them");
  verb.option("--keep", options->keep, "DIR", "A new folder for all of it, which stays");
  verb.option("--engine", options->engine, "FILE", "weir-engine (default: the one beside weir)");
  verb.takes_color();
  verb->footer(
      "Makes a folder with a tiny model and a weir.yaml, stores baselines, gates weir's own small\n"
      "engine before and after a regression, and asks why: real commands, each shown as you would\n"
      "type it. Needs no GPU; without any Vulkan device the engine runs on the CPU.\n\n"
      "Exit code 0 when all went as it should (the gate's 1 is a part of it), 3 when not.\n\n"
      "Examples:\n"
      "  weir demo\n"
      "  weir demo --plant op-on-cpu --keep try      then cd try, and go on by yourself");
  verb.runs(options, flow::demo);
}

}  // namespace weir::app
