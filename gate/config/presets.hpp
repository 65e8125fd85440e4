// Presets: what weir knows of how an engine is called, read and counted (configs/presets/*.yaml,
// built in), and what `preset:` in a weir.yaml comes to. Pure.
#pragma once

#include <memory>

#include "gate/config/settings.hpp"

namespace weir::config {

struct Node;

struct Preset {
  std::string name;
  std::int64_t version = 1;           // a new one changes what a file with it comes to
  std::string about;                  // one line
  std::string tried;                  // the real program that it was run with; "": none
  std::vector<std::string> programs;  // names that its program has
  std::vector<std::string> packages;  // of npm, that a script which is the engine imports
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
  std::string unasked;  // the device that it works on where its arguments name none; "": it varies
  std::vector<PromptSettings> prompts;
  std::shared_ptr<const Node> tree;  // of its file, for those that parse a weir.yaml with it

  // "llama-bench 1", as baselines keep it.
  [[nodiscard]] std::string id() const { return fmt::format("{} {}", name, version); }
};

// A model at `path`, a folder or a file, is one that `loads` means.
[[nodiscard]] bool loads_model(std::string_view loads, std::string_view path, bool folder);

// By name. All that are built in can be read: a test reads them.
[[nodiscard]] const std::vector<Preset>& presets();
[[nodiscard]] std::vector<std::string> preset_names();
// The one whose program has this file name; null where none does.
[[nodiscard]] const Preset* preset_of_program(std::string_view file_name);

// A weir.yaml with its presets expanded, as YAML that means the same, behind lines that name
// them and say what of theirs the file replaces. Fails as parse_settings does where the text or a
// preset's name cannot be read.
[[nodiscard]] Result<std::string> expanded_yaml(std::string_view yaml, std::string_view file_name);

// `text` as a scalar that holds exactly it, quoted where YAML could take it for something else.
[[nodiscard]] std::string yaml_scalar(std::string_view text);
// "[a, b]".
[[nodiscard]] std::string yaml_list(std::span<const std::string> texts);

}  // namespace weir::config
