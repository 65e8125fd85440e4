// Turns a command line as somebody typed it into a weir.yaml of one cell, which `weir ab` hands to
// the gate. Pure.
#pragma once

#include "gate/config/presets.hpp"
#include "gate/config/printed_metrics.hpp"

namespace weir::config {

// The model of a command that names none.
inline constexpr std::string_view k_no_model = "/dev/null";

struct TypedCommand {
  std::string program;                      // as typed
  Arguments args;                           // the same
  Arguments base_args{}, candidate_args{};  // after `args`, of one side: taken as they are
  const Preset* preset = nullptr;           // knows the meaning of the arguments; null: nobody does
  // Without a preset: flags such as -n and --max-new-tokens give the number of tokens.
  bool has_token_flags = false;
  std::string tokens{};  // without a preset: the argument that is the number of tokens; "": unnamed
  bool is_preset_guessed = false;      // by what it printed: nothing is added to its arguments
  std::string output;                  // of what it printed: the adapter; "": `metrics` alone
  std::vector<PrintedMetric> metrics;  // read from its output; empty: what the adapter reads
  std::vector<std::string> probes;
  std::string device = "cpu";
  std::string twin;               // the simulated GPU of that API; "": a real device
  std::set<std::string> cpu_ops;  // ops that the base runs on the CPU besides that device
  Environment device_env;         // in place of the preset's own for the device
  Environment env;                // goes before it
  std::string budget = "2m";
};

struct TypedConfig {
  std::string yaml;
  Arguments command;            // its engine's, the program first
  Arguments base_command{};     // the same with the base's arguments
  bool totals = false;          // there are counts, and they are those of a whole run
  bool is_read = true;          // its output is read; else there are only counts
  Environment base_env{};       // the part of device_env that `env` replaces
  std::string token_words{};    // "-n 24", read as the number of tokens; "": none
  std::string likely_tokens{};  // a number among the arguments that may be it; "": none
  std::vector<std::string> probes{};
  Environment device_env{};                  // as in TypedCommand
  std::vector<std::string> other_numbers{};  // that it printed and no metric reads: "hits: 12"
};

// Placeholders replace the arguments that the preset knows: the model, the prompt, lengths,
// repetitions. Other options of its command (-o json) are added, or replace the typed ones, unless
// the preset is a guess. Without a preset, or if it has no length, counts are totals of a run.
// Fails with Code::usage if a number is expected and none was typed.
[[nodiscard]] Result<TypedConfig> config_of(const TypedCommand& typed);

// Returns the devices of the preset whose arguments are among `args` ("-ngl 0").
[[nodiscard]] std::vector<std::string> typed_devices(const Preset& preset, const Arguments& args);
// Returns the devices that the engine may use if its arguments name none: one, or all but the CPU.
[[nodiscard]] std::vector<std::string> default_devices(const Preset& preset);

}  // namespace weir::config
