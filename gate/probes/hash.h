// The hash by which probes know code and devices, and readers the code of files.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

namespace weir_probe {

// A mixing hash, eight bytes a step: the same on every little-endian machine. Not a defence.
constexpr uint64_t k_hash_seed = 0xcbf29ce484222325ULL;

inline uint64_t hash_bytes(uint64_t seed, const void* bytes, size_t size) {
  const unsigned char* at = static_cast<const unsigned char*>(bytes);
  uint64_t hash = seed ^ (size * 0x9e3779b97f4a7c15ULL);
  for (; size >= sizeof(uint64_t); at += sizeof(uint64_t), size -= sizeof(uint64_t)) {
    uint64_t word;
    memcpy(&word, at, sizeof word);
    hash = (hash ^ word) * 0x9fb21c651e98df25ULL;
    hash ^= hash >> 35;
  }
  uint64_t rest = 0;
  memcpy(&rest, at, size);
  hash = (hash ^ rest) * 0x9fb21c651e98df25ULL;
  return hash ^ (hash >> 32);
}

}  // namespace weir_probe
