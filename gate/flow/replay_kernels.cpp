// weir replay for Vulkan kernels: records those of a program, and runs recorded ones again alone.
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

// How often the program starts again after a kernel that ended it.
constexpr int k_max_program_starts = 64;

// The progress that one start of the replay program reported.
struct ReplayProgress {
  std::optional<std::size_t> begun;  // the kernel that was running
  bool ended = false;                // the last kernel was done
  std::int64_t not_understood = 0;
};

// Reads one JSON line of the replay program into the results and its progress.
void read_report_line(const Json& line, std::vector<report::ReplayedKernel>& kernels,
                      ReplayProgress& progress, report::ReplayedKernels& results) {
  JsonReader fields(line, "weir-replay-vulkan");
  if (const auto device = fields.optional_string("device")) {
    results.device = text::printable(*device);
    results.driver = text::printable(fields.optional_string("driver").value_or(""));
    for (const std::string& warning : fields.strings("warnings")) {
      if (!holds(results.warnings, warning)) results.warnings.push_back(text::printable(warning));
    }
  }
  progress.ended = progress.ended || fields.has("ends");
  if (const auto begins = fields.optional_integer("begins")) {
    progress.begun = static_cast<std::size_t>(*begins);
  }
  const auto work = fields.optional_integer("work");
  if (!work) return;
  progress.begun.reset();
  if (*work < 0 || static_cast<std::size_t>(*work) >= kernels.size()) {
    ++progress.not_understood;
    return;
  }
  report::ReplayedKernel& kernel = kernels[static_cast<std::size_t>(*work)];
  kernel.left_out = text::printable(fields.optional_string("left_out").value_or(""));
  for (const Json& seconds : list_or_empty(line, "seconds")) {
    if (seconds.is_number() && seconds.get<double>() >= 0)
      kernel.seconds.push_back(seconds.get<double>());
  }
}

// Reads the output of one start of the replay program. Lines that are not its own are counted.
ReplayProgress read_report(const std::string& printed, std::vector<report::ReplayedKernel>& kernels,
                           report::ReplayedKernels& results) {
  ReplayProgress progress;
  for (const std::string& line : text::lines(printed)) {
    if (text::trim(line).empty()) continue;
    const auto json = parse_json(line);
    if (json && json->is_object()) {
      read_report_line(*json, kernels, progress, results);
    } else {
      ++progress.not_understood;  // printed by a driver or a layer
    }
  }
  return progress;
}

std::string ending_text(const sys::Finished& finished) {
  if (finished.ended == sys::HowEnded::signaled) {
    return fmt::format("it ended the driver by signal {}", finished.signal);
  }
  if (finished.ended == sys::HowEnded::timed_out) return "it did not come to an end";
  return fmt::format("it ended the driver with code {}", finished.exit_code);
}

// Replays all kernels of one file. Starts the program again after a kernel that ended it.
Result<void> replay_file(const Job& job, const std::string& program, const std::string& file,
                         const ReplayOptions& options, const sys::Stop& stop,
                         std::vector<report::ReplayedKernel>& kernels,
                         report::ReplayedKernels& results) {
  const double seconds = options.seconds.value_or(1);
  std::size_t from = 0;
  for (int start = 0; start < k_max_program_starts && from < kernels.size(); ++start) {
    sys::ProcessSpec spec;
    spec.argv = {program,     file,
                 "--from",    fmt::format("{}", from),
                 "--runs",    fmt::format("{}", options.runs),
                 "--seconds", fmt::format("{}", seconds),
                 "--memory",  fmt::format("{}", options.memory_mib)};
    if (!options.device.empty()) spec.argv.insert(spec.argv.end(), {"--device", options.device});
    // The program limits each submission itself; this limit is for a driver that hangs elsewhere.
    constexpr double k_kernel_seconds =
        90;  // seconds: compiling a kernel, and submissions of up to 20 s
    spec.timeout_seconds =
        60 + static_cast<double>(kernels.size() - from) * (2 * seconds + k_kernel_seconds);
    spec.output_limit = std::uint64_t{256} << 20;
    WEIR_TRY(const sys::Finished finished, run_program(job.world, spec, stop, /*has_to=*/true));
    const ReplayProgress progress = read_report(finished.out, kernels, results);
    if (progress.not_understood != 0) {
      results.warnings.push_back(
          fmt::format("{} lines of weir-replay-vulkan are not its own: a layer's or the driver's",
                      progress.not_understood));
    }
    if (progress.ended) return {};
    if (finished.ended == sys::HowEnded::exited && finished.exit_code == 1) {
      return fail(Code::unavailable, "{}", text::trim(text::printable(finished.err)));
    }
    std::size_t next = from;
    while (next < kernels.size() &&
           (!kernels[next].seconds.empty() || !kernels[next].left_out.empty())) {
      ++next;
    }
    if (progress.begun && next < kernels.size()) {
      kernels[next].left_out = ending_text(finished);
      ++next;
    }
    if (next == from) {
      return fail(Code::unavailable, "weir-replay-vulkan ran nothing: {}", ending_text(finished));
    }
    from = next;
  }
  return {};
}

// Returns the recorded kernels without times.
std::vector<report::ReplayedKernel> list_kernels(const probes::RecordedKernels& recorded) {
  std::vector<report::ReplayedKernel> kernels;
  for (const probes::RecordedWork& work : recorded.works) {
    report::ReplayedKernel& kernel = kernels.emplace_back();
    kernel.name = work.name;
    kernel.groups = work.groups;
    kernel.count = work.count;
    for (const auto& buffer : work.buffers) kernel.bytes += buffer.span;
  }
  return kernels;
}

