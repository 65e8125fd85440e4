// weir replay for ops: records the ops of a program, and computes recorded ops alone again.
#include <cmath>
#include <set>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/flow/devices.hpp"
#include "gate/flow/program.hpp"
#include "gate/flow/replay.hpp"
#include "gate/observed/replayed.hpp"
#include "gate/probes/events.h"
#include "gate/probes/read/read_kernels.hpp"
#include "gate/probes/read/replay_events.hpp"
#include "gate/report/replay_text.hpp"
#include "gate/sys/paths.hpp"
#include "gate/sys/system.hpp"

namespace weir::flow {
namespace {

constexpr std::uint64_t k_largest_recording = std::uint64_t{64} << 20;
constexpr const char* k_on_weir_engine = "weir-engine";
constexpr int k_max_crashes = 16;       // times that ops may end the program before we give up
constexpr double k_start_seconds = 60;  // to open libraries and fill tensors
constexpr double k_slowest = 60;        // an op may take so many times its measuring time
constexpr double k_op_seconds = 0.2;
constexpr const char* k_cpu = "CPU";
constexpr std::string_view k_vulkan = "Vulkan";  // ggml's names are this and a number

// The options of a replay, with `engine`, `threads` and `seconds` resolved.
struct ReplayRequest : ReplayOptions {
  std::int64_t constant_bytes = 0;  // weights and caches of the whole step
  std::string folder{};             // for temporary files; exists
};

// The progress that one run of the replay program reported.
struct ProgramReport {
  std::optional<std::size_t> open;  // a node that began and has no times yet
  std::optional<std::size_t> next;  // the node after the last finished one
  std::optional<std::string> error;
  bool complete = false;
};

// Reads one JSON line of the replay program into the results and its progress. Fields of a wrong
// type count as absent.
void read_report_line(const Json& line, observed::Replayed* replayed, ProgramReport* report) {
  const auto read_text = [&](const char* key) {
    const Json& value = member_or_null(line, key);
    return value.is_string() ? text::printable(value.get<std::string>()) : std::string();
  };
  const auto read_time = [&](const char* key) -> std::optional<double> {
    const Json& json = member_or_null(line, key);
    const double value = json.is_number() ? json.get<double>() : -1;
    return std::isfinite(value) && value >= 0 ? std::optional(value) : std::nullopt;
  };
  const auto read_index = [&](const char* key) -> std::optional<std::size_t> {
    const Json& field = member_or_null(line, key);
    const auto index = field.is_number_unsigned() ? field.get<std::size_t>() : SIZE_MAX;
    return index < replayed->nodes.size() ? std::optional(index) : std::nullopt;
  };
  const auto read_count = [&](const char* key) {
    const Json& field = member_or_null(line, key);
    return field.is_number_integer() ? field.get<std::int64_t>() : 0;
  };
  if (line.contains("error")) report->error = read_text("error");
  if (line.contains("complete")) report->complete = true;
  if (line.contains("library")) {
    if (line.contains("engine")) replayed->engine = read_text("engine");
    replayed->version = read_text("version");
    replayed->commit = read_text("commit");
    replayed->library = read_text("library");
    if (const std::string device = read_text("device"); !device.empty()) {
      replayed->library += " on " + device;
    }
  }
  if (const auto begins = read_index("begins")) report->open = begins;
  const auto index = read_index("node");
  if (!index) return;
  observed::ReplayedNode& node = replayed->nodes[*index];
  report->open.reset();
  report->next = *index + 1;
  node.median = read_time("median");
  node.min_seconds = read_time("least");
  node.max_seconds = read_time("most");
  node.left_out = node.median ? "" : read_text("left_out");
  node.runs = read_count("runs");
  node.copies = read_count("copies");
}

// Returns ": " and the assertion of ggml that ended the program; "" if there is none.
std::string assertion_text(const std::string& err) {
  for (const std::string& line : text::lines(text::printable(err))) {
    const std::size_t assertion = line.find("GGML_ASSERT");
    if (assertion != std::string::npos) return ": " + line.substr(assertion, 200);
  }
  return "";
}

bool is_number(std::string_view digits) {
  return !digits.empty() && digits.size() < 4 && std::ranges::all_of(digits, text::is_digit);
}

// Returns the place where a node is computed, such as "CPU" or "Vulkan0"; "" if weir cannot compute
// it.
std::string choose_place(const profile::ReplayNode& node, const std::string& on) {
  if (on == "cpu") return k_cpu;
  if (on == k_on_weir_engine) return on;
  if (!on.empty()) {
    return fmt::format("{}{}", k_vulkan, on.size() > k_vulkan.size() ? on.substr(6) : "0");
  }
  if (node.backend.starts_with(k_cpu)) return k_cpu;
  return node.backend.starts_with(k_vulkan) && is_number(node.backend.substr(k_vulkan.size()))
             ? node.backend
             : "";
}

// Returns the program that computes ops at `place`: the reference engine, or weir-replay-ggml.
Result<std::string> find_replay_program(const std::string& place, const ReplayRequest& request,
                                        const sys::World& world) {
  if (place == k_on_weir_engine) return request.engine;
  WEIR_TRY(const probes::Places places, probe_places(world));
  if (!places.replay_ggml_program.empty()) return places.replay_ggml_program;
  return fail(Code::unavailable, "weir-replay-ggml, which computes ops, {}",
              sys::k_on_macos ? "is not on macOS"
                              : "is missing beside the probes: build or install weir again");
}

// Computes the nodes of the first step of `replay` at one place: "CPU", "Vulkan0". When an op ends
// the program, starts it again behind that op, k_max_crashes times at most.
Result<observed::Replayed> replay_at(const std::string& place, const profile::Replay& replay,
                                     const ReplayRequest& request, const Job& job,
                                     const sys::Stop& stop) {
  WEIR_TRY(const std::string program, find_replay_program(place, request, job.world));
  const std::string file = sys::join_path(request.folder, "ops.json");
  WEIR_CHECK(job.files().write_unsynced(file, dump_json(write_fields(replay))));
  observed::Replayed results;
  if (!place.starts_with(k_vulkan)) results.threads = request.threads;
  results.nodes.resize(replay.steps.empty() ? 0 : replay.steps.front().nodes.size());
  std::size_t from = 0;
  const auto leave_rest_out = [&](const std::string& reason) {
    for (; from < results.nodes.size(); ++from) results.nodes[from].left_out = reason;
  };
  for (int ends = 0; from < results.nodes.size(); ++ends) {
    if (ends == k_max_crashes) {
      results.warnings.push_back(
          "ops ended the program that computes them too often: the rest is left out");
      leave_rest_out("not reached");
      break;
    }
    sys::ProcessSpec spec;
    const auto number = [](std::int64_t value) { return fmt::format("{}", value); };
    // clang-format off
    spec.argv = {program, "--replay", file, "--engine", request.engine, "--on", place,
                 "--threads", number(request.threads), "--memory", number(request.memory_mib),
                 "--milliseconds", number(std::llround(*request.seconds * 1000)),
                 "--constant-bytes", number(request.constant_bytes),
                 "--any-op", request.any_op ? "1" : "0", "--any-version", request.any_version ? "1" : "0",
                 "--from", number(static_cast<std::int64_t>(from))};
    // clang-format on
    spec.timeout_seconds = k_start_seconds + static_cast<double>(results.nodes.size()) *
                                                 (2 + k_slowest * *request.seconds);
    WEIR_TRY(const sys::Finished finished, run_program(job.world, spec, stop));
    ProgramReport report;
    for (const std::string& line : text::lines(finished.out)) {
      const auto json = parse_json(line);
      if (json && json->is_object()) read_report_line(*json, &results, &report);
    }
    if (report.complete && !report.error) break;
    const std::string failure = failure_text(finished, spec) + assertion_text(finished.err);
    if (report.error || (!report.open && !report.next)) {
      const std::string why = report.error.value_or(failure.empty() ? "it said nothing" : failure);
      if (from > 0) {
        // It began well and could not begin again, as where a device was lost.
        leave_rest_out("not reached: " + why);
        break;
      }
      if (report.error) return fail(Code::unavailable, "{}", why);
      return fail(Code::unavailable, "{} did not compute anything: {}", sys::file_name_of(program),
                  why);
    }
    if (report.open) {
      results.nodes[*report.open].left_out = "it ended the program that computes it: " + failure;
      from = *report.open + 1;
    } else {
      // It ended between two ops, so what was measured stays valid.
      results.warnings.push_back("the program that computes ops ended behind one of them: " +
                                 failure);
      from = *report.next;
    }
    // The time limit covers all ops, so none is left.
    if (finished.ended == sys::HowEnded::timed_out) ends = k_max_crashes - 1;
  }
  return results;
}

// Returns "" if --on may have this value, else the values that it takes.
std::string check_on_option(const std::string& on) {
  const bool is_valid = on.empty() || on == "cpu" || on == k_on_weir_engine ||
                        (on.starts_with("vulkan") && (on == "vulkan" || is_number(on.substr(6))));
  return is_valid ? "" : "it takes cpu, vulkan, one of several devices as vulkan1, or weir-engine";
}

// Computes the nodes of `step`, a step of `replay`, each at the place of its backend or of --on,
// and sets its `backend` to that place. A node that ends the program, or whose device is missing,
// is left out with the reason. Code::unavailable if nothing can be computed at all.
Result<observed::Replayed> replay_step(const profile::Replay& replay, profile::ReplayStep& step,
                                       const ReplayRequest& request, const Job& job,
                                       const sys::Stop& stop) {
  observed::Replayed merged;
  merged.nodes.resize(step.nodes.size());
  std::map<std::string, std::vector<std::size_t>> groups;
  std::vector<std::string> recorded_on(step.nodes.size());
  for (std::size_t i = 0; i < step.nodes.size(); ++i) {
    profile::ReplayNode& node = step.nodes[i];
    const std::string place = choose_place(node, request.on);
    if (place.empty()) {
      merged.nodes[i].left_out = "it ran on " + node.backend;
      continue;
    }
    recorded_on[i] = node.backend;
    node.backend = place;
    groups[place].push_back(i);
  }
  if (groups.empty())
    return fail(Code::unavailable,
                "no op ran on the CPU or on Vulkan: --on says where to compute them");
  std::optional<Error> first_problem;
  for (const auto& [place, members] : groups) {
    profile::Replay subset = replay;
    subset.steps.assign(1, step);
    subset.steps.front().nodes.clear();
    for (const std::size_t i : members) subset.steps.front().nodes.push_back(step.nodes[i]);
    auto replayed = replay_at(place, subset, request, job, stop);
    if (!replayed && replayed.error().code == Code::interrupted) return replayed;
    for (std::size_t i = 0; i < members.size(); ++i) {
      if (replayed) merged.nodes[members[i]] = replayed->nodes[i];
      if (!replayed) merged.nodes[members[i]].left_out = place + " could not be used";
    }
    if (!replayed) {
      merged.warnings.push_back(replayed.error().message);
      if (!first_problem) first_problem = replayed.error();
      continue;
    }
    merged.engine = replayed->engine;
    merged.version = replayed->version;
    merged.commit = replayed->commit;
    text::append_item(merged.library, " and ", replayed->library);
    if (replayed->threads) merged.threads = replayed->threads;
    merged.warnings.insert(merged.warnings.end(), replayed->warnings.begin(),
                           replayed->warnings.end());
  }
  if (merged.library.empty() && first_problem) return tl::unexpected(*first_problem);
  std::map<std::string, std::int64_t> moved;
  for (std::size_t i = 0; i < step.nodes.size(); ++i) {
    const profile::ReplayNode& node = step.nodes[i];
    if (!merged.nodes[i].median || recorded_on[i] == node.backend) continue;
    moved[fmt::format("recorded on {} and replayed on {}", recorded_on[i], node.backend)] +=
        node.count;
  }
  for (const auto& [change, count] : moved) {
    merged.warnings.push_back(fmt::format("{} ops were {}", count, change));
  }
  return merged;
}

// Runs a program with the ggml probe, and writes its ops as a recording.
Result<Answer> record_ops(const Job& job, const ReplayOptions& options) {
  WEIR_CHECK(check_place("--record", options.record, job.files()));
  WEIR_TRY(sys::ProcessSpec spec, command_spec(job, options.trailing_arguments, options.timeout));
  WEIR_TRY(const auto probing, make_probing(job.world));
  WEIR_TRY(const sys::ScratchFolder passing,
           sys::ScratchFolder::make_temporary(job.files(), "weir-replay-"));
  WEIR_CHECK(attach_probes(*probing, {"ggml"}, passing.path(),
                           {{WEIR_PROBE_EVENTS_VARIABLE, "256"}, {WEIR_PROBE_REPLAY_VARIABLE, "1"}},
                           spec));
  job.log(fmt::format("running {} with ggml", sys::file_name_of(spec.argv.front())));
  const sys::Interrupts interrupts;
  WEIR_TRY(const sys::Finished finished, run_program(job.world, spec, interrupts.stop()));
  const std::string failed = failure_text(finished, spec);
  if (!failed.empty()) {
    talk_output(job, sys::error_output(finished));
    return fail(Code::unavailable, "{}: {}; nothing was recorded",
                options.trailing_arguments.front(), failed);
  }
  WEIR_TRY(const profile::Replay replay, probes::collect_replay(job.files(), passing.path()));
  const Json json = write_fields(replay);
  WEIR_CHECK(job.files().write_atomic(options.record, json_document(json, -1)));
  return Answer{report::recording_text(replay, job.width()) +
                    fmt::format("\nrecorded {}\n  weir replay {} --engine {}\n", options.record,
                                text::shell_word(options.record),
                                text::shell_word(sys::folder_of(replay.library))),
                json_document(json)};
}

Result<profile::Replay> read_recording(const Job& job, const std::string& path) {
  if (job.files().kind(path) == sys::Kind::folder) return probes::collect_replay(job.files(), path);
  WEIR_TRY(const std::string text, job.files().read(path, k_largest_recording));
  return parse_json(text).and_then(profile::replay_from_json).map_error(with_prefix(path));
}

// Returns the folder of the engine's libraries, or weir's own engine. Never takes it from the
// recording: somebody else may have written that, and code there would run.
Result<std::string> find_engine(const Job& job, const ReplayOptions& options,
                                const profile::Replay& replay) {
  if (options.on == k_on_weir_engine) {
    return find_weir_engine(job.files(), options.engine, sys::own_program_path(),
                            "--on weir-engine");
  }
  const std::string& folder = options.engine;
  if (folder.empty()) {
    return fail(
        Code::usage,
        "--engine DIR names the folder of the libggml-base.so whose code shall run.{}{}",
        replay.library.starts_with('/') ? " It was recorded with those in " : "",
        replay.library.starts_with('/') ? text::printable(sys::folder_of(replay.library)) : "");
  }
  if (job.files().kind(folder) != sys::Kind::folder) {
    return fail(Code::usage, "no such folder: {}\n  --engine DIR names that of libggml-base.so",
                folder);
  }
  return sys::absolute(folder);
}

// Returns the bytes of weights and caches that a step reads, at most 2^50.
std::int64_t sum_constant_bytes(const profile::ReplayStep& step) {
  constexpr std::int64_t k_max_bytes = std::int64_t{1} << 50;
  __int128 sum = 0;
  for (const profile::ReplayNode& node : step.nodes) {
    for (const profile::ReplayRoot& root : node.roots) {
      if (root.constant) sum += static_cast<__int128>(root.bytes) * node.count;
    }
  }
  return static_cast<std::int64_t>(std::min<__int128>(sum, k_max_bytes));
}

// Returns the index of the step that --step names (from 1), else of the main step.
Result<std::size_t> choose_step(const ReplayOptions& options, const profile::Replay& replay) {
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

// Returns matrix multiplications large enough to show a device's peak: 512 vectors for its
// arithmetic, one vector for its memory. One pair for each type of weights in `step`.
std::vector<profile::ReplayNode> peak_nodes(const profile::ReplayStep& step) {
  constexpr std::int64_t k_length = 4096, k_rows = 4096, k_rows_of_many = 32768, k_vectors = 512;
  std::vector<profile::ReplayNode> nodes;
  std::set<std::pair<std::string, std::string>> peak_types;
  for (const profile::ReplayNode& node : step.nodes) {
    if (node.op != "MUL_MAT" || node.tensors.size() != 3) continue;
    const profile::ReplayTensor& weights = node.tensors[1];
    const bool fits = weights.slot == 1 && weights.ne[0] > 0 && weights.nb[1] > 0 &&
                      weights.nb[1] / weights.ne[0] <= 8 &&  // bytes an element, of any type
                      weights.nb[1] * k_length % weights.ne[0] == 0 && weights.root >= 0 &&
                      static_cast<std::size_t>(weights.root) < node.roots.size() &&
                      node.roots[static_cast<std::size_t>(weights.root)].constant;
    if (!fits || !peak_types.emplace(weights.type, node.backend).second) continue;
    const profile::ReplayRoot root = node.roots[static_cast<std::size_t>(weights.root)];
    for (const auto& [rows, vectors] :
         {std::pair{k_rows, k_vectors}, {k_rows_of_many, std::int64_t{1}}}) {
      profile::ReplayNode& peak = nodes.emplace_back(node);
      peak.name = "peak";
      peak.count = 1;
      const auto set_shape = [&](std::size_t slot, std::int64_t ne0, std::int64_t ne1,
                                 std::int64_t row) {
        profile::ReplayTensor& tensor = peak.tensors[slot];
        tensor.ne = {ne0, ne1, 1, 1};
        tensor.nb = {tensor.nb[0], row, row * ne1, row * ne1};
        tensor.offset = 0;
        tensor.root = static_cast<std::int64_t>(slot);
      };
      set_shape(0, rows, vectors, 4 * rows);
      set_shape(1, k_length, rows, weights.nb[1] * k_length / weights.ne[0]);
      set_shape(2, k_length, vectors, 4 * k_length);
      peak.roots = {{peak.tensors[0].nb[3], false, ""},
                    {peak.tensors[1].nb[3], true, root.memory},
                    {peak.tensors[2].nb[3], false, ""}};
    }
  }
  return nodes;
}

// Computes the recorded ops of one step alone, and compares their times with the recorded ones.
Result<Answer> replay_ops(const Job& job, const ReplayOptions& options) {
  if (const std::string problem = check_on_option(options.on); !problem.empty()) {
    return fail(Code::usage, "--on {}: {}", options.on, problem);
  }
  WEIR_TRY(profile::Replay replay, read_recording(job, options.what));
  WEIR_TRY(const std::size_t index, choose_step(options, replay));
  profile::ReplayStep step = std::move(replay.steps[index]);
  if (options.peak) {
    step.nodes = peak_nodes(step);
    step.seconds.clear();
  }
  ReplayRequest request{options};
  request.constant_bytes = sum_constant_bytes(step);
  std::erase_if(step.nodes, [&](const auto& node) {
    return !text::matches_any(options.ops, node.description) &&
           !text::matches_any(options.ops, node.op);
  });
  if (step.nodes.empty()) {
    return fail(Code::usage, "{}: step {} has no op that {} selects", options.what, index + 1,
                options.peak ? "--peak" : "--op");
  }
  WEIR_TRY(request.engine, find_engine(job, options, replay));
  if (request.threads == 0) request.threads = replay.threads.value_or(1);
  request.seconds = options.seconds.value_or(k_op_seconds);
  WEIR_TRY(const sys::ScratchFolder passing,
           sys::ScratchFolder::make_temporary(job.files(), "weir-replay-"));
  request.folder = passing.path();
  job.log(fmt::format("replaying {} different ops of step {} of {}", step.nodes.size(), index + 1,
                      replay.steps.size()));
  const sys::Interrupts interrupts;
  WEIR_TRY(observed::Replayed replayed, replay_step(replay, step, request, job, interrupts.stop()));
  if (options.threads == 0 && !replay.threads && replayed.threads) {
    replayed.warnings.push_back("it is not recorded how many threads computed: --threads N says");
  }
  if (!replay.commit.empty() && !replayed.commit.empty() && replay.commit != replayed.commit) {
    replayed.warnings.push_back(fmt::format("recorded with commit {} of ggml, replayed with {}",
                                            replay.commit, replayed.commit));
  }
  const bool is_whole_step = options.ops.empty() && !options.peak;
  const observed::Observed observed = observed::to_observed(replay, step, replayed, is_whole_step);
  return Answer{
      report::replay_text(
          replay, step, replayed,
          {.width = job.width(), .max_rows = options.top, .is_whole_step = is_whole_step}),
      json_document(write_fields(observed)),
      observed.ops.empty() ? ExitCode::unmeasured : ExitCode::pass};
}

// The kinds of work of weir replay; each takes options of its own.
enum class Work { replaying_ops, replaying_kernels, recording_ops, recording_kernels };

// Fails if an option on the command line does not belong to `work`.
Result<void> check_work_options(const ReplayOptions& options, Work work) {
  const bool is_recording = work == Work::recording_ops || work == Work::recording_kernels;
  for (const std::string& option : options.given) {
    const bool is_for_recording = option == "--timeout" || option == "--mib";
    if (is_for_recording != is_recording) {
      return fail(
          Code::usage, "{} is for {}", option,
          is_recording ? "replaying, not recording" : "recording: --record FILE -- COMMAND");
    }
    const bool is_for_kernels =
        holds(std::array{"--device", "--runs", "--tokens", "--mib"}, option);
    const bool is_for_both =
        holds(std::array{"--seconds", "--memory", "--top", "--timeout"}, option);
    const bool works_on_kernels =
        work == Work::replaying_kernels || work == Work::recording_kernels;
    if (is_for_both || is_for_kernels == works_on_kernels) continue;
    return fail(Code::usage, "{} is for {}", option,
                is_for_kernels ? "recorded kernels, not ops" : "ops, not recorded kernels");
  }
  return {};
}

}  // namespace

// Records or replays, ops or kernels: --record, --kernels and the kind of recording decide.
Result<Answer> replay(const Job& job, const ReplayOptions& options) {
  const bool is_recording = !options.record.empty();
  const bool has_program = !options.trailing_arguments.empty(),
             has_recording = !options.what.empty();
  if (is_recording != has_program || is_recording == has_recording) {
    return fail(Code::usage,
                "weir replay takes a recording, or makes one of a program after --\n"
                "  weir replay --record ops.json -- llama-bench -m model.gguf -p 0 -n 16\n"
                "  weir replay ops.json --engine ~/llama.cpp/build/bin\n"
                "  weir replay --kernels --record kernels -- llama-bench -m model.gguf -ngl 99\n"
                "  weir replay kernels");
  }
  if (is_recording && options.kernels) {
    WEIR_CHECK(check_work_options(options, Work::recording_kernels));
    return record_kernels(job, options);
  }
  if (is_recording) {
    WEIR_CHECK(check_work_options(options, Work::recording_ops));
    return record_ops(job, options);
  }
  const bool are_kernels =
      options.kernels || (job.files().kind(options.what) == sys::Kind::folder &&
                          probes::recorded_kernel_files(job.files(), options.what).has_value());
  WEIR_CHECK(
      check_work_options(options, are_kernels ? Work::replaying_kernels : Work::replaying_ops));
  return are_kernels ? replay_kernels(job, options) : replay_ops(job, options);
}

}  // namespace weir::flow
