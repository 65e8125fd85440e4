// What objects.cpp and queues.cpp share.
#pragma once

#include <stdlib.h>

#include "gate/probes/inject/opencl/state.h"

namespace weir_probe::opencl {

// Under g.lock. Makes the files before the first count, also in a child.
void make_ready();

// Null when memory is out.
Device* device_of(cl_device_id handle);

// Under g.lock. The record of `handle`, zeroed if it is new; null when memory is out.
template <class Record>
Record* record_of(Table* table, uint64_t handle) {
  if (void* known = table->find(handle)) return static_cast<Record*>(known);
  auto* record = static_cast<Record*>(calloc(1, sizeof(Record)));
  if (record != nullptr && table->insert(handle, record)) return record;
  free(record);
  set_flag(&g.file, WEIR_PROBE_OUT_OF_MEMORY);
  return nullptr;
}

void put_queues(cl_icd_dispatch* table);

}  // namespace weir_probe::opencl
