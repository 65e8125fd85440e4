// What differs between two sides, sorted by what it is, and who explains it. Used by this module
// alone.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "gate/explain/evidence.hpp"
#include "gate/explain/names.hpp"

namespace weir::explain {

struct Move {
  std::string name;
  Rational before, after;
  KernelName parsed;
  std::optional<double> seconds_before, seconds_after;

  [[nodiscard]] Rational delta() const;
  [[nodiscard]] bool up() const { return delta() > Rational(0); }
};

struct Differences {
  // Counts that differ beyond their noise: base name -> change, by scope.
  std::map<std::string, Rational> counts;   // in the scope of the works
  std::map<std::string, Rational> fixed;    // of the start
  std::map<std::string, Rational> context;  // per token of context
  std::vector<std::string> unsteady;        // full names that only one side has as a slope
  std::vector<Move> kernels;                // on the device, the largest change first
  std::vector<Move> cpu_ops;                // on the CPU of a cell on a device
  std::vector<Move> graph;                  // ops wherever they ran, where both sides tell all
  std::vector<Move> timed;                  // works with times on both sides, changed or not
  std::map<std::string, double> times;      // full name of what is no count -> ratio, beyond noise

  [[nodiscard]] Rational count(const std::string& base) const;  // 0 where it did not change
  [[nodiscard]] bool any() const;
};
[[nodiscard]] Differences differences_of(const Evidence& evidence);

// What a name says; of those that a gate called changed also what it said, which knows those that
// a config declares. Nothing for other names.
[[nodiscard]] std::optional<unit::Metric> metric_of(const Evidence& evidence,
                                                    const std::string& name);

// The same as below, but what a gate called changed is, however few its samples are here.
[[nodiscard]] std::optional<Rational> count_change(const Evidence& evidence,
                                                   const std::string& name, const Known& before,
                                                   const Known& after);

// The change, where both are known, and more than samples of either side vary by themselves.
[[nodiscard]] std::optional<Rational> count_change(const Known& before, const Known& after);

// "dispatches_per_token" of "dispatches" in the scope of the evidence; "" where there is none.
[[nodiscard]] std::string metric_name(const Evidence& evidence, const std::string& base);
[[nodiscard]] std::optional<Rational> exact_of(const Side& side, const std::string& name);

}  // namespace weir::explain
