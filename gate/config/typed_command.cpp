// Turns a typed command line into a weir.yaml of one cell.
#include "gate/config/typed_command.hpp"

#include "gate/base/find.hpp"
#include "gate/config/parse.hpp"
#include "gate/config/placeholders.hpp"
#include "gate/config/starter.hpp"
#include "gate/unit/metric.hpp"

namespace weir::config {
namespace {

// An option of a preset's command: "-n {tokens}", "-o json", "--json" (no value),
// "--filter={prompt}" (joined).
struct Option {
  std::string flag, value;
  bool joined = false;
  // Returns the placeholder that is its whole value; "" if there is none.
  [[nodiscard]] std::string placeholder() const {
    const auto words = placeholders_in(value);
    return words.size() == 1 && value == "{" + words.front() + "}" ? words.front() : "";
  }
};

// Returns the option that begins at a word of a command: "-n 24" or "--tokens=24".
Option option_at(const Arguments& command, std::size_t at) {
  const std::string& word = command[at];
  const std::size_t equals = word.find('=');
  if (equals != std::string::npos) {
    return {word.substr(0, equals), word.substr(equals + 1), /*joined=*/true};
  }
  const bool has_value =
      at + 1 < command.size() && !command[at + 1].starts_with('-') && command[at + 1] != "{args}";
  return {word, has_value ? command[at + 1] : "", /*joined=*/false};
}

// Returns the options of a command, without its other arguments.
std::vector<Option> list_options(const Arguments& command) {
  std::vector<Option> options;
  for (std::size_t i = 1; i < command.size(); ++i) {
    if (!command[i].starts_with('-')) continue;  // a positional argument
    options.push_back(option_at(command, i));
    if (!options.back().joined && !options.back().value.empty()) ++i;
  }
  return options;
}

// Returns true for a flag that engines commonly take the number of tokens by.
bool is_token_flag(const std::string& flag) {
  constexpr std::string_view k_flags[] = {
      "-n",           "--tokens",    "--n-tokens",       "--num-tokens", "--max-tokens",
      "--new-tokens", "--n-predict", "--max-new-tokens", "--gen-tokens", "--n-gen"};
  std::string dashed = flag;
  std::ranges::replace(dashed, '_', '-');
  return holds(k_flags, dashed);
}

// Returns true if a word may be a number of tokens.
bool is_length(const std::string& word) {
  constexpr std::int64_t k_min_tokens = 2, k_max_tokens = 100'000;
  const auto number = text::to_int(word);
  return number && *number >= k_min_tokens && *number <= k_max_tokens;
}

// Returns a typed flag without its value, in the spelling of the preset's command.
std::string canonical_flag(const Preset& preset, std::string_view word) {
  const std::string name(word.substr(0, word.starts_with("--") ? word.find('=') : word.npos));
  return look_up(preset.flags, name, name);
}

// Returns `word` with "{name}" written as "{{name}}", so that it stands for the text itself.
std::string escape_placeholders(const std::string& word) {
  return substitute(word, [](std::string_view name) { return fmt::format("{{{{{}}}}}", name); });
}

Node environment_node(const Environment& env) {
  Node node = map_node({});
  for (const auto& [name, value] : env) {
    node.entries.push_back({name, {}, text_node(escape_placeholders(value))});
  }
  return node;
}

void put(Node& node, const char* key, Node value) {
  node.entries.push_back({key, {}, std::move(value)});
}
void put(Node& node, const char* key, std::int64_t value) {
  put(node, key, text_node(std::to_string(value)));
}

Node single_entry_map(std::string key, Node value) {
  return map_node({{std::move(key), {}, std::move(value)}});
}

std::string name_from_path(const std::string& path, const char* fallback) {
  std::set<std::string> names;
  return fresh_name(path.substr(path.find_last_of('/') + 1), fallback, names);
}

// Returns the name of an engine: the script's where the program only runs one, else the program's.
std::string engine_name(const TypedCommand& typed) {
  constexpr std::string_view k_interpreters[] = {"python", "node", "bash", "sh",
                                                 "ruby",   "perl", "deno", "bun"};
  std::string program = typed.program.substr(typed.program.find_last_of('/') + 1);
  program.resize(program.find_last_not_of("0123456789.") + 1);
  if (holds(k_interpreters, program)) {
    for (std::size_t i = 0; i < typed.args.size(); ++i) {
      const std::string& word = typed.args[i];
      const bool is_module = program == "python" && word == "-m" && i + 1 < typed.args.size();
      if (is_module) return name_from_path(typed.args[i + 1], "program");
      if (!word.starts_with('-')) return name_from_path(word, "program");
      if (word == "-c" || word == "-e") break;  // a program of one line
    }
  }
  return name_from_path(typed.program, "program");
}

// Writes the weir.yaml of one typed command. config() may be called once.
class ConfigWriter {
 public:
  explicit ConfigWriter(const TypedCommand& typed) : typed_(typed) {}

