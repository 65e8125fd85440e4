// Runs methods of change detection on many series. Results depend on the seed alone, not on the
// number of threads.
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
  // Returns the changes that one analysis of all values shows.
  std::function<Places(std::span<const double>)> on_whole_series;
  // Returns true if an analysis after any one of the nights shows a change that `fits`.
  std::function<bool(std::span<const double>, const std::function<bool(std::size_t)>&)>
      after_each_night;
};
// `sensitivity` is that of weir trend changes.
[[nodiscard]] Method weir_method(int sensitivity = 0);
[[nodiscard]] Method otava_method();
[[nodiscard]] Method pelt_method();

struct Bench {
  std::vector<Recording> recordings;
  std::vector<std::string> noises{};  // rows of the tables of noises; empty: all
  std::uint64_t seed = 1;
  unsigned threads = 1;
};

// Runs `test` in `trials` trials, each with random numbers of its own. The test returns `count`
// answers. The result is, for each of them, the share of trials in which it was true.
using Answers = std::vector<bool>;
[[nodiscard]] std::vector<double> measure_shares(const Bench& bench, std::string_view name,
                                                 std::size_t trials, std::size_t count,
                                                 const std::function<Answers(Random&)>& test);
// The same for a test with one answer.
[[nodiscard]] double measure_share(const Bench& bench, std::string_view name, std::size_t trials,
                                   const std::function<bool(Random&)>& test);

// How often a method is run: once on the whole series, or after each night.
enum class Analysis { on_whole_series, after_each_night };

// The share of series without a change in which the method shows one.
[[nodiscard]] double false_alarm_share(const Bench& bench, const Method& method,
                                       std::string_view noise, std::size_t nights,
                                       Analysis analysis, std::size_t trials);

// The share of series in which the method shows a step of `size` standard deviations, at most
// `k_max_place_error` points off. The series ends `points_after_step` points after the step.
inline constexpr std::size_t k_max_place_error = 5;
struct StepTrial {
  std::string_view noise;
  std::size_t points_before_step = 0, points_after_step = 0;
  double size = 2;
};
[[nodiscard]] double detection_share(const Bench& bench, const Method& method,
                                     const StepTrial& trial, Analysis analysis, std::size_t trials);

}  // namespace weir::changes
