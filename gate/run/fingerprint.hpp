// A cell's fingerprint: what must be the same for stored counts to be of the same cell (DESIGN §2).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "gate/base/result.hpp"
#include "gate/config/matrix.hpp"
#include "gate/sys/files.hpp"

namespace weir::run {

// The version of the rules of what is counted how (DESIGN §2); part of every fingerprint.
inline constexpr std::string_view k_counting_rules = "1";

struct ModelFacts {
  std::string header_hash;  // of a GGUF header; of other files, their beginning
  std::uint64_t bytes = 0;  // of all files of a folder
};
// Reads no more than the header. A folder is known by its files' names and sizes and the contents
// of its config.json. Fails with Code::data on a file named .gguf that is none, Code::io.
[[nodiscard]] Result<ModelFacts> look_at_model(const sys::Files& files, const std::string& path);

// name -> short hash: the cell's identity, "model header", "model size", "prompt file" (where there
// is one), "counting rules".
[[nodiscard]] std::map<std::string, std::string> fingerprint_parts(const config::Cell& cell,
                                                                   const ModelFacts& model,
                                                                   std::string_view prompt_text);
// From its parts.
[[nodiscard]] std::string fingerprint_of(const std::map<std::string, std::string>& parts);

}  // namespace weir::run
