#include "gate/config/parse.hpp"

#include <algorithm>
#include <set>

#include "gate/base/text.hpp"
#include "gate/profile/cell.hpp"

namespace weir::config {

Extra PerEngine::for_engine(const std::string& engine) const {
  Extra result = extra;
  if (const auto found = engines.find(engine); found != engines.end()) {
    const Extra& own = found->second;
    result.args.insert(result.args.end(), own.args.begin(), own.args.end());
    for (const auto& [name, value] : own.env) result.env[name] = value;
    if (own.threads) result.threads = own.threads;
    if (own.seed) result.seed = own.seed;
  }
  return result;
}

bool EngineSettings::reports_counts() const {
  const bool asked = !profile_args.empty() || !counted_env.empty();
  if (tells_counts || (tells_counts_if_asked && asked)) return true;
  return std::any_of(generic.values.begin(), generic.values.end(), [](const ValueRule& rule) {
    const auto metric = rule.custom ? rule.custom : unit::find_metric(rule.metric);
    return metric && metric->kind == unit::Kind::count;
  });
}

void check_names(const Node& section, const std::string& what, Problems& problems) {
  if (section.entries.size() > k_most_entries) {
    problems.add(section.at, fmt::format("more than {} {}s", k_most_entries, what));
  }
  std::set<std::string> seen;
  for (const Entry& entry : section.entries) {
    if (!profile::valid_name(entry.key)) {
      problems.add(entry.key_at,
                   fmt::format("\"{}\" can not name a {}: letters, digits, \".\", \"_\" and \"-\", "
                               "at most 64, a letter or digit first",
                               text::printable(entry.key.substr(0, 80)), what));
    } else if (!seen.insert(text::lower(entry.key)).second) {
      problems.add(entry.key_at, fmt::format("two {}s are named \"{}\" (upper and lower case are "
                                             "the same in a file name)",
                                             what, entry.key));
    }
  }
}

std::vector<std::string> engine_names(const Settings& settings) {
  return names_of(settings.engines);
}

void check_pattern(const std::string& pattern, Place at, const std::string& what,
                   const std::vector<std::string>& names, Problems& problems) {
  // "llama.cpp@fused", "long@d256": the part behind the @ is known once the matrix is made.
  const std::string head = pattern.substr(0, pattern.find('@'));
  if (std::any_of(names.begin(), names.end(),
                  [&](const auto& name) { return text::glob_match(head, name); })) {
    return;
  }
  problems.add(at, fmt::format("unknown {} \"{}\"{}{}", what, text::printable(pattern),
                               text::did_you_mean(head, names), known_here(names)));
}

void parse_extra(Fields& fields, Extra& extra, Parsing& parsing) {
  constexpr std::int64_t k_most_threads = 4096;
  if (const Node* args = fields.take("args")) {
    extra.args = read_arguments(*args, "args", parsing.problems);
    if (std::find(extra.args.begin(), extra.args.end(), "{args}") != extra.args.end()) {
      parsing.problems.add(args->at, "{args} can only stand in an engine's command");
    }
  }
  if (const Node* env = fields.take("env")) {
    extra.env = read_environment(*env, "env", parsing.problems);
  }
  if (const Node* threads = fields.take("threads")) {
    extra.threads = read_integer(*threads, "threads", 1, k_most_threads, parsing.problems);
  }
  if (const Node* seed = fields.take("seed")) {
    extra.seed = read_integer(*seed, "seed", 0, INT64_C(0xFFFFFFFF), parsing.problems);
  }
}

void parse_per_engine(Fields& fields, PerEngine& extra, Parsing& parsing) {
  parse_extra(fields, extra.extra, parsing);
  const Node* engines = fields.take("engines");
  if (engines == nullptr) return;
  if (engines->kind != Node::Kind::map) {
    parsing.problems.add(engines->at, fmt::format("engines must be a mapping of engine names to "
                                                  "what they get, not {}",
                                                  describe(*engines)));
    return;
  }
  const auto names = engine_names(parsing.settings);
  for (const Entry& entry : engines->entries) {
    if (std::find(names.begin(), names.end(), entry.key) == names.end()) {
      parsing.problems.add(entry.key_at,
                           fmt::format("unknown engine \"{}\"{}{}", text::printable(entry.key),
                                       text::did_you_mean(entry.key, names), known_here(names)));
    }
    Extra& own = extra.engines[entry.key];
    if (entry.value.kind == Node::Kind::null) continue;
    Fields inside(entry.value, fmt::format("engine \"{}\" here", text::printable(entry.key)),
                  parsing.problems);
    parse_extra(inside, own, parsing);
    inside.finish();
  }
}

Result<Settings> parse_settings(std::string_view yaml, std::string_view file_name,
                                const Known& known) {
  WEIR_TRY(const Node root, parse_yaml(yaml, file_name));
  Parsing parsing{known, Problems(std::string(file_name)), {}};
  parsing.settings.file = file_name;
  if (root.kind == Node::Kind::null) {
    return fail(Code::config, "{}: there is nothing in it (weir init writes a starter)", file_name);
  }

  Fields fields(root, "the configuration", parsing.problems);
  if (const Node* version = fields.need("version")) {
    if (version->kind != Node::Kind::scalar || version->text != "1") {
      parsing.problems.add(version->at,
                           fmt::format("this weir reads version 1, not {}", describe(*version)));
    }
  }
  using Parse = void (*)(const Node&, Parsing&);
  // Engines come first: the other sections name them; matrix and limits name everything.
  constexpr std::pair<const char*, Parse> k_needed[] = {{"engines", parse_engines},
                                                        {"models", parse_models},
                                                        {"backends", parse_backends},
                                                        {"prompts", parse_prompts}};
  constexpr std::pair<const char*, Parse> k_optional[] = {{"variants", parse_variants},
                                                          {"matrix", parse_matrix},
                                                          {"limits", parse_limits},
                                                          {"gate", parse_gate},
                                                          {"explain", parse_explain}};
  for (const auto& [key, parse] : k_needed) {
    if (const Node* section = fields.need(key)) parse(*section, parsing);
  }
  for (const auto& [key, parse] : k_optional) {
    if (std::string_view(key) == "matrix" && parsing.settings.variants.empty()) {
      VariantSettings& only = parsing.settings.variants.emplace_back();
      only.name = "default";
      only.source = file_name;
    }
    if (const Node* section = fields.take(key)) parse(*section, parsing);
  }
  fields.later({"devices", "history", "publish", "serve", "probes", "telemetry"});
  fields.finish();
  if (parsing.problems.any()) return tl::unexpected(parsing.problems.error());
  return std::move(parsing.settings);
}

}  // namespace weir::config
