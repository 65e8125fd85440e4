// weir profile: one program once, with everything that the probes can see: a table and a Chrome
// trace. Judges nothing.
#include "gate/flow/profile.hpp"

#include "gate/app/options.hpp"
#include "gate/probes/read/timeline.hpp"
#include "gate/report/profile_texts.hpp"

namespace weir::app {

void add_profile(const Verb& verb) {
  auto options = std::make_shared<flow::ProfileOptions>();
  verb.takes(Takes::config);
  verb.option("what", options->what, "FILE|RUN|CELL",
              "A cell of weir.yaml, a run's folder, a folder of probe files, a file of weir run "
              "--json, or what an engine or profiler wrote");
  verb.option("--probes", options->probes, "NAME,…", "Which to attach (default: those that fit)")
      ->delimiter(',');
  verb.preset("--timing", options->timing, "",
              "Device times: of what lies between two barriers (batched), of each command and "
              "each op of the CPU alone (serialized), or none (off)")
      ->check(CLI::IsMember({"batched", "serialized", "off"}));
  verb.option("--trace", options->trace, "FILE", "Where the Chrome trace goes");
  verb.option("--html", options->page.file, "FILE",
              "Where a page goes that anybody can open: timeline, statistics, machine");
  verb->add_flag_callback(
      "--show-private", [options] { options->page.privacy = report::Private::shown; },
      "Leave paths, prompts and hosts in the page, and in the JSON of what others wrote");
  verb.range("--top", options->top, 1, 100'000, "Rows of each table");
  verb.preset("--by", options->by, "",
              "Add up work by kernel, op, op-shape (op, types, shape, backend), layer, token, …")
      ->check(CLI::IsMember(report::observed_groupings()));
  verb.range("--timeout", options->timeout, 1.0, 86'400.0, "Seconds until a COMMAND is stopped");
  verb.range("--events", options->events_mib, std::uint64_t{1}, probes::k_most_events_mib,
             "MiB of events for each process");
  verb.flag("--keep", options->keep, "Keep the probes' own files");
  verb->footer(
      "Examples:\n  weir profile llama.cpp/tiny-llama/vulkan/decode\n"
      "  weir profile -- llama-bench -m model.gguf -n 16\n"
      "  weir profile --html profile.html -- llama-bench -m model.gguf -n 16\n"
      "  weir profile --timing serialized --trace t.json -- ./my-engine\n"
      "  weir profile weir-out/20261120-0930      all that a run measured\n"
      "  weir profile engine.stderr.txt             as GGML_VK_PERF_LOGGER=1 prints it\n"
      "  weir profile --html page.html trace.json   of PyTorch, rocprof, …");
  verb.runs_with_words([verb, options](const Program::Words& words) {
    options->command = words;
    options->given = verb.given({"--probes", "--timing", "--trace", "--html", "--show-private",
                                 "--top", "--by", "--timeout", "--events", "--keep"});
    return flow::profile(verb.job(), *options);
  });
}

}  // namespace weir::app
