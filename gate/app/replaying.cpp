#include "gate/app/replaying.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "gate/app/ended.hpp"
#include "gate/base/json.hpp"
#include "gate/base/text.hpp"
#include "gate/probes/read/locate.hpp"
#include "gate/sys/paths.hpp"
#include "gate/sys/process.hpp"
#include "gate/sys/system.hpp"

namespace weir::app {
namespace {

constexpr int k_most_ends = 16;         // of the program, before the rest is given up
constexpr double k_start_seconds = 60;  // for opening libraries and filling tensors
constexpr double k_slowest = 60;        // times what an op is given
constexpr const char* k_cpu = "CPU";
constexpr std::string_view k_vulkan = "Vulkan";  // ggml's names are this and a number

// What one run of the program said, line by line.
struct Said {
  std::optional<std::size_t> open;  // a node that began and has no times yet
  std::optional<std::size_t> next;  // the one behind the last that has
  std::optional<std::string> error;
  bool complete = false;
};

void take_line(const Json& line, observed::Replayed* out, Said* said) {
  const auto text_of = [&](const char* key) {
    const auto found = line.find(key);
    return found != line.end() && found->is_string() ? text::printable(found->get<std::string>())
                                                     : std::string();
  };
  const auto time_of = [&](const char* key) -> std::optional<double> {
    const auto found = line.find(key);
    if (found == line.end() || !found->is_number()) return std::nullopt;
    const double value = found->get<double>();
    return std::isfinite(value) && value >= 0 ? std::optional(value) : std::nullopt;
  };
  const auto index_of = [&](const char* key) -> std::optional<std::size_t> {
    const auto found = line.find(key);
    if (found == line.end() || !found->is_number_unsigned()) return std::nullopt;
    const auto index = found->get<std::size_t>();
    return index < out->nodes.size() ? std::optional(index) : std::nullopt;
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
  node.runs = line.value("runs", Json(0)).is_number_integer() ? line.value("runs", 0) : 0;
  node.copies = line.value("copies", Json(0)).is_number_integer() ? line.value("copies", 0) : 0;
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
  return !digits.empty() && digits.size() < 4 &&
         std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
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
                               const sys::Files& files) {
  if (place == k_on_weir_engine) return ask.engine;
  WEIR_TRY(const probes::Places places, probes::locate(files));
  if (!places.replay_ggml_program.empty()) return places.replay_ggml_program;
  return fail(Code::unavailable, "weir-replay-ggml, which computes ops, {}",
              sys::k_on_macos ? "is not on macOS"
                              : "is missing beside the probes: build or install weir again");
}

// Computes the nodes of the first step of `replay` at one place: "CPU", "Vulkan0".
Result<observed::Replayed> replay_at(const std::string& place, const profile::Replay& replay,
                                     const ReplayAsk& ask, sys::Files& files,
                                     const sys::Stop& stop) {
  WEIR_TRY(const std::string program, program_of(place, ask, files));
  const std::string file = sys::join_path(ask.folder, "ops.json");
  WEIR_CHECK(files.write_unsynced(file, dump_json(profile::to_json(replay))));
  observed::Replayed out;
  if (!place.starts_with(k_vulkan)) out.threads = ask.threads;
  out.nodes.resize(replay.steps.empty() ? 0 : replay.steps.front().nodes.size());
  sys::RealProcesses processes;
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
    spec.argv = {program,
                 "--replay",
                 file,
                 "--engine",
                 ask.engine,
                 "--on",
                 place,
                 "--threads",
                 number(ask.threads),
                 "--memory",
                 number(ask.memory_mib),
                 "--milliseconds",
                 number(std::llround(ask.seconds * 1000)),
                 "--constant-bytes",
                 number(ask.constant_bytes),
                 "--any-op",
                 ask.any_op ? "1" : "0",
                 "--any-version",
                 ask.any_version ? "1" : "0",
                 "--from",
                 number(static_cast<std::int64_t>(from))};
    spec.timeout_seconds =
        k_start_seconds + static_cast<double>(out.nodes.size()) * (2 + k_slowest * ask.seconds);
    WEIR_TRY(const sys::Finished finished, processes.run(spec, stop));
    if (finished.ended == sys::HowEnded::interrupted) return fail(Code::interrupted, "interrupted");
    Said said;
    for (const std::string& line : text::lines(finished.out)) {
      const auto json = parse_json(line);
      if (json && json->is_object()) take_line(*json, &out, &said);
    }
    if (said.complete && !said.error) break;
    const std::string how = ended_words(finished, spec) + last_words(finished.err);
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

}  // namespace

std::string on_problem(const std::string& on) {
  const bool known = on.empty() || on == "cpu" || on == k_on_weir_engine ||
                     (on.starts_with("vulkan") && (on == "vulkan" || is_number(on.substr(6))));
  return known ? "" : "it takes cpu, vulkan, one of several devices as vulkan1, or weir-engine";
}

Result<observed::Replayed> replay_step(const profile::Replay& replay, profile::ReplayStep& step,
                                       const ReplayAsk& ask, sys::Files& files,
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
    auto done = replay_at(place, some, ask, files, stop);
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

}  // namespace weir::app
