// weir config show: prints a weir.yaml with its presets expanded.
#include "gate/app/options.hpp"
#include "gate/flow/configure.hpp"

namespace weir::app {

void add_config(const Verb& verb) {
  verb->require_subcommand(1);
  const Verb show = verb.subcommand("show", "Print the configuration with its presets expanded");
  show.add_config_option();
  show->footer(
      "The output is YAML without presets, and gates the same cells.\n\n"
      "Example:\n  weir config show -c weir.yaml");
  show.set_flow(std::make_shared<int>(),
                [](const flow::Job& job, int) { return flow::show_config(job); });
}

}  // namespace weir::app
