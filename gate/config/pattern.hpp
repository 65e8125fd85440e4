// Regular expressions from a config, run over hostile output: linear time, bounded memory (RE2).
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "gate/base/result.hpp"

namespace re2 {
class RE2;
}

namespace weir::config {

class Pattern {
 public:
  // Fails with Code::config (no place in the message) when the expression is not one, is longer
  // than 1000 bytes, needs too much memory, or has no group to take the value from.
  [[nodiscard]] static Result<Pattern> compile(std::string_view expression);

  // Returns group 1 of the first match in `line`; nothing if there is no match or the group took no
  // part in it.
  [[nodiscard]] std::optional<std::string_view> first_group(std::string_view line) const;

  // Returns true if the expression itself has a comma, as for columns.
  [[nodiscard]] bool has_comma() const;

 private:
  explicit Pattern(std::shared_ptr<const re2::RE2> expression)
      : expression_(std::move(expression)) {}
  std::shared_ptr<const re2::RE2> expression_;
};

}  // namespace weir::config
