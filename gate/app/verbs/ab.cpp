// weir ab: compares two programs with the same arguments, without a configuration.
#include "gate/flow/ab.hpp"

#include "gate/app/options.hpp"
#include "gate/unit/declared_metric.hpp"
#include "gate/unit/device_api.hpp"

namespace weir::app {

// Adds `weir ab`, which compares two programs, run with the same arguments in pairs.
void add_ab(const Verb& verb) {
  constexpr int k_max_programs = 1000;
  const auto options = verb.set_flow_with_new_options(flow::ab);
  verb.option("PROGRAM", options->programs, "", "Base and candidate, or one program for both")
      ->expected(1, k_max_programs)  // of which the flow takes two
      ->required();
  verb.list_option("--env", options->env, "NAME=VALUE",
                   "Set a variable for the candidate only; repeatable");
  verb.option("--base-args", options->base_args, "ARGS",
              "More arguments of the base only, one text with blanks between them");
  verb.option("--candidate-args", options->candidate_args, "ARGS",
              "More arguments of the candidate only: --candidate-args='-fa 1'");
  verb.list_option("--metric", options->metrics, "NAME=REGEX",
                   "Read this metric from what both programs print, in group 1 of REGEX; "
                   "repeatable (default: tokens/s and ms per token, where they are printed). A "
                   "name of your own ends in " +
                       unit::metric_name_ends());
  verb.option("--preset", options->preset, "NAME",
              "Preset that knows its arguments (default: by the program's name; weir init --list "
              "has them)");
  verb.option("--device", options->device, "DEVICE",
              "Device to run on (default: from its arguments, else the first device here)")
      ->check(CLI::IsMember(unit::device_names()));
  verb.option("--probes", options->probes, "NAMES",
              "Probes to count with, separated by commas, such as python or host (default: those "
              "that see something)")
      ->delimiter(',');
  verb.option("--twin", options->twin, "NAME",
              "Count on the simulated GPU NAME, without times (weir device list)");
  verb.seconds("--timeout", options->timeout, "2m",
               "Time for the one run that shows what an unknown program does");
  verb.option_with_default("--budget", options->budget, "DURATION", "Time for all pairs");
  verb.option("--write", options->write, "FILE", "Write the configuration as a weir.yaml");
  verb.flag("--counts-only", verb.job().selection.counts_only, "Count only: no timed pairs");
  verb.add_out_option();
  verb.add_group(OptionGroup::output);
  add_report_files(verb, options->files);
  verb->footer(
      "Both programs run with the arguments after \"--\". weir compares counts, then\n"
      "tokens/s in pairs, until the verdict is certain or the budget is spent.\n\n"
      "Examples:\n"
      "  weir ab old/llama-bench new/llama-bench -- -m model.gguf -ngl 99 -n 32\n"
      "  weir ab llama-bench --env GGML_VK_DISABLE_FUSION=1 -- -m model.gguf -n 32\n"
      "  weir ab ./engine --base-args='-t 4' --candidate-args='-t 8' -- -n 32\n"
      "  weir ab old new --counts-only -- ARGS       counts and kernels only: seconds\n"
      "  weir ab old new --twin nvidia-rtx-4090 -- ARGS   a CUDA build, without a GPU\n"
      "  weir ab ./a.py ./b.py --probes python --counts-only -- 24    calls by name\n"
      "  weir ab ./a.py ./b.py --metric 'load_seconds=loaded in ([0-9.]+) s'\n\n"
      "Exit codes: 0 pass, 1 a limit is broken, 2 usage error, 3 something could not\n"
      "be measured.");
}

}  // namespace weir::app
