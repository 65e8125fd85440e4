// weir replay-kernels: the kernels of any Vulkan engine, recorded by the probe, each run again
// alone. Judges nothing.
#include <memory>
#include <numeric>

#include "gate/app/command_line.hpp"
#include "gate/app/replay_kernels.hpp"
#include "gate/base/json.hpp"
#include "gate/probes/read/read_kernels.hpp"
#include "gate/report/layout.hpp"

namespace weir::app {
namespace {

struct ReplayKernelsOptions {
  CommonOptions common;
  std::string folder;
  bool record = false;
  ReplayKernelsAsk ask;
  RecordKernelsAsk recording;
  std::size_t top = 20;
};

Result<ExitCode> record(ReplayKernelsOptions options) {
  if (options.recording.command.empty()) {
    return fail(
        Code::usage,
        "--record runs the program behind --\n"
        "  weir replay-kernels --record kernels -- llama-bench -m model.gguf -n 16 -ngl 99");
  }
  sys::RealFiles files;
  const sys::Interrupts interrupts;
  options.recording.folder = options.folder;
  WEIR_TRY(const std::string ended, record_kernels(options.recording, files, interrupts.stop()));
  WEIR_TRY(const auto paths, probes::recorded_kernel_files(files, options.folder));
  std::uint64_t kernels = 0, dispatches = 0, left_out = 0;
  for (const std::string& path : paths) {
    WEIR_TRY(const std::string bytes, files.read(path, probes::k_most_kernels_mib << 20));
    const auto recorded = probes::read_recorded_kernels(bytes);
    if (!recorded) {  // a process that was ended before it wrote anything
      talk(options.common, "warning: " + path + ": " + recorded.error().message);
      continue;
    }
    kernels += recorded->works.size();
    for (const auto& work : recorded->works) dispatches += work.count;
    left_out = std::accumulate(recorded->left_out.begin(), recorded->left_out.end(), left_out);
  }
  if (dispatches == 0) {
    for (const std::string& path : paths) WEIR_CHECK(files.remove(path));  // for the next try
    return fail(Code::unavailable,
                "{}: no dispatch was seen{}\n  Does it run on the GPU (llama-bench: -ngl 99)? ggml "
                "leaves Vulkan devices that are CPUs out unless GGML_VK_VISIBLE_DEVICES=0 is set",
                options.recording.command.front(), ended.empty() ? "" : ": " + ended);
  }
  if (!ended.empty()) talk(options.common, "the program: " + ended);
  answer(options.common,
         fmt::format("{} and {} recorded{}; weir replay-kernels {} runs them alone\n",
                     report::plural(kernels, "kernel"),
                     report::plural(dispatches, "dispatch", "dispatches"),
                     left_out == 0 ? "" : fmt::format(", {} left out", left_out), options.folder));
  return ended.empty() && dispatches != 0 ? ExitCode::pass : ExitCode::unmeasured;
}

Result<ExitCode> replay(const ReplayKernelsOptions& options) {
  if (!options.recording.command.empty()) {
    return fail(Code::usage, "a program behind -- is for --record FOLDER");
  }
  const sys::RealFiles files;
  const sys::Interrupts interrupts;
  ReplayKernelsAsk ask = options.ask;
  ask.folder = options.folder;
  WEIR_TRY(const report::ReplayedKernels all, replay_kernels(ask, files, interrupts.stop()));
  answer(options.common,
         report::replayed_text(
             all, {.width = width_of(answer_stream(options.common)), .most_rows = options.top}));
  const Json json = observed::to_json(report::observed_of(all));
  WEIR_CHECK(write_json(options.common, dump_json(json, 1) + "\n"));
  return report::sums_of(all).replayed == 0 ? ExitCode::unmeasured : ExitCode::pass;
}

}  // namespace

void add_replay_kernels(CLI::App& app) {
  CLI::App* verb = app.add_subcommand(
      "replay-kernels", "Vulkan kernels as the probe recorded them, each run again alone");
  auto options = std::make_shared<ReplayKernelsOptions>();
  verb->add_option("folder", options->folder, "Where the recording lies, or goes with --record")
      ->type_name("FOLDER")
      ->required();
  verb->add_flag("--record", options->record, "Run the program behind -- and record its kernels");
  verb->add_option("--device", options->ask.device, "Which device: part of its name, or its number")
      ->type_name("NAME");
  verb->add_option("--runs", options->ask.runs, "Timed runs of each kernel")
      ->check(CLI::Range(1, 200))
      ->capture_default_str();
  verb->add_option("--seconds", options->ask.seconds,
                   "For the runs of one kernel; fewer runs where they would take longer")
      ->check(CLI::Range(0.0, 3600.0))
      ->capture_default_str();
  verb->add_option("--memory", options->ask.memory_mib, "MiB that one kernel may take")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  verb->add_option("--tokens", options->ask.tokens,
                   "Tokens that the recorded program generated, for times a token")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40));
  verb->add_option("--top", options->top, "Rows of the table")
      ->check(CLI::Range(1, 100'000))
      ->capture_default_str();
  verb->add_option("--timeout", options->recording.timeout_seconds,
                   "Seconds until the program is stopped (--record)")
      ->check(CLI::Range(1.0, 86'400.0))
      ->capture_default_str();
  verb->add_option("--mib", options->recording.file_mib,
                   "MiB of each process's recording (--record)")
      ->check(CLI::Range(std::uint64_t{1}, probes::k_most_kernels_mib))
      ->capture_default_str();
  add_common(*verb, options->common, Takes::output);
  verb->footer(
      "Examples:\n"
      "  weir replay-kernels kernels --record -- llama-bench -m model.gguf -n 16 -ngl 99\n"
      "  weir replay-kernels kernels\n"
      "  weir replay-kernels kernels --device NVIDIA --json kernels.json");
  set_action_with_words(*verb, [options] {
    options->recording.command = words_behind();
    return options->record ? record(*options) : replay(*options);
  });
}

}  // namespace weir::app
