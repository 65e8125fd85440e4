// Engines that serve: `kind: server` and the keys that go with it.
#include <algorithm>
#include <cmath>

#include "gate/base/text.hpp"
#include "gate/config/parse.hpp"
#include "gate/config/pattern.hpp"
#include "gate/config/placeholders.hpp"

namespace weir::config {
namespace {

constexpr const char* k_server_keys[] = {"url",
                                         "api",
                                         "ready",
                                         "model_name",
                                         "slo",
                                         "own_fields",
                                         "extra_body",
                                         "warm_up",
                                         "blocks",
                                         "share_start",
                                         "token_env",
                                         "server_metrics",
                                         "max_different_outputs"};

std::optional<double> read_duration(const Node& node, std::string_view what, double most,
                                    Problems& problems) {
  const auto text = read_text(node, what, problems);
  if (!text) return std::nullopt;
  const auto seconds = unit::parse_duration_seconds(*text);
  if (!seconds) {
    problems.add(node.at, fmt::format("{}: {}", what, seconds.error().message));
    return std::nullopt;
  }
  if (*seconds <= 0 || *seconds > most) {
    problems.add(node.at, fmt::format("{} must be more than nothing and at most {}", what,
                                      unit::show_duration(most)));
    return std::nullopt;
  }
  return *seconds;
}

bool is_web(std::string_view url) {
  return url.starts_with("http://") || url.starts_with("https://");
}

bool fit_for_url(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 0x7f; });
}

// The host and the port, of which nothing would be known before the server is asked.
void check_address(const Node& node, std::string_view what, std::string_view url,
                   Problems& problems) {
  std::string_view address = url.substr(url.find("://") + 3);
  address = address.substr(0, address.find_first_of("/?#"));
  if (address.find('@') != std::string_view::npos) {
    problems.add(node.at, fmt::format("{} holds a user or a password, which journals and reports "
                                      "would show: name a token's variable by token_env",
                                      what));
    return;
  }
  const std::size_t host_ends = address.starts_with('[') ? address.find(']') : 0;
  const std::size_t colon =
      host_ends == std::string_view::npos ? host_ends : address.find(':', host_ends);
  if (address.empty() || colon == 0 || host_ends == std::string_view::npos) {
    problems.add(node.at, fmt::format("{} names no host, as http://127.0.0.1:8080 does", what));
    return;
  }
  if (colon == std::string_view::npos || address.substr(colon) == ":{port}") return;
  constexpr std::int64_t k_last_port = 65535;
  const std::string_view port = address.substr(colon + 1);
  if (const auto number = text::to_int(port); !number || *number < 1 || *number > k_last_port) {
    problems.add(node.at, fmt::format("{}: \"{}\" is no port (1 to {})", what,
                                      text::printable(port.substr(0, 80)), k_last_port));
  }
}

// {port} alone, and only of a server that weir starts.
void check_url_words(const Node& node, std::string_view what, std::string_view url,
                     Problems& problems) {
  if (!fit_for_url(url)) {
    problems.add(node.at, fmt::format("{} holds what no URL can", what));
  }
  if (is_web(url)) check_address(node, what, url, problems);
  for (const std::string& word : placeholders_in(url)) {
    if (word != "port") {
      problems.add(node.at, fmt::format("{} can hold {{port}} alone, not {{{}}}", what,
                                        text::printable(word)));
    }
  }
}

void parse_url(const Node& node, ServerSettings& server, Problems& problems) {
  auto url = read_text(node, "url", problems);
  if (!url) return;
  while (url->ends_with('/')) url->pop_back();
  if (!is_web(*url) || url->find_first_of("?#") != std::string::npos) {
    problems.add(node.at,
                 "url is where the server listens, as in http://127.0.0.1:8080; the paths of its "
                 "API weir knows");
  }
  check_url_words(node, "url", *url, problems);
  server.url = std::move(*url);
}

// A path of the server, or a whole URL.
void parse_place(const Node& node, std::string_view what, std::string_view may_be,
                 std::string& into, Problems& problems) {
  const auto url = read_text(node, what, problems);
  if (!url) return;
  if (!url->starts_with('/') && !is_web(*url)) {
    problems.add(node.at, fmt::format("{} is a path of the server, as in {}: not {}", what, may_be,
                                      describe(node)));
  }
  check_url_words(node, what, *url, problems);
  into = *url;
}

