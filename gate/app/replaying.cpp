#include "gate/app/replaying.hpp"

#include <cmath>

#include "gate/app/ended.hpp"
#include "gate/base/json.hpp"
#include "gate/base/text.hpp"
#include "gate/probes/locate.hpp"
#include "gate/sys/paths.hpp"
#include "gate/sys/process.hpp"
#include "gate/sys/system.hpp"

namespace weir::app {
namespace {

constexpr int k_most_ends = 16;         // of the program, before the rest is given up
constexpr double k_start_seconds = 60;  // for opening libraries and filling tensors
constexpr double k_slowest = 60;        // times what an op is given

// What one run of the program said, line by line.
struct Said {
  std::optional<std::size_t> open;  // a node that began and has no times yet
  std::optional<std::string> error;
  bool complete = false;
};

void take_line(const Json& line, profile::Replayed* out, Said* said) {
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
    out->version = text_of("version");
    out->commit = text_of("commit");
    out->library = text_of("library");
  }
  if (const auto begins = index_of("begins")) said->open = begins;
  const auto index = index_of("node");
  if (!index) return;
  profile::ReplayedNode& node = out->nodes[*index];
  said->open.reset();
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

}  // namespace

Result<profile::Replayed> replay_ops(const profile::Replay& replay, const ReplayAsk& ask,
                                     sys::Files& files, const sys::Stop& stop) {
  WEIR_TRY(const probes::Places places, probes::locate(files));
  if (places.replay_ggml_program.empty()) {
    return fail(Code::unavailable, "weir-replay-ggml, which computes ops, {}",
                sys::k_on_macos ? "is not on macOS"
                                : "is missing beside the probes: build or install weir again");
  }
  const std::string file = sys::join_path(ask.folder, "ops.json");
  WEIR_CHECK(files.write_unsynced(file, dump_json(profile::to_json(replay))));
  profile::Replayed out;
  out.threads = ask.threads;
  out.nodes.resize(replay.steps.empty() ? 0 : replay.steps.front().nodes.size());
  sys::RealProcesses processes;
  std::size_t from = 0;
  for (int ends = 0; from < out.nodes.size(); ++ends) {
    if (ends == k_most_ends) {
      out.warnings.push_back(
          "ops ended the program that computes them too often: the rest is left out");
      for (; from < out.nodes.size(); ++from) out.nodes[from].left_out = "not reached";
      break;
    }
    sys::ProcessSpec spec;
    const auto number = [](std::int64_t value) { return fmt::format("{}", value); };
    spec.argv = {places.replay_ggml_program,
                 "--file",
                 file,
                 "--engine",
                 ask.engine,
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
    if (said.error) return fail(Code::unavailable, "{}", *said.error);
    if (said.complete) break;
    const std::string how = ended_words(finished, spec) + last_words(finished.err);
    if (!said.open) {
      return fail(Code::unavailable, "weir-replay-ggml did not compute anything: {}",
                  how.empty() ? "it said nothing" : how);
    }
    out.nodes[*said.open].left_out = "it ended the program that computes it: " + how;
    from = *said.open + 1;
    // The time is that of all: there is none left.
    if (finished.ended == sys::HowEnded::timed_out) ends = k_most_ends - 1;
  }
  return out;
}

}  // namespace weir::app
