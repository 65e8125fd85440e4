// Quotients and differences of the medians of two benchmarks, each with its limit.
#pragma once

#include <vector>

namespace weir::bench {

struct Ratio {
  const char* label;
  const char* top;
  const char* bottom;
  double limit;                // above it weir would distort an engine's times, or make people wait
  bool is_difference = false;  // (top - bottom) / divisor, in ns, instead of top / bottom
  double divisor = 1;
};

inline const std::vector<Ratio>& ratios() {
  static const std::vector<Ratio> k_ratios{
      {"gate over its command lines one after another", "gate", "command_lines", 1.10},
      {"comparing 10 000 cells x 20 metrics over reading them", "read_and_compare", "read", 2.0},
      {"importing 100 000 points over a loop of one statement", "import_csv", "insert_bare", 2.0},
      {"Vulkan probe, per recorded command", "record_with_probe", "record_bare", 20, true, 1},
      {"Vulkan probe, per command of whole tokens", "token_counted", "token_bare", 20, true, 176},
      {"Vulkan probe, per event recorded beside", "token_with_events", "token_counted", 60, true,
       135},
      {"ggml probe, per wait", "ggml_wait_with_probe", "ggml_wait_bare", 20, true, 1},
      {"ggml probe, per set of a tensor", "ggml_set_with_probe", "ggml_set_bare", 20, true, 1},
      {"ggml probe, per op of a graph", "ggml_graph_with_probe", "ggml_graph_bare", 60, true, 200},
      {"an engine's mark that is off, begin and end", "scope_off", "nothing_marked", 2, true, 1},
      {"an engine's op scope, timed", "scope_timed", "nothing_marked", 60, true, 1},
      {"of that without reading the clock twice", "scope_timed", "clock_twice", 30, true, 1},
      {"an engine's dispatch, counted", "dispatch_counted", "nothing_marked", 60, true, 1},
  };
  return k_ratios;
}

}  // namespace weir::bench
