// Finds the whole number that a group is a part of, and the unit behind it.
#include "gate/adapters/line_number.hpp"

#include <re2/re2.h>

#include "gate/adapters/printed.hpp"
#include "gate/base/find.hpp"
#include "gate/base/text.hpp"

namespace weir::adapters {
namespace {

using re2::StringPiece;

std::string_view view(StringPiece piece) { return {piece.data(), piece.size()}; }
StringPiece piece(std::string_view text) { return {text.data(), text.size()}; }

// Returns the end of `text`, of at most `most` bytes, that begins with a whole character.
std::string_view last_characters(std::string_view text, std::size_t most) {
  if (text.size() <= most) return text;
  text.remove_prefix(text.size() - most);
  while (!text.empty() && (static_cast<unsigned char>(text.front()) & 0xC0) == 0x80)
    text.remove_prefix(1);
  return text;
}

// A mark between digits of one number: a point, a comma, '_', an apostrophe, and characters that
// take no or little room. One plain blank is looked at separately.
const std::string& mark() {
  static const std::string k_mark =
      R"((?:[.,'_\x{2019}\x{00B7}\x{066B}\x{066C}\x{FF0C}\x{FF0E}\x{00A0}\x{2000}-\x{200D}\x{202F})"
      R"(\x{205F}\x{2060}\x{FEFF}]))";
  return k_mark;
}

// Returns how many bytes at the end of `before` continue a number that begins after it; 0: none.
std::size_t count_before(std::string_view before, bool has_columns) {
  static const RE2 k_digit(R"((\p{Nd}|\p{No})$)"), k_mark(R"(\p{Nd}()" + mark() + ")$");
  before = last_characters(before, 8);
  StringPiece part;
  if (RE2::PartialMatch(piece(before), k_digit, &part)) return part.size();
  const bool is_mark = RE2::PartialMatch(piece(before), k_mark, &part);
  return is_mark && !(has_columns && part == ",") ? part.size() : 0;
}

// Returns how many bytes at the beginning of `after` continue a number that ends before it.
std::size_t count_after(std::string_view after, bool has_columns) {
  static const RE2 k_digit(R"(^(\p{Nd}|\p{No}))"), k_mark("^(" + mark() + R"()\p{Nd})");
  StringPiece part;
  if (RE2::PartialMatch(piece(after.substr(0, 8)), k_digit, &part)) return part.size();
  const bool is_mark = RE2::PartialMatch(piece(after.substr(0, 8)), k_mark, &part);
  return is_mark && !(has_columns && part == ",") ? part.size() : 0;
}

// Returns the widest number around `part` in `line`.
std::string_view widen(std::string_view line, std::string_view part, bool has_columns) {
  std::size_t begin = static_cast<std::size_t>(part.data() - line.data());
  std::size_t end = begin + part.size();
  const auto go_back = [&] {
    while (const std::size_t bytes = count_before(line.substr(0, begin), has_columns))
      begin -= bytes;
  };
  go_back();
  // The digits may be an exponent's.
  static const RE2 k_mantissa(R"(([0-9][.]?[eE][-+]?)$)");
  StringPiece mantissa;
  if (RE2::PartialMatch(piece(last_characters(line.substr(0, begin), 8)), k_mantissa, &mantissa)) {
    begin -= mantissa.size();
    go_back();
  }
  while (const std::size_t bytes = count_after(line.substr(end), has_columns)) end += bytes;
  static const RE2 k_exponent(R"(^([eEdD][-+]?[0-9]+))");
  StringPiece exponent;
  if (RE2::PartialMatch(piece(line.substr(end, 24)), k_exponent, &exponent)) end += exponent.size();
  return line.substr(begin, end - begin);
}

// Returns true if what stands before a number may be its thousands and a blank, as in "1 834". A
// name ("pp512 834"), a clock, a date, a fraction or a label ("#1 834") is none.
bool ends_in_thousands(std::string_view before) {
  static const RE2 k_group(R"((?:^|[\s=({<>~|"'\[:≈≤≥])([1-9][0-9]{0,2}(?: [0-9]{3})* )$)");
  static const RE2 k_clock(R"([0-9]:$)");
  before = last_characters(before, 64);
  StringPiece group;
  if (!RE2::PartialMatch(piece(before), k_group, &group)) return false;
  before.remove_suffix(group.size());
  return !RE2::PartialMatch(piece(before), k_clock);
}

// Returns true if `number`, which `after` follows, and blanks may be one: "1 834.0", "12 345".
bool has_blank_in_number(std::string_view before, std::string_view number, std::string_view after,
                         const config::Pattern& pattern) {
  static const RE2 k_last(R"(^[0-9]{3}(?:[.,][0-9]+)?(?:[eE][-+]?[0-9]+)?$)");
  static const RE2 k_first(R"(^[1-9][0-9]{0,2}$)"), k_next(R"(^ [0-9]{3}(?:[^0-9]|$))");
  const bool goes_on_before = !pattern.has_number_before() &&
                              RE2::FullMatch(piece(number), k_last) && ends_in_thousands(before);
  const bool goes_on_after = !pattern.has_number_after() &&
                             RE2::FullMatch(piece(number), k_first) &&
                             RE2::PartialMatch(piece(after.substr(0, 5)), k_next);
  return goes_on_before || goes_on_after;
}

// Returns how many numbers with one comma or blank between stand beside the number.
std::size_t count_columns(std::string_view before, std::string_view after) {
  static const RE2 k_before(R"(([0-9](?:[0-9.eE+-]{0,30})[, ])$)"),
      k_after(R"(^([, ][0-9][0-9.eE+-]{0,30}))");
  constexpr std::size_t k_longest = 32, k_most = 64;
  std::size_t columns = 1;
  StringPiece column;
  while (columns < k_most) {
    const std::string_view end = last_characters(before, k_longest);
    if (!RE2::PartialMatch(piece(end), k_before, &column)) break;
    before.remove_suffix(column.size());
    ++columns;
  }
  while (columns < k_most &&
         RE2::PartialMatch(piece(after.substr(0, k_longest)), k_after, &column)) {
    after.remove_prefix(column.size());
    ++columns;
  }
  return columns;
}

// Returns true if the number is a part of what is printed as one ("1:834", "2 x 834 ms") and the
// match does not contain the rest. `after` begins with the unit.
bool is_joined(std::string_view before, std::string_view number, std::string_view after,
               const config::Pattern::Match& match) {
  static const RE2 k_before(
      R"((?:^|[^A-Za-z0-9_.])[0-9.]+(?:[:;|]| ?[x*\x{00D7}\x{00B7}\x{22C5}] ?)$)");
  static const RE2 k_after(
      R"(^(?::| *[A-Za-z/]*(?: x ?| [+] | ?[*\x{00D7}\x{00B7}\x{22C5}] ?))[0-9])");
  const bool starts_with_number = match.whole.data() >= number.data();
  const bool ends_with_number =
      match.whole.data() + match.whole.size() <= number.data() + number.size();
  const bool is_joined_before =
      starts_with_number && RE2::PartialMatch(piece(last_characters(before, 24)), k_before);
  const bool is_joined_after = RE2::PartialMatch(piece(after.substr(0, 24)), k_after) &&
                               (ends_with_number || !after.starts_with(':'));
  return is_joined_before || is_joined_after;
}

// Returns the unit in the name of a number that ends before it: "ttft [s]: ", "ttft_ms=", "load in
// s: ". "" if there is none.
std::string_view find_unit_in_name(std::string_view before) {
  static const RE2 k_name(
      R"((?:[\[(] ?(\pL+) ?[\])]| in (\pL+)|[A-Za-z0-9]_(\pL+))["']?\s*[:=]?\s*$)");
  static const RE2 k_per(R"([-_ ]per_$)");
  before = last_characters(before, 64);
  StringPiece bracketed, worded, suffix;
  if (!RE2::PartialMatch(piece(before), k_name, &bracketed, &worded, &suffix)) return {};
  if (!bracketed.empty()) return view(bracketed);
  if (!worded.empty()) return view(worded);
  const std::string_view name =
      before.substr(0, static_cast<std::size_t>(suffix.data() - before.data()));
  return RE2::PartialMatch(piece(name), k_per) ? std::string_view() : view(suffix);
}

constexpr std::size_t k_max_unit_bytes = 24;

// Returns the word that directly follows a number, if it may be a unit; "" if not: the name of the
// next number ("min: 3"), or of a thing ("17 syncs").
std::string_view find_unit(std::string_view after) {
  static const RE2 k_word(
      R"(^([\s\x{00A0}\x{2009}\x{202F}]*[-_]?[\[(]?)((?:%|[A-Za-z\x{00B5}\x{03BC}]+)(?:/[A-Za-z\x{00B5}\x{03BC}]+)*)([\s:=-]*.?))");
  static const RE2 k_composed(
      R"([kKMGTPmun]?(?:FLOPS?|flops?|FLOP|Hz|W|J|bits?|bps|ops|OPS)|[kKMG]|thousand|million|billion|.*[/%].*)");
  constexpr std::size_t k_most = 96;
  StringPiece gap, word, rest;
  if (!RE2::PartialMatch(piece(after.substr(0, k_most)), k_word, &gap, &word, &rest)) return {};
  const std::string_view unit = view(word);
  if (unit.size() > k_max_unit_bytes) return {};
  const std::string_view next = view(rest);
  const bool goes_on = !next.empty() && (text::is_alphanumeric(next[0]) || next[0] == '_');
  if (goes_on) return {};
  if (gap.empty()) return unit;
  // "12.5 min: 11", "12.5 min 11", "5 B-tree": the word belongs to what follows.
  const bool is_label = next.starts_with(':') || next.starts_with('=') || next.starts_with(" :") ||
                        next.starts_with(" =") || (next.starts_with('-') && next.size() > 1);
  const bool is_statistic = unit == "min" && text::is_digit(next.back());
  if (is_label || is_statistic) return {};
  // One letter after a blank may be anything ("5 m", "12 h").
  const bool is_known = parse_printed_unit(unit) && unit != "m" && unit != "h" && unit != "d";
  return is_known || RE2::FullMatch(word, k_composed) ? unit : std::string_view();
}

// Returns true if the number is one of several parts of a duration ("1m12.3s", "1 min 12 s"), and
// the part beside it is not 0.
bool is_part_of_duration(std::string_view before, std::string_view number, std::string_view unit,
                         std::string_view after, bool names_unit_before) {
  static const std::string k_long = "d|days?|h|hrs?|hours?|m|mins?|minutes?";
  static const std::string k_short = "s|secs?|seconds?|ms|us";
  static const std::string k_gap = "(?:" + k_long + R"(|s|secs?|seconds?)(?:[\s,+&]|and)*)";
  static const RE2 k_before(R"((?:^|[^0-9.])([0-9]+\s*)()" + k_gap + ")$");
  static const RE2 k_after(R"(^\s*)" + k_gap + R"(([0-9]+)(?:[.][0-9]+)?\s*()" + k_long + "|" +
                           k_short + ")(?:[^A-Za-z/]|$)");
  static const RE2 k_attached("^(?:" + k_long + "|" + k_short + ")[0-9]");
  static const RE2 k_zero(R"([0.\s]*)"), k_per(R"(^\s*[a-z]+\s*per\b)");
  const std::string_view rest = after.substr(0, 64);
  const auto own = parse_printed_unit(unit);
  const bool is_time = own && own->unit == unit::Unit::seconds &&
                       unit.find('/') == std::string_view::npos &&
                       !RE2::PartialMatch(piece(rest), k_per);
  StringPiece value, gap, word;
  if (is_time && RE2::PartialMatch(piece(last_characters(before, 64)), k_before, &value, &gap)) {
    // "avg 12 min 11 s": a pattern that begins with "min" takes the least.
    const bool is_label = names_unit_before && gap.ends_with(" ");
    const std::string_view name = text::trim(view(gap)).substr(0, view(gap).find_first_of(" \t,"));
    const auto other = parse_printed_unit(name);
    if (!RE2::FullMatch(value, k_zero) && !is_label && other && own->factor < other->factor)
      return true;
  }
  if (!text::has_only_digits(number)) return false;
  if (RE2::PartialMatch(piece(rest), k_attached)) return true;
  if (!RE2::PartialMatch(piece(rest), k_after, &value, &word)) return false;
  const auto other = parse_printed_unit(view(word));
  const std::string_view name = text::trim(rest);
  const bool is_statistic = name.starts_with("min ") && word != "s" && !word.starts_with("sec");
  return other && !is_statistic && !RE2::PartialMatch(piece(rest), k_per);
}

}  // namespace

std::optional<unit::Scale> parse_printed_unit(std::string_view word) {
  static const std::map<std::string, std::string_view, std::less<>> k_other_names{
      {"secs", "s"},
      {"second", "s"},
      {"msec", "ms"},
      {"msecs", "ms"},
      {"millis", "ms"},
      {"millisecond", "ms"},
      {"milliseconds", "ms"},
      {"usec", "us"},
      {"usecs", "us"},
      {"micros", "us"},
      {"microsecond", "us"},
      {"microseconds", "us"},
      {"\xCE\xBCs", "us"},
      {"nsec", "ns"},
      {"nsecs", "ns"},
      {"nanos", "ns"},
      {"nanosecond", "ns"},
      {"nanoseconds", "ns"},
      {"m", "min"},
      {"mins", "min"},
      {"minute", "min"},
      {"minutes", "min"},
      {"byte", "B"},
      {"kb", "kB"},
      {"mb", "MB"},
      {"gb", "GB"},
      {"kib", "KiB"},
      {"mib", "MiB"},
      {"gib", "GiB"},
      {"tok/sec", "tok/s"},
      {"toks/s", "tok/s"},
      {"toks/sec", "tok/s"},
      {"token/s", "tok/s"},
      {"token/sec", "tok/s"},
      {"tokens/sec", "tok/s"},
      {"tokens/second", "tok/s"},
      {"tps", "tok/s"},
      {"t/sec", "tok/s"},
      {"req/s", "requests/s"},
      {"reqs/s", "requests/s"},
      {"request/s", "requests/s"},
      {"req/sec", "requests/s"},
      {"requests/sec", "requests/s"},
      {"rps", "requests/s"}};
  static const std::map<std::string, double, std::less<>> k_long{
      {"h", 3600},     {"hr", 3600}, {"hrs", 3600},  {"hour", 3600},
      {"hours", 3600}, {"d", 86400}, {"day", 86400}, {"days", 86400}};
  if (word.empty() || word == "count" || word == "ratio") return std::nullopt;
  if (const auto scale = unit::parse_scale(word)) return scale;
  const std::string lower = text::lower(word);
  if (const double* seconds = look_up(k_long, lower))
    return unit::Scale{unit::Unit::seconds, *seconds};
  if (lower != "m" || word == "m") {
    if (const std::string_view* name = look_up(k_other_names, lower))
      return unit::parse_scale(*name);
  }
  if (word.size() > 1) {
    if (const auto scale = unit::parse_scale(lower)) return scale;
  }
  // "ms/token": milliseconds.
  const std::size_t slash = word.find('/');
  const bool is_composed = slash != std::string_view::npos && slash > 0;
  if (!is_composed || (slash == 1 && word[0] != 's')) return std::nullopt;
  const auto first = parse_printed_unit(word.substr(0, slash));
  return first && first->unit == unit::Unit::seconds ? first : std::nullopt;
}

// Returns the number that a match is the whole or a part of, widened to what the line prints: with
// its sign, its thousands, its unit and the number of columns. Its text is the match alone if that
// is no number. A number that may be read in several ways is marked as ambiguous.
LineNumber find_line_number(std::string_view line, const config::Pattern& pattern,
                            const config::Pattern::Match& match) {
  std::string_view part = match.group;
  LineNumber number{part};
  const bool has_minus = part.starts_with('-');
  if (has_minus) part.remove_prefix(1);
  while (part.ends_with('.')) part.remove_suffix(1);
  static const RE2 k_part("(?:[0-9]|" + mark() + ")*[0-9](?:[eE][-+]?[0-9]+)?");
  if (!RE2::FullMatch(piece(part), k_part)) return number;
  static const RE2 k_list("[0-9.]+(?:,[0-9.]+)+");
  std::string_view whole = widen(line, part, pattern.has_comma());
  const auto before = [&] {
    return line.substr(0, static_cast<std::size_t>(whole.data() - line.data()));
  };
  const auto after = [&] {
    return line.substr(static_cast<std::size_t>(whole.data() - line.data()) + whole.size());
  };
  const bool is_in_list = before().ends_with(',') ||
                          (after().starts_with(',') && after().size() > 1 && after()[1] != ' ');
  const bool is_list =
      RE2::FullMatch(piece(whole), k_list) && (is_in_list || !printed_number(whole));
  if (is_list) whole = widen(line, part, true);
  static const RE2 k_power(R"(^ ?(?:[x*·⋅×]) ?10 ?(?:\^|\*\*|\p{No}|⁻|⁺))");
  static const RE2 k_minus(R"((?:^|[ \t=:(\[])-$)");
  const bool names_unit_before =
      match.whole.data() < whole.data() && !text::is_digit(match.whole.front());
  number.unit = find_unit(after());
  number.unit_in_name = find_unit_in_name(before());
  number.columns = count_columns(before(), after());
  number.is_part_of_duration =
      is_part_of_duration(before(), whole, number.unit, after(), names_unit_before);
  static const RE2 k_plain("[0-9]*[.]?[0-9]+[.]?(?:[eE][-+]?[0-9]+)?");
  number.is_ambiguous = !RE2::FullMatch(piece(whole), k_plain) ||
                        has_blank_in_number(before(), whole, after(), pattern) ||
                        is_joined(before(), whole, after(), match) ||
                        RE2::PartialMatch(piece(after().substr(0, 24)), k_power);
  number.text = whole;
  const bool is_negative =
      before().ends_with('-') &&
      (has_minus || RE2::PartialMatch(piece(last_characters(before(), 2)), k_minus));
  if (is_negative) number.text = line.substr(before().size() - 1, whole.size() + 1);
  return number;
}

}  // namespace weir::adapters
