#include "gate/app/init_ci.hpp"

#include <algorithm>

#include "gate/app/session.hpp"
#include "gate/app/version.hpp"
#include "gate/config/starter.hpp"
#include "gate/report/profile_texts.hpp"
#include "gate/sys/paths.hpp"
#include "gate/unit/metric.hpp"

namespace weir::app {
namespace {

// The least that a hosted runner is given: it installs packages and builds an engine first.
constexpr double k_least_minutes = 30;

// The folder above `folder` (absolute) that git knows, or `folder` itself where none does.
std::string repository_of(const std::string& folder, const sys::Files& files) {
  for (std::string at = folder;;) {
    if (files.exists(sys::join_path(at, ".git"))) return at;
    const std::string above = sys::folder_of(at);
    if (above == at || above.empty() || above == ".") return folder;
    at = above;
  }
}

// `folder` as seen from `root` above it.
std::string below(const std::string& folder, const std::string& root) {
  if (folder == root) return ".";
  return folder.substr(root == "/" ? 1 : root.size() + 1);
}

// Where the text goes, and what is said of it; a file that is there is never written over.
Result<std::string> write_new(CiSystem system, const std::string& root, const std::string& text,
                              sys::Files& files) {
  const bool github = system == CiSystem::github;
  std::string name = github ? ".github/workflows/weir.yml" : ".gitlab-ci.yml";
  std::string then = github ? "say in it how the engine is built, and name the Action's repository"
                            : "say in it how the engine is built";
  if (!github && files.exists(sys::join_path(root, name))) {
    name = ".gitlab/weir.yml";
    then += "; .gitlab-ci.yml takes it in by\n          include: [{local: /.gitlab/weir.yml}]";
  }
  const std::string place = sys::join_path(root, name);
  if (files.exists(place)) {
    return fmt::format("  kept    {}: it is there already; move it away to get a new one\n", name);
  }
  WEIR_CHECK(files.make_dirs(sys::folder_of(place)));
  WEIR_CHECK(files.write_atomic(place, text));
  return fmt::format("wrote {}\n  next    {}\n", name, then);
}

std::string processes_text(std::size_t number) {
  return fmt::format("{} process{}", number, number == 1 ? "" : "es");
}

// How many processes of `pass` a gate starts.
std::size_t processes(const std::vector<PlannedCommand>& commands, profile::Pass pass) {
  return static_cast<std::size_t>(
      std::count_if(commands.begin(), commands.end(),
                    [&](const PlannedCommand& command) { return command.pass == pass; }));
}

std::string minutes_text(const std::vector<PlannedCommand>& commands, const Measured& measured) {
  const std::size_t counted = processes(commands, profile::Pass::counted);
  const std::size_t timed = processes(commands, profile::Pass::timed);
  std::string text = fmt::format("\nHow long a gate takes on this machine\n  counts  {}: {}\n",
                                 unit::show_duration(measured.seconds), processes_text(counted));
  if (timed > 0 && counted > 0) {
    // Counted processes run side by side and are short: a timed one takes no less.
    const double each = measured.seconds / static_cast<double>(counted);
    text +=
        fmt::format("  times   at least {} more: {}, one after the other\n",
                    unit::show_duration(each * static_cast<double>(timed)), processes_text(timed));
  }
  return text +
         fmt::format(
             "  beside  a base (--against): counts of both, its build, and at most {} of pairs"
             "\n          (gate.budget; weir calibrate says what it takes)\n",
             unit::show_duration(measured.settings->gate.budget_seconds));
}

}  // namespace

Result<ExitCode> init_ci(CiSystem system, const std::string& config, bool incomplete,
                         sys::Files& files) {
  CommonOptions common;
  common.config = config;
  common.config_given = true;
  common.counts_only = true;
  WEIR_TRY(const Loaded loaded, load_config(common, files));
  const std::string folder = sys::folder_of(sys::absolute(config));
  const std::string root = repository_of(folder, files);
  config::StarterCi found;
  found.version = k_version;
  found.folder = below(folder, root);
  found.file = below(sys::absolute(config), folder);
  found.minutes = std::max(k_least_minutes, 3 * loaded.settings->gate.budget_seconds / 60);
  found.vulkan = std::any_of(loaded.cells.begin(), loaded.cells.end(),
                             [](const config::Cell& cell) { return cell.device == "vulkan"; });
  found.builds = std::any_of(loaded.settings->engines.begin(), loaded.settings->engines.end(),
                             [](const config::EngineSettings& one) { return !one.build.empty(); });
  WEIR_TRY(const std::string said,
           write_new(system, root,
                     system == CiSystem::github ? config::starter_github(found)
                                                : config::starter_gitlab(found),
                     files));
  say(said);
  if (incomplete) {
    say(fmt::format(
        "nothing was measured: {} is an example still. Fill in what was not found, then run this\n"
        "again: it goes on from there.\n",
        config));
    return ExitCode::pass;
  }
  say("\n");
  if (auto looked = doctor_of(common); !looked) return looked;

  MeasureOptions wanted;
  wanted.plan.times = false;
  WEIR_TRY(Measured measured, measure(common, wanted, files));
  veil_profiles(measured);
  say("\n" + report::profiles_text(measured.profiles, {.width = width_of(1)}));
  WEIR_TRY(Loaded again, load_config(common, files));
  wanted.plan.times = true;
  WEIR_TRY(const auto commands,
           planned_commands(std::move(again), common, wanted, {common.out, ""}, files));
  say(minutes_text(commands, measured));
  say(fmt::format("next: weir baseline accept -c {} --counts-only, and commit baselines/\n",
                  config));
  return write_profiles(common, measured.profiles);
}

}  // namespace weir::app
