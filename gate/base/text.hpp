// Small text helpers shared by every module. Pure.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weir::text {

// True for ASCII digits, in any locale.
[[nodiscard]] constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
[[nodiscard]] constexpr bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
[[nodiscard]] constexpr bool is_alphanumeric(char c) { return is_letter(c) || is_digit(c); }

// Matches `name` against a pattern in which '*' stands for any run of characters ('/' included).
// Case matters. Linear in the product of the lengths, no recursion.
[[nodiscard]] bool glob_match(std::string_view pattern, std::string_view name);

// The member of `candidates` nearest to `word` (edit distance at most 3 and less than half its
// length), ignoring case; nothing when none is near.
[[nodiscard]] std::optional<std::string> nearest(std::string_view word,
                                                 std::span<const std::string> candidates);
// " (did you mean \"vulkan\"?)" or "".
[[nodiscard]] std::string did_you_mean(std::string_view word,
                                       std::span<const std::string> candidates);

[[nodiscard]] std::string join(std::span<const std::string> parts,
                               std::string_view separator = ", ");
// Returns the prefix and the text; "" for an empty text.
[[nodiscard]] std::string prefix_if_any(std::string_view prefix, std::string_view text);
// Appends an item to a list that is one text, after a separator unless the list is empty.
void append_item(std::string& list, std::string_view separator, std::string_view item);
[[nodiscard]] std::vector<std::string> split(std::string_view text, char separator);
[[nodiscard]] std::vector<std::string> lines(std::string_view text);
// The last lines, at most `max_lines`, that are not blank.
[[nodiscard]] std::vector<std::string> last_lines(std::string_view text, std::size_t max_lines);
// Up to its first '\n'.
[[nodiscard]] std::string first_line(std::string_view text);
[[nodiscard]] std::string_view trim(std::string_view text);
[[nodiscard]] std::string lower(std::string_view text);
// The code point of UTF-8 at `at` (< size), which moves behind it; by one byte, with U+FFFD, where
// there is none.
[[nodiscard]] char32_t next_code_point(std::string_view text, std::size_t& at);

// Returns the text as UTF-8 without byte-order marks; nothing if it is that already. UTF-16 of
// either byte order is known by its mark, or by the zero bytes of its first two characters. A mark
// also begins lines of files that were joined. Bytes that are no UTF-8 are taken for Windows-1252,
// so that different names stay different.
[[nodiscard]] std::optional<std::string> decoded(std::string_view text);

// Makes hostile text fit to show: invalid UTF-8 becomes U+FFFD, control characters (ANSI escapes,
// carriage returns) are removed, what cannot be seen but reorders or hides text (bidirectional
// overrides, characters of no width, separators of lines) reads "<U+202E>"; '\n' and '\t' stay.
[[nodiscard]] std::string printable(std::string_view text);
// A word so that a shell hands it on unchanged, quoted only where it must be. weir itself uses
// none: this is for commands that are shown or written for people.
[[nodiscard]] std::string shell_word(std::string_view word);
// Words as one line of a shell.
[[nodiscard]] std::string shell_line(std::span<const std::string> words);

// CI systems read commands out of logs: GitHub takes "::" at the start of a line (white space
// before it, of any kind, does not count), Azure and GitHub take "##[" and "##vso[". No line of
// what comes back holds one; what stands in its place is no wider.
[[nodiscard]] std::string neutralize_ci_commands(std::string_view text);

// Digits where `form` has a '0', and else the same characters.
[[nodiscard]] bool has_form(std::string_view text, std::string_view form);

// Its first `max_bytes` bytes at most, and "…" where that is not all: not cut within a character.
[[nodiscard]] std::string shortened(std::string text, std::size_t max_bytes);

// The width of UTF-8 text in terminal columns, one a code point (enough for what weir prints).
[[nodiscard]] std::size_t columns(std::string_view utf8);

// True if all characters are lower-case hexadecimal digits.
[[nodiscard]] bool is_hex(std::string_view text);
// True for the whole name of a commit: SHA-1 or SHA-256 in lower-case hexadecimal digits.
[[nodiscard]] bool is_commit(std::string_view text);
// True for one digit or more and nothing else.
[[nodiscard]] bool has_only_digits(std::string_view text);
// Compares ASCII letters without their case.
[[nodiscard]] bool equal_ignoring_case(std::string_view a, std::string_view b);
// True if a glob matches the name, or if there is no glob.
[[nodiscard]] bool matches_any(std::span<const std::string> globs, std::string_view name);

// "1 cell", "3 cells"; `many` is for words whose plural has no "s" at its end.
[[nodiscard]] std::string plural(std::size_t number, std::string_view singular,
                                 std::string_view many = "");
// The first digits of a commit's name: seven, as git shows them.
[[nodiscard]] std::string short_commit(std::string_view commit, std::size_t digits = 7);

// A finite decimal number filling the whole text; nothing otherwise (also for "nan", "inf", "").
[[nodiscard]] std::optional<double> to_double(std::string_view text);
[[nodiscard]] std::optional<long long> to_int(std::string_view text);

}  // namespace weir::text
