#include "gate/config/typed_command.hpp"

#include "gate/config/parse.hpp"
#include "gate/config/placeholders.hpp"
#include "gate/config/starter.hpp"

namespace weir::config {
namespace {

// "-n {tokens}", "-o json", "--json" (no value), "--filter={prompt}" (joined) of a preset's
// command.
struct Option {
  std::string flag, value;
  bool joined = false;
  // The placeholder that its value is; "": none.
  [[nodiscard]] std::string placeholder() const {
    const auto words = placeholders_in(value);
    return words.size() == 1 && value == "{" + words.front() + "}" ? words.front() : "";
  }
};

std::vector<Option> options_of(const Arguments& command) {
  std::vector<Option> options;
  for (std::size_t i = 1; i < command.size(); ++i) {
    const std::string& word = command[i];
    if (!word.starts_with('-')) continue;  // by its place
    const std::size_t equals = word.find('=');
    const bool has_next =
        i + 1 < command.size() && !command[i + 1].starts_with('-') && command[i + 1] != "{args}";
    if (equals != std::string::npos) {
      options.push_back({word.substr(0, equals), word.substr(equals + 1), true});
    } else {
      options.push_back({word, has_next ? command[++i] : "", false});
    }
  }
  return options;
}

// A typed flag without its value, as the preset spells it.
std::string spelled(const Preset& preset, std::string_view word) {
  const std::string name(word.substr(0, word.starts_with("--") ? word.find('=') : word.npos));
  return look_up(preset.flags, name, name);
}

// What looks like a placeholder in it is none.
std::string escaped(const std::string& word) {
  return substitute(word, [](std::string_view name) { return fmt::format("{{{{{}}}}}", name); });
}

Node environment_node(const Environment& env) {
  Node node = map_node({});
  for (const auto& [name, value] : env) {
    node.entries.push_back({name, {}, text_node(escaped(value))});
  }
  return node;
}

void put(Node& node, const char* key, Node value) {
  node.entries.push_back({key, {}, std::move(value)});
}
void put(Node& node, const char* key, std::int64_t value) {
  put(node, key, text_node(std::to_string(value)));
}

Node one_entry(std::string key, Node value) {
  return map_node({{std::move(key), {}, std::move(value)}});
}

std::string name_in(const std::string& path, const char* fallback) {
  std::set<std::string> names;
  return fresh_name(path.substr(path.find_last_of('/') + 1), fallback, names);
}

class Typed {
 public:
  explicit Typed(const TypedCommand& typed) : typed_(typed) {}

  Result<TypedConfig> config() {
    command_.push_back(typed_.program);
    read_args();
    WEIR_TRY(Node prompts, prompts_node());
    WEIR_TRY(Node engine, engine_node());
    Node gate = one_entry("budget", text_node(typed_.budget));
    WEIR_CHECK(add_number("repeats", gate));
    const std::string stem = model_.substr(0, model_.rfind('.'));
    Node backend = one_entry("args", list_node({}));  // they were typed
    Environment device_env = typed_.device_env, base_env;
    for (const auto& [name, value] : typed_.env) base_env.insert(device_env.extract(name));
    if (!device_env.empty()) put(backend, "env", environment_node(device_env));
    Node root = one_entry("version", text_node("1"));
    put(root, "engines", one_entry(name_in(typed_.program, "program"), std::move(engine)));
    put(root, "models",
        one_entry(model_.empty() ? "none" : name_in(stem, "model"),
                  text_node(model_.empty() ? "/dev/null" : model_)));
    put(root, "backends", one_entry(typed_.device, std::move(backend)));
    put(root, "prompts", std::move(prompts));
    put(root, "gate", std::move(gate));
    return TypedConfig{to_yaml(root), command_, is_total(),
                       typed_.preset != nullptr || !typed_.output.empty(), std::move(base_env)};
  }

 private:
  void read_args() {
    std::vector<Option> options;
    if (typed_.preset != nullptr) options = options_of(typed_.preset->command);
    std::set<std::string> given;
    const Arguments& args = typed_.args;
    for (std::size_t i = 0; i < args.size(); ++i) {
      const std::string& word = args[i];
      const std::string flag = typed_.preset == nullptr ? word : spelled(*typed_.preset, word);
      const Option* option = first_of(options, [&](const auto& one) { return one.flag == flag; });
      const std::size_t equals = word.starts_with("--") ? word.find('=') : word.npos;
      const bool joined = equals != word.npos;
      if (option == nullptr || (!option->value.empty() && !joined && i + 1 == args.size())) {
        add_literal(word);
      } else if (option->value.empty()) {
        given.insert(flag);
        command_.push_back(word);
      } else {
        const std::string value = joined ? word.substr(equals + 1) : args[++i];
        const std::string placeholder = option->placeholder();
        if (placeholder.empty()) continue;  // the preset's own value goes before it
        given.insert(flag);
        values_[placeholder] = value;
        if (placeholder == "model") model_ = value;
        add({word.substr(0, equals), option->value, joined});
      }
    }
    // A model that nobody named is the program's own affair.
    for (const Option& option : options) {
      if (!given.contains(option.flag) && option.placeholder() != "model") add(option);
    }
  }

