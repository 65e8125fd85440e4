// The message for each mistake: place, problem, suggestion, and the names that exist.
#include <gmock/gmock.h>

#include "tests/config/parse_text.hpp"

namespace weir::config {
namespace errors_test {

using testing::HasSubstr;
using testing::StartsWith;

TEST(Errors, ReadLikeThis) {
  // The whole message, as printed behind "weir: ".
  const std::pair<std::string, const char*> cases[] = {
      {config_with("limits:\n  - {match: {backend: vulcan}, mode: off}\n"),
       "weir.yaml:11:23: unknown backend \"vulcan\" (did you mean \"vulkan\"?)\n"
       "  known here: cpu, vulkan"},
      {config_with("limts: []\n"),
       "weir.yaml:10:1: unknown key \"limts\" in the configuration (did you mean \"limits\"?)\n"
       "  known here: version, engines, models, backends, prompts, variants, matrix, limits, gate, "
       "explain"},
      {config_with("explain: {rules: [{when: {op: ADD, change: slower}, say: x}]}\n"),
       "weir.yaml:10:44: change: slower is for a metric of time: kernels and ops are counted here "
       "(any, more, fewer, appeared, vanished)"},
      {config_with("gate: {budget: soon}\n"),
       "weir.yaml:10:16: budget: \"soon\" is not a duration (write 500ms, 120s, 10m, 1m30s or 2h)"},
      {config_with("limits:\n- {metrics: syncs_per_token, max: 1, mode: report,\n"
                   "   until: 2026-11-19, reason: \"being observed\"}\n"),
       "weir.yaml:11:3: this limit (\"being observed\") expired on 2026-11-19: decide what holds "
       "now, then take \"until\" out or give it a later day"},
      {with_head("prompts: {p: {tokens: 8, args: ['{tokns}']}}\n"),
       "weir.yaml:9:33: unknown placeholder \"{tokns}\" (did you mean \"tokens\"?): write "
       "{{tokns}} for the text itself\n"
       "  known here: args, depth, model, out, port, probe_dir, prompt, prompt_file, "
       "prompt_tokens, repeats, seed, threads, tokens"},
      {config_with("matrix: {include: [{engine: agave, prompt: deco*}, {engine: llama.cpp}]}\n"),
       "weir.yaml:10:20: this include entry has no cell that fits: the command wants a text, and "
       "the "
       "prompt has none"},
      {config_with("matrix: {include: [{engine: llama.cpp, prompt: hello}]}\n"),
       "weir.yaml:10:20: llama.cpp/tiny/cpu/hello does not fit: the command takes no text (it has "
       "neither {prompt} nor {prompt_file})"},
      {config_with("limits:\n- {match: {engine: agave, prompt: decode}, mode: off}\n"),
       "weir.yaml:11:3: this limit matches no cell of the matrix"},
      {config_with("limits:\n- {metrics: dispatches_per_context_token, max_increase: 5%}\n"),
       "weir.yaml:11:3: no engine that this limit matches has such a metric"},
      {"version: 1\nengines: {e: {command: [e], output: generic, metrics: {syncs_per_token: "
       "{regex: '\\d+ syncs'}}}}\nmodels: {m: m}\nbackends: {cpu: }\nprompts: {p: {text: a}}\n",
       "weir.yaml:2:81: the regular expression has no group: put the value in (…), as in '(\\d+) "
       "syncs'"},
      {"version: 1\nengines: {e: {command: [e], output: generic, metrics: {minor_faults: "
       "{regex: '(\\d+)'}}}}\nmodels: {m: m}\nbackends: {cpu: }\nprompts: {p: {text: a}}\n",
       "weir.yaml:2:56: weir measures \"minor_faults\" itself: give this metric another name"},
      {"", "weir.yaml: there is nothing in it (weir init writes a starter)"},
      {"a: b: c", "weir.yaml:1:5: not YAML: illegal map value"},
  };
  for (const auto& [yaml, message] : cases) EXPECT_EQ(config_error(yaml), message);
}

TEST(Errors, AreAllToldAtOnceInTheOrderOfTheText) {
  EXPECT_EQ(config_error(config_with("limits: 3\ngate: {runs: 0, repeats: many}\n")),
            "weir.yaml:10:9: limits must be a list of at most 1000 entries such as {metrics: "
            "decode_tokens_per_second, max_drop: 5%}\n"
            "weir.yaml:11:14: runs must be a whole number from 1 to 1000, not \"0\"\n"
            "weir.yaml:11:26: repeats must be a whole number from 1 to 1000, not \"many\"");
  EXPECT_THAT(config_error("{a: 1, b: 1, c: 1, d: 1, e: 1, f: 1, g: 1, h: 1, i: 1}"),
              HasSubstr("\n… and 6 more"));  // 9 unknown keys and 5 missing ones, 8 shown
}

// Parts of messages: one case for each thing that is checked.
struct Case {
  const char* yaml;   // follows the head
  const char* place;  // "line:column"
  const char* says;
};

void check(const Case& c, const std::string& yaml) {
  const std::string message = config_error(yaml);
  EXPECT_THAT(message, StartsWith(std::string("weir.yaml:") + c.place + ": ")) << c.yaml;
  EXPECT_THAT(message, HasSubstr(c.says)) << c.yaml;
}

TEST(Errors, NameTheSectionThatIsWrong) {
  const Case cases[] = {
      {"variants: []\n", "10:11", "variants must be a mapping with at least one variant"},
      {"variants: {fused: {engines: {agve: {}}}}\n", "10:30", "did you mean \"agave\"?"},
      {"variants: {fused: {argz: []}}\n", "10:20", "did you mean \"args\"?"},
      {"variants: {fused: {args: --mega}}\n", "10:26", "no shell splits it"},
      {"variants: {fused: {args: ['{args}']}}\n", "10:26", "only stand in an engine's command"},
      {"variants: {fused: {env: {A-B: 1}}}\n", "10:26", "no name of an environment variable"},
      {"variants: {fused: {env: {A: [1]}}}\n", "10:29", "A must be a text"},
      {"variants: {fused: {env: {A-B: }}}\n", "10:26", "no name of an environment variable"},
      {"variants: {fused: {env: {A: '{args}'}}}\n", "10:29", "cannot be in the environment"},
      {"variants: {fused: {threads: 0}}\n", "10:29", "from 1 to 4096"},
      {"variants: {'a/b': {}}\n", "10:12", "cannot name a variant"},
      {"variants: {'../x': {}}\n", "10:12", "cannot name a variant"},
      {"variants: {One: {}, one: {}}\n", "10:21", "two variants are named \"one\""},
      {"variants: {one: {}, one: {}}\n", "10:21", "stands here twice"},
      {"matrix: {exclude: [{engine: agav}]}\n", "10:29", "did you mean \"agave\"?"},
      {"matrix: {exclude: [{backend: 'x*'}]}\n", "10:30", "unknown backend \"x*\""},
      {"matrix: {exclude: [{}]}\n", "10:20", "must name something"},
      {"matrix: {include: []}\n", "10:19", "leave it out"},
      {"matrix: {exclude: [{engine: agave, prompt: 'hello@d1'}]}\n", "10:20",
       "this exclude entry matches no combination"},
      {"matrix: {include: [{engine: agave, prompt: 'hello@d1'}]}\n", "10:20",
       "this include entry matches no combination"},
      {"gate: {false_alarm: 0.5}\n", "10:21", "between 0 and 0.5"},
      {"gate: {missed: nan}\n", "10:16", "between 0 and 0.5"},
      {"gate: {on_inconclusive: maybe}\n", "10:25", "known here: warn, fail"},
      {"gate: {comment: no}\n", "10:17", "known here: changed, always, never"},
      {"gate: {confirm: --upload-pack=x}\n", "10:17", "a REF of git (origin/main), true or false"},
      {"gate: {cache: true}\n", "10:8", "unknown key \"cache\" in gate"},
      {"gate: {budget: 0s}\n", "10:16", "more than nothing"},
  };
  for (const Case& c : cases) check(c, config_with(c.yaml));
  EXPECT_THAT(config_error(config_with("variants: {fused: {env: {A: 'x{port}'}}}\n")),
              HasSubstr("{port} is for engines that serve"));
}

TEST(Errors, NameTheLimitThatIsWrong) {
  const Case cases[] = {
      {"limits: [{metrics: decode_token_per_second, max_drop: 5%}]\n", "10:20",
       "did you mean \"decode_tokens_per_second\"?"},
      {"limits: [{metrics: 'kernel_calls:', max: 0}]\n", "10:20",
       "unknown metric \"kernel_calls:\""},
      {"limits: [{metrics: 'op:lm head', max: 1}]\n", "10:20", "unknown metric \"op:lm head\""},
      {"limits: [{metrics: 'op:lm_*', exact: true}]\n", "10:10",
       "exact makes no sense for op:lm_*"},
      {"limits: [{metrics: 'kernel_calls:a', max_drop: 1}]\n", "10:10",
       "max_drop makes no sense for the count kernel_calls:a"},
      // No rule reads it, and no probe times an op in a gate.
      {"limits: [{metrics: 'op:lm_head', max_increase: 5%}]\n", "10:10",
       "nothing reports \"op:lm_head\" in the cells that this limit matches"},
      {"limits: [{match: {backend: cpu}, metrics: 'kernel_calls:a', max: 1}]\n", "10:10",
       "probes count kernel_calls of devices and op_calls of the CPU"},
      {"limits: [{match: {backend: cpu}, metrics: 'occupancy:*', max_decrease: 0}]\n", "10:10",
       "nothing reports \"occupancy:*\""},
      {"limits: [{match: {backend: vulkan}, metrics: ['op_calls:ROPE'], max: 1}]\n", "10:10",
       "nothing reports \"op_calls:ROPE\""},
      {"limits: [{metrics: 'buffers:layer.*', exact: true}]\n", "10:10",
       "nothing reports \"buffers:layer.*\""},
      {"limits: [{metrics: 'buffer:layer', exact: true}]\n", "10:10",
       "exact makes no sense for buffer:layer"},
      {"limits: [{metrics: [], max_drop: 5%}]\n", "10:20", "leave it out for all"},
      {"limits: [{metrics: syncs_per_token}]\n", "10:10", "says nothing"},
      {"limits: [{metrics: syncs_per_token, max: 5%}]\n", "10:42", "a number of at least 0"},
      {"limits: [{metrics: syncs_per_token, max: -1}]\n", "10:42", "a number of at least 0"},
      {"limits: [{metrics: syncs_per_token, max: 3 apples}]\n", "10:42", "with a unit as in 100MB"},
      {"limits: [{metrics: load_seconds, max: 100MB}]\n", "10:10",
       "max is in B, which makes no sense for load_seconds (in s)"},
      {"limits: [{metrics: [failed_requests, fits], max: 5%}]\n", "10:50", "failed_requests alone"},
      {"limits: [{metrics: syncs_per_token, max: 1, min: 2}]\n", "10:10", "max (1) is smaller"},
      {"limits: [{metrics: syncs_per_token, exact: yes}]\n", "10:44", "true or false"},
      {"limits: [{metrics: load_seconds, max_increase: 5%, tolerate: 5%}]\n", "10:10",
       "tolerate (5 %) must be smaller"},
      {"limits: [{metrics: load_seconds, max_increase: 5%, tolerate: 1}]\n", "10:10",
       "of its kind"},
      {"limits: [{metrics: load_seconds, max: 5, tolerate: 1}]\n", "10:10", "goes with max_drop"},
      {"limits: [{mode: warn}]\n", "10:17", "known here: gate, report, off"},
      {"limits: [{mode: off, until: soon}]\n", "10:29", "a day such as 2027-03-01"},
      {"limits: [{mode: off, until: 2027-02-29}]\n", "10:29", "a day such as 2027-03-01"},
      {"limits: [{mode: off, until: 2027-13-01}]\n", "10:29", "a day such as 2027-03-01"},
      {"limits: [{mode: off, until: 2026-01-01}]\n", "10:10", "expired on 2026-01-01"},
      {"limits: [{max: 5}]\n", "10:10", "max and min need \"metrics\""},
      {"limits: [{metrics: '*_seconds', max_drop: 5%}]\n", "10:10", "max_drop makes no sense"},
      {"limits: [{metrics: syncs_per_token, max_drop: 5%}]\n", "10:10", "max_drop"},
      {"limits: [{metrics: decode_tokens_per_second, exact: true}]\n", "10:10", "exact"},
      {"limits: [{metrics: kernels, max: 3}]\n", "10:10", "takes exact and mode alone"},
      {"limits: [{kernels: true}]\n", "10:11", "unknown key \"kernels\""},
      {"limits: [{match: {engine: agave, backend: vulkan, prompt: deco*}, mode: off}]\n", "10:10",
       "matches no cell"},
      {"limits: [[1]]\n", "10:10", "a limit must be a mapping, not a list"},
  };
  for (const Case& c : cases) check(c, config_with(c.yaml));
}

TEST(Limits, OverManyMetricsHoldEachToWhatMakesSenseThere) {
  for (const char* fine :
       {"limits: [{max_drop: 10%}]\n", "limits: [{metrics: '*', exact: true}]\n",
        "limits: [{metrics: '*_per_*', max_increase: 5%}]\n", "limits: [{mode: report}]\n",
        "limits: [{metrics: [kernels, placement], exact: false}]\n",
        "limits: [{metrics: dispatches_at_8, exact: false}]\n"}) {
    EXPECT_EQ(config_error(config_with(fine)), "") << fine;
  }
}

TEST(Errors, NameThePromptThatIsWrong) {
  const Case cases[] = {
      {"prompts:\n", "1:1", "needs \"prompts\""},
      {"prompts: {p: {}}\n", "9:11", "asks for nothing"},
      {"prompts: {p: {prompt_tokens: 0, tokens: 0}}\n", "9:11", "asks for nothing"},
      {"prompts: {p: {text: a, file: b}}\n", "9:11", "more than one of text, file"},
      {"prompts: {p: {text: ''}}\n", "9:21", "text must be a text"},
      {"prompts: {p: {tokens: -1}}\n", "9:23", "from 0 to 10000000"},
      {"prompts: {p: {tokens: 1e3}}\n", "9:23", "a whole number"},
      {"prompts: {p: {tokens: 99999999999999999999}}\n", "9:23", "a whole number"},
      {"prompts: {p: {tokens: [8]}}\n", "9:23", "not a list"},
      {"prompts: {p: {tokens: 8, depth: []}}\n", "9:33", "a list of 1 to 100"},
      {"prompts: {p: {tokens: 8, depth: [1, 1]}}\n", "9:37", "stands here twice"},
      {"prompts: {p: {tokens: 8, concurrency: 0}}\n", "9:39", "a whole number from 1 to 1024"},
      {"prompts: {p: {tokens: 8, concurrency: []}}\n", "9:39", "a list of 1 to 100"},
      {"prompts: {p: {tokens: 8, concurrency: [4, 4]}}\n", "9:43", "stands here twice"},
      {"prompts: {p: {tokens: 8, threads: [4, 4]}}\n", "9:39", "stands here twice"},
      {"prompts: {p: {tokens: 8, threads: [all, all]}}\n", "9:35", "stands here twice"},
      {"prompts: {p: {tokens: 8, threads: []}}\n", "9:35", "a list of 1 to 100"},
      {"prompts: {p: {tokens: 8, threads: [some]}}\n", "9:36", "a whole number from 1 to 4096"},
      {"prompts: {p: {tokens: 8, rate: 0}}\n", "9:32", "above 0"},
      {"prompts: {p: {tokens: 8, concurrency: 2, rate: 3}}\n", "9:48", "not both"},
      {"prompts: {p: {tokens: 8, concurrency: 4}}\n", "", "are asked of servers (kind: server)"},
      {"prompts: {p: 8}\n", "9:14", "must be a mapping, not \"8\""},
      {"prompts: {p: {tokens: 8}, 'P': {tokens: 8}}\n", "9:27", "two prompts are named"},
      {"prompts: {p: {tokens: 8, threads: 2}}\n", "", "has no {threads} for \"threads\""},
  };
  for (const Case& c : cases) {
    if (*c.place == '\0') {
      EXPECT_THAT(config_error(with_head(c.yaml)), HasSubstr(c.says));
    } else {
      check(c, with_head(c.yaml));
    }
  }
}

TEST(Errors, NameTheEngineModelOrBackendThatIsWrong) {
  // Each replaces what stands for the engine, the model or the backend.
  struct Part {
    const char* engine;
    const char* model;
    const char* backend;
    const char* place;
    const char* says;
  };
  constexpr const char* k_engine = "{command: [a, '{tokens}'], output: llama-bench}";
  const Part cases[] = {
      {"{output: llama-bench}", "m.gguf", "{}", "2:14", "needs \"command\""},
      {"{command: [a, '{tokens}'], output: llama-bench, processes: {op: a}}", "m.gguf", "{}",
       "2:74", "\"op\" is no name of a role"},
      {"{command: a -m x, output: llama-bench}", "m.gguf", "{}", "2:24", "no shell splits it"},
      {"{command: [], output: llama-bench}", "m.gguf", "{}", "2:24", "begin with the program"},
      {"{command: ['{model}'], output: llama-bench}", "m.gguf", "{}", "2:24",
       "cannot hold placeholders"},
      {"{command: [a, '{args}', '{args}'], output: llama-bench}", "m.gguf", "{}", "2:24", "once"},
      {"{command: [a, 'x{args}'], output: llama-bench}", "m.gguf", "{}", "2:28", "one by itself"},
      {"{command: [a, [b]], output: llama-bench}", "m.gguf", "{}", "2:28", "not a list"},
      {"{command: [a], output: llamabench}", "m.gguf", "{}", "2:37",
       "did you mean \"llama-bench\"?"},
      {"{command: [a], output: generic}", "m.gguf", "{}", "2:11", "needs \"metrics\""},
      {"{command: [a], output: llama-bench, metrics: {}}", "m.gguf", "{}", "2:59",
       "are for output: generic"},
      {"{command: [a], output: llama-bench, probes: [vulcan]}", "m.gguf", "{}", "2:58",
       "did you mean \"vulkan\"?"},
      {"{command: [a], output: llama-bench, probes: [vulkan, vulkan]}", "m.gguf", "{}", "2:58",
       "twice"},
      {"{command: [a], output: llama-bench, kind: server}", "m.gguf", "{}", "2:11",
       "engine \"e\" needs \"api\": how the server is asked"},
      {"{command: [a], output: llama-bench, timeout: 0s}", "m.gguf", "{}", "2:59", "at most 24h"},
      {"{command: [a], output: llama-bench, timeout: 120}", "m.gguf", "{}", "2:59",
       "is not a duration"},
      {"{command: [a], output: llama-bench, output_limit: 1GB}", "m.gguf", "{}", "2:64",
       "from 4KiB to 32MiB"},
      {"{command: [a], output: llama-bench, cpu_ops_allowed: [X]}", "m.gguf", "{}", "2:67",
       "must be a mapping"},
      {"{command: [a], output: llama-bench, cpu_ops_allowed: {'*': any}}", "m.gguf", "{}", "2:68",
       "\"*\" names no op"},
      {"{command: [a], output: llama-bench, cpu_ops_allowed: {X: {when: ne0 < 1}}}", "m.gguf", "{}",
       "2:71", "needs \"why\""},
      {"{command: [a], output: llama-bench, cpu_ops_allowed: {X: {why: y, when: ne0<1}}}", "m.gguf",
       "{}", "2:86", "\"ne0<1\" is not a condition: write \"ne0 < 128\""},
      {"{command: [a], output: llama-bench, cpu_ops_allowed: {X: {why: y, match: {backend: z}}}}",
       "m.gguf", "{}", "2:97", "unknown backend \"z\""},
      {"{command: [a], output: generic, metrics: {x: {regex: '(a)'}}}", "m.gguf", "{}", "2:56",
       "needs unit and better"},
      {"{command: [a], output: generic, metrics: {X: {regex: '(a)'}}}", "m.gguf", "{}", "2:56",
       "cannot name a metric"},
      {"{command: [a], output: generic, metrics: {kernels: {regex: '(a)'}}}", "m.gguf", "{}",
       "2:56", "is judged by weir itself"},
      {"{command: [a], output: generic, metrics: {load_seconds: {regex: '(a)', unit: MiB}}}",
       "m.gguf", "{}", "2:91", "is measured in s"},
      {"{command: [a], output: generic, metrics: {load_seconds: {regex: '(a)', unit: hours}}}",
       "m.gguf", "{}", "2:91", "unknown unit \"hours\""},
      {"{command: [a], output: generic, metrics: {load_seconds: {regex: '(a', unit: s}}}", "m.gguf",
       "{}", "2:78", "not a regular expression"},
      {"{command: [a], output: generic, metrics: {load_seconds: {regex: '((((a{99}){99}){99}){99})'"
       ", unit: s}}}",
       "m.gguf", "{}", "2:78", "not a regular expression"},
      {"{command: [a], output: generic, metrics: {load_seconds: {unit: s}}}", "m.gguf", "{}",
       "2:56", "needs either regex"},
      {"{command: [a], output: generic, metrics: {load_seconds: {pointer: a/b}}}", "m.gguf", "{}",
       "2:80", "begins with \"/\""},
      {"{command: [a], output: generic, metrics: {load_seconds: {pointer: /a~b}}}", "m.gguf", "{}",
       "2:80", "is written ~0"},
      {"{command: [a], output: generic, metrics: {load_seconds: {regex: '(a)'}}, facts: {toks: "
       "{regex: '(a)'}}}",
       "m.gguf", "{}", "2:95", "unknown fact \"toks\""},
      {k_engine, "{file: a}", "{}", "3:13", "needs \"path\""},
      {k_engine, "[a]", "{}", "3:13", "not a list"},
      {k_engine, "m.gguf", "{device: gpu}", "4:26", "known here: cpu, cuda"},
      {k_engine, "m.gguf", "{device: vulkan, twin: intel-arc-a750}", "4:40",
       "unknown twin \"intel-arc-a750\" (did you mean \"intel-arc-a770\"?)"},
      {k_engine, "m.gguf", "{device: opencl, twin: intel-arc-a770}", "4:40",
       "a twin is a device of vulkan or cuda or hip, not \"opencl\""},
      {k_engine, "m.gguf", "{device: opencl, compile: radv-navi31}", "4:43",
       "\"compile\" is for kernels of vulkan, not of \"opencl\""},
      {k_engine, "m.gguf", "{device: vulkan, twin: intel-arc-a770, count: 2}", "4:63",
       "\"count\" is how many of a twin of cuda or hip there are"},
      {k_engine, "m.gguf", "{}, fast: {}", "4:21", "needs \"device\""},
  };
  for (const Part& c : cases) {
    const std::string yaml = fmt::format(
        "version: 1\nengines: {{e: {}}}\nmodels: {{m: {}}}\nbackends: {{cpu: {}}}\n"
        "prompts: {{p: {{tokens: 8}}}}\n",
        c.engine, c.model, c.backend);
    check({c.engine, c.place, c.says}, yaml);
  }
}

TEST(Errors, SayThatAWeirWithoutTheDriverHasNoTwins) {
  Supported context = test_context();
  context.twins.reset();
  const auto settings = parse_settings(
      "version: 1\nengines: {e: {command: [a], output: llama-bench}}\nmodels: {m: m.gguf}\n"
      "backends: {gpu: {device: vulkan, twin: intel-arc-a770}}\nprompts: {p: {tokens: 8}}\n",
      "weir.yaml", context);
  ASSERT_FALSE(settings);
  EXPECT_THAT(settings.error().message, HasSubstr("built without them"));
}

TEST(Errors, NameNoLineOfACommandLine) {
  const auto settings = parse_settings("version: 1\nmore: 1\n", k_command_line, test_context());
  ASSERT_FALSE(settings);
  EXPECT_THAT(settings.error().message,
              testing::StartsWith("the command line: the configuration needs"));
}

TEST(Errors, NameAnotherVersionOfTheFormat) {
  EXPECT_THAT(config_error("version: 2\n"), HasSubstr("weir.yaml:1:10: this weir reads version 1"));
  EXPECT_THAT(config_error("engines: {}\n"), HasSubstr("needs \"version\""));
}

}  // namespace errors_test
}  // namespace weir::config
