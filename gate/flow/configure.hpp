// A configuration, read and expanded: what every flow over cells begins with.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "gate/config/matrix.hpp"
#include "gate/config/redactor.hpp"
#include "gate/config/settings.hpp"
#include "gate/flow/job.hpp"
#include "gate/flow/redacted.hpp"
#include "gate/flow/rules.hpp"

namespace weir::flow {

inline constexpr std::uint64_t k_largest_config = std::uint64_t{1} << 20;

// What weir.yaml is checked against besides itself, on this machine and day.
[[nodiscard]] config::Known known_now(const sys::World& world, const std::string& config_file);

// What is known of a configuration.
struct Configured {
  std::unique_ptr<config::Settings> settings;
  std::string file;                    // as reports name it
  std::optional<std::string> place{};  // where it lies, where reports name it by something else
  config::Redactor redactor;           // over all that is shown
  std::vector<std::string> notes;      // of the matrix, or of a run
  std::optional<RulesUsed> rules{};    // in place of the configuration's own
};
// Parsed text. `file` need not be there.
[[nodiscard]] Result<Configured> configured(const std::string& text, const std::string& file,
                                            const config::Known& known);

// weir.yaml, with its cells, which point into `known.settings`.
struct Loaded {
  Configured known;
  std::string text;
  std::vector<config::Cell> cells;  // those selected with --cell
};
[[nodiscard]] Result<Loaded> load_config(const Job& job);
// What the file comes to: its presets expanded, as YAML. Fails where load_config does.
[[nodiscard]] Result<Answer> show_config(const Job& job);
// Of the cells, and of the lines over their depths.
[[nodiscard]] std::set<std::string> names_of(const std::vector<config::Cell>& cells);

// What a gate's settings say of how it judges.
[[nodiscard]] verdict::Policy policy_of(const config::GateSettings& gate);

// gate.reference, the pinned workload, runs beside whatever is timed against stored samples,
// selected or not; beside a base program it has nothing to say and is left out.
[[nodiscard]] Result<void> choose_reference(Loaded& loaded, bool times, bool against);
// Gives every timed profile its rates, where there is one.
void take_reference(const config::Settings& settings, std::vector<profile::Profile>& profiles);

}  // namespace weir::flow
