// Names of outcomes, and how many fold into one.
#include <algorithm>

#include "gate/base/names.hpp"
#include "gate/verdict/judging.hpp"

namespace weir::verdict {
namespace {

constexpr auto k_outcomes = std::to_array<Name<Outcome>>({{Outcome::info, "info"},
                                                          {Outcome::fail, "fail"},
                                                          {Outcome::error, "error"},
                                                          {Outcome::inconclusive, "inconclusive"},
                                                          {Outcome::fresh, "new"},
                                                          {Outcome::improved, "improved"},
                                                          {Outcome::accepted, "accepted"},
                                                          {Outcome::pass, "pass"},
                                                          {Outcome::skipped, "skipped"}});

}  // namespace

std::string_view to_string(Outcome outcome) { return name_of(k_outcomes, outcome); }

std::optional<Outcome> parse_outcome(std::string_view text) { return value_of(k_outcomes, text); }

Outcome worst(Outcome a, Outcome b) { return std::min(a, b); }

void take_worse(std::optional<Ruling>& ruling, Ruling other) {
  if (!ruling || other.verdict < ruling->verdict) ruling = std::move(other);
}

void show_only(const Limit& limit, Ruling& ruling) {
  auto& [verdict, reason] = ruling;
  if (limit.mode == Mode::gate || verdict == Outcome::info) return;
  const std::string why = limit.reason ? ": " + *limit.reason : "";
  if (limit.mode == Mode::off) {
    reason = "switched off" + why;
  } else if (verdict == Outcome::pass) {
    reason = "reported, not gated" + why;
  } else {
    reason = fmt::format("reported, not gated{} (would be {}{}{})", why, to_string(verdict),
                         reason.empty() ? "" : ": ", reason);
  }
  verdict = Outcome::info;
}

}  // namespace weir::verdict
