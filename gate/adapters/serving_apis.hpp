// What each API of serving.cpp's table is made of: one file each.
#pragma once

#include "gate/adapters/serving.hpp"

namespace weir::adapters::serving {

#define WEIR_SERVING_API(name)                             \
  namespace name {                                         \
  [[nodiscard]] Json body(const Ask& ask);                 \
  [[nodiscard]] Result<Piece> read(std::string_view data); \
  }
WEIR_SERVING_API(completions)
WEIR_SERVING_API(chat)
WEIR_SERVING_API(llama)
WEIR_SERVING_API(ollama)
#undef WEIR_SERVING_API

}  // namespace weir::adapters::serving
