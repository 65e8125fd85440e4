// Tests that many cells, metrics and limits take work by their sum, not by their product.
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gate/base/text.hpp"

#include "tests/verdict/build.hpp"

namespace weir::verdict {
namespace limit_table_test {

// Draws entries and cells from a few names, so that many of them fit.
class Draw {
 public:
  explicit Draw(unsigned seed) : random_(seed) {}
  std::size_t number(std::size_t below) { return random_() % below; }
  bool flip() { return number(2) == 0; }
  std::string pick(const std::vector<std::string>& words) { return words[number(words.size())]; }

  profile::CellKey cell() {
    profile::CellKey key;
    key.engine = pick({"a", "b", "ab"});
    key.variant = pick({"default", "fast"});
    key.model = pick({"m", "n"});
    key.backend = pick({"cpu", "vulkan"});
    key.prompt = pick({"p", "long"});
    if (flip()) key.depth = static_cast<std::int64_t>(number(3));
    return key;
  }
  LimitEntry entry() {
    LimitEntry entry;
    entry.match.engine = pick({"", "", "a", "a*", "*b", "a@fast", "*@*"});
    entry.match.model = pick({"", "", "m", "*"});
    entry.match.backend = pick({"", "", "cpu", "v*"});
    entry.match.prompt = pick({"", "", "p*", "long@d1", "*@d*"});
    entry.match.variant = pick({"", "", "fast", "d*t"});
    for (std::size_t i = number(3); i > 0; --i) {
      entry.metrics.push_back(pick({"*", "*_per_token", "dispatches_per_token", "kernels", "*e*n*",
                                    "decode_tokens_per_second", "*seconds", "load_*", "k*s"}));
    }
    const auto amount = [&] {
      return flip() ? std::optional<Amount>() : Amount{0.01 * static_cast<double>(number(9)), true};
    };
    if (flip()) entry.exact = flip();
    entry.max_drop = amount();
    entry.max_increase = amount();
    entry.max_decrease = amount();
    if (flip()) entry.tolerate = amount();
    entry.max = amount();
    entry.min = amount();
    if (flip()) entry.mode = static_cast<Mode>(number(3));
    if (flip()) entry.reason = pick({"r", "s"});
    return entry;
  }

