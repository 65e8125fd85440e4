// What a method shows on many series. Deterministic: what comes out depends on the seed alone, not
// on the number of threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gate/stats/changes.hpp"

#include "benchmarks/change_points/series.hpp"

namespace weir::changes {

using Places = std::vector<std::size_t>;
struct Method {
  std::string name;
  // What one look at all values shows, and whether any of the looks after each of them ever showed
  // a change that `fits`.
  std::function<Places(std::span<const double>)> once;
  std::function<bool(std::span<const double>, const std::function<bool(std::size_t)>&)> nightly;
};
// `sensitivity`: of weir trend changes.
[[nodiscard]] Method weir_method(int sensitivity = 0);
[[nodiscard]] Method otava_method();
[[nodiscard]] Method pelt_method();

struct Bench {
  std::vector<Recorded> times;
  std::vector<std::string> noises{};  // these alone, in the tables of known noises; empty: all
  std::uint64_t seed = 1;
  unsigned threads = 1;
};

// Shares of `trials` series: `test` gets a source of its own for each, and answers which of `count`
// things held.
using Held = std::vector<bool>;
[[nodiscard]] std::vector<double> shares(const Bench& bench, std::string_view name,
                                         std::size_t trials, std::size_t count,
                                         const std::function<Held(Random&)>& test);
// The same of one thing.
[[nodiscard]] double share(const Bench& bench, std::string_view name, std::size_t trials,
                           const std::function<bool(Random&)>& test);

// The share in which anything is shown where nothing changed.
[[nodiscard]] double shown_unchanged(const Bench& bench, const Method& method,
                                     std::string_view noise, std::size_t nights, bool nightly,
                                     std::size_t trials);

// The share in which a step of `size` standard deviations is shown, at most `k_near` points off,
// `behind` points after it at the latest.
inline constexpr std::size_t k_near = 5;
struct StepTrial {
  std::string_view noise;
  std::size_t history = 0, behind = 0;
  double size = 2;
};
[[nodiscard]] double found_step(const Bench& bench, const Method& method, const StepTrial& trial,
                                bool nightly, std::size_t trials);

}  // namespace weir::changes
