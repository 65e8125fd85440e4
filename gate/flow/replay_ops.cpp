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
constexpr int k_most_ends = 16;         // of the program, before the rest is given up
constexpr double k_start_seconds = 60;  // for opening libraries and filling tensors
constexpr double k_slowest = 60;        // times what an op is given
constexpr double k_op_seconds = 0.2;
constexpr const char* k_cpu = "CPU";
constexpr std::string_view k_vulkan = "Vulkan";  // ggml's names are this and a number

// Which ops run where: `engine`, `threads` and `seconds` as they are to be taken.
struct ReplayAsk : ReplayOptions {
  std::int64_t constant_bytes = 0;  // weights and caches of the whole step
  std::string folder{};             // for files of the moment; exists
};

// What one run of the program said, line by line.
struct Said {
  std::optional<std::size_t> open;  // a node that began and has no times yet
  std::optional<std::size_t> next;  // the one behind the last that has
  std::optional<std::string> error;
  bool complete = false;
};

void take_line(const Json& line, observed::Replayed* out, Said* said) {
  const auto text_of = [&](const char* key) {
    const Json& found = below(line, key);
    return found.is_string() ? text::printable(found.get<std::string>()) : std::string();
  };
  const auto time_of = [&](const char* key) -> std::optional<double> {
    const Json& found = below(line, key);
    const double value = found.is_number() ? found.get<double>() : -1;
    return std::isfinite(value) && value >= 0 ? std::optional(value) : std::nullopt;
  };
  const auto index_of = [&](const char* key) -> std::optional<std::size_t> {
    const Json& found = below(line, key);
    const auto index = found.is_number_unsigned() ? found.get<std::size_t>() : SIZE_MAX;
    return index < out->nodes.size() ? std::optional(index) : std::nullopt;
  };
  const auto count_of = [&](const char* key) {
    const Json& found = below(line, key);
    return found.is_number_integer() ? found.get<std::int64_t>() : 0;
  };
  if (line.contains("error")) said->error = text_of("error");
  if (line.contains("complete")) said->complete = true;
  if (line.contains("library")) {
    if (line.contains("engine")) out->engine = text_of("engine");
    out->version = text_of("version");
    out->commit = text_of("commit");
    out->library = text_of("library");
    if (const std::string device = text_of("device"); !device.empty()) {
      out->library += " on " + device;
    }
  }
  if (const auto begins = index_of("begins")) said->open = begins;
  const auto index = index_of("node");
  if (!index) return;
  observed::ReplayedNode& node = out->nodes[*index];
  said->open.reset();
  said->next = *index + 1;
  node.median = time_of("median");
  node.least = time_of("least");
  node.most = time_of("most");
  node.left_out = node.median ? "" : text_of("left_out");
  node.runs = count_of("runs");
  node.copies = count_of("copies");
}

// What ggml complained of before it ended the program.
std::string last_words(const std::string& err) {
  for (const std::string& line : text::lines(text::printable(err))) {
    const std::size_t at = line.find("GGML_ASSERT");
    if (at != std::string::npos) return ": " + line.substr(at, 200);
  }
  return "";
}

bool is_number(std::string_view digits) {
  return !digits.empty() && digits.size() < 4 && std::ranges::all_of(digits, text::is_digit);
}

