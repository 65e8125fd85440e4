// Expands `preset:` in the tree of a weir.yaml.
#include <algorithm>

#include "gate/config/parse.hpp"
#include "gate/config/presets.hpp"

namespace weir::config {
namespace {

// Returns `node` with all places in it set to `at`, where messages about it then point.
Node at_place(Node node, TextPosition at) {
  node.position = at;
  for (Node& item : node.items) item = at_place(std::move(item), at);
  for (Entry& entry : node.entries) {
    entry = {std::move(entry.key), at, at_place(std::move(entry.value), at)};
  }
  return node;
}

// Adds the entries of `from` whose keys `into` lacks, with the position `at`. With `deep`,
// mappings under one key are merged one level down; an empty value of `into` there removes its
// key.
void merge(Node& into, const Node& from, TextPosition at, bool deep) {
  for (const Entry& entry : from.entries) {
    Node* own_value = into.find(entry.key);
    if (own_value == nullptr) {
      into.entries.push_back({entry.key, at, at_place(entry.value, at)});
    } else if (deep && own_value->kind == Node::Kind::map && entry.value.kind == Node::Kind::map) {
      merge(*own_value, entry.value, at, /*deep=*/false);
    } else if (!deep && own_value->kind == Node::Kind::null) {
      std::erase_if(into.entries,
                    [&](const Entry& candidate) { return candidate.key == entry.key; });
    }
  }
}

// Removes from the mappings in `from` the keys that the same mappings in `own` have, as these win.
void remove_overridden(const Node& own, Node& from) {
  std::erase_if(from.entries, [&](Entry& preset_entry) {
    const Node* own_map = own.find(preset_entry.key);
    if (own_map == nullptr) return false;
    std::erase_if(preset_entry.value.entries,
                  [&](const Entry& inner) { return own_map->find(inner.key) != nullptr; });
    return preset_entry.value.entries.empty();
  });
}

// Returns the value under `key`; adds `default_node` there if the key is absent.
Node& find_or_add(Node& node, const char* key, Node default_node) {
  if (Node* existing = node.find(key)) return *existing;
  return node.entries.emplace_back(Entry{key, default_node.position, std::move(default_node)})
      .value;
}

// Returns the value under `key`; adds an empty mapping there if the key is absent or empty.
Node& find_or_add_map(Node& node, const char* key, TextPosition at) {
  Node& map = find_or_add(node, key, map_node({}, at));
  if (map.kind == Node::Kind::null) map = map_node({}, map.position);
  return map;
}

bool has_value(const Node* node) { return node != nullptr && node->kind != Node::Kind::null; }

// Fills a weir.yaml from the presets of its engines.
class PresetExpansion {
 public:
  PresetExpansion(Node& root, Problems& problems) : root_(root), problems_(problems) {}

  PresetNotes run() {
    Node* engines = root_.find("engines");
    if (engines == nullptr || engines->kind != Node::Kind::map) return {};
    for (Entry& entry : engines->entries) expand_engine(entry);
    if (uses_.empty() || problems_.any()) return {};
    is_only_engine_ = engines->entries.size() == 1;
    const Node* matrix = root_.find("matrix");
    has_include_ = matrix != nullptr && matrix->find("include") != nullptr;
    fill_section("models", "model");
    fill_backends();
    fill_section("prompts", "prompt");
    for (const Use& use : uses_) {
      add_limits(use);
      exclude_models(use);
      choose_devices(use);
    }
    return std::move(notes_);
  }

 private:
  // An engine of the file with its preset.
  struct Use {
    std::string engine;
    const Preset* preset;
    TextPosition position;
  };

