// MessagePack at weir's borders: a document is visited, never built in memory. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "gate/base/result.hpp"

namespace weir {

// Takes the parts of a document in order. `depth` counts the maps and arrays around a part.
class MsgpackVisitor {
 public:
  virtual ~MsgpackVisitor() = default;
  virtual void on_begin(std::size_t depth) = 0;  // of a map or array
  virtual void on_end(std::size_t depth) = 0;
  virtual void on_key(std::size_t depth, std::string_view key) = 0;
  virtual void on_text(std::size_t depth, std::string_view text) = 0;
  virtual void on_number(std::size_t depth, std::uint64_t number) = 0;
};

// Visits hostile bytes. Numbers below 0, fractions, booleans, null and binary data are skipped.
// Fails with Code::data where the document is broken, or more than `max_depth` deep.
[[nodiscard]] Result<void> visit_msgpack(std::string_view bytes, std::size_t max_depth,
                                         MsgpackVisitor& visitor);

}  // namespace weir
