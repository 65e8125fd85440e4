// Tests of parsing weir.yaml into settings.
#include <gmock/gmock.h>

#include "tests/config/parse_text.hpp"

namespace weir::config {
namespace settings_test {

using testing::ElementsAre;
using testing::Pair;
using testing::UnorderedElementsAre;

// Every key that this version reads, once.
constexpr std::string_view k_everything = R"(version: 1
engines:
  llama.cpp:
    command: [llama-bench, -m, "{model}", -p, "{prompt_tokens}", -n, "{tokens}", -t, "{threads}"]
    output: llama-bench
    probes: vulkan
    profile_args: [--profile]
    counted_env: {GGML_VK_DEBUG_MARKERS: "1"}
    env: {A: '{{model}}'}
    threads: 4
    seed: 7
    cpu_ops_allowed:
      GET_ROWS: "one look-up"
      SOFT_MAX: {when: "ne0 < 128", why: small}
      MUL_MAT:
        - {match: {backend: cpu}, why: here}
        - {match: {backend: "f*", prompt: decode}, when: ne1 == 1 and ne0 <= 64, why: there}
    timeout: 2m
    output_limit: 64KiB
    ok_exit_codes: [1, 255]
    exclusive: true
    build: [cmake, --build, build]
    private: true
  own:
    command: [own]
    output: generic
    metrics:
      syncs_per_token: {regex: '(\d+) syncs', stream: err, pick: first}
      decode_tokens_per_second: {pointer: /rates/0, pick: all}
      time_per_output_token_seconds: {regex: 'Token time: ([\d.]+)ms', unit: ms}
      my_metric: {pointer: /stats/x, unit: ms, better: lower}
      draft_hit_rate: {regex: 'hits ([\d.]+)'}
      my_count: {regex: 'x=(\d+)', unit: count, better: lower, kind: count, stream: out}
    facts: {generated_tokens: {regex: 'n=(\d+)'}, output_digest: {pointer: /hash}}
models:
  plain: models/plain.gguf
  rich: {path: models/rich.gguf, private: true, args: [-x], engines: {own: {args: [-y]}}}
backends:
  cpu:
  fast: {device: vulkan, env: {B: 1}, engines: {own: {env: {B: 2, C: 3}, threads: 2}}}
variants:
  default: {}
  fused: {engines: {own: {args: [--megakernel]}}}
prompts:
  decode: {prompt_tokens: 0, tokens: 32}
  long: {tokens: 16, depth: [0, 256], seed: 3}
  deep: {tokens: 16, depth: 8, private: true}
  hello: {text: "Hello world", tokens: 32}
  filed: {file: prompts/a.txt}
matrix:
  include: [{engine: '*', backend: cpu}]
  exclude: [{engine: llama.cpp, variant: default, prompt: hello, model: rich}]
limits:
  - {metrics: decode_tokens_per_second, max_drop: 5%, tolerate: 2%}
  - {match: {backend: fast}, metrics: [syncs_per_token, my_*], min: 1, max: 3}
  - {match: {prompt: long*}, mode: report, until: 2026-11-20, reason: "new", issue: "#7"}
  - {metrics: copies_per_token, exact: false, max_increase: 4}
gate:
  false_alarm: 0.002
  missed: 0.02
  budget: 90s
  runs: 12
  repeats: 5
  stored_level: 0.1
  on_inconclusive: fail
  comment: never
  confirm: origin/main
)";

TEST(Settings, HoldEverythingThatWasWritten) {
  const auto settings = parse_text(k_everything);
  ASSERT_TRUE(settings) << settings.error().message;
  ASSERT_EQ(settings->engines.size(), 2U);
  const EngineSettings& llama = settings->engines[0];
  EXPECT_EQ(llama.name, "llama.cpp");
  EXPECT_EQ(llama.source, "weir.yaml:3:3");
  EXPECT_EQ(llama.command.size(), 9U);
  EXPECT_THAT(llama.probes, ElementsAre("vulkan"));
  EXPECT_THAT(llama.counted_run_args, ElementsAre("--profile"));
  EXPECT_THAT(llama.counted_run_env, ElementsAre(Pair("GGML_VK_DEBUG_MARKERS", "1")));
  EXPECT_EQ(llama.extra.env.at("A"), "{{model}}");
  EXPECT_EQ(llama.extra.threads, 4);
  EXPECT_EQ(llama.extra.seed, 7);
  EXPECT_THAT(llama.cpu_ops_allowed,
              ElementsAre(CpuOp{"GET_ROWS", "one look-up"}, CpuOp{"SOFT_MAX", "small", "ne0 < 128"},
                          CpuOp{"MUL_MAT", "here", "", {.backend = "cpu"}},
                          CpuOp{"MUL_MAT",
                                "there",
                                "ne1 == 1 and ne0 <= 64",
                                {.backend = "f*", .prompt = "decode"}}));
  EXPECT_EQ(llama.timeout_seconds, 120);
  EXPECT_EQ(llama.output_limit, 65536);
  EXPECT_THAT(llama.ok_exit_codes, ElementsAre(1, 255));
  EXPECT_TRUE(llama.exclusive);
  EXPECT_THAT(llama.build, ElementsAre("cmake", "--build", "build"));
  EXPECT_TRUE(llama.is_private);
  EXPECT_FALSE(llama.reports_counts());

  const EngineSettings& own = settings->engines[1];
  EXPECT_FALSE(own.is_private);
  EXPECT_TRUE(own.reports_counts());
  ASSERT_EQ(own.generic.values.size(), 6U);
  EXPECT_EQ(own.generic.values[0].stream, ValueRule::Stream::err);
  EXPECT_EQ(own.generic.values[0].pick, ValueRule::Pick::first);
  EXPECT_EQ(own.generic.values[1].pointer, "/rates/0");
  EXPECT_EQ(own.generic.values[1].pick, ValueRule::Pick::all);
  EXPECT_EQ(own.generic.values[2].scale->factor, 1e-3);
  EXPECT_EQ(
      own.generic.values[3].custom,
      unit::custom_metric("my_metric", unit::Kind::time, unit::Unit::seconds, unit::Better::lower));
  EXPECT_EQ(own.generic.values[4].custom->kind, unit::Kind::quality) << "its name says it";
  EXPECT_EQ(own.generic.values[5].custom->kind, unit::Kind::count);
  ASSERT_EQ(own.generic.facts.size(), 2U);
  EXPECT_EQ(own.generic.facts[0].metric, "generated_tokens");

  EXPECT_EQ(settings->models[0].path, "models/plain.gguf");
  EXPECT_TRUE(settings->models[1].is_private);
  EXPECT_THAT(settings->models[1].extra.for_engine("own").args, ElementsAre("-x", "-y"));
  EXPECT_EQ(settings->backends[0].device, "cpu");
  EXPECT_EQ(settings->backends[1].device, "vulkan");
  const Extra fast = settings->backends[1].extra.for_engine("own");
  EXPECT_THAT(fast.env, UnorderedElementsAre(Pair("B", "2"), Pair("C", "3")));
  EXPECT_EQ(fast.threads, 2);
  ASSERT_EQ(settings->variants.size(), 2U);
  EXPECT_TRUE(settings->variants[1].extra.engines.contains("own"));

  ASSERT_EQ(settings->prompts.size(), 5U);
  EXPECT_EQ(settings->prompts[0].prompt_tokens, 0);
  EXPECT_THAT(settings->prompts[1].depth, ElementsAre(0, 256));
  EXPECT_TRUE(settings->prompts[1].depth_is_list);
  EXPECT_FALSE(settings->prompts[2].depth_is_list);
  EXPECT_TRUE(settings->prompts[2].is_private);
  EXPECT_EQ(settings->prompts[3].text, "Hello world");
  EXPECT_EQ(settings->prompts[4].file, "prompts/a.txt");

  EXPECT_EQ(settings->include[0].match.backend, "cpu");
  EXPECT_EQ(settings->exclude[0].source, "weir.yaml:52:13");
  ASSERT_EQ(settings->limits.size(), 7U);
  const std::span limits(settings->limits);
  // Of metrics that an engine declares and no default covers.
  EXPECT_THAT(
      collect<std::string>(limits.first(3),
                           [](const verdict::LimitEntry& limit) { return limit.metrics.front(); }),
      ElementsAre("time_per_output_token_seconds", "my_metric", "draft_hit_rate"));
  EXPECT_EQ(limits[0].match.engine, "own");
  EXPECT_EQ(limits[3].max_drop, (verdict::Amount{0.05, true}));
  EXPECT_EQ(limits[3].tolerate, (verdict::Amount{0.02, true}));
  EXPECT_THAT(limits[4].metrics, ElementsAre("syncs_per_token", "my_*"));
  EXPECT_EQ(limits[4].max, (verdict::Amount{3, false}));
  EXPECT_EQ(limits[4].match.backend, "fast");
  EXPECT_EQ(limits[5].mode, verdict::Mode::report);
  EXPECT_EQ(limits[5].until, "2026-11-20") << "holds on the day itself";
  EXPECT_EQ(limits[6].exact, false);
  EXPECT_EQ(limits[6].max_increase, (verdict::Amount{4, false}));
  EXPECT_EQ(limits[6].source, "weir.yaml:57:5");

  EXPECT_EQ(settings->gate.false_alarm, 0.002);
  EXPECT_EQ(settings->gate.budget_seconds, 90);
  EXPECT_EQ(settings->gate.runs, 12);
  EXPECT_EQ(settings->gate.repeats, 5);
  EXPECT_TRUE(settings->gate.fail_on_inconclusive);
  EXPECT_EQ(settings->gate.comment, verdict::Comment::never);
  EXPECT_EQ(settings->gate.confirm, "origin/main");
}

// Names of kernels are known to the engine alone: any is one.
TEST(Settings, TakeLimitsOnSingleOpsAndKernels) {
  EXPECT_EQ(config_error(config_with("limits:\n"
                                     "- {metrics: 'kernel_calls:mul_mat_vec*', exact: true}\n"
                                     "- {metrics: ['op_calls:ROPE', 'kernel_calls:*'], max: 4}\n"
                                     "- {metrics: 'spilled_registers:*', max_increase: 0}\n"
                                     "- {metrics: 'occupancy:*', max_decrease: 25%}\n")),
            "");
}

TEST(Settings, HaveDefaultsForWhatIsLeftOut) {
  const auto settings = parse_text(config_with("limits:\ngate:\nmatrix:\nvariants:\n"));
  ASSERT_TRUE(settings) << settings.error().message;
  ASSERT_EQ(settings->variants.size(), 1U);
  EXPECT_EQ(settings->variants[0].name, "default");
  EXPECT_EQ(settings->engines[0].timeout_seconds, 300);
  EXPECT_EQ(settings->engines[0].output_limit, 16 << 20);
  EXPECT_EQ(settings->gate.false_alarm, 0.001);
  EXPECT_EQ(settings->gate.budget_seconds, 600);
  EXPECT_EQ(settings->gate.runs, 10);
  EXPECT_EQ(settings->gate.repeats, 3);
  EXPECT_FALSE(settings->gate.fail_on_inconclusive);
  EXPECT_EQ(settings->gate.comment, verdict::Comment::changed);
  EXPECT_TRUE(settings->gate.confirms);
  EXPECT_EQ(settings->gate.confirm, std::nullopt);
  EXPECT_TRUE(settings->limits.empty());
}

TEST(Settings, ReadAnAnchorWhereverItIsUsed) {
  const auto settings =
      parse_text(with_head("prompts: {a: &it {tokens: 8, args: [-x]}, b: *it}\n"));
  ASSERT_TRUE(settings) << settings.error().message;
  EXPECT_EQ(settings->prompts[1].tokens, 8);
  EXPECT_THAT(settings->prompts[1].extra.extra.args, ElementsAre("-x"));
}

TEST(Settings, SayHowInstructionsAreCounted) {
  const auto parse_engine = [](const std::string& line) {
    Supported context = test_context();
    context.probes.emplace_back("instructions");
    return parse_settings("version: 1\nengines:\n  e: {command: [e], output: llama-bench" + line +
                              "}\nmodels: {m: m}\nbackends: {cpu: {}}\nprompts: {p: {tokens: 1}}\n",
                          "weir.yaml", context);
  };
  const auto chosen = [&](const std::string& line) {
    const auto settings = parse_engine(line);
    EXPECT_TRUE(settings) << settings.error().message;
    return settings->engines.at(0).instructions;
  };
  const std::string probes = ", probes: [instructions]";
  EXPECT_EQ(chosen(probes), InstructionsBy::automatic);
  EXPECT_EQ(chosen(probes + ", instructions: auto"), InstructionsBy::automatic);
  EXPECT_EQ(chosen(probes + ", instructions: perf"), InstructionsBy::perf);
  EXPECT_EQ(chosen(probes + ", instructions: valgrind"), InstructionsBy::valgrind);
  EXPECT_THAT(parse_engine(", instructions: perf").error().message,
              testing::HasSubstr("write: probes: [instructions]"));
  EXPECT_THAT(parse_engine(probes + ", instructions: gdb").error().message,
              testing::HasSubstr("valgrind"));
}

}  // namespace settings_test
}  // namespace weir::config
