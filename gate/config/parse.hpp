// Inside of parse_settings: YAML as a tree with places, typed fields out of it with what is wrong
// with them, and one function for each section of weir.yaml. Not for other modules. Pure.
//
// The text is hostile: limits hold on bytes, depth and nodes after aliases are expanded, and every
// exception of yaml-cpp, which only yaml.cpp knows, ends there.
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
struct Place {
  int line = 1;
  int column = 1;
  friend auto operator<=>(const Place&, const Place&) = default;
};

struct Entry;

// One YAML value. A quoted scalar is text even where it looks like a number or nothing.
struct Node {
  enum class Kind { null, scalar, list, map };
  Kind kind = Kind::null;
  Place at;
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
  Place key_at;
  Node value;
};

struct YamlLimits {
  std::size_t bytes = std::size_t{1} << 20;
  std::size_t depth = 32;
  std::size_t nodes = 100'000;                    // after aliases are expanded
  std::size_t text_bytes = std::size_t{4} << 20;  // of all scalars, after aliases are expanded
};

// Fails with Code::config, the message begins "file:line:column: ". Several documents, duplicate
// keys, tags, NUL and invalid UTF-8 are errors. No text at all is Kind::null.
[[nodiscard]] Result<Node> parse_yaml(std::string_view text, std::string_view file,
                                      const YamlLimits& limits = {});

[[nodiscard]] Node map_node(std::vector<Entry> entries, Place at = {});
[[nodiscard]] Node text_node(std::string text, Place at = {});
[[nodiscard]] Node list_node(std::vector<Node> items, Place at = {});
[[nodiscard]] Node texts_node(std::span<const std::string> texts);
// As an editor's YAML mode reads it.
[[nodiscard]] Json json_of(const Node& node);
// The tree as YAML that parses to it, but for places and comments.
[[nodiscard]] std::string to_yaml(const Node& node);

// The keys that parsing an empty mapping asks for, one after the other.
class KeyList {
 public:
  // Answers what to parse in its place: a mapping that may have keys of its own, else null.
  const Node* add(KeyInfo key);
  [[nodiscard]] std::vector<KeyInfo> take() { return std::move(keys_); }

 private:
  std::vector<KeyInfo> keys_;
  std::deque<Node> nodes_;
};

// What is wrong with a text, each with its place: parsing goes on after a problem, so that one run
// shows all of them.
class Problems {
 public:
  explicit Problems(std::string file) : file_(std::move(file)) {}
  // Nothing comes of it: std::nullopt, for who returns that.
  std::nullopt_t add(Place at, std::string message);
  template <class... Args>
  requires(sizeof...(Args) > 0) auto add(Place at, fmt::format_string<Args...> format,
                                         Args&&... args) {
    return add(at, fmt::format(format, std::forward<Args>(args)...));
  }
  // "limits must be a list, not a mapping".
  std::nullopt_t expected(const Node& node, std::string_view what, std::string_view wanted);
  // "unknown engine "x" (did you mean …)", and what is known.
  void unknown(Place at, std::string_view what, std::string_view word,
               std::span<const std::string> names);
  // "weir.yaml:3:5", for messages that are made later.
  [[nodiscard]] std::string source(Place at) const;
  [[nodiscard]] bool any() const { return !found_.empty(); }
  // All of them in the order of the text, the first eight in full. Requires any().
  [[nodiscard]] Error error() const;

  // From now on keys are listed and problems are of no interest: there is no text.
  void list_into(KeyList* keys) { keys_ = keys; }
  [[nodiscard]] KeyList* lists() const { return keys_; }

 private:
  KeyList* keys_ = nullptr;
  std::string file_;
  std::vector<std::pair<Place, std::string>> found_;
};

// "a list", "a mapping", "nothing", "\"text\"".
[[nodiscard]] std::string describe(const Node& node);
// "\n  known here: a, b".
[[nodiscard]] std::string known_here(std::span<const std::string> names);

// Of an environment variable.
[[nodiscard]] bool variable_name(std::string_view name);

// Types of values. Each reads a node, or adds a problem and answers nothing (or what it could
// read) where it does not fit; `what` names the field in messages. form() is what fits.

// By a function alone.
template <class Value>
struct Plain {
  Value (*read)(const Node& node, std::string_view what, Problems& problems);
  const char *type, *schema;
  Value operator()(const Node& node, std::string_view what, Problems& problems) const {
    return read(node, what, problems);
  }
  [[nodiscard]] Form form() const { return {type, schema}; }
};

