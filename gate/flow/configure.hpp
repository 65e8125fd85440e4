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

// Returns the facts of this machine and day that weir.yaml is checked against.
[[nodiscard]] config::Supported config_context(const sys::World& world,
                                               const std::string& config_file);

// A parsed configuration.
struct Configuration {
  std::unique_ptr<config::Settings> settings;
  std::string file;                        // the name in reports
  std::optional<std::string> file_path{};  // its path, if reports use another name
  config::Redactor redactor;               // applied to everything that is shown
  std::vector<std::string> notes;          // notes of the matrix or of a run
  std::optional<AppliedRules> rules{};     // a commit's rules, which replace the configuration's
};
// Parses the text of a configuration. `file` need not exist.
[[nodiscard]] Result<Configuration> parse_configuration(const std::string& text,
                                                        const std::string& file,
                                                        const config::Supported& context);

// Hides the names that `base`, the configuration that judges, calls private: a name that is private
// in either stays hidden. Call it before the matrix is expanded.
void hide_private_names(const config::Settings& base, Configuration& configuration);

// A loaded weir.yaml. The cells point into `configuration.settings`.
struct LoadedConfig {
  Configuration configuration;
  std::string text;
  std::vector<config::Cell> cells;  // selected with --cell
};
[[nodiscard]] Result<LoadedConfig> load_config(const Job& job);
// Returns the file as YAML with its presets expanded. Fails like load_config.
[[nodiscard]] Result<Answer> show_config(const Job& job);
// Returns the names of the cells, and of the lines over their depths.
[[nodiscard]] std::set<std::string> cell_names(const std::vector<config::Cell>& cells);

// Returns the policy that a gate's settings ask for.
[[nodiscard]] verdict::Policy gate_policy(const config::GateSettings& gate);

// Adds gate.reference, the pinned workload, to cells that are timed against stored samples,
// selected or not. With a base program it is of no use, and is left out.
[[nodiscard]] Result<void> choose_reference(LoadedConfig& loaded, bool times, bool against);
// Gives each timed profile the reference's rates, if a reference was measured.
void set_reference_rates(const config::Settings& settings, std::vector<profile::Profile>& profiles);

}  // namespace weir::flow
