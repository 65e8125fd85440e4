// Inside of parse_settings: YAML as a tree with places, typed fields with problems, and one
// function for each section of weir.yaml. Not for other modules. Pure.
//
// The text is hostile: bytes, depth and nodes after expanding aliases are limited. Exceptions of
// yaml-cpp end in yaml.cpp.
#pragma once

#include <cstddef>
#include <deque>
#include <type_traits>

#include "gate/base/find.hpp"
#include "gate/base/json_fwd.hpp"
#include "gate/base/text.hpp"
#include "gate/config/keys.hpp"

namespace weir::config {

// One-based line and column, as editors count.
struct TextPosition {
  int line = 1;
  int column = 1;
  friend auto operator<=>(const TextPosition&, const TextPosition&) = default;
};

struct Entry;

// One YAML value. A quoted scalar is text even where it looks like a number or nothing.
struct Node {
  enum class Kind { null, scalar, list, map };
  Kind kind = Kind::null;
  TextPosition position;
  bool quoted = false;
  std::string text;            // scalar; where keys are listed, the path of a mapping
  std::vector<Node> items;     // list
  std::vector<Entry> entries;  // map, in the order written; keys are unique

  // The value under `key`, or nullptr.
  [[nodiscard]] const Node* find(std::string_view key) const;
  [[nodiscard]] Node* find(std::string_view key);
};

struct Entry {
  std::string key;
  TextPosition key_position;
  Node value;
};

struct YamlLimits {
  std::size_t bytes = std::size_t{1} << 20;
  std::size_t depth = 32;
  std::size_t nodes = 100'000;                    // after aliases are expanded
  std::size_t text_bytes = std::size_t{4} << 20;  // all scalars, after aliases are expanded
};

// Fails with Code::config, the message begins "file:line:column: ". Several documents, duplicate
// keys, tags, NUL and invalid UTF-8 are errors. No text at all is Kind::null.
[[nodiscard]] Result<Node> parse_yaml(std::string_view text, std::string_view file,
                                      const YamlLimits& limits = {});

[[nodiscard]] Node map_node(std::vector<Entry> entries, TextPosition position = {});
[[nodiscard]] Node text_node(std::string text, TextPosition position = {});
[[nodiscard]] Node list_node(std::vector<Node> items, TextPosition position = {});
[[nodiscard]] Node texts_node(std::span<const std::string> texts);
// The tree as JSON, with scalars as YAML's core schema reads them.
[[nodiscard]] Json node_to_json(const Node& node);
// The tree as YAML that parses to it, but for places and comments.
[[nodiscard]] std::string to_yaml(const Node& node);

// Collects the keys that the parsing functions declare, while they parse an empty mapping.
class KeyList {
 public:
  // Returns the node to parse in the key's place: a mapping if it may have keys of its own, else
  // null.
  const Node* add(KeyInfo key);
  [[nodiscard]] std::vector<KeyInfo> take() { return std::move(keys_); }

 private:
  std::vector<KeyInfo> keys_;
  std::deque<Node> nodes_;
};

// Problems of a text, each with its place. Parsing goes on after a problem, so that one run shows
// all of them.
class Problems {
 public:
  explicit Problems(std::string file) : file_(std::move(file)) {}
  // Returns std::nullopt, so that a function can report a problem and return nothing.
  std::nullopt_t add(TextPosition position, std::string message);
  template <class... Args>
  requires(sizeof...(Args) > 0) auto add(TextPosition position, fmt::format_string<Args...> format,
                                         Args&&... args) {
    return add(position, fmt::format(format, std::forward<Args>(args)...));
  }
  // "limits must be a list, not a mapping".
  std::nullopt_t report_expected(const Node& node, std::string_view what, std::string_view wanted);
  // Adds "unknown engine "x" (did you mean …)" and the list of `names`.
  void report_unknown(TextPosition position, std::string_view what, std::string_view word,
                      std::span<const std::string> names);
  // Reports an expression that is none (pattern.hpp), or one too many: compiling them takes time.
  void check_expression(TextPosition position, std::string_view expression);
  // "weir.yaml:3:5", or k_command_line, for messages that are made later.
  [[nodiscard]] std::string source(TextPosition position) const;
  [[nodiscard]] bool any() const { return !entries_.empty(); }
  // All of them, mistyped keys first, then in the order of the text; the first eight in full.
  // Requires any().
  [[nodiscard]] Error error() const;

