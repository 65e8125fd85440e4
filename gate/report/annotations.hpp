// GitHub workflow commands ("::error title=…::…"), which show up as annotations of a run.
//
// GitHub shows ten errors, ten warnings and ten notices of one step: the tenth of a kind says how
// many more there are. Hostile text cannot end a command or start another. Pure.
#pragma once

#include <cstddef>
#include <string>

#include "gate/report/document.hpp"

namespace weir::report {

inline constexpr std::size_t k_annotations_shown = 10;

// What asks for a reader, in plain text without control characters.
struct Annotation {
  verdict::Outcome verdict = verdict::Outcome::fail;
  std::string title;    // "fail: llama.cpp / tiny-llama / vulkan / decode", "new: 3 cells"
  std::string message;  // at most 12 lines and 21 with names of cells; may be ""
  std::size_t cells = 1;
};
// Causes and what none explains, where reports begin with them; then blocks of cells, the worst
// first.
[[nodiscard]] std::vector<Annotation> annotations_of(const Document& document);

// One line for each of these: failed or not measured (error), inconclusive or new (warning),
// improved (notice); and one with the gate's headline. Ends in a newline.
[[nodiscard]] std::string annotations(const Document& document);

}  // namespace weir::report
