// Runs engines in containers: what is mounted, and the command lines of docker, podman and srun.
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

// When it is ended, srun has Slurm kill the engine and waits until that is done.
constexpr double k_slurm_seconds = 45;
// Podman leaves a clean-up process behind.
constexpr double k_podman_seconds = 5;

// Variables that would also affect srun itself, so they must not be in its own environment.
constexpr std::array<std::string_view, 2> k_loader_variables{"LD_PRELOAD", "LD_LIBRARY_PATH"};

// Returns true for "model-00001-of-00003.gguf": the other parts lie in the same folder.
bool is_split_model(const std::string& path) {
  const std::string name = sys::file_name_of(path);
  const std::size_t of_at = name.rfind("-of-");
  constexpr std::string_view k_form = "00000-of-00000";
  constexpr std::size_t k_digits = 5;
  return of_at != std::string::npos && of_at >= k_digits &&
         text::has_form(std::string_view(name).substr(of_at - k_digits, k_form.size()), k_form);
}

// Returns the file or folder to mount for a model: the folder of a split model, the repository's
// folder in Hugging Face's cache, else the file itself.
std::string model_mount(const std::string& path) {
  // models--NAME/snapshots/COMMIT/… holds links to models--NAME/blobs/…. Any other folder named
  // "snapshots" has no such links.
  constexpr std::string_view k_snapshots = "/snapshots/";
  for (std::size_t at = path.rfind(k_snapshots); at != std::string::npos && at > 0;
       at = path.rfind(k_snapshots, at - 1)) {
    std::string repository = path.substr(0, at);
    if (sys::file_name_of(repository).starts_with("models--")) return repository;
  }
  return is_split_model(path) ? sys::folder_of(path) : path;
}

// Returns true if the user's own options mount something at `path`: "-v FROM:PATH" or "--mount
// …,target=PATH".
bool user_mounts(const config::Arguments& command, const config::RuntimeLine& line,
                 const std::string& path) {
  for (std::size_t i = line.options; i < line.image; ++i) {
    for (const std::string& value : text::split(command[i], ',')) {
      for (const char* key : {"target=", "dst=", "destination="}) {
        if (value == key + path) return true;
      }
      std::vector<std::string> fields = text::split(value, ':');
      if (fields.size() > 1 && fields[1] == path) return true;
    }
  }
  return false;
}

// Returns the variables that the user's own options set or pass on.
std::vector<std::string> find_passed_variables(const config::Arguments& command,
                                               const config::RuntimeLine& line) {
  std::vector<std::string> names;
  for (std::size_t i = line.options; i < line.image; ++i) {
    const std::string next = i + 1 < command.size() ? command[i + 1] : "";
    if (auto name = config::variable_set_by(command[i], next)) names.push_back(std::move(*name));
  }
  return names;
}

// Inserts options in front of the user's own.
void insert_before_user_options(config::Arguments& argv, const config::RuntimeLine& line,
                                const config::Arguments& options) {
  argv.insert(argv.begin() + static_cast<std::ptrdiff_t>(line.options), options.begin(),
              options.end());
}

// Builds the command line of docker or podman: the user's, with mounts, port, variables and a label
// for weir's later clean-up. Fails if a path cannot be mounted.
Result<sys::ProcessSpec> docker_command(Runtime runtime, const config::Arguments& command,
                                        const config::RuntimeLine& line,
                                        const ContainerInputs& inputs) {
  config::Arguments options{"--rm", "--cidfile=" + inputs.id_file, label_option(inputs.name)};
  if (!inputs.port.empty() && !config::has_network_option(command, line)) {
    options.push_back(fmt::format("--publish=127.0.0.1:{0}:{0}", inputs.port));
  }
  for (const Mount& mount : inputs.mounts) {
    if (user_mounts(command, line, mount.path)) continue;
    if (const auto problem = mount_problem(runtime, mount.path))
      return fail(Code::config, "{}", *problem);
    options.emplace_back("--mount");
    options.push_back(fmt::format("type=bind,source={0},target={0}{1}", mount.path,
                                  mount.writable ? "" : ",readonly"));
  }
  for (const auto& [name, value] : inputs.env) {
    options.emplace_back("-e");
    options.push_back(name + "=" + value);
  }
  sys::ProcessSpec spec{.argv = command, .passed_variables = find_passed_variables(command, line)};
  for (const std::string& name : inputs.passed_variables) {
    if (holds(spec.passed_variables, name)) continue;
    options.insert(options.end(), {"-e", name});
    spec.passed_variables.push_back(name);
  }
  insert_before_user_options(spec.argv, line, options);
  return spec;
}

