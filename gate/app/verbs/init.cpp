// weir init: writes a starter weir.yaml for the engines found on this machine.
#include "gate/flow/init.hpp"

#include "gate/app/options.hpp"
#include "gate/unit/declared_metric.hpp"

namespace weir::app {

// Adds `weir init`, which writes a first weir.yaml, and with --ci a workflow.
void add_init(const Verb& verb) {
  const auto options = verb.set_flow_with_new_options(flow::init);
  verb.add_config_option("File to write");
  verb.flag("--force", options->force, "Overwrite an existing file");
  verb.flag("--list", options->list, "List the presets, and the engines that they are for");
  verb.option("--twin", options->twin, "NAME",
              "Gate the simulated GPU NAME, and no other backend (weir device list)");
  verb.list_option("--metric", options->metrics, "NAME=REGEX",
                   "Read this metric from what the command after -- prints; repeatable. A name of "
                   "your own ends in " +
                       unit::metric_name_ends());
  verb.option("--tokens", options->tokens, "N",
              "Argument of the command after -- that is the number of tokens (default: that of a "
              "flag such as -n or --max-new-tokens)")
      ->check(CLI::PositiveNumber);
  verb.seconds("--timeout", options->timeout, "2m", "Time for the one run of the command after --");
  verb.add_json_option();
  verb.option("--ci", options->ci, "SYSTEM",
              "Write a workflow too, measure once, and list what is left to do; keeps files that "
              "exist, and measures nothing if it keeps all")
      ->check(CLI::IsMember({"github", "gitlab"}));
  verb.flag("--forks", options->forks,
            "With --ci github: two workflows, so that pull requests from forks are gated too");
  verb.flag("--queue", options->queue, "With --ci github: gate a merge queue's groups, too");
  verb.flag("--comments", options->comments,
            "With --ci github: a workflow for /weir waive CODE REASON in a comment");
  verb.flag("--nightly", options->nightly,
            "With --ci github: a workflow for each night, on a runner of your own with a GPU");
  verb->footer(
      "weir looks for llama-bench (or llama-completion), agave, hf2q and\n"
      "mlx_lm.benchmark in ., build/, build/bin, bin, zig-out/bin, engines/llama.cpp,\n"
      "virtual environments of Python (the active one, .venv, venv) and PATH, for vllm\n"
      "and other servers in these environments alone, and for weir-engine in these\n"
      "folders alone. It looks for models in . and models/: GGUF files, and folders\n"
      "with config.json and safetensors. It starts none. For a command after \"--\" it\n"
      "writes that one, and starts it once.\n\n"
      "Examples:\n  weir init && weir gate --counts-only\n  weir init --twin nvidia-rtx-4090\n"
      "  weir init --ci github\n"
      "  weir init --metric 'decode_tokens_per_second=speed: ([0-9.]+)' -- ./bench -n 8\n"
      "  weir init --ci github --queue --comments --nightly\n  weir init --ci github --forks");
}

}  // namespace weir::app
