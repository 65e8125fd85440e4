// A badge: what the newest verdict says, as an image of its own (SVG). Pure; texts are hostile.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gate/history/history.hpp"
#include "gate/verdict/verdict.hpp"

namespace weir::serve {

enum class BadgeState { passing, failing, undecided, unmeasured, unknown };

// Of which part of a verdict: cells and metrics that match ('*' crosses '/'); "": all.
struct BadgeWanted {
  std::string cell, metric;
};

// Nothing where the verdict has no such cell or metric.
[[nodiscard]] std::optional<BadgeState> state_of(const verdict::GateVerdict& verdict,
                                                 const BadgeWanted& wanted);
[[nodiscard]] BadgeState state_of(verdict::Outcome outcome);

// "passing", "failing", "undecided", "not measured", "unknown".
[[nodiscard]] std::string_view to_string(BadgeState state);

// `label`: at most 60 characters of it are shown. Self-contained: no script, no reference.
[[nodiscard]] std::string badge_svg(std::string_view label, BadgeState state);

}  // namespace weir::serve
