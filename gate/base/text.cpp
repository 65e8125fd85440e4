// Text: UTF-8, globs, splitting, safe output, numbers.
#include "gate/base/text.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "gate/base/find.hpp"

namespace weir::text {
namespace {

// Returns the edit distance of two texts in bytes: inserted, removed and replaced ones, and swapped
// neighbours (Damerau, optimal string alignment).
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> rows(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) rows[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) rows[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t unequal = a[i - 1] == b[j - 1] ? 0 : 1;
      rows[i][j] = std::min({rows[i - 1][j] + 1, rows[i][j - 1] + 1, rows[i - 1][j - 1] + unequal});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        rows[i][j] = std::min(rows[i][j], rows[i - 2][j - 2] + 1);
      }
    }
  }
  return rows[a.size()][b.size()];
}

// Returns true for invisible characters that reorder, hide or split text: bidirectional controls,
// zero-width characters, fillers, tags, and separators of lines and paragraphs.
bool is_hidden(char32_t point) {
  static constexpr std::pair<char32_t, char32_t> k_ranges[] = {
      {0x00AD, 0x00AD}, {0x034F, 0x034F},   {0x061C, 0x061C},   {0x115F, 0x1160},
      {0x17B4, 0x17B5}, {0x180B, 0x180F},   {0x200B, 0x200F},   {0x2028, 0x202E},
      {0x2060, 0x206F}, {0x3164, 0x3164},   {0xFEFF, 0xFEFF},   {0xFFA0, 0xFFA0},
      {0xFFF9, 0xFFFB}, {0x1BCA0, 0x1BCA3}, {0x1D173, 0x1D17A}, {0xE0000, 0xE0FFF},
  };
  return std::ranges::any_of(
      k_ranges, [&](const auto& range) { return range.first <= point && point <= range.second; });
}

// White space as Unicode defines it, which programs that read a CI log use.
bool is_white_space(char32_t point) {
  return point == ' ' || (point >= '\t' && point <= '\r') || point == 0x85 || point == 0xA0 ||
         point == 0x1680 || (point >= 0x2000 && point <= 0x200B) || point == 0x2028 ||
         point == 0x2029 || point == 0x202F || point == 0x205F || point == 0x3000 ||
         point == 0xFEFF;
}

bool is_control(char32_t point) {
  if (point == '\n' || point == '\t') return false;
  return point < 0x20 || (point >= 0x7F && point < 0xA0);
}

// Parses a number that makes up the whole text.
template <class Number>
std::optional<Number> parse_number(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

constexpr char32_t k_bad = 0xFFFD;  // stands for bytes that are no character

// Returns the character of a byte from 0x80 on; U+FFFD for the five that have none.
char32_t windows_1252(unsigned char byte) {
  static constexpr char32_t k_points[] = {
      0x20AC, k_bad,  0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021, 0x02C6, 0x2030, 0x0160,
      0x2039, 0x0152, k_bad,  0x017D, k_bad,  k_bad,  0x2018, 0x2019, 0x201C, 0x201D, 0x2022,
      0x2013, 0x2014, 0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, k_bad,  0x017E, 0x0178};
  return byte < 0xA0 ? k_points[byte - 0x80] : byte;
}

enum class ByteOrder { little_endian, big_endian };

// Returns the byte order of UTF-16; nothing for other text. A text without a mark is UTF-16 if it
// begins with two characters of ASCII in that form.
std::optional<ByteOrder> find_utf16_order(std::string_view text) {
  if (text.starts_with("\xFF\xFE")) return ByteOrder::little_endian;
  if (text.starts_with("\xFE\xFF")) return ByteOrder::big_endian;
  if (text.size() < 4) return std::nullopt;
  const auto is_zero = [&](std::size_t at) { return text[at] == '\0'; };
  if (!is_zero(0) && is_zero(1) && !is_zero(2) && is_zero(3)) return ByteOrder::little_endian;
  if (is_zero(0) && !is_zero(1) && is_zero(2) && !is_zero(3)) return ByteOrder::big_endian;
  return std::nullopt;
}

// Appends a code point to the text as UTF-8, in one to four bytes.
void append_utf8(char32_t point, std::string& text) {
  const auto add_byte = [&](char32_t byte) { text += static_cast<char>(byte); };
  if (point < 0x80) return add_byte(point);
  if (point < 0x800) {
    add_byte(0xC0 | (point >> 6));
  } else if (point < 0x10000) {
    add_byte(0xE0 | (point >> 12));
    add_byte(0x80 | ((point >> 6) & 0x3F));
  } else {
    add_byte(0xF0 | (point >> 18));
    add_byte(0x80 | ((point >> 12) & 0x3F));
    add_byte(0x80 | ((point >> 6) & 0x3F));
  }
  add_byte(0x80 | (point & 0x3F));
}

// Decodes UTF-16 to UTF-8. Half a surrogate pair, also at the end, becomes U+FFFD.
std::string decode_utf16(std::string_view text, ByteOrder order) {
  const auto unit_at = [&](std::size_t at) -> char32_t {
    if (at + 1 >= text.size()) return k_bad;
    const auto first = static_cast<unsigned char>(text[at]);
    const auto second = static_cast<unsigned char>(text[at + 1]);
    const int unit = order == ByteOrder::big_endian ? (first << 8) | second : (second << 8) | first;
    return static_cast<char32_t>(unit);
  };
  std::string utf8;
  utf8.reserve(text.size() / 2);
  for (std::size_t at = 0; at < text.size(); at += 2) {
    char32_t point = unit_at(at);
    if (point >= 0xD800 && point < 0xE000) {
      const char32_t next = unit_at(at + 2);
      const bool is_pair = point < 0xDC00 && next >= 0xDC00 && next < 0xE000;
      point = is_pair ? 0x10000 + ((point - 0xD800) << 10) + (next - 0xDC00) : k_bad;
      if (is_pair) at += 2;
    }
    append_utf8(point, utf8);
  }
  return utf8;
}

}  // namespace

