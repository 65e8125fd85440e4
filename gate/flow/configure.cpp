// Loads weir.yaml: its settings, its cells, and the rules that apply to it.
#include "gate/flow/configure.hpp"

#include "gate/adapters/format.hpp"
#include "gate/adapters/serving.hpp"
#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/config/presets.hpp"
#include "gate/config/rules.hpp"
#include "gate/flow/devices.hpp"
#include "gate/profile/assemble.hpp"
#include "gate/sys/clock.hpp"
#include "gate/sys/paths.hpp"

namespace weir::flow {

// Returns the facts that weir.yaml is checked against: today's date, device twins, adapters, probes
// and APIs.
config::Supported config_context(const sys::World& world, const std::string& config_file) {
  config::Supported context;
  context.twins = twin_names(world, sys::absolute(sys::folder_of(config_file)));
  context.today = sys::date_of(world.clock.now());
  context.adapters = adapters::names();
  for (const adapters::Adapter& adapter : adapters::table()) {
    using Counts = adapters::Adapter::Counts;
    if (adapter.counts == Counts::always) context.always_reporting.emplace_back(adapter.name);
    if (adapter.counts == Counts::on_request)
      context.reporting_on_request.emplace_back(adapter.name);
    if (adapter.counts == Counts::results) context.results.emplace_back(adapter.name);
  }
  for (const auto& [name, devices] : probes::probe_devices()) context.probes.push_back(name);
  context.apis = adapters::serving::api_names();
  for (const adapters::serving::Api& api : adapters::serving::apis()) {
    config::Supported::Sent& sent = context.sent[std::string(api.name)];
    sent.always = adapters::serving::reserved_members(api, /*sends_extra_fields=*/false);
    for (std::string& member :
         adapters::serving::reserved_members(api, /*sends_extra_fields=*/true)) {
      if (!holds(sent.always, member)) sent.own.push_back(std::move(member));
    }
  }
  return context;
}

// Adds the reference workload (timed to correct for the machine's speed) to timed cells, or removes
// it when a base program is compared.
Result<void> choose_reference(LoadedConfig& loaded, bool times, bool against) {
  const std::optional<std::string>& reference = loaded.configuration.settings->gate.reference;
  if (!reference) return {};
  const auto is_reference = [&](const config::Cell& cell) { return cell.key.str() == *reference; };
  const auto selected = std::ranges::find_if(loaded.cells, is_reference);
  if (against) {
    if (selected != loaded.cells.end() && loaded.cells.size() > 1) loaded.cells.erase(selected);
    return {};
  }
  if (!times || selected != loaded.cells.end()) return {};
  WEIR_TRY(const config::Matrix matrix, config::expand(*loaded.configuration.settings));
  std::ranges::copy_if(matrix.cells, std::back_inserter(loaded.cells), is_reference);
  return {};
}

void set_reference_rates(const config::Settings& settings,
                         std::vector<profile::Profile>& profiles) {
  if (settings.gate.reference) profile::set_reference_rates(profiles, *settings.gate.reference);
}

Result<Configuration> parse_configuration(const std::string& text, const std::string& file,
                                          const config::Supported& context) {
  Configuration configuration;
  WEIR_TRY(config::Settings settings, config::parse_settings(text, file, context));
  configuration.settings = std::make_unique<config::Settings>(std::move(settings));
  configuration.file = file;
  configuration.redactor =
      config::Redactor(*configuration.settings, sys::absolute(sys::folder_of(file)));
  return configuration;
}

void hide_private_names(const config::Settings& base, Configuration& configuration) {
  config::copy_privacy(base, *configuration.settings);
  const std::string folder = sys::absolute(sys::folder_of(configuration.file));
  configuration.redactor = config::Redactor(base, folder);
  configuration.redactor.join(config::Redactor(*configuration.settings, folder));
}

// Returns the text of weir.yaml, or of the settings that the command line gives in its place.
static Result<std::string> read_config_text(const Job& job) {
  const std::string& file = job.selection.config;
  if (job.selection.config_text) return *job.selection.config_text;
  if (!job.files().exists(file)) {
    return fail(Code::config,
                "{}: no such file\n  weir init writes a starter one; -c names another", file);
  }
  return job.files().read(file, k_largest_config);
}

// Reads and checks weir.yaml, applies the job's rules, and returns the cells that --cell selects.
Result<LoadedConfig> load_config(const Job& job) {
  const std::string& file = job.selection.config;
  LoadedConfig loaded;
  WEIR_TRY(loaded.text, read_config_text(job));
  WEIR_TRY(loaded.configuration,
           parse_configuration(loaded.text, file, config_context(job.world, file)));
  if (job.rules && job.rules->settings)
    hide_private_names(*job.rules->settings, loaded.configuration);
  WEIR_TRY(config::Matrix matrix, config::expand(*loaded.configuration.settings));
  const config::Redactor& redactor = loaded.configuration.redactor;
  config::FormerNames former;
  if (job.rules) {
    WEIR_TRY(loaded.configuration.rules,
             apply_rules(job, matrix, redactor, *loaded.configuration.settings));
    former = former_names(*loaded.configuration.rules);
  }
  WEIR_TRY(
      loaded.cells,
      config::select(matrix, job.selection.cells, redactor, former).map_error(redacting(redactor)));
  // These notes name the configuration file. Settings from the command line have none.
  if (!job.selection.config_text) loaded.configuration.notes = std::move(matrix.notes);
  return loaded;
}

Result<Answer> show_config(const Job& job) {
  WEIR_TRY(const LoadedConfig loaded, load_config(job));
  WEIR_TRY(const std::string text, config::expanded_yaml(loaded.text, job.selection.config));
  return Answer{text::printable(text)};
}

std::set<std::string> cell_names(const std::vector<config::Cell>& cells) {
  std::set<std::string> names;
  for (const config::Cell& cell : cells) {
    names.insert(cell.key.str());
    names.insert(cell.key.line().str());
  }
  return names;
}

verdict::Policy gate_policy(const config::GateSettings& gate) {
  verdict::Policy policy;
  policy.fail_on_inconclusive = gate.fail_on_inconclusive;
  policy.comment = gate.comment;
  policy.stored_level = gate.stored_level;
  policy.false_alarm = gate.false_alarm;
  policy.missed = gate.missed;
  policy.strict = gate.strict;
  return policy;
}

}  // namespace weir::flow
