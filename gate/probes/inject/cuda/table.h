// Facts that weir read from a program's machine code before starting it
// (gate/probes/twin/cuda/blob.h). The twin answers by them; the probe uses them to distinguish
// kernels of one name.
#pragma once

#include "gate/probes/twin/cuda/blob.h"

namespace weir_probe::cuda {

// Returns the facts of a kernel; null if the symbol is unknown or there is no table.
const weir_cuda_kernel* kernel_facts(const char* symbol);

}  // namespace weir_probe::cuda
