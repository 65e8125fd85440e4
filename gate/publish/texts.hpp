// What is posted of a verdict, and of none: silence is not green. Pure.
#pragma once

#include <optional>
#include <string>

#include "gate/publish/post.hpp"
#include "gate/report/formats.hpp"

namespace weir::publish {

// A verdict's comment, check and status. `conclusion` is how the workflow run ended that measured
// it, where that is known: of a run that did not end well no verdict is shown as a success.
[[nodiscard]] Texts texts_of(const verdict::GateVerdict& gate, const report::MarkdownStyle& style,
                             const std::optional<std::string>& conclusion);

struct NotMeasured {
  std::string why;                        // hostile text; "": told from the conclusion
  std::optional<std::string> conclusion;  // of the workflow run that should have measured
  std::string sha;
};
// Of a run that left no verdict: "not measured", never a success.
[[nodiscard]] Texts not_measured(const NotMeasured& what, const report::MarkdownStyle& style);

}  // namespace weir::publish
