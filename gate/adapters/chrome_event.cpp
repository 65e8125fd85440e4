#include "gate/adapters/chrome_event.hpp"

#include <bit>
#include <cstring>

#include "gate/adapters/json_pieces.hpp"
#include "gate/adapters/printed.hpp"
#include "gate/base/text.hpp"

namespace weir::adapters {
namespace {

constexpr std::size_t k_deepest_value = JsonPieceLimits{}.depth;
constexpr std::size_t k_most_numbers = 1000;
constexpr std::size_t k_longest_event = JsonPieceLimits{}.piece_bytes;

bool json_space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

// Bytes of a text that stand for themselves: neither its end, an escape, a control character (which
// JSON forbids) nor a part of a longer UTF-8 sequence.
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

// How many of eight bytes come before the first that is marked, the lowest one.
std::size_t before_mark(std::uint64_t marks) {
  return static_cast<std::size_t>(std::countr_zero(marks)) / 8;
}

// Marks (with high bits) bytes that are not plain: at least 0x80; below 0x20; '"' or '\\' (zero
// after the xor). "Bit Twiddling Hacks", S. E. Anderson, "Determine if a word has a byte less than
// n". A borrow may mark bytes above one that is not plain, never one below it.
std::uint64_t not_plain(std::uint64_t bytes) {
  const std::uint64_t quotes = bytes ^ (k_ones * '"');
  const std::uint64_t escapes = bytes ^ (k_ones * '\\');
  return (bytes | (bytes - k_ones * 0x20) | (quotes - k_ones) | (escapes - k_ones)) & k_highs;
}

// The same for what is no digit: those are 0 to 9 after the xor, and with 0x76 still below 0x80.
std::uint64_t no_digits(std::uint64_t bytes) {
  const std::uint64_t digits = bytes ^ (k_ones * '0');
  return (digits | (digits + k_ones * 0x76)) & k_highs;
}

// A short text as one number: quicker to compare. Of none and of more than seven bytes it is 0.
constexpr std::uint64_t short_text(std::string_view text) {
  if (text.size() > 7) return 0;
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    number |= std::uint64_t{static_cast<unsigned char>(text[i])} << (8 * i);
  }
  return number;
}

class Scanner {
 public:
  Scanner(std::string_view text, bool written)
      : written_(written),
        begin_(text.data()),
        at_(begin_),
        end_(begin_ + std::min(text.size(), k_longest_event)) {}

  std::size_t event(ChromeEvent& event) {
    const bool whole = members([&](std::string_view key) {
      event.empty = false;
      const std::uint64_t code = code_of(key);
      const bool is_args = code == short_text("args") && at_ < end_ && *at_ == '{';
      return is_args ? args(event) : member(code, event);
    });
    return whole ? static_cast<std::size_t>(at_ - begin_) : 0;
  }

 private:
  enum class Type { text, number, other };

  // What is kept of an event, up to that type: of a later one it is as if it were not there.
  struct Member {
    std::uint64_t key;
    std::string_view ChromeEvent::*part;
    Type last;
  };
  static constexpr Member k_members[] = {{short_text("ph"), &ChromeEvent::phase, Type::text},
                                         {short_text("ts"), &ChromeEvent::at, Type::number},
                                         {short_text("dur"), &ChromeEvent::length, Type::number},
                                         {short_text("pid"), &ChromeEvent::pid, Type::other},
                                         {short_text("tid"), &ChromeEvent::tid, Type::other},
                                         {short_text("cat"), &ChromeEvent::category, Type::text},
                                         {short_text("name"), &ChromeEvent::name, Type::text},
                                         {short_text("id"), &ChromeEvent::id, Type::other},
                                         {short_text("id2"), &ChromeEvent::id2, Type::other}};

