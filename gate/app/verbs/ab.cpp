// weir ab: two programs with the same arguments, without a configuration.
#include "gate/flow/ab.hpp"

#include "gate/app/options.hpp"

namespace weir::app {

void add_ab(const Verb& verb) {
  auto options = std::make_shared<flow::AbOptions>();
  verb.option("PROGRAM", options->programs, "", "The base and the candidate, or one for both")
      ->expected(1, 2)
      ->required();
  verb.repeated("--env", options->env, "NAME=VALUE",
                "Set in the candidate's environment; repeatable");
  verb.option("--preset", options->preset, "NAME",
              "What its arguments mean (default: by the program's name; weir init --list)");
  verb.option("--device", options->device, "DEVICE",
              "Where it runs (default: as its arguments say, else the first device that is here)")
      ->check(CLI::IsMember({"cpu", "vulkan", "opencl", "cuda", "hip", "metal"}));
  verb.preset("--budget", options->budget, "DURATION", "The most time for pairs of timed runs");
  verb.option("--write", options->write, "FILE", "Keep the configuration as a weir.yaml");
  verb.flag("--counts-only", verb.job().asked.counts_only, "Leave the timed pairs out");
  verb.takes_out();
  verb.takes(Takes::output);
  add_report_files(verb, options->files);
  verb->footer(
      "Both run with the arguments after \"--\". Counts are compared exactly, then tokens/s in\n"
      "pairs in random order until the verdict is certain or the budget is spent.\n\n"
      "Examples:\n"
      "  weir ab old/llama-bench new/llama-bench -- -m model.gguf -ngl 99 -n 32\n"
      "  weir ab llama-bench --env GGML_VK_DISABLE_FUSION=1 -- -m model.gguf -n 32\n"
      "  weir ab old new --counts-only -- ARGS       counts and kernels alone: seconds\n\n"
      "Exit codes: 0 pass, 1 a limit is broken, 2 usage, 3 something could not be measured.");
  verb.runs_with_words(options, flow::ab);
}

}  // namespace weir::app
