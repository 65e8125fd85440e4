// Ways through a Chrome trace of any size, each to be timed in a process of its own.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "gate/base/result.hpp"

namespace weir::bench {

struct Walked {
  double seconds = 0;            // of the processor, without reading the file
  std::uint64_t found = 0;       // events; of nlohmann_json, values
  std::uint64_t memory_kib = 0;  // the most resident at once, without file-backed pages
};

struct Way {
  std::string_view name;
  Result<Walked> (*walk)(const std::string& file);
};

// weir's reader, simdjson on demand and as a tree of each chunk, nlohmann_json's events.
std::span<const Way> ways();

}  // namespace weir::bench
