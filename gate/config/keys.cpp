// Lists the keys of weir.yaml, and writes its JSON Schema.
#include "gate/config/keys.hpp"

#include "gate/base/json.hpp"
#include "gate/config/parse.hpp"

namespace weir::config {

// Returns a YAML tree as JSON. Unquoted texts become booleans or numbers, as in YAML's core
// schema.
Json node_to_json(const Node& node) {
  if (node.kind == Node::Kind::null) return nullptr;
  if (node.kind == Node::Kind::list) {
    Json list = Json::array();
    for (const Node& item : node.items) list.push_back(node_to_json(item));
    return list;
  }
  if (node.kind == Node::Kind::map) {
    Json map = Json::object();
    for (const Entry& entry : node.entries) map[entry.key] = node_to_json(entry.value);
    return map;
  }
  if (node.quoted) return node.text;
  if (node.text == "true" || node.text == "false") return node.text == "true";
  if (const auto integer = text::to_int(node.text)) return *integer;
  if (const auto number = text::to_double(node.text)) return *number;
  return node.text;
}

namespace {

std::string json_of_yaml(const std::string& yaml) {
  return dump_json(node_to_json(parse_yaml(yaml, "an example").value()));
}

std::string quoted(const std::string& text) { return dump_json(Json(text)); }

// Returns the "properties" of weir.yaml's JSON schema for the mapping at path `owner`, with all
// mappings inside it. `depth` is the number of indents.
std::string properties(const std::vector<KeyInfo>& keys, const std::string& owner, int depth) {
  const std::string indent(static_cast<std::size_t>(2 * depth), ' ');
  std::vector<std::string> lines, required_names;
  for (const KeyInfo& key : keys) {
    if (key.owner != owner) continue;
    if (key.needed) required_names.push_back(quoted(key.name));
    const bool has_default_text = !key.shown_default.empty() && !key.is_value;
    std::string line = fmt::format(
        R"({}  {}: {{"description": {})", indent, quoted(key.name),
        quoted(has_default_text ? fmt::format("{} Default: {}.", key.meaning, key.shown_default)
                                : key.meaning));
    if (key.is_value) line += ", \"default\": " + json_of_yaml(key.shown_default);
    if (!key.example.empty())
      line += fmt::format(R"(, "examples": [{}])", json_of_yaml(key.example));
    line += ", " + key.form.schema + "}";
    if (const std::size_t inner_keys_at = line.find(k_keys_here);
        inner_keys_at != std::string::npos) {
      line.replace(inner_keys_at, k_keys_here.size(),
                   properties(keys, key.path() + key.form.within, depth + 1));
    }
    lines.push_back(std::move(line));
  }
  const std::string required =
      required_names.empty() ? ""
                             : fmt::format(R"("required": [{}], )", text::join(required_names));
  return fmt::format("{}\"properties\": {{\n{}\n{}}}", required, text::join(lines, ",\n"), indent);
}

}  // namespace

Form mapping(std::string_view more) {
  return {"object", fmt::format(R"("type": "object", "additionalProperties": false{}, {})", more,
                                k_keys_here)};
}

Form named(const Form& value, std::string_view pattern, const char* sample) {
  return {"object",
          fmt::format(R"("type": "object", "additionalProperties": false, )"
                      R"("patternProperties": {{{}: {{{}}}}})",
                      quoted(std::string(pattern)), value.schema),
          ".*" + value.within, sample};
}

Form list_form(const Form& item, std::string_view more) {
  return {"list", fmt::format(R"("type": "array"{}, "items": {{{}}})", more, item.schema),
          "[]" + item.within};
}

Form operator|(const Form& first, const Form& second) {
  const Form& outer = first.within.empty() ? second : first;
  return {first.type.empty() ? second.type : first.type + ", " + second.type,
          fmt::format(R"("anyOf": [{{{}}}, {{{}}}])", first.schema, second.schema), outer.within,
          outer.sample};
}

Form nothing() { return {"", R"("type": "null")"}; }

Form choice_form(std::span<const std::string> texts, bool open) {
  const std::string all = text::join(collect<std::string>(texts, quoted));
  return {text::join(texts),
          open ? fmt::format(R"("anyOf": [{{"enum": [{}]}}, {{"type": "string"}}])", all)
               : fmt::format(R"("enum": [{}])", all)};
}

const Node* KeyList::add(KeyInfo key) {
  // The inner mapping exists but has no keys: parsing it lists the keys that it may have.
  const std::string inner = key.path() + key.form.within;
  const bool has_keys = key.form.schema.find(k_keys_here) != std::string::npos;
  Node node = map_node({});
  node.text = inner;
  if (key.form.within == ".*") node = map_node({{key.form.sample, {}, std::move(node)}});
  if (key.form.within == "[]") node = list_node({std::move(node)});
  keys_.push_back(std::move(key));
  return has_keys ? &nodes_.emplace_back(std::move(node)) : nullptr;
}

std::vector<KeyInfo> list_keys(const Supported& supported) {
  KeyList list;
  Parsing parsing{supported, Problems(""), {}};
  parsing.problems.list_into(&list);
  parse_root(map_node({}), parsing);
  std::vector<KeyInfo> keys = list.take();
  std::ranges::sort(keys, {}, &KeyInfo::path);
  return keys;
}

std::string json_schema(const std::vector<KeyInfo>& keys) {
  return fmt::format(
      R"({{"$schema": "http://json-schema.org/draft-07/schema#", "title": "weir.yaml",
"description": "Configuration of weir, version 1.", "type": "object", "additionalProperties": false,
{}}}
)",
      properties(keys, "", 0));
}

}  // namespace weir::config
