// Looks up facts that weir read from a program's machine code before starting it
// (gate/probes/twin/runtime/blob.h). The twin answers by them; the probe uses them to distinguish
// kernels of one name.
#pragma once

#include "gate/probes/twin/runtime/blob.h"

namespace weir_probe {

// Returns the facts of a kernel; null if it is unknown or there is no table. `container` is that of
// kernel_key().
const weir_runtime_kernel* kernel_facts(const char* symbol, uint64_t container = 0);

}  // namespace weir_probe