  // Merges the preset's keys into an engine, with the program of the file in its command.
  void expand_engine(Entry& entry) {
    Node& engine = entry.value;
    const Node* named = engine.find("preset");
    const Node* program = engine.find("program");
    if (named == nullptr) {
      if (program == nullptr) return;
      problems_.add(program->position,
                    "program takes the place of a preset's own, and there is no preset\n"
                    "  without one the command begins with the program");
      return;
    }
    const Preset* preset = find_named(presets(), named->text);
    if (preset == nullptr) {
      return problems_.report_unknown(named->position, "preset", named->text, preset_names());
    }
    const TextPosition at = named->position;
    uses_.push_back({entry.key, preset, at});
    const Node* command = engine.find("command");
    if (program != nullptr && has_value(command)) {
      problems_.add(program->position,
                    "program stands in the preset's command: with a command of your own, "
                    "leave it out");
      return;
    }
    const std::string path = program == nullptr ? "" : program->text;
    if (program != nullptr && path.empty()) {
      return void(problems_.report_expected(*program, "program", "a text"));
    }
    std::erase_if(engine.entries,
                  [](const Entry& candidate) { return candidate.key == "program"; });
    merge(engine, *preset->tree->find("engine"), at, /*deep=*/true);
    if (!path.empty()) engine.find("command")->items.front().text = path;
  }

  // Takes a missing section (models, prompts) from the presets, each preset's for its own engine.
  // `dimension` is the section's name in a matrix entry.
  void fill_section(const char* section, const char* dimension) {
    if (has_value(root_.find(section))) {
      for (const Use& use : uses_) {
        const Node* preset_section = use.preset->tree->find(section);
        if (preset_section == nullptr) continue;
        // The same names need no note.
        const std::vector<std::string> names = key_names(*preset_section);
        if (std::ranges::is_permutation(names, key_names(*root_.find(section)))) continue;
        note(notes_.replaced, use,
             fmt::format("{} in this file replace the preset's: {}", section, text::join(names)));
      }
      return;
    }
    Node filled = map_node({});
    for (const Use& use : uses_) {
      const Node* from = use.preset->tree->find(section);
      if (from != nullptr) merge(filled, *from, use.position, /*deep=*/false);
    }
    if (filled.entries.empty()) return;
    for (const Use& use : uses_) {
      const Node* from = use.preset->tree->find(section);
      for (const Entry& entry : filled.entries) {
        const bool is_foreign = from != nullptr && from->find(entry.key) == nullptr;
        if (is_foreign) exclude(use.engine, dimension, entry.key, use.position);
      }
    }
    find_or_add_map(root_, section, uses_.front().position) = std::move(filled);
  }

  // Adds the first device of each preset if the file has no backends.
  void fill_backends() {
    if (has_value(root_.find("backends"))) return;
    Node& backends = find_or_add_map(root_, "backends", uses_.front().position);
    for (const Use& use : uses_) {
      find_or_add_map(backends, use.preset->devices.front().name.c_str(), use.position);
    }
  }

  static void note(std::vector<std::string>& notes, const Use& use, const std::string& text) {
    notes.push_back(fmt::format("engine {}, preset {}: {}", use.engine, use.preset->name, text));
  }
  // Excludes models or backends of the file that the engine cannot use, with a note.
  void exclude(const Use& use, const char* dimension, const std::vector<std::string>& names) {
    for (const std::string& name : names) exclude(use.engine, dimension, name, use.position);
    if (has_include_ || names.empty()) return;
    note(notes_.left_out, use, fmt::format("left out: {} {}", dimension, text::join(names)));
  }

  // Adds {engine: ENGINE, DIMENSION: NAME} to matrix.exclude, unless there is a matrix.include.
  void exclude(const std::string& engine, std::string dimension, const std::string& name,
               TextPosition at) {
    if (has_include_) return;
    Node& matrix = find_or_add_map(root_, "matrix", at);
    find_or_add(matrix, "exclude", list_node({}, at))
        .items.push_back(map_node({{"engine", at, text_node(engine, at)},
                                   {std::move(dimension), at, text_node(name, at)}},
                                  at));
  }

  // Adds the preset's limits for its engine before those of the file. The last matching one wins.
  void add_limits(const Use& use) {
    const Node* limits = use.preset->tree->find("limits");
    if (limits == nullptr) return;
    Node& own = find_or_add(root_, "limits", list_node({}, use.position));
    if (own.kind != Node::Kind::list) return;  // parse_limits complains
    std::vector<Node> before;
    for (const Node& item : limits->items) {
      before.push_back(at_place(item, use.position));
      find_or_add_map(before.back(), "match", use.position)
          .entries.push_back({"engine", use.position, text_node(use.engine, use.position)});
    }
    own.items.insert(own.items.begin(), before.begin(), before.end());
  }