Result<std::string> read_recording_file(const Job& job, const std::string& path) {
  return job.files().read(path, std::uint64_t{probes::k_max_kernels_mib} << 20);
}

// Replays all files of a recording. Fails with Code::data if they hold no dispatch.
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
  report::ReplayedKernels results;
  results.tokens = options.tokens;
  for (const std::string& path : paths) {
    WEIR_TRY(const std::string bytes, read_recording_file(job, path));
    auto recorded = probes::read_recorded_kernels(bytes);
    if (!recorded) {
      results.warnings.push_back(add_prefix(sys::file_name_of(path), recorded.error()).message);
      continue;
    }
    for (std::size_t i = 0; i < recorded->left_out.size(); ++i) {
      const std::uint64_t skipped = recorded->left_out[i];
      if (skipped != 0) results.left_out[std::string(probes::left_out_reason(i))] += skipped;
    }
    std::vector<report::ReplayedKernel> kernels = list_kernels(*recorded);
    WEIR_CHECK(replay_file(job, places.replay_vulkan_program, path, options, interrupts.stop(),
                           kernels, results));
    for (report::ReplayedKernel& kernel : kernels) {
      if (kernel.seconds.empty() && kernel.left_out.empty()) {
        kernel.left_out = "too many kernels before it ended the driver";
      }
      results.kernels.push_back(std::move(kernel));
    }
  }
  if (results.kernels.empty() && results.left_out.empty()) {
    return fail(Code::data, "{}: no dispatch was recorded{}", options.what,
                results.warnings.empty() ? "" : ": " + results.warnings.front());
  }
  return results;
}

// Runs the program with the probe that records kernels. Returns how it failed; "" if it did not.
Result<std::string> record_program(const Job& job, const ReplayOptions& options) {
  const std::string folder = sys::absolute(options.record);
  const std::string& name = options.trailing_arguments.front();
  WEIR_CHECK(job.files().make_dirs(folder));
  if (probes::recorded_kernel_files(job.files(), folder)) {
    return fail(Code::usage, "{} holds recorded kernels already: name another folder",
                options.record);
  }
  WEIR_TRY(sys::ProcessSpec spec, command_spec(job, options.trailing_arguments, options.timeout));
  WEIR_TRY(const auto probing, make_probing(job.world));
  // The probe can name pipelines because ggml does so on request.
  WEIR_CHECK(attach_probes(*probing, {"vulkan"}, folder,
                           {{WEIR_PROBE_KERNELS_VARIABLE, fmt::format("{}", options.file_mib)}},
                           spec));
  spec.whole_output = false;
  const sys::Interrupts interrupts;
  WEIR_TRY(const sys::Finished finished, run_program(job.world, spec, interrupts.stop()));
  const std::string failure = failure_text(finished, spec);
  if (!probes::recorded_kernel_files(job.files(), folder)) {
    return fail(Code::unavailable,
                "{} used no Vulkan device{}: weir doctor {} says what the probe can see", name,
                failure.empty() ? "" : fmt::format(" ({})", failure), name);
  }
  return failure;
}

}  // namespace

Result<Answer> replay_kernels(const Job& job, const ReplayOptions& options) {
  WEIR_TRY(const report::ReplayedKernels results, replay_all(job, options));
  return Answer{
      report::replayed_text(results, {.width = job.width(), .max_rows = options.top}),
      json_document(write_fields(report::to_observed(results))),
      report::sum_up_times(results).replayed == 0 ? ExitCode::unmeasured : ExitCode::pass};
}

// Records the kernels of a program, and prints how many. Fails with Code::unavailable if it ran
// none.
Result<Answer> record_kernels(const Job& job, const ReplayOptions& options) {
  WEIR_TRY(const std::string failure, record_program(job, options));
  WEIR_TRY(const auto paths, probes::recorded_kernel_files(job.files(), options.record));
  std::uint64_t kernels = 0, dispatches = 0, left_out = 0;
  for (const std::string& path : paths) {
    WEIR_TRY(const std::string bytes, read_recording_file(job, path));
    const auto recorded = probes::read_recorded_kernels(bytes);
    if (!recorded) {  // a process that ended before it wrote anything
      job.log("warning: " + path + ": " + recorded.error().message);
      continue;
    }
    kernels += recorded->works.size();
    for (const auto& work : recorded->works) dispatches += work.count;
    for (const std::uint64_t count : recorded->left_out) left_out += count;
  }
  if (dispatches == 0) {
    for (const std::string& path : paths)
      WEIR_CHECK(job.files().remove(path));  // makes room to retry
    return fail(Code::unavailable,
                "{}: no dispatch was seen{}\n  Does it run on the GPU (llama-bench: -ngl 99)? ggml "
                "leaves Vulkan devices that are CPUs out unless GGML_VK_VISIBLE_DEVICES=0 is set",
                options.trailing_arguments.front(), text::prefix_if_any(": ", failure));
  }
  if (!failure.empty()) job.log("the program: " + failure);
  return Answer{
      fmt::format("{} and {} recorded{}; weir replay {} runs them alone\n",
                  text::plural(kernels, "kernel"),
                  text::plural(dispatches, "dispatch", "dispatches"),
                  left_out == 0 ? "" : fmt::format(", {} left out", left_out), options.record),
      "", failure.empty() ? ExitCode::pass : ExitCode::unmeasured};
}

}  // namespace weir::flow
