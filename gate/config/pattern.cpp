// Regular expressions of a config, on top of RE2.
#include "gate/config/pattern.hpp"

#include <re2/re2.h>

#include "gate/base/text.hpp"

namespace weir::config {

// Compiles a regular expression with a group for the value. Fails if it is invalid, has no group,
// is too long or needs too much memory.
Result<Pattern> Pattern::compile(std::string_view expression) {
  constexpr std::size_t k_max_expression_bytes = 1000;
  constexpr std::int64_t k_memory = std::int64_t{256} << 10;  // compiles within milliseconds
  if (expression.size() > k_max_expression_bytes) {
    return fail(Code::config, "the regular expression is longer than {} bytes",
                k_max_expression_bytes);
  }
  RE2::Options options;
  options.set_log_errors(false);
  options.set_max_mem(k_memory);
  auto compiled =
      std::make_shared<const RE2>(re2::StringPiece(expression.data(), expression.size()), options);
  if (!compiled->ok()) {
    return fail(Code::config, "not a regular expression (RE2 syntax): {}",
                text::printable(compiled->error()));
  }
  if (compiled->NumberOfCapturingGroups() < 1) {
    return fail(Code::config,
                "the regular expression has no group: put the value in (…), as in '(\\d+) syncs'");
  }
  return Pattern(std::move(compiled));
}

std::optional<std::string_view> Pattern::first_group(std::string_view line) const {
  re2::StringPiece groups[2];
  const re2::StringPiece input(line.data(), line.size());
  if (!expression_->Match(input, 0, input.size(), RE2::UNANCHORED, groups, 2) ||
      groups[1].data() == nullptr) {
    return std::nullopt;
  }
  return std::string_view(groups[1].data(), groups[1].size());
}

bool Pattern::has_comma() const {
  std::string expression = expression_->pattern();
  static const RE2 k_repetition(R"(\{[0-9]*,[0-9]*\})");
  RE2::GlobalReplace(&expression, k_repetition, "");
  return expression.find(',') != std::string::npos;
}

}  // namespace weir::config
