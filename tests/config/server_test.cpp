// Engines that serve: what may stand in weir.yaml, and which cells it makes.
#include <gmock/gmock.h>

#include "tests/config/parse_text.hpp"

namespace weir::config {
namespace server_test {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

// The engine's keys stand on line 3; `rest` begins on line 4.
std::string with_server(std::string_view keys, std::string_view rest = "") {
  return fmt::format(
      "version: 1\n"
      "engines:\n"
      "  s: {{{}}}\n"
      "{}"
      "models: {{tiny: tiny.gguf}}\n"
      "backends: {{cpu: {{}}}}\n",
      keys, rest.empty() ? "prompts: {p: {text: Hello, tokens: 8}}\n" : rest);
}

const std::string k_plain = "kind: server, api: llama, command: [serve, --port, '{port}']";

TEST(Server, HasWhatIsLeftOut) {
  const auto settings = parse_text(with_server(k_plain));
  ASSERT_TRUE(settings) << settings.error().message;
  const EngineSettings& engine = settings->engines.at(0);
  ASSERT_TRUE(engine.server);
  EXPECT_EQ(engine.output, k_requests);
  EXPECT_EQ(engine.server->api, "llama");
  EXPECT_EQ(engine.server->url, "");
  EXPECT_EQ(engine.server->ready_url, "/health");
  EXPECT_EQ(engine.server->ready_seconds, 60);
  EXPECT_EQ(engine.server->warm_up, 2);
  EXPECT_EQ(engine.server->blocks, 4);
  EXPECT_TRUE(engine.server->share_start);
  EXPECT_EQ(engine.server->metrics, "");
  EXPECT_EQ(engine.server->token_env, "");
  EXPECT_EQ(engine.server->max_different_outputs, std::nullopt);
  EXPECT_TRUE(engine.server->sends_extra_fields);
  EXPECT_FALSE(engine.server->objectives.any());
}

TEST(Server, TakesAllThatItIsTold) {
  const auto settings = parse_text(with_server(
      "kind: server, api: completions, url: 'http://10.0.0.7:8000/', ready: {url: /up, timeout: "
      "5m}, model_name: big, warm_up: 0, own_fields: false, share_start: false, blocks: 8, "
      "server_metrics: /metrics, "
      "token_env: SERVER_TOKEN, max_different_outputs: 1, slo: {ttft: 200ms, tpot: 20ms, e2e: "
      "3s}"));
  ASSERT_TRUE(settings) << settings.error().message;
  const ServerSettings& server = *settings->engines.at(0).server;
  EXPECT_EQ(server.url, "http://10.0.0.7:8000");
  EXPECT_EQ(server.ready_url, "/up");
  EXPECT_EQ(server.ready_seconds, 300);
  EXPECT_EQ(server.model_name, "big");
  EXPECT_EQ(server.warm_up, 0);
  EXPECT_FALSE(server.sends_extra_fields);
  EXPECT_EQ(server.blocks, 8);
  EXPECT_FALSE(server.share_start);
  EXPECT_EQ(server.metrics, "/metrics");
  EXPECT_EQ(server.token_env, "SERVER_TOKEN");
  EXPECT_EQ(server.max_different_outputs, 1);
  EXPECT_EQ(server.objectives.first_token_seconds, 0.2);
  EXPECT_EQ(server.objectives.per_token_seconds, 0.02);
  EXPECT_EQ(server.objectives.end_to_end_seconds, 3);
  const auto by_likely = parse_text(with_server(k_plain + ", logits: {max_kl: 0.01}"));
  ASSERT_TRUE(by_likely) << by_likely.error().message;
  EXPECT_EQ(by_likely->engines.at(0).server->max_divergence, 0.01);
  ASSERT_EQ(by_likely->limits.size(), 1U);
  EXPECT_EQ(by_likely->limits[0].match.engine, by_likely->engines[0].name);
  EXPECT_EQ(by_likely->limits[0].metrics, std::vector<std::string>{"output_kl"});
  EXPECT_EQ(by_likely->limits[0].max->value, 0.01);
  const auto by_line = parse_text(with_server(k_plain + ", ready: {line: 'listening on .*:\\d+'}"));
  ASSERT_TRUE(by_line) << by_line.error().message;
  EXPECT_EQ(by_line->engines.at(0).server->ready_line, "listening on .*:\\d+");
  EXPECT_EQ(by_line->engines.at(0).server->ready_url, "");
}

TEST(Server, MakesACellOfEachConcurrencyAndCountsTokensAloneOrSharesOfThem) {
  const auto settings =
      parse_text(with_server(k_plain,
                             "prompts:\n"
                             "  one: {text: Hello, tokens: 8}\n"
                             "  many: {text: Hello, tokens: 8, concurrency: [1, 4]}\n"
                             "  some: {prompt_tokens: 64, tokens: 8, rate: 2.5, requests: 5}\n"));
  ASSERT_TRUE(settings) << settings.error().message;
  const auto matrix = expand(*settings);
  ASSERT_TRUE(matrix) << matrix.error().message;
  ASSERT_EQ(matrix->cells.size(), 4U);
  std::vector<std::string> prompts;
  for (const Cell& cell : matrix->cells) prompts.push_back(cell.key.prompt_part());
  EXPECT_THAT(prompts, ElementsAre("one", "many@c1", "many@c4", "some"));
  EXPECT_THAT(matrix->notes, testing::IsEmpty());

  const Cell &single = matrix->cells[0], &four = matrix->cells[2], &some = matrix->cells[3];
  EXPECT_EQ(single.sweep, profile::Sweep::request);
  EXPECT_EQ(timed_request(single, settings->gate), (profile::RunParameters{0, 8, 8, 0}));
  EXPECT_THAT(counted_requests(single),
              ElementsAre(profile::RunParameters{0, 4, 1, 0}, profile::RunParameters{0, 8, 1, 0},
                          profile::RunParameters{0, 12, 1, 0}));
  EXPECT_EQ(four.sweep, profile::Sweep::overlapping);
  EXPECT_EQ(timed_request(four, settings->gate),
            (profile::RunParameters{0, 8, 32, 0}));  // 8 for each
  EXPECT_THAT(counted_requests(four), ElementsAre(profile::RunParameters{0, 8, 32, 0}));
  EXPECT_EQ(some.sweep, profile::Sweep::overlapping);
  EXPECT_EQ(some.rate, 2.5);
  EXPECT_EQ(timed_request(some, settings->gate), (profile::RunParameters{64, 8, 5, 0}));
  EXPECT_NE(four.identity, matrix->cells[1].identity) << "another load is another cell";
}

TEST(Server, IsHeldWhereAProbeCanHoldIt) {
  const auto first_cell = [](const std::string& engine, const std::string& prompt) {
    const auto settings =
        parse_text(with_server(engine, "prompts: {p: {text: Hello, tokens: 8, " + prompt + "}}\n"));
    EXPECT_TRUE(settings) << settings.error().message;
    const auto matrix = expand(*settings);
    EXPECT_TRUE(matrix) << matrix.error().message;
    return matrix->cells.at(0);
  };
  const std::string probed = k_plain + ", probes: [ggml]";
  const Cell four = first_cell(probed, "concurrency: 4");
  EXPECT_EQ(four.sweep, profile::Sweep::burst);
  // Twice as many as are sent at once otherwise, whatever `requests` says.
  EXPECT_THAT(counted_requests(four), ElementsAre(profile::RunParameters{0, 8, 8, 0}));
  const Cell none = first_cell(probed, "concurrency: 4, hold: none");
  EXPECT_EQ(none.sweep, profile::Sweep::overlapping);
  EXPECT_NE(none.identity, four.identity) << "other counts";
  EXPECT_EQ(first_cell(probed, "concurrency: 1").sweep, profile::Sweep::request);
  EXPECT_EQ(first_cell(probed, "rate: 4").sweep, profile::Sweep::overlapping);
  EXPECT_EQ(first_cell(k_plain, "concurrency: 4").sweep, profile::Sweep::overlapping) << "no probe";
  EXPECT_EQ(first_cell(k_plain + ", probes: [vulkan]", "concurrency: 4").sweep,
            profile::Sweep::overlapping)
      << "it sees another device";
}

TEST(Server, TakesWhatALongRunIs) {
  const auto settings =
      parse_text(with_server(k_plain + ", slo: {ttft: 1s}",
                             "prompts:\n"
                             "  soak: {text: Hello, tokens: 8, duration: 30m, cache: true}\n"
                             "  most: {text: Hello, tokens: 8, capacity: {low: 4, high: 64}}\n"));
  ASSERT_TRUE(settings) << settings.error().message;
  const auto matrix = expand(*settings);
  ASSERT_TRUE(matrix) << matrix.error().message;
  const Cell &soak = matrix->cells.at(0), &most = matrix->cells.at(1);
  EXPECT_EQ(soak.duration_seconds, 1800);
  EXPECT_TRUE(soak.allows_cached_prompts);
  EXPECT_TRUE(soak.runs_long() && most.runs_long());
  EXPECT_EQ(most.capacity, std::pair(4.0, 64.0));
  EXPECT_EQ(most.requests, 1000);

  // 1000 requests at one a second take longer than the timeout of 300 s.
  const auto slow = parse_text(
      with_server(k_plain + ", slo: {ttft: 1s}",
                  "prompts: {most: {text: Hello, tokens: 8, capacity: {low: 1, high: 64}}}\n"));
  ASSERT_TRUE(slow) << slow.error().message;
  const auto none = expand(*slow);
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message.find("1000 requests at 1 a second"), std::string::npos)
      << none.error().message;
}

TEST(Server, RefusesLoadsThatContradictThemselves) {
  const struct {
    const char *prompt, *words;
  } cases[] = {
      {"rate: 2, hold: all", "hold and rate"},
      {"hold: some", "hold"},
      {"requests: 9, duration: 1m", "requests and duration"},
      {"duration: 25h", "duration"},
      {"capacity: {low: 2, high: 1}", "low must be below high"},
      {"capacity: {low: 2}", "high"},
      {"capacity: {low: 0, high: 1}", "above 0"},
      {"capacity: {low: 1, high: 2}, rate: 1", "neither rate nor concurrency"},
  };
  for (const auto& c : cases) {
    const auto settings = parse_text(with_server(
        k_plain, std::string("prompts: {p: {text: Hello, tokens: 8, ") + c.prompt + "}}\n"));
    ASSERT_FALSE(settings) << c.prompt;
    EXPECT_NE(settings.error().message.find(c.words), std::string::npos)
        << settings.error().message;
  }
}

TEST(Server, FillsItsPort) {
  const auto settings = parse_text(with_server(k_plain));
  ASSERT_TRUE(settings) << settings.error().message;
  const auto matrix = expand(*settings);
  ASSERT_TRUE(matrix) << matrix.error().message;
  Filling filling;
  filling.port = "8123";
  EXPECT_THAT(fill(matrix->cells.at(0), filling).argv, ElementsAre("serve", "--port", "8123"));
}

TEST(Server, SelectsAllItsCellsByThePromptAlone) {
  const auto settings =
      parse_text(with_server(k_plain, "prompts: {p: {text: a, tokens: 8, concurrency: [1, 4]}}\n"));
  ASSERT_TRUE(settings) << settings.error().message;
  const auto matrix = expand(*settings);
  ASSERT_TRUE(matrix) << matrix.error().message;
  const std::vector<std::string> globs{"s/tiny/cpu/p"};
  const auto chosen = select(*matrix, globs);
  ASSERT_TRUE(chosen) << chosen.error().message;
  EXPECT_EQ(chosen->size(), 2U);
}

struct Case {
  std::string keys;
  const char* place;
  const char* says;
};

TEST(Server, MistakesAreNamedWhereTheyStand) {
  const Case cases[] = {
      {"kind: sever, command: [x], output: generic, metrics: {}", "3:13",
       "did you mean \"server\""},
      {"kind: server, command: [x, '{port}']", "3:3", "needs \"api\""},
      {"kind: server, api: lama, command: [x, '{port}']", "3:26", "did you mean \"llama\""},
      {"kind: server, api: llama", "3:6", "needs \"command\""},
      {"kind: server, api: llama, command: [x]", "3:42", "put {port} where the command takes it"},
      {"kind: server, api: ollama, command: [x, '{port}']", "3:3", "needs \"model_name\""},
      {k_plain + ", output: generic", "3:77", "leave output out"},
      {k_plain + ", metrics: {}", "3:78", "which a server has none of"},
      {k_plain + ", url: localhost", "3:74", "url is where the server listens"},
      {k_plain + ", url: 'http://h:{prompt}'", "3:74", "{port} alone, not {prompt}"},
      {k_plain + ", ready: health", "3:76", "a path of the server"},
      {k_plain + ", ready: {line: '('}", "3:83", "regular expression"},
      {k_plain + ", ready: {line: a, url: /b}", "3:83", "both url and line"},
      {k_plain + ", ready: {timeout: 0s}", "3:86", "more than nothing"},
      {k_plain + ", slo: {ttfb: 1s}", "3:75", "did you mean \"ttft\""},
      {k_plain + ", slo: {}", "3:74", "at least one of"},
      {k_plain + ", warm_up: -1", "3:78", "a whole number from 0"},
      {k_plain + ", blocks: 65", "3:77", "a whole number from 0 to 64"},
      {k_plain + ", server_metrics: metrics", "3:85", "a path of the server"},
      {k_plain + ", token_env: sk-0123456789", "3:80", "the name of an environment variable"},
      {k_plain + ", logits: {max_kl: 5%}", "3:86", "a number of at least 0"},
      {k_plain + ", logits: {max_kl: 1}, warm_up: 0", "3:77", "warm_up must be 1 or more"},
      {k_plain + ", max_different_outputs: -1", "3:92", "a whole number from 0"},
      {"command: [x, '{tokens}'], output: llama-bench, token_env: A", "3:65", "kind: server"},
      {"kind: server, api: llama, url: 'http://h:1', container: docker", "3:63",
       "runs already under url"},
      {k_plain + ", container: {runtime: srun}", "3:80", "may listen on another node: say where"},
      {"kind: server, api: llama, url: 'http://h:1', probes: [ggml]", "3:60", "starts no program"},
      {"kind: server, api: llama, url: 'http://:8080'", "3:38", "url names no host"},
      {"kind: server, api: llama, url: 'http://[::1'", "3:38", "url names no host"},
      {"kind: server, api: llama, url: 'http://h:80800'", "3:38", "\"80800\" is no port"},
      {"kind: server, api: llama, url: 'http://h:'", "3:38", "\"\" is no port"},
      {"kind: server, api: llama, url: 'http://u:p@h:1'", "3:38", "by token_env"},
      {k_plain + ", server_metrics: 'http://h:1x/metrics'", "3:85", "\"1x\" is no port"},
      {k_plain + ", timeout: 60s, ready: {timeout: 2m}", "3:100",
       "longer than the engine's (1 m 0 s), which holds start, warm-up and load\n  write beside "
       "it: timeout: 240s"},
      {"kind: server, api: llama, url: 'http://h:{port}'", "3:38", "there is none"},
      {"kind: server, api: llama, url: 'http://h:1', ready: {line: up}", "3:59", "did not start"},
      {"command: [x, '{tokens}'], output: llama-bench, api: llama", "3:59", "kind: server"},
      {"command: [x, '{tokens}', '{port}'], output: llama-bench", "3:16", "{port} is for engines"},
  };
  for (const Case& c : cases) {
    const std::string message = config_error(with_server(c.keys));
    EXPECT_THAT(message, HasSubstr(fmt::format("weir.yaml:{}:", c.place))) << c.keys;
    EXPECT_THAT(message, HasSubstr(c.says)) << c.keys;
  }
}

// Somebody may have put the token itself there.
TEST(Server, ATokenInTheFileIsRefusedWithoutSayingIt) {
  EXPECT_THAT(config_error(with_server(k_plain + ", token_env: sk-0123456789")),
              testing::Not(HasSubstr("sk-0123456789")));
}

TEST(Server, SendsFieldsOfOnesOwnWithEachRequest) {
  const auto parsed_body = [](const std::string& yaml) {
    const auto settings = parse_text(with_server(k_plain + ", extra_body: " + yaml));
    EXPECT_TRUE(settings) << yaml << ": " << settings.error().message;
    return settings ? settings->engines.at(0).server->extra_body : std::string("none");
  };
  const std::pair<const char*, const char*> cases[] = {
      {"{cache_salt: x}", R"({"cache_salt":"x"})"},
      {"{}", ""},
      {"{a: 1, b: 1.5, c: true, d: ~, e: '1', f: -7, g: 1e3}",
       R"({"a":1,"b":1.5,"c":true,"d":null,"e":"1","f":-7,"g":1000.0})"},
      {"{stop: [END, 5], logit_bias: {'15043': -1}}",
       R"({"logit_bias":{"15043":-1},"stop":["END",5]})"},
      {"{grammar: 'root ::= \"{\" [a-z]+'}", R"({"grammar":"root ::= \"{\" [a-z]+"})"},
      {"{samplers: {seed: 1}}", R"({"samplers":{"seed":1}})"},  // not the member that weir sends
  };
  for (const auto& [yaml, json] : cases) EXPECT_EQ(parsed_body(yaml), json) << yaml;
  EXPECT_EQ(parse_text(with_server(k_plain))->engines.at(0).server->extra_body, "");
}

