// The `engines` section, and what the generic adapter is told there.
#include <algorithm>

#include "gate/base/text.hpp"
#include "gate/config/parse.hpp"
#include "gate/config/pattern.hpp"
#include "gate/config/placeholders.hpp"
#include "gate/unit/work_metric.hpp"

namespace weir::config {
namespace {

const std::vector<std::string>& fact_names() {
  static const std::vector<std::string> k_names{"engine_build", "generated_tokens", "model",
                                                "output_digest", "prompt_tokens"};
  return k_names;
}

bool metric_name(std::string_view name) {
  if (unit::names_work(name)) {
    return unit::find_metric(name) && name.find_first_of("*?") == std::string_view::npos;
  }
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  };
  return !name.empty() && name.size() <= 64 && name[0] >= 'a' && name[0] <= 'z' &&
         std::all_of(name.begin(), name.end(), fits);
}

void parse_probes(const Node& node, EngineSettings& engine, Parsing& parsing) {
  for (const std::string& probe : read_texts(node, "probes", parsing.problems)) {
    const Known& known = parsing.known;
    const auto in = [&](const std::vector<std::string>& names) {
      return std::find(names.begin(), names.end(), probe) != names.end();
    };
    if (!in(known.probes)) {
      parsing.problems.add(
          node.at, fmt::format("unknown probe \"{}\"{}{}", text::printable(probe),
                               text::did_you_mean(probe, known.probes), known_here(known.probes)));
    } else if (std::find(engine.probes.begin(), engine.probes.end(), probe) !=
               engine.probes.end()) {
      parsing.problems.add(node.at, fmt::format("the probe \"{}\" stands here twice", probe));
    } else {
      engine.probes.push_back(probe);
    }
  }
}

void parse_instructions(const Node& node, EngineSettings& engine, Problems& problems) {
  static const std::vector<std::string> k_ways{"auto", "perf", "valgrind"};
  const auto chosen = read_choice(node, "instructions", k_ways, problems);
  if (chosen == "perf") engine.instructions = InstructionsBy::perf;
  if (chosen == "valgrind") engine.instructions = InstructionsBy::valgrind;
  if (std::find(engine.probes.begin(), engine.probes.end(), "instructions") ==
      engine.probes.end()) {
    problems.add(node.at,
                 "instructions says how they are counted; that they are, the probes say\n"
                 "  write: probes: [instructions]");
  }
}

// A metric that weir knows needs no declaration; any other says its unit and direction.
void parse_declared(const std::string& name, const Entry& entry, Fields& fields, ValueRule& rule,
                    Problems& problems) {
  const Node* unit = fields.take("unit");
  const Node* better = fields.take("better");
  const Node* kind = fields.take("kind");
  if (unit != nullptr) {
    const auto text = read_text(*unit, "unit", problems);
    if (!text) return;
    rule.scale = unit::parse_scale(*text);
    if (!rule.scale) {
      problems.add(unit->at, fmt::format("unknown unit \"{}\"\n  known here: s, ms, us, ns, min, "
                                         "B, KiB, MiB, GiB, kB, MB, GB, tok/s, count, ratio, %",
                                         text::printable(*text)));
      return;
    }
  }
  if (const auto known = unit::find_metric(name)) {
    if (better != nullptr || kind != nullptr) {
      problems.add((better != nullptr ? better : kind)->at,
                   fmt::format("weir knows \"{}\" (better: {}): leave this out", name,
                               unit::to_string(known->better)));
    }
    if (rule.scale && rule.scale->unit != known->unit) {
      problems.add(unit->at, fmt::format("\"{}\" is measured in {}: its unit can not be {}", name,
                                         unit::to_string(known->unit), describe(*unit)));
    }
    return;
  }
  if (unit == nullptr || better == nullptr) {
    problems.add(entry.key_at,
                 fmt::format("weir does not know the metric \"{}\"{}: one of your own needs unit "
                             "and better: higher or lower",
                             name, text::did_you_mean(name, unit::metric_names())));
    return;
  }
  static const std::vector<std::string> k_better{"higher", "lower"};
  static const std::vector<std::string> k_kinds{"time", "memory", "quality", "count"};
  const auto direction = read_choice(*better, "direction", k_better, problems);
  auto what = rule.scale->unit == unit::Unit::count   ? unit::Kind::count
              : rule.scale->unit == unit::Unit::bytes ? unit::Kind::memory
              : rule.scale->unit == unit::Unit::ratio ? unit::Kind::quality
                                                      : unit::Kind::time;
  if (kind != nullptr) {
    const auto chosen = read_choice(*kind, "kind", k_kinds, problems);
    if (chosen) what = unit::parse_kind(*chosen).value_or(what);
  }
  if (direction) {
    rule.custom = unit::custom_metric(name, what, rule.scale->unit,
                                      unit::parse_better(*direction).value_or(unit::Better::lower));
  }
}

void parse_allowed(const Node& node, EngineSettings& engine, Problems& problems) {
  if (node.kind != Node::Kind::map) {
    problems.add(node.at, fmt::format("cpu_ops_allowed must be a mapping of op names to why they "
                                      "may run on the CPU, not {}",
                                      describe(node)));
    return;
  }
  for (const Entry& entry : node.entries) {
    if (const auto why = read_text(entry.value, "the reason", problems)) {
      engine.cpu_ops_allowed[entry.key] = *why;
    }
  }
}

void parse_timeout(const Node& node, EngineSettings& engine, Problems& problems) {
  constexpr double k_longest = 24 * 3600;
  const auto text = read_text(node, "timeout", problems);
  if (!text) return;
  const auto seconds = unit::parse_duration_seconds(*text);
  if (!seconds) {
    problems.add(node.at, "timeout: " + seconds.error().message);
  } else if (*seconds <= 0 || *seconds > k_longest) {
    problems.add(node.at, "timeout must be more than nothing and at most 24h");
  } else {
    engine.timeout_seconds = *seconds;
  }
}

void parse_output_limit(const Node& node, EngineSettings& engine, Problems& problems) {
  constexpr std::int64_t k_least = 4096;
  // The output is read in memory, and weir stays within 64 MiB above the engine's own.
  constexpr std::int64_t k_most = std::int64_t{32} << 20;
  const auto text = read_text(node, "output_limit", problems);
  if (!text) return;
  const auto bytes = unit::parse_bytes(*text);
  if (!bytes) {
    problems.add(node.at, "output_limit: " + bytes.error().message);
  } else if (*bytes < k_least || *bytes > k_most) {
    problems.add(node.at, "output_limit must be from 4KiB to 32MiB");
  } else {
    engine.output_limit = *bytes;
  }
}

ValueRule parse_rule(const Entry& entry, bool is_fact, Parsing& parsing) {
  Problems& problems = parsing.problems;
  ValueRule rule;
  rule.metric = entry.key;
  Fields fields(entry.value, fmt::format("\"{}\"", text::printable(entry.key)), problems);
  const Node* regex = fields.take("regex");
  const Node* pointer = fields.take("pointer");
  if (entry.value.kind == Node::Kind::map && (regex == nullptr) == (pointer == nullptr)) {
    problems.add(entry.key_at, fmt::format("\"{}\" needs either regex (group 1 is the value) or "
                                           "pointer (a JSON pointer such as /stats/tokens)",
                                           text::printable(entry.key)));
  }
  if (regex != nullptr) {
    rule.regex = read_text(*regex, "regex", problems).value_or("");
    if (!rule.regex.empty()) {
      if (const auto pattern = Pattern::compile(rule.regex); !pattern) {
        problems.add(regex->at, pattern.error().message);
      }
    }
  }
  if (pointer != nullptr) {
    rule.pointer = read_text(*pointer, "pointer", problems).value_or("");
    if (!rule.pointer.empty() && rule.pointer[0] != '/') {
      problems.add(pointer->at, "a JSON pointer begins with \"/\", as in /timings/predicted_ms");
      rule.pointer.clear();
    }
    for (std::size_t at = rule.pointer.find('~'); at != std::string::npos;
         at = rule.pointer.find('~', at + 1)) {
      if (at + 1 < rule.pointer.size() &&
          (rule.pointer[at + 1] == '0' || rule.pointer[at + 1] == '1')) {
        continue;
      }
      problems.add(pointer->at,
                   "in a JSON pointer \"~\" is written ~0 (and \"/\" within a key ~1)");
      break;
    }
  }
  static const std::vector<std::string> k_streams{"either", "out", "err"};
  static const std::vector<std::string> k_picks{"last", "first", "all"};
  if (const Node* stream = fields.take("stream")) {
    const auto chosen = read_choice(*stream, "stream", k_streams, problems);
    if (chosen == "out") rule.stream = ValueRule::Stream::out;
    if (chosen == "err") rule.stream = ValueRule::Stream::err;
  }
  if (const Node* pick = fields.take("pick")) {
    const auto chosen = read_choice(*pick, "pick", k_picks, problems);
    if (chosen == "first") rule.pick = ValueRule::Pick::first;
    if (chosen == "all") rule.pick = ValueRule::Pick::all;
    if (is_fact && chosen == "all") {
      problems.add(pick->at, "a fact is one value: pick first or last");
    }
  }
  if (!is_fact) parse_declared(entry.key, entry, fields, rule, problems);
  fields.finish();
  return rule;
}

void parse_engine(const Entry& entry, Parsing& parsing) {
  Problems& problems = parsing.problems;
  EngineSettings engine;
  engine.name = entry.key;
  engine.source = problems.source(entry.key_at);
  Fields fields(entry.value, fmt::format("engine \"{}\"", text::printable(entry.key)), problems);
  parse_server(fields, entry.key_at, engine, parsing);
  const bool has_command = !engine.server || engine.server->url.empty();
  if (const Node* command = has_command ? fields.need("command") : fields.take("command")) {
    engine.command = read_arguments(*command, "command", problems);
    if (command->kind == Node::Kind::list &&
        (engine.command.empty() || engine.command.front().empty())) {
      problems.add(command->at, "command must begin with the program");
    } else if (!engine.command.empty() && !placeholders_in(engine.command.front()).empty()) {
      problems.add(command->at, "the program can not hold placeholders");
    }
    if (std::count(engine.command.begin(), engine.command.end(), "{args}") > 1) {
      problems.add(command->at, "{args} may stand in the command once");
    }
  }
  if (engine.server) {
    engine.output = k_requests;
    if (const Node* output = fields.take("output")) {
      problems.add(output->at, "a server is not read by what it prints: leave output out");
    }
  } else if (const Node* output = fields.need("output")) {
    engine.output = read_choice(*output, "output", parsing.known.adapters, problems).value_or("");
    const auto is_in = [&](const std::vector<std::string>& names) {
      return std::find(names.begin(), names.end(), engine.output) != names.end();
    };
    engine.tells_counts = is_in(parsing.known.telling);
    engine.tells_counts_if_asked = is_in(parsing.known.telling_if_asked);
  }
  if (const Node* probes = fields.take("probes")) parse_probes(*probes, engine, parsing);
  if (const Node* how = fields.take("instructions")) {
    parse_instructions(*how, engine, problems);
  }
  if (const Node* args = fields.take("profile_args")) {
    engine.profile_args = read_arguments(*args, "profile_args", problems);
  }
  if (const Node* env = fields.take("counted_env")) {
    engine.counted_env = read_environment(*env, "counted_env", problems);
  }
  if (const Node* env = fields.take("env")) {
    engine.extra.env = read_environment(*env, "env", problems);
  }
  if (const Node* container = fields.take("container")) {
    parse_container(*container, engine, parsing);
  }
  constexpr std::int64_t k_most_threads = 4096;
  if (const Node* threads = fields.take("threads")) {
    engine.extra.threads = read_integer(*threads, "threads", 1, k_most_threads, problems);
  }
  if (const Node* seed = fields.take("seed")) {
    engine.extra.seed = read_integer(*seed, "seed", 0, INT64_C(0xFFFFFFFF), problems);
  }
  if (const Node* allowed = fields.take("cpu_ops_allowed")) {
    parse_allowed(*allowed, engine, problems);
  }
  if (const Node* timeout = fields.take("timeout")) {
    parse_timeout(*timeout, engine, problems);
  }
  if (const Node* limit = fields.take("output_limit")) {
    parse_output_limit(*limit, engine, problems);
  }
  if (const Node* build = fields.take("build")) {
    engine.build = read_arguments(*build, "build", problems);
  }
  if (const Node* is_private = fields.take("private")) {
    engine.is_private = read_boolean(*is_private, "private", problems).value_or(true);
  }
  const Node* metrics = fields.take("metrics");
  const Node* facts = fields.take("facts");
  if (engine.output == "generic") {
    if (metrics == nullptr) {
      problems.add(entry.key_at,
                   "output: generic needs \"metrics\", which says where each value "
                   "stands in what the engine prints");
    }
    parse_generic(metrics, facts, engine.generic, parsing);
  } else if (engine.server && (metrics != nullptr || facts != nullptr)) {
    problems.add((metrics != nullptr ? metrics : facts)->at,
                 "metrics and facts are read from output, which a server has none of");
  } else if (!engine.output.empty() && (metrics != nullptr || facts != nullptr)) {
    problems.add((metrics != nullptr ? metrics : facts)->at,
                 "metrics and facts are for output: generic");
  }
  fields.finish();
  if (entry.value.kind == Node::Kind::map) check_server(entry.value, engine, problems);
  parsing.settings.engines.push_back(std::move(engine));
}

}  // namespace