void parse_ready_url(const Node& node, ServerSettings& server, Problems& problems) {
  parse_place(node, "ready", "/health, a URL, or {line: REGEX}", server.ready_url, problems);
}

// The name of a variable; what it holds stands in no file.
void parse_token(const Node& node, ServerSettings& server, Problems& problems) {
  const auto name = read_text(node, "token_env", problems);
  if (!name) return;
  const auto fits = [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  };
  if (name->empty() || name->size() > 128 || (name->front() >= '0' && name->front() <= '9') ||
      !std::all_of(name->begin(), name->end(), fits)) {
    // Not shown: somebody may have put the token itself here.
    problems.add(node.at,
                 "token_env is the name of an environment variable, as in SERVER_TOKEN: the token "
                 "itself stands in no file");
    return;
  }
  server.token_env = *name;
}

void parse_ready_line(const Node& node, ServerSettings& server, Problems& problems) {
  const auto line = read_text(node, "line", problems);
  if (!line) return;
  // Whether it matches is all that counts: any group does.
  if (const auto pattern = Pattern::compile("(" + *line + ")"); !pattern) {
    problems.add(node.at, pattern.error().message);
  }
  server.ready_line = *line;
}

void parse_ready(const Node& node, ServerSettings& server, Problems& problems) {
  constexpr double k_longest = 24 * 3600;
  if (node.kind != Node::Kind::map) return parse_ready_url(node, server, problems);
  Fields fields(node, "ready", problems);
  const Node* url = fields.take("url");
  const Node* line = fields.take("line");
  if (url != nullptr && line != nullptr) {
    problems.add(line->at, "ready has both url and line: one of them says when the server is up");
  }
  if (url != nullptr) parse_ready_url(*url, server, problems);
  if (line != nullptr) parse_ready_line(*line, server, problems);
  if (const Node* timeout = fields.take("timeout")) {
    server.ready_seconds = read_duration(*timeout, "timeout of ready", k_longest, problems)
                               .value_or(server.ready_seconds);
  }
  fields.finish();
}

// What a request must keep to be good: goodput counts those.
void parse_objectives(const Node& node, ServerSettings& server, Problems& problems) {
  constexpr double k_longest = 24 * 3600;
  Fields fields(node, "slo", problems);
  profile::ServedObjectives& objectives = server.objectives;
  for (const auto& [key, into] : {std::pair("ttft", &objectives.first_token_seconds),
                                  std::pair("tpot", &objectives.per_token_seconds),
                                  std::pair("e2e", &objectives.end_to_end_seconds)}) {
    if (const Node* value = fields.take(key)) {
      *into = read_duration(*value, key, k_longest, problems);
    }
  }
  fields.finish();
  if (node.kind == Node::Kind::map && node.entries.empty()) {
    problems.add(node.at, "slo must say at least one of ttft, tpot and e2e: {ttft: 200ms}");
  }
}

}  // namespace