TEST(Server, RefusesFieldsThatWouldChangeWhatWeirSendsOrAreTooMany) {
  const auto message = [](const std::string& yaml, const std::string& engine) {
    return config_error(with_server(engine + ", extra_body: " + yaml));
  };
  const std::string openai = "kind: server, api: completions, url: 'http://h:1'";
  const std::string deep = "{a: {a: {a: {a: {a: {a: {a: {a: {a: 1}}}}}}}}}";  // 9 levels
  const std::tuple<std::string, std::string, const char*> cases[] = {
      {k_plain, "{seed: 9}",
       "3:82: extra_body: \"seed\" is what weir itself sends; what says it in weir.yaml: seed of "
       "the engine"},
      {k_plain, "{n_predict: 9}", "what says it in weir.yaml: tokens of the prompt"},
      {k_plain, "{stream: false}", "answers are read so"},
      {openai, "{ignore_eos: false}", "what says it in weir.yaml: own_fields"},
      {openai, "{stream_options: {include_usage: false}}", "\"stream_options.include_usage\" is"},
      {openai, "{stream_options: ~}", "\"stream_options\" is what weir itself sends"},
      {k_plain, "[a]", "a mapping of the fields"},
      {k_plain, deep, "deeper than 8 levels"},
      {k_plain, "{a: " + std::string(70'000, 'x') + "}", "more than 64 KiB"},
      {k_plain, "{" + std::string(200, 'k') + ": 1}", "the name of a field has 1 to 128 bytes"},
      {k_plain, "{a: 123456789012345678901234}", "write it in quotes"},
      {"command: [x, '{tokens}'], output: llama-bench", "{a: 1}", "kind: server"},
  };
  for (const auto& [engine, yaml, says] : cases) {
    EXPECT_THAT(message(yaml, engine), HasSubstr(says)) << yaml.substr(0, 80);
  }
  // Not sent, so anybody's; and beside what is sent.
  EXPECT_EQ(message("{ignore_eos: false}", openai + ", own_fields: false"), "");
  EXPECT_EQ(message("{stream_options: {continuous_usage_stats: true}}", openai), "");
}

TEST(Server, WithOtherFieldsIsAnotherCell) {
  const auto read_identity = [](const std::string& more) {
    const auto settings = parse_text(with_server(k_plain + more));
    return settings ? expand(*settings)->cells.at(0).identity : decltype(Cell::identity)();
  };
  const auto plain = read_identity("");
  EXPECT_EQ(plain, read_identity(", extra_body: {}"));
  EXPECT_NE(plain, read_identity(", extra_body: {a: 1}"));
  EXPECT_NE(read_identity(", extra_body: {a: 1}"), read_identity(", extra_body: {a: 2}"));
  EXPECT_EQ(read_identity(", extra_body: {a: 1, b: 2}"),
            read_identity(", extra_body: {b: 2, a: 1}"));
}

TEST(Server, ListensAtAnyAddressThatAUrlCanSay) {
  for (const char* url : {"http://127.0.0.1", "https://models.example:8443", "http://[::1]:8080",
                          "http://[::1]", "http://h:65535/served/here"}) {
    const auto settings =
        parse_text(with_server(fmt::format("kind: server, api: llama, url: '{}'", url)));
    ASSERT_TRUE(settings) << url << ": " << settings.error().message;
    EXPECT_EQ(settings->engines.at(0).server->url, url);
  }
}

TEST(Server, LeavesOutPromptsThatItCanNotBeAsked) {
  const std::pair<const char*, const char*> cases[] = {
      {"{tokens: 8}", "a server wants a prompt: text, file or prompt_tokens"},
      {"{text: a}", "a server is asked for at least one token"},
      {"{text: a, tokens: 8, depth: 256}", "a server has no depth"},
      {"{text: a, tokens: 8, threads: 2}", "the command has no {threads}"},
  };
  for (const auto& [prompt, says] : cases) {
    EXPECT_THAT(config_error(with_server(k_plain, fmt::format("prompts: {{p: {}}}\n", prompt))),
                HasSubstr(says))
        << prompt;
  }
}

}  // namespace server_test
}  // namespace weir::config