// Decodes the UTF-8 character at `at` and moves `at` behind it. Invalid bytes give U+FFFD (k_bad),
// one byte at a time.
char32_t next_code_point(std::string_view text, std::size_t& at) {
  const auto byte_at = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first_byte = byte_at(at);
  ++at;
  if (first_byte < 0x80) return first_byte;
  int continuation_bytes = 0;
  if (first_byte >= 0xC2) continuation_bytes = 1;
  if (first_byte >= 0xE0) continuation_bytes = 2;
  if (first_byte >= 0xF0) continuation_bytes = 3;
  if (continuation_bytes == 0 || first_byte >= 0xF5 ||
      at + static_cast<std::size_t>(continuation_bytes) > text.size())
    return k_bad;
  char32_t point = first_byte & (0x3FU >> continuation_bytes);
  for (int i = 0; i < continuation_bytes; ++i) {
    const unsigned char next = byte_at(at + static_cast<std::size_t>(i));
    if ((next & 0xC0U) != 0x80U) return k_bad;
    point = (point << 6) | (next & 0x3FU);
  }
  const bool overlong =
      (continuation_bytes == 2 && point < 0x800) || (continuation_bytes == 3 && point < 0x10000);
  if (overlong || point > 0x10FFFF || (point >= 0xD800 && point <= 0xDFFF)) return k_bad;
  at += static_cast<std::size_t>(continuation_bytes);
  return point;
}

// Converts text in UTF-16, in Windows-1252 or with byte-order marks to UTF-8 without marks. Nullopt
// if it is that already.
std::optional<std::string> decoded(std::string_view text) {
  std::optional<std::string> utf16, utf8;
  if (const auto order = find_utf16_order(text)) {
    text = utf16.emplace(decode_utf16(text, *order));
  }
  std::size_t copied_bytes = 0;  // bytes of `text` that utf8 has
  const auto replace_with = [&](std::size_t begin, std::size_t to, char32_t point) {
    if (!utf8) utf8.emplace().reserve(text.size());
    utf8->append(text, copied_bytes, begin - copied_bytes);
    if (point != 0) append_utf8(point, *utf8);
    copied_bytes = to;
  };
  bool begins_line = true;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    if (static_cast<unsigned char>(text[at]) < 0x80) {
      begins_line = text[at] == '\n';
      ++at;
      continue;
    }
    const char32_t point = next_code_point(text, at);
    if (point == 0xFEFF && begins_line) {
      replace_with(begin, at, 0);
    } else if (point == k_bad && at == begin + 1) {
      replace_with(begin, at, windows_1252(static_cast<unsigned char>(text[begin])));
    }
    begins_line = begins_line && point == 0xFEFF;
  }
  if (!utf8) return utf16;
  utf8->append(text, copied_bytes);
  return utf8;
}