 private:
  std::mt19937 random_;
};

std::string describe(const Limit& limit) {
  std::string text =
      fmt::format("{} {} {}", limit.words(), to_string(limit.mode), limit.reason.value_or("-"));
  for (const auto& change : {limit.max_drop, limit.max_increase, limit.max_decrease}) {
    if (change) text += " " + show(change->tolerate);
  }
  return text;
}

TEST(LimitTable, ResolvesAsTheEntriesOneAfterAnother) {
  Draw draw(7);
  for (int round = 0; round < 40; ++round) {
    std::vector<LimitEntry> entries;
    for (std::size_t i = draw.number(90); i > 0; --i) entries.push_back(draw.entry());
    const LimitTable table(entries);
    for (int i = 0; i < 20; ++i) {
      const profile::CellKey cell = draw.cell();
      const EntrySet fitting = table.fitting(cell);
      for (const char* name : {"dispatches_per_token", "decode_tokens_per_second", "load_seconds",
                               "kernel_calls:a", "peak_rss_bytes", "syncs_fixed"}) {
        const unit::Metric metric = *unit::find_metric(name);
        const bool is_count = metric.kind == unit::Kind::count;
        const bool is_rate = !is_count && metric.better == unit::Better::higher;
        Limit expected = resolve_limit(cell, metric, LimitTable());
        Limit held;  // what entries after the last mode set, and its own max and min
        for (std::size_t k = 0; k < entries.size(); ++k) {
          const LimitEntry& entry = entries[k];
          ASSERT_EQ(contains(fitting, k), entry.match.fits(cell));
          if (!entry.covers(cell, name)) continue;
          const auto change = [&](const Amount& amount) {
            return MaxChange{amount, entry.tolerate.value_or(Amount{amount.value / 2, true})};
          };
          if (entry.mode) {
            expected.mode = *entry.mode;
            held = {};
          }
          for (Limit* limit : {&expected, &held}) {
            if (entry.max) limit->max = entry.max;
            if (entry.min) limit->min = entry.min;
            if (entry.mode && limit == &held) continue;
            if (entry.exact && is_count) limit->exact = *entry.exact;
            if (entry.max_drop && is_rate) limit->max_drop = change(*entry.max_drop);
            if (entry.max_increase && !is_rate) limit->max_increase = change(*entry.max_increase);
            if (entry.max_decrease && is_count) limit->max_decrease = change(*entry.max_decrease);
          }
          if (entry.mode || entry.reason) expected.reason = entry.reason;
        }
        if (expected.mode == Mode::off && held.is_set()) {
          held.reason = expected.reason;
          expected = held;
        }
        const Limit limit = table.resolve(fitting, metric);
        ASSERT_EQ(describe(limit), describe(expected)) << cell.str() << " " << name;
      }
    }
  }
}

TEST(LimitTable, MatchesEachEntryOnceWithEachNameWhateverTheCells) {
  std::vector<LimitEntry> entries;
  for (int i = 0; i < 1000; ++i) {
    entries.push_back(test::entry({"*" + std::to_string(i) + "*"}));
    entries.back().match.backend = "b" + std::to_string(i % 10);
    entries.back().exact = true;
  }
  const LimitTable limits(entries);
  profile::Profile profile = test::reference();
  for (int cell = 0; cell < 300; ++cell) {
    profile.cell.engine = "e" + std::to_string(cell % 3);
    profile.cell.backend = "b" + std::to_string(cell % 10);
    (void)judge_cell(profile, {}, limits, {});
  }
  // 3 engines, 10 backends, one model, prompt and variant; and the names of the profile.
  const std::size_t names = profile.metrics.size() + std::size(k_non_metrics) + 1;
  EXPECT_LE(limits.compared(), 1000 * (3 + 10 + 3 + names));
}

TEST(LimitTable, MatchesEachPatternOnceWithEachNameWhereverItIsAskedFor) {
  LimitEntry entry = test::entry({"kernel_calls:*"});
  entry.exact = true;
  for (int i = 0; i < 100; ++i) entry.metrics.push_back(fmt::format("kernel_calls:*{}*", i));
  const std::vector<LimitEntry> entries{entry};
  const LimitTable limits(entries);
  profile::Profile profile = test::reference();
  for (int i = 0; i < 500; ++i) profile.kernels->counts[fmt::format("k{}", i)] = 1;
  std::vector<CellVerdict> cells;
  for (int cell = 0; cell < 20; ++cell) {
    profile.cell.prompt = "p" + std::to_string(cell);
    cells.push_back(judge_cell(profile, {}, limits, {}));
  }
  const std::size_t once = limits.compared();
  EXPECT_THAT(limits_on_nothing(cells, limits, {}), testing::IsEmpty());
  EXPECT_EQ(limits.compared(), once) << "the names are known";
  EXPECT_LE(once, 20 + 101 * (profile.kernels->counts.size() + profile.metrics.size() +
                              std::size(k_non_metrics) + 1));
}

TEST(LimitTable, GivesUpWhereNamesAndPatternsMultiplyTooFar) {
  std::vector<LimitEntry> entries(20);
  for (std::size_t i = 0; i < 2000; ++i) {
    entries[i % 20].metrics.push_back(fmt::format("kernel_calls:*{}*", i));
    entries[i % 20].exact = true;
  }
  const LimitTable limits(entries);
  const EntrySet fitting = limits.fitting(test::reference().cell);
  const auto is_exact = [&](std::size_t name) {
    const auto metric = unit::find_metric(fmt::format("kernel_calls:k{}", name));
    return limits.resolve(fitting, *metric).exact;
  };
  for (std::size_t name = 0; name < 2000; ++name) ASSERT_TRUE(is_exact(name)) << name;
  EXPECT_FALSE(limits.has_given_up());
  EXPECT_FALSE(is_exact(2001));
  EXPECT_TRUE(limits.has_given_up());
  EXPECT_TRUE(is_exact(7)) << "a name that is known stays so";
  EXPECT_LE(limits.compared(), LimitTable::k_max_compared + 5 * entries.size());
}

TEST(LimitTable, WarnsOnceOfManyKernelsThatNobodyCompiled) {
  LimitEntry entry;
  entry.max = Amount{1, false};
  for (int i = 0; i < 500; ++i) entry.metrics.push_back("registers:k" + std::to_string(i));
  const CellVerdict cell = judge_cell(test::reference(), {}, std::vector{entry}, {});
  EXPECT_THAT(cell.warnings, testing::SizeIs(testing::Le(21)));
  EXPECT_THAT(cell.warnings, testing::Contains("480 more patterns of kernels: not judged"));
}

}  // namespace limit_table_test
}  // namespace weir::verdict
