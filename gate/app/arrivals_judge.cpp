#include "gate/app/arrivals.hpp"

#ifdef WEIR_SERVE
#include "gate/app/judging.hpp"
#include "gate/app/session.hpp"
#include "gate/app/veiled.hpp"
#include "gate/sys/paths.hpp"

namespace weir::app {
namespace {

CommonOptions options_in(const std::string& folder) {
  CommonOptions options;
  options.config = sys::join_path(folder, "weir.yaml");
  options.baselines = sys::join_path(folder, "baselines");
  return options;
}

// What comes has aliases for private names; baselines go by the true ones.
void unveil(const Loaded& loaded, std::vector<profile::Profile>& profiles) {
  std::map<std::string, profile::CellKey> true_names;
  for (const config::Cell& cell : loaded.cells) {
    true_names.emplace(loaded.veil.cell(cell.key).str(), cell.key);
  }
  for (profile::Profile& one : profiles) {
    if (const auto found = true_names.find(one.cell.str()); found != true_names.end()) {
      one.cell = found->second;
    }
  }
}

}  // namespace

Result<std::unique_ptr<FolderJudge>> FolderJudge::make(
    const std::vector<std::pair<std::string, std::string>>& folders) {
  const sys::RealFiles files;
  auto judge = std::make_unique<FolderJudge>();
  for (const auto& [project, folder] : folders) {
    const auto loaded = load_config(options_in(folder), files);
    if (!loaded) {
      return tl::unexpected(with_context(fmt::format("--gate {}", project), loaded.error()));
    }
    judge->folders_.emplace(project, folder);
  }
  return judge;
}

Result<std::optional<verdict::GateVerdict>> FolderJudge::judge(
    const serve::Arrival& arrival, std::span<const profile::Profile> profiles) {
  const auto found = folders_.find(arrival.project);
  if (found == folders_.end()) return std::nullopt;
  sys::RealFiles files;
  const CommonOptions options = options_in(found->second);
  auto loaded = load_config(options, files);
  // Its words name places of this machine.
  if (!loaded) return fail(Code::config, "the configuration of this project can not be read here");
  Measured measured;
  measured.profiles.assign(profiles.begin(), profiles.end());
  unveil(*loaded, measured.profiles);
  measured.some_cells = measured.profiles.size() < loaded->cells.size();
  measured.settings = std::move(loaded->settings);
  measured.veil = loaded->veil;
  measured.config_file = "weir.yaml";
  measured.config_place = options.config;
  measured.commit = arrival.commit;
  const StoredBaselines stored(files, options.baselines, "stored baselines of the service");
  auto verdict = judge_stored(measured, stored, policy_of(measured, false));
  if (!verdict) return fail(Code::config, "a baseline of this project can not be read here");
  verdict->run.reset();
  return veiled(*std::move(verdict), measured.veil);
}

}  // namespace weir::app
#endif
