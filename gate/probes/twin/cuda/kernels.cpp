// Functions of the program: which code the GPU takes for each, and what it needs of a
// multiprocessor.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gate/probes/inject/cuda/table.h"
#include "gate/probes/inject/writer/system.h"
#include "gate/probes/twin/cuda/cuda.h"

namespace weir_probe::cuda_twin {
namespace {

Table g_functions;  // host address, and the record's own -> Function

// --- images. A fat binary holds the same code for several GPUs: each entry is machine code for one
// (ELF) or PTX, which the driver compiles for it and for newer ones. Written down nowhere in
// public; read from binaries of nvcc 12.4 to 13.1.
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
  int arch;  // of the image taken; 0: none fits
  bool machine_code;
};

// Machine code of the same major and at most this minor version, the highest; else the highest PTX
// that is not above.
Module image_for(const FatHeader* fat, int major, int minor) {
  Module best{};
  const int here = 10 * major + minor;
  const auto* at = reinterpret_cast<const char*>(fat) + fat->header_bytes;
  const char* const end = at + fat->bytes;
  while (at + sizeof(FatEntry) <= end) {
    const auto* entry = reinterpret_cast<const FatEntry*>(at);
    const int arch = static_cast<int>(entry->arch);
    const bool code = entry->kind == k_machine_code;
    const bool fits =
        code ? arch / 10 == major && arch <= here : entry->kind == k_ptx && arch <= here;
    const bool better = code != best.machine_code ? code : arch > best.arch;
    if (fits && (best.arch == 0 || better)) best = {arch, code};
    if (entry->header_bytes == 0) break;
    at += entry->header_bytes + entry->bytes;
  }
  return best;
}

// --- launches between <<< and the call that they become
struct Configuration {
  Size3 grid, block;
  size_t shared;
  void* stream;
};
constexpr int k_deepest = 16;
__thread Configuration t_pushed[k_deepest];
__thread int t_depth;

int up_to(int value, int step) { return (value + step - 1) / step * step; }
int least(int a, int b) { return a < b ? a : b; }

// Are its facts those of the code that this GPU runs? Bounds of another GPU's hold for that alone:
// llama.cpp compiles its attention for other blocks on each generation.
bool is_known(const weir_cuda_kernel* facts) {
  return facts != nullptr && (facts->flags & WEIR_CUDA_KERNEL_GUESSED) == 0;
}

int most_threads(const Function& function) {
  const int of_device = attribute(k_max_threads_per_block);
  const weir_cuda_kernel* facts = function.facts;
  return !is_known(facts) || facts->max_threads == 0
             ? of_device
             : least(of_device, static_cast<int>(facts->max_threads));
}

// llama-bench ends by "CUDA error" alone.
int no_image() {
  static bool told = false;  // atomic
  if (!__atomic_exchange_n(&told, true, __ATOMIC_RELAXED)) {
    print_line(
        STDERR_FILENO,
        "weir: the CUDA twin has compute capability %d.%d: no kernel image is available, the "
        "engine has no code for it\n",
        attribute(k_major), attribute(k_minor));
  }
  return k_no_image;
}

// What a block of `threads` may not exceed; an error, or none.
int refused(const Function& function, Size3 grid, Size3 block, size_t shared) {
  if (function.arch == 0) return no_image();
  const uint64_t threads = uint64_t{block.x} * block.y * block.z;
  const uint64_t most_blocks[3] = {static_cast<uint64_t>(attribute(k_max_grid_x)), 65535, 65535};
  if (threads == 0 || threads > static_cast<uint64_t>(attribute(k_max_threads_per_block)) ||
      grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.x > most_blocks[0] ||
      grid.y > most_blocks[1] || grid.z > most_blocks[2]) {
    return k_invalid_configuration;
  }
  const weir_cuda_kernel* facts = function.facts;
  const int allowed = __atomic_load_n(&function.dynamic_shared, __ATOMIC_RELAXED);
  const size_t fixed = facts == nullptr ? 0 : facts->shared_bytes;
  const auto usual = static_cast<size_t>(attribute(k_shared_per_block));
  if (shared + fixed > usual && shared > static_cast<size_t>(allowed)) return k_invalid_value;
  if (!is_known(facts)) return k_ok;
  const auto registers = static_cast<uint64_t>(attribute(k_registers_per_block));
  if (threads * facts->registers > registers ||
      (facts->max_threads != 0 && threads > facts->max_threads)) {
    return k_out_of_resources;
  }
  return k_ok;
}

int launch(const void* which, Size3 grid, Size3 block, size_t shared, void* stream) {
  if (twin() == nullptr) return fail(k_no_device);
  const Function* function = function_of(which);
  if (function == nullptr) return fail(k_invalid_function);
  if (const int error = refused(*function, grid, block, shared)) return fail(error);
  int error = k_ok;
  runs_now(stream, streams::k_kernel_node, &error, which);
  return error == k_ok ? error : fail(error);
}

}  // namespace