  // Mostly there is none or one.
  [[gnu::always_inline]] void blanks() {
    if (at_ == end_ || !json_space(*at_)) return;
    ++at_;
    if (at_ < end_ && json_space(*at_)) more_blanks();
  }
  [[gnu::noinline]] void more_blanks() {
    while (at_ < end_ && json_space(*at_)) ++at_;
  }

  bool take(char c) {
    if (at_ == end_ || *at_ != c) return false;
    ++at_;
    return true;
  }

  // What stands between brackets, parted by commas; `take_one` takes each. False where anything is
  // not as it should be.
  template <class TakeOne>
  bool items(char open, char close, const TakeOne& take_one) {
    if (!take(open)) return false;
    blanks();
    if (take(close)) return true;
    for (;;) {
      if (!take_one()) return false;
      blanks();
      if (take(close)) return true;
      if (!take(',')) return false;
      blanks();
    }
  }
  // An object; `take_member` takes each value.
  template <class TakeMember>
  bool members(const TakeMember& take_member) {
    return items('{', '}', [&] {
      const char* key = at_;
      // An escape in a key hides its name, but not where weir wrote it: no name needs one.
      if (!text()) return false;
      const std::string_view name(key + 1, static_cast<std::size_t>(at_ - key) - 2);
      if (!written_ && !plain_ && name.find('\\') != std::string_view::npos) return false;
      blanks();
      if (!take(':')) return false;
      blanks();
      return take_member(name);
    });
  }

  // short_text of a key, in one step where eight bytes may be read.
  [[nodiscard]] std::uint64_t code_of(std::string_view key) const {
    if (end_ - key.data() < 8 || key.size() > 7) return short_text(key);
    return eight_bytes(key.data()) & ((std::uint64_t{1} << (8 * key.size())) - 1);
  }

  // `key` as short_text.
  bool member(std::uint64_t key, ChromeEvent& event) {
    const char* from = at_;
    Type type{};
    if (!value(1, type)) return false;
    const std::string_view found(from, static_cast<std::size_t>(at_ - from));
    if (key == short_text("args")) clear_args(event);
    for (const auto& [known, part, last] : k_members) {
      if (known != key) continue;
      event.*part = type <= last ? found : std::string_view();
      break;
    }
    return true;
  }

  static void clear_args(ChromeEvent& event) {
    event.has_args = false;
    event.args = 0;
    event.numbers.clear();
    event.args_name = event.shape = event.bytes = {};
  }

  bool args(ChromeEvent& event) {
    clear_args(event);
    event.has_args = true;
    return members([&](std::string_view key) {
      ++event.args;
      const char* from = at_;
      Type type{};
      if (!value(2, type)) return false;
      const std::string_view found(from, static_cast<std::size_t>(at_ - from));
      if (type == Type::number && event.numbers.size() < k_most_numbers) {
        event.numbers.push_back({{key.data() - 1, key.size() + 2}, found});
      }
      const std::uint64_t code = code_of(key);
      const auto text = type == Type::text ? found : std::string_view();
      if (code == short_text("name")) event.args_name = text;
      if (code == short_text("shape")) event.shape = text;
      if (code == short_text("bytes")) event.bytes = type == Type::other ? text : found;
      return true;
    });
  }

  // `depth`: the brackets around it.
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

  void pass_plain() {
    while (end_ - at_ >= 8) {
      const std::uint64_t marks = not_plain(eight_bytes(at_));
      if (marks != 0) {
        at_ += before_mark(marks);
        return;
      }
      at_ += 8;
    }
    while (at_ < end_ && k_plain[static_cast<unsigned char>(*at_)]) ++at_;
  }

  [[gnu::always_inline]] bool text() {
    const char* from = at_;
    if (!take('"')) return false;
    pass_plain();
    plain_ = take('"');
    return plain_ || text_from(from);
  }
  // Escapes and what is not ASCII are a parser's to judge.
  [[gnu::noinline]] bool text_from(const char* from) {
    for (; at_ < end_ && *at_ != '"'; pass_plain()) at_ += *at_ == '\\' ? 2 : 1;
    if (at_ >= end_) return false;
    ++at_;
    return parse_json({from, static_cast<std::size_t>(at_ - from)}).has_value();
  }

