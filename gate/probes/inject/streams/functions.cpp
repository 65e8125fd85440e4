// Looks up the program's kernel functions: their names, their code and its costs.
#include <stdlib.h>
#include <string.h>

#include "gate/probes/inject/streams/kernel_facts.h"
#include "gate/probes/inject/streams/streams.h"

namespace weir_probe::streams {
namespace {

Table g_names;  // function -> char*
Table g_facts;  // function -> weir_runtime_kernel

}  // namespace

void name_function(const void* function, const char* name, uint64_t container) {
  // The address may have been that of another function, in a library that was unloaded. Its name is
  // not freed: another thread may be reading it.
  forget_kernels(function);
  if (char* copy = strdup(name)) g_names.insert(address_key(function), copy);
  g_facts.remove(address_key(function));
  if (const weir_runtime_kernel* facts = kernel_facts(name, container)) {
    g_facts.insert(address_key(function), const_cast<weir_runtime_kernel*>(facts));
  }
}
void copy_function_name(const void* function, const void* original) {
  forget_kernels(function);
  void* name = g_names.find(address_key(original));
  if (name != nullptr) g_names.insert(address_key(function), name);
  void* facts = g_facts.find(address_key(original));
  if (facts != nullptr) g_facts.insert(address_key(function), facts);
}

const char* kernel_name(const Launch& launch) {
  const void* name = g_names.find(address_key(launch.function));
  return name != nullptr ? static_cast<const char*>(name) : launch.name;
}

// A plain launch has the hash of the machine code alone.
uint64_t code_hash(const Launch& launch) {
  const auto* facts = g_facts.get<weir_runtime_kernel>(address_key(launch.function));
  if (facts == nullptr) return 0;
  if (launch.attributes == 0) return facts->code;
  return hash_bytes(facts->code, &launch.attributes, sizeof launch.attributes);
}

// Asks the runtime what a kernel costs at this launch: registers, memory, occupancy. The runtime
// of a twin (a simulated GPU, gate/probes/twin) answers from machine code; without any, costs are
// marked as not compiled.
void measure_costs(const Launch& launch, weir_probe_code* out) {
  const auto* facts = g_facts.get<weir_runtime_kernel>(address_key(launch.function));
  out->flags = WEIR_CODE_EXAMINED;
  const bool compiled = facts != nullptr && (facts->flags & WEIR_RUNTIME_KERNEL_NOT_COMPILED) == 0;
  if (!compiled && getenv(WEIR_RUNTIME_TWIN_VARIABLE) != nullptr) {
    out->flags |= WEIR_CODE_NOT_COMPILED;
    return;
  }
  const uint64_t* group_size = launch.sizes.local;
  const uint64_t threads = group_size[0] * group_size[1] * group_size[2];
  int blocks = 0;
  const bool succeeded =
      read_costs(launch.function, &out->costs) &&
      succeeds(runtime().occupancy, &blocks, launch.function, static_cast<int>(threads),
               static_cast<size_t>(launch.sizes.shared));
  // Clears the error, so that the program finds only its own.
  if (!succeeded) succeeds(runtime().last_error);
  constexpr uint64_t k_warp = 32;
  out->costs.occupancy =
      static_cast<uint32_t>(static_cast<uint64_t>(blocks) * ((threads + k_warp - 1) / k_warp));
  out->costs.group_threads = static_cast<uint32_t>(threads);
  if (!compiled) return;
  out->costs.code_bytes = facts->code_bytes;
  if (!k_api.tells_spills) return;
  out->costs.spilled_registers = facts->spilled_registers;
  out->flags |= WEIR_CODE_SPILLS_KNOWN;
}

}  // namespace weir_probe::streams