void parse_server(Fields& fields, Place at, EngineSettings& engine, Parsing& parsing) {
  constexpr std::int64_t k_most_warm_up = 10'000;
  Problems& problems = parsing.problems;
  static const std::vector<std::string> k_kinds{"process", "server"};
  const Node* kind = fields.take("kind");
  if (kind == nullptr || read_choice(*kind, "kind", k_kinds, problems) != "server") {
    for (const char* key : k_server_keys) {
      if (const Node* node = fields.take(key)) {
        problems.add(node->at, fmt::format("\"{}\" is for engines that serve\n"
                                           "  write beside it: kind: server",
                                           key));
      }
    }
    return;
  }
  ServerSettings& server = engine.server.emplace();
  if (const Node* url = fields.take("url")) parse_url(*url, server, problems);
  if (const Node* api = fields.take("api")) {
    server.api = read_choice(*api, "api", parsing.known.apis, problems).value_or("");
  } else {
    problems.add(at, fmt::format("engine \"{}\" needs \"api\": how the server is asked{}",
                                 text::printable(engine.name.substr(0, 80)),
                                 known_here(parsing.known.apis)));
  }
  if (const Node* ready = fields.take("ready")) parse_ready(*ready, server, problems);
  if (server.ready_url.empty() && server.ready_line.empty()) {
    server.ready_url = server.api == "ollama" ? "/" : "/health";
  }
  if (const Node* name = fields.take("model_name")) {
    server.model_name = read_text(*name, "model_name", problems).value_or("");
  } else if (server.api == "ollama") {
    problems.add(at, fmt::format("engine \"{}\" needs \"model_name\": Ollama serves many models",
                                 text::printable(engine.name.substr(0, 80))));
  }
  if (const Node* objectives = fields.take("slo")) parse_objectives(*objectives, server, problems);
  if (const Node* own = fields.take("own_fields")) {
    server.own_fields = read_boolean(*own, "own_fields", problems).value_or(true);
  }
  if (const Node* share = fields.take("share_start")) {
    server.share_start = read_boolean(*share, "share_start", problems).value_or(true);
  }
  if (const Node* extra = fields.take("extra_body")) {
    const auto known = parsing.known.sent.find(server.api);
    std::vector<std::string> sent;
    if (known != parsing.known.sent.end()) {
      sent = known->second.always;
      const auto& own = known->second.own;
      if (server.own_fields) sent.insert(sent.end(), own.begin(), own.end());
    }
    server.extra_body = read_extra_body(*extra, sent, problems);
  }
  if (const Node* warm_up = fields.take("warm_up")) {
    server.warm_up =
        read_integer(*warm_up, "warm_up", 0, k_most_warm_up, problems).value_or(server.warm_up);
  }
  if (const Node* metrics = fields.take("server_metrics")) {
    parse_place(*metrics, "server_metrics", "/metrics, or a URL", server.metrics, problems);
  }
  if (const Node* token = fields.take("token_env")) parse_token(*token, server, problems);
  if (const Node* different = fields.take("max_different_outputs")) {
    constexpr std::int64_t k_most = 1'000'000;
    server.most_different_outputs =
        read_integer(*different, "max_different_outputs", 0, k_most, problems);
  }
  if (const Node* blocks = fields.take("blocks")) {
    constexpr std::int64_t k_most_blocks = 64;
    server.blocks =
        read_integer(*blocks, "blocks", 0, k_most_blocks, problems).value_or(server.blocks);
  }
}

void check_server(const Node& node, const EngineSettings& engine, Problems& problems) {
  const Node* command = node.find("command");
  const bool takes_port = uses(engine.command, engine.extra.env, "port");
  const auto at = [&](const char* key) { return node.find(key)->at; };
  if (!engine.server) {
    if (takes_port && command != nullptr) {
      problems.add(command->at, "{port} is for engines that serve\n  write: kind: server");
    }
    return;
  }
  const ServerSettings& server = *engine.server;
  const Node* ready = node.find("ready");
  if (ready != nullptr && ready->find("timeout") != nullptr &&
      server.ready_seconds > engine.timeout_seconds) {
    problems.add(
        ready->find("timeout")->at,
        fmt::format("timeout of ready is longer than the engine's ({}), which holds start, "
                    "warm-up and load\n  write beside it: timeout: {}",
                    unit::show_duration(engine.timeout_seconds),
                    fmt::format("{:.0f}s", std::ceil(2 * server.ready_seconds))));
  }
  const bool url_takes_port = uses({server.url, server.ready_url, server.metrics}, {}, "port");
  if (command == nullptr) {
    for (const char* key : {"probes", "profile_args", "counted_env", "env", "build"}) {
      if (node.find(key) == nullptr) continue;
      problems.add(at(key), fmt::format("{}: weir starts no program of this engine, whose server "
                                        "runs already under url",
                                        key));
    }
    if (url_takes_port && !server.url.empty()) {
      problems.add(at("url"),
                   "{port} is a port that weir picks for the command it starts; there "
                   "is none");
    }
    if (!server.ready_line.empty()) {
      problems.add(at("ready"),
                   "line: nothing is known of what a server prints that weir did not "
                   "start");
    }
  } else if (server.url.empty() && !takes_port && !engine.command.empty()) {
    problems.add(command->at,
                 "weir picks a port for the server: put {port} where the command takes it, as in "
                 "--port, \"{port}\", or say where it listens by url");
  }
  if (std::find(engine.probes.begin(), engine.probes.end(), "instructions") !=
      engine.probes.end()) {
    problems.add(at("probes"),
                 "instructions are counted over a whole process: of a server that "
                 "would be its start and its idle time, too");
  }
  if (engine.container && (command == nullptr || engine.container->runtime == Runtime::srun)) {
    problems.add(at("container"),
                 command == nullptr
                     ? "weir starts no container of this engine, whose server runs already under "
                       "url"
                     : "srun: the server would listen on another machine: start it yourself and "
                       "say where by url");
  }
}

}  // namespace weir::config