  Result<TypedConfig> config() {
    command_.push_back(typed_.program);
    read_args();
    WEIR_TRY(const Arguments base_command, add_own_args());
    WEIR_TRY(Node prompts, prompts_node());
    WEIR_TRY(Node engine, engine_node());
    Node gate = single_entry_map("budget", text_node(typed_.budget));
    WEIR_CHECK(add_number("repeats", gate));
    const std::string stem = model_.substr(0, model_.rfind('.'));
    Node backend = single_entry_map("args", list_node({}));  // the typed ones replace the preset's
    Environment device_env = typed_.device_env, base_env;
    for (const auto& [name, value] : typed_.env) base_env.insert(device_env.extract(name));
    if (!device_env.empty()) put(backend, "env", environment_node(device_env));
    if (!typed_.twin.empty()) {
      put(backend, "device", text_node(typed_.device));
      put(backend, "twin", text_node(typed_.twin));
    }
    Node root = single_entry_map("version", text_node("1"));
    put(root, "engines", single_entry_map(engine_name(typed_), std::move(engine)));
    const std::string model_name = model_.empty() ? "none" : name_from_path(stem, "model");
    const std::string model_path = model_.empty() ? std::string(k_no_model) : model_;
    put(root, "models", single_entry_map(model_name, text_node(model_path)));
    const std::string& backend_name = typed_.twin.empty() ? typed_.device : typed_.twin;
    put(root, "backends", single_entry_map(backend_name, std::move(backend)));
    put(root, "prompts", std::move(prompts));
    put(root, "gate", std::move(gate));
    return TypedConfig{
        to_yaml(root),
        command_,
        base_command,
        is_total() && !typed_.probes.empty(),
        typed_.preset != nullptr || !typed_.output.empty() || !typed_.metrics.empty(),
        std::move(base_env),
        token_words_,
        filled_.contains("tokens") ? "" : likely_tokens_,
        typed_.probes,
        typed_.device_env};
  }

 private:
  // Fills command_ from the typed arguments. Values that the preset has a placeholder for go into
  // values_; options of the preset that were not typed are added.
  void read_args() {
    std::vector<Option> options;
    if (typed_.preset != nullptr) options = list_options(typed_.preset->command);
    std::set<std::string> used_flags;
    const Arguments& args = typed_.args;
    for (std::size_t i = 0; i < args.size(); ++i) {
      const std::string& word = args[i];
      if (typed_.has_token_flags && typed_.preset == nullptr) {
        if (const std::size_t taken = add_tokens(i); taken > 0) {
          i += taken - 1;
          continue;
        }
      }
      const std::string flag =
          typed_.preset == nullptr ? word : canonical_flag(*typed_.preset, word);
      const Option* option =
          find_first(options, [&](const auto& candidate) { return candidate.flag == flag; });
      const std::size_t equals = word.starts_with("--") ? word.find('=') : word.npos;
      const bool joined = equals != word.npos;
      if (option == nullptr || (!option->value.empty() && !joined && i + 1 == args.size())) {
        add_literal(word);
      } else if (option->value.empty()) {
        used_flags.insert(flag);
        command_.push_back(word);
      } else {
        if (!joined) ++i;
        const std::string value = joined ? word.substr(equals + 1) : args[i];
        const std::string placeholder = option->placeholder();
        if (placeholder.empty()) {  // the preset's own value goes before it
          if (!typed_.is_preset_guessed) continue;
          add_literal(word);
          if (!joined) add_literal(value);
          continue;
        }
        used_flags.insert(flag);
        values_[placeholder] = value;
        if (placeholder == "model") model_ = value;
        add({word.substr(0, equals), option->value, joined});
      }
    }
    if (typed_.is_preset_guessed) return;
    // Without a typed model, the program chooses its own.
    for (const Option& option : options) {
      if (!used_flags.contains(option.flag) && option.placeholder() != "model") add(option);
    }
  }

