// weir replay: records the ops of an engine's steps, and computes them alone at their exact shapes.
// Judges nothing.
#include <algorithm>
#include <memory>

#include "gate/app/command_line.hpp"
#include "gate/app/ended.hpp"
#include "gate/app/probing.hpp"
#include "gate/app/replaying.hpp"
#include "gate/app/weir_engine.hpp"
#include "gate/base/text.hpp"
#include "gate/probes/events.h"
#include "gate/probes/read/read_kernels.hpp"
#include "gate/probes/read/replay_events.hpp"
#include "gate/report/replay_text.hpp"
#include "gate/run/environment.hpp"
#include "gate/sys/files.hpp"
#include "gate/sys/paths.hpp"

namespace weir::app {
namespace {

constexpr std::uint64_t k_largest_recording = std::uint64_t{64} << 20;

struct ReplayOptions {
  CommonOptions common;
  std::string what;                    // a recording, or a folder of probe files
  std::string record;                  // where one goes
  std::vector<std::string> command{};  // behind "--"
  std::vector<std::string> ops;        // of which alone
  std::string engine;
  std::string on;            // "": where each op ran
  std::int64_t threads = 0;  // 0: as recorded
  std::int64_t step = 0;     // from 1; 0: that of decoding
  std::int64_t memory_mib = 2048;
  double seconds = 0.2;
  double timeout = 600;
  std::size_t top = 20;
  bool any_op = false, any_version = false;
  std::vector<std::string> given{};
};

Result<ExitCode> record(const ReplayOptions& options, sys::Files& files) {
  const std::string folder = sys::folder_of(sys::absolute(options.record));
  if (files.kind(folder) != sys::Kind::folder || !files.writable(folder)) {
    return fail(Code::usage, "--record {}: {} is no folder that can be written to", options.record,
                folder);
  }
  WEIR_TRY(sys::ProcessSpec spec, command_spec(options.command, options.timeout, files));
  WEIR_TRY(const auto probing, make_probing(files));
  WEIR_TRY(const sys::ScratchFolder passing,
           sys::ScratchFolder::make_temporary(files, "weir-replay-"));
  WEIR_TRY(config::Environment added,
           probing->attach(std::vector<std::string>{"ggml"}, passing.path(), nullptr));
  added[WEIR_PROBE_EVENTS_VARIABLE] = "256";
  added[WEIR_PROBE_REPLAY_VARIABLE] = "1";
  spec.env = run::merge_environment(sys::own_environment(), {}, added);
  talk(options.common, fmt::format("running {} with ggml", sys::file_name_of(spec.argv.front())));
  const sys::Interrupts interrupts;
  sys::RealProcesses processes;
  WEIR_TRY(const sys::Finished finished, processes.run(spec, interrupts.stop()));
  if (finished.ended == sys::HowEnded::interrupted) return fail(Code::interrupted, "interrupted");
  const std::string failed = ended_words(finished, spec);
  if (!failed.empty()) {
    for (const std::string& line : text::lines(text::printable(finished.err))) {
      talk(options.common, "| " + line);
    }
    return fail(Code::unavailable, "{}: {}; nothing was recorded", options.command.front(), failed);
  }
  WEIR_TRY(const profile::Replay replay, probes::collect_replay(files, passing.path()));
  const Json json = profile::to_json(replay);
  WEIR_CHECK(files.write_atomic(options.record, dump_json(json) + "\n"));
  answer(options.common,
         report::recording_text(replay,
                                static_cast<std::size_t>(width_of(answer_stream(options.common)))));
  const std::string libraries = sys::folder_of(replay.library);
  answer(options.common,
         fmt::format("\nrecorded {}\n  weir replay {} --engine {}\n", options.record,
                     text::shell_word(options.record), text::shell_word(libraries)));
  WEIR_CHECK(write_json(options.common, dump_json(json, 1) + "\n"));
  return ExitCode::pass;
}

Result<profile::Replay> read_recording(const ReplayOptions& options, const sys::Files& files) {
  if (files.kind(options.what) == sys::Kind::folder) {
    if (probes::recorded_kernel_files(files, options.what)) {
      return fail(Code::usage, "{0} holds recorded kernels: weir replay-kernels {0}", options.what);
    }
    return probes::collect_replay(files, options.what);
  }
  const auto in_file = [&](Error error) { return with_context(options.what, std::move(error)); };
  WEIR_TRY(const std::string text, files.read(options.what, k_largest_recording));
  WEIR_TRY(const Json json, parse_json(text).map_error(in_file));
  return profile::replay_from_json(json).map_error(in_file);
}

// The folder of the engine's libraries, or weir's own engine. Never out of the recording: that is
// somebody's file, and what lies there would run.
Result<std::string> engine_of(const ReplayOptions& options, const profile::Replay& replay,
                              const sys::Files& files) {
  if (options.on == k_on_weir_engine) {
    return find_weir_engine(files, options.engine, sys::own_program(), "--on weir-engine");
  }
  const std::string folder = options.engine;
  if (folder.empty()) {
    const std::string recorded =
        replay.library.starts_with('/')
            ? " It was recorded with those in " + text::printable(sys::folder_of(replay.library))
            : "";
    return fail(Code::usage,
                "--engine DIR names the folder of the libggml-base.so whose code shall run.{}",
                recorded);
  }
  if (files.kind(folder) != sys::Kind::folder) {
    return fail(Code::usage, "no such folder: {}\n  --engine DIR names that of libggml-base.so",
                folder);
  }
  return sys::absolute(folder);
}

// Weights and caches that a step reads, and whether all of its ops are wanted.
std::int64_t constant_bytes_of(const profile::ReplayStep& step) {
  constexpr std::int64_t k_most = std::int64_t{1} << 50;
  __int128 sum = 0;
  for (const profile::ReplayNode& node : step.nodes) {
    for (const profile::ReplayRoot& root : node.roots) {
      if (root.constant) sum += static_cast<__int128>(root.bytes) * node.count;
    }
  }
  return static_cast<std::int64_t>(std::min<__int128>(sum, k_most));
}

bool wanted(const ReplayOptions& options, const profile::ReplayNode& node) {
  return options.ops.empty() ||
         std::any_of(options.ops.begin(), options.ops.end(), [&](const std::string& pattern) {
           return text::glob_match(pattern, node.description) || text::glob_match(pattern, node.op);
         });
}

Result<std::size_t> chosen_step(const ReplayOptions& options, const profile::Replay& replay) {
  const auto main = profile::main_step(replay);
  if (!main) return fail(Code::data, "{} holds no steps", options.what);
  if (options.step == 0) return *main;
  const auto index = static_cast<std::size_t>(options.step);
  if (index > replay.steps.size()) {
    return fail(Code::usage, "--step {}: {} has {}", options.step, options.what,
                replay.steps.size());
  }
  return index - 1;
}

Result<ExitCode> replay_recording(const ReplayOptions& options, sys::Files& files) {
  if (const std::string problem = on_problem(options.on); !problem.empty()) {
    return fail(Code::usage, "--on {}: {}", options.on, problem);
  }
  WEIR_TRY(profile::Replay replay, read_recording(options, files));
  WEIR_TRY(const std::size_t index, chosen_step(options, replay));
  profile::ReplayStep step = std::move(replay.steps[index]);
  const std::size_t steps = replay.steps.size();
  ReplayAsk ask;
  ask.constant_bytes = constant_bytes_of(step);
  std::erase_if(step.nodes, [&](const auto& node) { return !wanted(options, node); });
  if (step.nodes.empty()) {
    return fail(Code::usage, "{}: step {} has no op that --op selects", options.what, index + 1);
  }
  WEIR_TRY(ask.engine, engine_of(options, replay, files));
  ask.on = options.on;
  ask.threads = options.threads != 0 ? options.threads : replay.threads.value_or(1);
  ask.memory_mib = options.memory_mib;
  ask.seconds = options.seconds;
  ask.any_op = options.any_op;
  ask.any_version = options.any_version;
  WEIR_TRY(const sys::ScratchFolder passing,
           sys::ScratchFolder::make_temporary(files, "weir-replay-"));
  ask.folder = passing.path();
  talk(options.common, fmt::format("replaying {} different ops of step {} of {}", step.nodes.size(),
                                   index + 1, steps));
  const sys::Interrupts interrupts;
  WEIR_TRY(observed::Replayed replayed, replay_step(replay, step, ask, files, interrupts.stop()));
  if (options.threads == 0 && !replay.threads && replayed.threads) {
    replayed.warnings.push_back("it is not recorded how many threads computed: --threads N says");
  }
  if (!replay.commit.empty() && !replayed.commit.empty() && replay.commit != replayed.commit) {
    replayed.warnings.push_back(fmt::format("recorded with commit {} of ggml, replayed with {}",
                                            replay.commit, replayed.commit));
  }
  const bool whole = options.ops.empty();
  answer(options.common,
         report::replay_text(
             replay, step, replayed,
             {.width = static_cast<std::size_t>(width_of(answer_stream(options.common))),
              .most_rows = options.top,
              .whole = whole}));
  const observed::Observed observed = observed::observed_of(replay, step, replayed, whole);
  WEIR_CHECK(write_json(options.common, dump_json(observed::to_json(observed), 1) + "\n"));
  return observed.ops.empty() ? ExitCode::unmeasured : ExitCode::pass;
}

Result<ExitCode> replay(const ReplayOptions& options) {
  sys::RealFiles files;
  const bool recording = !options.record.empty();
  if (recording != !options.command.empty() || recording == !options.what.empty()) {
    return fail(Code::usage,
                "weir replay takes a recording, or makes one of a program behind --\n"
                "  weir replay --record ops.json -- llama-bench -m model.gguf -p 0 -n 16\n"
                "  weir replay ops.json --engine ~/llama.cpp/build/bin");
  }
  for (const std::string& given : options.given) {
    if ((given == "--timeout") == recording) continue;
    return fail(Code::usage, "{} is for {}", given,
                recording ? "replaying, not recording" : "recording: --record FILE -- COMMAND");
  }
  return recording ? record(options, files) : replay_recording(options, files);
}

}  // namespace

void add_replay(CLI::App& app) {
  CLI::App* verb = app.add_subcommand(
      "replay", "Compute the ops of an engine's step alone, at their exact shapes and types");
  auto options = std::make_shared<ReplayOptions>();
  add_common(*verb, options->common, Takes::runs);
  verb->remove_option(verb->get_option("--cell"));  // a recording is of one program
  verb->add_option("PROFILE", options->what,
                   "What --record wrote, or a folder of probe files made with WEIR_PROBE_REPLAY=1");
  verb->add_option("--record", options->record,
                   "Run the program behind -- and write what replaying its ops takes")
      ->type_name("FILE");
  verb->add_option("--op", options->ops,
                   "Only ops whose name matches GLOB (\"MUL_MAT\"); may be repeated")
      ->type_name("GLOB")
      ->allow_extra_args(false);
  verb->add_option("--engine", options->engine,
                   "The folder of the libggml-base.so whose kernels run, or a weir-engine")
      ->type_name("PATH");
  verb->add_option(
          "--on", options->on,
          "Compute all ops on cpu, vulkan, vulkanN or weir-engine (default: where each ran)")
      ->type_name("PLACE");
  verb->add_option("--threads", options->threads, "Threads (default: as recorded)")
      ->check(CLI::Range(1, 1024));
  verb->add_option("--step", options->step,
                   "Which kind of step, from 1 (default: that of decoding)")
      ->check(CLI::Range(1, 128));
  verb->add_option("--seconds", options->seconds, "How long each op is measured, at least")
      ->check(CLI::Range(0.001, 600.0))
      ->capture_default_str();
  verb->add_option("--memory", options->memory_mib, "MiB that one op's tensors may take together")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  verb->add_option("--top", options->top, "Rows of the table")
      ->check(CLI::Range(1, 100'000))
      ->capture_default_str();
  verb->add_flag("--any-op", options->any_op,
                 "Also ops whose shapes weir has no rule for: of recordings that you trust");
  verb->add_flag("--any-version", options->any_version,
                 "Also with another version of ggml than the recorded one");
  verb->add_option("--timeout", options->timeout, "Seconds until the program behind -- is stopped")
      ->check(CLI::Range(1.0, 86'400.0))
      ->capture_default_str();
  verb->footer(
      "Examples:\n"
      "  weir replay --record ops.json -- llama-bench -m model.gguf -p 0 -n 16 -t 1\n"
      "  weir replay ops.json --engine ~/llama.cpp/build/bin\n"
      "  weir replay ops.json --engine ~/llama.cpp/build/bin --on vulkan\n"
      "  weir replay ops.json --on weir-engine\n"
      "  weir replay ops.json --op MUL_MAT --engine ~/llama.cpp/build/bin --json after.json\n"
      "  weir compare before.json after.json");
  set_action_with_words(*verb, [verb, options] {
    options->command = words_behind();
    for (const char* name : {"--op", "--engine", "--on", "--threads", "--step", "--seconds",
                             "--memory", "--top", "--any-op", "--any-version", "--timeout"}) {
      if (verb->count(name) != 0) options->given.emplace_back(name);
    }
    return replay(*options);
  });
}

}  // namespace weir::app
