#include "gate/report/shown_command.hpp"

#include <fmt/format.h>

#include "gate/base/text.hpp"
#include "gate/report/layout.hpp"

namespace weir::report {
namespace {

constexpr std::size_t k_longest_word = 80;
constexpr std::string_view k_hidden = "***";

enum class Value { plain, prompt, secret };

bool has_part(std::string_view option, std::string_view part) {
  return option.find(part) != std::string_view::npos;
}

// What an option is given, by the option's name.
Value value_of(std::string_view option) {
  if (!option.starts_with('-')) return Value::plain;
  const std::string name = text::lower(option);
  for (const std::string_view part : {"key", "token", "secret", "password", "credential", "auth"}) {
    // "--n-tokens 8", "--tokens 8" are numbers of tokens.
    if (has_part(name, part) && !has_part(name, "tokens")) return Value::secret;
  }
  if (name == "-p" || name == "-sys" || has_part(name, "prompt")) return Value::prompt;
  return Value::plain;
}

bool ends_word(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '"' || c == '\'' || c == '=' ||
         c == ',' || c == '(' || c == ')' || c == '[' || c == ']' || c == '<' || c == '>' ||
         c == ':' || c == ';' || c == '`';
}

// Of "a/b/c" the last part; what has no part behind a slash ("/", "a/") keeps that before it.
std::string_view last_part(std::string_view path) {
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

std::string shown_value(std::string_view word, Value value, Private how) {
  if (value == Value::secret) return std::string(k_hidden);
  if (how == Private::shown) return text::shell_word(one_line(word));
  // "512", "512,1024", "16-64+16": how many tokens of a prompt, not a prompt.
  const bool number = !word.empty() && word.front() >= '0' && word.front() <= '9' &&
                      word.find_first_not_of("0123456789.,+-*x") == word.npos;
  const bool long_text = word.size() > k_longest_word || word.find_first_of(" \t\n\r") != word.npos;
  // An address is no path: who it is goes, by the same rule as a path's folder.
  const std::string_view short_word = last_part(word);
  if ((value == Value::prompt && !number) || (long_text && short_word.size() == word.size())) {
    return fmt::format("<{} bytes>", word.size());
  }
  if (short_word.size() > k_longest_word || short_word.find(' ') != short_word.npos) {
    return fmt::format("<{} bytes>", word.size());
  }
  return text::shell_word(one_line(short_word));
}

// Where what an address asks for begins ("https://host/path?api_key=…"), which may hold a key.
std::size_t query_of(std::string_view word) {
  const std::size_t mark = word.find('?');
  if (mark == word.npos || word.find('=', mark) == word.npos) return word.npos;
  return word.find_first_of(" \t\n\r") == word.npos ? mark : word.npos;
}

std::string shown_word(std::string_view word, Private how) {
  if (const std::size_t query = query_of(word); query != word.npos) {
    return fmt::format("{}?{}", shown_word(word.substr(0, query), how), k_hidden);
  }
  const std::size_t equals = word.find('=');
  if (!word.starts_with('-') || equals == std::string_view::npos) {
    // "NAME=/a/b" is a path behind a name.
    if (equals != word.npos && word.find_first_of("/ ") > equals) {
      return fmt::format("{}={}", text::shell_word(word.substr(0, equals)),
                         shown_value(word.substr(equals + 1),
                                     value_of(fmt::format("-{}", word.substr(0, equals))), how));
    }
    return shown_value(word, Value::plain, how);
  }
  return fmt::format("{}={}", text::shell_word(one_line(word.substr(0, equals))),
                     shown_value(word.substr(equals + 1), value_of(word.substr(0, equals)), how));
}

}  // namespace

std::string shown_command(const std::vector<std::string>& words, Private how) {
  std::string out;
  Value value = Value::plain;
  for (const std::string& word : words) {
    const bool is_value = value != Value::plain;
    out += out.empty() ? "" : " ";
    out += is_value ? shown_value(word, value, how) : shown_word(word, how);
    value = !is_value && word.find('=') == std::string::npos ? value_of(word) : Value::plain;
  }
  return out;
}

std::string without_places(std::string_view text) {
  std::string out;
  std::size_t i = 0;
  while (i < text.size()) {
    std::size_t end = i;
    while (end < text.size() && !ends_word(text[end])) ++end;
    const std::string_view word = text.substr(i, end - i);
    const bool path = (word.starts_with('/') || word.starts_with("~/")) && word.size() > 1;
    out += path ? last_part(word) : word;
    if (end < text.size()) out += text[end++];
    i = end;
  }
  return out;
}

}  // namespace weir::report
