// Tests of the hash table of handles.
#include "gate/probes/table.h"

#include <atomic>
#include <random>
#include <thread>
#include <unordered_map>
#include <vector>

#include <gtest/gtest.h>

namespace weir_probe {
namespace table_test {

void* value(std::uint64_t number) { return reinterpret_cast<void*>(number * 16 + 8); }

TEST(HandleTable, DoesWhatAMapDoes) {
  Table table;
  std::unordered_map<std::uint64_t, void*> map;
  std::mt19937_64 random(7);
  for (int i = 0; i < 200000; ++i) {
    const std::uint64_t handle = 1 + random() % 3000;  // small handles, as made-up ones are
    switch (random() % 3) {
      case 0:
        ASSERT_TRUE(table.insert(handle, value(static_cast<std::uint64_t>(i))));
        map[handle] = value(static_cast<std::uint64_t>(i));
        break;
      case 1: {
        const auto expected = map.find(handle);
        ASSERT_EQ(table.remove(handle), expected == map.end() ? nullptr : expected->second);
        map.erase(handle);
        break;
      }
      default: {
        const auto expected = map.find(handle);
        ASSERT_EQ(table.find(handle), expected == map.end() ? nullptr : expected->second);
      }
    }
    ASSERT_EQ(table.live(), map.size());
  }
  table.free_all();
}

TEST(HandleTable, KnowsNoNullHandle) {
  Table table;
  EXPECT_EQ(table.find(0), nullptr);
  EXPECT_FALSE(table.insert(0, value(1)));
  EXPECT_TRUE(table.insert(1, value(1)));
  EXPECT_EQ(table.find(0), nullptr);
  EXPECT_EQ(table.find(UINT64_MAX), nullptr);
  table.free_all();
}

TEST(HandleTable, StaysSmallWhenAMillionHandlesComeAndGo) {
  Table table;
  std::mt19937_64 random(3);
  std::vector<std::uint64_t> living;
  for (int i = 0; i < 1000000; ++i) {
    if (living.size() == 100) {
      const std::size_t at = random() % living.size();
      EXPECT_NE(table.remove(living[at]), nullptr);
      living[at] = living.back();
      living.pop_back();
    }
    living.push_back(random() | 2);  // never the same twice
    table.insert(living.back(), value(1));
  }
  EXPECT_EQ(table.live(), 100U);
  // 100 live ones need 256 slots of 16 bytes; all tables there ever were stay below 64 KiB.
  EXPECT_LT(table.memory(), 65536U);
  table.free_all();
}

TEST(HandleTable, IsReadRightlyWhileOthersChangeIt) {
  Table table;
  for (std::uint64_t handle = 1; handle <= 64; ++handle) table.insert(handle << 4, value(handle));
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&] {
      while (!stop) {
        for (std::uint64_t handle = 1; handle <= 64; ++handle) {
          wrong += table.find(handle << 4) != value(handle);
        }
      }
    });
  }
  std::mt19937_64 random(5);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::uint64_t> mine;
    for (int i = 0; i < 500; ++i) mine.push_back(random() | 1);
    for (const std::uint64_t handle : mine) table.insert(handle, value(handle >> 8));
    for (const std::uint64_t handle : mine) table.remove(handle);
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  table.free_all();
}

}  // namespace table_test
}  // namespace weir_probe
