// What weir read in a program's machine code before it started it (gate/probes/twin/cuda/blob.h):
// for the twin, which answers by it, and for the probe, which tells kernels of one name apart.
#pragma once

#include <stddef.h>

#include "gate/probes/twin/cuda/blob.h"

namespace weir_probe::cuda {

// A whole file, mapped to read; null where it cannot be. `*bytes`: its size.
const void* map_file(const char* path, size_t* bytes);

// Null where nothing is known of the symbol, or there is no table.
const weir_cuda_kernel* kernel_facts(const char* symbol);

}  // namespace weir_probe::cuda
