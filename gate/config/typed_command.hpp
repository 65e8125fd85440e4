// A command line as somebody typed it, as a weir.yaml of one cell: what `weir ab` hands to the
// gate. Pure.
#pragma once

#include "gate/config/presets.hpp"

namespace weir::config {

struct TypedCommand {
  std::string program;             // as typed
  Arguments args;                  // the same
  const Preset* preset = nullptr;  // which argument is what; null: nobody knows
  std::string output;              // without a preset: the adapter; "": nothing is read
  std::vector<std::string> probes;
  std::string device = "cpu";
  std::set<std::string> cpu_ops;  // that the base runs on the CPU beside that device
  Environment device_env;         // in place of the preset's own for the device
  Environment env;                // goes before it
  std::string budget = "2m";
};

struct TypedConfig {
  std::string yaml;
  Arguments command;       // its engine's, the program first
  bool totals = false;     // counts are those of a whole run
  bool is_read = true;     // what it prints; else there are counts alone
  Environment base_env{};  // of device_env, what `env` takes the place of
};

// Placeholders take the place of what the preset knows: the model, the prompt, lengths,
// repetitions. What its command has besides (-o json) is added or goes before what was typed.
// Without a preset, or where it has no length, counts are totals of a run. Fails with Code::usage
// where a number is none.
[[nodiscard]] Result<TypedConfig> config_of(const TypedCommand& typed);

// The devices of the preset whose arguments stand among `args` ("-ngl 0").
[[nodiscard]] std::vector<std::string> devices_typed(const Preset& preset, const Arguments& args);
// Where none stand there: the device that it works on then, or all but the CPU.
[[nodiscard]] std::vector<std::string> devices_untyped(const Preset& preset);

}  // namespace weir::config