  // Adds the candidate's own arguments to command_, and returns the base's command. Fails with
  // Code::usage if the preset sets one of them for both.
  Result<Arguments> add_own_args() {
    Arguments base = command_;
    for (const bool is_base : {true, false}) {
      for (const std::string& word : is_base ? typed_.base_args : typed_.candidate_args) {
        if (typed_.preset != nullptr && word.starts_with('-')) {
          const std::string flag = canonical_flag(*typed_.preset, word);
          const auto options = list_options(typed_.preset->command);
          if (std::ranges::count(options, flag, &Option::flag) > 0) {
            return fail(Code::usage, "{}: the preset {} sets {} for both programs",
                        is_base ? "--base-args" : "--candidate-args", typed_.preset->name,
                        text::printable(flag));
          }
        }
        (is_base ? base : command_).push_back(escape_placeholders(word));
      }
    }
    return base;
  }

  // Adds the arguments from `at` on that give the number of tokens, with a placeholder for it.
  // Returns how many these are. A number that belongs to no flag may be it, too: it is only noted.
  std::size_t add_tokens(std::size_t at) {
    const Arguments& args = typed_.args;
    const std::string& word = args[at];
    if (!typed_.tokens.empty()) {
      if (word != typed_.tokens || !token_words_.empty()) return 0;
      filled_.insert("tokens");
      values_["tokens"] = word;
      token_words_ = word;
      command_.emplace_back("{tokens}");
      return 1;
    }
    const Option option = option_at(args, at);
    if (token_words_.empty() && is_token_flag(option.flag) && is_length(option.value)) {
      add({option.flag, "{tokens}", option.joined});
      values_["tokens"] = option.value;
      token_words_ = option.joined ? word : word + " " + option.value;
      return option.joined ? 1 : 2;
    }
    const bool is_value = at > 0 && args[at - 1].starts_with('-');
    if (!is_value && is_length(word)) likely_tokens_ = word;
    return 0;
  }

  void add(const Option& option) {
    filled_.insert(option.placeholder());
    command_.push_back(option.joined ? option.flag + "=" + option.value : option.flag);
    if (!option.joined && !option.value.empty()) command_.push_back(option.value);
  }

  void add_literal(const std::string& word) {
    const bool is_model = model_.empty() && text::lower(word).ends_with(".gguf");
    if (is_model) model_ = word;
    command_.push_back(is_model ? "{model}" : escape_placeholders(word));
  }

  // Returns the typed value of a placeholder as a number; nothing if there is none. Fails with
  // Code::usage if it is no integer.
  Result<std::optional<std::int64_t>> typed_number(const std::string& placeholder) const {
    const std::string* typed = look_up(values_, placeholder);
    if (typed == nullptr) return std::nullopt;
    if (const auto value = text::to_int(*typed)) return *value;
    return fail(Code::usage, "{} takes one whole number here, not \"{}\"",
                text::join(text::split(placeholder, '_'), " "), text::printable(*typed));
  }

  Result<void> add_number(const char* placeholder, Node& node) const {
    WEIR_TRY(const auto value, typed_number(placeholder));
    if (value) put(node, placeholder, *value);
    return {};
  }

  [[nodiscard]] Node metrics_node() const {
    Node metrics = map_node({});
    for (const PrintedMetric& metric : typed_.metrics) {
      put(metrics, metric.name.c_str(), single_entry_map("regex", text_node(metric.regex)));
    }
    return metrics;
  }

