// weir demo: a newcomer's first regression.
#include <memory>

#include "gate/app/demo.hpp"

namespace weir::app {

void add_demo(CLI::App& app) {
  CLI::App* verb = app.add_subcommand("demo", "One regression, from the baseline to its cause");
  auto options = std::make_shared<DemoOptions>();
  verb->add_option("--plant", options->plant,
                   "The regression (default: cpu-split; on the CPU unbatched-qkv).\n"
                   "weir-engine --plant list shows them")
      ->type_name("NAME");
  verb->add_option("--keep", options->keep, "A new folder for all of it, which stays")
      ->type_name("DIR");
  verb->add_option("--engine", options->engine, "weir-engine (default: the one beside weir)")
      ->type_name("FILE");
  verb->add_option("--color", options->common.color, "auto, always or never")
      ->check(CLI::IsMember({"auto", "always", "never"}))
      ->capture_default_str();
  verb->footer(
      "Makes a folder with a tiny model and a weir.yaml, stores baselines, gates weir's own small\n"
      "engine before and after a regression, and asks why: real commands, each shown as you would\n"
      "type it. Needs no GPU; without any Vulkan device the engine runs on the CPU.\n\n"
      "Exit code 0 when all went as it should (the gate's 1 is a part of it), 3 when not.\n\n"
      "Examples:\n"
      "  weir demo\n"
      "  weir demo --plant op-on-cpu --keep try      then cd try, and go on by yourself");
  set_action(*verb, [options]() -> Result<ExitCode> {
    sys::RealFiles files;
    const sys::Interrupts interrupts;
    return demo(*options, files, interrupts.stop());
  });
}

}  // namespace weir::app
