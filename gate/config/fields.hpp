// Reads typed fields out of a YAML tree and collects what is wrong with them, each with its place.
// Parsing goes on after a problem, so that one run shows all of them. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gate/config/settings.hpp"
#include "gate/config/yaml.hpp"

namespace weir::config {

class Problems {
 public:
  explicit Problems(std::string file) : file_(std::move(file)) {}
  void add(Place at, std::string message);
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
void check_placeholders(std::string_view text, Place at, Problems& problems);

// One mapping. Every key that may stand in it is asked for once with take(); finish() then
// complains about the rest. A value of nothing ("limits:" alone) counts as absent.
class Fields {
 public:
  // A node that is no mapping is a problem, and then has no fields. `what`: "engine \"x\"".
  Fields(const Node& node, std::string what, Problems& problems);
  // The value under `key`, or nullptr when it is absent or nothing.
  const Node* take(const std::string& key);
  // The same, and a problem when it is absent.
  const Node* need(const std::string& key);
  // Keys that a later version has.
  void later(std::initializer_list<const char*> keys);
  void finish();

 private:
  const Node* node_;
  std::string what_;
  Problems* problems_;
  std::vector<std::string> known_;
  std::set<std::string, std::less<>> later_;
  bool is_map_ = false;
};

}  // namespace weir::config
