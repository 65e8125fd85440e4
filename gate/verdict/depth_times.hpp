// What over_depth.cpp and over_depth_pairs.cpp share: times per token, and the line through them.
// Used by this module alone.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "gate/stats/theil_sen.hpp"
#include "gate/unit/metric.hpp"
#include "gate/verdict/over_depth.hpp"

namespace weir::verdict {

// A time per token, and where it comes from: an engine reports it, or a rate that is its inverse.
struct TimePerToken {
  const char* time;
  const char* rate;
};
inline constexpr TimePerToken k_times[] = {
    {"time_per_output_token_seconds", "decode_tokens_per_second"},
    {"time_per_prompt_token_seconds", "prefill_tokens_per_second"},
};
// What a line says, each a metric.
inline constexpr unit::Scope k_parts[] = {unit::Scope::at_zero_context,
                                          unit::Scope::per_context_token};

[[nodiscard]] unit::Metric fitted_metric(const TimePerToken& of, unit::Scope part);
[[nodiscard]] double part_of(const stats::SlopeAndIntercept& line, unit::Scope part);
// The line over `depths`, one time each; absent where a process did not end, or gave no time.
[[nodiscard]] std::optional<stats::SlopeAndIntercept> line_over(
    const std::vector<std::int64_t>& depths, const std::vector<std::optional<double>>& times);

inline constexpr std::string_view k_needs_every_depth =
    "the line over depths needs every one of them";

template <class T>
std::vector<const T*> pick(const DepthGroup& group, std::span<const T> from) {
  std::vector<const T*> members;
  for (const std::size_t i : group.members) members.push_back(&from[i]);
  return members;
}

}  // namespace weir::verdict
