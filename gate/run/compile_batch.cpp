// Compiles kernels with several processes of weir-compile-vulkan, and isolates those that fail.
#include "gate/run/compile_batch.hpp"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <deque>
#include <mutex>
#include <thread>

#include "gate/base/json.hpp"
#include "gate/base/text.hpp"
#include "gate/probes/read/read_kernels.hpp"

namespace weir::run {
namespace {

// RADV's statistics, and the figures (unit/kernel_cost.hpp) that they are added to.
constexpr std::pair<std::string_view, std::string_view> k_statistics[] = {
    {"VGPRs", "registers"},
    {"Spilled VGPRs", "spilled_registers"},
    {"Spilled SGPRs", "spilled_registers"},
    {"Scratch size", "scratch_bytes"},
    {"Subgroups per SIMD", "occupancy"},
    {"LDS size", "shared_memory_bytes"},
    {"Code size", "code_bytes"},
    {"Instructions", "kernel_instructions"},
    {"Latency", "latency_cycles"},
    {"Inverse Throughput", "throughput_cycles"}};

// Reads a pipeline's figures (registers, waves, instructions, …) from a line of the compiler's
// output. Leaves out those that are missing or absurdly large.
std::map<std::string, std::int64_t> read_costs(const Json& line, const CompileJob& job) {
  std::map<std::string, std::int64_t> costs;
  const auto add = [&](std::string_view figure, const Json& value) {
    constexpr double k_max_cost = 1e15;
    const double number = value.is_number() ? value.get<double>() : k_max_cost;
    if (std::abs(number) < k_max_cost) costs[std::string(figure)] += std::llround(number);
  };
  const double subgroup_size = member_or_null(line, "subgroup_size").is_number()
                                   ? member_or_null(line, "subgroup_size").get<double>()
                                   : 0;
  if (subgroup_size >= 1 && job.threads != 0)
    add("waves", std::ceil(static_cast<double>(job.threads) / subgroup_size));
  const Json& statistics = member_or_null(line, "statistics");
  for (const auto& [name, figure] : k_statistics) {
    add(figure, member_or_null(statistics, std::string(name).c_str()));
  }
  return costs;
}

// Compiles pipelines in several processes at once.
class Batch {
 public:
  explicit Batch(const CompileEffects& effects) : effects_(effects) {}

  Result<CodesByIdentity> run(std::vector<CompileJob> jobs) {
    std::size_t workers = effects_.places.processes;
    if (workers == 0) workers = std::max(1U, std::thread::hardware_concurrency());
    split_jobs(std::move(jobs), workers);
    workers = std::min(workers, chunks_.size());
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < workers; ++i) threads.emplace_back([this] { work(); });
    for (std::thread& thread : threads) thread.join();
    if (problem_) return tl::unexpected(*problem_);
    return std::move(out_);
  }

 private:
  using Chunk = std::vector<CompileJob>;  // jobs of one file for one process

  // Splits the jobs into chunks, large pipelines first and spread evenly.
  void split_jobs(std::vector<CompileJob> jobs, std::size_t workers) {
    std::ranges::stable_sort(jobs, std::ranges::greater(), &CompileJob::words);
    std::map<std::size_t, Chunk> by_file;
    for (CompileJob& job : jobs) by_file[job.file].push_back(std::move(job));
    for (auto& [file, jobs_of_file] : by_file) {
      // A driver takes up to 0.2 s to start, some kernels take seconds to compile.
      constexpr std::size_t k_min_jobs_per_batch = 4, k_max_jobs_per_batch = 32;
      const std::size_t size = std::clamp(jobs_of_file.size() / (2 * workers), k_min_jobs_per_batch,
                                          k_max_jobs_per_batch);
      std::vector<Chunk> chunks((jobs_of_file.size() + size - 1) / size);
      for (std::size_t i = 0; i < jobs_of_file.size(); ++i) {
        chunks[i % chunks.size()].push_back(std::move(jobs_of_file[i]));
      }
      chunks_.insert(chunks_.end(), std::move_iterator(chunks.begin()),
                     std::move_iterator(chunks.end()));
    }
  }