// Where a node is computed; "" where weir has no way to.
std::string place_of(const profile::ReplayNode& node, const std::string& on) {
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

Result<std::string> program_of(const std::string& place, const ReplayAsk& ask,
                               const sys::World& world) {
  if (place == k_on_weir_engine) return ask.engine;
  WEIR_TRY(const probes::Places places, probe_places(world));
  if (!places.replay_ggml_program.empty()) return places.replay_ggml_program;
  return fail(Code::unavailable, "weir-replay-ggml, which computes ops, {}",
              sys::k_on_macos ? "is not on macOS"
                              : "is missing beside the probes: build or install weir again");
}

// Computes the nodes of the first step of `replay` at one place: "CPU", "Vulkan0".
Result<observed::Replayed> replay_at(const std::string& place, const profile::Replay& replay,
                                     const ReplayAsk& ask, const Job& job, const sys::Stop& stop) {
  WEIR_TRY(const std::string program, program_of(place, ask, job.world));
  const std::string file = sys::join_path(ask.folder, "ops.json");
  WEIR_CHECK(job.files().write_unsynced(file, dump_json(write_fields(replay))));
  observed::Replayed out;
  if (!place.starts_with(k_vulkan)) out.threads = ask.threads;
  out.nodes.resize(replay.steps.empty() ? 0 : replay.steps.front().nodes.size());
  std::size_t from = 0;
  const auto leave_rest_out = [&](const std::string& words) {
    for (; from < out.nodes.size(); ++from) out.nodes[from].left_out = words;
  };
  for (int ends = 0; from < out.nodes.size(); ++ends) {
    if (ends == k_most_ends) {
      out.warnings.push_back(
          "ops ended the program that computes them too often: the rest is left out");
      leave_rest_out("not reached");
      break;
    }
    sys::ProcessSpec spec;
    const auto number = [](std::int64_t value) { return fmt::format("{}", value); };
    // clang-format off
    spec.argv = {program, "--replay", file, "--engine", ask.engine, "--on", place,
                 "--threads", number(ask.threads), "--memory", number(ask.memory_mib),
                 "--milliseconds", number(std::llround(*ask.seconds * 1000)),
                 "--constant-bytes", number(ask.constant_bytes),
                 "--any-op", ask.any_op ? "1" : "0", "--any-version", ask.any_version ? "1" : "0",
                 "--from", number(static_cast<std::int64_t>(from))};
    // clang-format on
    spec.timeout_seconds =
        k_start_seconds + static_cast<double>(out.nodes.size()) * (2 + k_slowest * *ask.seconds);
    WEIR_TRY(const sys::Finished finished, run_program(job.world, spec, stop));
    Said said;
    for (const std::string& line : text::lines(finished.out)) {
      const auto json = parse_json(line);
      if (json && json->is_object()) take_line(*json, &out, &said);
    }
    if (said.complete && !said.error) break;
    const std::string how = failure_words(finished, spec) + last_words(finished.err);
    if (said.error || (!said.open && !said.next)) {
      const std::string why = said.error.value_or(how.empty() ? "it said nothing" : how);
      if (from > 0) {
        // It began well and could not begin again, as where a device was lost.
        leave_rest_out("not reached: " + why);
        break;
      }
      if (said.error) return fail(Code::unavailable, "{}", why);
      return fail(Code::unavailable, "{} did not compute anything: {}", sys::file_name_of(program),
                  why);
    }
    if (said.open) {
      out.nodes[*said.open].left_out = "it ended the program that computes it: " + how;
      from = *said.open + 1;
    } else {
      // Between two ops: what was measured stays so.
      out.warnings.push_back("the program that computes ops ended behind one of them: " + how);
      from = *said.next;
    }
    // The time is that of all: there is none left.
    if (finished.ended == sys::HowEnded::timed_out) ends = k_most_ends - 1;
  }
  return out;
}

// "" where --on may say so, else what it may say.
std::string on_problem(const std::string& on) {
  const bool known = on.empty() || on == "cpu" || on == k_on_weir_engine ||
                     (on.starts_with("vulkan") && (on == "vulkan" || is_number(on.substr(6))));
  return known ? "" : "it takes cpu, vulkan, one of several devices as vulkan1, or weir-engine";
}

// Computes the nodes of `step`, a step of `replay`, and says in the `backend` of each where that
// was. A node that ends the program is left out, with why, and those behind it go on; so are those
// of a device that is not there, where others are. Code::unavailable where nothing can be computed
// at all.
Result<observed::Replayed> replay_step(const profile::Replay& replay, profile::ReplayStep& step,
                                       const ReplayAsk& ask, const Job& job,
                                       const sys::Stop& stop) {
  observed::Replayed all;
  all.nodes.resize(step.nodes.size());
  std::map<std::string, std::vector<std::size_t>> groups;
  std::vector<std::string> recorded_on(step.nodes.size());
  for (std::size_t i = 0; i < step.nodes.size(); ++i) {
    profile::ReplayNode& node = step.nodes[i];
    const std::string place = place_of(node, ask.on);
    if (place.empty()) {
      all.nodes[i].left_out = "it ran on " + node.backend;
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
    profile::Replay some = replay;
    some.steps.assign(1, step);
    some.steps.front().nodes.clear();
    for (const std::size_t i : members) some.steps.front().nodes.push_back(step.nodes[i]);
    auto done = replay_at(place, some, ask, job, stop);
    if (!done && done.error().code == Code::interrupted) return done;
    for (std::size_t i = 0; i < members.size(); ++i) {
      if (done) all.nodes[members[i]] = done->nodes[i];
      if (!done) all.nodes[members[i]].left_out = place + " could not be used";
    }
    if (!done) {
      all.warnings.push_back(done.error().message);
      if (!first_problem) first_problem = done.error();
      continue;
    }
    all.engine = done->engine;
    all.version = done->version;
    all.commit = done->commit;
    all.library += (all.library.empty() ? "" : " and ") + done->library;
    if (done->threads) all.threads = done->threads;
    all.warnings.insert(all.warnings.end(), done->warnings.begin(), done->warnings.end());
  }
  if (all.library.empty() && first_problem) return tl::unexpected(*first_problem);
  std::map<std::string, std::int64_t> moved;
  for (std::size_t i = 0; i < step.nodes.size(); ++i) {
    const profile::ReplayNode& node = step.nodes[i];
    if (!all.nodes[i].median || recorded_on[i] == node.backend) continue;
    moved[fmt::format("recorded on {} and replayed on {}", recorded_on[i], node.backend)] +=
        node.count;
  }
  for (const auto& [how, count] : moved) {
    all.warnings.push_back(fmt::format("{} ops were {}", count, how));
  }
  return all;
}

Result<Answer> record_ops(const Job& job, const ReplayOptions& options) {
  WEIR_CHECK(check_place("--record", options.record, job.files()));
  WEIR_TRY(sys::ProcessSpec spec, command_spec(job, options.words, options.timeout));
  WEIR_TRY(const auto probing, make_probing(job.world));
  WEIR_TRY(const sys::ScratchFolder passing,
           sys::ScratchFolder::make_temporary(job.files(), "weir-replay-"));
  WEIR_CHECK(attach_probes(*probing, {"ggml"}, passing.path(),
                           {{WEIR_PROBE_EVENTS_VARIABLE, "256"}, {WEIR_PROBE_REPLAY_VARIABLE, "1"}},
                           spec));
  job.talk(fmt::format("running {} with ggml", sys::file_name_of(spec.argv.front())));
  const sys::Interrupts interrupts;
  WEIR_TRY(const sys::Finished finished, run_program(job.world, spec, interrupts.stop()));
  const std::string failed = failure_words(finished, spec);
  if (!failed.empty()) {
    talk_of(job, finished.err);
    return fail(Code::unavailable, "{}: {}; nothing was recorded", options.words.front(), failed);
  }
  WEIR_TRY(const profile::Replay replay, probes::collect_replay(job.files(), passing.path()));
  const Json json = write_fields(replay);
  WEIR_CHECK(job.files().write_atomic(options.record, document(json, -1)));
  return Answer{report::recording_text(replay, job.width()) +
                    fmt::format("\nrecorded {}\n  weir replay {} --engine {}\n", options.record,
                                text::shell_word(options.record),
                                text::shell_word(sys::folder_of(replay.library))),
                document(json)};
}

Result<profile::Replay> read_recording(const Job& job, const std::string& path) {
  if (job.files().kind(path) == sys::Kind::folder) return probes::collect_replay(job.files(), path);
  WEIR_TRY(const std::string text, job.files().read(path, k_largest_recording));
  return parse_json(text).and_then(profile::replay_from_json).map_error(in_context(path));
}

// The folder of the engine's libraries, or weir's own engine. Never out of the recording: that is
// somebody's file, and what lies there would run.
Result<std::string> engine_of(const Job& job, const ReplayOptions& options,
                              const profile::Replay& replay) {
  if (options.on == k_on_weir_engine) {
    return find_weir_engine(job.files(), options.engine, sys::own_program(), "--on weir-engine");
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

// Matrix multiplications as large as those that a device does best: of 512 vectors for its
// arithmetic, of one for its memory. Types and numbers of ops are those of the recorded ones, a
// pair a type of weights.
std::vector<profile::ReplayNode> peak_nodes(const profile::ReplayStep& step) {
  constexpr std::int64_t k_length = 4096, k_rows = 4096, k_rows_of_many = 32768, k_vectors = 512;
  std::vector<profile::ReplayNode> nodes;
  std::set<std::pair<std::string, std::string>> done;
  for (const profile::ReplayNode& node : step.nodes) {
    if (node.op != "MUL_MAT" || node.tensors.size() != 3) continue;
    const profile::ReplayTensor& weights = node.tensors[1];
    const bool fits = weights.slot == 1 && weights.ne[0] > 0 && weights.nb[1] > 0 &&
                      weights.nb[1] / weights.ne[0] <= 8 &&  // bytes an element, of any type
                      weights.nb[1] * k_length % weights.ne[0] == 0 && weights.root >= 0 &&
                      static_cast<std::size_t>(weights.root) < node.roots.size() &&
                      node.roots[static_cast<std::size_t>(weights.root)].constant;
    if (!fits || !done.emplace(weights.type, node.backend).second) continue;
    const profile::ReplayRoot root = node.roots[static_cast<std::size_t>(weights.root)];
    for (const auto& [rows, vectors] :
         {std::pair{k_rows, k_vectors}, {k_rows_of_many, std::int64_t{1}}}) {
      profile::ReplayNode& made = nodes.emplace_back(node);
      made.name = "peak";
      made.count = 1;
      const auto lay = [&](std::size_t slot, std::int64_t ne0, std::int64_t ne1, std::int64_t row) {
        profile::ReplayTensor& tensor = made.tensors[slot];
        tensor.ne = {ne0, ne1, 1, 1};
        tensor.nb = {tensor.nb[0], row, row * ne1, row * ne1};
        tensor.offset = 0;
        tensor.root = static_cast<std::int64_t>(slot);
      };
      lay(0, rows, vectors, 4 * rows);
      lay(1, k_length, rows, weights.nb[1] * k_length / weights.ne[0]);
      lay(2, k_length, vectors, 4 * k_length);
      made.roots = {{made.tensors[0].nb[3], false, ""},
                    {made.tensors[1].nb[3], true, root.memory},
                    {made.tensors[2].nb[3], false, ""}};
    }
  }
  return nodes;
}

Result<Answer> replay_ops(const Job& job, const ReplayOptions& options) {
  if (const std::string problem = on_problem(options.on); !problem.empty()) {
    return fail(Code::usage, "--on {}: {}", options.on, problem);
  }
  WEIR_TRY(profile::Replay replay, read_recording(job, options.what));
  WEIR_TRY(const std::size_t index, chosen_step(options, replay));
  profile::ReplayStep step = std::move(replay.steps[index]);
  if (options.peak) {
    step.nodes = peak_nodes(step);
    step.seconds.clear();
  }
  ReplayAsk ask{options};
  ask.constant_bytes = constant_bytes_of(step);
  std::erase_if(step.nodes, [&](const auto& node) {
    return !matches(options.ops, node.description) && !matches(options.ops, node.op);
  });
  if (step.nodes.empty()) {
    return fail(Code::usage, "{}: step {} has no op that {} selects", options.what, index + 1,
                options.peak ? "--peak" : "--op");
  }
  WEIR_TRY(ask.engine, engine_of(job, options, replay));
  if (ask.threads == 0) ask.threads = replay.threads.value_or(1);
  ask.seconds = options.seconds.value_or(k_op_seconds);
  WEIR_TRY(const sys::ScratchFolder passing,
           sys::ScratchFolder::make_temporary(job.files(), "weir-replay-"));
  ask.folder = passing.path();
  job.talk(fmt::format("replaying {} different ops of step {} of {}", step.nodes.size(), index + 1,
                       replay.steps.size()));
  const sys::Interrupts interrupts;
  WEIR_TRY(observed::Replayed replayed, replay_step(replay, step, ask, job, interrupts.stop()));
  if (options.threads == 0 && !replay.threads && replayed.threads) {
    replayed.warnings.push_back("it is not recorded how many threads computed: --threads N says");
  }
  if (!replay.commit.empty() && !replayed.commit.empty() && replay.commit != replayed.commit) {
    replayed.warnings.push_back(fmt::format("recorded with commit {} of ggml, replayed with {}",
                                            replay.commit, replayed.commit));
  }
  const bool whole = options.ops.empty() && !options.peak;
  const observed::Observed observed = observed::observed_of(replay, step, replayed, whole);
  return Answer{
      report::replay_text(replay, step, replayed,
                          {.width = job.width(), .most_rows = options.top, .whole = whole}),
      document(write_fields(observed)),
      observed.ops.empty() ? ExitCode::unmeasured : ExitCode::pass};
}

// What is replayed or recorded decides which options there are.
enum class Work { replaying_ops, replaying_kernels, recording_ops, recording_kernels };

Result<void> check_given(const ReplayOptions& options, Work work) {
  const bool recording = work == Work::recording_ops || work == Work::recording_kernels;
  for (const std::string& given : options.given) {
    const bool records = given == "--timeout" || given == "--mib";
    if (records != recording) {
      return fail(Code::usage, "{} is for {}", given,
                  recording ? "replaying, not recording" : "recording: --record FILE -- COMMAND");
    }
    const bool of_kernels = holds(std::array{"--device", "--runs", "--tokens", "--mib"}, given);
    const bool of_both = holds(std::array{"--seconds", "--memory", "--top", "--timeout"}, given);
    const bool kernels = work == Work::replaying_kernels || work == Work::recording_kernels;
    if (of_both || of_kernels == kernels) continue;
    return fail(Code::usage, "{} is for {}", given,
                of_kernels ? "recorded kernels, not ops" : "ops, not recorded kernels");
  }
  return {};
}

}  // namespace

Result<Answer> replay(const Job& job, const ReplayOptions& options) {
  const bool recording = !options.record.empty();
  if (recording != !options.words.empty() || recording == !options.what.empty()) {
    return fail(Code::usage,
                "weir replay takes a recording, or makes one of a program after --\n"
                "  weir replay --record ops.json -- llama-bench -m model.gguf -p 0 -n 16\n"
                "  weir replay ops.json --engine ~/llama.cpp/build/bin\n"
                "  weir replay --kernels --record kernels -- llama-bench -m model.gguf -ngl 99\n"
                "  weir replay kernels");
  }
  if (recording && options.kernels) {
    WEIR_CHECK(check_given(options, Work::recording_kernels));
    return record_kernels(job, options);
  }
  if (recording) {
    WEIR_CHECK(check_given(options, Work::recording_ops));
    return record_ops(job, options);
  }
  const bool kernels =
      options.kernels || (job.files().kind(options.what) == sys::Kind::folder &&
                          probes::recorded_kernel_files(job.files(), options.what).has_value());
  WEIR_CHECK(check_given(options, kernels ? Work::replaying_kernels : Work::replaying_ops));
  return kernels ? replay_kernels(job, options) : replay_ops(job, options);
}

}  // namespace weir::flow
