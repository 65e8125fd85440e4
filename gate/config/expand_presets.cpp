// `preset:` in the tree of a weir.yaml, and what it comes to.
#include <algorithm>

#include "gate/config/parse.hpp"
#include "gate/config/presets.hpp"

namespace weir::config {
namespace {

Node placed(Node node, Place at) {
  node.at = at;
  for (Node& item : node.items) item = placed(std::move(item), at);
  for (Entry& entry : node.entries) {
    entry = {std::move(entry.key), at, placed(std::move(entry.value), at)};
  }
  return node;
}

// Of two mappings in one place both keys, else what stands there already.
void merge(Node& into, const Node& from, Place at, bool deeper) {
  for (const Entry& entry : from.entries) {
    Node* own = into.find(entry.key);
    if (own == nullptr) {
      into.entries.push_back({entry.key, at, placed(entry.value, at)});
    } else if (deeper && own->kind == Node::Kind::map && entry.value.kind == Node::Kind::map) {
      merge(*own, entry.value, at, false);
    } else if (!deeper && own->kind == Node::Kind::null) {
      std::erase_if(into.entries, [&](const Entry& one) { return one.key == entry.key; });
    }
  }
}

// Takes out of the mappings in `from` the keys that those in `own` have: these go first.
void leave_to(const Node& own, Node& from) {
  std::erase_if(from.entries, [&](Entry& one) {
    const Node* kept = own.find(one.key);
    if (kept == nullptr) return false;
    std::erase_if(one.value.entries,
                  [&](const Entry& inner) { return kept->find(inner.key) != nullptr; });
    return one.value.entries.empty();
  });
}

// What stands under `key`, which is `made` where nothing does.
Node& node_under(Node& node, const char* key, Node made) {
  if (Node* found = node.find(key)) return *found;
  return node.entries.emplace_back(Entry{key, made.at, std::move(made)}).value;
}

// A mapping under `key`, made where there is none.
Node& map_under(Node& node, const char* key, Place at) {
  Node& found = node_under(node, key, map_node({}, at));
  if (found.kind == Node::Kind::null) found = map_node({}, found.at);
  return found;
}

bool stands(const Node* node) { return node != nullptr && node->kind != Node::Kind::null; }

class Expanding {
 public:
  Expanding(Node& root, Problems& problems) : root_(root), problems_(problems) {}

  PresetNotes run() {
    Node* engines = root_.find("engines");
    if (engines == nullptr || engines->kind != Node::Kind::map) return {};
    for (Entry& entry : engines->entries) expand_engine(entry);
    if (uses_.empty() || problems_.any()) return {};
    alone_ = engines->entries.size() == 1;
    const Node* matrix = root_.find("matrix");
    chosen_ = matrix != nullptr && matrix->find("include") != nullptr;
    fill("models", "model");
    fill_backends();
    fill("prompts", "prompt");
    for (const Use& use : uses_) {
      add_limits(use);
      leave_out_models(use);
      choose_devices(use);
    }
    return std::move(notes_);
  }

 private:
  struct Use {
    std::string engine;
    const Preset* preset;
    Place at;
  };

  void expand_engine(Entry& entry) {
    Node& engine = entry.value;
    const Node* named = engine.find("preset");
    const Node* program = engine.find("program");
    if (named == nullptr) {
      if (program == nullptr) return;
      problems_.add(program->at,
                    "program takes the place of a preset's own, and there is no preset\n"
                    "  without one the command begins with the program");
      return;
    }
    const Preset* preset = find_named(presets(), named->text);
    if (preset == nullptr) {
      return problems_.unknown(named->at, "preset", named->text, preset_names());
    }
    const Place at = named->at;
    uses_.push_back({entry.key, preset, at});
    const Node* command = engine.find("command");
    if (program != nullptr && stands(command)) {
      problems_.add(program->at,
                    "program stands in the preset's command: with a command of your own, "
                    "leave it out");
      return;
    }
    const std::string path = program == nullptr ? "" : program->text;
    if (program != nullptr && path.empty()) {
      return void(problems_.expected(*program, "program", "a text"));
    }
    std::erase_if(engine.entries, [](const Entry& one) { return one.key == "program"; });
    merge(engine, *preset->tree->find("engine"), at, true);
    if (!path.empty()) engine.find("command")->items.front().text = path;
  }

  // Models or prompts that the file does not have: the presets', each for its own engine.
  void fill(const char* section, const char* one) {
    if (stands(root_.find(section))) {
      for (const Use& use : uses_) {
        const Node* theirs = use.preset->tree->find(section);
        // Of the same names it is clear whose they are.
        if (theirs != nullptr &&
            !std::ranges::is_permutation(keys_of(*theirs), keys_of(*root_.find(section)))) {
          note(notes_.replaced, use,
               fmt::format("{} in this file replace the preset's: {}", section,
                           text::join(keys_of(*theirs))));
        }
      }
      return;
    }
    Node filled = map_node({});
    for (const Use& use : uses_) {
      const Node* from = use.preset->tree->find(section);
      if (from != nullptr) merge(filled, *from, use.at, false);
    }
    if (filled.entries.empty()) return;
    for (const Use& use : uses_) {
      const Node* from = use.preset->tree->find(section);
      for (const Entry& entry : filled.entries) {
        const bool others = from != nullptr && from->find(entry.key) == nullptr;
        if (others) leave_out(use.engine, one, entry.key, use.at);
      }
    }
    map_under(root_, section, uses_.front().at) = std::move(filled);
  }

