// weir replay: runs the recorded ops of an engine's steps, or recorded Vulkan kernels, again one by
// one. Judges nothing.
#include "gate/flow/replay.hpp"

#include "gate/app/options.hpp"
#include "gate/probes/read/read_kernels.hpp"

namespace weir::app {

void add_replay(const Verb& verb) {
  auto options = std::make_shared<flow::ReplayOptions>();
  verb.add_group(OptionGroup::runs);
  verb->remove_option(verb->get_option("--cell"));  // a recording is of one program
  verb.option("PROFILE", options->what, "",
              "A recording (--record), or a folder of probe files made with WEIR_PROBE_REPLAY=1");
  verb.option("--record", options->record, "FILE", "Run the program after -- and record its ops");
  verb.flag("--kernels", options->kernels,
            "With --record: record Vulkan kernels into the folder FILE instead of ops");
  verb.list_option("--op", options->ops, "GLOB",
                   "Only ops that match GLOB, such as MUL_MAT; repeatable");
  verb.option("--engine", options->engine, "PATH",
              "Folder of the libggml-base.so to run, or a weir-engine");
  verb.option("--on", options->on, "PLACE",
              "Device for all ops: cpu, vulkan, vulkanN or weir-engine (default: where each ran)");
  verb.option("--threads", options->threads, "", "Threads (default: as recorded)")
      ->check(CLI::Range(1, 1024));
  verb.flag(
      "--peak", options->peak,
      "Large matrix multiplications of the recorded weight types instead of the step's ops: the "
      "highest rates of this machine, for weir profile --peak");
  verb.option("--step", options->step, "", "Which kind of step, from 1 (default: decode)")
      ->check(CLI::Range(1, 128));
  verb.option("--seconds", options->seconds, "",
              "Shortest time per op, 0.2 unless it is said; longest time per kernel, else 1")
      ->check(CLI::Range(0.001, 600.0));
  verb.flag("--any-op", options->any_op,
            "Also run ops whose shapes weir cannot check: only for recordings that you trust");
  verb.flag("--any-version", options->any_version,
            "Accept another version of ggml than the recorded one");
  verb.range("--memory", options->memory_mib, 1, 1 << 20,
             "Most MiB for the tensors of one op, or for one kernel");
  verb.range("--top", options->top, 1, 100'000, "Rows of the table");
  verb.seconds("--timeout", options->timeout, "10m", "Time until the program after -- is stopped");
  verb.option("--device", options->device, "NAME",
              "For kernels: device number, or part of its name");
  verb.range("--runs", options->runs, 1, 200, "For kernels: timed runs of each");
  verb.option("--tokens", options->tokens, "",
              "For kernels: tokens that the recorded program generated, for times per token")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40));
  verb.range("--mib", options->file_mib, std::uint64_t{1}, probes::k_max_kernels_mib,
             "For kernels: MiB to record per process (--record)");
  verb->footer(
      "weir replay judges nothing.\n\n"
      "Examples:\n"
      "  weir replay --record ops.json -- llama-bench -m model.gguf -p 0 -n 16 -t 1\n"
      "  weir replay ops.json --engine ~/llama.cpp/build/bin\n"
      "  weir replay ops.json --engine ~/llama.cpp/build/bin --on vulkan\n"
      "  weir replay ops.json --on weir-engine\n"
      "  weir replay ops.json --op MUL_MAT --engine ~/llama.cpp/build/bin --json b.json\n"
      "  weir compare a.json b.json\n"
      "  weir replay --kernels --record kernels -- llama-bench -m model.gguf -ngl 99\n"
      "  weir replay kernels --device NVIDIA");
  verb.set_flow(options, [verb, options](const flow::Job& job, const flow::ReplayOptions&) {
    options->given =
        verb.used_options({"--op", "--peak", "--engine", "--on", "--threads", "--step", "--seconds",
                           "--memory", "--top", "--any-op", "--any-version", "--timeout",
                           "--device", "--runs", "--tokens", "--mib"});
    return flow::replay(job, *options);
  });
}

}  // namespace weir::app
