// weir explain: why a cell failed, or what differs between two profiles. Judges nothing.
#include "gate/flow/explain.hpp"

#include "gate/app/options.hpp"

namespace weir::app {

void add_explain(const Verb& verb) {
  auto options = std::make_shared<flow::ExplainOptions>();
  verb.option("WHAT", options->what, "",
              "A judged run or its verdict.json (the newest run when none is named), or two\n"
              "sides: runs, files of weir run --json, or what engines and profilers wrote")
      ->expected(0, 2);
  verb.option("--model", options->model, "FILE",
              "Whose layers counts are held against: GGUF or config.json");
  verb.flag("--checklist", options->checklist,
            "Also the checklist for slow engines, and counts outside of the usual");
  verb.takes(Takes::runs);
  verb.refuses("-c,--config", "a run's own configuration, kept in it, names its models");
  verb.refuses("--baselines", "what judged a run stands in its verdict");
  verb->footer(
      "Judges nothing: exit code 0 whatever it finds.\n\n"
      "Examples:\n"
      "  weir explain                               why the newest run's cells failed\n"
      "  weir explain --cell '*/vulkan/decode' --json\n"
      "  weir explain weir-out/A weir-out/B         what differs between two runs\n"
      "  weir explain before.json after.json --model model.gguf\n"
      "  weir explain old.stderr.txt new.stderr.txt   as GGML_VK_PERF_LOGGER=1 prints it");
  verb.runs(options, flow::explain_changes);
}

}  // namespace weir::app
