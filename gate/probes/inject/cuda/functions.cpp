// Looks up the program's kernel functions: their names, their code and its costs.
#include <stdlib.h>

#include "gate/probes/inject/cuda/cuda.h"
#include "gate/probes/inject/streams/kernel_facts.h"

namespace weir_probe {
namespace cuda {
namespace {

Table g_facts;  // function -> weir_runtime_kernel

}  // namespace

void name_function(const void* function, const char* name) {
  streams::name_function(function, name);
  g_facts.remove(key_of(function));
  if (const weir_runtime_kernel* facts = kernel_facts(name)) {
    g_facts.insert(key_of(function), const_cast<weir_runtime_kernel*>(facts));
  }
}
void copy_function_name(const void* function, const void* original) {
  streams::forget_function(function);
  void* name = streams::g.names.find(key_of(original));
  if (name != nullptr) streams::g.names.insert(key_of(function), name);
  void* facts = g_facts.find(key_of(original));
  if (facts != nullptr) g_facts.insert(key_of(function), facts);
}

}  // namespace cuda

namespace streams {

using namespace cuda;

const char k_probe_name[] = "cuda";

const char* kernel_name(const Launch& launch, void*) {
  const void* name = g.names.find(key_of(launch.function));
  return name != nullptr ? static_cast<const char*>(name) : launch.name;
}

// A plain launch has the hash of the machine code alone.
uint64_t code_hash(const Launch& launch) {
  const auto* facts = g_facts.get<weir_runtime_kernel>(key_of(launch.function));
  if (facts == nullptr) return 0;
  if (launch.attributes == 0) return facts->code;
  return hash_bytes(facts->code, &launch.attributes, sizeof launch.attributes);
}

// Asks the runtime for a kernel's resources and its occupancy at this launch. A twin's runtime
// answers from the machine code (gate/probes/twin/cuda); without that, costs are only guessed.
void measure_costs(const Launch& launch, weir_probe_code* out) {
  const auto* facts = g_facts.get<weir_runtime_kernel>(key_of(launch.function));
  out->flags = WEIR_CODE_EXAMINED;
  const bool compiled = facts != nullptr && (facts->flags & WEIR_RUNTIME_KERNEL_NOT_COMPILED) == 0;
  if (!compiled && getenv(WEIR_RUNTIME_TWIN_VARIABLE) != nullptr) {
    out->flags |= WEIR_CODE_NOT_COMPILED;
    return;
  }
  const uint64_t* local = launch.sizes.local;
  const uint64_t threads = local[0] * local[1] * local[2];
  FunctionAttributes attributes{};
  int blocks = 0;
  const bool succeeded = succeeds(cuda_functions().cudaFuncGetAttributes,
                                  static_cast<void*>(&attributes), launch.function) &&
                         succeeds(cuda_functions().cudaOccupancyMaxActiveBlocksPerMultiprocessor,
                                  &blocks, launch.function, static_cast<int>(threads),
                                  static_cast<size_t>(launch.sizes.shared));
  // Clears the error, so that the program finds only its own.
  if (!succeeded) succeeds(cuda_functions().cudaGetLastError);
  constexpr uint64_t k_warp = 32;
  out->costs = {
      static_cast<uint32_t>(attributes.registers),
      static_cast<uint32_t>(attributes.local_bytes),
      static_cast<uint32_t>(attributes.shared_bytes),
      compiled ? facts->code_bytes : 0,
      static_cast<uint32_t>(static_cast<uint64_t>(blocks) * ((threads + k_warp - 1) / k_warp)),
      static_cast<uint32_t>(threads),
      static_cast<uint32_t>(attributes.binary_version),
      0};
}

}  // namespace streams
}  // namespace weir_probe
