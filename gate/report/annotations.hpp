// GitHub workflow commands ("::error title=…::…"), which show up as annotations of a run.
//
// GitHub shows ten errors, ten warnings and ten notices of one step: the tenth of a kind says how
// many more there are. Hostile text can not end a command or start another. Pure.
#pragma once

#include <string>

#include "gate/verdict/verdict.hpp"

namespace weir::report {

inline constexpr std::size_t k_annotations_shown = 10;

// What there is to say of one cell that failed, could not be measured, is undecided, new or
// improved: plain text of at most 12 lines, each without control characters.
[[nodiscard]] std::string annotation_message(const verdict::CellVerdict& cell);

// One line a cell that failed or could not be measured (error), is undecided or new (warning), or
// improved (notice), and one with the gate's headline. Ends in a newline.
[[nodiscard]] std::string annotations(const verdict::GateVerdict& gate);

}  // namespace weir::report