  void add(const Option& option) {
    filled_.insert(option.placeholder());
    command_.push_back(option.joined ? option.flag + "=" + option.value : option.flag);
    if (!option.joined && !option.value.empty()) command_.push_back(option.value);
  }

  void add_literal(const std::string& word) {
    const bool model = model_.empty() && text::lower(word).ends_with(".gguf");
    if (model) model_ = word;
    command_.push_back(model ? "{model}" : escaped(word));
  }

  // What was typed for a placeholder; nothing where that was not.
  Result<std::optional<std::int64_t>> number(const std::string& placeholder) const {
    const std::string* typed = look_up(values_, placeholder);
    if (typed == nullptr) return std::nullopt;
    if (const auto value = text::to_int(*typed)) return *value;
    return fail(Code::usage, "{} takes one whole number here, not \"{}\"",
                text::join(text::split(placeholder, '_'), " "), text::printable(*typed));
  }

  Result<void> add_number(const char* placeholder, Node& node) const {
    WEIR_TRY(const auto value, number(placeholder));
    if (value) put(node, placeholder, *value);
    return {};
  }

  Result<Node> engine_node() const {
    Node engine = map_node({});
    if (typed_.preset != nullptr) {
      put(engine, "preset", text_node(typed_.preset->name));
    } else {
      put(engine, "output", text_node(typed_.output.empty() ? "generic" : typed_.output));
      if (typed_.output.empty()) put(engine, "metrics", map_node({}));  // probes count alone
    }
    put(engine, "command", texts_node(command_));
    if (!typed_.probes.empty()) put(engine, "probes", texts_node(typed_.probes));
    Node env = environment_node(typed_.env);
    // A prompt has to stand somewhere, and nobody knows which argument it is.
    if (is_total()) put(env, "WEIR_PROMPT", text_node("{prompt}"));
    if (!env.entries.empty()) put(engine, "env", std::move(env));
    Node allowed = map_node({});
    for (const std::string& op : typed_.cpu_ops) {
      if (names_op(op)) put(allowed, op.c_str(), text_node("as the base does"));
    }
    if (!allowed.entries.empty()) put(engine, "cpu_ops_allowed", std::move(allowed));
    WEIR_CHECK(add_number("threads", engine));
    WEIR_CHECK(add_number("seed", engine));
    return engine;
  }

  [[nodiscard]] bool is_total() const {
    return !filled_.contains("prompt") && !filled_.contains("tokens");
  }

  Result<Node> prompts_node() const {
    if (is_total()) return one_entry("run", one_entry("text", text_node("once")));
    const PromptSettings& own = typed_.preset->prompts.back();
    WEIR_TRY(auto tokens, number("tokens"));
    WEIR_TRY(auto before, number("prompt_tokens"));
    Node node;
    const char* name = "text";
    if (filled_.contains("prompt")) {
      node = one_entry("text", text_node(look_up(values_, "prompt", own.text.value_or(""))));
      if (!tokens) tokens = own.tokens;
      if (tokens) put(node, "tokens", *tokens);
    } else {
      const bool both = own.prompt_tokens.value_or(0) > 0;
      if (!tokens && (both || !before)) tokens = own.tokens;
      if (!before && both) before = own.prompt_tokens;
      const std::int64_t read = before.value_or(0), written = tokens.value_or(0);
      const auto lengths = [&](std::int64_t in, std::int64_t out) {
        Node prompt = one_entry("prompt_tokens", text_node(std::to_string(in)));
        put(prompt, "tokens", out);
        return prompt;
      };
      if (!both && read > 0 && written > 0) {  // as llama-bench does: two tests
        Node two = one_entry("prefill", lengths(read, 0));
        put(two, "decode", lengths(0, written));
        for (Entry& one : two.entries) WEIR_CHECK(add_number("depth", one.value));
        return two;
      }
      name = written == 0 ? "prefill" : read == 0 ? "decode" : "both";
      node = lengths(read, written);
    }
    WEIR_CHECK(add_number("depth", node));
    return one_entry(name, std::move(node));
  }

  const TypedCommand& typed_;
  Arguments command_;
  std::string model_;
  std::map<std::string, std::string> values_;  // typed, by placeholder
  std::set<std::string> filled_;               // placeholders that the command has
};

}  // namespace

Result<TypedConfig> config_of(const TypedCommand& typed) { return Typed(typed).config(); }

std::vector<std::string> devices_typed(const Preset& preset, const Arguments& args) {
  std::vector<std::string> spelt, typed;
  for (const std::string& word : args) spelt.push_back(spelled(preset, word));
  for (const Preset::Device& device : preset.devices) {
    const Arguments& own = device.extra.args;
    const auto pair = own.begin() + std::min<std::ptrdiff_t>(2, std::ssize(own));
    const bool stands = std::search(spelt.begin(), spelt.end(), own.begin(), pair) != spelt.end();
    if (!own.empty() && stands) typed.push_back(device.name);
  }
  return typed;
}

std::vector<std::string> devices_untyped(const Preset& preset) {
  if (!preset.unasked.empty()) return {preset.unasked};
  auto names = collect<std::string>(preset.devices, &Preset::Device::name);
  std::erase(names, "cpu");
  return names;
}

}  // namespace weir::config
