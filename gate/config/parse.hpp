// Inside of parse_settings: YAML as a tree with places, typed fields out of it with what is wrong
// with them, and one function for each section of weir.yaml. Not for other modules. Pure.
//
// The text is hostile: limits hold on bytes, depth and nodes after aliases are expanded, and every
// exception of yaml-cpp, which only yaml.cpp knows, ends there.
#pragma once

#include <cstddef>
#include <type_traits>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/config/settings.hpp"

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
  std::string text;            // scalar
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
// The tree as YAML that parses to it, but for places and comments.
[[nodiscard]] std::string to_yaml(const Node& node);

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

 private:
  std::string file_;
  std::vector<std::pair<Place, std::string>> found_;
};

// "a list", "a mapping", "nothing", "\"text\"".
[[nodiscard]] std::string describe(const Node& node);
// "\n  known here: a, b".
[[nodiscard]] std::string known_here(std::span<const std::string> names);

// Of an environment variable.
[[nodiscard]] bool variable_name(std::string_view name);

// Each reader adds a problem and answers nothing (or what it could read) when the node does not
// fit. `what` names the field in messages.
std::optional<std::string> read_text(const Node& node, std::string_view what, Problems& problems);
std::optional<std::int64_t> read_integer(const Node& node, std::string_view what, std::int64_t low,
                                         std::int64_t high, Problems& problems);
// Strictly between low and high.
std::optional<double> read_share(const Node& node, std::string_view what, double low, double high,
                                 Problems& problems);
std::optional<bool> read_boolean(const Node& node, std::string_view what, Problems& problems);
// A list of texts, or one text.
std::vector<std::string> read_texts(const Node& node, std::string_view what, Problems& problems);
// A list of arguments; a single text is refused, since no shell splits it. Placeholders are
// checked.
Arguments read_arguments(const Node& node, std::string_view what, Problems& problems);
Environment read_environment(const Node& node, std::string_view what, Problems& problems);
// One of `names`.
std::optional<std::string> read_choice(const Node& node, std::string_view what,
                                       std::span<const std::string> names, Problems& problems);
// The same, of which each stands for something.
template <class Value>
std::optional<Value> read_one_of(const Node& node, std::string_view what,
                                 std::span<const Name<Value>> choices, Problems& problems) {
  const auto names = collect<std::string>(choices, &Name<Value>::second);
  const auto chosen = read_choice(node, what, names, problems);
  return chosen ? value_of(choices, *chosen) : std::nullopt;
}
// More than nothing and at most `most` seconds (shown as `most_shown`).
std::optional<double> read_duration(const Node& node, std::string_view what, double most,
                                    std::string_view most_shown, Problems& problems);

// "5%" is a share of the baseline; a bare number is in the metric's base unit.
std::optional<verdict::Amount> read_amount(const Node& node, std::string_view what,
                                           bool may_be_relative, Problems& problems);

// One mapping. Every key that may stand in it is asked for once with take(); its end then complains
// about the rest. A value of nothing ("limits:" alone) counts as absent.
class Fields {
 public:
  // A node that is no mapping is a problem, and then has no fields. `what`: "engine \"x\"".
  Fields(const Node& node, std::string what, Problems& problems);
  Fields(const Fields&) = delete;
  ~Fields() { finish(); }
  // The value under `key`, or nullptr when it is absent or nothing.
  const Node* take(const std::string& key);
  // The same, and a problem when it is absent.
  const Node* need(const std::string& key);
  // Both, by read_it(node, key, problems).
  template <class Value, class Read>
  const Node* need(const char* key, Value& into, const Read& read_it) {
    const Node* node = need(key);
    if (node != nullptr) assign(into, read_it(*node, key, *problems_));
    return node;
  }
  // Reads what stands under `key`, where there is something, by `read_it(node, key, how…,
  // problems)`. A value stays as it is where that answers nothing; an optional one is then absent.
  template <class Value, class Read, class... How>
  const Node* read(const char* key, Value& into, const Read& read_it, const How&... how) {
    const Node* node = take(key);
    if (node != nullptr) assign(into, read_it(*node, key, how..., *problems_));
    return node;
  }
  // The same of one of `choices`.
  template <class Into, class Choices>
  const Node* choose(const char* key, Into& into, const Choices& choices) {
    using Value = typename std::ranges::range_value_t<Choices>::first_type;
    return read(key, into, read_one_of<Value>, std::span<const Name<Value>>(choices));
  }
  // Before its end, for who asks then whether there are problems.
  void finish();

 private:
  template <class Value, class Found>
  static void assign(Value& into, Found found) {
    if constexpr (std::is_same_v<Found, std::optional<Value>>) {
      if (found) into = *std::move(found);
    } else {
      into = std::move(found);
    }
  }

  const Node* node_;
  std::string what_;
  Problems* problems_;
  std::vector<std::string> known_;
  bool is_map_ = false;
};

// Most entries that a section may have; larger ones make a matrix that nobody runs.
inline constexpr std::size_t k_most_entries = 1000;

struct Parsing {
  const Known& known;
  Problems problems;
  Settings settings;
};

// Whether it is a list of entries such as `example`, and no longer than they may be; else a
// complaint.
[[nodiscard]] bool is_entries(const Node& node, std::string_view what, std::string_view example,
                              Problems& problems);

// Complains about names that are no names or not unique ignoring case, and about too many.
void check_names(const Node& section, const std::string& what, Problems& problems);

// Takes what presets fill into `root`, a whole weir.yaml. Each key that stands there goes before
// the preset's: mappings of an engine (env, counted_env, cpu_ops_allowed …) key by key, and
// "nothing" takes a preset's key away. Sections that are missing (models, backends, prompts) come
// from the presets; what a preset's engine does not load or run on is excluded, unless
// matrix.include chooses.
std::vector<std::string> expand_presets(Node& root, Problems& problems);
void parse_engines(const Node& node, Parsing& parsing);
// Of each engine, once all names are known.
void parse_cpu_ops(const Node& engines, Parsing& parsing);
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
// threads, seed.
// env: a name without a value is passed on.
void parse_environment(Fields& fields, Extra& extra, Problems& problems);
void parse_numbers(Fields& fields, Extra& extra);
// The same, args and env.
void parse_extra(Fields& fields, Extra& extra, Parsing& parsing);
// Complains about "{args}" where it stands for nothing.
void check_args(const Node* node, const Arguments& args, Problems& problems);
// The same, and `engines: {NAME: {…}}`.
void parse_per_engine(Fields& fields, PerEngine& extra, Parsing& parsing);
// Globs over the names of engines, models, backends, prompts and variants; a complaint about one
// that matches none of them ("unknown backend …").
void parse_match(Fields& fields, verdict::Match& match, Parsing& parsing);
// The same, in a mapping under `match`.
void parse_match_key(Fields& fields, verdict::Match& match, Parsing& parsing);

template <class Section>
[[nodiscard]] std::vector<std::string> names_of(const std::vector<Section>& sections) {
  return collect<std::string>(sections, &Section::name);
}
[[nodiscard]] std::vector<std::string> keys_of(const Node& map);
// Some name is matched.
[[nodiscard]] bool matches_one(std::string_view glob, std::span<const std::string> names);

}  // namespace weir::config
