// weir config show: what a weir.yaml comes to.
#include "gate/app/options.hpp"
#include "gate/flow/configure.hpp"

namespace weir::app {

void add_config(const Verb& verb) {
  verb->require_subcommand(1);
  const Verb show = verb.below("show", "Print the configuration with its presets expanded");
  show.takes_config();
  show->footer("YAML that means the same without presets; weir init --list has the presets.");
  show.runs(std::make_shared<int>(),
            [](const flow::Job& job, int) { return flow::show_config(job); });
}

}  // namespace weir::app
