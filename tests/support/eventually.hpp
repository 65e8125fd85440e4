// Waits for what comes by itself: for a condition, never for a time.
#pragma once

#include <chrono>
#include <thread>

namespace weir::tests {

// Asks again and again until it is so. False after two minutes, which guard against hanging alone:
// no machine is that slow.
template <class Condition>
bool eventually(const Condition& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(2);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

}  // namespace weir::tests
