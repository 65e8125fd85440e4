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

// "fail: llama.cpp / tiny-llama / vulkan / decode", "new: 3 cells".
[[nodiscard]] std::string annotation_title(const Block& block);
// What there is to say of cells that failed, could not be measured, are inconclusive, new or
// improved: plain text of at most 12 lines and 21 with their names, each without control
// characters.
[[nodiscard]] std::string annotation_message(const Block& block);

// One line a block of cells that failed or could not be measured (error), are inconclusive or new
// (warning), or improved (notice), and one with the gate's headline. Ends in a newline.
[[nodiscard]] std::string annotations(const Document& document);

}  // namespace weir::report
