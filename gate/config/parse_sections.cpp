// The sections models, backends, variants, prompts, matrix and gate.
#include <algorithm>
#include <set>

#include "gate/base/text.hpp"
#include "gate/config/parse.hpp"
#include "gate/unit/device_api.hpp"

namespace weir::config {
namespace {

bool names_something(const Node& node, const std::string& what, Parsing& parsing) {
  if (node.kind != Node::Kind::map || node.entries.empty()) {
    parsing.problems.add(node.at, fmt::format("{}s must be a mapping with at least one {}, not {}",
                                              what, what, describe(node)));
    return false;
  }
  check_names(node, what, parsing.problems);
  return true;
}

std::string named(const std::string& what, const Entry& entry) {
  return fmt::format("{} \"{}\"", what, text::printable(entry.key.substr(0, 80)));
}

void parse_depth(const Node& node, PromptSettings& prompt, Problems& problems) {
  constexpr std::int64_t k_deepest = 100'000'000;
  constexpr std::size_t k_most = 100;
  prompt.depth_is_list = node.kind == Node::Kind::list;
  if (!prompt.depth_is_list) {
    if (const auto depth = read_integer(node, "depth", 0, k_deepest, problems)) {
      prompt.depth.push_back(*depth);
    }
    return;
  }
  if (node.items.empty() || node.items.size() > k_most) {
    problems.add(node.at, fmt::format("depth must be a number or a list of 1 to {}", k_most));
    return;
  }
  std::set<std::int64_t> seen;
  for (const Node& item : node.items) {
    const auto depth = read_integer(item, "depth", 0, k_deepest, problems);
    if (!depth) continue;
    if (!seen.insert(*depth).second) {
      problems.add(item.at, fmt::format("depth {} stands here twice", *depth));
    }
    prompt.depth.push_back(*depth);
  }
}

// One number, or a list of them, each of which is a cell.
void parse_concurrency(const Node& node, PromptSettings& prompt, Problems& problems) {
  constexpr std::int64_t k_most_at_once = 1024;
  constexpr std::size_t k_most = 100;
  prompt.concurrency_is_list = node.kind == Node::Kind::list;
  const Node alone{Node::Kind::list, node.at, false, {}, {node}, {}};
  const Node& list = prompt.concurrency_is_list ? node : alone;
  if (list.items.empty() || list.items.size() > k_most) {
    problems.add(node.at, fmt::format("concurrency must be a number or a list of 1 to {}", k_most));
    return;
  }
  std::set<std::int64_t> seen;
  for (const Node& item : list.items) {
    const auto at_once = read_integer(item, "concurrency", 1, k_most_at_once, problems);
    if (!at_once) continue;
    if (!seen.insert(*at_once).second) {
      problems.add(item.at, fmt::format("concurrency {} stands here twice", *at_once));
    }
    prompt.concurrency.push_back(*at_once);
  }
}

// How many requests a second arrive.
void parse_rate(const Node& node, PromptSettings& prompt, Problems& problems) {
  constexpr double k_fastest = 100'000;
  const auto text = read_text(node, "rate", problems);
  if (!text) return;
  const auto rate = text::to_double(*text);
  if (!rate || !(*rate > 0) || *rate > k_fastest) {
    problems.add(node.at, fmt::format("rate must be requests a second, above 0 and at most {}: "
                                      "not {}",
                                      k_fastest, describe(node)));
    return;
  }
  prompt.rate = *rate;
}

void parse_load(Fields& fields, PromptSettings& prompt, Problems& problems) {
  constexpr std::int64_t k_most_requests = 1'000'000;
  if (const Node* concurrency = fields.take("concurrency")) {
    parse_concurrency(*concurrency, prompt, problems);
  }
  if (const Node* rate = fields.take("rate")) {
    parse_rate(*rate, prompt, problems);
    if (!prompt.concurrency.empty()) {
      problems.add(rate->at,
                   "rate and concurrency: requests are sent as they arrive, or as soon as one "
                   "before them has ended; not both");
    }
  }
  if (const Node* requests = fields.take("requests")) {
    prompt.requests = read_integer(*requests, "requests", 1, k_most_requests, problems);
  }
}

void check_prompt(const Entry& entry, const PromptSettings& prompt, Problems& problems) {
  // What was written counts here, also where its value was refused: one mistake, one complaint.
  const auto has = [&](const char* key) { return entry.value.find(key) != nullptr; };
  if (static_cast<int>(has("text")) + static_cast<int>(has("file")) +
          static_cast<int>(has("prompt_tokens")) >
      1) {
    problems.add(entry.key_at, fmt::format("{} has more than one of text, file and prompt_tokens",
                                           named("prompt", entry)));
  }
  const bool nothing = !has("text") && !has("file") && (!has("tokens") || prompt.tokens == 0) &&
                       (!has("prompt_tokens") || prompt.prompt_tokens == 0);
  if (nothing) {
    problems.add(entry.key_at, fmt::format("{} asks for nothing: give it tokens, prompt_tokens, "
                                           "text or file",
                                           named("prompt", entry)));
  }
}

void parse_prompt(const Entry& entry, Parsing& parsing) {
  constexpr std::int64_t k_most_tokens = 10'000'000;
  Problems& problems = parsing.problems;
  PromptSettings prompt;
  prompt.name = entry.key;
  prompt.source = problems.source(entry.key_at);
  Fields fields(entry.value, named("prompt", entry), problems);
  if (const Node* tokens = fields.take("prompt_tokens")) {
    prompt.prompt_tokens = read_integer(*tokens, "prompt_tokens", 0, k_most_tokens, problems);
  }
  if (const Node* tokens = fields.take("tokens")) {
    prompt.tokens = read_integer(*tokens, "tokens", 0, k_most_tokens, problems);
  }
  if (const Node* depth = fields.take("depth")) parse_depth(*depth, prompt, problems);
  if (const Node* text = fields.take("text")) prompt.text = read_text(*text, "text", problems);
  if (const Node* file = fields.take("file")) prompt.file = read_text(*file, "file", problems);
  if (const Node* is_private = fields.take("private")) {
    prompt.is_private = read_boolean(*is_private, "private", problems).value_or(true);
  }
  parse_per_engine(fields, prompt.extra, parsing);
  parse_load(fields, prompt, problems);
  fields.later({"chat", "images", "cache"});
  fields.finish();
  if (entry.value.kind == Node::Kind::map) check_prompt(entry, prompt, problems);
  parsing.settings.prompts.push_back(std::move(prompt));
}

std::vector<MatrixEntry> parse_entries(const Node& node, const std::string& what,
                                       Parsing& parsing) {
  std::vector<MatrixEntry> entries;
  Problems& problems = parsing.problems;
  const Settings& settings = parsing.settings;
  if (node.kind != Node::Kind::list || node.items.size() > k_most_entries) {
    problems.add(node.at, fmt::format("{} must be a list of at most {} entries such as "
                                      "{{engine: NAME, prompt: NAME}}",
                                      what, k_most_entries));
    return entries;
  }
  for (const Node& item : node.items) {
    MatrixEntry entry;
    entry.source = problems.source(item.at);
    Fields fields(item, fmt::format("an entry of {}", what), problems);
    const auto pattern = [&](const char* key, std::string& into,
                             const std::vector<std::string>& names) {
      const Node* value = fields.take(key);
      if (value == nullptr) return;
      into = read_text(*value, key, problems).value_or("");
      if (!into.empty()) check_pattern(into, value->at, key, names, problems);
    };
    pattern("engine", entry.engine, names_of(settings.engines));
    pattern("model", entry.model, names_of(settings.models));
    pattern("backend", entry.backend, names_of(settings.backends));
    pattern("prompt", entry.prompt, names_of(settings.prompts));
    pattern("variant", entry.variant, names_of(settings.variants));
    fields.finish();
    if (item.kind == Node::Kind::map && item.entries.empty()) {
      problems.add(item.at, fmt::format("an entry of {} must name something", what));
    }
    entries.push_back(std::move(entry));
  }
  return entries;
}

}  // namespace

void parse_models(const Node& node, Parsing& parsing) {
  if (!names_something(node, "model", parsing)) return;
  for (const Entry& entry : node.entries) {
    Problems& problems = parsing.problems;
    ModelSettings model;
    model.name = entry.key;
    model.source = problems.source(entry.key_at);
    if (entry.value.kind == Node::Kind::map) {
      Fields fields(entry.value, named("model", entry), problems);
      if (const Node* path = fields.need("path")) {
        model.path = read_text(*path, "path", problems).value_or("");
      }
      if (const Node* is_private = fields.take("private")) {
        model.is_private = read_boolean(*is_private, "private", problems).value_or(true);
      }
      parse_per_engine(fields, model.extra, parsing);
      fields.finish();
    } else {
      model.path =
          read_text(entry.value, "the path of " + named("model", entry), problems).value_or("");
    }
    parsing.settings.models.push_back(std::move(model));
  }
}

// A twin is a Vulkan device whose description is known here.
void check_twin(const Node& twin, const BackendSettings& backend, const Entry& entry,
                Parsing& parsing) {
  Problems& problems = parsing.problems;
  if (!parsing.known.twins) {
    problems.add(twin.at, "device twins: this weir was built without them");
    return;
  }
  if (!backend.device.empty() && backend.device != "vulkan") {
    problems.add(twin.at, fmt::format("{}: a twin is a Vulkan device, not \"{}\": device: vulkan",
                                      named("backend", entry), backend.device));
  }
  const std::vector<std::string>& known = *parsing.known.twins;
  if (!backend.twin || std::find(known.begin(), known.end(), *backend.twin) != known.end()) return;
  problems.add(twin.at, fmt::format("unknown twin \"{}\"{}{}", *backend.twin,
                                    text::did_you_mean(*backend.twin, known), known_here(known)));
}

void parse_backends(const Node& node, Parsing& parsing) {
  if (!names_something(node, "backend", parsing)) return;
  for (const Entry& entry : node.entries) {
    Problems& problems = parsing.problems;
    BackendSettings backend;
    backend.name = entry.key;
    backend.source = problems.source(entry.key_at);
    const Node empty{Node::Kind::map, entry.value.at, false, {}, {}, {}};
    Fields fields(entry.value.kind == Node::Kind::null ? empty : entry.value,
                  named("backend", entry), problems);
    const std::vector<std::string>& devices = unit::device_names();
    if (const Node* device = fields.take("device")) {
      backend.device = read_choice(*device, "device", devices, problems).value_or("");
    } else if (std::find(devices.begin(), devices.end(), entry.key) != devices.end()) {
      backend.device = entry.key;
    } else {
      problems.add(entry.key_at,
                   fmt::format("{} needs \"device\": what must really do the work{}{}",
                               named("backend", entry), text::did_you_mean(entry.key, devices),
                               known_here(devices)));
    }
    if (const Node* twin = fields.take("twin")) {
      backend.twin = read_text(*twin, "twin", problems);
      check_twin(*twin, backend, entry, parsing);
    }
    if (const Node* runner = fields.take("runner")) {
      backend.runner = read_texts(*runner, "runner", problems);
    }
    parse_per_engine(fields, backend.extra, parsing);
    fields.finish();
    parsing.settings.backends.push_back(std::move(backend));
  }
}

void parse_variants(const Node& node, Parsing& parsing) {
  if (!names_something(node, "variant", parsing)) return;
  for (const Entry& entry : node.entries) {
    VariantSettings variant;
    variant.name = entry.key;
    variant.source = parsing.problems.source(entry.key_at);
    if (entry.value.kind != Node::Kind::null) {
      Fields fields(entry.value, named("variant", entry), parsing.problems);
      parse_per_engine(fields, variant.extra, parsing);
      fields.finish();
    }
    parsing.settings.variants.push_back(std::move(variant));
  }
}

void parse_prompts(const Node& node, Parsing& parsing) {
  if (!names_something(node, "prompt", parsing)) return;
  for (const Entry& entry : node.entries) parse_prompt(entry, parsing);
}

void parse_matrix(const Node& node, Parsing& parsing) {
  Fields fields(node, "matrix", parsing.problems);
  if (const Node* include = fields.take("include")) {
    parsing.settings.include = parse_entries(*include, "include", parsing);
    if (parsing.settings.include.empty()) {
      parsing.problems.add(include->at, "include is empty: leave it out for the whole product");
    }
  }
  if (const Node* exclude = fields.take("exclude")) {
    parsing.settings.exclude = parse_entries(*exclude, "exclude", parsing);
  }
  fields.finish();
}

void parse_gate(const Node& node, Parsing& parsing) {
  Problems& problems = parsing.problems;
  GateSettings& gate = parsing.settings.gate;
  constexpr std::int64_t k_most_runs = 1000;
  Fields fields(node, "gate", problems);
  const auto share = [&](const char* key, double& into) {
    if (const Node* value = fields.take(key)) {
      into = read_share(*value, key, 0, 0.5, problems).value_or(into);
    }
  };
  share("false_alarm", gate.false_alarm);
  share("missed", gate.missed);
  if (const Node* strict = fields.take("strict")) {
    gate.strict = read_boolean(*strict, "strict", problems).value_or(false);
  }
  if (const Node* budget = fields.take("budget")) {
    const auto text = read_text(*budget, "budget", problems);
    const auto seconds = text ? unit::parse_duration_seconds(*text) : Result<double>(1.0);
    if (!seconds) {
      problems.add(budget->at, "budget: " + seconds.error().message);
    } else if (*seconds <= 0) {
      problems.add(budget->at, "budget must be more than nothing");
    } else {
      gate.budget_seconds = *seconds;
    }
  }
  const auto number = [&](const char* key, std::int64_t& into) {
    if (const Node* value = fields.take(key)) {
      into = read_integer(*value, key, 1, k_most_runs, problems).value_or(into);
    }
  };
  number("runs", gate.runs);
  number("repeats", gate.repeats);
  share("stored_level", gate.stored_level);
  if (const Node* policy = fields.take("on_inconclusive")) {
    static const std::vector<std::string> k_policies{"warn", "fail"};
    gate.fail_on_inconclusive =
        read_choice(*policy, "on_inconclusive", k_policies, problems) == "fail";
  }
  if (const Node* confirm = fields.take("confirm")) {
    const auto text = read_text(*confirm, "confirm", problems);
    gate.confirms = text != "false";
    if (text && text != "false" && text != "true") gate.confirm = text;
    if (text && (text->empty() || text->starts_with("-"))) {
      problems.add(confirm->at, "confirm: a REF of git (origin/main), true or false");
    }
  }
  if (const Node* reference = fields.take("reference")) {
    gate.reference = read_text(*reference, "reference", problems);
    gate.reference_source = problems.source(reference->at);
  }
  fields.later({"against", "cache", "shards"});
  fields.finish();
}

}  // namespace weir::config