  void work() {
    for (;;) {
      std::unique_lock hold(mutex_);
      if (problem_ || chunks_.empty()) return;
      Chunk chunk = std::move(chunks_.front());
      chunks_.pop_front();
      hold.unlock();
      compile_chunk(std::move(chunk));
    }
  }

  // Compiles a chunk, with further processes if one fails in between.
  void compile_chunk(Chunk chunk) {
    while (!chunk.empty()) {
      std::vector<std::string> numbers;
      for (const CompileJob& job : chunk) numbers.push_back(fmt::format("{}", job.pipeline));
      // The program limits the time of each pipeline itself. This timeout is for a driver that
      // hangs elsewhere.
      const auto compiler_run = run_compiler(
          effects_.processes, effects_.places, effects_.family,
          {effects_.files[chunk.front().file], "--only", text::join(numbers, ",")},
          static_cast<double>(chunk.size()) * (effects_.places.seconds + 1), effects_.stop);
      if (!compiler_run) return set_problem(compiler_run.error());
      const std::size_t job_count = chunk.size();
      const auto unfinished = read_results(compiler_run->lines, chunk);
      if (chunk.empty()) return;
      const bool made_progress = chunk.size() < job_count;
      // It ended between two pipelines; earlier ones may have used up the memory.
      if (!unfinished && made_progress) continue;
      if (!unfinished) {
        return set_problem({Code::unavailable,
                            fmt::format("{} compiles nothing: {}", effects_.places.driver,
                                        text::trim(text::printable(compiler_run->finished.err)))});
      }
      const CompileFailure failure = compile_failure(compiler_run->finished, effects_.places);
      const auto at = std::ranges::find(chunk, *unfinished, &CompileJob::pipeline);
      if (at == chunk.end())
        return set_problem({Code::data, "weir-compile-vulkan compiles another"});
      // Earlier pipelines may have caused this failure, so try it again as the first one.
      if (failure.repeatable && made_progress) {
        std::rotate(chunk.begin(), at, at + 1);
        continue;
      }
      store(*at, {.not_compiled = failure.words}, failure.repeatable);
      chunk.erase(at);
    }
  }

  // Stores the results of finished pipelines and removes them from the chunk. Returns the pipeline
  // that was begun but not finished, if any.
  std::optional<std::size_t> read_results(const std::vector<Json>& lines, Chunk& chunk) {
    std::optional<std::size_t> unfinished;
    for (const Json& line : lines) {
      JsonReader reader(line, "weir-compile-vulkan");
      if (const auto begins = reader.optional_integer("begins")) {
        unfinished = static_cast<std::size_t>(*begins);
      }
      const auto number = reader.optional_integer("pipeline");
      if (!number) continue;
      const auto at =
          std::ranges::find(chunk, static_cast<std::size_t>(*number), &CompileJob::pipeline);
      if (at == chunk.end()) continue;
      unfinished.reset();
      store(*at,
            {.costs = read_costs(line, *at),
             .not_compiled = text::printable(reader.optional_string("left_out").value_or(""))},
            /*repeatable=*/true);
      chunk.erase(at);
    }
    return unfinished;
  }

  void store(const CompileJob& job, profile::CodeFacts facts, bool repeatable) {
    const std::lock_guard hold(mutex_);
    if (repeatable) effects_.cache.put(job.cache_key, facts);
    out_[job.identity] = std::move(facts);
  }
  void set_problem(Error error) {
    const std::lock_guard hold(mutex_);
    if (!problem_) problem_ = std::move(error);
  }

  const CompileEffects& effects_;
  std::mutex mutex_;  // guards the members below, and the cache
  std::deque<Chunk> chunks_;
  CodesByIdentity out_;
  std::optional<Error> problem_;
};

}  // namespace

