// Tests findings about the same work in more dispatches or with other barriers, and changes that
// only look alike.
#include <gtest/gtest.h>

#include "tests/explain/build.hpp"

namespace weir::explain {
namespace pieces_test {

using test::best;
using test::side;

struct Case {
  const char* what;
  test::Counts before, after;  // kernels
  test::Counts counts_before, counts_after;
  const char* kind;  // the first finding's
};

Rational total_calls(const test::Counts& kernels) {
  Rational total(0);
  for (const auto& [name, count] : kernels) total = total.plus(count).value_or(total);
  return total;
}

TEST(ProductsInMoreDispatches, AreLostBatchingWhereNothingElseChanged) {
  const test::Counts layers = {{"multiply_q8_0", 25}, {"rms_norm", 13}, {"rotate", 6}};
  const auto with = [&](const test::Counts& changes) {
    test::Counts counts = layers;
    for (const auto& [name, count] : changes) counts[name] = count;
    std::erase_if(counts, [](const auto& entry) { return entry.second == Rational(0); });
    return counts;
  };
  const Case cases[] = {
      {"query, key and value apart",
       layers,
       with({{"multiply_q8_0", 37}}),
       {},
       {},
       "batching_lost"},
      {"with a barrier behind each",
       layers,
       with({{"multiply_q8_0", 37}}),
       {{"barriers", 50}},
       {{"barriers", 62}},
       "batching_lost"},
      {"products of two types",
       with({{"multiply_q4_0", 6}}),
       with({{"multiply_q8_0", 31}, {"multiply_q4_0", 12}}),
       {},
       {},
       "batching_lost"},
      {"one product more: nobody knows", layers, with({{"multiply_q8_0", 26}}), {}, {}, "op_added"},
      {"norms follow from no weights", layers, with({{"rms_norm", 19}}), {}, {}, "op_added"},
      {"a kernel that was not there", layers, with({{"fwht", 6}}), {}, {}, "op_added"},
      {"a small one beside them",
       layers,
       with({{"multiply_q8_0", 31}, {"rms_norm", 19}}),
       {},
       {},
       "op_added"},
      {"a fusion undone",
       with({{"gate_up_q8_0", 6}}),
       with({{"multiply_q8_0", 31}, {"activate", 6}}),
       {},
       {},
       "fusion_lost"},
  };
  for (const Case& entry : cases) {
    test::Counts before = entry.counts_before, after = entry.counts_after;
    before["dispatches"] = total_calls(entry.before);
    after["dispatches"] = total_calls(entry.after);
    const auto why = test::explained(side(before, entry.before), side(after, entry.after));
    ASSERT_NE(best(why), nullptr) << entry.what;
    EXPECT_EQ(best(why)->kind, entry.kind) << entry.what << ": " << best(why)->text();
  }
}

TEST(ProductsInFewerDispatches, OnlySeemToRunTogetherWhereNoGraphTellsOfTheirWork) {
  const Side unchanged = side({{"dispatches", 45}}, {{"multiply_q8_0", 37}, {"rms_norm", 8}});
  const Side joined = side({{"dispatches", 33}}, {{"multiply_q8_0", 25}, {"rms_norm", 8}});
  Evidence evidence = test::evidence(unchanged, joined);
  const auto headline = [&] { return best(explain(evidence, nullptr, {}))->headline; };
  EXPECT_EQ(headline(),
            "Batching seems gained: multiply runs 25 times a token, before 37, and nothing came.");
  evidence.graph_known = true;
  EXPECT_EQ(headline(),
            "Batching gained: multiply runs 25 times a token, before 37, and nothing came.");
}

TEST(CudaGraphs, AreNamedWhereTheyCameAndWhereTheyWent) {
  const auto with = [](std::int64_t launches, std::int64_t submits, std::int64_t dispatches = 57) {
    return side({{"dispatches", dispatches}, {"graph_launches", launches}, {"submits", submits}});
  };
  EXPECT_EQ(best(test::explained(with(1, 1), with(0, 57)))->kind, "graphs_lost");
  EXPECT_EQ(best(test::explained(with(0, 57), with(1, 1)))->headline,
            "GPU graphs are now used: many kernels are handed over at once.");
  EXPECT_EQ(best(test::explained(with(1, 1), with(0, 0, 0)))->kind, "work_moved_to_cpu");
}

TEST(BarriersAroundACopy, AreNoLostBatching) {
  const struct {
    std::int64_t copies, barriers;  // new ones
    const char* kind;
    std::size_t findings;
  } cases[] = {
      {1, 1, "extra_copies", 1},
      {6, 12, "extra_copies", 1},
      {1, 30, "batching_lost", 2},  // more than a copy needs
      {0, 6, "batching_lost", 1},
  };
  for (const auto& entry : cases) {
    const auto why = test::explained(
        side({{"dispatches", 65}, {"copies", 2}, {"barriers", 46}}),
        side(
            {{"dispatches", 65}, {"copies", 2 + entry.copies}, {"barriers", 46 + entry.barriers}}));
    ASSERT_NE(best(why), nullptr);
    EXPECT_EQ(best(why)->kind, entry.kind) << entry.barriers;
    EXPECT_EQ(why.findings.size(), entry.findings) << entry.barriers;
  }
}

// TensorFlow.js with one submission per kernel (recorded): its waits came with them.
TEST(SubmissionsThatAreEachWaitedFor, AreNamedBeforeTheWaits) {
  const auto with = [](std::int64_t submits, std::int64_t copies) {
    return side(
        {{"dispatches", 178}, {"submits", submits}, {"syncs", submits}, {"copies", copies}});
  };
  EXPECT_EQ(best(test::explained(with(12, 197), with(179, 197)))->headline,
            "The same work is sent in more submissions, each waited for: 179, before 12.");
  EXPECT_EQ(best(test::explained(with(12, 197), with(16, 201)))->kind, "sync_added")
      << "something is read back";
  EXPECT_EQ(best(test::explained(with(1, 1), with(5, 1)))->kind, "sync_added")
      << "one submission tells of no habit";
}

}  // namespace pieces_test
}  // namespace weir::explain