  // Excludes models of a format that the preset's engine does not load.
  void exclude_models(const Use& use) {
    const Node* models = root_.find("models");
    const std::string& loads = use.preset->loads;
    if (models == nullptr || loads.empty()) return;
    std::vector<std::string> misfits;
    for (const Entry& entry : models->entries) {
      const Node* path =
          entry.value.kind == Node::Kind::map ? entry.value.find("path") : &entry.value;
      // No files are read here, so the name alone tells a folder from a file.
      const bool is_gguf = path != nullptr && text::lower(path->text).ends_with(".gguf");
      const bool fits =
          path != nullptr && loads_model(loads, path->text, loads == "folder" && !is_gguf);
      if (!fits) misfits.push_back(entry.key);
    }
    if (misfits.size() == models->entries.size()) return;  // left to the engine to report
    exclude(use, "model", misfits);
  }

  // Adds the preset's arguments and environment to each backend whose device it has, and excludes
  // the other backends for the engine.
  void choose_devices(const Use& use) {
    Node* backends = root_.find("backends");
    if (backends == nullptr) return;
    const Node& devices = *use.preset->tree->find("devices");
    const Node& engine = *root_.find("engines")->find(use.engine);
    std::vector<std::string> left_out;
    for (Entry& entry : backends->entries) {
      Node& backend = entry.value;
      if (backend.kind == Node::Kind::null) backend = map_node({}, backend.position);
      if (backend.kind != Node::Kind::map) continue;
      const Node* device = backend.find("device");
      const Node* row = devices.find(device == nullptr ? entry.key : device->text);
      const Node* engines = backend.find("engines");
      const Node* own = engines == nullptr ? nullptr : engines->find(use.engine);
      if (row == nullptr) {
        if (own == nullptr && backend.find("args") == nullptr) left_out.push_back(entry.key);
        continue;
      }
      // Keys of the backend or the engine in the file win over the preset's.
      Node extra = *row;
      remove_overridden(engine, extra);
      if (is_only_engine_ && own == nullptr) {
        merge(backend, extra, use.position, /*deep=*/true);
        continue;
      }
      remove_overridden(backend, extra);
      if (extra.entries.empty()) continue;
      Node& by_engine = find_or_add_map(backend, "engines", use.position);
      merge(find_or_add_map(by_engine, use.engine.c_str(), use.position), extra, use.position,
            /*deep=*/true);
    }
    if (!left_out.empty() && left_out.size() == backends->entries.size()) {
      const std::vector<std::string> names = key_names(devices);
      return void(problems_.add(use.position,
                                "preset {} runs on {}, and no backend here does\n"
                                "  write: backends: {{{}: {{}}}}, or give a backend its args",
                                use.preset->name, text::join(names), names.front()));
    }
    exclude(use, "backend", left_out);
  }

  Node& root_;
  Problems& problems_;
  std::vector<Use> uses_;
  PresetNotes notes_;
  bool is_only_engine_ = false;  // a preset's keys for a backend need no `engines:` within it
  bool has_include_ = false;     // matrix.include decides, so nothing is excluded
};

}  // namespace

PresetNotes expand_presets(Node& root, Problems& problems) {
  return PresetExpansion(root, problems).run();
}

// Returns a weir.yaml with its presets expanded. Comments at its top name the presets, and the
// parts of them that the file replaces.
Result<std::string> expanded_yaml(std::string_view yaml, std::string_view file_name) {
  WEIR_TRY(Node root, parse_yaml(yaml, file_name));
  Problems problems{std::string(file_name)};
  const PresetNotes notes = expand_presets(root, problems);
  if (problems.any()) return tl::unexpected(problems.error());
  std::string text;
  if (Node* engines = root.find("engines")) {
    for (Entry& entry : engines->entries) {
      const Node* preset = entry.value.find("preset");
      if (preset == nullptr) continue;
      const Preset* used_preset = find_named(presets(), preset->text);
      text += fmt::format("# {}: preset {}, version {}\n", text::printable(entry.key),
                          used_preset->name, used_preset->version);
      std::erase_if(entry.value.entries,
                    [](const Entry& candidate) { return candidate.key == "preset"; });
    }
  }
  for (const std::string& note : notes.replaced) text += "# " + text::printable(note) + "\n";
  return text + to_yaml(root);
}

}  // namespace weir::config
