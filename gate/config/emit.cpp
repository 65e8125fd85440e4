// Writes a tree as YAML, and texts as its scalars.
#include "gate/base/json.hpp"
#include "gate/config/parse.hpp"
#include "gate/config/presets.hpp"

namespace weir::config {
namespace {

// Returns the node in YAML's flow style: on one line, with brackets.
std::string flow_text(const Node& node) {
  const auto entry_text = [](const Entry& item) {
    return fmt::format("{}: {}", yaml_scalar(item.key), flow_text(item.value));
  };
  switch (node.kind) {
    case Node::Kind::null:
      return "null";
    case Node::Kind::scalar:
      return node.quoted ? dump_json(Json(node.text)) : yaml_scalar(node.text);
    case Node::Kind::list:
      return fmt::format("[{}]", text::join(collect<std::string>(node.items, flow_text)));
    case Node::Kind::map:
      return fmt::format("{{{}}}", text::join(collect<std::string>(node.entries, entry_text)));
  }
  return "";
}

// Appends the node in YAML's block style, indented by `indent` spaces. A mapping or a list of
// mappings that fits on one line of 100 characters stays there.
void write(const Node& node, std::size_t indent, std::string& text) {
  constexpr std::size_t k_width = 100;
  const std::string margin(indent, ' ');
  for (const Node& item : node.items) text += fmt::format("{}- {}\n", margin, flow_text(item));
  for (const Entry& entry : node.entries) {
    const std::string key = yaml_scalar(entry.key);
    const std::string line = flow_text(entry.value);
    const bool can_break = entry.value.kind == Node::Kind::map ||
                           (entry.value.kind == Node::Kind::list && !entry.value.items.empty() &&
                            entry.value.items.front().kind == Node::Kind::map);
    if (can_break && indent + key.size() + line.size() > k_width) {
      text += fmt::format("{}{}:\n", margin, key);
      write(entry.value, indent + 2, text);
    } else {
      text += fmt::format("{}{}: {}\n", margin, key, line);
    }
  }
}

}  // namespace

Node map_node(std::vector<Entry> entries, TextPosition at) {
  Node node;
  node.kind = Node::Kind::map;
  node.position = at;
  node.entries = std::move(entries);
  return node;
}
Node text_node(std::string text, TextPosition at) {
  Node node;
  node.kind = Node::Kind::scalar;
  node.position = at;
  node.text = std::move(text);
  return node;
}
Node list_node(std::vector<Node> items, TextPosition at) {
  Node node;
  node.kind = Node::Kind::list;
  node.position = at;
  node.items = std::move(items);
  return node;
}
Node texts_node(std::span<const std::string> texts) {
  return list_node(collect<Node>(texts, [](const auto& text) { return text_node(text); }));
}

std::string to_yaml(const Node& node) {
  std::string text;
  write(node, 0, text);
  return text;
}

// Returns `text` as a YAML scalar, in quotes if YAML could read it as something else.
std::string yaml_scalar(std::string_view text) {
  // None of these characters means something to YAML, within brackets either.
  const auto may_follow = [](char c) {
    return text::is_alphanumeric(c) ||
           std::string_view("._-/+%*^=").find(c) != std::string_view::npos;
  };
  const auto may_begin = [](char c) { return text::is_alphanumeric(c) || c == '.' || c == '/'; };
  const auto fits = [&](std::string_view word) {
    return !word.empty() && may_begin(word[0]) && std::ranges::all_of(word, may_follow);
  };
  // Dashes of an option ("--flag") are no list.
  const std::size_t dashes = std::min(text.find_first_not_of('-'), text.size());
  const bool is_plain = fits(text.substr(dashes)) && text::lower(text) != "null";
  return is_plain ? std::string(text) : dump_json(Json(text));
}

std::string yaml_list(std::span<const std::string> texts) { return flow_text(texts_node(texts)); }

}  // namespace weir::config
