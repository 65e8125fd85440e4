#include "gate/app/replay_kernels.hpp"

#include <algorithm>

#include "gate/app/ended.hpp"
#include "gate/app/probing.hpp"
#include "gate/base/json.hpp"
#include "gate/base/text.hpp"
#include "gate/probes/read/locate.hpp"
#include "gate/probes/read/read_kernels.hpp"
#include "gate/run/environment.hpp"
#include "gate/sys/paths.hpp"
#include "gate/sys/process.hpp"

namespace weir::app {
namespace {

// How often the program is started again behind a kernel that ended it.
constexpr int k_most_starts = 64;

// What one start of the program said, in the order of its lines.
struct Heard {
  std::optional<std::size_t> begun;  // the work that it was at
  bool ended = false;                // it came to the last one
  std::int64_t not_understood = 0;
};

void take_line(const Json& line, std::vector<report::ReplayedKernel>& kernels, Heard& heard,
               report::ReplayedKernels& out) {
  JsonReader read(line, "weir-replay-vulkan");
  if (const auto device = read.optional_string("device")) {
    out.device = text::printable(*device);
    out.driver = text::printable(read.optional_string("driver").value_or(""));
    for (const std::string& warning : read.strings("warnings")) {
      if (std::find(out.warnings.begin(), out.warnings.end(), warning) == out.warnings.end()) {
        out.warnings.push_back(text::printable(warning));
      }
    }
  }
  heard.ended = heard.ended || read.has("ends");
  if (const auto begins = read.optional_integer("begins")) {
    heard.begun = static_cast<std::size_t>(*begins);
  }
  const auto work = read.optional_integer("work");
  if (!work) return;
  heard.begun.reset();
  if (*work < 0 || static_cast<std::size_t>(*work) >= kernels.size()) {
    ++heard.not_understood;
    return;
  }
  report::ReplayedKernel& kernel = kernels[static_cast<std::size_t>(*work)];
  kernel.left_out = text::printable(read.optional_string("left_out").value_or(""));
  if (!line.contains("seconds") || !line["seconds"].is_array()) return;
  for (const Json& one : line["seconds"]) {
    if (one.is_number() && one.get<double>() >= 0) kernel.seconds.push_back(one.get<double>());
  }
}

Heard take_lines(const std::string& printed, std::vector<report::ReplayedKernel>& kernels,
                 report::ReplayedKernels& out) {
  Heard heard;
  for (const std::string& line : text::lines(printed)) {
    if (text::trim(line).empty()) continue;
    const auto json = parse_json(line);
    if (!json || !json->is_object()) {
      ++heard.not_understood;  // a driver's or a layer's own words
      continue;
    }
    take_line(*json, kernels, heard, out);
  }
  return heard;
}

std::string how_it_ended(const sys::Finished& finished) {
  if (finished.ended == sys::HowEnded::signaled) {
    return fmt::format("it ended the driver by signal {}", finished.signal);
  }
  if (finished.ended == sys::HowEnded::timed_out) return "it did not come to an end";
  return fmt::format("it ended the driver with code {}", finished.exit_code);
}

// All works of one file, in starts of the program as many as it takes.
Result<void> replay_file(const std::string& program, const std::string& file,
                         const ReplayKernelsAsk& ask, const sys::Stop& stop,
                         std::vector<report::ReplayedKernel>& kernels,
                         report::ReplayedKernels& out) {
  sys::RealProcesses processes;
  std::size_t from = 0;
  for (int start = 0; start < k_most_starts && from < kernels.size(); ++start) {
    sys::ProcessSpec spec;
    spec.argv = {program,     file,
                 "--from",    fmt::format("{}", from),
                 "--runs",    fmt::format("{}", ask.runs),
                 "--seconds", fmt::format("{}", ask.seconds),
                 "--memory",  fmt::format("{}", ask.memory_mib)};
    if (!ask.device.empty()) spec.argv.insert(spec.argv.end(), {"--device", ask.device});
    // The program watches over each submission itself; this is for a driver that hangs elsewhere.
    constexpr double k_each = 90;  // seconds: compiling a kernel, and submissions of up to 20 s
    spec.timeout_seconds =
        60 + static_cast<double>(kernels.size() - from) * (2 * ask.seconds + k_each);
    spec.output_limit = std::uint64_t{256} << 20;
    WEIR_TRY(const sys::Finished finished, processes.run(spec, stop));
    if (finished.ended == sys::HowEnded::interrupted) return fail(Code::interrupted, "interrupted");
    if (finished.ended == sys::HowEnded::not_started) {
      return fail(Code::unavailable, "{}: can not be run: {}", program, finished.start_error);
    }
    const Heard heard = take_lines(finished.out, kernels, out);
    if (heard.not_understood != 0) {
      out.warnings.push_back(
          fmt::format("{} lines of weir-replay-vulkan are not its own: a layer's or the driver's",
                      heard.not_understood));
    }
    if (heard.ended) return {};
    if (finished.ended == sys::HowEnded::exited && finished.exit_code == 1) {
      return fail(Code::unavailable, "{}", text::trim(text::printable(finished.err)));
    }
    std::size_t next = from;
    while (next < kernels.size() &&
           (!kernels[next].seconds.empty() || !kernels[next].left_out.empty())) {
      ++next;
    }
    if (heard.begun && next < kernels.size()) kernels[next++].left_out = how_it_ended(finished);
    if (next == from) {
      return fail(Code::unavailable, "weir-replay-vulkan ran nothing: {}", how_it_ended(finished));
    }
    from = next;
  }
  return {};
}

std::vector<report::ReplayedKernel> kernels_of(const probes::RecordedKernels& recorded) {
  std::vector<report::ReplayedKernel> out;
  for (const probes::RecordedWork& work : recorded.works) {
    report::ReplayedKernel one;
    one.name = work.name;
    one.groups = work.groups;
    one.count = work.count;
    for (const auto& buffer : work.buffers) one.bytes += buffer.span;
    out.push_back(std::move(one));
  }
  return out;
}

}  // namespace

Result<report::ReplayedKernels> replay_kernels(const ReplayKernelsAsk& ask, const sys::Files& files,
                                               const sys::Stop& stop) {
  WEIR_TRY(const auto paths, probes::recorded_kernel_files(files, ask.folder));
  WEIR_TRY(const probes::Places places, probes::locate(files));
  if (places.replay_vulkan_program.empty()) {
    return fail(Code::unavailable,
                "weir-replay-vulkan is missing beside the probes in {}: build or install weir "
                "again (there is none on macOS)",
                places.probes);
  }
  report::ReplayedKernels out;
  out.tokens = ask.tokens;
  for (const std::string& path : paths) {
    WEIR_TRY(const std::string bytes,
             files.read(path, std::uint64_t{probes::k_most_kernels_mib} << 20));
    auto recorded = probes::read_recorded_kernels(bytes);
    if (!recorded) {
      out.warnings.push_back(with_context(sys::file_name_of(path), recorded.error()).message);
      continue;
    }
    for (std::size_t i = 0; i < recorded->left_out.size(); ++i) {
      if (recorded->left_out[i] == 0) continue;
      out.left_out[std::string(probes::left_out_words(i))] += recorded->left_out[i];
    }
    std::vector<report::ReplayedKernel> kernels = kernels_of(*recorded);
    WEIR_CHECK(replay_file(places.replay_vulkan_program, path, ask, stop, kernels, out));
    for (report::ReplayedKernel& kernel : kernels) {
      if (kernel.seconds.empty() && kernel.left_out.empty()) {
        kernel.left_out = "too many kernels before it ended the driver";
      }
      out.kernels.push_back(std::move(kernel));
    }
  }
  if (out.kernels.empty() && out.left_out.empty()) {
    return fail(Code::data, "{}: no dispatch was recorded{}", ask.folder,
                out.warnings.empty() ? "" : ": " + out.warnings.front());
  }
  return out;
}

Result<std::string> record_kernels(const RecordKernelsAsk& ask, sys::Files& files,
                                   const sys::Stop& stop) {
  const std::string folder = sys::absolute(ask.folder);
  WEIR_CHECK(files.make_dirs(folder));
  if (probes::recorded_kernel_files(files, folder)) {
    return fail(Code::usage, "{} holds recorded kernels already: name another folder", ask.folder);
  }
  const auto program = sys::find_program(files, ask.command.front(), ".",
                                         sys::environment_value("PATH").value_or(""));
  if (!program) return fail(Code::usage, "no such program: {}", ask.command.front());
  WEIR_TRY(const auto probing, make_probing(files));
  const std::vector<std::string> probe = {"vulkan"};
  WEIR_TRY(config::Environment added, probing->attach(probe, folder, nullptr));
  added[WEIR_PROBE_KERNELS_VARIABLE] = fmt::format("{}", ask.file_mib);
  // ggml names its pipelines when it is asked to.
  const config::Environment own = {{"GGML_VK_DEBUG_MARKERS", "1"}};
  sys::ProcessSpec spec;
  spec.argv = ask.command;
  spec.argv.front() = *program;
  spec.env = run::merge_environment(sys::own_environment(), own, added);
  spec.timeout_seconds = ask.timeout_seconds;
  spec.output_limit = std::uint64_t{256} << 20;
  spec.whole_output = false;
  sys::RealProcesses processes;
  WEIR_TRY(const sys::Finished finished, processes.run(spec, stop));
  if (finished.ended == sys::HowEnded::interrupted) return fail(Code::interrupted, "interrupted");
  if (!probes::recorded_kernel_files(files, folder)) {
    return fail(Code::unavailable,
                "{} used no Vulkan device{}: weir doctor {} says what the probe can see",
                ask.command.front(),
                finished.ended == sys::HowEnded::exited && finished.exit_code == 0
                    ? ""
                    : fmt::format(" ({})", ended_words(finished, spec)),
                ask.command.front());
  }
  return ended_words(finished, spec);
}

}  // namespace weir::app
