// Regular expressions from a config, run over hostile output: linear time, bounded memory (RE2).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "gate/base/result.hpp"

namespace weir::config {

class Pattern {
 public:
  // Fails with Code::config (no place in the message) when the expression is not one, is longer
  // than 1000 bytes, needs too much memory, or has no group to take the value from.
  [[nodiscard]] static Result<Pattern> compile(std::string_view expression);
  ~Pattern();
  Pattern(Pattern&&) noexcept;
  Pattern& operator=(Pattern&&) noexcept;

  // What group 1 took at the first match in `line`; nothing when it did not take part.
  [[nodiscard]] std::optional<std::string_view> first_group(std::string_view line) const;

 private:
  struct Compiled;
  explicit Pattern(std::unique_ptr<Compiled> compiled);
  std::unique_ptr<Compiled> compiled_;
};

}  // namespace weir::config