  // Returns the entry of `engines`.
  Result<Node> engine_node() const {
    Node engine = map_node({});
    if (typed_.preset != nullptr) {
      put(engine, "preset", text_node(typed_.preset->name));
      const bool has_own_output =
          typed_.is_preset_guessed && typed_.output != typed_.preset->output;
      if (has_own_output) put(engine, "output", text_node(typed_.output));
    } else {
      put(engine, "output", text_node(typed_.output.empty() ? "generic" : typed_.output));
      // Without metrics, probes count alone.
      if (typed_.output.empty()) put(engine, "metrics", metrics_node());
    }
    put(engine, "command", texts_node(command_));
    if (!typed_.probes.empty()) put(engine, "probes", texts_node(typed_.probes));
    Node env = environment_node(typed_.env);
    // weir.yaml needs {prompt} somewhere, but no argument is known to be the prompt.
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

  // Returns true if the command takes neither a prompt nor a length, so that counts are totals.
  [[nodiscard]] bool is_total() const {
    return !filled_.contains("prompt") && !filled_.contains("tokens");
  }

  // Returns the section `prompts`: one prompt, or "prefill" and "decode" if both lengths were typed
  // for an engine that measures them separately.
  Result<Node> prompts_node() const {
    if (is_total()) return single_entry_map("run", single_entry_map("text", text_node("once")));
    WEIR_TRY(auto tokens, typed_number("tokens"));
    if (typed_.preset == nullptr) {
      return single_entry_map("decode", lengths_node(0, tokens.value_or(0)));
    }
    const PromptSettings& defaults = typed_.preset->prompts.back();
    WEIR_TRY(auto prompt_tokens, typed_number("prompt_tokens"));
    if (filled_.contains("prompt")) {
      const std::string text = look_up(values_, "prompt", defaults.text.value_or(""));
      Node prompt = single_entry_map("text", text_node(text));
      if (!tokens) tokens = defaults.tokens;
      if (tokens) put(prompt, "tokens", *tokens);
      WEIR_CHECK(add_number("depth", prompt));
      return single_entry_map("text", std::move(prompt));
    }
    const bool takes_both = defaults.prompt_tokens.value_or(0) > 0;
    if (!tokens && (takes_both || !prompt_tokens)) tokens = defaults.tokens;
    if (!prompt_tokens && takes_both) prompt_tokens = defaults.prompt_tokens;
    const std::int64_t prefill = prompt_tokens.value_or(0), decode = tokens.value_or(0);
    if (!takes_both && prefill > 0 && decode > 0) {  // two tests, as llama-bench runs them
      Node prompts = single_entry_map("prefill", lengths_node(prefill, 0));
      put(prompts, "decode", lengths_node(0, decode));
      for (Entry& prompt : prompts.entries) WEIR_CHECK(add_number("depth", prompt.value));
      return prompts;
    }
    const char* name = "both";
    if (prefill == 0) name = "decode";
    if (decode == 0) name = "prefill";
    Node prompt = lengths_node(prefill, decode);
    WEIR_CHECK(add_number("depth", prompt));
    return single_entry_map(name, std::move(prompt));
  }

  static Node lengths_node(std::int64_t prompt_tokens, std::int64_t tokens) {
    Node prompt = single_entry_map("prompt_tokens", text_node(std::to_string(prompt_tokens)));
    put(prompt, "tokens", tokens);
    return prompt;
  }

  const TypedCommand& typed_;
  Arguments command_;
  std::string model_;
  std::map<std::string, std::string> values_;  // typed, by placeholder
  std::set<std::string> filled_;               // placeholders that the command has
  std::string token_words_, likely_tokens_;    // as in TypedConfig
};

}  // namespace

Result<TypedConfig> config_of(const TypedCommand& typed) { return ConfigWriter(typed).config(); }

// Returns the devices that typed arguments choose by the preset's rules: "-ngl 0" chooses the CPU.
std::vector<std::string> typed_devices(const Preset& preset, const Arguments& args) {
  std::vector<std::string> words, devices;
  for (const std::string& word : args) words.push_back(canonical_flag(preset, word));
  for (const Preset::Device& device : preset.devices) {
    // The first option of a device, with its value, chooses it.
    const Arguments& device_args = device.extra.args;
    const auto option_end =
        device_args.begin() + std::min<std::ptrdiff_t>(2, std::ssize(device_args));
    const bool is_typed =
        std::search(words.begin(), words.end(), device_args.begin(), option_end) != words.end();
    if (!device_args.empty() && is_typed) devices.push_back(device.name);
  }
  return devices;
}

std::vector<std::string> default_devices(const Preset& preset) {
  if (!preset.unasked.empty()) return {preset.unasked};
  auto names = collect<std::string>(preset.devices, &Preset::Device::name);
  std::erase(names, "cpu");
  return names;
}

}  // namespace weir::config