  // From now on keys are listed and problems are of no interest: there is no text.
  void list_into(KeyList* keys) { keys_ = keys; }
  [[nodiscard]] KeyList* lists() const { return keys_; }

 private:
  KeyList* keys_ = nullptr;
  std::string file_;
  // Aliases make a problem of every few bytes, so that only this many messages are stored.
  static constexpr std::size_t k_max_stored = 200;
  [[nodiscard]] bool is_full() const { return entries_.size() >= k_max_stored; }
  std::vector<std::pair<TextPosition, std::string>> entries_;
  std::size_t more_ = 0;
  std::size_t expressions_ = 0;
};

// "a list", "a mapping", "nothing", "\"text\"".
[[nodiscard]] std::string describe(const Node& node);
// "\n  known here: a, b".
[[nodiscard]] std::string choices_text(std::span<const std::string> names);

// Says for messages which names profile::valid_name() takes.
inline constexpr std::string_view k_name_rule =
    "letters, digits, \".\", \"_\" and \"-\", at most 64, a letter or digit first";

// Returns true if `name` can be the name of an environment variable.
[[nodiscard]] bool is_variable_name(std::string_view name);

// Types of values. Each reads a node. If the node does not fit, it adds a problem and returns
// nothing, or the part that it could read. `what` names the field in messages; form() describes
// the values that fit.

// A type that is read by a function.
template <class Value>
struct FieldType {
  Value (*read)(const Node& node, std::string_view what, Problems& problems);
  const char *type, *schema;
  Value parse(const Node& node, std::string_view what, Problems& problems) const {
    return read(node, what, problems);
  }
  [[nodiscard]] Form form() const { return {type, schema}; }
};

std::optional<std::string> read_text(const Node& node, std::string_view what, Problems& problems);
std::optional<bool> read_boolean(const Node& node, std::string_view what, Problems& problems);
// A list of texts, or one text.
std::vector<std::string> read_texts(const Node& node, std::string_view what, Problems& problems);
// The same of names, as cells have them: such text goes into scripts.
std::vector<std::string> read_names(const Node& node, std::string_view what, Problems& problems);
// A list of arguments; a single text is refused, since no shell splits it. Placeholders are
// checked.
Arguments read_arguments(const Node& node, std::string_view what, Problems& problems);
Environment read_environment(const Node& node, std::string_view what, Problems& problems);
// Flags of a command and a value for each.
std::map<std::string, std::string> read_replaced(const Node& node, std::string_view what,
                                                 Problems& problems);

inline constexpr FieldType k_text{read_text, "text",
                                  R"("type": ["string", "number", "boolean"], "minLength": 1)"};
inline constexpr FieldType k_boolean{read_boolean, "boolean", R"("type": "boolean")"};
inline constexpr FieldType k_text_list{
    read_texts, "text, list",
    R"("anyOf": [{"type": ["string", "number", "boolean"], "minLength": 1}, )"
    R"({"type": "array", "items": {"type": ["string", "number", "boolean"], "minLength": 1}}])"};
inline constexpr FieldType k_name_list{
    read_names, "text, list",
    R"("anyOf": [{"type": ["string", "number", "boolean"], "pattern": "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"}, )"
    R"({"type": "array", "items": {"type": ["string", "number", "boolean"], "pattern": "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"}}])"};
inline constexpr FieldType k_arguments{
    read_arguments, "list",
    R"("type": "array", "items": {"type": ["string", "number", "boolean"]})"};
inline constexpr FieldType k_environment{
    read_environment, "object",
    R"("type": "object", "additionalProperties": false, "patternProperties": )"
    R"({"^[A-Za-z_][A-Za-z0-9_]*$": {"type": ["string", "number", "boolean", "null"]}})"};
inline constexpr FieldType k_replaced{
    read_replaced, "object",
    R"("type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]})"};

struct WholeNumber {
  std::int64_t low, high;
  std::optional<std::int64_t> parse(const Node& node, std::string_view what,
                                    Problems& problems) const;
  [[nodiscard]] Form form() const;
};
// A number above 0 and below 0.5.
struct Share {
  std::optional<double> parse(const Node& node, std::string_view what, Problems& problems) const;
  [[nodiscard]] Form form() const;
};
// Seconds: more than none and at most `most`, shown as `max_seconds_text`.
struct Duration {
  double max_seconds = 24 * 3600;
  const char* max_seconds_text = "24h";
  std::optional<double> parse(const Node& node, std::string_view what, Problems& problems) const;
  [[nodiscard]] Form form() const;
  [[nodiscard]] static std::string show(double seconds) { return fmt::format("{}s", seconds); }
};
// "5%" is a share of the baseline; a bare number is in the metric's base unit, "100MB" in its own.
struct AmountType {
  bool may_be_relative;
  std::optional<verdict::Amount> parse(const Node& node, std::string_view what,
                                       Problems& problems) const;
  [[nodiscard]] Form form() const;
};
// One of `names`.
std::optional<std::string> read_choice(const Node& node, std::string_view what,
                                       std::span<const std::string> names, Problems& problems);