  std::size_t digits() {
    const char* from = at_;
    while (end_ - at_ >= 8) {
      const std::uint64_t marks = no_digits(eight_bytes(at_));
      if (marks != 0) {
        at_ += before_mark(marks);
        return static_cast<std::size_t>(at_ - from);
      }
      at_ += 8;
    }
    while (at_ < end_ && text::is_digit(*at_)) ++at_;
    return static_cast<std::size_t>(at_ - from);
  }

  // Those of a size that a double may have trouble with are a parser's to judge.
  bool number() {
    const char* from = at_;
    take('-');
    const bool zero = at_ < end_ && *at_ == '0';
    const std::size_t whole = digits();
    if (whole == 0 || (zero && whole > 1)) return false;
    if (take('.') && digits() == 0) return false;
    std::size_t exponent = 1;
    if (at_ < end_ && (*at_ == 'e' || *at_ == 'E')) {
      ++at_;
      if (!take('-')) take('+');
      exponent = digits();
    }
    if (exponent == 0 || at_ == end_) return false;  // at the end of what is there it may go on
    const std::string_view number(from, static_cast<std::size_t>(at_ - from));
    return (exponent <= 2 && number.size() <= 64) || parse_json(number).has_value();
  }

  bool written_;  // by dump_json
  const char* begin_;
  const char* at_;
  const char* end_;
  bool plain_ = true;  // the last text
};

bool is_text(std::string_view value) { return value.size() >= 2 && value.front() == '"'; }

// Digits and perhaps a point, as times are. Up to 2^53 and their power of ten are exact, so the
// quotient is the nearest double (Clinger, PLDI 1990). Nothing of other numbers.
std::optional<double> plain_number(std::string_view value) {
  constexpr double k_powers[] = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
  if (value.size() > 16 || value.empty() || !text::is_digit(value[0])) return std::nullopt;
  std::uint64_t digits = 0;
  std::size_t after = 0;
  bool point = false;
  for (const char c : value) {
    if (c == '.' && !point) {
      point = true;
      continue;
    }
    if (!text::is_digit(c)) return std::nullopt;
    digits = 10 * digits + static_cast<std::uint64_t>(c - '0');
    after += point ? 1 : 0;
  }
  if (digits > std::uint64_t{1} << 53) return std::nullopt;
  return static_cast<double>(digits) / k_powers[after];
}

// The text within the quotes.
std::string unescaped(std::string_view value) {
  const std::string_view within = value.substr(1, value.size() - 2);
  if (within.find('\\') == std::string_view::npos) return std::string(within);
  const auto parsed = parse_json(value);
  return parsed && parsed->is_string() ? parsed->get<std::string>() : std::string(within);
}

}  // namespace

void ChromeEvent::clear() {
  auto kept = std::move(numbers);
  kept.clear();
  *this = {};
  numbers = std::move(kept);  // its memory
}

std::size_t scan_chrome_event(std::string_view text, ChromeEvent& event, bool written) {
  event.clear();
  return Scanner(text, written).event(event);
}

std::optional<std::string> event_text(std::string_view value) {
  if (!is_text(value)) return std::nullopt;
  return shown_text(unescaped(value));
}

std::optional<double> event_number(std::string_view value) {
  if (const auto number = plain_number(value)) return number;
  return text::to_double(is_text(value) ? unescaped(value) : value);
}

std::string event_id(std::string_view value) {
  if (value.empty() || value == "null") return "";
  if (is_text(value)) return shown_text(unescaped(value), 100);
  if (value.size() <= 18 && std::all_of(value.begin(), value.end(), text::is_digit))
    return std::string(value);
  const auto parsed = parse_json(value);
  return parsed ? dump_json(*parsed).substr(0, 100) : "";
}

}  // namespace weir::adapters
