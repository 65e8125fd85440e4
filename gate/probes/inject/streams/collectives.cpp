// Counts calls of NCCL and RCCL by their sizes.
#include <stdio.h>
#include <string.h>

#include "gate/probes/inject/streams/front.h"

namespace weir_probe::streams {
namespace {

Table g_names;          // hash -> char*; they stay
uint32_t g_name_count;  // under g.lock

// ncclDataType_t
constexpr const char* k_types[] = {"i8",  "u8",  "i32", "u32",  "i64",    "u64",
                                   "f16", "f32", "f64", "bf16", "f8e4m3", "f8e5m2"};

// Returns the number of ranks of a communicator; 0 if it is unknown.
int count_ranks(void* communicator) {
  static void* slot;
  const auto ask = reinterpret_cast<int (*)(void*, int*)>(next_function(&slot, "ncclCommCount"));
  int ranks = 0;
  return succeeds(ask, communicator, &ranks) ? ranks : 0;
}

// Returns a text such as "ncclAllReduce(512 bf16, 2 ranks)", which is never freed. After 1024
// texts, or without memory, it returns `function` itself. `ranks` 0: unknown.
const char* name_collective(const char* function, size_t number, int type, int ranks) {
  constexpr uint32_t k_max_names = 1024;
  const bool is_known = type >= 0 && type < static_cast<int>(sizeof k_types / sizeof *k_types);
  char text[128];
  const int length = snprintf(text, sizeof text, "%s(%zu %s", function, number,
                              is_known ? k_types[type] : "values");
  snprintf(text + length, sizeof text - static_cast<size_t>(length),
           ranks > 0 ? ", %d ranks)" : ")", ranks);
  const uint64_t key = hash_text(text);
  if (void* name = g_names.find(key)) return static_cast<const char*>(name);
  const Locked locked(&g.lock);
  char* name = g_name_count < k_max_names ? strdup(text) : nullptr;
  if (name == nullptr) return function;
  ++g_name_count;
  g_names.insert(key, name);
  return name;
}

}  // namespace

void count_collective(const char* function, size_t number, int type, void* communicator,
                      void* stream) {
  const char* name = name_collective(function, number, type, count_ranks(communicator));
  count_library_call(name, stream, k_no_counter);
}

}  // namespace weir_probe::streams
