// How often somebody may do something: a bucket of tokens for each key, refilled with time. Holds a
// bounded number of keys: when it is full, those that were not asked for longest go. Thread-safe.
#pragma once

#include <cstddef>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

namespace weir::serve {

struct Rate {
  double burst = 10;    // at once
  double a_second = 1;  // then
  std::size_t keys = 10'000;
};

class Rates {
 public:
  explicit Rates(const Rate& rate) : rate_(rate) {}

  // Takes one. Else how many seconds to wait until there is one. `now`: steady seconds.
  [[nodiscard]] std::optional<double> take(const std::string& key, double now);

 private:
  struct Bucket {
    double left = 0, at = 0;
  };
  void make_room(double now);

  const Rate rate_;
  std::mutex mutex_;
  std::unordered_map<std::string, Bucket> buckets_;
};

}  // namespace weir::serve
