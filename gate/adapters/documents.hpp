// JSON documents within text that also holds log lines. Pure.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "gate/base/json.hpp"

namespace weir::adapters {

struct DocumentsFound {
  std::size_t documents = 0;
  // The first text that looked like JSON and was not: what is wrong with it. A log line such as
  // "[info] …" does not look like JSON.
  std::optional<std::string> broken;
};

// Calls `take` for each object or array that begins a line (blanks before it are fine), in order;
// it answers whether to go on. Documents are not kept, so that memory stays small: each may have
// 1 MiB and 64 levels. Time is linear in the size of the text.
DocumentsFound for_each_document(std::string_view text,
                                 const std::function<bool(const Json& document)>& take);

}  // namespace weir::adapters
