// Tests of writing and reading stored baselines.
#include "gate/baseline/baseline.hpp"

#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gate/base/json.hpp"

namespace weir::baseline {
namespace baseline_test {

using profile::Nature;
using profile::Profile;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Key;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;
using Globs = std::vector<std::string>;

constexpr const char* k_class = "vulkan-10005-0-d-1-0a";

void add_count(Profile& profile, const std::string& name, Rational value) {
  profile::Measurement measured;
  measured.metric = unit::find_metric(name).value_or(
      unit::custom_metric(name, unit::Kind::count, unit::Unit::count, unit::Better::higher));
  measured.nature = Nature::exact;
  measured.source = "vulkan";
  measured.exact = value;
  measured.warnings = {"not for the baseline"};
  profile.metrics[name] = measured;
}

void add_rate(Profile& profile, std::vector<double> samples) {
  profile::Measurement measured;
  measured.metric = *unit::find_metric("decode_tokens_per_second");
  measured.source = "llama-bench";
  measured.samples = std::move(samples);
  profile.metrics[measured.metric.name] = measured;
}

Profile profile_with_counts() {
  Profile profile;
  profile.cell = *profile::CellKey::parse("llama.cpp/tiny-llama/vulkan/decode");
  profile.device = "vulkan";
  profile.provenance.fingerprint = "f00d";
  profile.provenance.fingerprint_parts = {{"arguments", "a1"}, {"model header", "b2"}};
  profile.provenance.device_class = k_class;
  profile.provenance.device_name = "llvmpipe (LLVM 15.0.6, 256 bits)";
  profile.provenance.machine_class = "machine-a";
  profile.provenance.machine_name = "two cores";
  profile.provenance.engine_build = "b1";
  profile.provenance.lengths = {8, 16, 24};
  add_count(profile, "dispatches_per_token", 65);
  add_count(profile, "dispatches_fixed", 65);
  add_count(profile, "barriers_per_token", *Rational::make(133, 2));
  add_count(profile, "layers_fused", 12);
  profile.kernels = profile::KernelSet{unit::Scope::per_token, {}, true, {{"mul", 65}}};
  profile.placement.state = profile::Placement::State::seen;
  profile.work.generated_tokens = 24;
  profile.warnings = {"not for the baseline"};
  return profile;
}

TEST(BaselineText, IsSortedWithOneNumberALineAndNothingOfTheMachine) {
  EXPECT_EQ(to_text(accept(profile_with_counts(), {}, {})), R"({
 "cell": "llama.cpp/tiny-llama/vulkan/decode",
 "counts": {
  "barriers_per_token": "133/2",
  "dispatches_fixed": 65,
  "dispatches_per_token": 65,
  "layers_fused": 12
 },
 "device_class": "vulkan-10005-0-d-1-0a",
 "device_name": "llvmpipe",
 "fingerprint": "f00d",
 "fingerprint_parts": {
  "arguments": "a1",
  "model header": "b2"
 },
 "kernels": {
  "counts": {
   "mul": 65
  },
  "named": true,
  "scope": "per_token"
 },
 "lengths": [
  8,
  16,
  24
 ],
 "metrics": {
  "layers_fused": {
   "better": "higher",
   "kind": "count",
   "unit": "count"
  }
 },
 "placement": {
  "state": "seen"
 },
 "schema": "weir.baseline/1",
 "sources": {
  "barriers": "vulkan",
  "dispatches": "vulkan",
  "layers_fused": "vulkan"
 },
 "work": {
  "generated_tokens": 24
 }
}
)");
}

TEST(BaselineText, IsTheSameOnTwoMachinesOfOneDeviceClass) {
  Profile on_machine_b = profile_with_counts();
  on_machine_b.provenance.machine_class = "machine-b";
  on_machine_b.provenance.machine_name = "sixty-four cores";
  on_machine_b.provenance.engine_build = "b2";
  on_machine_b.provenance.device_name = "llvmpipe (LLVM 15.0.6, 512 bits)";
  EXPECT_EQ(to_text(accept(on_machine_b, {}, {})), to_text(accept(profile_with_counts(), {}, {})));
}

TEST(BaselineText, ComesBackAsItWas) {
  Profile profile = profile_with_counts();
  add_rate(profile, {28.6, 28.123456789012345});
  profile.metrics["syncs_at_16"].metric = *unit::find_metric("syncs_at_16");
  profile.metrics["syncs_at_16"].nature = Nature::nearly_exact;
  profile.metrics["syncs_at_16"].source = "vulkan";
  profile.metrics["syncs_at_16"].samples = {17, 18, 17};
  profile.metrics["syncs_at_16"].relative_spread = 1.0 / 17;
  profile.metrics["syncs_per_token"] = profile.metrics["dispatches_per_token"];
  profile.metrics["syncs_per_token"].metric = *unit::find_metric("syncs_per_token");
  profile.metrics["syncs_per_token"].source = "llama-bench";
  profile.reference = {"pinned/m/cpu/p", "f00d", "b1", "decode_tokens_per_second", {99.5, 100}};
  const std::string text = to_text(accept(profile, {}, {}));
  const auto back = parse(text);
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(to_text(*back), text);
  EXPECT_EQ(back->sessions.at("machine-a").at(0).reference, profile.reference);
  EXPECT_EQ(back->counts.at("barriers_per_token").exact, Rational::make(133, 2));
  EXPECT_EQ(back->counts.at("layers_fused").metric.better, unit::Better::higher);
  EXPECT_EQ(back->counts.at("syncs_at_16").nature, Nature::nearly_exact);
  EXPECT_EQ(back->counts.at("syncs_at_16").value(), 17);
  EXPECT_THAT(back->counts.at("syncs_at_16").samples, ElementsAre(17, 17, 18));
  EXPECT_EQ(back->counts.at("syncs_at_16").relative_spread, 1.0 / 17);
  EXPECT_EQ(back->counts.at("syncs_at_16").source, "vulkan");
  EXPECT_EQ(back->counts.at("syncs_per_token").source, "llama-bench");
  EXPECT_THAT(back->sessions.at("machine-a").at(0).samples.at("decode_tokens_per_second"),
              ElementsAre(28.6, 28.123456789012345));
}

TEST(BaselineParse, SaysWhatIsWrong) {
  const Json good = *parse_json(to_text(accept(profile_with_counts(), {}, {})));
  struct Case {
    const char* pointer;
    Json value;
    const char* message;
  };
  const Case k_cases[] = {
      {"/schema", "weir.baseline/9", "weir.baseline/1"},
      {"/cell", "../../etc/passwd/x", "not a cell"},
      {"/device_class", "../x", "device_class"},
      {"/counts/dispatches_per_token", 6.5, "counts"},
      {"/counts/dispatches_per_token", "65/0", "counts"},
      {"/counts/decode_tokens_per_second", 5, "decode_tokens_per_second"},
      {"/counts/unheard_of", 5, "unheard_of"},
      {"/nearly_exact", {{"dispatches_per_token", {{"median", 1}, {"repeatability", 0}}}}, "both"},
      {"/nearly_exact", {{"syncs_per_token", {{"median", 1}, {"repeatability", -1}}}}, "negative"},
      {"/nearly_exact",
       {{"syncs_at_16",
         {{"median", 1}, {"repeatability", 0}, {"values", {{"1", std::int64_t{1} << 40}}}}}},
       "values"},
      {"/nearly_exact",
       {{"syncs_at_16", {{"median", 1}, {"repeatability", 0}, {"values", {{"x", 1}}}}}},
       "values"},
      {"/lengths", {1, 2.5}, "lengths"},
      {"/lengths", {8, 16}, "lengths"},
      {"/lengths", {8, 16, 24, 32}, "lengths"},
      {"/lengths", {8, 8, 16}, "lengths"},
      {"/lengths", {16, 8, 24}, "lengths"},
      {"/lengths", {0, 8, 16}, "lengths"},
      {"/lengths", {-8, 8, 16}, "lengths"},
      {"/lengths", {8, 16, 4097}, "lengths"},
      {"/lengths", Json::array({-1}), "lengths"},
      {"/sessions", {{"m", {{{"samples", {{"x", {"fast"}}}}}}}}, "samples"},
      {"/sessions",
       {{"m",
         {{{"samples", {{"x", {1}}}},
           {"reference",
            {{"cell", "c"}, {"fingerprint", "f"}, {"engine_build", ""}, {"rates", {1}}}}}}}},
       "metric"},
      {"/kernels/scope", "per_aeon", "scope"},
      {"/placement/state", "elsewhere", "state"},
      {"/reason", "two\nlines", "one line"},
      {"/reason", "\x1b[31mred", "one line"},
      {"/reason", std::string(1001, 'a'), "one line"},
  };
  for (const Case& test_case : k_cases) {
    Json json = good;
    json[Json::json_pointer(test_case.pointer)] = test_case.value;
    const auto back = parse(json.dump());
    ASSERT_FALSE(back) << test_case.pointer;
    EXPECT_THAT(back.error().message, HasSubstr(test_case.message)) << test_case.pointer;
    EXPECT_THAT(back.error().message, HasSubstr("not a baseline"));
  }
  EXPECT_FALSE(parse(""));
  EXPECT_FALSE(parse("[]"));
  EXPECT_FALSE(parse(std::string(100, '[')));
}

// Empty without a counted pass, one where the engine counts by itself (0 in a prefill).
TEST(BaselineParse, TakesTheLengthsThatWeirWrites) {
  Json json = *parse_json(to_text(accept(profile_with_counts(), {}, {})));
  for (const Json& lengths : {Json::array(), Json::array({0}), Json::array({1'000'000}),
                              Json::array({1, 2, 3}), Json::array({8, 16, 24})}) {
    json["lengths"] = lengths;
    EXPECT_TRUE(parse(json.dump())) << lengths;
  }
}

TEST(KeptLengths, AreOfThisDeviceClassWhereThatFileIsThere) {
  struct Case {
    const char* device_class;
    std::vector<std::string> stored;  // classes; the lengths are told apart by their place
    std::int64_t want;                // first length; 0: none
  };
  const std::string a = "vulkan-10005-0-d-1-0a", b = "vulkan-10005-0-d-2-0a",
                    c = "vulkan-9-9-d-1-0";
  for (const Case& test_case :
       {Case{b.c_str(), {a, b, c}, 5}, Case{a.c_str(), {a, b, c}, 4}, Case{c.c_str(), {a, b}, 4},
        Case{"", {b, a}, 5}, Case{b.c_str(), {}, 0}, Case{"vulkan-9-9-d-7-0", {a, c}, 5}}) {
    Profile candidate = profile_with_counts();
    candidate.provenance.device_class = test_case.device_class;
    std::vector<Baseline> stored;
    for (const std::string& device_class : test_case.stored) {
      const auto n = static_cast<std::int64_t>(stored.size()) + 4;
      stored.push_back(accept(profile_with_counts(), {}, {}));
      stored.back().device_class = device_class;
      stored.back().lengths = {n, 2 * n, 3 * n};
    }
    const auto lengths = comparable_lengths(candidate.cell, candidate.provenance, stored);
    EXPECT_EQ(lengths.empty() ? 0 : lengths.front(), test_case.want) << test_case.device_class;
  }
  Profile candidate = profile_with_counts();
  Baseline changed = accept(candidate, {}, {}), timed_only = changed;
  changed.fingerprint = "another cell";
  timed_only.lengths.clear();
  const Baseline stored[] = {changed, timed_only};
  EXPECT_TRUE(comparable_lengths(candidate.cell, candidate.provenance, stored).empty());
}

// Nobody wrote that change: a new weir has another expansion of the same file.
TEST(BaselineChoice, NamesAPresetWhoseVersionIsAnother) {
  const struct {
    const char *then, *now, *words;
  } cases[] = {
      {"llama-bench 1", "llama-bench 2",
       "; preset llama-bench is version 2 now, the baseline was made with version 1"},
      {"llama-bench 1", "llama-bench 1", ""},
      {"", "llama-bench 2", ""},
      {"vllm 1", "llama-bench 2", ""},
  };
  for (const auto& test_case : cases) {
    Profile then = profile_with_counts(), now = then;
    then.provenance.preset = test_case.then;
    then.provenance.fingerprint_parts = {{"arguments", "aa"}};
    now.provenance.preset = test_case.now;
    now.provenance.fingerprint = "another";
    now.provenance.fingerprint_parts = {{"arguments", "bb"}};
    const auto stored = parse(to_text(accept(then, {}, {})));
    ASSERT_TRUE(stored) << stored.error().message;
    const BaselineChoice choice = choose_baseline(now, {&*stored, 1});
    EXPECT_EQ(choice.match, BaselineChoice::Match::fingerprint);
    EXPECT_EQ(choice.reason,
              std::string("the baselines were stored with other settings: arguments changed") +
                  test_case.words);
  }
}

// From a stranger's pull request: an answer, never a crash; what is taken can be written and read.
TEST(BaselineParse, SurvivesTenThousandMutatedFiles) {
  Profile profile = profile_with_counts();
  add_rate(profile, {28.6, 28.1});
  const std::string good = to_text(accept(profile, {}, {}));
  std::mt19937 random(1);
  const std::string_view k_pieces[] = {"{}",
                                       "[]",
                                       "null",
                                       "-1",
                                       "1e308",
                                       "\"\"",
                                       "18446744073709551615",
                                       "\"1/3\"",
                                       "[[[[[[[[[[[[[[[["};
  std::size_t taken = 0;
  for (int i = 0; i < 10000; ++i) {
    std::string text = good;
    for (auto edits = 1 + random() % 3; edits > 0 && !text.empty(); --edits) {
      const std::size_t at = random() % text.size();
      switch (random() % 4) {
        case 0:
          text[at] = static_cast<char>(random() % 256);
          break;
        case 1:
          text.erase(at, 1 + random() % 8);
          break;
        case 2:
          text.insert(at, k_pieces[random() % std::size(k_pieces)]);
          break;
        default: {
          const std::size_t colon = text.find(':', at);
          const std::size_t end = text.find_first_of(",}\n", colon);
          if (end != std::string::npos) {
            text.replace(colon + 1, end - colon - 1, k_pieces[random() % std::size(k_pieces)]);
          }
        }
      }
    }
    const auto baseline = parse(text);
    if (!baseline) continue;
    ++taken;
    const std::string once = to_text(*baseline);
    const auto again = parse(once);
    ASSERT_TRUE(again) << again.error().message << "\n" << text;
    ASSERT_EQ(to_text(*again), once);
  }
  EXPECT_GT(taken, 100U);  // else the mutations never reached past the parser
}

TEST(BaselinePath, NeverLeavesItsFolder) {
  profile::CellKey key = *profile::CellKey::parse("e@v/m/b/p@d256");
  EXPECT_EQ(*path_of(key, k_class), "e@v/m/b/p@d256/vulkan-10005-0-d-1-0a.json");
  for (const std::string& name :
       {std::string(), std::string(".."), std::string("a/b"), std::string("-x"),
        std::string(".hidden"), std::string(129, 'a'), std::string("a\0b", 3)}) {
    EXPECT_FALSE(path_of(key, name)) << name;
  }
  key.model = "..";
  EXPECT_FALSE(path_of(key, k_class));
  key.model = "a/b";
  EXPECT_FALSE(path_of(key, k_class));
}

TEST(Accept, KeepsSessionsWhenOnlyCountsWereMeasured) {
  Profile full = profile_with_counts();
  add_rate(full, {28});
  const Baseline old = accept(full, {}, {});
  Profile counts = profile_with_counts();
  add_count(counts, "dispatches_per_token", 66);
  const Baseline accepted = accept(counts, old, {});
  EXPECT_EQ(accepted.counts.at("dispatches_per_token").exact, Rational(66));
  EXPECT_EQ(accepted.sessions.at("machine-a").size(), 1U);
}

TEST(Accept, KeepsCountsWhenOnlyTimesWereMeasured) {
  const Baseline old = accept(profile_with_counts(), {}, {});
  Profile timed = profile_with_counts();
  timed.metrics.clear();
  timed.kernels.reset();
  timed.provenance.lengths.clear();
  add_rate(timed, {28});
  const Baseline accepted = accept(timed, old, {});
  EXPECT_EQ(accepted.counts.size(), old.counts.size());
  EXPECT_TRUE(accepted.kernels);
  EXPECT_THAT(accepted.lengths, ElementsAre(8, 16, 24));
  EXPECT_EQ(accepted.sessions.at("machine-a").size(), 1U);
}

TEST(Accept, KeepsTheTwentyNewestSessionsOfOneEngineBuild) {
  std::optional<Baseline> stored;
  Profile profile = profile_with_counts();
  for (int i = 0; i < 25; ++i) {
    add_rate(profile, {static_cast<double>(i + 1)});
    stored = accept(profile, stored, {});
  }
  const auto& sessions = stored->sessions.at("machine-a");
  ASSERT_EQ(sessions.size(), k_sessions_kept);
  EXPECT_THAT(sessions.front().samples.at("decode_tokens_per_second"), ElementsAre(6));
  EXPECT_THAT(sessions.back().samples.at("decode_tokens_per_second"), ElementsAre(25));

  profile.provenance.machine_class = "machine-b";
  stored = accept(profile, stored, {});
  profile.provenance.machine_class = "machine-a";
  profile.provenance.engine_build = "b2";
  stored = accept(profile, stored, {});
  EXPECT_EQ(stored->sessions.at("machine-a").size(), 1U) << "another build starts a new set";
  EXPECT_EQ(stored->sessions.at("machine-b").size(), 1U) << "of this machine class alone";
}

TEST(Accept, TakesOneRunAcceptedTwiceForOneSession) {
  Profile profile = profile_with_counts();
  add_rate(profile, {10, 11, 12});
  const Baseline once = accept(profile, {}, {});
  EXPECT_EQ(to_text(accept(profile, once, {})), to_text(once));
}

// Memory without noise: the samples of two runs are equal, and agree.
TEST(Accept, StoresARunWhoseSamplesEqualThoseOfAnother) {
  Profile profile = profile_with_counts();
  add_rate(profile, {10, 10, 10});
  std::optional<Baseline> stored;
  for (const char* run : {"a1", "b2", "b2", "c3", "a1"}) {
    profile.provenance.timed_run = run;
    stored = parse(to_text(accept(profile, stored, {}))).value();
  }
  EXPECT_EQ(stored->sessions.at("machine-a").size(), 3U);
}

TEST(Accept, ChangesOnlyTheMetricsItIsGiven) {
  const Baseline old = accept(profile_with_counts(), {}, {});
  Profile now = profile_with_counts();
  add_count(now, "dispatches_per_token", 77);
  add_count(now, "barriers_per_token", 58);
  now.kernels->counts = {{"add", 77}};
  now.work.printed_values = {{"barriers_per_token", 8}, {"dispatches_per_token", 9}};
  add_rate(now, {28});
  const Baseline barriers = accept(now, old, Globs{"barriers_*"});
  EXPECT_EQ(barriers.counts.at("barriers_per_token").exact, Rational(58));
  EXPECT_EQ(barriers.counts.at("dispatches_per_token").exact, Rational(65));
  EXPECT_THAT(barriers.work.printed_values, ElementsAre(Pair("barriers_per_token", 8)));
  EXPECT_EQ(parse(to_text(barriers))->work, barriers.work);
  EXPECT_EQ(barriers.kernels, old.kernels);
  EXPECT_TRUE(barriers.sessions.empty());
  const Baseline dispatches = accept(now, old, Globs{"dispatches_per_token"});
  EXPECT_EQ(dispatches.kernels, now.kernels) << "kernels are what the dispatches are made of";
  now.work.printed_values["decode_tokens_per_second"] = 3;
  const Baseline decode = accept(now, old, Globs{"decode_*"});
  EXPECT_THAT(decode.sessions, ElementsAre(Key("machine-a")));
  EXPECT_THAT(decode.work.printed_values, ElementsAre(Pair("decode_tokens_per_second", 3)));
}

TEST(Accept, StartsAnewForAnotherFingerprint) {
  Profile full = profile_with_counts();
  add_rate(full, {28});
  const Baseline old = accept(full, {}, {});
  Profile changed = profile_with_counts();
  changed.provenance.fingerprint = "beef";
  changed.metrics.erase("layers_fused");
  const Baseline accepted = accept(changed, old, Globs{"dispatches_*"});
  EXPECT_TRUE(accepted.sessions.empty());
  EXPECT_THAT(accepted.counts,
              UnorderedElementsAre(Key("dispatches_per_token"), Key("dispatches_fixed")));
}

TEST(Accept, KeepsAReasonUntilAnotherValueTakesItsPlace) {
  const Baseline with = accept(profile_with_counts(), {}, {}, "the new sampler");
  EXPECT_EQ(parse(to_text(with))->reason, "the new sampler");
  Profile again = profile_with_counts();
  add_rate(again, {28});
  EXPECT_EQ(accept(again, with, {}).reason, "the new sampler") << "one more stored run";
  Baseline named = with;
  named.device_name = "AMD EPYC";
  EXPECT_EQ(accept(again, named, {}).reason, "the new sampler") << "a name changes no counts";
  EXPECT_EQ(accept(again, with, {}, "another").reason, "the new sampler") << "of another cell";
  const Baseline without = accept(profile_with_counts(), {}, {});
  EXPECT_EQ(accept(again, without, {}, "another").reason, "another") << "it had none";
  add_count(again, "dispatches_per_token", 66);
  EXPECT_EQ(accept(again, with, {}).reason, "") << "it was said of other counts";
  EXPECT_EQ(accept(again, with, {}, "another").reason, "another");
  again.provenance.fingerprint = "beef";
  EXPECT_EQ(accept(again, with, {}).reason, "");
}

TEST(Choose, TakesTheSameClassThenTheNearestThenNone) {
  const auto stored_as = [](const char* device_class, const char* fingerprint = "f00d") {
    Baseline baseline = accept(profile_with_counts(), {}, {});
    baseline.device_class = device_class;
    baseline.device_name = "GPU";
    baseline.fingerprint = fingerprint;
    return baseline;
  };
  using Match = BaselineChoice::Match;
  struct Case {
    std::vector<Baseline> stored;
    Match match;
    const char* device_class;
    const char* message;
  };
  Baseline other_cell = stored_as(k_class);
  other_cell.cell = "e/m/b/p";
  Baseline other_arguments = stored_as(k_class, "beef");
  other_arguments.fingerprint_parts = {
      {"arguments", "a9"}, {"model header", "b2"}, {"prompt", "c"}};
  const Case k_cases[] = {
      {{}, Match::none, nullptr, "no baseline is stored"},
      {{other_cell}, Match::none, nullptr, "no baseline is stored"},
      {{stored_as("vulkan-10005-0-d-2-0a"), stored_as(k_class)}, Match::same, k_class, ""},
      {{stored_as("vulkan-10005-0-c-1-0a"), stored_as("vulkan-10005-0-d-1-0b"),
        stored_as("vulkan-10005-0-d-2-0a")},
       Match::nearest,
       "vulkan-10005-0-d-1-0b",
       "nearest device class, vulkan-10005-0-d-1-0b"},
      {{stored_as("vulkan-1002-744c-3-4-0a")},
       Match::other_class,
       "vulkan-1002-744c-3-4-0a",
       "of another device class: GPU"},
      {{stored_as("vulkan-10005-0")},
       Match::other_class,
       "vulkan-10005-0",
       "of another device class"},
      {{other_arguments},
       Match::fingerprint,
       k_class,
       "stored with other settings: arguments, prompt changed"},
      {{other_arguments, stored_as("vulkan-10005-0-d-2-0a")},
       Match::nearest,
       "vulkan-10005-0-d-2-0a",
       "nearest device class"},
      {{other_arguments, stored_as("cpu-x86-64-v3")},
       Match::fingerprint,
       k_class,
       "stored with other settings: arguments, prompt changed"},
  };
  Baseline other_in_both = other_arguments;
  other_in_both.device_class = "vulkan-1002-744c-3-4-0a";
  EXPECT_EQ(choose_baseline(profile_with_counts(), {{other_in_both}}).reason,
            "the baselines were stored with other settings, on another device class (GPU): "
            "arguments, prompt changed");
  for (const Case& test_case : k_cases) {
    const BaselineChoice choice = choose_baseline(profile_with_counts(), test_case.stored);
    EXPECT_EQ(choice.match, test_case.match) << test_case.message;
    EXPECT_THAT(choice.reason, HasSubstr(test_case.message));
    ASSERT_EQ(choice.baseline.has_value(), test_case.device_class != nullptr);
    if (choice.baseline) {
      EXPECT_EQ(choice.baseline->device_class, test_case.device_class);
    }
  }
}

TEST(Choose, NamesVariablesThatChangedWhereBothSidesKnowThem) {
  Profile now = profile_with_counts();
  now.provenance.fingerprint_parts = {{"environment", "e2"}, {"variables", "A=1 A1=1 FUSION=2"}};
  const auto reason = [&](const std::map<std::string, std::string>& then) {
    Baseline stored = accept(now, {}, {});
    stored.fingerprint = "beef";
    stored.fingerprint_parts = then;
    return choose_baseline(now, {{stored}}).reason;
  };
  const std::string begin = "the baselines were stored with other settings: ";
  EXPECT_EQ(reason({{"environment", "e1"}, {"variables", "A=1 FUSION=1 GONE=1"}}),
            begin + "environment (A1, FUSION, GONE) changed");
  EXPECT_EQ(reason({{"environment", "e1"}, {"variables", ""}}),
            begin + "environment (A, A1, FUSION) changed");
  EXPECT_EQ(reason({{"environment", "e1"}}), begin + "environment changed") << "of a private cell";
  EXPECT_EQ(reason({{"environment", "e2"}, {"prompt", "p"}}), begin + "prompt changed");
  EXPECT_THAT(reason({{"environment", "e1"}, {"variables", "\x1b[31m" + std::string(5000, 'x')}}),
              testing::AllOf(HasSubstr("…) changed"), testing::Not(HasSubstr("\x1b"))));
}

TEST(Choose, NamesTheLastWordsOfABaseThatEnded) {
  Profile base = profile_with_counts();
  base.errors = {"counted: exited with code 127"};
  base.stderr_tail = "loading\nerror while loading shared libraries: libllama.so.0\n";
  const BaselineChoice choice = choose_run(profile_with_counts(), base);
  EXPECT_EQ(choice.reason,
            "the base could not measure this cell: counted: exited with code 127: error while "
            "loading shared libraries: libllama.so.0");
}

Baseline accepted_on(const std::string& device_class, const std::string& device_name = "") {
  Profile profile = profile_with_counts();
  profile.provenance.device_class = device_class;
  profile.provenance.device_name = device_name;
  return accept(profile, {}, {});
}

BaselineChoice chosen_on(const std::string& device_class, std::vector<Baseline> stored) {
  Profile profile = profile_with_counts();
  profile.provenance.device_class = device_class;
  return choose_baseline(profile, stored);
}

TEST(Choose, NeverTakesOneTwinForAnotherNorACpuForAGpu) {
  for (const auto& [stored, candidate] : {std::pair("twin-amd-rx-7900-xtx", "twin-amd-rx-6900-xt"),
                                          {"twin-amd-rx-7900-xtx", "cpu-x86-64-v4"},
                                          {"cpu-x86-64-v4", "vulkan-10005-0-d-1-0a"},
                                          {"vulkan-10005-0-d-1-0a", "cpu-x86-64-v4"},
                                          {"cpu-x86-64-v4", "cpux-zen4"}}) {
    EXPECT_EQ(chosen_on(candidate, {accepted_on(stored)}).match, BaselineChoice::Match::other_class)
        << candidate;
  }
}

TEST(Choose, TakesTheBaselineOfAnotherCpuForTheNearestClass) {
  const std::vector<Baseline> stored{accepted_on("cpu-arm64-dotprod"), accepted_on("cpu-x86-64-v2"),
                                     accepted_on("cpu-x86-64-v4")};
  for (const auto& [candidate, nearest] :
       {std::pair("cpu-x86-64-v3", "cpu-x86-64-v2"), {"cpu-arm64", "cpu-arm64-dotprod"}}) {
    const BaselineChoice choice = chosen_on(candidate, stored);
    EXPECT_EQ(choice.match, BaselineChoice::Match::nearest) << candidate;
    EXPECT_EQ(choice.baseline->device_class, nearest) << candidate;
    EXPECT_EQ(choice.reason,
              fmt::format("the baseline is of the nearest device class, {}", nearest));
  }
  EXPECT_EQ(chosen_on("cpu-x86-64-v4", stored).match, BaselineChoice::Match::same);
}

TEST(Choose, NamesACpuByItsClassAndNeverByItsModel) {
  Baseline older = accepted_on("cpu-zen4");
  EXPECT_EQ(to_text(accepted_on("cpu-zen4", "AMD EPYC")), to_text(older));
  older.device_name = "AMD EPYC";  // as baselines had it once
  EXPECT_EQ(chosen_on("twin-nvidia-h100", {older}).reason,
            "the baselines are of another device class: cpu-zen4");
  EXPECT_EQ(accepted_on("vulkan-1002-744c-3-4-0a", "Radeon RX 7900 (RADV)").device_name,
            "Radeon RX 7900");
}

Profile profile_with_instructions() {
  Profile profile = profile_with_counts();
  profile::Measurement measured;
  measured.metric = *unit::find_metric("instructions_per_token");
  measured.nature = Nature::nearly_exact;
  measured.source = "valgrind";
  measured.samples = {100, 101, 102};
  measured.relative_spread = 2.0 / 101;
  profile.metrics[measured.metric.name] = measured;
  profile.functions = profile::KernelSet{unit::Scope::per_token, {}, false, {{"dot", 90}}};
  return profile;
}

TEST(Baseline, HoldsTheFunctionsThatTookItsInstructions) {
  const Baseline accepted = accept(profile_with_instructions(), std::nullopt, {});
  const auto read = parse(to_text(accepted));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->functions, accepted.functions);
  EXPECT_EQ(read->functions->counts.at("dot"), Rational(90));
  EXPECT_EQ(to_text(*read), to_text(accepted));
}

TEST(Accept, LeavesInstructionsThatThisMachineCanNotCountAsTheyAre) {
  const Baseline old = accept(profile_with_instructions(), std::nullopt, {});
  Profile now = profile_with_counts();
  EXPECT_FALSE(accept(now, old, {}).counts.contains("instructions_per_token"));
  EXPECT_FALSE(accept(now, old, {}).functions);
  now.instructions_skip_reason = "no counters here";
  EXPECT_TRUE(accept(now, old, {}).counts.contains("instructions_per_token"));
  EXPECT_EQ(accept(now, old, {}).functions, old.functions);
  EXPECT_EQ(accept(profile_with_instructions(), old, Globs{"dispatches*"}).functions,
            old.functions);
}

}  // namespace baseline_test
}  // namespace weir::baseline
