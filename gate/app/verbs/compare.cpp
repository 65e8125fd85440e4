// weir compare A B: judges run B with run A as the base, by the limits of B's configuration. For
// any other two profiles it lists differences, and judges nothing.
#include "gate/app/options.hpp"
#include "gate/flow/explain.hpp"

namespace weir::app {

// Adds `weir compare`, which compares two runs or profiles. The flow also gets whether --top was
// given.
void add_compare(const Verb& verb) {
  auto options = std::make_shared<flow::CompareOptions>();
  verb.option("A", options->base, "",
              "The base: a run's folder or run.jsonl, a file of weir run --json, a folder of probe "
              "files, or the output of an engine or profiler")
      ->required();
  verb.option("B", options->candidate, "", "The candidate, judged where both are runs")->required();
  verb.range("--top", options->top, 1, 100'000, "Rows per section, for profiles");
  verb.add_group(OptionGroup::runs);
  verb.refuses("-c,--config", "the limits are those of B's own configuration, stored in the run");
  verb.refuses("--out", "A and B are given with their folders");
  verb.refuses("--baselines", "A takes the place of stored baselines");
  add_report_files(verb, options->files);
  verb->footer(
      "For two runs the exit code is the verdict. For other profiles it is 0.\n\n"
      "Examples:\n"
      "  weir compare weir-out/20261120-0930 weir-out/20261120-1015\n"
      "  weir compare before.json after.json          files of weir run --json\n"
      "  weir compare q8.stderr.txt q4.stderr.txt     output of GGML_VK_PERF_LOGGER=1");
  verb.set_flow(options, [verb, options](const flow::Job& job, const flow::CompareOptions&) {
    options->top_is_set = verb->count("--top") != 0;
    return flow::compare(job, *options);
  });
}

}  // namespace weir::app
