// Parses YAML into a tree of nodes, on top of yaml-cpp's events.
#include <istream>
#include <streambuf>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include "gate/config/parse.hpp"

namespace weir::config {
namespace {

// Thrown by the handler below through yaml-cpp's parser and caught in parse_yaml. Nesting and
// expansion thus stop at their limit, before the parser recurses further.
struct ParseError {
  TextPosition position;
  std::string message;
};

// Returns the place of the first tab in the space before the text of the line (1, 2, …); nothing if
// there is none.
std::optional<TextPosition> find_indenting_tab(std::string_view text, int line) {
  for (int i = 1; i < line; ++i) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) return std::nullopt;
    text.remove_prefix(end + 1);
  }
  const std::size_t tab = text.substr(0, text.find_first_not_of(" \t")).find('\t');
  if (tab == std::string_view::npos) return std::nullopt;
  return TextPosition{line, static_cast<int>(tab) + 1};
}

TextPosition to_place(const YAML::Mark& mark) {
  if (mark.line < 0) return {};
  return {mark.line + 1, mark.column + 1};
}

// Size of a tree, with its aliases expanded.
struct Size {
  std::size_t nodes = 0;
  std::size_t bytes = 0;
  std::size_t depth = 0;
};

// Builds the tree from yaml-cpp's events. Throws ParseError at the first problem.
class Builder final : public YAML::EventHandler {
 public:
  explicit Builder(const YamlLimits& limits) : limits_(limits) {}

  [[nodiscard]] Node take_root() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (has_document_) throw ParseError{to_place(mark), "a second YAML document: write one"};
    has_document_ = true;
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    finish({Node::Kind::null, to_place(mark), false, {}, {}, {}}, {1, 0, 1}, anchor);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    Node node = text_node(value, to_place(mark));
    node.quoted = is_quoted(tag, node.position);
    if (value.find('\0') != std::string::npos) {
      throw ParseError{node.position, "a NUL character cannot be part of a text"};
    }
    finish(std::move(node), {1, value.size(), 1}, anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto* anchored = look_up(anchors_, anchor);
    if (anchored == nullptr) {
      throw ParseError{to_place(mark), "an alias may not stand inside what it names"};
    }
    const auto& [node, size] = *anchored;
    count(size, to_place(mark));
    Node copy = node;
    copy.position = to_place(mark);
    attach(std::move(copy), size);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value /*style*/) override {
    start(Node::Kind::list, mark, tag, anchor);
  }
  void OnSequenceEnd() override { end(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value /*style*/) override {
    start(Node::Kind::map, mark, tag, anchor);
  }
  void OnMapEnd() override { end(); }

 private:
  struct Open {
    Node node;
    Size size;
    YAML::anchor_t anchor = YAML::NullAnchor;
    bool has_key = false;
    std::string key;
    TextPosition key_position;
    std::set<std::string> keys;
  };

  // Returns true for the tag of a quoted scalar. yaml-cpp gives "?" for plain and "!" for quoted
  // scalars; all other tags are refused.
  static bool is_quoted(const std::string& tag, TextPosition at) {
    if (tag.empty() || tag == "?") return false;
    if (tag == "!" || tag == "tag:yaml.org,2002:str") return true;
    throw ParseError{at, fmt::format("tags are not used here (\"{}\")", text::printable(tag))};
  }

  // Adds `size` to the totals; throws if a limit is exceeded.
  void count(const Size& size, TextPosition at) {
    nodes_ += size.nodes;
    bytes_ += size.bytes;
    if (nodes_ > limits_.nodes || bytes_ > limits_.text_bytes) {
      throw ParseError{at,
                       fmt::format("too large once its aliases are expanded (at most {} values)",
                                   limits_.nodes)};
    }
    if (open_.size() + size.depth > limits_.depth) {
      throw ParseError{at, fmt::format("nested deeper than {} levels", limits_.depth)};
    }
  }

  void start(Node::Kind kind, const YAML::Mark& mark, const std::string& tag,
             YAML::anchor_t anchor) {
    Open open;
    open.node.kind = kind;
    open.node.position = to_place(mark);
    open.size = {1, 0, 1};
    open.anchor = anchor;
    if (tag != "!") static_cast<void>(is_quoted(tag, open.node.position));
    count(open.size, open.node.position);
    open_.push_back(std::move(open));
  }

  void end() {
    Open open = std::move(open_.back());
    open_.pop_back();
    remember(open.anchor, open.node, open.size);
    attach(std::move(open.node), open.size);
  }

  void finish(Node node, Size size, YAML::anchor_t anchor) {
    count(size, node.position);
    remember(anchor, node, size);
    attach(std::move(node), size);
  }

  void remember(YAML::anchor_t anchor, const Node& node, const Size& size) {
    if (anchor == YAML::NullAnchor) return;
    // The copy for aliases takes as much memory as the node itself.
    nodes_ += size.nodes;
    bytes_ += size.bytes;
    anchors_[anchor] = {node, size};
  }

  // Puts a finished node into the innermost open list or mapping; without one it is the root.
  void attach(Node node, const Size& size) {
    if (open_.empty()) {
      root_ = std::move(node);
      return;
    }
    Open& open = open_.back();
    open.size.nodes += size.nodes;
    open.size.bytes += size.bytes;
    open.size.depth = std::max(open.size.depth, size.depth + 1);
    if (open.node.kind == Node::Kind::list) {
      open.node.items.push_back(std::move(node));
    } else if (!open.has_key) {
      add_key(open, node);
    } else {
      open.has_key = false;
      open.node.entries.push_back({std::move(open.key), open.key_position, std::move(node)});
    }
  }

  static void add_key(Open& open, const Node& node) {
    if (node.kind != Node::Kind::scalar) throw ParseError{node.position, "a key must be a text"};
    if (!open.keys.insert(node.text).second) {
      throw ParseError{node.position,
                       fmt::format("\"{}\" stands here twice", text::printable(node.text))};
    }
    open.has_key = true;
    open.key = node.text;
    open.key_position = node.position;
  }

  const YamlLimits limits_;
  std::vector<Open> open_;
  std::map<YAML::anchor_t, std::pair<Node, Size>> anchors_;
  Node root_;
  std::size_t nodes_ = 0;
  std::size_t bytes_ = 0;
  bool has_document_ = false;
};

// Reads from memory that the caller owns; std::istringstream would copy it.
class MemoryBuffer final : public std::streambuf {
 public:
  explicit MemoryBuffer(std::string_view text) {
    char* begin = const_cast<char*>(text.data());  // NOLINT: a get area is never written to
    setg(begin, begin, begin + text.size());
  }
};

// Returns the position of the first control character or invalid UTF-8 byte; npos if there is none.
// yaml-cpp itself guesses UTF-16 and UTF-32 from NULs, and accepts bytes that it cannot decode.
std::size_t first_bad_byte(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t from = at;
    const char32_t point = text::next_code_point(text, at);
    const bool is_control = point < 0x20 && point != '\t' && point != '\n' && point != '\r';
    if (is_control || (point == 0xFFFD && at == from + 1)) return from;
  }
  return std::string_view::npos;
}

