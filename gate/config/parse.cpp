// Reads a whole weir.yaml into settings; and the keys that several sections share.
#include "gate/config/parse.hpp"

#include "gate/base/json.hpp"
#include "gate/config/placeholders.hpp"

namespace weir::config {

// Adds another section's additions to commands: its arguments are appended, its other values
// replace those here.
void Extra::add(const Extra& more) {
  args.insert(args.end(), more.args.begin(), more.args.end());
  for (const auto& [name, value] : more.env) {
    env[name] = value;
    passed_variables.erase(name);
  }
  for (const std::string& name : more.passed_variables) {
    env.erase(name);
    passed_variables.insert(name);
  }
  for (const auto& [flag, value] : more.replaced_flags) replaced_flags[flag] = value;
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
                       [&](const CpuOp& op) { return op.match.fits(cell); });
  return ops;
}

bool EngineSettings::reports_counts() const {
  const bool is_profiled = !counted_run_args.empty() || !counted_run_env.empty();
  if (always_reports_counts || (reports_counts_on_request && is_profiled)) return true;
  return std::ranges::any_of(generic.values, [](const ValueRule& rule) {
    const auto metric = rule.find_metric();
    return metric && metric->kind == unit::Kind::count;
  });
}

bool is_entries(const Node& node, std::string_view what, std::string_view example,
                Problems& problems) {
  if (node.kind == Node::Kind::list && node.items.size() <= k_max_entries) return true;
  problems.add(node.position, "{} must be a list of at most {} entries such as {}", what,
               k_max_entries, example);
  return false;
}

// Complains about names that are not valid or not unique (case is ignored), and about too many
// entries. `what` is the kind of entry: "engine".
void check_names(const Node& section, const std::string& what, Problems& problems) {
  if (section.entries.size() > k_max_entries) {
    problems.add(section.position, "more than {} {}s", k_max_entries, what);
  }
  std::set<std::string> lowered_names;
  for (const Entry& entry : section.entries) {
    if (!profile::valid_name(entry.key)) {
      problems.add(entry.key_position, "\"{}\" cannot name a {}: {}",
                   text::printable(entry.key.substr(0, 80)), what, k_name_rule);
    } else if (!lowered_names.insert(text::lower(entry.key)).second) {
      problems.add(entry.key_position,
                   "two {}s are named \"{}\" (upper and lower case are the same in a file name)",
                   what, entry.key);
    }
  }
}

// Reads the patterns by which an entry chooses cells: engine, model, backend, prompt and variant.
// Complains about one that matches no name.
void parse_match(Fields& fields, verdict::Match& match, Parsing& parsing) {
  const Settings& settings = parsing.settings;
  const auto read_pattern = [&](const char* key, std::string& into,
                                const std::vector<std::string>& names) {
    const Node* node =
        fields.read({key, "A name, or a pattern with *.", "'*'", "any"}, into, k_text);
    if (node == nullptr || into.empty()) return;
    // "llama.cpp@fused", "long@d256": the part after the @ exists once the matrix is expanded.
    const std::string name = into.substr(0, into.find('@'));
    if (matches_any(name, names)) return;
    parsing.problems.add(node->position, "unknown {} \"{}\"{}{}", key, text::printable(into),
                         text::did_you_mean(name, names), choices_text(names));
  };
  read_pattern("engine", match.engine, section_names(settings.engines));
  read_pattern("model", match.model, section_names(settings.models));
  read_pattern("backend", match.backend, section_names(settings.backends));
  read_pattern("prompt", match.prompt, section_names(settings.prompts));
  read_pattern("variant", match.variant, section_names(settings.variants));
}

void parse_match_key(Fields& fields, const Key& key, verdict::Match& match, Parsing& parsing) {
  const Node* node = fields.find(key, mapping());
  if (node == nullptr) return;
  Fields parts(*node, "match", parsing.problems);
  parse_match(parts, match, parsing);
}

std::vector<std::string> key_names(const Node& map) {
  return collect<std::string>(map.entries, &Entry::key);
}

bool matches_any(std::string_view glob, std::span<const std::string> names) {
  return std::ranges::any_of(names, [&](const auto& name) { return text::glob_match(glob, name); });
}

void parse_seed(Fields& fields, Extra& extra) {
  fields.read({"seed", "Value of {seed}.", "7", "1"}, extra.seed,
              WholeNumber{0, INT64_C(0xFFFFFFFF)});
}

