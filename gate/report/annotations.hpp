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

// A message for whoever reads the change, in plain text without control characters.
struct Annotation {
  verdict::Outcome verdict = verdict::Outcome::fail;
  std::string title;    // "" if it counts others; "fail: llama.cpp / tiny-llama / vulkan / decode",
                        // "new: 3 of 8 cells: …"
  std::string message;  // at most 13 lines; may be ""
  std::size_t cells = 1;
};
// Returns causes and unexplained changes, if reports begin with them; then blocks of cells, the
// worst first.
[[nodiscard]] std::vector<Annotation> list_annotations(const Document& document);

// Returns the first `max_annotations`. If there are more, the last counts their cells: "and 16 more
// cells".
[[nodiscard]] std::vector<Annotation> limit_annotations(std::vector<Annotation> all,
                                                        std::size_t max_annotations);

// Returns a line with the gate's headline, and one for each annotation: failed or not measured
// (error), inconclusive or new (warning), improved (notice). Ends in a newline.
[[nodiscard]] std::string annotations(const Document& document);

}  // namespace weir::report
