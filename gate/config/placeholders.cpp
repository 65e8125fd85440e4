// Finds and replaces placeholders such as "{model}" in texts.
#include "gate/config/placeholders.hpp"

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"

namespace weir::config {
namespace {

bool is_inner(char c) { return text::is_alphanumeric(c) || c == '_' || c == '-'; }

struct Placeholder {
  std::size_t from = 0;  // the first brace
  std::size_t to = 0;    // after the last brace
  std::string_view word;
  bool doubled = false;
};

// Returns the placeholder "{word}" that begins at `at`, which holds '{'.
std::optional<Placeholder> placeholder_at(std::string_view text, std::size_t at) {
  std::size_t end = at + 1;
  if (end >= text.size() || !text::is_letter(text[end])) return std::nullopt;
  while (end < text.size() && is_inner(text[end])) ++end;
  if (end >= text.size() || text[end] != '}') return std::nullopt;
  return Placeholder{
      .from = at, .to = end + 1, .word = text.substr(at + 1, end - at - 1), .doubled = false};
}

// Returns the next "{word}" or "{{word}}" (doubled) from the position `from` on; nothing if there
// is none.
std::optional<Placeholder> next_placeholder(std::string_view text, std::size_t from) {
  for (std::size_t brace = text.find('{', from); brace != std::string_view::npos;
       brace = text.find('{', brace + 1)) {
    if (brace + 1 < text.size() && text[brace + 1] == '{') {
      auto inside = placeholder_at(text, brace + 1);
      if (inside && inside->to < text.size() && text[inside->to] == '}') {
        return Placeholder{
            .from = brace, .to = inside->to + 1, .word = inside->word, .doubled = true};
      }
    }
    if (auto placeholder = placeholder_at(text, brace)) return placeholder;
  }
  return std::nullopt;
}

}  // namespace

const std::vector<std::string>& placeholder_names() {
  static const std::vector<std::string> k_names{
      "args",        "depth",         "model",   "out",  "port",    "probe_dir", "prompt",
      "prompt_file", "prompt_tokens", "repeats", "seed", "threads", "tokens"};
  return k_names;
}

std::vector<std::string> placeholders_in(std::string_view text) {
  std::vector<std::string> words;
  for (auto match = next_placeholder(text, 0); match; match = next_placeholder(text, match->to)) {
    if (!match->doubled) words.emplace_back(match->word);
  }
  return words;
}

// Returns the text with value(word) in place of each "{word}", and "{word}" in place of
// "{{word}}". Values are not searched again.
std::string substitute(std::string_view text,
                       const std::function<std::string(std::string_view)>& value) {
  std::string result;
  std::size_t from = 0;
  for (auto match = next_placeholder(text, 0); match; match = next_placeholder(text, from)) {
    result += text.substr(from, match->from - from);
    result += match->doubled ? fmt::format("{{{}}}", match->word) : value(match->word);
    from = match->to;
  }
  result += text.substr(from);
  return result;
}

bool uses(const Arguments& arguments, const Environment& environment,
          std::string_view placeholder) {
  const auto has = [&](const std::string& text) {
    return holds(placeholders_in(text), placeholder);
  };
  return std::ranges::any_of(arguments, has) ||
         std::ranges::any_of(environment, has, &Environment::value_type::second);
}

}  // namespace weir::config
