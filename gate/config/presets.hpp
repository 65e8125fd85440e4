// Presets: weir's built-in settings for running, reading and counting an engine
// (configs/presets/*.yaml), and the expansion of `preset:` in a weir.yaml. Pure.
#pragma once

#include <memory>

#include "gate/config/settings.hpp"

namespace weir::config {

struct Node;

struct Preset {
  std::string name;
  std::int64_t version = 1;           // changes when files with the preset change their meaning
  std::string about;                  // one line
  std::string tried;                  // the real program that it was run with; "": none
  std::vector<std::string> programs;  // names that its program has
  std::vector<std::string> packages;  // npm packages that the engine, a script, imports
  std::string loads;  // "gguf", another ending or "folder": the only models that it takes; "": any
  Arguments build;    // a hint: how its program is built; "" where none is known
  std::map<std::string, std::string> flags;  // other spellings of the command's flags
  Arguments command;                         // the program first
  std::string output;                        // "" of a server
  std::vector<std::string> probes;
  struct Device {
    std::string name;  // "vulkan"
    Extra extra;       // arguments and environment that choose it
  };
  std::vector<Device> devices;  // the first is the one of files without backends
  std::string unasked;          // device without arguments that choose one; "": it varies
  std::vector<PromptSettings> prompts;
  std::shared_ptr<const Node> tree;  // its file, for parsing a weir.yaml that uses it

  // "llama-bench 1", as baselines keep it.
  [[nodiscard]] std::string id() const { return fmt::format("{} {}", name, version); }
};

// Returns true if `loads` covers the model at `path`, a folder or a file.
[[nodiscard]] bool loads_model(std::string_view loads, std::string_view path, bool folder);

// By name. All that are built in can be read: a test reads them.
[[nodiscard]] const std::vector<Preset>& presets();
[[nodiscard]] std::vector<std::string> preset_names();
// Returns the preset whose program has this file name; null if there is none.
[[nodiscard]] const Preset* find_preset_by_program(std::string_view file_name);

// Returns a weir.yaml with its presets expanded. Comment lines at its beginning name the presets
// and list the parts that the file replaces. Fails as parse_settings does if the text or a preset's
// name cannot be read.
[[nodiscard]] Result<std::string> expanded_yaml(std::string_view yaml, std::string_view file_name);

// Returns `text` as a scalar, quoted if YAML could read it as something else.
[[nodiscard]] std::string yaml_scalar(std::string_view text);
// "[a, b]".
[[nodiscard]] std::string yaml_list(std::span<const std::string> texts);

}  // namespace weir::config
