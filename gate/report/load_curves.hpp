// Latency against load: the cells of one prompt at several concurrencies, as small pictures and as
// a table of the same numbers. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gate/profile/profile.hpp"
#include "gate/verdict/verdict.hpp"

namespace weir::report {

struct LoadPoint {
  std::int64_t concurrency = 1;
  // p50, p90, p99 of this side, in seconds.
  std::array<std::optional<double>, 3> first_token{}, per_token{};
  std::optional<double> tokens_per_second{};
  // What each was before: medians, and the rate.
  std::optional<double> base_first_token{}, base_per_token{}, base_tokens_per_second{};
};

struct LoadCurve {
  profile::CellKey cell;          // without its concurrency
  std::vector<LoadPoint> points;  // by rising concurrency, two or more
};

// Of the cells in their order; a prompt measured at one concurrency alone makes none.
[[nodiscard]] std::vector<LoadCurve> load_curves(const verdict::GateVerdict& gate);

// <figure> for a page: a panel each of time to first token, time per output token and output
// tokens/s, coloured by the page's style and told apart by dashes as well, and the table.
[[nodiscard]] std::string load_figure(const LoadCurve& curve);

}  // namespace weir::report
