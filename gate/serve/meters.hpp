// What the service counts of itself, for /metrics. Thread-safe.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

namespace weir::serve {

class Histogram {
 public:
  void observe(double seconds);
  // In the Prometheus text format, with its type and help.
  [[nodiscard]] std::string text(const std::string& name, const std::string& help) const;

 private:
  static constexpr std::array<double, 10> k_bounds{0.001, 0.003, 0.01, 0.03, 0.1,
                                                   0.3,   1,     3,    10,   30};
  std::array<std::atomic<std::uint64_t>, k_bounds.size() + 1> counts_{};  // the last: longer
  std::atomic<std::uint64_t> microseconds_{0};
};

struct Meters {
  using Count = std::atomic<std::uint64_t>;
  Count uploads_kept{0};     // something of them was new
  Count uploads_known{0};    // all of it was there
  Count uploads_refused{0};  // by their content
  Count uploads_failed{0};   // the store could not keep them
  Count tokens_refused{0}, rates_exceeded{0};
  std::array<Count, 6> answers{};  // by the first digit of their status; [0]: others
  Count transactions{0};
  Histogram store, answer;  // of a transaction of uploads; from a request to its answer

  void count_answer(int status) {
    ++answers[status >= 100 && status < 600 ? static_cast<std::size_t>(status / 100) : 0];
  }
};

}  // namespace weir::serve