  // Where the file has none: the first device of each preset.
  void fill_backends() {
    if (stands(root_.find("backends"))) return;
    Node& backends = map_under(root_, "backends", uses_.front().at);
    for (const Use& use : uses_) {
      map_under(backends, use.preset->devices.front().name.c_str(), use.at);
    }
  }

  static void note(std::vector<std::string>& notes, const Use& use, const std::string& words) {
    notes.push_back(fmt::format("engine {}, preset {}: {}", use.engine, use.preset->name, words));
  }
  // What of this file is nothing for the preset.
  void leave_out(const Use& use, const char* what, const std::vector<std::string>& names) {
    for (const std::string& name : names) leave_out(use.engine, what, name, use.at);
    if (chosen_ || names.empty()) return;
    note(notes_.left_out, use, fmt::format("left out: {} {}", what, text::join(names)));
  }

  void leave_out(const std::string& engine, std::string what, const std::string& name, Place at) {
    if (chosen_) return;
    Node& matrix = map_under(root_, "matrix", at);
    node_under(matrix, "exclude", list_node({}, at))
        .items.push_back(map_node(
            {{"engine", at, text_node(engine, at)}, {std::move(what), at, text_node(name, at)}},
            at));
  }

  // Before those of the file, of which the last that matches wins.
  void add_limits(const Use& use) {
    const Node* limits = use.preset->tree->find("limits");
    if (limits == nullptr) return;
    Node& own = node_under(root_, "limits", list_node({}, use.at));
    if (own.kind != Node::Kind::list) return;  // parse_limits complains
    std::vector<Node> before;
    for (const Node& item : limits->items) {
      before.push_back(placed(item, use.at));
      map_under(before.back(), "match", use.at)
          .entries.push_back({"engine", use.at, text_node(use.engine, use.at)});
    }
    own.items.insert(own.items.begin(), before.begin(), before.end());
  }

  void leave_out_models(const Use& use) {
    const Node* models = root_.find("models");
    const std::string& loads = use.preset->loads;
    if (models == nullptr || loads.empty()) return;
    std::vector<std::string> others;
    for (const Entry& entry : models->entries) {
      const Node* path =
          entry.value.kind == Node::Kind::map ? entry.value.find("path") : &entry.value;
      // What a folder is, only its name tells here.
      const bool file = path != nullptr && text::lower(path->text).ends_with(".gguf");
      const bool fits =
          path != nullptr && loads_model(loads, path->text, loads == "folder" && !file);
      if (!fits) others.push_back(entry.key);
    }
    if (others.size() == models->entries.size()) return;  // named otherwise, or the engine says so
    leave_out(use, "model", others);
  }

  void choose_devices(const Use& use) {
    Node* backends = root_.find("backends");
    if (backends == nullptr) return;
    const Node& devices = *use.preset->tree->find("devices");
    const Node& engine = *root_.find("engines")->find(use.engine);
    std::vector<std::string> left_out;
    for (Entry& entry : backends->entries) {
      Node& backend = entry.value;
      if (backend.kind == Node::Kind::null) backend = map_node({}, backend.at);
      if (backend.kind != Node::Kind::map) continue;
      const Node* device = backend.find("device");
      const Node* row = devices.find(device == nullptr ? entry.key : device->text);
      const Node* engines = backend.find("engines");
      const Node* own = engines == nullptr ? nullptr : engines->find(use.engine);
      if (row == nullptr) {
        if (own == nullptr && backend.find("args") == nullptr) left_out.push_back(entry.key);
        continue;
      }
      // What stands there for all engines, or at the engine, goes before what a preset has for one.
      Node extra = *row;
      leave_to(engine, extra);
      if (alone_ && own == nullptr) {
        merge(backend, extra, use.at, true);
        continue;
      }
      leave_to(backend, extra);
      if (extra.entries.empty()) continue;
      Node& engines_here = map_under(backend, "engines", use.at);
      merge(map_under(engines_here, use.engine.c_str(), use.at), extra, use.at, true);
    }
    if (!left_out.empty() && left_out.size() == backends->entries.size()) {
      const std::vector<std::string> names = keys_of(devices);
      return void(problems_.add(use.at,
                                "preset {} runs on {}, and no backend here does\n"
                                "  write: backends: {{{}: {{}}}}, or give a backend its args",
                                use.preset->name, text::join(names), names.front()));
    }
    leave_out(use, "backend", left_out);
  }

  Node& root_;
  Problems& problems_;
  std::vector<Use> uses_;
  PresetNotes notes_;
  bool alone_ = false;   // one engine: what is a backend's is the engine's
  bool chosen_ = false;  // matrix.include says what is wanted
};

}  // namespace

PresetNotes expand_presets(Node& root, Problems& problems) {
  return Expanding(root, problems).run();
}

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
      const Preset* known = find_named(presets(), preset->text);
      text += fmt::format("# {}: preset {}, version {}\n", text::printable(entry.key), known->name,
                          known->version);
      std::erase_if(entry.value.entries, [](const Entry& one) { return one.key == "preset"; });
    }
  }
  for (const std::string& note : notes.replaced) text += "# " + text::printable(note) + "\n";
  return text + to_yaml(root);
}

}  // namespace weir::config
