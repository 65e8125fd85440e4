// weir explain: explains why a cell failed, or what differs between two profiles. Judges nothing.
#include "gate/flow/explain.hpp"

#include "gate/app/options.hpp"

namespace weir::app {

// Adds `weir explain`, which says why cells failed, or what differs between two profiles.
void add_explain(const Verb& verb) {
  const auto options = verb.set_flow_with_new_options(flow::explain_changes);
  verb.option("WHAT", options->what, "",
              "A judged run or its verdict.json (default: the newest run), one profile (the "
              "checklist), or two things to compare: everything that weir compare takes")
      ->expected(0, 2);
  verb.option("--model", options->model, "FILE",
              "Model whose layers explain the counts: GGUF or config.json");
  verb.flag("--checklist", options->checklist,
            "Add the checklist for slow engines, and unusual counts");
  verb.add_group(OptionGroup::runs);
  verb.refuses("-c,--config", "a run stores its own configuration, which names its models");
  verb.refuses("--baselines", "a run's verdict names the baselines that it was judged by");
  verb->footer(
      "weir explain judges nothing: its exit code is 0 whatever it finds.\n\n"
      "Examples:\n"
      "  weir explain                               why cells of the newest run failed\n"
      "  weir explain --cell '*/vulkan/decode' --json\n"
      "  weir explain profile.txt                   the checklist of one profile\n"
      "  weir explain weir-out/A weir-out/B         what differs between two runs\n"
      "  weir explain before.json after.json --model model.gguf\n"
      "  weir explain old.txt new.txt               output of GGML_VK_PERF_LOGGER=1");
}

}  // namespace weir::app
