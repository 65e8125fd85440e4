#include <numeric>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/flow/devices.hpp"
#include "gate/flow/program.hpp"
#include "gate/flow/replay.hpp"
#include "gate/probes/read/read_kernels.hpp"
#include "gate/probes/recorded_kernels.h"
#include "gate/report/layout.hpp"
#include "gate/report/replayed_kernels.hpp"
#include "gate/sys/paths.hpp"

namespace weir::flow {
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
      if (!holds(out.warnings, warning)) out.warnings.push_back(text::printable(warning));
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
  for (const Json& one : list_in(line, "seconds")) {
    if (one.is_number() && one.get<double>() >= 0) kernel.seconds.push_back(one.get<double>());
  }
}

Heard take_lines(const std::string& printed, std::vector<report::ReplayedKernel>& kernels,
                 report::ReplayedKernels& out) {
  Heard heard;
  for (const std::string& line : text::lines(printed)) {
    if (text::trim(line).empty()) continue;
    const auto json = parse_json(line);
    if (json && json->is_object()) {
      take_line(*json, kernels, heard, out);
    } else {
      ++heard.not_understood;  // a driver's or a layer's own words
    }
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
Result<void> replay_file(const Job& job, const std::string& program, const std::string& file,
                         const ReplayOptions& options, const sys::Stop& stop,
                         std::vector<report::ReplayedKernel>& kernels,
                         report::ReplayedKernels& out) {
  const double seconds = options.seconds.value_or(1);
  std::size_t from = 0;
  for (int start = 0; start < k_most_starts && from < kernels.size(); ++start) {
    sys::ProcessSpec spec;
    spec.argv = {program,     file,
                 "--from",    fmt::format("{}", from),
                 "--runs",    fmt::format("{}", options.runs),
                 "--seconds", fmt::format("{}", seconds),
                 "--memory",  fmt::format("{}", options.memory_mib)};
    if (!options.device.empty()) spec.argv.insert(spec.argv.end(), {"--device", options.device});
    // The program watches over each submission itself; this is for a driver that hangs elsewhere.
    constexpr double k_each = 90;  // seconds: compiling a kernel, and submissions of up to 20 s
    spec.timeout_seconds = 60 + static_cast<double>(kernels.size() - from) * (2 * seconds + k_each);
    spec.output_limit = std::uint64_t{256} << 20;
    WEIR_TRY(const sys::Finished finished, run_program(job.world, spec, stop, true));
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
    report::ReplayedKernel& one = out.emplace_back();
    one.name = work.name;
    one.groups = work.groups;
    one.count = work.count;
    for (const auto& buffer : work.buffers) one.bytes += buffer.span;
  }
  return out;
}

Result<std::string> bytes_of(const Job& job, const std::string& path) {
  return job.files().read(path, std::uint64_t{probes::k_most_kernels_mib} << 20);
}

Result<report::ReplayedKernels> replay_all(const Job& job, const ReplayOptions& options) {
  WEIR_TRY(const auto paths, probes::recorded_kernel_files(job.files(), options.what));
  WEIR_TRY(const probes::Places places, probe_places(job.world));
  if (places.replay_vulkan_program.empty()) {
    return fail(Code::unavailable,
                "weir-replay-vulkan is missing beside the probes in {}: build or install weir "
                "again (there is none on macOS)",
                places.probes);
  }
  const sys::Interrupts interrupts;
  report::ReplayedKernels out;
  out.tokens = options.tokens;
  for (const std::string& path : paths) {
    WEIR_TRY(const std::string bytes, bytes_of(job, path));
    auto recorded = probes::read_recorded_kernels(bytes);
    if (!recorded) {
      out.warnings.push_back(with_context(sys::file_name_of(path), recorded.error()).message);
      continue;
    }
    for (std::size_t i = 0; i < recorded->left_out.size(); ++i) {
      const std::uint64_t left_out = recorded->left_out[i];
      if (left_out != 0) out.left_out[std::string(probes::left_out_words(i))] += left_out;
    }
    std::vector<report::ReplayedKernel> kernels = kernels_of(*recorded);
    WEIR_CHECK(replay_file(job, places.replay_vulkan_program, path, options, interrupts.stop(),
                           kernels, out));
    for (report::ReplayedKernel& kernel : kernels) {
      if (kernel.seconds.empty() && kernel.left_out.empty()) {
        kernel.left_out = "too many kernels before it ended the driver";
      }
      out.kernels.push_back(std::move(kernel));
    }
  }
  if (out.kernels.empty() && out.left_out.empty()) {
    return fail(Code::data, "{}: no dispatch was recorded{}", options.what,
                out.warnings.empty() ? "" : ": " + out.warnings.front());
  }
  return out;
}

// What there is to say of how the program ended; "" when it exited with 0.
Result<std::string> record_program(const Job& job, const ReplayOptions& options) {
  const std::string folder = sys::absolute(options.record);
  const std::string& name = options.words.front();
  WEIR_CHECK(job.files().make_dirs(folder));
  if (probes::recorded_kernel_files(job.files(), folder)) {
    return fail(Code::usage, "{} holds recorded kernels already: name another folder",
                options.record);
  }
  WEIR_TRY(sys::ProcessSpec spec, command_spec(job, options.words, options.timeout));
  WEIR_TRY(const auto probing, make_probing(job.world));
  // ggml names its pipelines when it is asked to.
  WEIR_CHECK(attach_probes(*probing, {"vulkan"}, folder,
                           {{WEIR_PROBE_KERNELS_VARIABLE, fmt::format("{}", options.file_mib)}},
                           spec));
  spec.whole_output = false;
  const sys::Interrupts interrupts;
  WEIR_TRY(const sys::Finished finished, run_program(job.world, spec, interrupts.stop()));
  const std::string ended = failure_words(finished, spec);
  if (!probes::recorded_kernel_files(job.files(), folder)) {
    return fail(Code::unavailable,
                "{} used no Vulkan device{}: weir doctor {} says what the probe can see", name,
                ended.empty() ? "" : fmt::format(" ({})", ended), name);
  }
  return ended;
}

}  // namespace

Result<Answer> replay_kernels(const Job& job, const ReplayOptions& options) {
  WEIR_TRY(const report::ReplayedKernels all, replay_all(job, options));
  return Answer{report::replayed_text(all, {.width = job.width(), .most_rows = options.top}),
                document(write_fields(report::observed_of(all))),
                report::sums_of(all).replayed == 0 ? ExitCode::unmeasured : ExitCode::pass};
}

Result<Answer> record_kernels(const Job& job, const ReplayOptions& options) {
  WEIR_TRY(const std::string ended, record_program(job, options));
  WEIR_TRY(const auto paths, probes::recorded_kernel_files(job.files(), options.record));
  std::uint64_t kernels = 0, dispatches = 0, left_out = 0;
  for (const std::string& path : paths) {
    WEIR_TRY(const std::string bytes, bytes_of(job, path));
    const auto recorded = probes::read_recorded_kernels(bytes);
    if (!recorded) {  // a process that was ended before it wrote anything
      job.talk("warning: " + path + ": " + recorded.error().message);
      continue;
    }
    kernels += recorded->works.size();
    for (const auto& work : recorded->works) dispatches += work.count;
    left_out = std::accumulate(recorded->left_out.begin(), recorded->left_out.end(), left_out);
  }
  if (dispatches == 0) {
    for (const std::string& path : paths) WEIR_CHECK(job.files().remove(path));  // for the next try
    return fail(Code::unavailable,
                "{}: no dispatch was seen{}\n  Does it run on the GPU (llama-bench: -ngl 99)? ggml "
                "leaves Vulkan devices that are CPUs out unless GGML_VK_VISIBLE_DEVICES=0 is set",
                options.words.front(), ended.empty() ? "" : ": " + ended);
  }
  if (!ended.empty()) job.talk("the program: " + ended);
  return Answer{
      fmt::format("{} and {} recorded{}; weir replay {} runs them alone\n",
                  report::plural(kernels, "kernel"),
                  report::plural(dispatches, "dispatch", "dispatches"),
                  left_out == 0 ? "" : fmt::format(", {} left out", left_out), options.record),
      "", ended.empty() ? ExitCode::pass : ExitCode::unmeasured};
}

}  // namespace weir::flow
