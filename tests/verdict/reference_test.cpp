// Tests stored times on the present machine: the reference workload shows how fast it is.
#include <gmock/gmock.h>

#include "gate/verdict/verdict.hpp"

namespace weir::verdict {
namespace reference_test {

using ::testing::HasSubstr;
using Numbers = std::vector<double>;

constexpr const char* k_rate = "decode_tokens_per_second";
constexpr const char* k_first = "time_to_first_token_seconds";
const profile::CellKey k_cell = *profile::CellKey::parse("e/m/cpu/p");

// Returns ten processes around `middle`, at most one per cent apart.
Numbers around(double middle) {
  Numbers numbers;
  for (int i = 0; i < 10; ++i) numbers.push_back(middle * (1 + 0.001 * ((i * 7) % 10 - 4.5)));
  return numbers;
}

profile::Profile make_profile(const std::string& metric, const Numbers& samples,
                              std::optional<Numbers> reference) {
  profile::Profile profile;
  profile.cell = k_cell;
  profile.device = "cpu";
  profile.provenance.fingerprint = "f";
  profile.provenance.device_class = "cpu-x";
  profile.provenance.machine_class = "machine";
  profile.timed_runs = static_cast<std::int64_t>(samples.size());
  profile::Measurement& measured = profile.metrics[metric];
  measured.metric = *unit::find_metric(metric);
  measured.samples = samples;
  if (reference) profile.reference = {"pinned/m/cpu/p", "f", "b1", k_rate, *reference};
  return profile;
}

CellVerdict judge(const profile::Profile& now, const profile::Profile& then) {
  LimitEntry limit;
  limit.metrics = {k_rate};
  limit.max_drop = Amount{0.2, true};
  LimitEntry rise;
  rise.metrics = {k_first};
  rise.max_increase = Amount{0.2, true};
  const LimitEntry limits[] = {limit, rise};
  const baseline::Baseline stored = baseline::accept(then, std::nullopt, {});
  return judge_cell(now, {baseline::choose_baseline(now, {&stored, 1})}, limits, {});
}

TEST(ReferenceWorkload, TellsASlowMachineFromASlowProgram) {
  const struct {
    const char* what;
    const char* metric;
    double now, reference_now;  // base: 100 each
    Outcome expected;
    double change;
  } cases[] = {
      {"nothing changed", k_rate, 100, 100, Outcome::pass, 0},
      {"a slow machine", k_rate, 60, 60, Outcome::pass, 0},
      {"a slow program", k_rate, 60, 100, Outcome::fail, -0.4},
      {"a slow program on a fast machine", k_rate, 100, 160, Outcome::fail, 100 / 160.0 - 1},
      {"a time on a slow machine", k_first, 200, 50, Outcome::pass, 0},
      {"a longer time", k_first, 200, 100, Outcome::fail, 1},
  };
  for (const auto& c : cases) {
    const CellVerdict cell =
        judge(make_profile(c.metric, around(c.now), Numbers(10, c.reference_now)),
              make_profile(c.metric, around(100), Numbers(10, 100)));
    ASSERT_EQ(cell.metrics().size(), 1U);
    EXPECT_EQ(cell.metrics()[0].verdict, c.expected) << c.what << ": " << cell.metrics()[0].reason;
    EXPECT_NEAR(*cell.metrics()[0].change, c.change, 0.01) << c.what;
  }
}

// A drift within the run affects both: sample by sample, their quotient stays.
TEST(ReferenceWorkload, IsTakenRoundByRound) {
  Numbers drifting;
  for (int i = 0; i < 10; ++i) drifting.push_back(100 - 6 * i);
  const CellVerdict cell = judge(make_profile(k_rate, drifting, drifting),
                                 make_profile(k_rate, around(100), around(100)));
  EXPECT_EQ(cell.metrics()[0].verdict, Outcome::pass) << cell.metrics()[0].reason;
  EXPECT_LT(*cell.metrics()[0].high - *cell.metrics()[0].low, 0.25);
}

TEST(ReferenceWorkload, IsNotUsedWhereItDidNotRunBesideBoth) {
  const profile::Profile slow = make_profile(k_rate, around(60), Numbers(10, 60));
  profile::Profile other_cell = make_profile(k_rate, around(100), Numbers(10, 100));
  other_cell.reference->cell = "another/m/cpu/p";
  profile::Profile built = other_cell, changed = other_cell;
  built.reference = changed.reference = slow.reference;
  built.reference->engine_build = "b2";
  changed.reference->fingerprint = "g";
  for (const profile::Profile& then :
       {make_profile(k_rate, around(100), std::nullopt), other_cell, built, changed}) {
    const CellVerdict cell = judge(slow, then);
    EXPECT_EQ(cell.metrics()[0].verdict, Outcome::fail);
    ASSERT_EQ(cell.notes.size(), 1U);
    EXPECT_THAT(cell.notes[0], HasSubstr("as it is did not run beside the stored samples"));
  }
  // One of the two did not report in a round, so samples have no partners.
  const CellVerdict cell = judge(make_profile(k_rate, Numbers(9, 60), Numbers(10, 60)),
                                 make_profile(k_rate, around(100), Numbers(10, 100)));
  EXPECT_EQ(cell.metrics()[0].verdict, Outcome::fail);
}

TEST(ReferenceWorkload, IsShownAndNeverJudged) {
  profile::Profile now = make_profile(k_rate, around(60), Numbers(10, 60));
  profile::Profile then = make_profile(k_rate, around(100), Numbers(10, 100));
  now.reference->cell = then.reference->cell = k_cell.str();
  const CellVerdict cell = judge(now, then);
  EXPECT_EQ(cell.metrics()[0].verdict, Outcome::info);
  EXPECT_NE(cell.verdict, Outcome::fail);
}

}  // namespace reference_test
}  // namespace weir::verdict
