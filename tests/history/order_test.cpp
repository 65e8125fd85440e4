// Tests the order of a history's runs by commit, and events of changed machine classes.
#include "gate/history/order.hpp"

#include <gtest/gtest.h>

#include "gate/base/text.hpp"

#include "tests/history/support.hpp"

namespace weir::history {
namespace order_test {

// Returns a commit of 40 digits that begins with `digits`.
std::string make_commit(const std::string& digits) {
  return digits + std::string(40 - digits.size(), '0');
}

struct RunAt {
  std::string id;
  double time;
  std::string commit;                     // "": no commit
  double commit_time = -1;                // -1: unknown
  std::string device = {}, machine = {};  // classes
  double value = 1;
};

History make_history(const std::vector<RunAt>& runs, const std::string& metric = "load_seconds") {
  History history;
  Series series;
  series.cell = "e/m/b/p";
  series.metric = metric_named(metric);
  for (const RunAt& run : runs) {
    RunFacts facts;
    facts.id = run.id;
    facts.time = run.time;
    if (!run.commit.empty()) facts.commit = run.commit;
    if (run.commit_time >= 0) facts.commit_time = run.commit_time;
    SeriesPoint point;
    point.value = run.value;
    point.run = static_cast<std::uint32_t>(history.runs.size());
    point.place = point.run;
    history.runs.push_back(facts);
    history.places.push_back({run.device, "", run.machine, "", ""});
    series.points.push_back(point);
  }
  history.series.push_back(series);
  return history;
}

std::string ids_of(const History& history) {
  std::vector<std::string> ids;
  for (const SeriesPoint& point : history.series.front().points) {
    ids.push_back(history.run_of(point).id);
  }
  return text::join(ids, " ");
}

const std::string k_a = make_commit("aaaaaaa1"), k_b = make_commit("bbbbbbb1"),
                  k_c = make_commit("ccccccc1"), k_b2 = make_commit("bbbbbbb2");

struct OrderCase {
  std::string what;
  std::vector<RunAt> runs;
  std::vector<std::string> commits;  // parents first
  std::string expected;
};

class Order : public testing::TestWithParam<OrderCase> {};

TEST_P(Order, IsThatOfTheCommits) {
  History history = make_history(GetParam().runs);
  put_in_order(history, CommitOrder(GetParam().commits));
  EXPECT_EQ(ids_of(history), GetParam().expected) << GetParam().what;
}

INSTANTIATE_TEST_SUITE_P(
    Table, Order,
    testing::Values(
        OrderCase{"commits, not times",
                  {{"1", 30, k_a}, {"2", 20, k_b}, {"3", 10, k_c}},
                  {k_a, k_b, k_c},
                  "1 2 3"},
        OrderCase{"a commit measured late stands in its place",
                  {{"1", 10, k_a}, {"3", 20, k_c}, {"2", 99, k_b}},
                  {k_a, k_b, k_c},
                  "1 2 3"},
        OrderCase{"runs of one commit by time, then by id",
                  {{"z", 20, k_b}, {"y", 10, k_b}, {"x", 20, k_b}, {"w", 1, k_a}},
                  {k_a, k_b},
                  "w y x z"},
        OrderCase{"no repository: by time",
                  {{"2", 20, k_a}, {"1", 10, k_b}, {"3", 30, k_c}},
                  {},
                  "1 2 3"},
        OrderCase{"no repository, but times of commits",
                  {{"2", 10, k_a, 200}, {"1", 20, k_b, 100}},
                  {},
                  "1 2"},
        OrderCase{"measured again later: beside the first run of its commit",
                  {{"1", 10, k_a}, {"2", 20, k_b}, {"1again", 30, k_a}},
                  {},
                  "1 1again 2"},
        OrderCase{
            "no commits at all: by time", {{"2", 2, ""}, {"1", 1, ""}, {"3", 3, ""}}, {}, "1 2 3"},
        OrderCase{"one that is not known is put among those that are by its time",
                  {{"1", 10, k_a}, {"3", 30, k_c}, {"2", 20, k_b}},
                  {k_a, k_c},
                  "1 2 3"},
        OrderCase{"one without a commit, too: behind the last that is not younger",
                  {{"1", 10, k_a}, {"3", 30, k_c}, {"2", 30, ""}, {"0", 5, ""}},
                  {k_a, k_c},
                  "0 1 3 2"},
        OrderCase{"a clock that went wrong once does not tear others out of their places",
                  {{"1", 10, k_a}, {"2", 9999, k_b}, {"3", 30, k_c}, {"x", 40, ""}},
                  {k_a, k_b, k_c},
                  "1 2 3 x"},
        OrderCase{"names of commits may be cut short",
                  {{"2", 1, "bbbbbbb1"}, {"1", 2, "aaaaaaa"}},
                  {k_a, k_b},
                  "1 2"},
        OrderCase{"cut so short that two begin so: by time",
                  {{"2", 20, "bbbbbbb"}, {"1", 10, k_a}, {"3", 30, k_c}},
                  {k_a, k_b, k_b2, k_c},
                  "1 2 3"},
        OrderCase{
            "six digits are no name", {{"2", 5, k_a}, {"1", 1, "bbbbbb"}}, {k_a, k_b}, "1 2"}));

TEST(Order, IsTheSameForEverySeriesOfAHistory) {
  History history = make_history({{"2", 1, k_b}, {"1", 2, k_a}});
  Series second = history.series.front();
  second.cell = "other/m/b/p";
  history.series.push_back(second);
  put_in_order(history, CommitOrder({k_a, k_b}));
  for (const Series& series : history.series) {
    EXPECT_EQ(history.run_of(series.points.front()).id, "1") << series.cell;
  }
}

TEST(ClassChanges, AreEventsWithTheSizeBeforeAndAfter) {
  const History history = make_history({{"1", 1, "", -1, "d1", "d1-m", 10},
                                        {"2", 2, "", -1, "d1", "d1-m", 12},
                                        {"3", 3, "", -1, "d2", "d2-m", 20},
                                        {"4", 4, "", -1, "d2", "d2-m", 22},
                                        {"5", 5, "", -1, "d2", "d2-n", 30}});
  const auto changes = class_changes(history, history.series.front());
  ASSERT_EQ(changes.size(), 2U);
  EXPECT_EQ(changes[0].index, 2U);
  EXPECT_EQ(changes[0].device_class_before + ">" + changes[0].device_class, "d1>d2");
  EXPECT_EQ(changes[0].before, 11);  // the median of 10 and 12
  EXPECT_EQ(changes[0].after, 21);
  EXPECT_EQ(changes[1].index, 4U);
  EXPECT_EQ(changes[1].device_class_before, changes[1].device_class);
  EXPECT_EQ(changes[1].machine_class, "d2-n");
  EXPECT_EQ(changes[1].before, 21);
  EXPECT_EQ(changes[1].after, 30);
}

TEST(ClassChanges, OfCountsAreThoseOfTheDeviceAlone) {
  const History history = make_history({{"1", 1, "", -1, "d1", "m1", 10},
                                        {"2", 2, "", -1, "d1", "m2", 10},
                                        {"3", 3, "", -1, "d2", "m2", 11}},
                                       "dispatches_per_token");
  const auto changes = class_changes(history, history.series.front());
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes[0].index, 2U);
}

TEST(ClassChanges, AreNotSeenWhereAClassIsNotKnown) {
  const History history = make_history({{"1", 1, "", -1, "", "", 10},
                                        {"2", 2, "", -1, "d1", "m1", 10},
                                        {"3", 3, "", -1, "", "", 10},
                                        {"4", 4, "", -1, "d1", "m1", 11}});
  EXPECT_TRUE(class_changes(history, history.series.front()).empty());
}

}  // namespace order_test
}  // namespace weir::history
