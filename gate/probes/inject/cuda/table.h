// What weir read in a program's machine code before it started it (gate/probes/twin/cuda/blob.h):
// for the twin, which answers by it, and for the probe, which tells kernels of one name apart.
#pragma once

#include "gate/probes/twin/cuda/blob.h"

namespace weir_probe::cuda {

// Null where nothing is known of the symbol, or there is no table.
const weir_cuda_kernel* kernel_facts(const char* symbol);

}  // namespace weir_probe::cuda