// Returns the position of the first bracket inside of 10 000 open ones; npos if there is none. The
// YAML scanner takes 300 bytes for each, before the limit on levels applies. Brackets in quoted
// texts count too.
std::size_t find_deep_bracket(std::string_view text) {
  constexpr std::size_t k_max_open = 10'000;
  std::size_t open = 0;
  for (std::size_t position = 0; position < text.size(); ++position) {
    if (text[position] == '[' || text[position] == '{') {
      ++open;
      if (open > k_max_open) return position;
    } else if ((text[position] == ']' || text[position] == '}') && open > 0) {
      --open;
    }
  }
  return std::string_view::npos;
}

TextPosition byte_place(std::string_view text, std::size_t at) {
  const std::string_view before = text.substr(0, at);
  const std::size_t line_begins = before.rfind('\n') + 1;  // npos + 1 is 0
  return {static_cast<int>(std::ranges::count(before, '\n')) + 1,
          static_cast<int>(at - line_begins) + 1};
}

tl::unexpected<Error> fail_at(std::string_view file, TextPosition at, std::string_view message) {
  return fail(Code::config, "{}:{}:{}: {}", file, at.line, at.column, message);
}

}  // namespace

const Node* Node::find(std::string_view key) const {
  const Entry* match = find_first(entries, [&](const Entry& entry) { return entry.key == key; });
  return match == nullptr ? nullptr : &match->value;
}

Node* Node::find(std::string_view key) {
  return const_cast<Node*>(std::as_const(*this).find(key));  // NOLINT: this one may be changed
}

// Parses one YAML document. Duplicate keys, tags, invalid UTF-8, and too many bytes or levels are
// errors with a position.
Result<Node> parse_yaml(std::string_view text, std::string_view file, const YamlLimits& limits) {
  if (text.size() > limits.bytes) {
    return fail(Code::config, "{}: larger than {} bytes: this is no configuration", file,
                limits.bytes);
  }
  if (const std::size_t bad_byte = first_bad_byte(text); bad_byte != std::string_view::npos) {
    return fail_at(file, byte_place(text, bad_byte),
                   "not UTF-8 text (a control character or an invalid byte)");
  }
  if (const std::size_t deep_bracket = find_deep_bracket(text);
      deep_bracket != std::string_view::npos) {
    return fail_at(file, byte_place(text, deep_bracket),
                   fmt::format("nested deeper than {} levels", limits.depth));
  }
  try {
    MemoryBuffer memory(text);
    std::istream in(&memory);
    YAML::Parser parser(in);
    Builder builder(limits);
    if (parser.HandleNextDocument(builder)) {
      // The second call finds a second document, which the builder refuses.
      static_cast<void>(parser.HandleNextDocument(builder));
    }
    return builder.take_root();
  } catch (const ParseError& stop) {
    return fail_at(file, stop.position, stop.message);
  } catch (const YAML::Exception& error) {
    const TextPosition place = to_place(error.mark);
    if (const auto tab = find_indenting_tab(text, place.line)) {
      return fail_at(file, *tab, "a tab indents this line, which YAML does not allow: use spaces");
    }
    return fail_at(file, place, "not YAML: " + text::printable(error.msg));
  } catch (const std::exception& error) {
    return fail(Code::config, "{}: not YAML: {}", file, text::printable(error.what()));
  }
}

}  // namespace weir::config
