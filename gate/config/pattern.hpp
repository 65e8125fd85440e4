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

  // The first match in a line: all of it, and its group 1.
  struct Match {
    std::string_view whole, group;
  };
  [[nodiscard]] std::optional<Match> first_match(std::string_view line) const;

  // Returns true if the expression itself has a comma, as for columns.
  [[nodiscard]] bool has_comma() const { return has_comma_; }
  // Returns true if the expression itself has a number and blanks before the group, or after it:
  // "128 ([0-9.]+)".
  [[nodiscard]] bool has_number_before() const { return has_number_before_; }
  [[nodiscard]] bool has_number_after() const { return has_number_after_; }

 private:
  explicit Pattern(std::shared_ptr<const re2::RE2> expression);
  std::shared_ptr<const re2::RE2> expression_;
  bool has_comma_ = false, has_number_before_ = false, has_number_after_ = false;
};

}  // namespace weir::config
