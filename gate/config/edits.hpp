// Compares two versions of weir.yaml key by key: what an edit of a key means when a pull request is
// judged by its base's rules. Pure.
#pragma once

#include <functional>

#include "gate/base/json_fwd.hpp"
#include "gate/profile/profile.hpp"

namespace weir::config {

// Consequence of an edit of a key.
enum class EditRule {
  not_judged,  // cells that the key touches are not judged
  base,        // the base's value judges
  cells,       // which cells there are, and what each is, is compared in place of the key
  addable,     // an entry that the base lacks may be added, if it takes the place of nothing
};

// `path`: as list_keys() has it. A key that no rule names is not_judged.
[[nodiscard]] EditRule edit_rule(std::string_view path);

// One key that differs: "engines.mine.ok_exit_codes", and both values; "" for one that is absent.
struct KeyDifference {
  std::string key, from, to;
  friend auto operator<=>(const KeyDifference&, const KeyDifference&) = default;
};

// A hash that nobody can find a second text for: somebody may accept an edit by its hash.
using Digest = std::function<std::string(std::string_view)>;

struct EntryEdit {
  std::vector<KeyDifference> differences;  // at most k_max_differences
  std::string hash;                        // of both entries, if they differ; else ""
};
inline constexpr std::size_t k_max_differences = 50;

// Sections whose entries a cell is made of, and the names of a cell's entries in their order.
inline constexpr const char* k_cell_sections[] = {"engines", "variants", "models", "backends",
                                                  "prompts"};
[[nodiscard]] std::vector<std::string> entry_names(const profile::CellKey& cell);

// An entry of a section of Settings::tree, for the cells of one engine.
struct EntryPlace {
  std::string section, name, engine;
  friend auto operator<=>(const EntryPlace&, const EntryPlace&) = default;
};

// Returns the keys of two entries that differ and that no rule exempts. `may_add` decides whether
// the head may add the entry with this name under an addable key.
[[nodiscard]] EntryEdit compare_entries(const Json& base_tree, const EntryPlace& base,
                                        const Json& head_tree, const EntryPlace& head,
                                        const std::function<bool(const std::string& name)>& may_add,
                                        const Digest& digest);

// Returns the sections that differ, that no cell is made of and that no rule exempts.
[[nodiscard]] EntryEdit compare_other_sections(const Json& base_tree, const Json& head_tree,
                                               const Digest& digest);

}  // namespace weir::config
