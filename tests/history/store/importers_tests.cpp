// Tests several processes that import into one store at once.
#include <thread>

#include "tests/history/store/stores.hpp"

namespace weir::history {
namespace {

class Importers : public OnBoth {};

constexpr int k_importers = 8, k_runs = 40;

history::Run numbered_run(int number) {
  history::Run run = run_at("run" + std::to_string(number), number, {});
  // All importers bring these names, each in another order.
  for (int i = 0; i < 20; ++i) {
    run.points.push_back(count_point("cell" + std::to_string((i * 7 + number) % 20),
                                     Rational(number * 100 + (i * 7 + number) % 20)));
    run.points.back().place.device_class = "d" + std::to_string(number % 5);
  }
  return run;
}

TEST_P(Importers, AtOnceMakeOneSchema) {
  const std::string where = fresh();
  std::vector<std::string> wrong(k_importers);
  std::vector<std::thread> threads;
  for (int i = 0; i < k_importers; ++i) {
    threads.emplace_back([&, i] {
      const auto store = open_store(parse_address(where));
      if (!store) wrong[static_cast<std::size_t>(i)] = store.error().message;
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& words : wrong) EXPECT_EQ(words, "");
}

TEST_P(Importers, AtOnceLoseNothingAndDoubleNothing) {
  const std::string where = fresh();
  std::vector<std::string> wrong(k_importers);
  std::vector<std::size_t> fresh_runs(k_importers), fresh_points(k_importers);
  std::vector<std::thread> threads;
  for (int i = 0; i < k_importers; ++i) {
    threads.emplace_back([&, i] {
      const auto at = static_cast<std::size_t>(i);
      const auto store = open_store(parse_address(where));
      if (!store) {
        wrong[at] = store.error().message;
        return;
      }
      // Two importers bring each run.
      for (int n = 0; n < k_runs; ++n) {
        if (n % k_importers != i && (n + 1) % k_importers != i) continue;
        const auto added = (*store)->add({{numbered_run(n)}, {}, {}});
        if (!added) {
          wrong[at] = added.error().message;
          return;
        }
        fresh_runs[at] += added->runs;
        fresh_points[at] += added->points;
        if (added->points_differ > 0) wrong[at] = "another number";
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::size_t runs = 0, points = 0;
  for (std::size_t i = 0; i < wrong.size(); ++i) {
    EXPECT_EQ(wrong[i], "");
    runs += fresh_runs[i];
    points += fresh_points[i];
  }
  EXPECT_EQ(runs, std::size_t{k_runs});  // one of the two was first
  EXPECT_EQ(points, std::size_t{k_runs * 20});
  const Content content = content_of(*open(where));
  ASSERT_EQ(content.runs.size(), std::size_t{k_runs});
  for (int n = 0; n < k_runs; ++n) {
    const history::Run& run = content.runs[static_cast<std::size_t>(n)];
    EXPECT_EQ(run.facts.id, "run" + std::to_string(n));
    ASSERT_EQ(run.points.size(), 20U);
    for (const Point& point : run.points) {
      EXPECT_EQ(point.exact->numerator(), n * 100 + std::stoi(point.cell.substr(4)));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Both, Importers, testing::Values(Kind::sqlite, Kind::postgres), name_of);

}  // namespace
}  // namespace weir::history
