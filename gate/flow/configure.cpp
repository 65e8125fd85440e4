#include "gate/flow/configure.hpp"

#include "gate/adapters/format.hpp"
#include "gate/adapters/serving.hpp"
#include "gate/base/find.hpp"
#include "gate/config/presets.hpp"
#include "gate/flow/devices.hpp"
#include "gate/profile/assemble.hpp"
#include "gate/sys/clock.hpp"
#include "gate/sys/paths.hpp"

namespace weir::flow {

config::Known known_now(const sys::World& world, const std::string& config_file) {
  config::Known known;
  known.twins = known_twins(world, sys::absolute(sys::folder_of(config_file)));
  known.today = sys::date_of(world.clock.now());
  known.adapters = adapters::names();
  for (const adapters::Adapter& adapter : adapters::table()) {
    using Counts = adapters::Adapter::Counts;
    if (adapter.counts == Counts::always) known.telling.emplace_back(adapter.name);
    if (adapter.counts == Counts::asked) known.telling_if_asked.emplace_back(adapter.name);
    if (adapter.counts == Counts::results) known.results.emplace_back(adapter.name);
  }
  for (const auto& [name, devices] : probes::probe_devices()) known.probes.push_back(name);
  known.apis = adapters::serving::api_names();
  for (const adapters::serving::Api& api : adapters::serving::apis()) {
    config::Known::Sent& sent = known.sent[std::string(api.name)];
    sent.always = adapters::serving::members_sent(api, false);
    for (std::string& member : adapters::serving::members_sent(api, true)) {
      if (!holds(sent.always, member)) sent.own.push_back(std::move(member));
    }
  }
  return known;
}

Result<void> choose_reference(Loaded& loaded, bool times, bool against) {
  const std::optional<std::string>& reference = loaded.known.settings->gate.reference;
  if (!reference) return {};
  const auto is_it = [&](const config::Cell& cell) { return cell.key.str() == *reference; };
  const auto here = std::ranges::find_if(loaded.cells, is_it);
  if (against) {
    if (here != loaded.cells.end() && loaded.cells.size() > 1) loaded.cells.erase(here);
    return {};
  }
  if (!times || here != loaded.cells.end()) return {};
  WEIR_TRY(const config::Matrix matrix, config::expand(*loaded.known.settings));
  std::ranges::copy_if(matrix.cells, std::back_inserter(loaded.cells), is_it);
  return {};
}

void take_reference(const config::Settings& settings, std::vector<profile::Profile>& profiles) {
  if (settings.gate.reference) profile::take_reference(profiles, *settings.gate.reference);
}

Result<Configured> configured(const std::string& text, const std::string& file,
                              const config::Known& known) {
  Configured made;
  WEIR_TRY(config::Settings settings, config::parse_settings(text, file, known));
  made.settings = std::make_unique<config::Settings>(std::move(settings));
  made.file = file;
  made.redactor = config::Redactor(*made.settings, sys::absolute(sys::folder_of(file)));
  return made;
}

Result<Loaded> load_config(const Job& job) {
  const std::string& file = job.asked.config;
  Loaded loaded;
  if (job.asked.config_text) {
    loaded.text = *job.asked.config_text;
  } else if (job.files().exists(file)) {
    WEIR_TRY(loaded.text, job.files().read(file, k_largest_config));
  } else {
    return fail(Code::config,
                "{}: no such file\n  weir init writes a starter one; -c names another", file);
  }
  WEIR_TRY(loaded.known, configured(loaded.text, file, known_now(job.world, file)));
  WEIR_TRY(config::Matrix matrix, config::expand(*loaded.known.settings));
  if (job.rules) {
    loaded.known.rules =
        apply_rules(*job.rules, matrix, job.folder(), job.asked.cells, *loaded.known.settings);
  }
  const config::Redactor& redactor = loaded.known.redactor;
  WEIR_TRY(loaded.cells,
           config::select(matrix, job.asked.cells, redactor).map_error(redacting(redactor)));
  // Of a command line there is no file to speak of.
  if (!job.asked.config_text) loaded.known.notes = std::move(matrix.notes);
  return loaded;
}

Result<Answer> show_config(const Job& job) {
  WEIR_TRY(const Loaded loaded, load_config(job));
  WEIR_TRY(std::string text, config::expanded_yaml(loaded.text, job.asked.config));
  return Answer{std::move(text)};
}

std::set<std::string> names_of(const std::vector<config::Cell>& cells) {
  std::set<std::string> names;
  for (const config::Cell& cell : cells) {
    names.insert(cell.key.str());
    names.insert(cell.key.line().str());
  }
  return names;
}

verdict::Policy policy_of(const config::GateSettings& gate) {
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
