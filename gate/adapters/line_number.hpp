// A number that a pattern found in a line, as a whole and with its unit. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "gate/config/pattern.hpp"
#include "gate/unit/metric.hpp"

namespace weir::adapters {

// A number in a line. The views are into the line.
struct LineNumber {
  std::string_view text;               // with sign and exponent
  std::string_view unit = {};          // the word that directly follows: "ms", "GB/s"; "": none
  std::string_view unit_in_name = {};  // the word of a unit before it: "s" of "ttft [s]: 1.2"
  std::size_t columns = 1;    // numbers in a row with commas or blanks between, this one included
  bool is_ambiguous = false;  // it may be read in several ways
  bool is_part_of_duration = false;  // "12 s" of "1 min 12 s"
};

// Returns the number that the group of a match is the whole or a part of: "1,250.5" for the "250.5"
// in it, "1.9e+03" for "1.9", "-3" for "3". A list ("10,20,30") has one number a column, and so has
// a line whose pattern names the column beside the group. `line` contains the match.
[[nodiscard]] LineNumber find_line_number(std::string_view line, const config::Pattern& pattern,
                                          const config::Pattern::Match& match);

// Returns the scale of a unit as people print it ("sec", "MiB", "tokens/sec"); nothing for others.
[[nodiscard]] std::optional<unit::Scale> parse_printed_unit(std::string_view word);

}  // namespace weir::adapters