std::optional<std::string> read_text(const Node& node, std::string_view what, Problems& problems);
std::optional<bool> read_boolean(const Node& node, std::string_view what, Problems& problems);
// A list of texts, or one text.
std::vector<std::string> read_texts(const Node& node, std::string_view what, Problems& problems);
// A list of arguments; a single text is refused, since no shell splits it. Placeholders are
// checked.
Arguments read_arguments(const Node& node, std::string_view what, Problems& problems);
Environment read_environment(const Node& node, std::string_view what, Problems& problems);
// Flags of a command and a value for each.
std::map<std::string, std::string> read_replaced(const Node& node, std::string_view what,
                                                 Problems& problems);

inline constexpr Plain k_text{read_text, "text",
                              R"("type": ["string", "number", "boolean"], "minLength": 1)"};
inline constexpr Plain k_boolean{read_boolean, "boolean", R"("type": "boolean")"};
inline constexpr Plain k_text_list{
    read_texts, "text, list",
    R"("anyOf": [{"type": ["string", "number", "boolean"], "minLength": 1}, )"
    R"({"type": "array", "items": {"type": ["string", "number", "boolean"], "minLength": 1}}])"};
inline constexpr Plain k_arguments{
    read_arguments, "list",
    R"("type": "array", "items": {"type": ["string", "number", "boolean"]})"};
inline constexpr Plain k_environment{
    read_environment, "object",
    R"("type": "object", "additionalProperties": false, "patternProperties": )"
    R"({"^[A-Za-z_][A-Za-z0-9_]*$": {"type": ["string", "number", "boolean", "null"]}})"};
inline constexpr Plain k_replaced{
    read_replaced, "object",
    R"("type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]})"};

struct Whole {
  std::int64_t low, high;
  std::optional<std::int64_t> operator()(const Node& node, std::string_view what,
                                         Problems& problems) const;
  [[nodiscard]] Form form() const;
};
// Between 0 and 0.5, without these.
struct Share {
  std::optional<double> operator()(const Node& node, std::string_view what,
                                   Problems& problems) const;
  [[nodiscard]] Form form() const;
};
// Seconds: more than none and at most `most`, shown as `most_shown`.
struct Duration {
  double most = 24 * 3600;
  const char* most_shown = "24h";
  std::optional<double> operator()(const Node& node, std::string_view what,
                                   Problems& problems) const;
  [[nodiscard]] Form form() const;
  [[nodiscard]] static std::string show(double seconds) { return fmt::format("{}s", seconds); }
};
// "5%" is a share of the baseline; a bare number is in the metric's base unit.
struct AmountType {
  bool may_be_relative;
  std::optional<verdict::Amount> operator()(const Node& node, std::string_view what,
                                            Problems& problems) const;
  [[nodiscard]] Form form() const;
};
// One of `names`.
std::optional<std::string> read_choice(const Node& node, std::string_view what,
                                       std::span<const std::string> names, Problems& problems);
struct OneName {
  std::span<const std::string> names;
  std::optional<std::string> operator()(const Node& node, std::string_view what,
                                        Problems& problems) const {
    return read_choice(node, what, names, problems);
  }
  [[nodiscard]] Form form() const { return one_of(names, true); }
};
// The same, of which each stands for something.
template <class Value>
struct OneOf {
  std::span<const Name<Value>> choices;
  std::optional<Value> operator()(const Node& node, std::string_view what,
                                  Problems& problems) const {
    const auto chosen = read_choice(node, what, names(), problems);
    return chosen ? value_of(choices, *chosen) : std::nullopt;
  }
  [[nodiscard]] std::vector<std::string> names() const {
    return collect<std::string>(choices, &Name<Value>::second);
  }
  [[nodiscard]] Form form() const { return one_of(names(), false); }
  [[nodiscard]] std::string show(Value value) const {
    const auto* found = first_of(choices, [&](const auto& one) { return one.first == value; });
    return found == nullptr ? "" : std::string(found->second);
  }
};
template <class Choices>
OneOf(const Choices&) -> OneOf<typename std::ranges::range_value_t<Choices>::first_type>;

// A key as its parser declares it: its name, what it is in a sentence or two, an example as YAML,
// and what holds where it is left out, where that is not the value that stands there already.
struct Key {
  const char* name;
  const char* meaning = "";
  const char* example = "";
  const char* usual = "";
};

