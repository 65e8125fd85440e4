// weir-replay-ggml: computes the ops of a recorded step on the kernels of an engine's own ggml,
// those of the CPU or of a Vulkan device.
#include "tools/replay/ggml/ggml.hpp"

#include <algorithm>
#include <cstring>
#include <filesystem>

#include <dlfcn.h>

#include "gate/base/text.hpp"

namespace weir::replay {
namespace {

std::vector<std::string> libraries_in(const std::string& folder, std::string_view begins) {
  std::vector<std::string> names;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(folder, none)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(begins) && name.find(".so") != std::string::npos) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string link_error() {
  const char* reason = dlerror();
  return reason == nullptr ? "no reason given" : reason;
}

template <class Function>
Function* find(void* library, const char* name) {
  return reinterpret_cast<Function*>(dlsym(library, name));
}

// Finds the functions of ggml that a replay calls in the library `base`. Fails if one is missing.
Result<void> find_functions(void* base, Engine& engine) {
#define WEIR_REPLAY_FIND(name, result, parameters)                                                \
  engine.name = find<result parameters>(base, "ggml_" #name);                                     \
  if (engine.name == nullptr) {                                                                   \
    return left_out_error("its ggml has no {}: too old or too new for this weir", "ggml_" #name); \
  }
  WEIR_REPLAY_GGML(WEIR_REPLAY_FIND)
#undef WEIR_REPLAY_FIND
  if (auto* version = find<const char*()>(base, "ggml_version")) engine.version = version();
  if (auto* commit = find<const char*()>(base, "ggml_commit")) engine.commit = commit();
  return {};
}

// Returns true if Tensor has the layout of ggml's tensors. Makes tensors with ggml's functions and
// compares their fields.
bool layout_fits(const Engine& ggml) {
  constexpr std::size_t k_header_of_object = 32;  // ggml_tensor_overhead() counts it in
  if (ggml.tensor_overhead() != k_header_of_object + sizeof(Tensor)) return false;
  Context* context = ggml.init({16 * ggml.tensor_overhead(), nullptr, true});
  if (context == nullptr) return false;
  constexpr float k_epsilon = 0.015625F;
  constexpr int k_f32 = 0;  // GGML_TYPE_F32, the same in all versions
  const std::int64_t ne[4] = {8, 4, 2, 1};
  Tensor* a = ggml.new_tensor(context, k_f32, 4, ne);
  Tensor* b = ggml.new_tensor(context, k_f32, 4, ne);
  bool fits = ggml.get_name(a) == a->name && std::memcmp(a->ne, ne, sizeof ne) == 0 &&
              a->nb[0] == 4 && a->nb[3] == 256 && a->data == nullptr && a->op == 0;
  if (fits) {
    const Tensor* product = ggml.mul_mat(context, a, b);
    const char* name = product->op > 0 && product->op < 256 ? ggml.op_name(product->op) : nullptr;
    fits = name != nullptr && std::strcmp(name, "MUL_MAT") == 0 && product->source[0] == a &&
           product->source[1] == b && product->source[2] == nullptr;
    const Tensor* view = ggml.view_4d(context, a, 2, 2, 1, 1, 64, 128, 192, 8);
    fits = fits && view->view_of == a && view->offset_in_view == 8 && view->nb[1] == 64 &&
           view->nb[2] == 128 && view->nb[3] == 192;
    const Tensor* norm = ggml.rms_norm(context, a, k_epsilon);
    fits = fits && std::memcmp(&norm->params[0], &k_epsilon, sizeof k_epsilon) == 0;
    fits = fits && std::strcmp(ggml.type_name(k_bytes_type), "i8") == 0;
    ggml.set_input(b);
    fits = fits && (b->flags & 1) != 0 && (a->flags & 1) == 0;
  }
  ggml.free(context);
  return fits;
}

struct Kernels {
  void* library = nullptr;
  std::string name;
};

// Opens the library of CPU kernels that fits this CPU best. Libraries for levels of the instruction
// set have a score; a single one may have none.
Result<Kernels> best_kernels(const std::string& folder) {
  Kernels best;
  int best_score = -1;
  std::string last_error = "there is none";
  for (const std::string& name : libraries_in(folder, "libggml-cpu")) {
    void* library = dlopen((folder + "/" + name).c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      last_error = link_error();
      continue;
    }
    auto* get_score = find<int()>(library, "ggml_backend_score");
    const int score = get_score == nullptr ? 0 : get_score();
    if ((get_score == nullptr || score > 0) && score > best_score) {
      best_score = score;
      best = {library, name};
    }
  }
  if (best.library == nullptr) {
    return left_out_error("no libggml-cpu*.so in {} runs on this CPU ({})", folder, last_error);
  }
  return best;
}

// Returns the library's registry of devices, by ggml_backend_init or by the older function of that
// name.
Registry* open_registry(const Kernels& kernels, const char* older_name) {
  auto* init = find<Registry*()>(kernels.library, "ggml_backend_init");
  if (init == nullptr) init = find<Registry*()>(kernels.library, older_name);
  return init == nullptr ? nullptr : init();
}

// Opens ggml's CPU backend with so many threads, and lists its further kinds of buffers.
Result<void> open_cpu(const Kernels& kernels, int threads, Engine& engine) {
  engine.library = kernels.name;
  Registry* registry = open_registry(kernels, "ggml_backend_cpu_reg");
  engine.device = registry == nullptr ? nullptr : engine.backend_reg_dev_get(registry, 0);
  engine.backend =
      engine.device == nullptr ? nullptr : engine.backend_dev_init(engine.device, nullptr);
  if (engine.backend == nullptr) {
    return left_out_error("{} has no CPU backend that can be made", kernels.name);
  }
  const auto set_threads = reinterpret_cast<void (*)(Backend*, int)>(
      engine.backend_reg_get_proc_address(registry, "ggml_backend_set_n_threads"));
  if (set_threads == nullptr)
    return left_out_error("{} does not take a number of threads", kernels.name);
  set_threads(engine.backend, threads);
  const auto get_extra = reinterpret_cast<BufferType** (*)(Device*)>(
      engine.backend_reg_get_proc_address(registry, "ggml_backend_dev_get_extra_bufts"));
  BufferType** extra = get_extra == nullptr ? nullptr : get_extra(engine.device);
  for (; extra != nullptr && *extra != nullptr; ++extra) engine.extra.push_back(*extra);
  return {};
}

// Opens ggml's Vulkan backend on the device that ggml calls `on`, such as "Vulkan0".
Result<void> open_vulkan(const std::string& folder, const std::string& on, Engine& engine) {
  const std::vector<std::string> names = libraries_in(folder, "libggml-vulkan.so");
  if (names.empty()) return left_out_error("no libggml-vulkan.so in {}", folder);
  const Kernels kernels{dlopen((folder + "/" + names.front()).c_str(), RTLD_NOW | RTLD_LOCAL),
                        names.front()};
  if (kernels.library == nullptr) return left_out_error("{}: {}", kernels.name, link_error());
  engine.library = kernels.name;
  Registry* registry = open_registry(kernels, "ggml_backend_vk_reg");
  const std::size_t devices = registry == nullptr ? 0 : engine.backend_reg_dev_count(registry);
  std::string available;
  for (std::size_t i = 0; i < devices && engine.device == nullptr; ++i) {
    Device* device = engine.backend_reg_dev_get(registry, i);
    const char* name = device == nullptr ? nullptr : engine.backend_dev_name(device);
    if (name == nullptr) continue;
    text::append_item(available, ", ", name);
    if (on == name) engine.device = device;
  }
  if (engine.device == nullptr) {
    return left_out_error(
        "{} sees no {} (there is {}); ggml leaves Vulkan devices that are CPUs out unless "
        "GGML_VK_VISIBLE_DEVICES=0 is set",
        kernels.name, on, available.empty() ? "none" : available);
  }
  if (const char* description = engine.backend_dev_description(engine.device)) {
    engine.device_name = description;
  }
  engine.memory = engine.backend_dev_buffer_type(engine.device);
  if (engine.memory == nullptr) return left_out_error("{} cannot be used by {}", on, kernels.name);
  return {};
}

// Opens libggml-base and the library of kernels in the same folder; they stay open. `on` is "CPU",
// or ggml's name of a Vulkan device ("Vulkan0"). Fails with Code::unavailable and the part that is
// missing.
Result<Engine> open_engine(const std::string& folder, const std::string& on, int threads) {
  const std::vector<std::string> bases = libraries_in(folder, "libggml-base.so");
  if (bases.empty()) {
    return left_out_error(
        "no libggml-base.so in {}\n"
        "  --engine DIR names the folder that holds the engine's libraries; an engine that "
        "has ggml built in cannot be replayed",
        folder);
  }
  // RTLD_GLOBAL: the libraries of kernels use its functions.
  void* base = dlopen((folder + "/" + bases.front()).c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (base == nullptr) return left_out_error("{}: {}", bases.front(), link_error());
  Engine engine;
  WEIR_CHECK(find_functions(base, engine));
  if (!layout_fits(engine)) {
    return left_out_error(
        "tensors of this ggml (version {}) do not look as weir knows them: nothing was "
        "computed",
        engine.version.empty() ? "unknown" : engine.version);
  }
  if (on != "CPU") {
    WEIR_CHECK(open_vulkan(folder, on, engine));
    return engine;
  }
  WEIR_TRY(const Kernels kernels, best_kernels(folder));
  WEIR_CHECK(open_cpu(kernels, threads, engine));
  return engine;
}

// Opens the ggml in the engine's folder. Fails if it is not of the recorded version, unless any
// will do.
Result<OpenedDevice> open(const ProgramOptions& options, const profile::Replay& recording) {
  if (options.engine.empty() || options.on.empty()) {
    return fail(Code::usage, "weir-replay-ggml is started by weir replay");
  }
  WEIR_TRY(const Engine engine, open_engine(options.engine, options.on, options.threads));
  if (!options.any_version && !recording.version.empty() && engine.version != recording.version) {
    return left_out_error(
        "recorded with ggml {}, and {} holds {}: what ops are told may differ\n"
        "  --any-version replays it all the same; recording it anew is surer",
        recording.version, options.engine,
        engine.version.empty() ? "one that does not say its version" : engine.version);
  }
  OpenedDevice opened;
  opened.identity = {{"version", text::printable(engine.version)},
                     {"commit", text::printable(engine.commit)},
                     {"library", text::printable(engine.library)},
                     {"device", text::printable(engine.device_name)},
                     {"cache_bytes", options.limits.cache_bytes}};
  opened.waits_for_device = engine.memory != nullptr;
  const auto shared_engine = std::make_shared<const Engine>(engine);
  opened.make = [shared_engine](const profile::ReplayNode& node, const ReplayLimits& limits) {
    return rebuild_node(*shared_engine, node, limits);
  };
  return opened;
}

}  // namespace
}  // namespace weir::replay

int main(int argc, char** argv) {
  return weir::replay::run_program(argc, argv, weir::replay::open);
}
