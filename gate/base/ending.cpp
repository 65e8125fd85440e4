// Shortens an engine's output to its end, and keeps lines that give a reason.
#include "gate/base/ending.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <set>

#include "gate/base/text.hpp"

namespace weir::text {
namespace {

// Returns true for lines of a backtrace: "#4 0x7f… in ggml_abort ()",
// "a.so(ggml_abort+0x15c) [0x7f…]", "a.zig:12:3: 0x1 in f (a)", "File "a.py", line 12, in f". The
// next line may be a line of the source.
bool is_frame(std::string_view line) {
  return line.starts_with('#') || trim(line).starts_with("File \"") ||
         line.find("[0x") != std::string_view::npos || line.find(": 0x") != std::string_view::npos;
}

// Returns true if the line names a place like "a.cpp:12".
bool names_place(std::string_view line) {
  const std::size_t colon = line.find(':');
  return colon != std::string_view::npos && colon + 1 < line.size() && is_digit(line[colon + 1]);
}

}  // namespace

bool gives_reason(std::string_view line) {
  constexpr std::array k_reason_words{"panic",     "error",     "assert",       "abort",
                                      "exception", "terminate", "out of memory"};
  const std::string lower_line = lower(line);
  const auto holds = [&](const char* word) { return lower_line.find(word) != std::string::npos; };
  return !is_frame(trim(line)) && !holds("warn") && std::ranges::any_of(k_reason_words, holds);
}

// Keeps the last `max_lines` lines, and up to three earlier ones that give a reason, such as
// "error:". Returns how many earlier lines it kept.
std::size_t keep_last_lines(std::vector<std::string>& lines, std::size_t max_lines) {
  constexpr std::size_t k_max_reasons = 3;
  if (lines.size() <= max_lines) return 0;
  const std::size_t first_kept = lines.size() - max_lines;
  std::set<std::size_t> earlier_kept;
  std::size_t reason_count = 0;
  for (std::size_t i = 0; i < first_kept && reason_count < k_max_reasons; ++i) {
    const bool is_frame_source = i > 0 && is_frame(lines[i - 1]);
    if (!gives_reason(lines[i]) || earlier_kept.contains(i) || is_frame_source) continue;
    ++reason_count;
    earlier_kept.insert(i);
    // Zig prints a panic's place on the next line, Rust its message.
    const bool needs_next =
        lines[i].ends_with(':') || (is_frame(lines[i + 1]) && !names_place(lines[i]));
    if (needs_next && i + 1 < first_kept) earlier_kept.insert(i + 1);
  }
  std::vector<std::string> kept_lines;
  for (const std::size_t i : earlier_kept) kept_lines.push_back(std::move(lines[i]));
  std::move(lines.begin() + static_cast<std::ptrdiff_t>(first_kept), lines.end(),
            std::back_inserter(kept_lines));
  lines = std::move(kept_lines);
  return earlier_kept.size();
}

}  // namespace weir::text