// One mapping. Every key that may stand in it is asked for once; its end then complains about the
// rest. A value of nothing ("limits:" alone) counts as absent. Where keys are listed, each goes
// into that list, and none is there but mappings whose own keys are to be listed.
class Fields {
 public:
  // A node that is no mapping is a problem, and then has no fields. `what`: "engine \"x\"".
  Fields(const Node& node, std::string what, Problems& problems);
  Fields(const Fields&) = delete;
  ~Fields() { finish(); }
  // The value under `key`, or nullptr when it is absent or nothing.
  const Node* take(const Key& key, const Form& form = {}) { return take(key, form, "", false); }
  // The same, and a problem when it is absent.
  const Node* need(const Key& key, const Form& form = {});
  // Reads what stands under `key`, where there is something. A value stays as it is where `type`
  // answers nothing; an optional one is then absent.
  template <class Value, class Type>
  const Node* read(const Key& key, Value& into, const Type& type) {
    return assign(take(key, type.form(), usual_of(into, type), false), key, into, type);
  }
  template <class Value, class Type>
  const Node* need(const Key& key, Value& into, const Type& type) {
    return assign(need(key, type.form()), key, into, type);
  }
  // Adds the problem that `key` is absent.
  void lacks(const char* key);
  // Until it is called with "": a key that is there is a problem, `"KEY" WHY`, and not read.
  void refuse(const char* why) { refusal_ = why; }
  // Before its end, for who asks then whether there are problems.
  void finish();
  [[nodiscard]] bool lists_keys() const { return problems_->lists() != nullptr; }

 private:
  const Node* take(const Key& key, const Form& form, const std::string& usual, bool needed);
  template <class Value, class Type>
  const Node* assign(const Node* node, const Key& key, Value& into, const Type& type) {
    if (node == nullptr) return node;
    auto found = type(*node, key.name, *problems_);
    if constexpr (std::is_same_v<decltype(found), std::optional<Value>>) {
      if (found) into = *std::move(found);
    } else {
      into = std::move(found);
    }
    return node;
  }
  // The value that holds where none is written, as YAML.
  template <class Value, class Type>
  static std::string usual_of(const Value& value, const Type& type) {
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
inline constexpr std::size_t k_most_entries = 1000;

struct Parsing {
  const Known& known;
  Problems problems;
  Settings settings;
  std::vector<std::pair<std::string, const Node*>> cpu_ops{};  // by engine, read at the end
};

// Whether it is a list of entries such as `example`, and no longer than they may be; else a
// complaint.
[[nodiscard]] bool is_entries(const Node& node, std::string_view what, std::string_view example,
                              Problems& problems);

// Complains about names that are no names or not unique ignoring case, and about too many.
void check_names(const Node& section, const std::string& what, Problems& problems);

// What presets bring and a file has no use for, a line each, for people.
struct PresetNotes {
  std::vector<std::string> left_out;
  std::vector<std::string> replaced;  // by what stands in the file, which is how one changes it
};
// Takes what presets fill into `root`, a whole weir.yaml. Each key that stands there goes before
// the preset's: mappings of an engine (env, counted_env, cpu_ops_allowed …) key by key, and
// "nothing" takes a preset's key away. Sections that are missing (models, backends, prompts) come
// from the presets; what a preset's engine does not load or run on is excluded, unless
// matrix.include chooses.
PresetNotes expand_presets(Node& root, Problems& problems);
// A whole weir.yaml, after expand_presets().
void parse_root(const Node& root, Parsing& parsing);
void parse_engines(const Node& node, Parsing& parsing);
// What cpu_ops_allowed can name: no pattern and no text.
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
// The keys of an engine that serves, where `kind` says that it is one; else a complaint about each
// of them that stands there.
void parse_server(Fields& fields, Place at, EngineSettings& engine, Parsing& parsing);
// What does not go with a server, once all of the engine is known.
void check_server(const Node& node, const EngineSettings& engine, Problems& problems);
inline constexpr Whole k_threads{1, 4096};
inline constexpr Key k_threads_key{"threads", "Value of {threads}.", "8", "physical cores"};
inline constexpr Key k_private{"private", "Show an alias in reports.", "true"};
// env: a name without a value is passed on.
void parse_environment(Fields& fields, Extra& extra, Problems& problems);
void parse_seed(Fields& fields, Extra& extra);
// args, env, seed, and threads unless a list of them may stand there.
void parse_extra(Fields& fields, Extra& extra, Parsing& parsing, bool threads = true);
// The same, and `engines: {NAME: {…}}`.
void parse_per_engine(Fields& fields, PerEngine& extra, Parsing& parsing, bool threads = true);
// Complains about "{args}" where it stands for nothing.
void check_args(const Node* node, const Arguments& args, Problems& problems);
// Globs over the names of engines, models, backends, prompts and variants; a complaint about one
// that matches none of them ("unknown backend …").
void parse_match(Fields& fields, verdict::Match& match, Parsing& parsing);
// The same, in the mapping that `key` names.
void parse_match_key(Fields& fields, const Key& key, verdict::Match& match, Parsing& parsing);

template <class Section>
[[nodiscard]] std::vector<std::string> names_of(const std::vector<Section>& sections) {
  return collect<std::string>(sections, &Section::name);
}
[[nodiscard]] std::vector<std::string> keys_of(const Node& map);
// Some name is matched.
[[nodiscard]] bool matches_one(std::string_view glob, std::span<const std::string> names);

}  // namespace weir::config
