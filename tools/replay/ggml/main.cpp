// weir-replay-ggml: computes the ops of a recorded step on the kernels of an engine's own ggml,
// those of the CPU or of a Vulkan device.
#include "gate/base/text.hpp"

#include "tools/replay/ggml/rebuild.hpp"

namespace {

using namespace weir;

Result<replay::Opened> open(const replay::ProgramOptions& options,
                            const profile::Replay& recording) {
  if (options.engine.empty() || options.on.empty()) {
    return fail(Code::usage, "weir-replay-ggml is started by weir replay");
  }
  WEIR_TRY(const replay::Engine engine,
           replay::open_engine(options.engine, options.on, options.threads));
  if (!options.any_version && !recording.version.empty() && engine.version != recording.version) {
    return fail(Code::unavailable,
                "recorded with ggml {}, and {} holds {}: what ops are told may differ\n"
                "  --any-version replays it all the same; recording it anew is surer",
                recording.version, options.engine,
                engine.version.empty() ? "one that does not say its version" : engine.version);
  }
  replay::Opened out;
  out.said = {{"version", text::printable(engine.version)},
              {"commit", text::printable(engine.commit)},
              {"library", text::printable(engine.library)},
              {"device", text::printable(engine.device_words)},
              {"cache_bytes", options.wish.cache_bytes}};
  out.waited = engine.memory != nullptr;
  out.make = [kept = std::make_shared<const replay::Engine>(engine)](
                 const profile::ReplayNode& node, const replay::Wish& wish) {
    return replay::rebuilt(*kept, node, wish);
  };
  return out;
}

}  // namespace

int main(int argc, char** argv) { return replay::run_program(argc, argv, open); }
