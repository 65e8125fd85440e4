// Scans one event of a Chrome trace in its JSON text.
#include "gate/adapters/chrome_event.hpp"

#include <bit>
#include <cstring>

#include "gate/adapters/json_pieces.hpp"
#include "gate/adapters/printed.hpp"
#include "gate/base/text.hpp"

namespace weir::adapters {
namespace {

constexpr std::size_t k_deepest_value = JsonPieceLimits{}.depth;
constexpr std::size_t k_max_numbers = 1000;
constexpr std::size_t k_longest_event = JsonPieceLimits{}.piece_bytes;

bool is_json_space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

// True for bytes of a text that need no attention: neither its end, an escape, a control character
// (which JSON forbids) nor part of a longer UTF-8 sequence.
constexpr std::array<bool, 256> k_plain = [] {
  std::array<bool, 256> plain{};
  for (std::size_t c = 0x20; c < 0x80; ++c) plain[c] = c != '"' && c != '\\';
  return plain;
}();

constexpr std::uint64_t k_ones = 0x0101010101010101;
constexpr std::uint64_t k_highs = k_ones * 0x80;

std::uint64_t eight_bytes(const char* at) {
  std::uint64_t bytes = 0;
  std::memcpy(&bytes, at, sizeof bytes);
  if constexpr (std::endian::native == std::endian::big) bytes = __builtin_bswap64(bytes);
  return bytes;
}

// Returns how many of eight bytes come before the first marked one, from the lowest on.
std::size_t bytes_before_mark(std::uint64_t marks) {
  return static_cast<std::size_t>(std::countr_zero(marks)) / 8;
}

// Marks (with high bits) bytes that are not plain: at least 0x80; below 0x20; '"' or '\\' (zero
// after the xor). "Bit Twiddling Hacks", S. E. Anderson, "Determine if a word has a byte less than
// n". A borrow may mark bytes above one that is not plain, never one below it.
std::uint64_t mark_special(std::uint64_t bytes) {
  const std::uint64_t quotes = bytes ^ (k_ones * '"');
  const std::uint64_t escapes = bytes ^ (k_ones * '\\');
  return (bytes | (bytes - k_ones * 0x20) | (quotes - k_ones) | (escapes - k_ones)) & k_highs;
}

// Marks bytes that are no digits. Digits are 0 to 9 after the xor, and with 0x76 still below 0x80.
std::uint64_t mark_non_digits(std::uint64_t bytes) {
  const std::uint64_t digits = bytes ^ (k_ones * '0');
  return (digits | (digits + k_ones * 0x76)) & k_highs;
}

// Returns a short text as one number, which is quicker to compare. 0 for an empty text and for more
// than seven bytes.
constexpr std::uint64_t text_code(std::string_view text) {
  if (text.size() > 7) return 0;
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    number |= std::uint64_t{static_cast<unsigned char>(text[i])} << (8 * i);
  }
  return number;
}

// Scans the event at the beginning of a text. All steps return false at the first thing that a
// parser should decide.
class Scanner {
 public:
  Scanner(std::string_view text, bool written)
      : is_written_(written),
        begin_(text.data()),
        at_(begin_),
        end_(begin_ + std::min(text.size(), k_longest_event)) {}

  // Returns the length of the event's text; 0 if a parser should read it.
  std::size_t event(ChromeEvent& event) {
    const bool is_complete = members([&](std::string_view key) {
      event.empty = false;
      const std::uint64_t code = key_code(key);
      const bool is_args = code == text_code("args") && at_ < end_ && *at_ == '{';
      return is_args ? args(event) : member(code, event);
    });
    return is_complete ? static_cast<std::size_t>(at_ - begin_) : 0;
  }

 private:
  enum class Type { text, number, other };

  // A member that is kept, and the last type (in the order of Type) that it may have. With another
  // type it counts as absent.
  struct Member {
    std::uint64_t key;
    std::string_view ChromeEvent::*part;
    Type last;
  };
  static constexpr Member k_members[] = {{text_code("ph"), &ChromeEvent::phase, Type::text},
                                         {text_code("ts"), &ChromeEvent::at, Type::number},
                                         {text_code("dur"), &ChromeEvent::length, Type::number},
                                         {text_code("pid"), &ChromeEvent::pid, Type::other},
                                         {text_code("tid"), &ChromeEvent::tid, Type::other},
                                         {text_code("cat"), &ChromeEvent::category, Type::text},
                                         {text_code("name"), &ChromeEvent::name, Type::text},
                                         {text_code("id"), &ChromeEvent::id, Type::other},
                                         {text_code("id2"), &ChromeEvent::id2, Type::other}};

