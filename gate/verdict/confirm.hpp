// Drops suspected against stored samples, confirmed (or not) by pairs beside a base program.
//
// Between sessions there is no coin, so a fail against stored samples holds at `stored_level`
// alone: something made the program slower, perhaps the machine. Pairs tell whether it is the
// program, under false_alarm and missed. Which metrics are paired was chosen before any coin of
// theirs was thrown, so their guarantee is that of any other gate of as many metrics. Pure.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "gate/verdict/verdict.hpp"

namespace weir::verdict {

// The cells in which a time's limit on its change fails against stored samples and gates. Of a line
// over depths: its own name.
[[nodiscard]] std::vector<profile::CellKey> suspected(std::span<const CellVerdict> cells);

struct Confirmed {
  std::int64_t confirmed = 0, cleared = 0, open = 0;  // suspected metrics
  // What pairs could not be asked: one line each; these metrics stay as they were.
  std::vector<std::string> not_asked;
};
// Takes into `cells` what pairs said (`beside`: some of the same cells, judged by pairs): of a
// suspected metric their verdict, of another time in those cells a fail alone. `base` is the base
// program in words.
[[nodiscard]] Confirmed confirm(std::vector<CellVerdict>& cells,
                                std::span<const CellVerdict> beside, const std::string& base);

}  // namespace weir::verdict
