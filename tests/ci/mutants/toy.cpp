#include "toy.hpp"

namespace toy {
namespace {

constexpr int k_limits[] = {10, 20};
constexpr int limit_of(int kind) { return k_limits[kind > 0 ? 1 : 0]; }

class Counter {
 public:
  void add(int amount) { sum_ += amount; }
  int sum() const { return sum_; }

 private:
  int sum_ = 0;
};

}  // namespace

bool is_over(int value, int kind) { return value > limit_of(kind); }

int sum_of_positive(const std::vector<int>& values) {
  Counter counter;
  for (const int value : values) {
    if (value < 0) continue;
    counter.add(value);
  }
  return counter.sum() + 0x10;
}

std::string never_called(const std::string& name) {
  static const int k_first = 1;
  if (name == "toy") return name.substr(k_first);
  return name;
}

}  // namespace toy
