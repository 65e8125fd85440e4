// weir doctor: shows what probes can see of a program, and what adds noise to this machine. It
// starts no engine except a command after "--" and those of --cell.
#include "gate/flow/doctor.hpp"

#include "gate/app/options.hpp"

namespace weir::app {

// Adds `weir doctor`, which checks what weir can count in programs here.
void add_doctor(const Verb& verb) {
  const auto options = verb.set_flow_with_new_options(flow::doctor);
  verb.option("ENGINE", options->engines, "",
              "Programs, or engines of weir.yaml (default: all its engines)");
  verb.add_config_option();
  verb.add_cell_option();
  verb.add_json_option();
  verb.add_color_option();
  verb->footer(
      "weir reads the programs and starts none. It runs a command after \"--\" once, with\n"
      "all probes, and prints what each counted. With --cell it runs the first command\n"
      "of each cell as a gate does, and prints how it ended, what it printed, and which\n"
      "metrics it lacks. A server is sent a request. Exit code 3: a program cannot be\n"
      "read, or a cell's command failed.\n\n"
      "Examples:\n"
      "  weir doctor build/bin/llama-bench\n"
      "  weir doctor -- node engine.mjs model.gguf 8\n"
      "  weir doctor --cell 'mine/tiny/vulkan/decode'    why a cell was an error");
}

}  // namespace weir::app