// Reads `env`. A name without a value passes weir's own variable on to the engine.
void parse_environment(Fields& fields, Extra& extra, Problems& problems) {
  const Node* node = fields.find(
      {"env",
       "Environment variables. A name without a value passes weir's own variable through, which "
       "would be withheld.",
       "{GGML_VK_VISIBLE_DEVICES: \"0\"}"},
      k_environment.form());
  if (node == nullptr) return;
  Node assigned = *node;
  std::erase_if(assigned.entries, [&](const Entry& entry) {
    const bool passes = entry.value.kind == Node::Kind::null && is_variable_name(entry.key);
    if (passes) extra.passed_variables.insert(entry.key);
    return passes;
  });
  extra.env = read_environment(assigned, "env", problems);
}

void check_args(const Node* node, const Arguments& args, Problems& problems) {
  if (node == nullptr || !holds(args, "{args}")) return;
  problems.add(node->position, "{args} can only stand in an engine's command");
}

// Reads additions to a command: args, replace, env and seed; with `threads`, the number of threads
// too.
void parse_extra(Fields& fields, Extra& extra, Parsing& parsing, bool reads_threads) {
  const Node* args = fields.read(
      {"args", "Arguments appended to the command, or put at {args}.", "[-ngl, \"99\"]"},
      extra.args, k_arguments);
  check_args(args, extra.args, parsing.problems);
  fields.read(
      {"replace", "Values of flags, in place of those that the command has.", "{-ngl: \"20\"}"},
      extra.replaced_flags, k_replaced);
  parse_environment(fields, extra, parsing.problems);
  if (reads_threads) fields.read(k_threads_key, extra.threads, k_threads);
  parse_seed(fields, extra);
}

// Reads additions to commands: those for all engines, and under `engines` those for single ones.
// With `threads`, the number of threads too.
void parse_per_engine(Fields& fields, PerEngine& extra, Parsing& parsing, bool reads_threads) {
  parse_extra(fields, extra.extra, parsing, reads_threads);
  const Node* engines =
      fields.find({"engines", "args, replace, env, threads and seed for single engines.",
                   "{llama.cpp: {args: [-fa, \"1\"]}}"},
                  named(nothing() | mapping(), k_name_pattern));
  if (engines == nullptr) return;
  if (engines->kind != Node::Kind::map) {
    parsing.problems.report_expected(*engines, "engines",
                                     "a mapping of engine names to what they get");
    return;
  }
  const auto names = section_names(parsing.settings.engines);
  for (const Entry& entry : engines->entries) {
    if (!holds(names, entry.key)) {
      parsing.problems.report_unknown(entry.key_position, "engine", entry.key, names);
    }
    Extra& own = extra.engines[entry.key];
    if (entry.value.kind == Node::Kind::null) continue;
    Fields inside(entry.value, fmt::format("engine \"{}\" here", text::printable(entry.key)),
                  parsing.problems);
    parse_extra(inside, own, parsing);
  }
}

