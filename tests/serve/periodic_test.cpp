// Tests the thread that repeats a task at intervals.
#include <atomic>
#include <future>
#include <stdexcept>

#include <gtest/gtest.h>

#include "gate/serve/workers.hpp"

namespace weir::serve {
namespace periodic_test {

constexpr double k_never = 1e6;

TEST(Periodic, GoesOnWhenWhatItDoesThrows) {
  std::atomic<int> done{0};
  std::promise<void> again;
  std::promise<std::string> message;
  Periodic periodic(
      0.001,
      [&] {
        const int before = done.fetch_add(1);
        if (before == 0) throw std::runtime_error("it broke");
        if (before == 1) again.set_value();
      },
      [&](const std::string& words) { message.set_value(words); });
  EXPECT_EQ(message.get_future().get(), "it broke");
  again.get_future().wait();
}

TEST(Periodic, GoesOnWhenTheTellingThrows) {
  std::atomic<int> done{0};
  std::promise<void> again;
  Periodic periodic(
      0.001,
      [&] {
        if (done.fetch_add(1) == 1) again.set_value();
        throw std::runtime_error("it broke");
      },
      [](const std::string&) { throw std::runtime_error("this, too"); });
  again.get_future().wait();
}

TEST(Periodic, IsDoneSoonWhereThatIsWanted) {
  std::atomic<int> done{0};
  std::promise<void> first, second;
  Periodic periodic(
      k_never, [&] { (done.fetch_add(1) == 0 ? first : second).set_value(); }, {},
      Periodic::First::at_once);
  first.get_future().wait();
  periodic.soon();
  second.get_future().wait();
}

TEST(Periodic, EndsWithoutWaitingForItsTime) {
  Periodic periodic(k_never, [] { FAIL(); });
}

}  // namespace periodic_test
}  // namespace weir::serve