// Appends `more` to the value of `option` ("--x=a" or "--x a") in argv's places from `begin` to
// `end`. The last one counts for srun. Returns false if the option is not there.
bool append_to_option(config::Arguments& argv, std::size_t begin, std::size_t end,
                      std::string_view option, const std::string& more) {
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

// Returns true if srun's options name a container image.
bool has_image(const config::Arguments& command, const config::RuntimeLine& line) {
  const auto options = std::span(command).first(line.image).subspan(line.options);
  return std::ranges::any_of(options, [](const std::string& word) {
    return word.starts_with("--container-image") || word.starts_with("--container-name");
  });
}

// Builds the command line of Slurm's srun: the user's, with variables, mounts (if it names an
// image) and a job name. Fails if a value or path cannot be passed.
Result<sys::ProcessSpec> srun_command(const config::Arguments& command,
                                      const config::RuntimeLine& line,
                                      const ContainerInputs& inputs) {
  sys::ProcessSpec spec{.argv = command, .passed_variables = inputs.passed_variables};
  // srun passes its own environment on. Variables that would affect srun itself go into --export,
  // where a comma ends a value.
  std::string exported;
  for (const auto& [name, value] : inputs.env) {
    if (!holds(k_loader_variables, name)) {
      spec.env.emplace_back(name, value);
      continue;
    }
    if (value.find(',') != std::string::npos) {
      return fail(Code::config, "srun cannot be told {}={}: a comma ends the value", name, value);
    }
    exported += "," + name + "=" + value;
    spec.unset.push_back(name);  // else the value in srun's own environment would win
  }
  std::string mounts;
  if (has_image(command, line)) {
    for (const Mount& mount : inputs.mounts) {
      if (user_mounts(command, line, mount.path)) continue;
      if (const auto problem = mount_problem(Runtime::srun, mount.path)) {
        return fail(Code::config, "{}", *problem);
      }
      if (!mounts.empty()) mounts += ",";
      mounts += fmt::format("{0}:{0}", mount.path);
      if (!mount.writable) mounts += ":ro";
    }
  }
  config::Arguments options;
  if (!append_to_option(spec.argv, line.options, line.image, "--export", exported)) {
    options.push_back("--export=ALL" + exported);
  }
  if (!mounts.empty() &&
      !append_to_option(spec.argv, line.options, line.image, "--container-mounts", "," + mounts)) {
    options.push_back("--container-mounts=" + mounts);
  }
  options.push_back("--job-name=" + inputs.name);
  insert_before_user_options(spec.argv, line, options);
  return spec;
}

}  // namespace

std::vector<Mount> needed_mounts(const PreparedCell& cell) {
  std::vector<Mount> mounts;
  const auto uses = [&](std::string_view placeholder) {
    return config::uses(cell.cell.command, cell.cell.env, placeholder) ||
           config::uses(cell.cell.counted_run_args, cell.cell.counted_run_env, placeholder);
  };
  if (uses("model")) mounts.push_back({model_mount(cell.model)});
  if (!cell.prompt_file.empty() && uses("prompt_file")) mounts.push_back({cell.prompt_file});
  if (cell.twin) mounts.push_back({cell.twin->blob});
  return mounts;
}

Result<sys::ProcessSpec> container_command(Runtime runtime, const config::Arguments& command,
                                           const ContainerInputs& inputs) {
  const auto line = config::parse_runtime_line(command, runtime);
  if (!line) return fail(Code::config, "no \"run\" in the command");
  const bool by_slurm = runtime == Runtime::srun;
  WEIR_TRY(sys::ProcessSpec spec, by_slurm ? srun_command(command, *line, inputs)
                                           : docker_command(runtime, command, *line, inputs));
  if (runtime == Runtime::podman) spec.settle_seconds = k_podman_seconds;
  if (by_slurm) spec.kill_grace_seconds = k_slurm_seconds;
  return spec;
}

std::string label_option(std::string_view name) { return fmt::format("--label=weir={}", name); }

std::optional<std::string> mount_problem(Runtime runtime, std::string_view path) {
  const std::string_view bad = runtime == Runtime::srun ? ",:" : ",\"";
  if (path.find_first_of(bad) == std::string_view::npos) return std::nullopt;
  return fmt::format("{}: {} cannot be told to mount that: it holds {}", text::printable(path),
                     config::to_string(runtime),
                     runtime == Runtime::srun ? "\",\" or \":\"" : "\",\" or '\"'");
}

std::string describe_exit_code(Runtime runtime, int code) {
  constexpr int k_not_run = 126, k_not_there = 127;
  if (runtime == Runtime::srun) return "";
  if (code == k_runtime_failed) {
    return fmt::format(" ({} itself failed, before the engine ran)", config::to_string(runtime));
  }
  if (code == k_not_run) return " (the image's program could not be run)";
  if (code == k_not_there) return " (the image has no such program, or it lacks a library)";
  return "";
}

std::vector<std::string> parse_step_ids(std::string_view listed, std::string_view name) {
  std::vector<std::string> steps;
  for (const std::string& line : text::lines(std::string(listed))) {
    const std::vector<std::string> words = text::split(std::string(text::trim(line)), ' ');
    if (words.size() == 2 && words[1] == name) steps.push_back(words[0]);
  }
  return steps;
}

const config::ContainerSettings* find_container(const PreparedCell& cell) {
  const config::EngineSettings* engine = cell.cell.engine;
  return engine != nullptr && engine->container ? &*engine->container : nullptr;
}

bool has_own_environment(const config::ContainerSettings& container) {
  return container.runtime != Runtime::srun;
}

// Collects what a process of the cell (one benchmark: engine, model, backend, prompt) needs in its
// container: variables, mounts, port, name.
ContainerInputs make_container_inputs(const PreparedCell& cell, const ContainerFolders& folders,
                                      const std::string& probes, const std::string& name,
                                      const config::Environment& line_env,
                                      const config::Environment& probe_env) {
  ContainerInputs inputs;
  const bool image_has_own_environment = has_own_environment(*find_container(cell));
  for (auto& [variable, value] : merge_environment(
           image_has_own_environment ? sys::EnvironmentList() : sys::own_environment(), line_env,
           probe_env)) {
    inputs.env[variable] = value;
  }
  inputs.mounts = needed_mounts(cell);
  for (const std::string& folder : {folders.out, folders.counts}) {
    if (!folder.empty()) inputs.mounts.push_back({folder, /*writable=*/true});
  }
  if (!folders.counts.empty() || cell.twin) inputs.mounts.push_back({probes, /*writable=*/false});
  inputs.id_file = folders.root + "/container";
  inputs.port = folders.port;
  inputs.name = name;
  inputs.passed_variables = passed_variables(cell);
  return inputs;
}

}  // namespace weir::run
