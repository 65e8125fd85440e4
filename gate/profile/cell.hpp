// A cell: one point of the matrix, and its name.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "gate/base/result.hpp"

namespace weir::profile {

// [A-Za-z0-9][A-Za-z0-9._-]{0,63}
[[nodiscard]] bool valid_name(std::string_view name);

struct CellKey {
  std::string engine;
  std::string variant = "default";
  std::string model;
  std::string backend;
  std::string prompt;
  std::optional<std::int64_t> depth;        // set when the prompt's depth is a list
  std::optional<std::int64_t> concurrency;  // set when the prompt's concurrency is a list
  std::optional<std::int64_t> threads{};    // set when the prompt's threads are a list; 0: all

  [[nodiscard]] std::string engine_part() const;  // "llama.cpp" or "llama.cpp@fused"
  [[nodiscard]] std::string prompt_part() const;  // "decode", "long@d256", "chat@c4@tall"
  [[nodiscard]] std::string str() const;          // "engine/model/backend/prompt", also a path
  // The line over all depths of its list; itself where it has none.
  [[nodiscard]] CellKey line() const;
  // Reads str() back. Fails with Code::data on anything that is not four valid parts.
  [[nodiscard]] static Result<CellKey> parse(std::string_view text);

  friend auto operator<=>(const CellKey&, const CellKey&) = default;
};

}  // namespace weir::profile
