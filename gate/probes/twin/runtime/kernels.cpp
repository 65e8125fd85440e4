// The program's kernels: the code that the GPU loads for each, its resources, and launches.
#include <stdlib.h>
#include <string.h>

#include "gate/probes/inject/streams/kernel_facts.h"
#include "gate/probes/twin/runtime/runtime.h"

namespace weir_probe::runtime_twin {
namespace {

Table g_functions;  // Function by host address, and by the record's own address

// --- Configurations of launches, pushed by <<<>>> and popped by the kernel's stub.
struct Configuration {
  Size3 grid, block;
  size_t shared;
  void* stream;
};
constexpr int k_deepest = 16;
__thread Configuration t_pushed[k_deepest];
__thread int t_depth;

}  // namespace

bool is_exact(const weir_runtime_kernel* facts) {
  return facts != nullptr && (facts->flags & WEIR_RUNTIME_KERNEL_NOT_COMPILED) == 0;
}

// The most threads that a block of the function may have.
int max_block_threads(const Function& function) {
  const int device_limit = attribute(k_max_threads_per_block);
  const weir_runtime_kernel* facts = function.facts;
  if (!is_exact(facts) || facts->max_threads == 0) return device_limit;
  const auto own_limit = static_cast<int>(facts->max_threads);
  return own_limit < device_limit ? own_limit : device_limit;
}

// Returns the error for a function without code for this GPU. Prints the reason once, since
// llama-bench prints only that there was an error.
int report_no_image() {
  static bool reported = false;  // atomic
  if (!__atomic_exchange_n(&reported, true, __ATOMIC_RELAXED)) print_no_image();
  return k_no_image;
}

void add_function(const void* host_or_handle, Function* function) {
  g_functions.insert(address_key(host_or_handle), function);
}
Function* find_function(const void* host_or_handle) {
  return g_functions.get<Function>(reinterpret_cast<uint64_t>(host_or_handle));
}

// Checks a launch, and adds it to the stream's capture if there is one.
int launch(const void* kernel, Size3 grid, Size3 block, size_t shared, void* stream) {
  if (twin() == nullptr) return fail(k_no_device);
  const Function* function = find_function(kernel);
  if (function == nullptr) return fail(k_invalid_function);
  if (const int error = check_launch(*function, grid, block, shared)) return fail(error);
  int error = k_ok;
  if (runs_now(stream, k_kernel_node, &error, kernel)) note_kernel(stream, function->name);
  return error == k_ok ? error : fail(error);
}

// Finds a function that has code for this GPU; fails otherwise.
int find_loaded_function(const void* kernel, Function** out) {
  *out = find_function(kernel);
  if (*out == nullptr) return fail(k_invalid_function);
  return (*out)->module.arch == 0 ? fail(report_no_image()) : int{k_ok};
}

WEIR_REGISTERED(int, RegisterFatBinaryEnd, (void**)) { return k_ok; }
WEIR_REGISTERED(int, UnregisterFatBinary, (void** handle)) {
  free(handle);
  return k_ok;
}

// Returns a Module as the handle; one without an image where no code fits the GPU.
WEIR_REGISTERED(void**, RegisterFatBinary, (const void* wrapper)) {
  auto* module = static_cast<Module*>(calloc(1, sizeof(Module)));
  if (module != nullptr && twin() != nullptr) *module = choose_image(wrapper);
  return reinterpret_cast<void**>(module);
}
WEIR_REGISTERED(void, RegisterFunction,
                (void** handle, const char* host, char*, const char* name, int, void*, void*, void*,
                 void*, int*)) {
  const auto* module = reinterpret_cast<const Module*>(handle);
  auto* function = static_cast<Function*>(calloc(1, sizeof(Function)));
  if (module == nullptr || function == nullptr) return;
  const weir_runtime_kernel* facts =
      module->arch == 0 ? nullptr : kernel_facts(name, module->container);
  *function = {name, facts, *module, 0};
  add_function(host, function);
  add_function(function, function);
}
WEIR_REGISTERED(void, RegisterVar, (void**, char*, char*, const char*, int, size_t, int, int)) {}
WEIR_REGISTERED(unsigned, PushCallConfiguration,
                (Size3 grid, Size3 block, size_t shared, void* stream)) {
  if (t_depth == k_deepest) return 1;
  t_pushed[t_depth] = {grid, block, shared, stream};
  ++t_depth;
  return 0;
}
WEIR_REGISTERED(int, PopCallConfiguration,
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

WEIR_RUNTIME(LaunchKernel,
             (const void* f, Size3 grid, Size3 block, void**, size_t shared, void* stream)) {
  return launch(f, grid, block, shared, stream);
}
WEIR_RUNTIME(LaunchCooperativeKernel,
             (const void* f, Size3 grid, Size3 block, void**, size_t shared, void* stream)) {
  return launch(f, grid, block, shared, stream);
}
WEIR_REGISTERED(int, LaunchKernel,
                (const void* f, Size3 grid, Size3 block, void**, size_t shared, void* stream)) {
  return launch(f, grid, block, shared, stream);
}
WEIR_REGISTERED(int, GetKernel, (void** out, const void* host)) {
  *out = find_function(host);
  return success_if(*out != nullptr, k_invalid_function);
}
WEIR_RUNTIME(LaunchKernelExC, (const LaunchConfig* config, const void* f, void**)) {
  return launch(f, config->grid, config->block, config->shared, config->stream);
}

// Returns the resources of a function. One without facts gets a guess of its registers.
WEIR_RUNTIME(FuncGetAttributes, (FunctionAttributes * out, const void* kernel)) {
  Function* function = nullptr;
  if (const int error = find_loaded_function(kernel, &function)) return error;
  memset(out, 0, sizeof *out);
  const weir_runtime_kernel* facts = function->facts;
  const Module& module = function->module;
  out->shared_bytes = facts == nullptr ? 0 : facts->shared_bytes;
  out->local_bytes = facts == nullptr ? 0 : facts->local_bytes;
  out->registers = facts == nullptr ? k_guessed_registers : static_cast<int>(facts->registers);
  out->max_threads = max_block_threads(*function);
  out->ptx_version = module.arch;
  out->binary_version =
      module.machine_code ? module.arch : 10 * attribute(k_major) + attribute(k_minor);
  const int allowed = __atomic_load_n(&function->dynamic_shared, __ATOMIC_RELAXED);
  out->max_dynamic_shared =
      allowed != 0 ? allowed : attribute(k_shared_per_block) - static_cast<int>(out->shared_bytes);
  out->preferred_carveout = -1;
  return k_ok;
}
// Sets a kernel's limit of dynamic shared memory, and returns the API's error code. Other
// attributes have no effect.
int set_function_attribute(const void* kernel, int number, int value) {
  constexpr int k_max_dynamic_shared = 8;
  Function* function = nullptr;
  if (const int error = find_loaded_function(kernel, &function)) return error;
  if (number != k_max_dynamic_shared) return k_ok;
  const int static_shared =
      function->facts == nullptr ? 0 : static_cast<int>(function->facts->shared_bytes);
  if (value < 0 || value + static_shared > attribute(k_shared_per_block_optin)) {
    return fail(k_invalid_value);
  }
  __atomic_store_n(&function->dynamic_shared, value, __ATOMIC_RELAXED);
  return k_ok;
}
WEIR_RUNTIME(FuncSetAttribute, (const void* kernel, int number, int value)) {
  return set_function_attribute(kernel, number, value);
}
WEIR_RUNTIME(OccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
             (int* blocks, const void* kernel, int threads, size_t shared, unsigned)) {
  Function* function = nullptr;
  if (const int error = find_loaded_function(kernel, &function)) return error;
  *blocks = resident_blocks(*function, threads, shared);
  return k_ok;
}
WEIR_RUNTIME(OccupancyMaxActiveBlocksPerMultiprocessor,
             (int* blocks, const void* kernel, int threads, size_t shared)) {
  const Function* function = find_function(kernel);
  if (function == nullptr) return fail(k_invalid_function);
  *blocks = resident_blocks(*function, threads, shared);
  return k_ok;
}

}  // namespace weir_probe::runtime_twin
