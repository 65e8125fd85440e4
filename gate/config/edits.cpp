// Compares the trees of two versions of weir.yaml.
#include "gate/config/edits.hpp"

#include "gate/base/json.hpp"
#include "gate/base/text.hpp"

namespace weir::config {
namespace {

// All exceptions to EditRule::not_judged. A rule holds for the keys below its path, too.
constexpr std::pair<std::string_view, EditRule> k_rules[] = {
    {"limits", EditRule::base},
    {"gate", EditRule::base},
    {"explain", EditRule::base},
    {"engines.*.cpu_ops_allowed", EditRule::base},
    {"engines.*.metrics.*", EditRule::addable},
    {"matrix", EditRule::cells},
    {"backends.*.device", EditRule::cells},
    {"prompts.*.depth", EditRule::cells},
    {"prompts.*.concurrency", EditRule::cells},
    {"prompts.*.threads", EditRule::cells},
    {"prompts.*.engines.*.threads", EditRule::cells},
};

// Returns the value as one short line: "[139]".
std::string value_text(const Json* value) {
  constexpr std::size_t k_max_text_length = 80;
  if (value == nullptr) return "";
  const bool is_text = value->is_string() && !value->get<std::string>().empty();
  std::string text = text::printable(is_text ? value->get<std::string>() : dump_json(*value));
  std::ranges::replace(text, '\n', ' ');
  return text::shortened(std::move(text), k_max_text_length);
}

// Compares a part of two trees.
class TreeComparison {
 public:
  explicit TreeComparison(const std::function<bool(const std::string&)>& may_add)
      : may_add_(may_add) {}

  // Adds each key at or below `path` that differs and that no rule exempts; null stands for one
  // that is absent. `path` is as in list_keys(), `shown` has the user's names.
  void compare(const Json* base, const Json* head, const std::string& path,
               const std::string& shown) {
    if (base == head || (base != nullptr && head != nullptr && *base == *head)) return;
    const EditRule rule = edit_rule(path);
    if (rule == EditRule::base || rule == EditRule::cells) return;
    const bool has_names = path.ends_with(".metrics") || path.ends_with(".facts");
    if (!is_mapping_or_absent(base) || !is_mapping_or_absent(head)) {
      if (differences_.size() < k_max_differences)
        differences_.push_back({shown, value_text(base), value_text(head)});
      return;
    }
    std::set<std::string> keys;
    for (const Json* map : {base, head}) {
      if (map == nullptr) continue;
      for (const auto& item : map->items()) keys.insert(item.key());
    }
    for (const std::string& key : keys) {
      const std::string inner = path + (has_names ? ".*" : "." + key);
      const Json* before = find(base, key);
      const bool is_added =
          before == nullptr && has_names && edit_rule(inner) == EditRule::addable && may_add_(key);
      if (!is_added) compare(before, find(head, key), inner, shown + "." + key);
    }
  }
  [[nodiscard]] std::vector<KeyDifference> take() { return std::move(differences_); }

 private:
  static bool is_mapping_or_absent(const Json* json) {
    return json == nullptr || json->is_object();
  }
  static const Json* find(const Json* map, const std::string& key) {
    if (map == nullptr) return nullptr;
    const auto entry = map->find(key);
    return entry == map->end() ? nullptr : &*entry;
  }

  const std::function<bool(const std::string&)>& may_add_;
  std::vector<KeyDifference> differences_;
};

// Merges the mapping `more` into `into`: lists are appended, members of mappings and other values
// replace those there.
void merge_extra(Json& into, const Json& more) {
  for (const auto& [key, value] : more.items()) {
    Json& slot = into[key];
    if (slot.is_array() && value.is_array()) {
      slot.insert(slot.end(), value.begin(), value.end());
    } else if (slot.is_object() && value.is_object()) {
      slot.update(value);
    } else {
      slot = value;
    }
  }
}

// Removes keys without a value, which count as absent. In `env` such a name passes a variable on.
void drop_empty(Json& map) {
  for (auto entry = map.begin(); entry != map.end();) {
    if (entry->is_null()) {
      entry = map.erase(entry);
      continue;
    }
    if (entry->is_object() && entry.key() != "env") drop_empty(*entry);
    ++entry;
  }
}

// Returns an entry of weir.yaml as JSON, as it applies to the engine of `place`: what stands under
// `engines` for it is merged in, for other engines dropped.
Json resolve_entry(const Json& tree, const EntryPlace& place) {
  const Json& original =
      member_or_null(member_or_null(tree, place.section.c_str()), place.name.c_str());
  Json entry = Json::object();
  if (original.is_string()) entry["path"] = original;  // models: {NAME: PATH}
  if (original.is_object()) entry = original;
  const auto engines = entry.find("engines");
  if (engines != entry.end()) {
    const Json for_engine = member_or_null(*engines, place.engine.c_str());
    entry.erase(engines);
    if (for_engine.is_object()) merge_extra(entry, for_engine);
  }
  drop_empty(entry);
  return entry;
}

}  // namespace

EditRule edit_rule(std::string_view path) {
  for (const auto& [rule_path, rule] : k_rules) {
    if (!path.starts_with(rule_path)) continue;
    const std::string_view rest = path.substr(rule_path.size());
    if (rest.empty() || rest.front() == '.' || rest.front() == '[') return rule;
  }
  return EditRule::not_judged;
}

std::vector<std::string> entry_names(const profile::CellKey& cell) {
  return {cell.engine, cell.variant, cell.model, cell.backend, cell.prompt};
}

EntryEdit compare_entries(const Json& base_tree, const EntryPlace& base, const Json& head_tree,
                          const EntryPlace& head,
                          const std::function<bool(const std::string& name)>& may_add,
                          const Digest& digest) {
  const Json before = resolve_entry(base_tree, base), after = resolve_entry(head_tree, head);
  TreeComparison comparison(may_add);
  comparison.compare(&before, &after, base.section + ".*", base.section + "." + base.name);
  EntryEdit edit{comparison.take(), ""};
  if (!edit.differences.empty()) edit.hash = digest(dump_json({before, after}));
  return edit;
}

// Compares the sections of weir.yaml that describe no benchmark cell and that no rule exempts,
// between base and head of a pull request.
EntryEdit compare_other_sections(const Json& base_tree, const Json& head_tree,
                                 const Digest& digest) {
  EntryEdit edit;
  std::string hashed_text;
  std::set<std::string> sections;
  for (const Json* tree : {&base_tree, &head_tree}) {
    for (const auto& item : tree->items()) sections.insert(item.key());
  }
  for (const char* section : k_cell_sections) sections.erase(section);
  for (const std::string& section : sections) {
    const Json &base = member_or_null(base_tree, section.c_str()),
               &head = member_or_null(head_tree, section.c_str());
    if (base == head || edit_rule(section) != EditRule::not_judged) continue;
    edit.differences.push_back({section, base.is_null() ? "" : value_text(&base),
                                head.is_null() ? "" : value_text(&head)});
    hashed_text += dump_json({base, head});
  }
  if (!edit.differences.empty()) edit.hash = digest(hashed_text);
  return edit;
}

}  // namespace weir::config
