// YAML text -> a plain tree with places. The only file that knows yaml-cpp is yaml.cpp.
//
// The text is hostile: limits hold on bytes, depth and nodes after aliases are expanded, and every
// library exception ends here. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "gate/base/result.hpp"

namespace weir::config {

// One-based line and column, as editors count.
struct Place {
  int line = 1;
  int column = 1;
  friend bool operator==(const Place&, const Place&) = default;
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

}  // namespace weir::config