struct OneName {
  std::span<const std::string> names;
  std::optional<std::string> parse(const Node& node, std::string_view what,
                                   Problems& problems) const {
    return read_choice(node, what, names, problems);
  }
  [[nodiscard]] Form form() const { return choice_form(names, true); }
};
// One of the names in `choices`, read as the value that it stands for.
template <class Value>
struct OneOf {
  std::span<const Name<Value>> choices;
  std::optional<Value> parse(const Node& node, std::string_view what, Problems& problems) const {
    const auto chosen = read_choice(node, what, names(), problems);
    return chosen ? value_of(choices, *chosen) : std::nullopt;
  }
  [[nodiscard]] std::vector<std::string> names() const {
    return collect<std::string>(choices, &Name<Value>::second);
  }
  [[nodiscard]] Form form() const { return choice_form(names(), false); }
  [[nodiscard]] std::string show(Value value) const {
    const auto* match =
        find_first(choices, [&](const auto& choice) { return choice.first == value; });
    return match == nullptr ? "" : std::string(match->second);
  }
};
template <class Choices>
OneOf(const Choices&) -> OneOf<typename std::ranges::range_value_t<Choices>::first_type>;

// A key as its parser declares it: its name, its meaning in a sentence or two, an example as YAML,
// and its default in words, if that is not the value that the setting has already.
struct Key {
  const char* name;
  const char* meaning = "";
  const char* example = "";
  const char* shown_default = "";
};

// One mapping. Its parser takes every key that it allows once; the destructor complains about all
// other keys. An empty value ("limits:" alone) counts as absent. While keys are listed, each taken
// key goes into the list, and the mapping holds only mappings whose own keys are to be listed.
class Fields {
 public:
  // A node that is no mapping is a problem, and then has no fields. `what`: "engine \"x\"".
  Fields(const Node& node, std::string what, Problems& problems);
  Fields(const Fields&) = delete;
  ~Fields() { finish(); }
  // The value under `key`, or nullptr when it is absent or nothing.
  const Node* find(const Key& key, const Form& form = {}) { return find(key, form, "", false); }
  // The same, and a problem when it is absent.
  const Node* require(const Key& key, const Form& form = {});
  // Reads the value under `key`, if there is one. `into` stays unchanged if `type` returns nothing.
  template <class Value, class Type>
  const Node* read(const Key& key, Value& into, const Type& type) {
    return assign(find(key, type.form(), default_text(into, type), false), key, into, type);
  }
  template <class Value, class Type>
  const Node* require(const Key& key, Value& into, const Type& type) {
    return assign(require(key, type.form()), key, into, type);
  }
  // Adds the problem that `key` is absent.
  void lacks(const char* key);
  // Until it is called with "", each key that is present is not read but a problem: `"KEY" WHY`.
  void refuse(const char* why) { refusal_ = why; }
  // Complains about unknown keys now, for a caller that asks for problems before the destructor.
  void finish();
  [[nodiscard]] bool lists_keys() const { return problems_->lists() != nullptr; }

 private:
  const Node* find(const Key& key, const Form& form, const std::string& shown_default, bool needed);
  template <class Value, class Type>
  const Node* assign(const Node* node, const Key& key, Value& into, const Type& type) {
    if (node == nullptr) return node;
    auto result = type.parse(*node, key.name, *problems_);
    if constexpr (std::is_same_v<decltype(result), std::optional<Value>>) {
      if (result) into = *std::move(result);
    } else {
      into = std::move(result);
    }
    return node;
  }
  // Returns the default value as YAML.
  template <class Value, class Type>
  static std::string default_text(const Value& value, const Type& type) {
    if constexpr (requires { type.show(value); }) {
      return type.show(value);
    } else if constexpr (std::is_arithmetic_v<Value>) {
      return fmt::format("{}", value);
    } else {
      return "";
    }
  }