void parse_generic(const Node* metrics, const Node* facts, GenericOutput& generic,
                   Parsing& parsing) {
  constexpr std::size_t k_most_rules = 100;
  for (const Node* section : {metrics, facts}) {
    if (section == nullptr) continue;
    const bool is_fact = section == facts;
    if (section->kind != Node::Kind::map || section->entries.size() > k_most_rules) {
      parsing.problems.add(section->at,
                           fmt::format("{} must be a mapping of names to {{regex: …}} or "
                                       "{{pointer: …}}, at most {}",
                                       is_fact ? "facts" : "metrics", k_most_rules));
      continue;
    }
    const auto& names = fact_names();
    for (const Entry& entry : section->entries) {
      if (is_fact && std::find(names.begin(), names.end(), entry.key) == names.end()) {
        parsing.problems.add(entry.key_at,
                             fmt::format("unknown fact \"{}\"{}{}", text::printable(entry.key),
                                         text::did_you_mean(entry.key, names), known_here(names)));
        continue;
      }
      if (!is_fact && !metric_name(entry.key)) {
        parsing.problems.add(
            entry.key_at,
            fmt::format("\"{}\" can not name a metric: lower-case letters, digits "
                        "and \"_\", at most 64, a letter first; or op:NAME, kernel:NAME, "
                        "op_calls:NAME, kernel_calls:NAME",
                        text::printable(entry.key.substr(0, 80))));
        continue;
      }
      (is_fact ? generic.facts : generic.values).push_back(parse_rule(entry, is_fact, parsing));
    }
  }
}

void parse_engines(const Node& node, Parsing& parsing) {
  if (node.kind != Node::Kind::map || node.entries.empty()) {
    parsing.problems.add(node.at, "engines must be a mapping with at least one engine");
    return;
  }
  check_names(node, "engine", parsing.problems);
  for (const Entry& entry : node.entries) parse_engine(entry, parsing);
}

}  // namespace weir::config
