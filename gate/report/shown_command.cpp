#include "gate/report/shown_command.hpp"

#include <utility>

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
  if (names_secret(name, false)) return Value::secret;
  if (name == "-p" || name == "-sys" || has_part(name, "prompt")) return Value::prompt;
  return Value::plain;
}

bool ends_word(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '"' || c == '\'' || c == '=' ||
         c == ',' || c == '(' || c == ')' || c == '[' || c == ']' || c == '<' || c == '>' ||
         c == ':' || c == ';' || c == '`';
}

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

bool is_slash(char c) { return c == '/' || c == '\\'; }

// "C:\a", "C:/a"
bool on_drive(std::string_view text) {
  return text.size() > 2 && is_letter(text[0]) && text[1] == ':' && is_slash(text[2]);
}

// "\\host\a"; the file "\a" of the drive too, as one of two backslashes may have been an escape.
bool on_host(std::string_view word) {
  return word.size() > 2 && word[0] == '\\' && word.find('\\', 2) != word.npos;
}

// Of "a/b/c" the last part; what has no part behind a slash ("/", "a/") keeps that before it.
std::string_view last_part(std::string_view path) {
  while (path.size() > 1 && is_slash(path.back())) path.remove_suffix(1);
  const std::size_t slash = path.find_last_of("/\\");
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

// Of a word that begins with a slash: it is a file's place, and no name with slashes.
bool certain(std::string_view word) {
  if (word.starts_with("~/")) return true;
  for (const std::string_view top :
       {"/home/", "/Users/", "/root/", "/tmp/", "/var/", "/opt/", "/mnt/", "/srv/", "/usr/",
        "/etc/", "/media/", "/data/", "/workspace/", "/scratch/", "/private/", "/nfs/", "/run/",
        "/proc/", "/dev/"}) {
    if (word.starts_with(top)) return true;
  }
  const std::string_view last = last_part(word);
  const std::size_t dot = last.rfind('.');
  return dot != last.npos && dot + 1 < last.size() && is_letter(last[dot + 1]);
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

// Before anything else a backslash is a part of a path of Windows.
bool escaped_by_backslash(char c) {
  return c == '"' || c == '\'' || c == '\\' || c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> words;
  std::string word;
  bool any = false;  // also of ""
  char quote = '\0';
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c == '\\' && quote != '\'' && i + 1 < line.size() && escaped_by_backslash(line[i + 1])) {
      word += line[++i];
      any = true;
    } else if (quote != '\0') {
      if (c == quote) {
        quote = '\0';
      } else {
        word += c;
      }
    } else if (c == '"' || c == '\'') {
      quote = c;
      any = true;
    } else if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
      if (any) words.push_back(std::exchange(word, {}));
      any = false;
    } else {
      word += c;
      any = true;
    }
  }
  if (any) words.push_back(word);
  return words;
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

std::string shown_command_line(std::string_view line, Private how) {
  const std::vector<std::string> words = words_of(line);
  if (how == Private::shown) return shown_command(words, how);
  std::vector<std::string> joined;
  bool prompt = false;  // the last of them is what an option for prompts was given
  for (std::size_t i = 0; i < words.size(); ++i) {
    const bool option = words[i].starts_with('-');
    if (prompt && !option) {
      joined.back() += " " + words[i];
      continue;
    }
    joined.push_back(words[i]);
    const bool before = i > 0 && !option && words[i - 1].find('=') == std::string::npos &&
                        value_of(words[i - 1]) == Value::prompt;
    const std::size_t equals = words[i].find('=');
    const bool within = option && equals != std::string::npos &&
                        value_of(std::string_view(words[i]).substr(0, equals)) == Value::prompt;
    prompt = before || within;
  }
  return shown_command(joined, how);
}

bool names_secret(std::string_view name, bool number) {
  const std::string lower = text::lower(name);
  for (const std::string_view part : {"key", "token", "secret", "pass", "credential", "auth"}) {
    if (!has_part(lower, part)) continue;
    // "--n-tokens 8", "--tokens 8" are numbers of tokens, "--passes 3" is how often.
    if (has_part(lower, "tokens") || has_part(lower, "passes")) continue;
    // "key_length", "ms_per_token_out", where a number stands behind them.
    const bool short_word = part == "key" || part == "token";
    if (number && short_word && !std::string_view(lower).ends_with(part)) continue;
    return true;
  }
  return false;
}

std::string without_places(std::string_view text, Paths which) {
  std::string out;
  std::size_t i = 0;
  while (i < text.size()) {
    // A drive's colon ends no word.
    const bool drive = on_drive(text.substr(i));
    std::size_t end = drive ? i + 2 : i;
    while (end < text.size() && !ends_word(text[end])) ++end;
    const std::string_view word = text.substr(i, end - i);
    const bool rooted = (word.starts_with('/') || word.starts_with("~/")) && word.size() > 1;
    const bool path = drive || on_host(word) || (rooted && (which == Paths::all || certain(word)));
    out += path ? last_part(word) : word;
    if (end < text.size()) out += text[end++];
    i = end;
  }
  return out;
}

}  // namespace weir::report