  // Usually there is no blank, or one.
  [[gnu::always_inline]] void skip_blanks() {
    if (at_ == end_ || !is_json_space(*at_)) return;
    ++at_;
    if (at_ < end_ && is_json_space(*at_)) skip_more_blanks();
  }
  [[gnu::noinline]] void skip_more_blanks() {
    while (at_ < end_ && is_json_space(*at_)) ++at_;
  }

  bool take(char c) {
    if (at_ == end_ || *at_ != c) return false;
    ++at_;
    return true;
  }

  // Takes a list between brackets, separated by commas; `take_item` takes each item.
  template <class TakeItem>
  bool items(char open, char close, const TakeItem& take_item) {
    if (!take(open)) return false;
    skip_blanks();
    if (take(close)) return true;
    for (;;) {
      if (!take_item()) return false;
      skip_blanks();
      if (take(close)) return true;
      if (!take(',')) return false;
      skip_blanks();
    }
  }
  // Takes an object; `take_member` takes the value of each member.
  template <class TakeMember>
  bool members(const TakeMember& take_member) {
    return items('{', '}', [&] {
      const char* key = at_;
      // An escape in a key hides its name. weir itself writes none in names that matter.
      if (!text()) return false;
      const std::string_view name(key + 1, static_cast<std::size_t>(at_ - key) - 2);
      if (!is_written_ && !is_plain_ && name.find('\\') != std::string_view::npos) return false;
      skip_blanks();
      if (!take(':')) return false;
      skip_blanks();
      return take_member(name);
    });
  }

  // Returns text_code(key), in one step if eight bytes may be read.
  [[nodiscard]] std::uint64_t key_code(std::string_view key) const {
    if (end_ - key.data() < 8 || key.size() > 7) return text_code(key);
    return eight_bytes(key.data()) & ((std::uint64_t{1} << (8 * key.size())) - 1);
  }

  // Takes the value of a member of the event. `key` is its text_code.
  bool member(std::uint64_t key, ChromeEvent& event) {
    const char* from = at_;
    Type type{};
    if (!value(1, type)) return false;
    const std::string_view value_text(from, static_cast<std::size_t>(at_ - from));
    if (key == text_code("args")) clear_args(event);
    for (const auto& [name, part, last] : k_members) {
      if (name != key) continue;
      event.*part = type <= last ? value_text : std::string_view();
      break;
    }
    return true;
  }

  static void clear_args(ChromeEvent& event) {
    event.has_args = false;
    event.args = 0;
    event.numbers.clear();
    event.args_name = {};
    event.shape = {};
    event.bytes = {};
  }

  // Takes the object "args" of the event.
  bool args(ChromeEvent& event) {
    clear_args(event);
    event.has_args = true;
    return members([&](std::string_view key) {
      ++event.args;
      const char* from = at_;
      Type type{};
      if (!value(2, type)) return false;
      const std::string_view value_text(from, static_cast<std::size_t>(at_ - from));
      if (type == Type::number && event.numbers.size() < k_max_numbers) {
        event.numbers.push_back({{key.data() - 1, key.size() + 2}, value_text});
      }
      const std::uint64_t code = key_code(key);
      const auto text = type == Type::text ? value_text : std::string_view();
      if (code == text_code("name")) event.args_name = text;
      if (code == text_code("shape")) event.shape = text;
      if (code == text_code("bytes")) event.bytes = type == Type::other ? text : value_text;
      return true;
    });
  }

  // Takes any value. `depth` is the number of brackets around it.
  bool value(std::size_t depth, Type& type) {
    if (at_ == end_) return false;
    type = Type::other;
    if (depth >= k_deepest_value && (*at_ == '{' || *at_ == '[')) return false;
    switch (*at_) {
      case '"':
        type = Type::text;
        return text();
      case '{': {
        Type inner{};
        return members([&](std::string_view) { return value(depth + 1, inner); });
      }
      case '[': {
        Type inner{};
        return items('[', ']', [&] { return value(depth + 1, inner); });
      }
      case 't':
        return word("true");
      case 'f':
        return word("false");
      case 'n':
        return word("null");
      default:
        type = Type::number;
        return number();
    }
  }

  bool word(std::string_view word) {
    if (!std::string_view(at_, static_cast<std::size_t>(end_ - at_)).starts_with(word))
      return false;
    at_ += word.size();
    return true;
  }

  void skip_plain() {
    while (end_ - at_ >= 8) {
      const std::uint64_t marks = mark_special(eight_bytes(at_));
      if (marks != 0) {
        at_ += bytes_before_mark(marks);
        return;
      }
      at_ += 8;
    }
    while (at_ < end_ && k_plain[static_cast<unsigned char>(*at_)]) ++at_;
  }