namespace {

// Returns true if the command of some engine has {model}, or if there are no engines.
bool needs_model(const Settings& settings) {
  const auto has_placeholder = [](const EngineSettings& engine) {
    return uses(engine.command, engine.extra.env, "model");
  };
  return settings.engines.empty() || std::ranges::any_of(settings.engines, has_placeholder);
}

struct Section {
  Key key;
  Form form;
  void (*parse)(const Node&, Parsing&);
  bool needed = false;  // required, unless a preset brings it
};

// Returns the sections of weir.yaml in the order in which they are read. Engines come first, as
// other sections name them; matrix and limits name everything.
const std::vector<Section>& sections() {
  const auto entries = [](const Form& value) { return named(value, k_name_pattern); };
  constexpr std::string_view k_engine_needs =
      R"(, "anyOf": [{"required": ["command", "output"]}, {"required": ["kind", "api"]}, )"
      R"({"required": ["preset"]}, {"required": ["output"], "properties": {"output": )"
      R"({"enum": ["vllm-bench", "aiperf", "guidellm"]}}}])";
  static const std::vector<Section> k_sections{
      {{"engines", "Programs that run a model, each by its name.",
        "{llama.cpp: {command: [./build/bin/llama-bench, -m, \"{model}\"], output: llama-bench}}"},
       entries(mapping(k_engine_needs)),
       parse_engines},
      {{"models",
        "Models, each by its name: a path from this file's folder, an object, or nothing for an "
        "engine that reads no file. Left out where no command has {model}: the one model is "
        "\"none\".",
        "{tiny-llama: models/tiny-llama.gguf}"},
       entries(nothing() | k_text.form() | mapping()),
       parse_models},
      {{"backends", "Where an engine runs the model, each by its name.",
        "{vulkan: {args: [-ngl, \"99\"]}}"},
       entries(nothing() | mapping()),
       parse_backends,
       true},
      {{"prompts", "What the engine is asked, each by its name.",
        "{decode: {prompt_tokens: 0, tokens: 32}}"},
       entries(mapping()),
       parse_prompts,
       true},
      {{"variants",
        "Other ways to run an engine, each a cell of its own. Not made for engines that it does "
        "not name.",
        "{fused: {engines: {llama.cpp: {args: [-fa, \"1\"]}}}}", "default"},
       nothing() | entries(nothing() | mapping()),
       parse_variants},
      {{"matrix", "Which combinations are benchmark cells.",
        "{exclude: [{engine: llama.cpp, prompt: hello}]}", "every combination that fits"},
       nothing() | mapping(),
       parse_matrix},
      {{"limits",
        "Limits besides the default ones. For each metric and kind the last entry that matches "
        "wins.",
        "[{metrics: decode_tokens_per_second, max_drop: 5%}]", "the default limits"},
       nothing() | list_form(mapping(), R"(, "maxItems": 1000)"),
       parse_limits},
      {{"gate", "How the gate decides.", "{budget: 20m}"}, nothing() | mapping(), parse_gate},
      {{"explain", "What a team knows about its engine, for weir explain and the reports.",
        "{bands: {syncs_per_token: {low: 1, high: 2}}}"},
       nothing() | mapping(),
       parse_explain}};
  return k_sections;
}

}  // namespace

// Reads all sections of a weir.yaml, whose presets are expanded already. Missing sections get
// their default, or a problem if they are needed.
void parse_root(const Node& root, Parsing& parsing) {
  Fields fields(root, "the configuration", parsing.problems);
  const Node* version =
      fields.require({"version", "Version of this format.", "1"}, {"1", R"("const": 1)"});
  if (version != nullptr && (version->kind != Node::Kind::scalar || version->text != "1")) {
    parsing.problems.add(version->position, "this weir reads version 1, not {}",
                         describe(*version));
  }
  Settings& settings = parsing.settings;
  for (const auto& [key, form, parse, needed] : sections()) {
    if (parse == parse_matrix && settings.variants.empty()) {
      settings.variants.push_back({"default", {}, settings.file});
    }
    const bool is_models = parse == parse_models;
    const bool is_needed = is_models ? needs_model(settings) : needed;
    const bool is_engines = parse == parse_engines;  // other sections may come from a preset
    const Node* section = is_engines ? fields.require(key, form) : fields.find(key, form);
    if (section != nullptr) {
      parse(*section, parsing);
      continue;
    }
    if (is_needed) fields.lacks(key.name);
    if (is_models) settings.models.push_back({"none", "", {}, false, settings.file});
  }
  parse_cpu_ops(parsing);
}

namespace {

// Returns the tree as JSON whose scalars are all text, so that 1 and "1" are the same.
Json texts_as_json(const Node& node) {
  if (node.kind == Node::Kind::null) return nullptr;
  if (node.kind == Node::Kind::scalar) return node.text;
  Json json = node.kind == Node::Kind::map ? Json::object() : Json::array();
  for (const Entry& entry : node.entries) json[entry.key] = texts_as_json(entry.value);
  for (const Node& item : node.items) json.push_back(texts_as_json(item));
  return json;
}

}  // namespace

// Parses and checks a weir.yaml. Each error line begins with file, line and column.
Result<Settings> parse_settings(std::string_view yaml, std::string_view file_name,
                                const Supported& supported) {
  WEIR_TRY(Node root, parse_yaml(yaml, file_name));
  Parsing parsing{supported, Problems(std::string(file_name)), {}};
  parsing.settings.file = file_name;
  parsing.settings.notes = expand_presets(root, parsing.problems).left_out;
  if (parsing.problems.any()) return tl::unexpected(parsing.problems.error());
  if (root.kind == Node::Kind::null) {
    return fail(Code::config, "{}: there is nothing in it (weir init writes a starter)", file_name);
  }
  parse_root(root, parsing);
  if (parsing.problems.any()) return tl::unexpected(parsing.problems.error());
  parsing.settings.tree = std::make_shared<const Json>(texts_as_json(root));
  return std::move(parsing.settings);
}

}  // namespace weir::config
