// Tests the pool of worker threads and its queue.
#include "gate/serve/workers.hpp"

#include <atomic>
#include <future>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace weir::serve {
namespace workers_test {

TEST(Workers, RunWhatTheyTookEvenWhenTheyEnd) {
  std::atomic<int> ran{0};
  int taken = 0;
  {
    Workers workers(3, 1000);
    for (int i = 0; i < 500; ++i) taken += workers.post([&](std::size_t) { ++ran; }) ? 1 : 0;
  }
  EXPECT_EQ(taken, 500);
  EXPECT_EQ(ran, 500);
}

TEST(Workers, SayAtOnceThatTheirQueueIsFull) {
  Workers workers(1, 2);
  std::promise<void> started, go;
  ASSERT_TRUE(workers.post([&](std::size_t) {
    started.set_value();
    go.get_future().wait();
  }));
  started.get_future().wait();  // the thread has it: the queue is empty
  EXPECT_TRUE(workers.post([](std::size_t) {}));
  EXPECT_TRUE(workers.post([](std::size_t) {}));
  EXPECT_EQ(workers.waiting(), 2U);
  EXPECT_FALSE(workers.post([](std::size_t) {}));
  go.set_value();
  workers.stop();
  EXPECT_EQ(workers.waiting(), 0U);
}

// With any number of queued tasks of one client, the next client waits for one of them at most.
TEST(Workers, TakeTurnsAmongThoseWhoWait) {
  Workers workers(1, 100);
  std::promise<void> started, go;
  ASSERT_TRUE(workers.post([&](std::size_t) {
    started.set_value();
    go.get_future().wait();
  }));
  started.get_future().wait();
  std::string order;
  const auto post = [&](char whose) {
    ASSERT_TRUE(
        workers.post([&order, whose](std::size_t) { order += whose; }, std::string(1, whose)));
  };
  for (int i = 0; i < 5; ++i) post('a');
  post('b');
  post('c');
  post('b');
  go.set_value();
  workers.stop();
  EXPECT_EQ(order, "abcabaaa");
}

TEST(Workers, NumberTheirThreadsAndNeverUseOneTwiceAtOnce) {
  constexpr std::size_t k_threads = 4;
  std::vector<std::atomic<int>> busy(k_threads);
  std::atomic<bool> twice{false}, beyond{false};
  std::atomic<int> here{0};
  Workers workers(k_threads, 10000);
  for (int i = 0; i < 2000; ++i) {
    ASSERT_TRUE(workers.post([&](std::size_t thread) {
      if (thread >= k_threads) {
        beyond = true;
        return;
      }
      if (busy[thread].fetch_add(1) != 0) twice = true;
      std::this_thread::yield();
      --busy[thread];
    }));
  }
  // As many tasks as threads, each waiting for the others: all threads work.
  for (std::size_t i = 0; i < k_threads; ++i) {
    ASSERT_TRUE(workers.post([&](std::size_t) {
      ++here;
      while (here < static_cast<int>(k_threads)) std::this_thread::yield();
    }));
  }
  workers.stop();
  EXPECT_FALSE(twice);
  EXPECT_FALSE(beyond);
  EXPECT_EQ(here, static_cast<int>(k_threads));
}

TEST(Workers, TakeNothingAfterTheirStop) {
  Workers workers(2, 10);
  workers.stop();
  workers.stop();
  EXPECT_FALSE(workers.post([](std::size_t) { FAIL(); }));
}

TEST(Workers, LetATaskPostAnother) {
  std::promise<void> second;
  Workers workers(1, 1);
  ASSERT_TRUE(workers.post(
      [&](std::size_t) { EXPECT_TRUE(workers.post([&](std::size_t) { second.set_value(); })); }));
  second.get_future().wait();
}

TEST(Places, AreNeverAllOnes) {
  Places places(6);
  std::vector<Places::Place> greedy;
  while (auto place = places.take("greedy")) greedy.push_back(std::move(place));
  EXPECT_EQ(greedy.size(), 3U);  // it has three, and three are free
  std::vector<Places::Place> others;
  for (const char* key : {"a", "b", "c"}) {
    others.push_back(places.take(key));
    EXPECT_TRUE(others.back()) << key;
  }
  EXPECT_FALSE(places.take("d"));
  EXPECT_FALSE(places.take("greedy"));
}

TEST(Places, AreFreeAgainWhenTheyAreGivenBack) {
  std::optional<Places> places(2);
  Places::Place place = places->take("a");
  ASSERT_TRUE(place);
  EXPECT_FALSE(places->take("a"));
  place.reset();
  place = places->take("a");
  EXPECT_TRUE(place);
  places.reset();
  place.reset();  // also if nobody asks for them any more
}

}  // namespace workers_test
}  // namespace weir::serve
