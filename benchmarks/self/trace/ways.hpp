// Ways to read a Chrome trace of any size, each to be timed in a process of its own.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "gate/base/result.hpp"

namespace weir::bench {

struct WalkResult {
  double seconds = 0;            // processor time, without reading the file
  std::uint64_t count = 0;       // events; for nlohmann_json, values
  std::uint64_t memory_kib = 0;  // peak resident memory, without file-backed pages
};

struct Way {
  std::string_view name;
  Result<WalkResult> (*walk)(const std::string& file);
};

// weir's reader, simdjson on demand and as a tree of each chunk, nlohmann_json's events.
std::span<const Way> ways();

}  // namespace weir::bench