Function* function_of(const void* which) {
  return g_functions.get<Function>(reinterpret_cast<uint64_t>(which));
}

// NVIDIA's occupancy calculator: registers are given to warps in units of 256, warps to the parts
// of a multiprocessor, shared memory in units of 128 bytes (256 before compute capability 8.0) with
// what the system takes of each block (1 KiB since then). 0: a block of that size fits nowhere.
int blocks_that_fit(const Function& function, int threads, size_t dynamic_shared) {
  constexpr int k_guess = 64, k_warp = 32, k_unit = 256;
  const int major = attribute(k_major);
  const int parts = major == 6 && attribute(k_minor) == 0 ? 2 : 4;
  const int64_t shared_unit = major < 8 ? 256 : 128;
  const weir_cuda_kernel* facts = function.facts;
  const int registers = facts == nullptr ? k_guess : static_cast<int>(facts->registers);
  const int warps = up_to(threads, k_warp) / k_warp;
  const int64_t fixed = facts == nullptr ? 0 : facts->shared_bytes;
  if (warps <= 0 || threads > most_threads(function) ||
      dynamic_shared > static_cast<size_t>(attribute(k_shared_per_block_optin)) ||
      (is_known(facts) &&
       static_cast<int64_t>(dynamic_shared) + fixed > attribute(k_shared_per_block_optin))) {
    return 0;
  }
  int blocks =
      least(attribute(k_blocks_per_processor), attribute(k_threads_per_processor) / k_warp / warps);
  if (registers > 0) {
    const int each = up_to(registers * k_warp, k_unit);
    const int held = attribute(k_registers_per_processor) / each / parts * parts;
    blocks = least(blocks, held / warps);
  }
  const int64_t shared =
      static_cast<int64_t>(dynamic_shared) + fixed + attribute(k_reserved_shared);
  if (shared > 0) {
    const int64_t each = (shared + shared_unit - 1) / shared_unit * shared_unit;
    blocks = least(blocks, static_cast<int>(attribute(k_shared_per_processor) / each));
  }
  return blocks;
}

WEIR_RUNTIME(__cudaRegisterFatBinaryEnd, (void**)) { return k_ok; }
WEIR_RUNTIME(__cudaUnregisterFatBinary, (void** handle)) {
  free(handle);
  return k_ok;
}

WEIR_RUNTIME_OF(void**, __cudaRegisterFatBinary, (const FatWrapper* wrapper)) {
  auto* module = static_cast<Module*>(calloc(1, sizeof(Module)));
  if (module == nullptr || wrapper == nullptr || wrapper->magic != k_wrapper_magic ||
      wrapper->data == nullptr || wrapper->data->magic != k_fat_magic) {
    complain("cuda twin", "a fat binary that it cannot read", "", 0);
  } else if (twin() != nullptr) {
    *module = image_for(wrapper->data, attribute(k_major), attribute(k_minor));
  }
  return reinterpret_cast<void**>(module);
}
WEIR_RUNTIME_OF(void, __cudaRegisterFunction,
                (void** handle, const char* host, char*, const char* name, int, void*, void*, void*,
                 void*, int*)) {
  const auto* module = reinterpret_cast<const Module*>(handle);
  auto* function = static_cast<Function*>(calloc(1, sizeof(Function)));
  if (module == nullptr || function == nullptr) return;
  const weir_cuda_kernel* facts = module->arch == 0 ? nullptr : kernel_facts(name);
  *function = {facts, module->arch, module->machine_code, 0};
  g_functions.insert(reinterpret_cast<uint64_t>(host), function);
  g_functions.insert(reinterpret_cast<uint64_t>(function), function);
}
WEIR_RUNTIME_OF(void, __cudaRegisterVar,
                (void**, char*, char*, const char*, int, size_t, int, int)) {}
