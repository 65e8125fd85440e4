#include "gate/base/ending.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <set>

#include "gate/base/text.hpp"

namespace weir::text {
namespace {

// "#4 0x7f… in ggml_abort ()", "a.so(ggml_abort+0x15c) [0x7f…]", "a.zig:12:3: 0x1 in f (a)".
bool is_frame(std::string_view line) {
  return line.starts_with('#') || line.find("[0x") != std::string_view::npos ||
         line.find(": 0x") != std::string_view::npos;
}

// "a.cpp:12", as compilers, asserts and traces write it.
bool names_place(std::string_view line) {
  const std::size_t colon = line.find(':');
  return colon != std::string_view::npos && colon + 1 < line.size() && is_digit(line[colon + 1]);
}

}  // namespace

bool gives_reason(std::string_view line) {
  constexpr std::array k_words{"panic",     "error",     "assert",       "abort",
                               "exception", "terminate", "out of memory"};
  const std::string low = lower(line);
  const auto holds = [&](const char* word) { return low.find(word) != std::string::npos; };
  return !is_frame(trim(line)) && !holds("warn") && std::ranges::any_of(k_words, holds);
}

std::size_t keep_end(std::vector<std::string>& lines, std::size_t most) {
  constexpr std::size_t k_most_reasons = 3;
  if (lines.size() <= most) return 0;
  const std::size_t cut = lines.size() - most;
  std::set<std::size_t> kept;
  std::size_t reasons = 0;
  for (std::size_t i = 0; i < cut && reasons < k_most_reasons; ++i) {
    const bool source_of_frame = i > 0 && is_frame(lines[i - 1]);
    if (!gives_reason(lines[i]) || kept.contains(i) || source_of_frame) continue;
    ++reasons;
    kept.insert(i);
    // Zig's panics are followed by their place, Rust's by their message.
    const bool more = lines[i].ends_with(':') || (is_frame(lines[i + 1]) && !names_place(lines[i]));
    if (more && i + 1 < cut) kept.insert(i + 1);
  }
  std::vector<std::string> end;
  for (const std::size_t i : kept) end.push_back(std::move(lines[i]));
  std::move(lines.begin() + static_cast<std::ptrdiff_t>(cut), lines.end(), std::back_inserter(end));
  lines = std::move(end);
  return kept.size();
}

}  // namespace weir::text
