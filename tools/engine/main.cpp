// weir-engine: a small engine that shows how an engine is instrumented, and that weir is tried on.
// Exit codes: 0; 2 the command line or a missing kernel; 3 anything else, as a model that is none,
// a device that is not there, no memory, an output that cannot be written.
#include <chrono>
#include <cstdio>
#include <exception>
#include <memory>
#include <string_view>

#include "gate/base/json.hpp"

#include "tools/engine/backend.hpp"
#include "tools/engine/generate.hpp"
#include "tools/engine/options.hpp"
#include "tools/engine/replay.hpp"
#include "tools/engine/report.hpp"

namespace weir::engine {
namespace {

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

Result<std::unique_ptr<Backend>> make_backend(const Options& options, const Model& model,
                                              Counts& counts) {
  WEIR_TRY(auto backend, options.vulkan ? make_vulkan_backend(model, options.device, counts)
                                        : make_cpu_backend(model, options.threads, counts));
  return add_faults(std::move(backend), options.faults, model, counts);
}

// Room for this run and no more: a cache for the context that a model was trained for may be huge.
std::uint32_t positions_needed(const Options& options) {
  const std::uint64_t prompt =
      std::max<std::uint64_t>(options.work.prompt.size(), options.prompt_tokens);
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(
      options.context,
      std::max<std::uint64_t>(prompt, 1) + options.work.tokens + options.work.depth));
}

LogitsSink write_to(std::FILE* file) {
  if (file == nullptr) return {};
  return [file](const std::vector<float>& logits) -> Result<void> {
    if (std::fwrite(logits.data(), sizeof(float), logits.size(), file) != logits.size()) {
      return fail(Code::io, "the logits cannot be written");
    }
    return {};
  };
}

void print(const Run& run, const Model& model, const Backend& backend, const Counts& counts,
           bool json) {
  if (json) {
    std::puts(write_fields(observe(run, model, backend, counts)).dump(1).c_str());
    return;
  }
  for (const std::uint32_t token : run.repeats.back().tokens) std::printf("%u\n", token);
}

// Loads the model, repeats the requested work, and prints the measurements.
Result<void> run(int argc, char** argv) {
  WEIR_TRY(const Options options, parse_options(argc, argv));
  const auto start = std::chrono::steady_clock::now();
  Counts counts;
  WEIR_TRY(const Model model, load_model(options.model, positions_needed(options)));
  WEIR_TRY(const auto backend, make_backend(options, model, counts));
  Decoder decoder(model, *backend, options.switches, counts);
  Run run;
  run.load_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  run.work = options.work;
  if (run.work.prompt.empty()) run.work.prompt = made_up_prompt(options.prompt_tokens, model);

  const File logits(options.logits.empty() ? nullptr : std::fopen(options.logits.c_str(), "wb"),
                    [](std::FILE* file) { return file != nullptr ? std::fclose(file) : 0; });
  if (!logits && !options.logits.empty())
    return fail(Code::io, "{}: cannot be written", options.logits);
  for (std::uint32_t i = 0; i < run.work.repeats; ++i) {
    WEIR_TRY(Repeat repeat,
             generate(model, *backend, decoder, run.work, counts, write_to(logits.get())));
    run.repeats.push_back(std::move(repeat));
  }
  print(run, model, *backend, counts, options.json);
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    return fail(Code::io, "standard output cannot be written");
  }
  return {};
}

}  // namespace
}  // namespace weir::engine

// Replays ops (--replay) or runs the model. Exits with 2 for wrong options or missing features, and
// with 3 for other errors.
int main(int argc, char** argv) {
  weir::Result<void> result;
  try {
    if (argc > 1 && std::string_view(argv[1]) == "--replay") {
      return weir::engine::run_replay(argc, argv);
    }
    result = weir::engine::run(argc, argv);
  } catch (const std::exception& error) {  // no memory, no more threads
    result = weir::fail(weir::Code::io, "{}", error.what());
  }
  if (result) return 0;
  std::fprintf(stderr, "weir-engine: %s\n", result.error().message.c_str());
  const weir::Code code = result.error().code;
  return code == weir::Code::usage || code == weir::Code::unavailable ? 2 : 3;
}