Result<CodesByIdentity> compile_all(const CompileEffects& effects, std::vector<CompileJob> jobs) {
  return Batch(effects).run(std::move(jobs));
}

// Returns the reason why the compiler failed, and true if it would fail so again, which may be
// cached.
CompileFailure compile_failure(const sys::Finished& finished, const CompilerPlaces& places) {
  if (finished.ended == sys::HowEnded::exited && finished.exit_code == probes::k_exit_memory) {
    return {fmt::format("took more than {:g} GiB", static_cast<double>(places.memory_mib) / 1024),
            true};
  }
  if (finished.ended == sys::HowEnded::timed_out ||
      (finished.ended == sys::HowEnded::exited && finished.exit_code == probes::k_exit_slow)) {
    return {fmt::format("took longer than {:g} s", places.seconds), false};
  }
  if (finished.ended == sys::HowEnded::signaled) {
    return {fmt::format("the compiler crashed (signal {})", finished.signal),
            finished.signal != SIGKILL};
  }
  if (finished.ended == sys::HowEnded::output_limit) {
    return {"the compiler printed more than weir reads", false};
  }
  return {fmt::format("the compiler exited with code {}", finished.exit_code), false};
}

// Runs the compiler with a clean environment for a GPU family and parses the JSON lines of its
// output. `seconds` is added to the time for its start. Fails if it does not start or is
// interrupted.
Result<CompilerRun> run_compiler(sys::Processes& processes, const CompilerPlaces& places,
                                 const std::string& family, std::vector<std::string> arguments,
                                 double seconds, const sys::Stop& stop) {
  sys::ProcessSpec spec;
  spec.argv = {places.program};
  spec.argv.insert(spec.argv.end(), std::move_iterator(arguments.begin()),
                   std::move_iterator(arguments.end()));
  spec.argv.insert(spec.argv.end(), {"--seconds", fmt::format("{}", places.seconds), "--memory",
                                     fmt::format("{}", places.memory_mib)});
  // Figures must come from this driver as it is: without layers, and without the user's switches.
  spec.env = {{"RADV_FORCE_FAMILY", family},         {"VK_DRIVER_FILES", places.driver},
              {"VK_ICD_FILENAMES", places.driver},  // for loaders of before 2022
              {"VK_LOADER_LAYERS_DISABLE", "~all~"}, {"NODEVICE_SELECT", "1"},
              {"MESA_SHADER_CACHE_DISABLE", "true"}, {"RADV_DEBUG", "nocache"}};
  if (!places.libraries.empty()) {
    const auto own_libraries = sys::environment_value("LD_LIBRARY_PATH");
    spec.env.emplace_back("LD_LIBRARY_PATH",
                          places.libraries + (own_libraries ? ":" + *own_libraries : ""));
  }
  spec.unset = {"VK_INSTANCE_LAYERS",
                "VK_LAYER_PATH",
                "VK_ADD_DRIVER_FILES",
                "VK_LOADER_DRIVERS_SELECT",
                "VK_LOADER_DRIVERS_DISABLE",
                "RADV_PERFTEST",
                "ACO_DEBUG",
                "NIR_DEBUG",
                "MESA_VK_VERSION_OVERRIDE",
                "LD_PRELOAD"};
  spec.output_limit = std::uint64_t{64} << 20;
  constexpr double k_start_seconds = 60;
  spec.timeout_seconds = k_start_seconds + seconds;
  WEIR_TRY(sys::Finished finished, processes.run(spec, stop));
  if (finished.ended == sys::HowEnded::interrupted) return fail(Code::interrupted, "interrupted");
  if (finished.ended == sys::HowEnded::not_started) {
    return fail(Code::unavailable, "{} does not start: {}", places.program, finished.start_error);
  }
  CompilerRun result{std::move(finished), {}};
  for (const std::string& text : text::lines(result.finished.out)) {
    auto line = parse_json(text);
    if (line && line->is_object())
      result.lines.push_back(std::move(*line));  // skips a driver's messages
  }
  return result;
}

}  // namespace weir::run
