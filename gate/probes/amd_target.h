// Which of AMD's GPUs code runs on, by the names of their targets ("gfx90a:sramecc+:xnack-"; LLVM's
// "Target ID"). Twins choose code by it, and readers what they list.
#pragma once

#include <stddef.h>
#include <string.h>

namespace weir_probe {

// The bytes of the part of a target that begins at `text` and ends before the next ':'.
inline size_t target_part_length(const char* text, size_t length) {
  const void* colon = memchr(text, ':', length);
  return colon == nullptr ? length : static_cast<size_t>(static_cast<const char*>(colon) - text);
}

// Returns true if a GPU's target has a feature ("xnack-") set in the other way.
inline bool contradicts_feature(const char* feature, size_t bytes, const char* gpu, size_t length) {
  for (size_t at = 0; at < length;) {
    const size_t part = target_part_length(gpu + at, length - at);
    const bool is_same_name =
        bytes > 0 && part == bytes && memcmp(gpu + at, feature, bytes - 1) == 0;
    if (is_same_name && gpu[at + bytes - 1] != feature[bytes - 1]) return true;
    at += part + 1;
  }
  return false;
}

// Returns true if code for one target runs on a GPU: the same processor, and no feature that the
// GPU has set in the other way.
inline bool runs_on(const char* code, size_t code_length, const char* gpu, size_t gpu_length) {
  const size_t processor = target_part_length(code, code_length);
  const bool is_same_processor =
      processor == target_part_length(gpu, gpu_length) && memcmp(code, gpu, processor) == 0;
  if (!is_same_processor) return false;
  for (size_t at = processor + 1; at < code_length;) {
    const size_t bytes = target_part_length(code + at, code_length - at);
    if (contradicts_feature(code + at, bytes, gpu, gpu_length)) return false;
    at += bytes + 1;
  }
  return true;
}

}  // namespace weir_probe
