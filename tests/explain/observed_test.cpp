// Explanations of profilers' outputs.
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/explain/build.hpp"

namespace weir::explain {
namespace observed_test {

using observed::Observed;
using observed::Phase;
using testing::HasSubstr;

void add_op(Observed& observed, const std::string& op, const std::string& backend,
            std::int64_t calls, double seconds) {
  observed::ObservedOp row;
  row.op = op;
  row.backend = backend;
  row.calls = calls;
  row.seconds = seconds;
  row.phase = Phase::decode;
  observed.ops.push_back(row);
}

// A run of ten tokens of a model with eight layers.
Observed ten_tokens() {
  Observed observed;
  observed.format = "made";
  observed.context.backend = "Vulkan";
  observed.profiled_tokens = 10;
  add_op(observed, "MUL_MAT", "Vulkan0", 570, 0.30);
  add_op(observed, "RMS_NORM", "Vulkan0", 170, 0.02);
  add_op(observed, "ADD", "Vulkan0", 160, 0.02);
  add_op(observed, "ROPE", "Vulkan0", 160, 0.02);
  add_op(observed, "SOFT_MAX", "Vulkan0", 80, 0.03);
  add_op(observed, "GET_ROWS", "CPU", 10, 0.001);
  return observed;
}

TEST(ObservedRuns, TellOfAnOpThatMovedToTheCpu) {
  const Observed before = ten_tokens();
  Observed after = before;
  after.ops[4].backend = "CPU";
  const ModelFacts model = test::plain_model(8);
  const auto why = explain(make_evidence(before, after), &model, {default_bands(), {}});
  ASSERT_FALSE(why.findings.empty());
  EXPECT_EQ(why.findings.front().kind, "work_moved_to_cpu");
  EXPECT_THAT(why.findings.front().headline, HasSubstr("SOFT_MAX 8 times a token"));
  EXPECT_EQ(why.findings.front().per_layer, 1);
}

TEST(OneObservedRun, WithoutOpsHasNoChecklist) {
  Observed load;
  load.timings = {{*unit::find_metric("output_tokens_per_second"), {}, 840, std::nullopt}};
  const auto why = explain(make_evidence(load), nullptr, {default_bands(), {}});
  EXPECT_FALSE(why.has_work);
  EXPECT_TRUE(why.checklist.empty());
  EXPECT_THAT(why.warnings, testing::ElementsAre(HasSubstr("there is none to explain")));
  EXPECT_TRUE(explain(make_evidence(ten_tokens()), nullptr, {default_bands(), {}}).has_work);
}

TEST(OneObservedRun, HasTheChecklistAndComparesNothing) {
  const auto why = explain(make_evidence(ten_tokens()), nullptr, {default_bands(), {}});
  EXPECT_TRUE(why.is_alone);
  EXPECT_FALSE(why.sides_differ);
  EXPECT_TRUE(why.findings.empty());
  const struct {
    const char* question;
    Check::Answer answer;
    const char* note;
  } cases[] = {
      {"Profiled with a baseline", Check::Answer::wrong, "weir explain BASE THIS"},
      // MUL_MAT takes 0.30 of 0.391 seconds.
      {"The slowest operation is known", Check::Answer::fine, "MUL_MAT takes 77 %"},
      {"Work that may overlap is batched", Check::Answer::unknown, "no baseline"},
      {"Ops in a row are fused", Check::Answer::unknown, "no baseline"},
  };
  for (const auto& entry : cases) {
    const auto match = std::ranges::find(why.checklist, entry.question, &Check::question);
    ASSERT_NE(match, why.checklist.end()) << entry.question;
    EXPECT_EQ(match->answer, entry.answer) << entry.question;
    EXPECT_THAT(match->note, HasSubstr(entry.note));
  }
}

// A token of Agave's handbook that does not list most layers; times in seconds by layer.
Observed token_of_layers(const std::map<std::int64_t, double>& not_listed) {
  Observed observed;
  observed.profiled_tokens = 1;
  for (const auto& [op, seconds] : {std::pair{"embedLookup", 0.0002},
                                    {"rmsNorm", 0.0003},
                                    {"gemv", 0.0062},
                                    {"rope", 0.0001},
                                    {"sdpa", 0.0013},
                                    {"final_norm", 0.0003},
                                    {"lm_head_gemv", 0.0121}}) {
    add_op(observed, op, "Metal", 1, seconds);
  }
  for (const std::size_t index : {1U, 2U, 3U, 4U}) observed.ops[index].layer = 0;
  for (const auto& [layer, seconds] : not_listed) {
    add_op(observed, std::string(observed::k_not_listed), "Metal", 1, seconds);
    observed.ops.back().layer = layer;
  }
  return observed;
}

TEST(ObservedRuns, NameTheLayersOfTimeThatIsNotListed) {
  const std::map<std::int64_t, double> usual{{1, 0.008}, {31, 0.0081}};
  const struct {
    std::map<std::int64_t, double> after;
    const char* headline;
    std::vector<std::int64_t> layers;
  } cases[] = {
      {{{1, 0.016}, {31, 0.0081}}, "Layer 1 takes 2 times as long (8.00 ms → 16.0 ms).", {1}},
      {{{1, 0.016}, {31, 0.0243}},
       "2 layers take longer, most of all layer 31 (8.10 ms → 24.3 ms).",
       {1, 31}},
      {{{1, 0.0016}, {31, 0.0081}},
       "Layer 1 takes 0.2 times as long as before (8.00 ms → 1.60 ms).",
       {1}},
  };
  for (const auto& entry : cases) {
    const auto why = explain(make_evidence(token_of_layers(usual), token_of_layers(entry.after)),
                             nullptr, {default_bands(), {}});
    ASSERT_FALSE(why.findings.empty()) << entry.headline;
    EXPECT_EQ(why.findings.front().headline, entry.headline);
    EXPECT_EQ(why.findings.front().layers, entry.layers) << entry.headline;
    EXPECT_THAT(why.findings.front().lines.front(), HasSubstr("in no op that is listed: "));
  }
}

// Rows of Agave name only the run's device: six syncs more, and an op of its CPU code.
TEST(ObservedRuns, ConnectNewSyncsWithAnOpThatMayRunOnTheCpu) {
  Observed before;
  before.context.backend = "Metal";
  before.profiled_tokens = 1;
  add_op(before, "gemv", "Metal", 9, 0.01);
  add_op(before, "rope", "Metal", 4, 0.01);
  Observed after = before;
  add_op(after, "cpuSoftmax", "Metal", 2, 0.004);
  const auto syncs = *unit::find_metric("syncs_per_token");
  before.counts = {{syncs, {1}}};
  after.counts = {{syncs, {7}}};
  const auto why = explain(make_evidence(before, after), nullptr, {default_bands(), {}});
  ASSERT_EQ(why.findings.size(), 2U);
  EXPECT_EQ(why.findings[0].kind, "sync_added");
  EXPECT_EQ(why.findings[0].cause,
            "cpuSoftmax is new (2 times a token): if it runs on the CPU, it waits for the GPU "
            "before and after.");
  EXPECT_THAT(why.findings[1].headline, testing::StartsWith("More work: "));
  // A row of a command buffer ran on the device.
  for (Observed* run : {&before, &after}) {
    for (observed::ObservedOp& op : run->ops) op.buffer = "layer.attn";
  }
  const auto on_device = explain(make_evidence(before, after), nullptr, {default_bands(), {}});
  ASSERT_EQ(on_device.findings.size(), 2U);
  EXPECT_THAT(on_device.findings[0].cause, testing::Not(HasSubstr("cpuSoftmax")));
  EXPECT_THAT(on_device.findings[1].headline, testing::StartsWith("More work on the device: "));
}

// Agave and ggml's Vulkan logger print the run's device in each row. The profiler of ggml prints in
// each row where it ran.
TEST(ObservedRuns, TellThatNoOpIsOnTheCpuOnlyWhereTheyTellWhereEachRan) {
  const struct {
    const char *what, *run, *row, *other_row;
    Check::Answer answer;
  } cases[] = {
      {"the run's device in each row", "Metal", "Metal", "Metal", Check::Answer::unknown},
      {"no device", "Metal", "", "", Check::Answer::unknown},
      {"a device in each row, none of the run", nullptr, "Vulkan0", "Vulkan0", Check::Answer::fine},
      {"devices of the kind", "Vulkan", "Vulkan0", "Vulkan1", Check::Answer::fine},
  };
  for (const auto& entry : cases) {
    Observed observed;
    observed.profiled_tokens = 1;
    if (entry.run != nullptr) observed.context.backend = entry.run;
    add_op(observed, "MUL_MAT", entry.row, 9, 0.01);
    add_op(observed, "ROPE", entry.other_row, 4, 0.01);
    const auto why = explain(make_evidence(observed, observed), nullptr, {default_bands(), {}});
    const Check& check = why.checklist.at(5);
    ASSERT_EQ(check.question, "No op runs on the CPU unasked");
    EXPECT_EQ(check.answer, entry.answer) << entry.what << ": " << check.note;
  }
}

// Rows as in ggml's graphs: by type and shape.
TEST(ObservedRuns, TellEachOpOnTheCpuOnce) {
  Observed observed;
  observed.profiled_tokens = 1;
  add_op(observed, "MUL_MAT", "Vulkan0", 9, 0.01);
  for (const char* op : {"RMS_NORM", "RMS_NORM f32->f32 64->64", "RMS_NORM", "GET_ROWS"}) {
    add_op(observed, op, "CPU", 1, 0.001);
    observed.ops.back().shape = fmt::format("{}->64", observed.ops.size());
  }
  Options options{default_bands(), {}};
  options.cpu_ops_allowed = {"GET_ROWS"};
  const Check check = explain(make_evidence(observed, observed), nullptr, options).checklist.at(5);
  EXPECT_EQ(check.answer, Check::Answer::wrong);
  EXPECT_EQ(check.note, "RMS_NORM");
}

// A token takes 20 ms in the base and 40 ms in the candidate.
TEST(ObservedRuns, TellHowLongATokenTookInItsUnit) {
  const auto with = [](double seconds) {
    Observed observed = ten_tokens();
    observed.steps = {{"token 1", Phase::decode, 1, seconds, 0}};
    return observed;
  };
  EXPECT_THAT(make_evidence(with(0.02), with(0.04)).warnings,
              testing::Contains(HasSubstr("a token took 20.0 ms, then 40.0 ms")));
}

void add_buffers(Observed& observed, const std::string& label, std::int64_t buffers,
                 double seconds) {
  observed::ObservedBuffer observed_buffer;
  observed_buffer.label = label;
  observed_buffer.buffers = buffers;
  observed_buffer.seconds = seconds;
  observed.buffers.push_back(observed_buffer);
}

TEST(ObservedRuns, TellOfCommandBuffersByTheirLabel) {
  const auto with = [](std::int64_t attention, std::int64_t moe, std::int64_t submits) {
    Observed observed;
    observed.context.backend = "Metal";
    observed.profiled_tokens = 10;
    observed.counts.push_back({unit::count_metric("submits", unit::Scope::per_token), {submits}});
    if (attention != 0) add_buffers(observed, "layer.attn", attention, 0.05);
    if (moe != 0) add_buffers(observed, "layer.moe", moe, 0.05);
    return observed;
  };
  const struct {
    const char* what;
    Observed before, after;
    const char* headline;
    const char* metric;
    const char* lines;
  } cases[] = {
      {"one label", with(400, 20, 42), with(430, 20, 45),
       "3 more command buffers labelled layer.attn a token.", "submits_per_token", "+3 submits"},
      {"one less", with(400, 20, 42), with(390, 20, 41),
       "1 fewer command buffer labelled layer.attn a token.", "submits_per_token", ""},
      {"a label for another", with(400, 20, 42), with(0, 430, 42),
       "41 more command buffers labelled layer.moe a token.", "buffers:layer.moe",
       "+41 layer.moe, \u221240 layer.attn"},
      {"labels on one side", with(0, 0, 42), with(400, 20, 45),
       "The GPU gets its work in more parts a token.", "submits_per_token", "+3 submits"},
  };
  for (const auto& entry : cases) {
    const auto why =
        explain(make_evidence(entry.before, entry.after), nullptr, {default_bands(), {}});
    ASSERT_FALSE(why.findings.empty()) << entry.what;
    const Finding& first = why.findings.front();
    EXPECT_EQ(first.headline, entry.headline);
    EXPECT_EQ(first.kind, "submits_changed") << entry.what;
    EXPECT_EQ(first.metric, entry.metric) << entry.what;
    EXPECT_THAT(first.text(), HasSubstr(entry.lines)) << entry.what;
  }
}

// Two labels with 40 and 1 buffers a token. Those of the first take `mean`, each about as long.
Observed two_labels(double mean, std::int64_t left_out = 0) {
  Observed observed;
  observed.steps = {{"token 1", Phase::decode, 1, {}, left_out}};
  add_buffers(observed, "moe", 40, 40 * mean);
  add_buffers(observed, "head", 1, 0.012);
  for (observed::ObservedBuffer& buffer : observed.buffers) {
    buffer.step = 0;
    const double each = *buffer.seconds / static_cast<double>(buffer.buffers);
    buffer.min_seconds = buffer.buffers > 1 ? 0.95 * each : each;
    buffer.max_seconds = buffer.buffers > 1 ? 1.1 * each : each;
  }
  return observed;
}

TEST(ObservedRuns, TellWhichOfFewCommandBuffersTakeLonger) {
  const struct {
    const char* what;
    Observed before, after;
    const char* headline;  // "": none
    bool warning;
  } cases[] = {
      {"ten times", two_labels(3e-4), two_labels(3e-3),
       "A command buffer labelled moe takes 10 times as long.", true},
      {"as fast again", two_labels(3e-3), two_labels(3e-4),
       "A command buffer labelled moe takes 0.1 times as long as before.", true},
      {"ten times, where other labels are left out", two_labels(3e-4, 5), two_labels(3e-3, 5),
       "A command buffer labelled moe takes 10 times as long.", true},
      {"longer than any was", two_labels(3e-4), two_labels(3.6e-4),
       "A command buffer labelled moe takes 1.2 times as long.", false},
      {"no longer than some were", two_labels(3e-4), two_labels(3.15e-4), "", false},
      {"the same", two_labels(3e-4), two_labels(3e-4), "", false},
  };
  for (const auto& entry : cases) {
    const auto why =
        explain(make_evidence(entry.before, entry.after), nullptr, {default_bands(), {}});
    EXPECT_EQ(why.findings.empty() ? "" : why.findings[0].headline, entry.headline) << entry.what;
    EXPECT_LE(why.findings.size(), 1U) << entry.what;
    if (entry.warning) EXPECT_FALSE(why.warnings.empty()) << entry.what;
  }
  // Ops that all take as much longer show the machine; ops that vary more show nothing.
  Observed slower = two_labels(3e-4);
  for (auto& buffer : slower.buffers) *buffer.seconds *= 10;
  Observed noisy = two_labels(3.7e-4);
  noisy.buffers[0].min_seconds = 2.9e-4;
  for (const Observed* after : {&slower, &noisy}) {
    const auto why =
        explain(make_evidence(two_labels(3e-4), *after), nullptr, {default_bands(), {}});
    EXPECT_TRUE(why.findings.empty()) << why.findings[0].headline;
    EXPECT_THAT(why.warnings,
                testing::Contains(HasSubstr("times of single command buffers are not judged")));
  }
}

// Six labels, one of which takes twice as long in each buffer.
TEST(ObservedRuns, TellWhichCommandBuffersTakeLonger) {
  const auto with = [](double moe) {
    Observed observed;
    observed.profiled_tokens = 10;
    for (const char* label : {"attn", "norm", "embed", "head", "ffn"}) {
      add_buffers(observed, label, 100, 0.05);
    }
    add_buffers(observed, "moe", 100, moe);
    return observed;
  };
  const auto why = explain(make_evidence(with(0.05), with(0.10)), nullptr, {default_bands(), {}});
  ASSERT_EQ(why.findings.size(), 1U);
  EXPECT_EQ(why.findings[0].headline, "A command buffer labelled moe takes 2 times as long.");
}

// Like TellWhichOfFewCommandBuffersTakeLonger, with any number of labels; the others vary by some
// per cent.
TEST(ObservedRuns, TellWhichOfAnyNumberOfCommandBuffersTakesLonger) {
  const auto with = [](int labels, double moe, double noise) {
    Observed observed;
    observed.steps = {{"token 1", Phase::decode, 1, {}, 0}};
    for (int i = 0; i < labels; ++i) {
      const double mean = i == 0 ? moe : 3e-4 * (1 + noise * (i % 3 - 1));
      add_buffers(observed, i == 0 ? "moe" : fmt::format("other {}", i), 40, 40 * mean);
      observed.buffers.back().step = 0;
      observed.buffers.back().min_seconds = 0.95 * mean;
      observed.buffers.back().max_seconds = 1.1 * mean;
    }
    return observed;
  };
  for (const int labels : {2, 3, 4, 5, 6, 9, 20}) {
    const auto why = explain(make_evidence(with(labels, 3e-4, 0), with(labels, 4e-4, 0.03)),
                             nullptr, {default_bands(), {}});
    ASSERT_EQ(why.findings.size(), 1U) << labels;
    EXPECT_EQ(why.findings[0].headline, "A command buffer labelled moe takes 1.33 times as long.");
    const auto same = explain(make_evidence(with(labels, 3e-4, 0), with(labels, 3e-4, 0.03)),
                              nullptr, {default_bands(), {}});
    EXPECT_TRUE(same.findings.empty()) << labels;
  }
}

TEST(ObservedRuns, SayThatAllOpsAreSlowerAlike) {
  const struct {
    const char* what;
    std::vector<double> times;  // each op's, over before
    const char* headline;       // "": none
  } cases[] = {
      {"a lower clock",
       {1.3, 1.28, 1.32, 1.3, 1.31, 1.29},
       "All 6 ops take longer, 1.28 to 1.32 times."},
      {"a higher one",
       {0.7, 0.71, 0.7, 0.69, 0.7, 0.7},
       "All 6 ops take less time, 0.69 to 0.71 times as long as before."},
      {"as much as sessions differ", {1.1, 1.12, 1.1, 1.09, 1.1, 1.1}, ""},
      {"one of them as before", {1.3, 1.28, 1, 1.3, 1.31, 1.29}, ""},
  };
  for (const auto& entry : cases) {
    const Observed before = ten_tokens();
    Observed after = before;
    for (std::size_t i = 0; i < after.ops.size(); ++i) *after.ops[i].seconds *= entry.times[i];
    const auto why = explain(make_evidence(before, after), nullptr, {default_bands(), {}});
    EXPECT_EQ(why.findings.empty() ? "" : why.findings[0].headline, entry.headline) << entry.what;
    if (!why.findings.empty()) EXPECT_EQ(why.findings[0].kind, "time_changed") << entry.what;
  }
}

// Two tokens with 40 and 2 command buffers; one buffer of each label waits.
TEST(ObservedRuns, CountWhatTheirCommandBuffersSay) {
  Observed run;
  run.profiled_tokens = 2;
  add_buffers(run, "moe", 40, 0.05);
  add_buffers(run, "head", 2, 0.05);
  run.buffers[0].syncs = 10;
  run.buffers[1].syncs = 2;
  const auto syncs = [](const Observed& observed) {
    return explain(make_evidence(observed, observed), nullptr, {default_bands(), {}})
        .checklist.at(1);
  };
  EXPECT_EQ(syncs(run).note, "6");
  EXPECT_EQ(syncs(run).answer, Check::Answer::wrong);
  run.buffers[1].syncs.reset();
  EXPECT_EQ(syncs(run).note, "not counted") << "of a part of the buffers";
}

// Per-token counts in order, from counters and from command buffers: the worst token decides.
TEST(ObservedRuns, AreCheckedTokenByToken) {
  using enum Check::Answer;
  const struct {
    std::vector<std::int64_t> syncs;
    Check::Answer answer;
    const char* note;
    std::vector<std::string> hints;
  } cases[] = {
      {{1, 5}, wrong, "5 in one of 2 tokens", {}},
      {{5, 1, 7, 4}, wrong, "4 to 7 in 3 of 4 tokens", {}},
      {{5, 5}, wrong, "5", {}},
      {{2, 0},
       unknown,
       "0 in one of 2 tokens, and a token has to be waited for",
       {"0 syncs/token in one of 2 tokens: suspicious, for a token has to be waited for."}},
      {{0, 12, 12},
       wrong,
       "12 in 2 of 3 tokens",
       {"12 syncs/token in 2 of 3 tokens is high (more than 10); 1 to 3 are usual.",
        "0 syncs/token in one of 3 tokens: suspicious, for a token has to be waited for."}},
      {{1, 3}, fine, "1 to 3", {}},
      {{2, 2}, fine, "2", {}},
  };
  for (const auto& entry : cases) {
    Observed counters, by_buffers;
    counters.counts.push_back({*unit::find_metric("syncs_per_token"), entry.syncs});
    for (const std::int64_t syncs : entry.syncs) {
      by_buffers.steps.push_back({"token", Phase::decode, 1, {}});
      add_buffers(by_buffers, "moe", 1, 0.01);
      by_buffers.buffers.back().step = by_buffers.steps.size() - 1;
      by_buffers.buffers.back().syncs = syncs;
    }
    for (const Observed& by_buffer : {counters, by_buffers}) {
      const auto why = explain(make_evidence(by_buffer, by_buffer), nullptr, {default_bands(), {}});
      EXPECT_EQ(why.checklist.at(1).answer, entry.answer) << entry.note;
      EXPECT_EQ(why.checklist.at(1).note, entry.note);
      std::vector<std::string> hints;
      for (const Hint& hint : why.hints) hints.push_back(hint.text);
      EXPECT_EQ(hints, entry.hints) << entry.note;
    }
  }
}

TEST(ObservedRuns, EndSumsOfCallsAtTheLargestNumber) {
  constexpr auto k_max_calls = std::numeric_limits<std::int64_t>::max();
  Observed observed;
  observed.profiled_tokens = 1;
  add_op(observed, "ADD", "Vulkan0", k_max_calls, 0.02);
  add_op(observed, "ADD", "Vulkan0", 2, 0.02);
  const Evidence evidence = make_evidence(observed, observed);
  ASSERT_EQ(evidence.after.works.size(), 1U);
  EXPECT_EQ(evidence.after.works[0].times, Rational(k_max_calls));
}

TEST(ObservedRuns, TellOfAnOpThatIsSlower) {
  const Observed before = ten_tokens();
  Observed after = before;
  *after.ops[4].seconds *= 4;
  const auto why = explain(make_evidence(before, after), nullptr, {default_bands(), {}});
  ASSERT_EQ(why.findings.size(), 1U);
  EXPECT_EQ(why.findings.front().kind, "op_slower");
  EXPECT_EQ(why.findings.front().ops, std::vector<std::string>{"SOFT_MAX"});
}

// With two or three ops the spread of the others tells nothing: each time of the op has to be
// longer, or each of its command buffers. By chance alone 8 lie above 8 others in 1 of 12870
// orders, 4 above 4 in 1 of 70.
TEST(ObservedRuns, TellOfAnOpThatIsSlowerAmongFew) {
  struct Times {
    double mean, min_seconds, max_seconds;  // times of one call; least 0: not reported
  };
  const struct {
    const char* what;
    std::int64_t calls;
    Times before, after;
    bool in_buffers;     // times stand in the command buffers instead
    double other_ratio;  // another op's, over before
    bool is_found;
    double other_seconds = 2e-3;
  } cases[] = {
      {"each call", 8, {5e-4, 4e-4, 6e-4}, {8e-4, 7e-4, 9e-4}, false, 1, true},
      {"each of its command buffers", 8, {5e-4, 4e-4, 6e-4}, {8e-4, 7e-4, 9e-4}, true, 1, true},
      {"each of four calls", 4, {5e-4, 4e-4, 6e-4}, {8e-4, 7e-4, 9e-4}, false, 1, false},
      {"one call that was interrupted",
       8,
       {5e-4, 4e-4, 6e-4},
       {8e-4, 4e-4, 30e-4},
       false,
       1,
       false},
      {"nobody tells of single calls", 8, {5e-4, 0, 0}, {8e-4, 0, 0}, false, 1, false},
      {"the machine", 8, {5e-4, 4e-4, 6e-4}, {8e-4, 7e-4, 9e-4}, false, 1.5, false},
      // A share of 0.25 % of the time proves nothing about the machine.
      {"beside a small op alone", 8, {5e-4, 4e-4, 6e-4}, {8e-4, 7e-4, 9e-4}, false, 1, false, 1e-5},
      {"a little", 8, {5e-4, 4.9e-4, 5.1e-4}, {5.5e-4, 5.4e-4, 5.6e-4}, false, 1, false},
  };
  for (const auto& entry : cases) {
    const auto with = [&](const Times& times, double ratio) {
      Observed observed;
      observed.profiled_tokens = 1;
      const auto all = static_cast<double>(entry.calls);
      add_op(observed, "gemv_q4", "Metal", entry.calls, times.mean * all);
      add_op(observed, "gemv_q6", "Metal", 2, entry.other_seconds * ratio);
      if (times.min_seconds > 0 && !entry.in_buffers) {
        observed.ops[0].min_seconds = times.min_seconds;
        observed.ops[0].max_seconds = times.max_seconds;
      }
      if (entry.in_buffers) {
        observed.ops[0].buffer = "layer.ffn";
        add_buffers(observed, "layer.ffn", entry.calls, times.mean * all);
        observed.buffers[0].min_seconds = times.min_seconds;
        observed.buffers[0].max_seconds = times.max_seconds;
        add_buffers(observed, "output_head", 1, 2e-3);
      }
      return observed;
    };
    for (const bool slower : {true, false}) {
      const Observed a = with(entry.before, 1), b = with(entry.after, entry.other_ratio);
      const auto why = explain(slower ? make_evidence(a, b) : make_evidence(b, a), nullptr,
                               {default_bands(), {}});
      const bool any_of = std::ranges::any_of(why.findings, [](const Finding& finding) {
        return finding.ops == std::vector<std::string>{"gemv_q4"};
      });
      EXPECT_EQ(any_of, entry.is_found) << entry.what << ", slower: " << slower;
    }
  }
}

// Perf logger of llama.cpp with and without GGML_VK_DISABLE_FUSION. A fused row names a kernel and
// its first op; a row of one op names the op only.
TEST(ObservedRuns, OfOpsThatNameKernelsWhereTheyAreFusedTellOfALostFusion) {
  struct Row {
    const char *kernel, *op;
    std::int64_t calls;
  };
  const auto with = [](const std::vector<Row>& rows) {
    Observed observed;
    observed.context.backend = "Vulkan";
    observed.profiled_tokens = 1;
    for (const Row& row : rows) {
      add_op(observed, row.op, "Vulkan", row.calls, 1e-4 * static_cast<double>(row.calls));
      observed.ops.back().kernel = row.kernel;
    }
    return observed;
  };
  const Observed fused = with({{"MUL_MAT_VEC", "MUL_MAT", 29},
                               {"RMS_NORM_MUL", "RMS_NORM", 9},
                               {"ROPE_VIEW_SET_ROWS", "ROPE", 4},
                               {"", "ROPE", 4},
                               {"", "SET_ROWS", 4},
                               {"", "GLU", 4}});
  const Observed separate = with({{"MUL_MAT_VEC", "MUL_MAT", 29},
                                  {"", "RMS_NORM", 9},
                                  {"", "MUL", 9},
                                  {"", "ROPE", 8},
                                  {"", "SET_ROWS", 8},
                                  {"", "GLU", 4}});
  const auto why = explain(make_evidence(fused, separate), nullptr, {default_bands(), {}});
  ASSERT_EQ(why.findings.size(), 1U);
  EXPECT_EQ(why.findings[0].kind, "fusion_lost");
  EXPECT_EQ(why.findings[0].headline,
            "Fusion lost: RMS_NORM_MUL ran as one kernel 9 times a token; now RMS_NORM and MUL run "
            "apart.");
  EXPECT_THAT(why.findings[0].lines,
              testing::ElementsAre("\u22129 RMS_NORM_MUL, \u22124 ROPE_VIEW_SET_ROWS",
                                   HasSubstr("+9 RMS_NORM")))
      << "each number once";
  const auto back = explain(make_evidence(separate, fused), nullptr, {default_bands(), {}});
  ASSERT_EQ(back.findings.size(), 1U);
  EXPECT_EQ(back.findings[0].kind, "fusion_gained");
}

// weir profile with and without --timing serialized. The work between two barriers is one row, or
// one row for each kernel. Single kernels take longer in total, as nothing overlaps.
TEST(ObservedRuns, OfOneProgramTimedTogetherAndApartDifferInNothing) {
  struct Row {
    const char *kernel, *op;
    std::int64_t calls;
    double seconds;
  };
  const auto with = [](const std::vector<Row>& rows) {
    Observed observed;
    observed.format = "weir-probes";
    observed.context.backend = "Vulkan";
    observed.profiled_tokens = 1;
    for (const Row& row : rows) {
      add_op(observed, row.op, "Vulkan0", row.calls, row.seconds);
      observed.ops.back().kernel = row.kernel;
    }
    return observed;
  };
  const Observed separate = with({{"mul_mat_vec_f16_f32_f32", "MUL_MAT", 29, 0.01},
                                  {"scale_f32", "SCALE", 2, 0.001},
                                  {"rope_norm_f32", "ROPE", 4, 0.002},
                                  {"set_rows_f32_f16_i64", "SET_ROWS", 8, 0.004}});
  const Observed together =
      with({{"mul_mat_vec_f16_f32_f32", "MUL_MAT", 29, 0.01},
            {"scale_f32, scale_f32_inplace", "SCALE, SCALE", 1, 0.001},
            {"rope_norm_f32, set_rows_f32_f16_i64 x 2", "ROPE, SET_ROWS x 2", 4, 0.001}});
  for (const auto& [before, after] :
       {std::pair(&separate, &together), std::pair(&together, &separate)}) {
    const Evidence evidence = make_evidence(*before, *after);
    const auto why = explain(evidence, nullptr, {default_bands(), {}});
    EXPECT_TRUE(why.findings.empty()) << why.findings.front().text();
    EXPECT_THAT(why.warnings, testing::Contains(HasSubstr("together, so they are not judged (weir "
                                                          "compare shows their times): "
                                                          "ROPE+SET_ROWS")));
    // It takes 1 ms of 11 ms together, 6 ms of 16 ms one by one.
    EXPECT_THAT(why.checklist[3].note, HasSubstr("mul_mat_vec_f16_f32_f32 takes"));
  }
  // A new op is still reported as new.
  Observed more = together;
  more.ops.push_back(more.ops[0]);
  more.ops.back().op = "CONT";
  more.ops.back().kernel = "contig_cpy_f32_f32";
  const auto why = explain(make_evidence(separate, more), nullptr, {default_bands(), {}});
  ASSERT_EQ(why.findings.size(), 1U);
  EXPECT_EQ(why.findings[0].kind, "op_added");
}

// One call of 80 was interrupted and took longer than all others together.
TEST(ObservedRuns, AreTheSameWhereOneCallWasInterrupted) {
  const Observed before = ten_tokens();
  Observed after = before;
  after.ops[4].max_seconds = 0.09;
  *after.ops[4].seconds += 0.09;
  const auto why = explain(make_evidence(before, after), nullptr, {default_bands(), {}});
  EXPECT_TRUE(why.findings.empty()) << why.findings.front().text();
}

TEST(ObservedRuns, SayWhatTheyCannotTell) {
  const auto with_steps = [](double seconds) {
    Observed observed = ten_tokens();
    for (int i = 0; i < 10; ++i) observed.steps.push_back({"token", Phase::decode, 1, seconds});
    return observed;
  };
  const struct {
    const char* what;
    double seconds;
    std::int64_t outside;
    std::vector<const char*> says;
  } cases[] = {
      {"the same", 0.1, 16, {"barriers, syncs, submits and copies are not compared"}},
      {"all of it slower", 0.2, 16, {"a token took 100 ms, then 200 ms"}},
      {"work of no token",
       0.1,
       800,
       {"work of no token and no prompt is not compared: 16 calls, then 800"}},
  };
  for (const auto& c : cases) {
    Observed before = with_steps(0.1), after = with_steps(c.seconds);
    add_op(before, "", "Vulkan0", 16, 0.01);
    add_op(after, "", "Vulkan0", c.outside, 0.01);
    for (Observed* observed : {&before, &after}) {
      observed->ops.back().kernel = "outside";
      observed->ops.back().phase = Phase::unknown;
    }
    const auto why = explain(make_evidence(before, after), nullptr, {default_bands(), {}});
    EXPECT_TRUE(why.findings.empty()) << c.what;
    for (const char* says : c.says) {
      EXPECT_THAT(why.warnings, testing::Contains(HasSubstr(says))) << c.what;
    }
    EXPECT_EQ(why.warnings.size(),
              c.says.size() + (std::string_view(c.what) == "the same" ? 0 : 1));
  }
}

TEST(ObservedRuns, AreTheSameWhateverTheirLength) {
  const Observed before = ten_tokens();
  Observed twice = before;
  twice.profiled_tokens = 20;
  for (auto& op : twice.ops) {
    *op.calls *= 2;
    *op.seconds *= 2;
  }
  const auto why = explain(make_evidence(before, twice), nullptr, {default_bands(), {}});
  EXPECT_TRUE(why.findings.empty()) << why.findings.front().text();
}

TEST(ObservedRuns, SayATokenOnlyWhereBothTellTheirTokens) {
  Observed before = ten_tokens();
  before.profiled_tokens.reset();
  ASSERT_EQ(make_evidence(ten_tokens(), ten_tokens()).scope, unit::Scope::per_token);
  const Evidence evidence = make_evidence(before, ten_tokens());
  EXPECT_EQ(evidence.scope, unit::Scope::whole_run);
  EXPECT_TRUE(explain(evidence, nullptr, {default_bands(), {}}).findings.empty())
      << "the same calls: undivided on one side they would all be ten times as many";
}

TEST(ObservedRuns, AreInAllWhateverTheirCountsAreOf) {
  Observed before = ten_tokens();
  before.profiled_tokens.reset();
  before.counts.push_back({*unit::find_metric("syncs_per_token"), {1}});
  Observed after = before;
  after.counts.back().values = {17};
  const Evidence evidence = make_evidence(before, after);
  EXPECT_EQ(evidence.scope, unit::Scope::whole_run);
  const auto why = explain(evidence, nullptr, {default_bands(), {}});
  ASSERT_EQ(why.findings.size(), 1U);
  EXPECT_EQ(why.findings.front().headline, "The CPU waits for the GPU more often.");
  EXPECT_EQ(why.findings.front().metric, "syncs_per_token");
}

TEST(ObservedRuns, DivideOnlyWhatBelongsToTheirTokens) {
  Observed run;
  run.format = "made";
  run.steps = {{"token 1", Phase::decode, 1, {}}, {"token 2", Phase::decode, 1, {}}};
  add_op(run, "MUL_MAT", "Vulkan0", 8, 0.1);
  run.ops.back().step = 0;
  add_op(run, "MUL_MAT", "Vulkan0", 8, 0.1);
  run.ops.back().step = 1;
  add_op(run, "MUL_MAT", "Vulkan0", 100, 0.1);  // belongs to no token
  const Evidence evidence = make_evidence(run, run);
  ASSERT_EQ(evidence.after.works.size(), 1U);
  EXPECT_EQ(evidence.after.works.front().times, Rational(8));
}

TEST(ObservedRuns, CountNoCallsThatNobodyTold) {
  const Observed before = ten_tokens();
  Observed after = before;
  for (auto& op : after.ops) op.calls.reset();
  const auto why = explain(make_evidence(before, after), nullptr, {default_bands(), {}});
  EXPECT_TRUE(why.findings.empty()) << why.findings.front().text();
}

TEST(ObservedRuns, OfASideThatTellsNoOpsInventNoWork) {
  Observed before = ten_tokens();
  before.ops.clear();
  before.errors = {"cannot open model.gguf"};
  const auto why = explain(make_evidence(before, ten_tokens()), nullptr, {default_bands(), {}});
  EXPECT_TRUE(why.findings.empty());
  EXPECT_THAT(why.warnings, testing::Contains(HasSubstr("before: it reports no op")));
  EXPECT_THAT(why.warnings,
              testing::Contains("before: the engine reports: cannot open model.gguf"));
}

// One format of the same run names backends, the other does not.
TEST(ObservedRuns, OfWhichOneTellsNoBackendsDifferInNothing) {
  const Observed before = ten_tokens();
  Observed after = before;
  for (auto& op : after.ops) op.backend.clear();
  const auto why = explain(make_evidence(before, after), nullptr, {default_bands(), {}});
  EXPECT_TRUE(why.findings.empty()) << why.findings.front().headline;
}

// Totals of a run, and a trace of the same run.
TEST(ObservedRuns, OfOtherFormatsAreComparedInWhatBothKnow) {
  const Observed before = ten_tokens();
  Observed after = before;
  after.format = "chrome-trace";
  add_op(after, "wait for fence", "", 10, 0.5);
  after.ops.back().category = "wait";
  for (const bool turned : {false, true}) {
    const Evidence evidence = turned ? make_evidence(after, before) : make_evidence(before, after);
    const auto why = explain(evidence, nullptr, {default_bands(), {}});
    EXPECT_TRUE(why.findings.empty()) << why.findings[0].headline;
    EXPECT_THAT(why.warnings,
                testing::Contains(HasSubstr("its rows of category wait have no counterpart")));
  }
  Observed same = before;
  same.format = after.format;
  EXPECT_FALSE(explain(make_evidence(same, after), nullptr, {default_bands(), {}}).findings.empty())
      << "of one format it is new";
}

TEST(ObservedRuns, SayWhatTheirDocumentsWarnOf) {
  Observed before = ten_tokens(), after = ten_tokens();
  before.warnings = {"nothing was timed", "some events were lost"};
  after.warnings = {"nothing was timed"};
  EXPECT_THAT(
      make_evidence(before, after).warnings,
      testing::ElementsAre("both sides: nothing was timed", "before: some events were lost"));
}

TEST(ObservedRuns, SayWhatWasNotJudged) {
  Observed before;
  before.profiled_tokens = 1;
  add_op(before, "gemv_ffn", "CPU", 10, 0.01);
  before.timings.push_back({*unit::find_metric("decode_tokens_per_second"), {100, 101}, {}, {}});
  Observed after = before;
  *after.ops[0].seconds *= 10;
  after.timings[0].samples = {48, 49};
  const auto warnings = make_evidence(before, after).warnings;
  EXPECT_THAT(warnings, testing::Contains(HasSubstr("times of single ops are not judged")));
  EXPECT_THAT(warnings,
              testing::Contains(HasSubstr("decode_tokens_per_second: 100, then 48.5: not judged")));
  EXPECT_THAT(make_evidence(before, before).warnings, testing::IsEmpty());
}

}  // namespace observed_test
}  // namespace weir::explain
