// Names of outcomes, and how many fold into one.
#include <algorithm>
#include <array>

#include "gate/verdict/judging.hpp"

namespace weir::verdict {
namespace {

constexpr std::array<std::pair<Outcome, std::string_view>, 9> k_outcomes{{
    {Outcome::fail, "fail"},
    {Outcome::error, "error"},
    {Outcome::inconclusive, "inconclusive"},
    {Outcome::fresh, "new"},
    {Outcome::improved, "improved"},
    {Outcome::accepted, "accepted"},
    {Outcome::pass, "pass"},
    {Outcome::skipped, "skipped"},
    {Outcome::info, "info"},
}};

}  // namespace

std::string_view to_string(Outcome outcome) {
  for (const auto& [known, name] : k_outcomes) {
    if (known == outcome) return name;
  }
  return "info";
}

std::optional<Outcome> parse_outcome(std::string_view text) {
  for (const auto& [known, name] : k_outcomes) {
    if (name == text) return known;
  }
  return std::nullopt;
}

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
