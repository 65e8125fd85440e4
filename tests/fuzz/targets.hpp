// The list of fuzz targets.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

// Every target of tests/fuzz but for those that differ by format alone. Aborts where it finds
// something.
struct FuzzTarget {
  const char* name;
  int (*take)(const std::uint8_t* data, std::size_t size);
};
extern const std::vector<FuzzTarget> k_fuzz_targets;
