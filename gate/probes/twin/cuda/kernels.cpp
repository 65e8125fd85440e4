// The program's kernels: the code that the GPU loads for each, its resources, and launches.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gate/probes/inject/streams/kernel_facts.h"
#include "gate/probes/inject/writer/system.h"
#include "gate/probes/twin/cuda/cuda.h"

namespace weir_probe::cuda_twin {
namespace {

Table g_functions;  // Function by host address, and by the record's own address

// --- Images. A fat binary contains code for several GPUs. Each entry is machine code for one
// (ELF), or PTX, which the driver compiles for that GPU and newer ones. The format is not
// documented; this one was derived from binaries of nvcc 12.4 to 13.1.
struct FatHeader {
  uint32_t magic;
  uint16_t version, header_bytes;
  uint64_t bytes;
};
struct FatEntry {
  uint16_t kind, version;
  uint32_t header_bytes;
  uint64_t bytes;
  uint32_t compressed_bytes, unknown;
  uint16_t minor, major;
  uint32_t arch;
};
struct FatWrapper {
  uint32_t magic, version;
  const FatHeader* data;
  void* linked;
};
constexpr uint32_t k_wrapper_magic = 0x466243b1, k_fat_magic = 0xba55ed50;
enum Kind : uint16_t { k_ptx = 1, k_machine_code = 2 };

struct Module {
  int arch;  // architecture of the chosen image; 0: none fits
  bool machine_code;
};

// Chooses the image that a driver would load: the newest machine code of the same major and at most
// this minor version, else the newest PTX that is not newer than the GPU.
Module choose_image(const FatHeader* fat, int major, int minor) {
  Module best{};
  const int gpu_arch = 10 * major + minor;
  const auto* at = reinterpret_cast<const char*>(fat) + fat->header_bytes;
  const char* const end = at + fat->bytes;
  while (at + sizeof(FatEntry) <= end) {
    const auto* entry = reinterpret_cast<const FatEntry*>(at);
    const int arch = static_cast<int>(entry->arch);
    const bool is_code = entry->kind == k_machine_code;
    const bool has_usable_kind = is_code ? arch / 10 == major : entry->kind == k_ptx;
    const bool fits = has_usable_kind && arch <= gpu_arch;
    const bool is_better = is_code != best.machine_code ? is_code : arch > best.arch;
    if (fits && (best.arch == 0 || is_better)) best = {arch, is_code};
    if (entry->header_bytes == 0) break;
    at += entry->header_bytes + entry->bytes;
  }
  return best;
}

// --- Configurations of launches, pushed by <<<>>> and popped by the kernel's stub.
struct Configuration {
  Size3 grid, block;
  size_t shared;
  void* stream;
};
constexpr int k_deepest = 16;
__thread Configuration t_pushed[k_deepest];
__thread int t_depth;

int round_up(int value, int step) { return (value + step - 1) / step * step; }
int min(int a, int b) { return a < b ? a : b; }

// Returns true if the facts come from the code that this GPU runs. Limits in another GPU's code do
// not apply: llama.cpp compiles its attention for different blocks on each generation.
bool is_exact(const weir_runtime_kernel* facts) {
  return facts != nullptr && (facts->flags & WEIR_RUNTIME_KERNEL_NOT_COMPILED) == 0;
}

// The most threads that a block of the function may have.
int max_block_threads(const Function& function) {
  const int device_limit = attribute(k_max_threads_per_block);
  const weir_runtime_kernel* facts = function.facts;
  if (!is_exact(facts) || facts->max_threads == 0) return device_limit;
  return min(device_limit, static_cast<int>(facts->max_threads));
}

// Returns the error for a function without code for this GPU. Prints the reason once, since
// llama-bench prints only "CUDA error".
int report_no_image() {
  static bool reported = false;  // atomic
  if (!__atomic_exchange_n(&reported, true, __ATOMIC_RELAXED)) {
    print_line(
        STDERR_FILENO,
        "weir: the CUDA twin has compute capability %d.%d: no kernel image is available, the "
        "engine has no code for it\n",
        attribute(k_major), attribute(k_minor));
  }
  return k_no_image;
}

// Checks a launch against the limits of the GPU and the function; returns the error of a real
// driver, or k_ok. `shared`: bytes of dynamic shared memory.
int check_launch(const Function& function, Size3 grid, Size3 block, size_t shared) {
  if (function.arch == 0) return report_no_image();
  const uint64_t threads = uint64_t{block.x} * block.y * block.z;
  const uint64_t max_blocks[3] = {static_cast<uint64_t>(attribute(k_max_grid_x)), 65535, 65535};
  if (threads == 0 || threads > static_cast<uint64_t>(attribute(k_max_threads_per_block)) ||
      grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.x > max_blocks[0] ||
      grid.y > max_blocks[1] || grid.z > max_blocks[2]) {
    return k_invalid_configuration;
  }
  const weir_runtime_kernel* facts = function.facts;
  const int allowed = __atomic_load_n(&function.dynamic_shared, __ATOMIC_RELAXED);
  const size_t static_shared = facts == nullptr ? 0 : facts->shared_bytes;
  const auto default_limit = static_cast<size_t>(attribute(k_shared_per_block));
  if (shared + static_shared > default_limit && shared > static_cast<size_t>(allowed)) {
    return k_invalid_value;
  }
  if (!is_exact(facts)) return k_ok;
  const auto registers = static_cast<uint64_t>(attribute(k_registers_per_block));
  if (threads * facts->registers > registers ||
      (facts->max_threads != 0 && threads > facts->max_threads)) {
    return k_out_of_resources;
  }
  return k_ok;
}

// Checks a launch, and adds it to the stream's capture if there is one.
int launch(const void* kernel, Size3 grid, Size3 block, size_t shared, void* stream) {
  if (twin() == nullptr) return fail(k_no_device);
  const Function* function = find_function(kernel);
  if (function == nullptr) return fail(k_invalid_function);
  if (const int error = check_launch(*function, grid, block, shared)) return fail(error);
  int error = k_ok;
  runs_now(stream, streams::k_kernel_node, &error, kernel);
  return error == k_ok ? error : fail(error);
}

}  // namespace

Function* find_function(const void* host_or_handle) {
  return g_functions.get<Function>(reinterpret_cast<uint64_t>(host_or_handle));
}

// After NVIDIA's occupancy calculator. Warps get registers in units of 256 and are spread over the
// parts of a multiprocessor. Blocks get shared memory in units of 128 bytes (256 before compute
// capability 8.0), plus the system's 1 KiB since then. Returns 0 if no block of that size fits.
int resident_blocks(const Function& function, int threads, size_t dynamic_shared) {
  constexpr int k_guess = 64, k_warp = 32, k_unit = 256;
  const int major = attribute(k_major);
  const int parts = major == 6 && attribute(k_minor) == 0 ? 2 : 4;
  const int64_t shared_unit = major < 8 ? 256 : 128;
  const weir_runtime_kernel* facts = function.facts;
  const int registers = facts == nullptr ? k_guess : static_cast<int>(facts->registers);
  const int warps = round_up(threads, k_warp) / k_warp;
  const int64_t static_shared = facts == nullptr ? 0 : facts->shared_bytes;
  if (warps <= 0 || threads > max_block_threads(function) ||
      dynamic_shared > static_cast<size_t>(attribute(k_shared_per_block_optin)) ||
      (is_exact(facts) && static_cast<int64_t>(dynamic_shared) + static_shared >
                              attribute(k_shared_per_block_optin))) {
    return 0;
  }
  int blocks =
      min(attribute(k_blocks_per_processor), attribute(k_threads_per_processor) / k_warp / warps);
  if (registers > 0) {
    const int warp_registers = round_up(registers * k_warp, k_unit);
    const int resident_warps =
        attribute(k_registers_per_processor) / warp_registers / parts * parts;
    blocks = min(blocks, resident_warps / warps);
  }
  const int64_t shared =
      static_cast<int64_t>(dynamic_shared) + static_shared + attribute(k_reserved_shared);
  if (shared > 0) {
    const int64_t block_shared = (shared + shared_unit - 1) / shared_unit * shared_unit;
    blocks = min(blocks, static_cast<int>(attribute(k_shared_per_processor) / block_shared));
  }
  return blocks;
}

WEIR_RUNTIME(__cudaRegisterFatBinaryEnd, (void**)) { return k_ok; }
WEIR_RUNTIME(__cudaUnregisterFatBinary, (void** handle)) {
  free(handle);
  return k_ok;
}

// Returns a Module as the handle. A binary that cannot be read gives one without an image.
WEIR_RUNTIME_OF(void**, __cudaRegisterFatBinary, (const FatWrapper* wrapper)) {
  auto* module = static_cast<Module*>(calloc(1, sizeof(Module)));
  if (module == nullptr || wrapper == nullptr || wrapper->magic != k_wrapper_magic ||
      wrapper->data == nullptr || wrapper->data->magic != k_fat_magic) {
    report_not_counting("cuda twin", "a fat binary that it cannot read", "", 0);
  } else if (twin() != nullptr) {
    *module = choose_image(wrapper->data, attribute(k_major), attribute(k_minor));
  }
  return reinterpret_cast<void**>(module);
}
WEIR_RUNTIME_OF(void, __cudaRegisterFunction,
                (void** handle, const char* host, char*, const char* name, int, void*, void*, void*,
                 void*, int*)) {
  const auto* module = reinterpret_cast<const Module*>(handle);
  auto* function = static_cast<Function*>(calloc(1, sizeof(Function)));
  if (module == nullptr || function == nullptr) return;
  const weir_runtime_kernel* facts = module->arch == 0 ? nullptr : kernel_facts(name);
  *function = {facts, module->arch, module->machine_code, 0};
  g_functions.insert(reinterpret_cast<uint64_t>(host), function);
  g_functions.insert(reinterpret_cast<uint64_t>(function), function);
}
WEIR_RUNTIME_OF(void, __cudaRegisterVar,
                (void**, char*, char*, const char*, int, size_t, int, int)) {}
WEIR_RUNTIME_OF(unsigned, __cudaPushCallConfiguration,
                (Size3 grid, Size3 block, size_t shared, void* stream)) {
  if (t_depth == k_deepest) return 1;
  t_pushed[t_depth] = {grid, block, shared, stream};
  ++t_depth;
  return 0;
}
WEIR_RUNTIME(__cudaPopCallConfiguration,
             (Size3 * grid, Size3* block, size_t* shared, void** stream)) {
  if (t_depth == 0) return fail(k_invalid_configuration);
  --t_depth;
  const Configuration& top = t_pushed[t_depth];
  *grid = top.grid;
  *block = top.block;
  *shared = top.shared;
  *stream = top.stream;
  return k_ok;
}

WEIR_RUNTIME(cudaLaunchKernel,
             (const void* f, Size3 grid, Size3 block, void**, size_t shared, void* stream)) {
  return launch(f, grid, block, shared, stream);
}
WEIR_RUNTIME(cudaLaunchCooperativeKernel,
             (const void* f, Size3 grid, Size3 block, void**, size_t shared, void* stream)) {
  return launch(f, grid, block, shared, stream);
}
WEIR_RUNTIME(__cudaLaunchKernel,
             (const void* f, Size3 grid, Size3 block, void**, size_t shared, void* stream)) {
  return launch(f, grid, block, shared, stream);
}
WEIR_RUNTIME(__cudaGetKernel, (void** out, const void* host)) {
  *out = find_function(host);
  return success_if(*out != nullptr, k_invalid_function);
}
WEIR_RUNTIME(cudaLaunchKernelExC, (const LaunchConfig* config, const void* f, void**)) {
  return launch(f, config->grid, config->block, config->shared, config->stream);
}

// Returns the resources of a function. One without facts gets a guess of 64 registers.
WEIR_RUNTIME(cudaFuncGetAttributes, (FunctionAttributes * out, const void* kernel)) {
  const Function* function = find_function(kernel);
  if (function == nullptr) return fail(k_invalid_function);
  if (function->arch == 0) return fail(report_no_image());
  memset(out, 0, sizeof *out);
  const weir_runtime_kernel* facts = function->facts;
  constexpr int k_guess = 64;
  out->shared_bytes = facts == nullptr ? 0 : facts->shared_bytes;
  out->local_bytes = facts == nullptr ? 0 : facts->local_bytes;
  out->registers = facts == nullptr ? k_guess : static_cast<int>(facts->registers);
  out->max_threads = max_block_threads(*function);
  out->ptx_version = function->arch;
  out->binary_version =
      function->machine_code ? function->arch : 10 * attribute(k_major) + attribute(k_minor);
  const int allowed = __atomic_load_n(&function->dynamic_shared, __ATOMIC_RELAXED);
  out->max_dynamic_shared =
      allowed != 0 ? allowed : attribute(k_shared_per_block) - static_cast<int>(out->shared_bytes);
  out->preferred_carveout = -1;
  return k_ok;
}
// Sets the limit of dynamic shared memory; other attributes have no effect.
WEIR_RUNTIME(cudaFuncSetAttribute, (const void* kernel, int number, int value)) {
  constexpr int k_max_dynamic_shared = 8;
  Function* function = find_function(kernel);
  if (function == nullptr) return fail(k_invalid_function);
  if (function->arch == 0) return fail(report_no_image());
  if (number != k_max_dynamic_shared) return k_ok;
  const int static_shared =
      function->facts == nullptr ? 0 : static_cast<int>(function->facts->shared_bytes);
  if (value < 0 || value + static_shared > attribute(k_shared_per_block_optin)) {
    return fail(k_invalid_value);
  }
  __atomic_store_n(&function->dynamic_shared, value, __ATOMIC_RELAXED);
  return k_ok;
}
WEIR_RUNTIME(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
             (int* blocks, const void* kernel, int threads, size_t shared, unsigned)) {
  const Function* function = find_function(kernel);
  if (function == nullptr) return fail(k_invalid_function);
  if (function->arch == 0) return fail(report_no_image());
  *blocks = resident_blocks(*function, threads, shared);
  return k_ok;
}
WEIR_RUNTIME(cudaOccupancyMaxActiveBlocksPerMultiprocessor,
             (int* blocks, const void* kernel, int threads, size_t shared)) {
  const Function* function = find_function(kernel);
  if (function == nullptr) return fail(k_invalid_function);
  *blocks = resident_blocks(*function, threads, shared);
  return k_ok;
}

}  // namespace weir_probe::cuda_twin
