// Inference servers: `kind: server` and the keys that go with it.
#include <cmath>

#include "gate/base/json.hpp"
#include "gate/config/parse.hpp"
#include "gate/config/placeholders.hpp"

namespace weir::config {
namespace {

constexpr Duration k_duration_within_day{24 * 3600, "24 h 0 m"};

bool is_http_url(std::string_view url) {
  return url.starts_with("http://") || url.starts_with("https://");
}

// Complains about a URL without a host, with credentials, or with an impossible port, which would
// else fail only when the server is contacted. `what` names the key.
void check_address(const Node& node, std::string_view what, std::string_view url,
                   Problems& problems) {
  std::string_view address = url.substr(url.find("://") + 3);
  address = address.substr(0, address.find_first_of("/?#"));
  const auto add_problem = [&](std::string_view why) {
    problems.add(node.position, "{}{}", what, why);
  };
  if (address.find('@') != std::string_view::npos) {
    return add_problem(
        " holds a user or a password, which journals and reports would show: name a token's "
        "variable by token_env");
  }
  const std::size_t host_ends = address.starts_with('[') ? address.find(']') : 0;
  const std::size_t colon =
      host_ends == std::string_view::npos ? host_ends : address.find(':', host_ends);
  if (address.empty() || colon == 0 || host_ends == std::string_view::npos) {
    return add_problem(" names no host, as http://127.0.0.1:8080 does");
  }
  if (colon == std::string_view::npos || address.substr(colon) == ":{port}") return;
  constexpr std::int64_t k_last_port = 65535;
  const std::string_view port = address.substr(colon + 1);
  if (const auto number = text::to_int(port); !number || *number < 1 || *number > k_last_port) {
    add_problem(fmt::format(": \"{}\" is no port (1 to {})", text::printable(port.substr(0, 80)),
                            k_last_port));
  }
}

// Complains about characters that no URL has, a bad address, and placeholders other than {port}.
void check_url(const Node& node, std::string_view what, std::string_view url, Problems& problems) {
  const bool fits = std::ranges::all_of(url, [](char c) { return c > ' ' && c < 0x7f; });
  if (!fits) problems.add(node.position, "{} holds what no URL can", what);
  if (is_http_url(url)) check_address(node, what, url, problems);
  for (const std::string& placeholder : placeholders_in(url)) {
    if (placeholder != "port") {
      problems.add(node.position, "{} can hold {{port}} alone, not {{{}}}", what,
                   text::printable(placeholder));
    }
  }
}

// Reads the base URL of a server, without slashes at its end. Complains about anything but http(s)
// without query.
std::optional<std::string> read_url(const Node& node, std::string_view what, Problems& problems) {
  auto url = read_text(node, what, problems);
  if (!url) return url;
  while (url->ends_with('/')) url->pop_back();
  if (!is_http_url(*url) || url->find_first_of("?#") != std::string::npos) {
    problems.add(node.position,
                 "url is where the server listens, as in http://127.0.0.1:8080; the paths of its "
                 "API weir knows");
  }
  check_url(node, what, *url, problems);
  return url;
}

// Type of a key that is a path of the server, or a full URL.
struct ServerPath {
  const char* example;  // for messages
  std::optional<std::string> parse(const Node& node, std::string_view what,
                                   Problems& problems) const {
    auto url = read_text(node, what, problems);
    if (!url) return url;
    if (!url->starts_with('/') && !is_http_url(*url)) {
      problems.add(node.position, "{} is a path of the server, as in {}: not {}", what, example,
                   describe(node));
    }
    check_url(node, what, *url, problems);
    return url;
  }
  [[nodiscard]] static Form form() {
    return {"text", R"("type": "string", "pattern": "^(/|https?://).")"};
  }
};

// Reads the name of the variable that holds a token.
std::optional<std::string> read_token(const Node& node, std::string_view what, Problems& problems) {
  auto name = read_text(node, what, problems);
  if (!name || (name->size() <= 128 && is_variable_name(*name))) return name;
  // The text is not shown, as it may be the token itself.
  return problems.add(node.position,
                      "token_env is the name of an environment variable, as in SERVER_TOKEN: the "
                      "token itself stands in no file");
}

// Reads a regular expression that a line must match.
std::optional<std::string> read_line_pattern(const Node& node, std::string_view what,
                                             Problems& problems) {
  auto line = read_text(node, what, problems);
  if (!line) return line;
  // Pattern needs a group; only the match matters here.
  problems.check_expression(node.position, "(" + *line + ")");
  return line;
}

constexpr ServerPath k_ready_address{"/health, a URL, or {line: REGEX}"};

// Reads `ready`: a path or URL that answers once the server is up, or a mapping {url|line,
// timeout}. `line` is a pattern for a line of its output.
void parse_ready(const Node& node, ServerSettings& server, Problems& problems) {
  const auto set_url = [&](const Node& url) {
    if (auto address = k_ready_address.parse(url, "ready", problems))
      server.ready_url = *std::move(address);
  };
  if (node.kind != Node::Kind::map) return set_url(node);
  Fields fields(node, "ready", problems);
  const Node* url = fields.find(
      {"url", "Path or URL that answers 2xx once it is up.", "/up", "/health"}, ServerPath::form());
  const Node* line = fields.read(
      {"line", "RE2; a line of its output that matches. Instead of url.", "listening on port"},
      server.ready_line,
      FieldType{read_line_pattern, "text", R"("type": "string", "minLength": 1)"});
  if (url != nullptr && line != nullptr) {
    problems.add(line->position,
                 "ready has both url and line: one of them says when the server is up");
  }
  if (url != nullptr) set_url(*url);
  const Node* timeout = fields.find({"timeout", "Longest time until it is up.", "2m", "60s"},
                                    k_duration_within_day.form());
  if (timeout == nullptr) return;
  server.ready_seconds = k_duration_within_day.parse(*timeout, "timeout of ready", problems)
                             .value_or(server.ready_seconds);
}

// Reads `slo`: the latencies in seconds that a request must keep to count as good.
void parse_objectives(const Node& node, ServerSettings& server, Problems& problems) {
  Fields fields(node, "slo", problems);
  profile::ServedObjectives& objectives = server.objectives;
  fields.read({"ttft", "Longest time to first token.", "200ms"}, objectives.first_token_seconds,
              k_duration_within_day);
  fields.read({"tpot", "Longest time per output token.", "50ms"}, objectives.per_token_seconds,
              k_duration_within_day);
  fields.read({"e2e", "Longest end-to-end time.", "5s"}, objectives.end_to_end_seconds,
              k_duration_within_day);
  if (node.kind == Node::Kind::map && node.entries.empty()) {
    problems.add(node.position, "slo must say at least one of ttft, tpot and e2e: {ttft: 200ms}");
  }
}

constexpr std::size_t k_max_levels = 8;
constexpr std::size_t k_max_bytes = std::size_t{64} << 10;
constexpr std::size_t k_longest_name = 128;

// Returns the setting of weir.yaml that decides a member of the request ("max_tokens"), for
// messages; "nothing: …" for a member that cannot be set.
std::string_view setting_for(std::string_view member) {
  struct Setting {
    std::string_view name;
    std::array<std::string_view, 4> members;
  };
  constexpr Setting k_settings[] = {
      {"text or file of the prompt", {"prompt", "messages"}},
      {"tokens of the prompt",
       {"max_tokens", "max_completion_tokens", "n_predict", "options.num_predict"}},
      {"seed of the engine", {"seed", "options.seed"}},
      {"nothing: sampling is greedy", {"temperature", "options.temperature"}},
      {"model_name", {"model"}},
      {"own_fields", {"ignore_eos", "cache_prompt"}},
      {"nothing: one answer each", {"n"}}};
  for (const auto& [name, members] : k_settings) {
    if (holds(members, member)) return name;
  }
  return "nothing: answers are read so";
}

// Turns `extra_body` from YAML into JSON. Complains about members that weir itself sends: `sent`,
// as paths ("options.seed").
class ExtraBody {
 public:
  ExtraBody(const std::vector<std::string>& sent, Problems& problems)
      : sent_(sent), problems_(problems) {}

  // Returns a mapping as a JSON object. `path` is its own path, "" for the body.
  Json object(const Node& node, const std::string& path, std::size_t depth) {
    Json json = Json::object();
    for (const Entry& entry : node.entries) {
      if (entry.key.empty() || entry.key.size() > k_longest_name) {
        add(entry.key_position,
            fmt::format("the name of a field has 1 to {} bytes", k_longest_name));
        continue;
      }
      const std::string member = path.empty() ? entry.key : path + "." + entry.key;
      if (is_sent(member, entry.value)) {
        add(entry.key_position,
            fmt::format("\"{}\" is what weir itself sends; what says it in weir.yaml: {}",
                        text::printable(member.substr(0, 80)), setting_for(member)));
        continue;
      }
      json[entry.key] = value(entry.value, member, depth + 1);
    }
    return json;
  }

 private:
  void add(TextPosition at, const std::string& problem) {
    problems_.add(at, "extra_body: " + problem);
  }

  // Returns true if weir sends this member, or a member of the object that this one replaces.
  [[nodiscard]] bool is_sent(const std::string& member, const Node& node) const {
    return std::ranges::any_of(sent_, [&](const std::string& sent) {
      return sent == member || (node.kind != Node::Kind::map && sent.starts_with(member + "."));
    });
  }

  Json value(const Node& node, const std::string& path, std::size_t depth) {
    if (depth > k_max_levels) {
      if (!too_deep_) add(node.position, fmt::format("deeper than {} levels", k_max_levels));
      too_deep_ = true;
      return nullptr;
    }
    if (node.kind == Node::Kind::null) return nullptr;
    if (node.kind == Node::Kind::map) return object(node, path, depth);
    if (node.kind == Node::Kind::scalar) return scalar(node);
    Json list = Json::array();
    // weir sends no members within lists, so "[]" keeps the path apart from its own.
    for (const Node& item : node.items) list.push_back(value(item, path + "[]", depth + 1));
    return list;
  }

  // Returns a scalar as YAML's core schema reads it. Complains about integers that are too large.
  Json scalar(const Node& node) {
    const bool digits =
        !node.text.empty() &&
        node.text.find_first_not_of("0123456789", node.text[0] == '-' ? 1 : 0) == std::string::npos;
    if (!node.quoted && digits && node.text != "-" && !text::to_int(node.text)) {
      add(node.position, "a whole number that no server could read; write it in quotes");
      return nullptr;
    }
    return node_to_json(node);
  }

  const std::vector<std::string>& sent_;
  Problems& problems_;
  bool too_deep_ = false;
};

// Returns the additional members of each request as JSON text; "" for none. `sent` are the members
// that weir sends itself, and that are refused here.
std::string read_extra_body(const Node& node, const std::vector<std::string>& weir_members,
                            Problems& problems) {
  if (node.kind != Node::Kind::map) {
    problems.add(node.position,
                 "extra_body is a mapping of the fields that each request has besides, as in "
                 "{{cache_salt: x}}: not {}",
                 describe(node));
    return "";
  }
  const Json body = ExtraBody(weir_members, problems).object(node, "", 0);
  std::string text = body.empty() ? "" : dump_json(body);
  if (text.size() > k_max_bytes) {
    problems.add(node.position, "extra_body: more than {} KiB, sent with each request",
                 k_max_bytes >> 10);
  }
  return text;
}

// Reads `logits.max_kl`, and adds it as a limit on the metric output_kl in this engine's cells:
// how far probabilities may be from the base's.
void parse_logits(const Node& node, EngineSettings& engine, Parsing& parsing) {
  Fields fields(node, "logits", parsing.problems);
  verdict::LimitEntry limit;
  limit.match.engine = engine.name;
  limit.metrics = {std::string(unit::k_divergence)};
  limit.source = parsing.problems.source(node.position);
  fields.read({"max_kl", "Largest divergence from the base, in nats a token (output_kl).", "0.01"},
              limit.max, AmountType{false});
  fields.finish();
  if (!limit.max) return;
  const ServerSettings& server = *engine.server;
  if (server.warm_up == 0 || server.api == "ollama") {
    parsing.problems.add(
        node.position, "logits are asked for in the warm-up: {}",
        server.warm_up == 0 ? "warm_up must be 1 or more" : "Ollama's API does not tell them");
  }
  engine.server->max_divergence = limit.max->value;
  parsing.settings.limits.push_back(std::move(limit));
}

}  // namespace

void parse_server(Fields& fields, TextPosition at, EngineSettings& engine, Parsing& parsing) {
  constexpr Name<bool> k_kinds[] = {{false, "process"}, {true, "server"}};
  Problems& problems = parsing.problems;
  bool serves = false;
  fields.read(
      {"kind", "server: weir starts the command, or finds it at url, and sends prompts over HTTP.",
       "server"},
      serves, OneOf{k_kinds});
  fields.refuse(serves ? "" : "is for engines that serve\n  write beside it: kind: server");
  ServerSettings& server = engine.server.emplace();
  const auto needs = [&](const char* what, const std::string& why) {
    if (!serves) return;
    problems.add(at, "engine \"{}\" needs \"{}\": {}", text::printable(engine.name.substr(0, 80)),
                 what, why);
  };
  fields.read({"url",
               "Server: where it listens. Without a command, a server that is already running. May "
               "hold {port}.",
               "http://127.0.0.1:8080"},
              server.url,
              FieldType{read_url, "text", R"("type": "string", "pattern": "^https?://")"});
  const Node* api = fields.read({"api", "Server: how it is asked.", "llama"}, server.api,
                                OneName{parsing.supported.apis});
  if (api == nullptr)
    needs("api", "how the server is asked" + choices_text(parsing.supported.apis));
  const Node* ready =
      fields.find({"ready", "Server: path or URL that answers 2xx once it is up, or an object.",
                   "{url: /up, timeout: 2m}", "/health"},
                  ServerPath::form() | mapping());
  if (ready != nullptr) parse_ready(*ready, server, problems);
  if (server.ready_url.empty() && server.ready_line.empty()) {
    server.ready_url = server.api == "ollama" ? "/" : "/health";
  }
  const Node* model_name =
      fields.read({"model_name", "Server: model name sent with every request.", "llama3.2"},
                  server.model_name, k_text);
  if (model_name == nullptr && server.api == "ollama") {
    needs("model_name", "Ollama serves many models");
  }
  const Node* objectives =
      fields.find({"slo", "Server: what a request must keep to count as good (goodput).",
                   "{ttft: 200ms, tpot: 50ms}"},
                  mapping(R"(, "minProperties": 1)"));
  if (objectives != nullptr) parse_objectives(*objectives, server, problems);
  fields.read({"own_fields",
               "Server: false for one that refuses fields beyond those of OpenAI's API.", "false"},
              server.sends_extra_fields, k_boolean);
  fields.read(
      {"share_start",
       "Server: one start serves all cells whose server is started in the same way; false: each "
       "cell has its own starts.",
       "false"},
      server.share_start, k_boolean);
  const Node* extra =
      fields.find({"extra_body", "Server: fields added to each request.", "{cache_salt: weir}"},
                  {"object", R"("type": "object")"});
  if (extra != nullptr) {
    auto [sent, own] = look_up(parsing.supported.sent, server.api, Supported::Sent());
    if (server.sends_extra_fields) sent.insert(sent.end(), own.begin(), own.end());
    server.extra_body = read_extra_body(*extra, sent, problems);
  }
  fields.read({"warm_up", "Server: requests before the measured ones.", "0"}, server.warm_up,
              WholeNumber{0, 10'000});
  fields.read({"server_metrics",
               "Server: path or URL of its own metrics (Prometheus text), read before and after.",
               "/metrics"},
              server.metrics, ServerPath{"/metrics, or a URL"});
  fields.read({"token_env", "Server: environment variable that holds its token.", "VLLM_API_KEY"},
              server.token_env,
              FieldType{read_token, "text",
                        R"("type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]{0,127}$")"});
  fields.read(
      {"max_different_outputs",
       "Server: requests of a load that may be answered differently from the rest. More are "
       "the cell's error.",
       "0", "a warning, no error"},
      server.max_different_outputs, WholeNumber{0, 1'000'000});
  fields.read({"blocks",
               "Server with a base build: both are up, and this many blocks of requests of each "
               "alternate, the first drawn at random. 0: one server after the other.",
               "8"},
              server.blocks, WholeNumber{0, 64});
  const Node* logits = fields.find(
      {"logits",
       "Server: judge the output by the probabilities of its likely tokens, not by its digest.",
       "{max_kl: 0.01}"},
      mapping(R"(, "minProperties": 1)"));
  if (logits != nullptr) parse_logits(*logits, engine, parsing);
  fields.refuse("");
  if (!serves) engine.server.reset();
}

void check_server(const Node& node, const EngineSettings& engine, Problems& problems) {
  const Node* command = node.find("command");
  const bool takes_port = uses(engine.command, engine.extra.env, "port");
  const auto at = [&](const char* key) { return node.find(key)->position; };
  if (!engine.server) {
    if (takes_port && command != nullptr) {
      problems.add(command->position, "{port} is for engines that serve\n  write: kind: server");
    }
    return;
  }
  const ServerSettings& server = *engine.server;
  const Node* ready = node.find("ready");
  if (ready != nullptr && ready->find("timeout") != nullptr &&
      server.ready_seconds > engine.timeout_seconds) {
    problems.add(ready->find("timeout")->position,
                 "timeout of ready is longer than the engine's ({}), which holds start, warm-up "
                 "and load\n  write beside it: timeout: {}",
                 unit::show_duration(engine.timeout_seconds),
                 fmt::format("{:.0f}s", std::ceil(2 * server.ready_seconds)));
  }
  const bool url_takes_port = uses({server.url, server.ready_url, server.metrics}, {}, "port");
  if (command == nullptr) {
    for (const char* key : {"probes", "profile_args", "counted_env", "env", "build"}) {
      if (node.find(key) == nullptr) continue;
      problems.add(at(key),
                   "{}: weir starts no program of this engine, whose server runs already under url",
                   key);
    }
    if (url_takes_port && !server.url.empty()) {
      problems.add(at("url"),
                   "{port} is a port that weir picks for the command it starts; there is none");
    }
    if (!server.ready_line.empty()) {
      problems.add(at("ready"),
                   "line: nothing is known of what a server prints that weir did not start");
    }
  } else if (server.url.empty() && !takes_port && !engine.command.empty()) {
    problems.add(command->position,
                 "weir picks a port for the server: put {port} where the command takes it, as in "
                 "--port, \"{port}\", or say where it listens by url");
  }
  for (const char* probe : {"instructions", "host", "python"}) {
    if (!holds(engine.probes, probe)) continue;
    problems.add(at("probes"),
                 "the probe {} counts over a whole process: of a server that would be its start "
                 "and its idle time, too",
                 probe);
  }
  if (engine.container && command == nullptr) {
    problems.add(at("container"),
                 "weir starts no container of this engine, whose server runs already under url");
  } else if (engine.container && engine.container->runtime == Runtime::srun && server.url.empty()) {
    problems.add(at("container"),
                 "srun: the server may listen on another node: say where by url, as in "
                 "\"http://127.0.0.1:{port}\" where weir runs on that node, or "
                 "\"http://NODE:{port}\" with --nodelist=NODE");
  }
}

}  // namespace weir::config
