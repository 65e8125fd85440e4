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

// Returns the parts of an expression before its first group and after it.
static std::pair<std::string_view, std::string_view> around_group(std::string_view expression) {
  std::size_t begin = std::string_view::npos;
  bool is_in_class = false;
  int depth = 0;
  for (std::size_t at = 0; at < expression.size(); ++at) {
    const char c = expression[at];
    if (c == '\\') {
      ++at;
    } else if (c == '[' && !is_in_class) {
      is_in_class = true;
      if (expression.substr(at + 1, 1) == "]") ++at;
    } else if (c == ']') {
      is_in_class = false;
    } else if (is_in_class) {
      continue;
    } else if (c == '(' && begin == std::string_view::npos) {
      const std::string_view rest = expression.substr(at + 1);
      const bool is_capturing = !rest.starts_with('?') || rest.starts_with("?P<");
      if (is_capturing) begin = at;
    } else if (c == '(') {
      ++depth;
    } else if (c == ')' && begin != std::string_view::npos && depth-- == 0) {
      return {expression.substr(0, begin), expression.substr(at + 1)};
    }
  }
  return {expression, {}};
}

Pattern::Pattern(std::shared_ptr<const re2::RE2> expression) : expression_(std::move(expression)) {
  static const RE2 k_repetition(R"(\{[0-9]*,[0-9]*\})");
  // A digit or a class with digits, how often, and blanks.
  static const RE2 k_before(
      R"((?:[0-9]|\\[dwS]|\[[^\]]*0-9[^\]]*\])\)?[*+?]*(?: |\\s|\[ [^\]]*\])[*+]?$)");
  static const RE2 k_after(
      R"(^(?: |\\s|\[ [^\]]*\])[*+]?\(?(?:\?:)?(?:[0-9]|\\[dwS]|\[[^\]]*0-9))");
  std::string text = expression_->pattern();
  RE2::GlobalReplace(&text, k_repetition, "");
  has_comma_ = text.find(',') != std::string::npos;
  const auto [before, after] = around_group(text);
  has_number_before_ = RE2::PartialMatch({before.data(), before.size()}, k_before);
  has_number_after_ = RE2::PartialMatch({after.data(), after.size()}, k_after);
}

std::optional<Pattern::Match> Pattern::first_match(std::string_view line) const {
  re2::StringPiece groups[2];
  const re2::StringPiece input(line.data(), line.size());
  if (!expression_->Match(input, 0, input.size(), RE2::UNANCHORED, groups, 2) ||
      groups[1].data() == nullptr) {
    return std::nullopt;
  }
  return Match{{groups[0].data(), groups[0].size()}, {groups[1].data(), groups[1].size()}};
}

std::optional<std::string_view> Pattern::first_group(std::string_view line) const {
  const auto match = first_match(line);
  return match ? std::optional(match->group) : std::nullopt;
}

}  // namespace weir::config