WEIR_RUNTIME_OF(unsigned, __cudaPushCallConfiguration,
                (Size3 grid, Size3 block, size_t shared, void* stream)) {
  if (t_depth == k_deepest) return 1;
  t_pushed[t_depth++] = {grid, block, shared, stream};
  return 0;
}
WEIR_RUNTIME(__cudaPopCallConfiguration,
             (Size3 * grid, Size3* block, size_t* shared, void** stream)) {
  if (t_depth == 0) return fail(k_invalid_configuration);
  const Configuration& top = t_pushed[--t_depth];
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
  *out = function_of(host);
  return ok_or(*out != nullptr, k_invalid_function);
}
WEIR_RUNTIME(cudaLaunchKernelExC, (const LaunchConfig* config, const void* f, void**)) {
  return launch(f, config->grid, config->block, config->shared, config->stream);
}

WEIR_RUNTIME(cudaFuncGetAttributes, (FunctionAttributes * out, const void* which)) {
  const Function* function = function_of(which);
  if (function == nullptr) return fail(k_invalid_function);
  if (function->arch == 0) return fail(no_image());
  memset(out, 0, sizeof *out);
  const weir_cuda_kernel* facts = function->facts;
  constexpr int k_guess = 64;
  out->shared_bytes = facts == nullptr ? 0 : facts->shared_bytes;
  out->local_bytes = facts == nullptr ? 0 : facts->local_bytes;
  out->registers = facts == nullptr ? k_guess : static_cast<int>(facts->registers);
  out->max_threads = most_threads(*function);
  out->ptx_version = function->arch;
  out->binary_version =
      function->machine_code ? function->arch : 10 * attribute(k_major) + attribute(k_minor);
  const int allowed = __atomic_load_n(&function->dynamic_shared, __ATOMIC_RELAXED);
  out->max_dynamic_shared =
      allowed != 0 ? allowed : attribute(k_shared_per_block) - static_cast<int>(out->shared_bytes);
  out->preferred_carveout = -1;
  return k_ok;
}
WEIR_RUNTIME(cudaFuncSetAttribute, (const void* which, int what, int value)) {
  constexpr int k_max_dynamic_shared = 8;
  Function* function = function_of(which);
  if (function == nullptr) return fail(k_invalid_function);
  if (function->arch == 0) return fail(no_image());
  if (what != k_max_dynamic_shared) return k_ok;
  const int fixed =
      function->facts == nullptr ? 0 : static_cast<int>(function->facts->shared_bytes);
  if (value < 0 || value + fixed > attribute(k_shared_per_block_optin)) {
    return fail(k_invalid_value);
  }
  __atomic_store_n(&function->dynamic_shared, value, __ATOMIC_RELAXED);
  return k_ok;
}
WEIR_RUNTIME(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
             (int* blocks, const void* which, int threads, size_t shared, unsigned)) {
  const Function* function = function_of(which);
  if (function == nullptr) return fail(k_invalid_function);
  if (function->arch == 0) return fail(no_image());
  *blocks = blocks_that_fit(*function, threads, shared);
  return k_ok;
}
WEIR_RUNTIME(cudaOccupancyMaxActiveBlocksPerMultiprocessor,
             (int* blocks, const void* which, int threads, size_t shared)) {
  const Function* function = function_of(which);
  if (function == nullptr) return fail(k_invalid_function);
  *blocks = blocks_that_fit(*function, threads, shared);
  return k_ok;
}

}  // namespace weir_probe::cuda_twin
