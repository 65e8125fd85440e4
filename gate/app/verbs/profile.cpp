// weir profile: runs a program once with all probes, and shows a table, a Chrome trace and a page.
// Judges nothing.
#include "gate/flow/profile.hpp"

#include "gate/app/options.hpp"
#include "gate/base/text.hpp"
#include "gate/probes/read/timeline.hpp"
#include "gate/report/observed_text.hpp"

namespace weir::app {

void add_profile(const Verb& verb) {
  auto options = std::make_shared<flow::ProfileOptions>();
  verb.add_group(OptionGroup::config);
  verb.option("what", options->what, "FILE|RUN|CELL",
              "A cell of weir.yaml, a run's folder, a folder of probe files, a file of weir run "
              "--json, or the output of an engine or profiler");
  verb.option("--probes", options->probes, "NAMES",
              "Probes to attach, separated by commas (default: those that fit)")
      ->delimiter(',');
  verb.option_with_default(
          "--timing", options->timing, "",
          "Device times: batched (the work between two barriers), serialized (each command, "
          "and each op of the CPU), or off")
      ->check(CLI::IsMember({"batched", "serialized", "off"}));
  verb.option("--trace", options->trace, "FILE", "Write the Chrome trace there");
  verb.option("--html", options->page.file, "FILE",
              "Write a page for any browser: timeline, statistics, machine");
  verb->add_flag_callback(
      "--show-private", [options] { options->page.privacy = report::PrivateWords::shown; },
      "Keep paths, prompts and host names in the page and in JSON");
  verb.range("--top", options->top, 1, 100'000, "Rows per table");
  verb.option_with_default(
          "--by", options->by, "NAME",
          fmt::format("What to group work by: {}; \"layer,op\" is by op within each layer, "
                      "\"token,op\" by op, of one token",
                      text::join(report::observed_groupings())))
      ->check([](const std::string& words) {
        report::ObservedStyle style;
        if (report::set_grouping(style, words)) return std::string();
        return fmt::format(
            "{} is not one of {}; with a comma go two that group ops, and "
            "token in front of these",
            words, text::join(report::observed_groupings()));
      });
  verb.option("--peak", options->peak_file, "FILE",
              "Show each op as a share of the highest rates in FILE (weir replay --peak --json "
              "FILE, or test-backend-ops perf)");
  verb.seconds("--timeout", options->timeout, "10m", "Time until COMMAND is stopped");
  verb.range("--events", options->events_mib, std::uint64_t{1}, probes::k_max_events_mib,
             "MiB of events per process");
  verb.flag("--keep", options->keep, "Keep the probe files");
  verb->footer(
      "Examples:\n"
      "  weir profile llama.cpp/tiny-llama/vulkan/decode\n"
      "  weir profile -- llama-bench -m model.gguf -n 16\n"
      "  weir profile --html profile.html -- llama-bench -m model.gguf -n 16\n"
      "  weir profile --timing serialized --trace t.json -- ./my-engine\n"
      "  weir profile weir-out/20261120-0930       everything that a run measured\n"
      "  weir profile engine.stderr.txt            output of GGML_VK_PERF_LOGGER=1\n"
      "  weir profile --html page.html trace.json  a trace of PyTorch, rocprof, …");
  verb.set_flow(options, [verb, options](const flow::Job& job, const flow::ProfileOptions&) {
    options->given =
        verb.used_options({"--probes", "--timing", "--trace", "--html", "--show-private", "--top",
                           "--by", "--peak", "--timeout", "--events", "--keep"});
    return flow::profile(job, *options);
  });
}

}  // namespace weir::app