// Returns true if the name matches a pattern in which '*' stands for any text.
bool glob_match(std::string_view pattern, std::string_view name) {
  const std::size_t first_star = pattern.find('*'), last_star = pattern.rfind('*');
  if (first_star == std::string_view::npos) return pattern == name;
  const std::string_view prefix = pattern.substr(0, first_star),
                         suffix = pattern.substr(last_star + 1);
  if (name.size() < prefix.size() + suffix.size() || !name.starts_with(prefix) ||
      !name.ends_with(suffix)) {
    return false;
  }
  name = name.substr(prefix.size(), name.size() - prefix.size() - suffix.size());
  // The first place of each part between stars leaves most for the next.
  for (std::size_t star = first_star; star < last_star;) {
    const std::size_t next = pattern.find('*', star + 1);
    const std::string_view part = pattern.substr(star + 1, next - star - 1);
    const std::size_t part_begin = name.find(part);
    if (part_begin == std::string_view::npos) return false;
    name.remove_prefix(part_begin + part.size());
    star = next;
  }
  return true;
}

// Returns the candidate that is most similar to the word, for "did you mean"; nullopt if none is
// similar enough.
std::optional<std::string> nearest(std::string_view word, std::span<const std::string> candidates) {
  if (word.size() > 64) return std::nullopt;
  const std::string lower_word = lower(word);
  std::optional<std::string> best;
  std::size_t best_prefix = 0;
  const std::size_t half = word.empty() ? 0 : (word.size() - 1) / 2;
  std::size_t best_distance = std::min<std::size_t>(3, half);
  for (const std::string& candidate : candidates) {
    // As many edits as the lengths differ by are the least.
    const auto [shorter, longer] = std::minmax({word.size(), candidate.size()});
    if (longer > 64 || longer - shorter > best_distance) continue;
    const std::string lower_candidate = lower(candidate);
    const std::size_t distance = edit_distance(lower_word, lower_candidate);
    // If two are equally near, prefer the longer common prefix: people often leave out the end.
    const std::size_t common_prefix =
        static_cast<std::size_t>(std::mismatch(lower_word.begin(), lower_word.end(),
                                               lower_candidate.begin(), lower_candidate.end())
                                     .first -
                                 lower_word.begin());
    // Among words of three letters, another letter makes another word: gpu, cpu.
    const bool is_other_word = word.size() <= 3 && word.size() == candidate.size() && distance > 0;
    if (distance > best_distance || is_other_word) continue;
    if (best && distance == best_distance && common_prefix <= best_prefix) continue;
    best = candidate;
    best_distance = distance;
    best_prefix = common_prefix;
  }
  return best;
}

std::string did_you_mean(std::string_view word, std::span<const std::string> candidates) {
  const auto suggestion = nearest(word, candidates);
  return suggestion ? fmt::format(" (did you mean \"{}\"?)", *suggestion) : "";
}

std::string join(std::span<const std::string> parts, std::string_view separator) {
  return fmt::format("{}", fmt::join(parts, separator));
}

std::string prefix_if_any(std::string_view prefix, std::string_view text) {
  return text.empty() ? "" : fmt::format("{}{}", prefix, text);
}

void append_item(std::string& list, std::string_view separator, std::string_view item) {
  if (!list.empty()) list += separator;
  list += item;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  std::size_t from = 0;
  for (;;) {
    const std::size_t to = text.find(separator, from);
    parts.emplace_back(text.substr(from, to - from));
    if (to == std::string_view::npos) return parts;
    from = to + 1;
  }
}

// Splits text into lines without their "\n" or "\r\n".
std::vector<std::string> lines(std::string_view text) {
  std::vector<std::string> result = split(text, '\n');
  if (!result.empty() && result.back().empty()) result.pop_back();
  for (std::string& line : result) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
  }
  return result;
}

std::vector<std::string> last_lines(std::string_view text, std::size_t max_lines) {
  std::vector<std::string> last = lines(text);
  std::erase_if(last, [](const std::string& line) { return trim(line).empty(); });
  if (last.size() > max_lines)
    last.erase(last.begin(), last.end() - static_cast<std::ptrdiff_t>(max_lines));
  return last;
}

