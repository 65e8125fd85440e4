#include "gate/run/container.hpp"

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/config/container.hpp"
#include "gate/config/placeholders.hpp"
#include "gate/run/environment.hpp"
#include "gate/sys/paths.hpp"

namespace weir::run {
namespace {

using config::Runtime;

// Asked to end, srun has Slurm kill the engine, and waits until that is done.
constexpr double k_slurm_seconds = 45;
// Podman leaves a process that puts things in order behind it.
constexpr double k_podman_seconds = 5;

// Would change srun itself, so that they must not stand in its own environment.
constexpr std::array<std::string_view, 2> k_of_every_program{"LD_PRELOAD", "LD_LIBRARY_PATH"};

// "model-00001-of-00003.gguf": the others lie beside it.
bool is_part_of_several(const std::string& path) {
  const std::string name = sys::file_name_of(path);
  const std::size_t of = name.rfind("-of-");
  constexpr std::string_view k_form = "00000-of-00000";
  constexpr std::size_t k_digits = 5;
  return of != std::string::npos && of >= k_digits &&
         text::has_form(std::string_view(name).substr(of - k_digits, k_form.size()), k_form);
}

std::string place_of_model(const std::string& path) {
  // models--NAME/snapshots/COMMIT/… holds links to models--NAME/blobs/…. Any other "snapshots" is a
  // folder like others, and what lies beside it is no affair of the engine's.
  constexpr std::string_view k_snapshots = "/snapshots/";
  for (std::size_t at = path.rfind(k_snapshots); at != std::string::npos && at > 0;
       at = path.rfind(k_snapshots, at - 1)) {
    std::string repository = path.substr(0, at);
    if (sys::file_name_of(repository).starts_with("models--")) return repository;
  }
  return is_part_of_several(path) ? sys::folder_of(path) : path;
}

// The user's own options bring something to this place: "-v FROM:PLACE", "--mount …,target=PLACE".
bool mounted_by(const config::Arguments& command, const config::RuntimeLine& parts,
                const std::string& path) {
  for (std::size_t i = parts.options; i < parts.image; ++i) {
    for (const std::string& part : text::split(command[i], ',')) {
      for (const char* key : {"target=", "dst=", "destination="}) {
        if (part == key + path) return true;
      }
      std::vector<std::string> fields = text::split(part, ':');
      if (fields.size() > 1 && fields[1] == path) return true;
    }
  }
  return false;
}

// Those that the user's own options set or hand on.
std::vector<std::string> variables_in(const config::Arguments& command,
                                      const config::RuntimeLine& parts) {
  std::vector<std::string> names;
  for (std::size_t i = parts.options; i < parts.image; ++i) {
    const std::string next = i + 1 < command.size() ? command[i + 1] : "";
    if (auto name = config::variable_set_by(command[i], next)) names.push_back(std::move(*name));
  }
  return names;
}

// In front of the user's own.
void add_options(config::Arguments& argv, const config::RuntimeLine& parts,
                 const config::Arguments& added) {
  argv.insert(argv.begin() + static_cast<std::ptrdiff_t>(parts.options), added.begin(),
              added.end());
}

Result<sys::ProcessSpec> carry_into_run(Runtime runtime, const config::Arguments& command,
                                        const config::RuntimeLine& parts, const Carried& carried) {
  config::Arguments added{"--rm", "--cidfile=" + carried.id_file, label_of(carried.name)};
  if (!carried.port.empty() && !config::says_network(command, parts)) {
    added.push_back(fmt::format("--publish=127.0.0.1:{0}:{0}", carried.port));
  }
  for (const Mount& mount : carried.mounts) {
    if (mounted_by(command, parts, mount.path)) continue;
    if (const auto why = why_not_mounted(runtime, mount.path))
      return fail(Code::config, "{}", *why);
    added.emplace_back("--mount");
    added.push_back(fmt::format("type=bind,source={0},target={0}{1}", mount.path,
                                mount.writable ? "" : ",readonly"));
  }
  for (const auto& [name, value] : carried.env) {
    added.emplace_back("-e");
    added.push_back(name + "=" + value);
  }
  sys::ProcessSpec call{.argv = command, .passed = variables_in(command, parts)};
  for (const std::string& name : carried.handed_on) {
    if (holds(call.passed, name)) continue;
    added.insert(added.end(), {"-e", name});
    call.passed.push_back(name);
  }
  add_options(call.argv, parts, added);
  return call;
}

// Puts `more` behind the value of `option`, where the user has it ("--x=a" or "--x a"); of several
// of them srun takes the last.
bool extended(config::Arguments& argv, std::size_t begin, std::size_t end, std::string_view option,
              const std::string& more) {
  for (std::size_t i = std::min(end, argv.size()); i-- > begin;) {
    if (argv[i].starts_with(std::string(option) + "=")) {
      argv[i] += more;
      return true;
    }
    if (argv[i] == option && i + 1 < argv.size()) {
      argv[i + 1] += more;
      return true;
    }
  }
  return false;
}

bool has_image(const config::Arguments& command, const config::RuntimeLine& parts) {
  const auto options = std::span(command).first(parts.image).subspan(parts.options);
  return std::ranges::any_of(options, [](const std::string& word) {
    return word.starts_with("--container-image") || word.starts_with("--container-name");
  });
}

Result<sys::ProcessSpec> carry_by_srun(const config::Arguments& command,
                                       const config::RuntimeLine& parts, const Carried& carried) {
  sys::ProcessSpec call{.argv = command, .passed = carried.handed_on};
  // srun hands its own environment on. What would change srun itself is named to it instead, and a
  // value there ends at the first comma.
  std::string exported;
  for (const auto& [name, value] : carried.env) {
    if (!holds(k_of_every_program, name)) {
      call.env.emplace_back(name, value);
      continue;
    }
    if (value.find(',') != std::string::npos) {
      return fail(Code::config, "srun cannot be told {}={}: a comma ends the value", name, value);
    }
    exported += "," + name + "=" + value;
    call.unset.push_back(name);  // what srun has itself would win
  }
  std::string mounts;
  if (has_image(command, parts)) {
    for (const Mount& mount : carried.mounts) {
      if (mounted_by(command, parts, mount.path)) continue;
      if (const auto why = why_not_mounted(Runtime::srun, mount.path)) {
        return fail(Code::config, "{}", *why);
      }
      mounts += fmt::format("{0}{1}:{1}{2}", mounts.empty() ? "" : ",", mount.path,
                            mount.writable ? "" : ":ro");
    }
  }
  config::Arguments added;
  if (!extended(call.argv, parts.options, parts.image, "--export", exported)) {
    added.push_back("--export=ALL" + exported);
  }
  if (!mounts.empty() &&
      !extended(call.argv, parts.options, parts.image, "--container-mounts", "," + mounts)) {
    added.push_back("--container-mounts=" + mounts);
  }
  added.push_back("--job-name=" + carried.name);
  add_options(call.argv, parts, added);
  return call;
}

}  // namespace

std::vector<Mount> mounts_of(const PreparedCell& cell) {
  std::vector<Mount> mounts;
  const auto named = [&](std::string_view placeholder) {
    return config::uses(cell.cell.command, cell.cell.env, placeholder) ||
           config::uses(cell.cell.profile_args, cell.cell.counted_env, placeholder);
  };
  if (named("model")) mounts.push_back({place_of_model(cell.model)});
  if (!cell.prompt_file.empty() && named("prompt_file")) mounts.push_back({cell.prompt_file});
  if (cell.twin) mounts.push_back({cell.twin->blob});
  return mounts;
}

Result<sys::ProcessSpec> carry_in(Runtime runtime, const config::Arguments& command,
                                  const Carried& carried) {
  const auto parts = config::parts_of(command, runtime);
  if (!parts) return fail(Code::config, "no \"run\" in the command");
  const bool by_slurm = runtime == Runtime::srun;
  WEIR_TRY(sys::ProcessSpec call, by_slurm ? carry_by_srun(command, *parts, carried)
                                           : carry_into_run(runtime, command, *parts, carried));
  if (runtime == Runtime::podman) call.settle_seconds = k_podman_seconds;
  if (by_slurm) call.kill_grace_seconds = k_slurm_seconds;
  return call;
}

std::string label_of(std::string_view name) { return fmt::format("--label=weir={}", name); }

std::optional<std::string> why_not_mounted(Runtime runtime, std::string_view path) {
  const std::string_view bad = runtime == Runtime::srun ? ",:" : ",\"";
  if (path.find_first_of(bad) == std::string_view::npos) return std::nullopt;
  return fmt::format("{}: {} cannot be told to mount that: it holds {}", text::printable(path),
                     config::to_string(runtime),
                     runtime == Runtime::srun ? "\",\" or \":\"" : "\",\" or '\"'");
}

std::string exit_words(Runtime runtime, int code) {
  constexpr int k_not_run = 126, k_not_there = 127;
  if (runtime == Runtime::srun) return "";
  if (code == k_runtime_failed) {
    return fmt::format(" ({} itself failed, before the engine ran)", config::to_string(runtime));
  }
  if (code == k_not_run) return " (the image's program could not be run)";
  if (code == k_not_there) return " (the image has no such program, or it lacks a library)";
  return "";
}

std::vector<std::string> steps_named(std::string_view listed, std::string_view name) {
  std::vector<std::string> steps;
  for (const std::string& line : text::lines(std::string(listed))) {
    const std::vector<std::string> words = text::split(std::string(text::trim(line)), ' ');
    if (words.size() == 2 && words[1] == name) steps.push_back(words[0]);
  }
  return steps;
}

const config::ContainerSettings* container_of(const PreparedCell& cell) {
  const config::EngineSettings* engine = cell.cell.engine;
  return engine != nullptr && engine->container ? &*engine->container : nullptr;
}

bool has_own_environment(const config::ContainerSettings& container) {
  return container.runtime != Runtime::srun;
}

Carried carried_into(const PreparedCell& cell, const CarriedPlace& place, const std::string& probes,
                     const std::string& name, const config::Environment& line_env,
                     const config::Environment& probe_env) {
  Carried carried;
  const bool own = has_own_environment(*container_of(cell));
  for (auto& [variable, value] : merge_environment(
           own ? sys::EnvironmentList() : sys::own_environment(), line_env, probe_env)) {
    carried.env[variable] = value;
  }
  carried.mounts = mounts_of(cell);
  for (const std::string& folder : {place.out, place.counts}) {
    if (!folder.empty()) carried.mounts.push_back({folder, true});
  }
  if (!place.counts.empty() || cell.twin) carried.mounts.push_back({probes, false});
  carried.id_file = place.root + "/container";
  carried.port = place.port;
  carried.name = name;
  carried.handed_on = handed_on(cell);
  return carried;
}

}  // namespace weir::run