  [[gnu::always_inline]] bool text() {
    const char* from = at_;
    if (!take('"')) return false;
    skip_plain();
    is_plain_ = take('"');
    return is_plain_ || check_text(from);
  }
  // Takes the rest of a text that begins at `from`. Escapes and non-ASCII bytes are checked by a
  // parser.
  [[gnu::noinline]] bool check_text(const char* from) {
    for (; at_ < end_ && *at_ != '"'; skip_plain()) at_ += *at_ == '\\' ? 2 : 1;
    if (at_ >= end_) return false;
    ++at_;
    return parse_json({from, static_cast<std::size_t>(at_ - from)}).has_value();
  }

  std::size_t digits() {
    const char* from = at_;
    while (end_ - at_ >= 8) {
      const std::uint64_t marks = mark_non_digits(eight_bytes(at_));
      if (marks != 0) {
        at_ += bytes_before_mark(marks);
        return static_cast<std::size_t>(at_ - from);
      }
      at_ += 8;
    }
    while (at_ < end_ && text::is_digit(*at_)) ++at_;
    return static_cast<std::size_t>(at_ - from);
  }

  // Takes a number. Numbers of a size that may not fit a double are checked by a parser.
  bool number() {
    const char* from = at_;
    take('-');
    const bool begins_with_zero = at_ < end_ && *at_ == '0';
    const std::size_t integer_digits = digits();
    if (integer_digits == 0 || (begins_with_zero && integer_digits > 1)) return false;
    if (take('.') && digits() == 0) return false;
    std::size_t exponent = 1;
    if (at_ < end_ && (*at_ == 'e' || *at_ == 'E')) {
      ++at_;
      if (!take('-')) take('+');
      exponent = digits();
    }
    if (exponent == 0 || at_ == end_) return false;  // at the text's end the number may go on
    const std::string_view number(from, static_cast<std::size_t>(at_ - from));
    return (exponent <= 2 && number.size() <= 64) || parse_json(number).has_value();
  }

  bool is_written_;  // the text was written by dump_json
  const char* begin_;
  const char* at_;
  const char* end_;
  bool is_plain_ = true;  // the last text had plain bytes only
};

bool is_text(std::string_view value) { return value.size() >= 2 && value.front() == '"'; }

// Parses digits with an optional point, as times are. Digits up to 2^53 and their power of ten are
// exact, so the quotient is the nearest double (Clinger, PLDI 1990). Nothing for other numbers.
std::optional<double> parse_plain_number(std::string_view value) {
  constexpr double k_powers[] = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
  if (value.size() > 16 || value.empty() || !text::is_digit(value[0])) return std::nullopt;
  std::uint64_t digits = 0;
  std::size_t decimals = 0;
  bool has_point = false;
  for (const char c : value) {
    if (c == '.' && !has_point) {
      has_point = true;
      continue;
    }
    if (!text::is_digit(c)) return std::nullopt;
    digits = 10 * digits + static_cast<std::uint64_t>(c - '0');
    if (has_point) ++decimals;
  }
  if (digits > std::uint64_t{1} << 53) return std::nullopt;
  return static_cast<double>(digits) / k_powers[decimals];
}

// Returns the text within the quotes, without escapes.
std::string unescape(std::string_view value) {
  const std::string_view within = value.substr(1, value.size() - 2);
  if (within.find('\\') == std::string_view::npos) return std::string(within);
  const auto parsed = parse_json(value);
  return parsed && parsed->is_string() ? parsed->get<std::string>() : std::string(within);
}

}  // namespace

void ChromeEvent::clear() {
  auto memory = std::move(numbers);
  memory.clear();
  *this = {};
  numbers = std::move(memory);  // keeps its capacity
}

std::size_t scan_chrome_event(std::string_view text, ChromeEvent& event, bool written) {
  event.clear();
  return Scanner(text, written).event(event);
}

std::optional<std::string> event_text(std::string_view value) {
  if (!is_text(value)) return std::nullopt;
  return display_text(unescape(value));
}

std::optional<double> event_number(std::string_view value) {
  if (const auto number = parse_plain_number(value)) return number;
  return text::to_double(is_text(value) ? unescape(value) : value);
}

std::string event_id(std::string_view value) {
  if (value.empty() || value == "null") return "";
  if (is_text(value)) return display_text(unescape(value), 100);
  if (value.size() <= 18 && std::all_of(value.begin(), value.end(), text::is_digit))
    return std::string(value);
  const auto parsed = parse_json(value);
  return parsed ? dump_json(*parsed).substr(0, 100) : "";
}

}  // namespace weir::adapters