std::string first_line(std::string_view text) {
  return std::string(text.substr(0, text.find('\n')));
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view k_space = " \t\r\n\v\f";
  const std::size_t from = text.find_first_not_of(k_space);
  if (from == std::string_view::npos) return {};
  return text.substr(from, text.find_last_not_of(k_space) - from + 1);
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

// Makes text safe to show: drops control characters and ANSI escape sequences, shows hidden
// characters as "<U+200B>".
std::string printable(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (std::size_t next = 0; next < text.size();) {
    const std::size_t begin = next;
    const char32_t point = next_code_point(text, next);
    if (point == 0x1B) {  // drop the complete ANSI sequence, not only its first byte
      if (next < text.size() && text[next] == '[') {
        ++next;
        while (next < text.size() && !(text[next] >= '@' && text[next] <= '~')) ++next;
        if (next < text.size()) ++next;
      }
    } else if (point == 0xFFFD) {
      result += "\xEF\xBF\xBD";
    } else if (point >= 0x80 && is_hidden(point)) {
      result += fmt::format("<U+{:04X}>", static_cast<unsigned>(point));
    } else if (!is_control(point)) {
      result.append(text.substr(begin, next - begin));
    }
  }
  return result;
}

// Makes text safe to print in CI: breaks up what a runner would take as a command, such as
// "::error".
std::string neutralize_ci_commands(std::string_view text) {
  constexpr std::string_view k_line_command = "::";
  constexpr std::pair<std::string_view, std::string_view> k_commands[] = {
      {k_line_command, "\u2237"}, {"##[", "##("}, {"##vso[", "##vso("}};
  std::string safe;
  safe.reserve(text.size());
  bool at_line_start = true;  // the line has only had white space so far
  for (std::size_t next = 0; next < text.size();) {
    const std::size_t begin = next;
    const auto* command = find_first(k_commands, [&](const auto& entry) {
      return text.substr(begin).starts_with(entry.first) &&
             (at_line_start || entry.first != k_line_command);
    });
    if (command != nullptr) {
      safe += command->second;
      next += command->first.size();
      at_line_start = false;
      continue;
    }
    const char32_t point = next_code_point(text, next);
    at_line_start = point == '\n' || point == '\r' || (at_line_start && is_white_space(point));
    safe.append(text.substr(begin, next - begin));
  }
  return safe;
}

bool has_form(std::string_view text, std::string_view form) {
  return std::ranges::equal(text, form,
                            [](char c, char f) { return f == '0' ? is_digit(c) : c == f; });
}

std::string shortened(std::string text, std::size_t max_bytes) {
  if (text.size() <= max_bytes) return text;
  std::size_t cut = max_bytes;
  while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xC0U) == 0x80U) --cut;
  return text.substr(0, cut) + "…";
}

std::size_t columns(std::string_view utf8) {
  return static_cast<std::size_t>(std::ranges::count_if(
      utf8, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

bool is_hex(std::string_view text) {
  return text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

bool is_commit(std::string_view text) {
  return (text.size() == 40 || text.size() == 64) && is_hex(text);
}

bool has_only_digits(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, is_digit);
}

bool equal_ignoring_case(std::string_view a, std::string_view b) { return lower(a) == lower(b); }

bool matches_any(std::span<const std::string> globs, std::string_view name) {
  return globs.empty() || std::ranges::any_of(globs, [&](const std::string& glob) {
           return glob_match(glob, name);
         });
}

std::string plural(std::size_t number, std::string_view singular, std::string_view many) {
  if (number == 1) return fmt::format("1 {}", singular);
  return many.empty() ? fmt::format("{} {}s", number, singular)
                      : fmt::format("{} {}", number, many);
}

std::string short_commit(std::string_view commit, std::size_t digits) {
  return std::string(commit.substr(0, digits));
}

std::optional<double> to_double(std::string_view text) {
  const auto value = parse_number<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

std::optional<long long> to_int(std::string_view text) { return parse_number<long long>(text); }

std::string shell_word(std::string_view word) {
  const bool is_plain =
      !word.empty() && word.find_first_not_of(
                           "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                           "-_./=:,@%+") == std::string_view::npos;
  if (is_plain) return std::string(word);
  std::string result = "'";
  for (const char c : word) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

std::string shell_line(std::span<const std::string> words) {
  return join(collect<std::string>(words, shell_word), " ");
}

}  // namespace weir::text
