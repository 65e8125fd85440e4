#include "gate/config/parse.hpp"

#include "gate/config/placeholders.hpp"

namespace weir::config {

void Extra::add(const Extra& more) {
  args.insert(args.end(), more.args.begin(), more.args.end());
  for (const auto& [name, value] : more.env) {
    env[name] = value;
    passed.erase(name);
  }
  for (const std::string& name : more.passed) {
    env.erase(name);
    passed.insert(name);
  }
  if (more.threads) threads = more.threads;
  if (more.seed) seed = more.seed;
}

Extra PerEngine::for_engine(const std::string& engine) const {
  Extra result = extra;
  if (const Extra* own = look_up(engines, engine)) result.add(*own);
  return result;
}

std::vector<CpuOp> EngineSettings::cpu_ops_in(const profile::CellKey& cell) const {
  std::vector<CpuOp> ops;
  std::ranges::copy_if(cpu_ops_allowed, std::back_inserter(ops),
                       [&](const CpuOp& one) { return one.match.fits(cell); });
  return ops;
}

bool EngineSettings::reports_counts() const {
  const bool asked = !profile_args.empty() || !counted_env.empty();
  if (tells_counts || (tells_counts_if_asked && asked)) return true;
  return std::ranges::any_of(generic.values, [](const ValueRule& rule) {
    const auto metric = rule.custom ? rule.custom : unit::find_metric(rule.metric);
    return metric && metric->kind == unit::Kind::count;
  });
}

bool is_entries(const Node& node, std::string_view what, std::string_view example,
                Problems& problems) {
  if (node.kind == Node::Kind::list && node.items.size() <= k_most_entries) return true;
  problems.add(node.at, "{} must be a list of at most {} entries such as {}", what, k_most_entries,
               example);
  return false;
}

void check_names(const Node& section, const std::string& what, Problems& problems) {
  if (section.entries.size() > k_most_entries) {
    problems.add(section.at, "more than {} {}s", k_most_entries, what);
  }
  std::set<std::string> seen;
  for (const Entry& entry : section.entries) {
    if (!profile::valid_name(entry.key)) {
      problems.add(entry.key_at,
                   "\"{}\" cannot name a {}: letters, digits, \".\", \"_\" and \"-\", at most 64, "
                   "a letter or digit first",
                   text::printable(entry.key.substr(0, 80)), what);
    } else if (!seen.insert(text::lower(entry.key)).second) {
      problems.add(entry.key_at,
                   "two {}s are named \"{}\" (upper and lower case are the same in a file name)",
                   what, entry.key);
    }
  }
}

void parse_match(Fields& fields, verdict::Match& match, Parsing& parsing) {
  const Settings& settings = parsing.settings;
  const auto pattern = [&](const char* key, std::string& into,
                           const std::vector<std::string>& names) {
    const Node* node = fields.read(key, into, read_text);
    if (node == nullptr || into.empty()) return;
    // "llama.cpp@fused", "long@d256": the part behind the @ is known once the matrix is made.
    const std::string head = into.substr(0, into.find('@'));
    if (matches_one(head, names)) return;
    parsing.problems.add(node->at, "unknown {} \"{}\"{}{}", key, text::printable(into),
                         text::did_you_mean(head, names), known_here(names));
  };
  pattern("engine", match.engine, names_of(settings.engines));
  pattern("model", match.model, names_of(settings.models));
  pattern("backend", match.backend, names_of(settings.backends));
  pattern("prompt", match.prompt, names_of(settings.prompts));
  pattern("variant", match.variant, names_of(settings.variants));
}

void parse_match_key(Fields& fields, verdict::Match& match, Parsing& parsing) {
  const Node* node = fields.take("match");
  if (node == nullptr) return;
  Fields parts(*node, "match", parsing.problems);
  parse_match(parts, match, parsing);
}

std::vector<std::string> keys_of(const Node& map) {
  return collect<std::string>(map.entries, &Entry::key);
}

bool matches_one(std::string_view glob, std::span<const std::string> names) {
  return std::ranges::any_of(names, [&](const auto& name) { return text::glob_match(glob, name); });
}

void parse_numbers(Fields& fields, Extra& extra) {
  constexpr std::int64_t k_most_threads = 4096;
  fields.read("threads", extra.threads, read_integer, 1, k_most_threads);
  fields.read("seed", extra.seed, read_integer, 0, INT64_C(0xFFFFFFFF));
}

void parse_environment(Fields& fields, Extra& extra, Problems& problems) {
  const Node* node = fields.take("env");
  if (node == nullptr) return;
  Node set = *node;
  std::erase_if(set.entries, [&](const Entry& entry) {
    const bool passes = entry.value.kind == Node::Kind::null && variable_name(entry.key);
    if (passes) extra.passed.insert(entry.key);
    return passes;
  });
  extra.env = read_environment(set, "env", problems);
}

void check_args(const Node* node, const Arguments& args, Problems& problems) {
  if (node == nullptr || !holds(args, "{args}")) return;
  problems.add(node->at, "{args} can only stand in an engine's command");
}

void parse_extra(Fields& fields, Extra& extra, Parsing& parsing) {
  check_args(fields.read("args", extra.args, read_arguments), extra.args, parsing.problems);
  parse_environment(fields, extra, parsing.problems);
  parse_numbers(fields, extra);
}

void parse_per_engine(Fields& fields, PerEngine& extra, Parsing& parsing) {
  parse_extra(fields, extra.extra, parsing);
  const Node* engines = fields.take("engines");
  if (engines == nullptr) return;
  if (engines->kind != Node::Kind::map) {
    parsing.problems.expected(*engines, "engines", "a mapping of engine names to what they get");
    return;
  }
  const auto names = names_of(parsing.settings.engines);
  for (const Entry& entry : engines->entries) {
    if (!holds(names, entry.key)) {
      parsing.problems.unknown(entry.key_at, "engine", entry.key, names);
    }
    Extra& own = extra.engines[entry.key];
    if (entry.value.kind == Node::Kind::null) continue;
    Fields inside(entry.value, fmt::format("engine \"{}\" here", text::printable(entry.key)),
                  parsing.problems);
    parse_extra(inside, own, parsing);
  }
}

namespace {

bool asks_for_a_model(const Settings& settings) {
  const auto asks = [](const EngineSettings& engine) {
    return uses(engine.command, engine.extra.env, "model");
  };
  return settings.engines.empty() || std::ranges::any_of(settings.engines, asks);
}

}  // namespace

Result<Settings> parse_settings(std::string_view yaml, std::string_view file_name,
                                const Known& known) {
  WEIR_TRY(Node root, parse_yaml(yaml, file_name));
  Parsing parsing{known, Problems(std::string(file_name)), {}};
  parsing.settings.file = file_name;
  parsing.settings.notes = expand_presets(root, parsing.problems);
  if (parsing.problems.any()) return tl::unexpected(parsing.problems.error());
  if (root.kind == Node::Kind::null) {
    return fail(Code::config, "{}: there is nothing in it (weir init writes a starter)", file_name);
  }

  Fields fields(root, "the configuration", parsing.problems);
  if (const Node* version = fields.need("version")) {
    if (version->kind != Node::Kind::scalar || version->text != "1") {
      parsing.problems.add(version->at, "this weir reads version 1, not {}", describe(*version));
    }
  }
  struct Section {
    const char* key;
    void (*parse)(const Node&, Parsing&);
    bool needed = false;
  };
  // Engines come first: the other sections name them; matrix and limits name everything.
  constexpr Section k_sections[] = {
      {"engines", parse_engines, true},   {"models", parse_models},
      {"backends", parse_backends, true}, {"prompts", parse_prompts, true},
      {"variants", parse_variants},       {"matrix", parse_matrix},
      {"limits", parse_limits},           {"gate", parse_gate},
      {"explain", parse_explain}};
  for (const auto& [key, parse, needed] : k_sections) {
    if (parse == parse_matrix && parsing.settings.variants.empty()) {
      parsing.settings.variants.push_back({"default", {}, std::string(file_name)});
    }
    const bool models = parse == parse_models;
    const bool wanted = models ? asks_for_a_model(parsing.settings) : needed;
    if (const Node* section = wanted ? fields.need(key) : fields.take(key)) {
      parse(*section, parsing);
    } else if (models) {
      parsing.settings.models.push_back({"none", "", {}, false, std::string(file_name)});
    }
  }
  if (const Node* engines = root.find("engines")) parse_cpu_ops(*engines, parsing);
  fields.finish();
  if (parsing.problems.any()) return tl::unexpected(parsing.problems.error());
  return std::move(parsing.settings);
}

}  // namespace weir::config
