// Makes hostile text inert in Markdown, HTML, XML and scripts.
//
// GitHub and GitLab find mentions, references, bare links, emoji and formulas in the finished text,
// where a backslash is gone already. Only a space of no width between their parts stops them.
#include "gate/report/escape.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "gate/base/text.hpp"
#include "gate/report/layout.hpp"

namespace weir::report {
namespace {

constexpr std::string_view k_zero_width = "\u200b";

bool is_punctuation(char c) {
  return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') ||
         (c >= '{' && c <= '~');
}

bool is_hex(char c) {
  return text::is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

bool starts_with_any_case(std::string_view text, std::string_view lower) {
  return text.size() >= lower.size() && text::lower(text.substr(0, lower.size())) == lower;
}

// Returns true for ":tada:", which becomes a picture.
bool starts_shortcode(std::string_view rest) {
  std::size_t end = 1;
  while (end < rest.size() && (is_word_char(rest[end]) || rest[end] == '+' || rest[end] == '-'))
    ++end;
  return end > 1 && end < rest.size() && rest[end] == ':';
}

// Returns the length of the abbreviated commit that `rest` begins with; 0 for none.
std::size_t commit_length(std::string_view rest) {
  std::size_t end = 0;
  while (end < rest.size() && is_hex(rest[end])) ++end;
  const bool whole_word = end == rest.size() || !is_word_char(rest[end]);
  return whole_word && end >= 7 ? end : 0;
}

// Returns a commit that makes no link: as code if it stands alone, so that it can be copied; else
// with spaces of no width in it.
std::string unlinked_commit(std::string_view hex, bool alone) {
  if (alone) return fmt::format("`{}`", hex);
  constexpr std::size_t k_part = 6;  // shorter than any commit
  std::string out;
  for (std::size_t from = 0; from < hex.size(); from += k_part) {
    if (from > 0) out += k_zero_width;
    out += hex.substr(from, k_part);
  }
  return out;
}

// Returns true if `c` and the text after it could make a reference: GitHub's @name and #1; GitLab's
// !1, ~label, %milestone and &1, and {+ and [- of its inline diffs.
bool starts_reference(char c, std::string_view after) {
  if (c == '@' || c == '#') return true;
  if (after.empty()) return false;
  const char next = after.front();
  if (c == '{' || c == '[') return next == '+' || next == '-';
  return (c == '!' || c == '~' || c == '%' || c == '&') && (is_word_char(next) || next == '"');
}

// Escapes a character for Markdown; `first`: it begins the text, where it could make a list or
// heading.
std::string escape_char(char c, bool first) {
  if (c == '$') return "<span>$</span>";  // GitHub documents this to avoid a formula
  if (c == '<' || c == '>' || c == '&') return xml_text({&c, 1});
  const bool special = std::string_view("\\`*_[]|~^!{}@#").find(c) != std::string_view::npos;
  const bool begins = first && std::string_view("-+=/").find(c) != std::string_view::npos;
  return special || begins ? fmt::format("\\{}", c) : std::string(1, c);
}

// Returns true if the character at `at` ends "1." or "1)", which would begin a list.
bool ends_list_number(std::string_view line, std::size_t at) {
  if ((line[at] != '.' && line[at] != ')') || at == 0) return false;
  if (at + 1 < line.size() && line[at + 1] != ' ') return false;
  return std::all_of(line.begin(), line.begin() + static_cast<std::ptrdiff_t>(at), text::is_digit);
}

// Puts a space of no width into weir's own marker and into mentions of robots: programs look for
// both in the text as it was sent, also in code.
std::string break_mentions(std::string_view code) {
  std::string out;
  for (std::size_t i = 0; i < code.size(); ++i) {
    const std::string_view rest = code.substr(i);
    out += code[i];
    const bool mention = code[i] == '@' && (i == 0 || !is_word_char(code[i - 1])) &&
                         rest.size() > 1 && is_word_char(rest[1]);
    if (mention || rest.starts_with("<!--")) out += k_zero_width;
  }
  return out;
}

}  // namespace

// Returns hostile text as one line of Markdown that means nothing to Markdown or GitHub: no links,
// mentions, references or lists.
std::string markdown_text(std::string_view text, std::size_t max_columns) {
  const std::string line = text::neutralize_ci_commands(printable_line(text, max_columns));
  std::string out;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    const std::string_view rest = std::string_view(line).substr(i);
    const bool begins_word = i == 0 || !is_word_char(line[i - 1]);
    const std::size_t commit = begins_word ? commit_length(rest) : 0;
    if (commit > 0) {
      const bool stands_alone = i == 0 || line[i - 1] == ' ' || line[i - 1] == '(';
      out += unlinked_commit(rest.substr(0, commit), stands_alone);
      i += commit - 1;
    } else if (starts_with_any_case(rest, "www.") || starts_with_any_case(rest, "gh-")) {
      const std::size_t word = rest.find_first_of(".-");
      out += fmt::format("{}{}", rest.substr(0, word), k_zero_width);
      i += word - 1;
    } else if (c == ':' && (rest.starts_with("://") || starts_shortcode(rest))) {
      out += fmt::format(":{}", k_zero_width);
    } else if (ends_list_number(line, i)) {
      out += fmt::format("\\{}", c);
    } else {
      out += escape_char(c, i == 0);
      if (starts_reference(c, rest.substr(1))) out += k_zero_width;
    }
  }
  return out;
}

// Returns hostile text as code within a line of Markdown, also within a table.
std::string markdown_code(std::string_view text, std::size_t max_columns) {
  const std::string line =
      break_mentions(text::neutralize_ci_commands(printable_line(text, max_columns)));
  if (line.empty()) return "";
  // Between backquotes everything except these is literal.
  if (line.find_first_of("`|\\") == std::string::npos) return fmt::format("`{}`", line);
  std::string out = "<code>";
  for (std::size_t i = 0; i < line.size(); ++i) {
    const std::string_view rest = std::string_view(line).substr(i);
    out += is_punctuation(line[i]) ? fmt::format("&#{};", static_cast<int>(line[i]))
                                   : std::string(1, line[i]);
    // GitHub looks for bare links after it has replaced the entities.
    const bool follows_www =
        i >= 2 && starts_with_any_case(std::string_view(line).substr(i - 2), "www.");
    if (line[i] == '@' || rest.starts_with("://") || follows_www) out += k_zero_width;
  }
  return out + "</code>";
}

// Returns lines as a block of code. The fence is longer than any row of backquotes in them, so that
// they cannot close it.
std::string markdown_fence(const std::vector<std::string>& lines) {
  std::size_t most_backquotes = 2;
  for (const std::string& line : lines) {
    std::size_t backquotes = 0;
    for (const char c : line) {
      backquotes = c == '`' ? backquotes + 1 : 0;
      most_backquotes = std::max(most_backquotes, backquotes);
    }
  }
  const std::string fence(most_backquotes + 1, '`');
  std::string out = fence + "text\n";
  for (const std::string& line : lines) {
    const std::string safe = break_mentions(text::neutralize_ci_commands(clip(line, 400)));
    // Robots take "/merge" at the beginning of a line for an order, even in a code block.
    const std::size_t begin = safe.find_first_not_of(' ');
    if (begin != std::string::npos && safe[begin] == '/') out += k_zero_width;
    out += safe + "\n";
  }
  return out + fence + "\n";
}

std::string replace_each(std::string_view text, std::span<const Replacement> all) {
  std::string out;
  for (const char c : text) {
    const auto replacement = std::ranges::find(all, c, &Replacement::first);
    out += replacement == all.end() ? std::string_view(&c, 1) : replacement->second;
  }
  return out;
}

// Returns hostile text for an XML element or attribute. Drops what XML cannot contain.
std::string xml_text(std::string_view text) {
  static constexpr Replacement k_entities[] = {
      {'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}, {'\'', "&#39;"}};
  // printable() leaves valid UTF-8 without control characters; XML forbids two more code points.
  std::string clean = text::printable(text);
  for (const std::string_view forbidden : {"\xEF\xBF\xBE", "\xEF\xBF\xBF"}) {
    for (std::size_t at = clean.find(forbidden); at != clean.npos; at = clean.find(forbidden, at)) {
      clean.erase(at, forbidden.size());
    }
  }
  return replace_each(clean, k_entities);
}

std::string script_json(std::string_view json) {
  static constexpr Replacement k_codes[] = {{'&', "\\u0026"}, {'<', "\\u003c"}, {'>', "\\u003e"}};
  return replace_each(json, k_codes);
}

}  // namespace weir::report