  const Node* node_;
  std::string what_;
  Problems* problems_;
  std::vector<std::string> known_;
  std::string_view refusal_;
  bool is_map_ = false;
};

// Most entries that a section may have; larger ones make a matrix that nobody runs.
inline constexpr std::size_t k_max_entries = 1000;

struct Parsing {
  const Supported& supported;
  Problems problems;
  Settings settings;
  std::vector<std::pair<std::string, const Node*>> cpu_ops{};  // by engine, read at the end
  std::vector<std::string> limitable{};  // names that a limit may use, filled by parse_limits()
  std::size_t limit_patterns = 0;        // of all limits
};

// Returns true if `node` is a list of at most k_max_entries; else adds a problem that shows
// `example`.
[[nodiscard]] bool is_entries(const Node& node, std::string_view what, std::string_view example,
                              Problems& problems);

// Complains about names that are no names or not unique ignoring case, and about too many.
void check_names(const Node& section, const std::string& what, Problems& problems);

// Notes on what presets bring but a file does not use, a line each, for people.
struct PresetNotes {
  std::vector<std::string> left_out;
  std::vector<std::string> replaced;  // parts of presets that the file's own replace
};
// Fills `root`, a whole weir.yaml, with the keys of its presets. Keys of the file win, in mappings
// of an engine (env, counted_env, cpu_ops_allowed …) key by key; an empty value removes a preset's
// key. Missing sections (models, backends, prompts) come from the presets. Models and backends that
// a preset's engine cannot use are excluded, unless there is a matrix.include.
PresetNotes expand_presets(Node& root, Problems& problems);
// A whole weir.yaml, after expand_presets().
void parse_root(const Node& root, Parsing& parsing);
void parse_engines(const Node& node, Parsing& parsing);
// Returns true if `op` can be a key of cpu_ops_allowed: not empty, no pattern, no spaces.
[[nodiscard]] bool names_op(std::string_view op);
// `cpu_ops_allowed` of each engine, once all names are known.
void parse_cpu_ops(Parsing& parsing);
void parse_models(const Node& node, Parsing& parsing);
void parse_backends(const Node& node, Parsing& parsing);
void parse_variants(const Node& node, Parsing& parsing);
void parse_prompts(const Node& node, Parsing& parsing);
void parse_matrix(const Node& node, Parsing& parsing);
void parse_limits(const Node& node, Parsing& parsing);
void parse_gate(const Node& node, Parsing& parsing);
void parse_explain(const Node& node, Parsing& parsing);
// Reads the keys of an inference server if `kind` says that the engine is one; else complains about
// each such key.
void parse_server(Fields& fields, TextPosition position, EngineSettings& engine, Parsing& parsing);
// Complains about keys that do not go with a server. Call it when the engine is read.
void check_server(const Node& node, const EngineSettings& engine, Problems& problems);
inline constexpr WholeNumber k_threads{1, 4096};
inline constexpr Key k_threads_key{"threads", "Value of {threads}.", "8", "physical cores"};
inline constexpr Key k_private{"private", "Show an alias in reports.", "true"};
// Reads `env`. A name without a value passes weir's own variable on.
void parse_environment(Fields& fields, Extra& extra, Problems& problems);
void parse_seed(Fields& fields, Extra& extra);
// Reads args, env and seed; with `threads`, the number of threads too.
void parse_extra(Fields& fields, Extra& extra, Parsing& parsing, bool threads = true);
// The same, and `engines: {NAME: {…}}`.
void parse_per_engine(Fields& fields, PerEngine& extra, Parsing& parsing, bool threads = true);
// Complains about "{args}" outside of an engine's command.
void check_args(const Node* node, const Arguments& args, Problems& problems);
// Reads globs over the names of engines, models, backends, prompts and variants. Complains about
// one that matches no name ("unknown backend …").
void parse_match(Fields& fields, verdict::Match& match, Parsing& parsing);
// The same, in the mapping that `key` names.
void parse_match_key(Fields& fields, const Key& key, verdict::Match& match, Parsing& parsing);

template <class Section>
[[nodiscard]] std::vector<std::string> section_names(const std::vector<Section>& sections) {
  return collect<std::string>(sections, &Section::name);
}
[[nodiscard]] std::vector<std::string> key_names(const Node& map);
// Returns true if `glob` matches one of `names`.
[[nodiscard]] bool matches_any(std::string_view glob, std::span<const std::string> names);

}  // namespace weir::config
