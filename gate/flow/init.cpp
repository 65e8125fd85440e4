// weir init: finds engines and models, and writes a configuration and CI workflows for them.
#include "gate/flow/init.hpp"

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/config/presets.hpp"
#include "gate/config/starter.hpp"
#include "gate/config/typed_command.hpp"
#include "gate/flow/ab.hpp"
#include "gate/flow/devices.hpp"
#include "gate/flow/measure.hpp"
#include "gate/flow/repository.hpp"
#include "gate/model/gguf.hpp"
#include "gate/probes/read/twin_folder.hpp"
#include "gate/report/layout.hpp"
#include "gate/report/profile_text.hpp"
#include "gate/source/virtual_environment.hpp"
#include "gate/sys/paths.hpp"
#include "gate/unit/metric.hpp"
#include "gate/verdict/limits.hpp"
#include "gate/verdict/proposal.hpp"

namespace weir::flow {
namespace {

// The least time for a job on a hosted runner, which installs packages and builds an engine first.
constexpr double k_min_minutes = 30;
// The file of the jobs if .gitlab-ci.yml is there already.
constexpr std::string_view k_gitlab_part = ".gitlab/weir.yml";
constexpr std::uint64_t k_max_workflow_bytes = std::uint64_t{1} << 20;

// Returns the nearest folder at or above `folder` (absolute) with a .git in it, else `folder`.
std::string repository_root(const std::string& folder, const sys::Files& files) {
  for (std::string current = folder;;) {
    if (files.exists(sys::join_path(current, ".git"))) return current;
    const std::string above = sys::folder_of(current);
    if (above == current || above.empty() || above == ".") return folder;
    current = above;
  }
}

// Returns `folder` as a path relative to `root`, which is `folder` itself or above it.
std::string relative_path(const std::string& folder, const std::string& root) {
  if (folder == root) return ".";
  return folder.substr(root == "/" ? 1 : root.size() + 1);
}

// The workflows of a CI system, as they lie in the repository.
struct Workflows {
  std::string report;              // which were written
  std::vector<std::string> names;  // the one that measures first
  std::string text;                // of all of them
};

// Writes the CI workflows. Never writes over an existing file.
Result<Workflows> write_workflows(const InitOptions& options, const std::string& root,
                                  const config::StarterCi& ci, sys::Files& files) {
  const bool github = options.ci == "github";
  std::vector<std::pair<std::string, std::string>> workflows{
      // name, text
      github ? std::pair(".github/workflows/weir.yml", config::starter_github(ci))
             : std::pair(".gitlab-ci.yml", config::starter_gitlab(ci))};
  if (ci.forks) {
    workflows.emplace_back(".github/workflows/weir-post.yml", config::starter_github_post(ci));
  }
  if (options.comments) {
    workflows.emplace_back(".github/workflows/weir-waive.yml", config::starter_github_waive());
  }
  if (!github && files.exists(sys::join_path(root, workflows.front().first)))
    workflows.front().first = std::string(k_gitlab_part);
  const auto exists = [&](const auto& workflow) {
    return files.exists(sys::join_path(root, workflow.first));
  };
  // All are written or none: each is made to work with the others.
  const bool are_kept = std::ranges::any_of(workflows, exists);
  Workflows written;
  for (const auto& [name, text] : workflows) {
    const std::string place = sys::join_path(root, name);
    if (!are_kept) {
      WEIR_CHECK(files.make_dirs(sys::folder_of(place)));
      WEIR_CHECK(files.write_atomic(place, text));
      written.report += fmt::format("wrote {}\n", name);
    } else if (files.exists(place)) {
      written.report +=
          fmt::format("  kept    {}: it is there already; move it away to get a new one\n", name);
    } else {
      written.report += fmt::format("  not written  {}: it goes with a new one\n", name);
      continue;
    }
    written.names.push_back(name);
    written.text += files.read(place, k_max_workflow_bytes).value_or("");
  }
  return written;
}

// Lists in at most ten lines what is left for the user: where, and what.
std::string steps_text(const std::vector<std::string>& steps, int width) {
  std::string text = "left to do\n";
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const auto lines = report::wrap(text::printable(steps[i]), static_cast<std::size_t>(width),
                                    fmt::format("  {}. ", i + 1), 5);
    text += text::join(lines, "\n") + "\n";
  }
  return text;
}

// The parts of weir.yaml that its author has yet to write.
struct Unfinished {
  std::vector<std::string> unbuilt;  // programs that no command is known to make
  std::string likely_build;          // a command that may make them; "" if none or if one is named
  bool is_gated = false;             // something can fail
  bool has_failed = false;           // some cell could not be measured
};

// Returns what is left to do until pull requests are gated.
std::vector<std::string> remaining_steps(bool github, const Workflows& workflows,
                                         const config::StarterCi& ci,
                                         const Unfinished& unfinished) {
  std::vector<std::string> steps;
  if (unfinished.has_failed) {
    steps.push_back(fmt::format(
        "here: mend the cells that could not be {} (above), then weir init --ci {} again",
        ci.has_counts ? "counted" : "run", github ? "github" : "gitlab"));
  }
  const std::string& workflow = workflows.names.front();
  const auto holds_text = [&](std::string_view part) {
    return workflows.text.find(part) != std::string::npos;
  };
  if (holds_text("OWNER/weir")) {
    steps.push_back(fmt::format("{}: put weir's {} in place of OWNER/weir",
                                text::join(workflows.names, " and "),
                                github ? "repository" : "releases"));
  }
  if (workflow == k_gitlab_part)
    steps.emplace_back(".gitlab-ci.yml: include: [{local: /.gitlab/weir.yml}]");
  std::vector<std::string> missing = ci.programs;
  missing.insert(missing.end(), ci.models.begin(), ci.models.end());
  if (!missing.empty() && holds_text("::error title=weir::")) {
    steps.push_back(fmt::format("{}: say in {} where these come from: {}", workflow,
                                github ? "its step \"The engine and its models\"" : "before_script",
                                verdict::list_some(missing)));
  }
  const std::string& build = unfinished.likely_build;
  if (!unfinished.unbuilt.empty()) {
    steps.push_back(fmt::format("{}: name the command that builds {} (build:{})", ci.file,
                                verdict::list_some(unfinished.unbuilt),
                                text::prefix_if_any(" ", build)));
  } else if (!build.empty()) {
    steps.push_back(
        fmt::format("{}: does CI have to build your engine? build: {}", ci.file, build));
  }
  if (!unfinished.is_gated)
    steps.push_back(fmt::format("{}: times are only reported: give them limits", ci.file));
  steps.push_back(fmt::format("git: commit {} and {} to the default branch", ci.file,
                              text::join(workflows.names, " and ")));
  if (!github)
    steps.emplace_back("GitLab: a variable WEIR_GITLAB_TOKEN and a pipeline schedule, to post");
  if (ci.has_counts) {
    steps.push_back(fmt::format("baselines{}: {}", ci.has_base ? ", if wanted" : "",
                                github ? "\"Run workflow\" of weir in GitHub's Actions"
                                       : "the job \"weir-baselines\" of the default branch"));
  }
  steps.push_back(fmt::format("{}: open one; it is compared with {}",
                              github ? "pull request" : "merge request",
                              ci.has_base ? "its base" : "the baselines"));
  if (github) steps.emplace_back("GitHub, Settings, Rules: require the check \"weir (main)\"");
  if (ci.queue) steps.emplace_back("every night, if wanted: copy weir's docs/ci/nightly.yml");
  return steps;
}

// Says how long it took to measure once, and what a gate takes beside that.
std::string duration_text(const MeasuredRun& measured, const config::StarterCi& ci) {
  const std::string seconds = unit::show_duration(measured.seconds);
  const double budget = measured.configuration.settings->gate.budget_seconds;
  if (ci.has_counts) {
    return fmt::format("counted once here, in {}{}\n", seconds,
                       ci.has_base ? "; a gate also builds and counts the base" : "");
  }
  return fmt::format("ran once here, in {}; a gate builds the base and has {} for pairs\n", seconds,
                     unit::show_duration(budget));
}

// --- files that a runner has to make or get, as git does not hold them

// Returns the absolute paths of git's files; nothing if git does not answer.
std::optional<std::set<std::string>> tracked_files(const Job& job, const std::string& folder) {
  const auto repository = Repository::containing(job.world, folder);
  if (!repository) return std::nullopt;
  const source::Git& git = (*repository)->git();
  const auto names = git.tracked_files();
  if (!names) return std::nullopt;
  std::set<std::string> files;
  for (const std::string& name : *names) files.insert(sys::join_path(git.top(), name));
  return files;
}

// Returns the arguments of `weir model make` that make this model again, read from the name in its
// header. "" if weir did not make it.
std::string model_make_arguments(const std::string& file, const std::string& shown_path,
                                 sys::Files& files) {
  const auto header =
      model::load_gguf([&](std::uint64_t bytes) { return files.read_prefix(file, bytes); });
  if (!header || !std::ranges::all_of(shown_path, [](char c) {
        return text::is_alphanumeric(c) || c == '/' || c == '.' || c == '_' || c == '-';
      })) {
    return "";  // a shell may give these characters a meaning
  }
  // "weir llama 4x256 f16"
  const model::GgufValue* name = header->find("general.name");
  const auto name_parts = text::split(name == nullptr ? "" : name->to_string().value_or(""), ' ');
  const auto plain = [](const std::string& word) {
    return !word.empty() &&
           std::ranges::all_of(word, [](char c) { return text::is_alphanumeric(c) || c == '_'; });
  };
  if (name_parts.size() != 4 || name_parts[0] != "weir" || !std::ranges::all_of(name_parts, plain))
    return "";
  const auto sizes = text::split(name_parts[2], 'x');
  if (sizes.size() != 2) return "";
  return fmt::format("{} --arch {} --layers {} --embedding {} --quantization {}", shown_path,
                     name_parts[1], sizes[0], sizes[1], name_parts[3]);
}

bool is_in_environment(const sys::Files& files, const std::string& folder,
                       const std::string& program) {
  const std::string path = sys::absolute(sys::join_path(folder, program));
  return source::environment_around(files, path).has_value();
}

// Returns true if a command starts a program of a virtual environment and names no file beside it:
// a base would run the same.
bool is_shared_program(const sys::Files& files, const std::string& folder,
                       const std::vector<std::string>& command) {
  if (command.empty() || !is_in_environment(files, folder, command.front())) return false;
  return std::none_of(command.begin() + 1, command.end(), [&](const std::string& word) {
    return files.kind(sys::join_path(folder, word)) == sys::Kind::file;
  });
}

// Returns the command that builds a program in a fresh checkout, judged by the build files that are
// there. "" if there are none.
std::string find_build(const std::function<bool(const char*)>& is_there) {
  constexpr std::pair<const char*, const char*> k_builds[] = {
      {"build.sh", "[./build.sh]"},
      {"CMakeLists.txt",
       "[sh, -c, \"cmake -B build -DCMAKE_BUILD_TYPE=Release && cmake --build build -j\"]"},
      {"build.zig", "[zig, build, -Doptimize=ReleaseFast]"},
      {"Cargo.toml", "[cargo, build, --release]"},
      {"Makefile", "[make, -j]"}};
  for (const auto& [file, build] : k_builds) {
    if (is_there(file)) return build;
  }
  return "";
}

// Lists the programs, builds and models of the cells that a fresh checkout lacks. Returns the
// command that seems to build them, if no engine names one.
std::string find_missing_files(const Job& job, const LoadedConfig& loaded,
                               const std::string& folder, config::StarterCi& ci) {
  std::set<std::string> listed;
  const auto is_new = [&](const std::string& item) { return listed.insert(item).second; };
  const auto tracked = tracked_files(job, folder);
  const auto is_missing = [&](const std::string& relative_name) {
    const std::string path = sys::absolute(sys::join_path(folder, relative_name));
    const std::string real = sys::real_path(path).value_or(path);
    return tracked && !tracked->contains(path) && !tracked->contains(real);
  };
  ci.has_base = false;
  for (const config::Cell& cell : loaded.cells) {
    const config::EngineSettings& engine = *cell.engine;
    const std::string program = engine.command.empty() ? "" : engine.command.front();
    // By its name alone it is found in PATH, which no commit holds.
    const bool inside = program.find('/') != std::string::npos && !program.starts_with('/');
    const bool has_base = inside && !is_shared_program(job.files(), folder, engine.command);
    ci.has_base = ci.has_base || has_base;
    const auto build = text::join(collect<std::string>(engine.build, text::shell_word), " ");
    if (!build.empty() && is_new(build)) ci.builds.push_back(build);
    const bool is_made = !build.empty() || program.empty();
    if (!is_made && (!inside || is_missing(program)) && is_new(program))
      ci.programs.push_back(program);
    if (cell.model_path.empty() || cell.model_path == config::k_no_model ||
        !is_missing(cell.model_path) || !is_new(cell.model_path))
      continue;
    const std::string arguments =
        model_make_arguments(sys::join_path(folder, cell.model_path), cell.model_path, job.files());
    if (arguments.empty()) {
      ci.models.push_back(cell.model_path);
    } else {
      ci.generated_models.push_back(arguments);
    }
  }
  if (!ci.builds.empty()) return "";
  return find_build([&](const char* name) {
    return tracked && tracked->contains(sys::absolute(sys::join_path(folder, name)));
  });
}

// Returns false if nothing of a cell can be counted here: then a gate has times alone. What keeps a
// plan from being made is told by the measurement.
bool has_counted_pass(const Job& job, LoadedConfig loaded) {
  const auto commands =
      planned_commands(std::move(loaded), job, {}, {job.selection.runs_folder, ""});
  return !commands ||
         std::ranges::count(*commands, profile::Pass::counted, &PlannedCommand::pass) > 0;
}

// Returns true if a limit on some time gates.
bool has_gating_times(const LoadedConfig& loaded) {
  const auto& entries = loaded.configuration.settings->limits;
  const verdict::LimitTable limits(entries);
  const unit::Metric throughput = unit::find_metric("decode_tokens_per_second").value();
  return std::ranges::any_of(entries,
                             [](const verdict::LimitEntry& entry) {
                               return entry.mode.value_or(verdict::Mode::gate) ==
                                          verdict::Mode::gate &&
                                      (entry.max_drop || entry.max_increase);
                             }) ||
         std::ranges::any_of(loaded.cells, [&](const config::Cell& cell) {
           return verdict::resolve_limit(cell.key, throughput, limits).mode == verdict::Mode::gate;
         });
}

// Writes the CI workflows, then measures once: it counts, or times if nothing can be counted.
Result<Answer> init_ci(const Job& given_job, const InitOptions& options, bool incomplete) {
  Job job = given_job;
  job.selection.config_is_set = true;
  const std::string& config = job.selection.config;
  sys::Files& files = job.files();
  WEIR_TRY(LoadedConfig loaded, load_config(job));
  const std::string folder = sys::folder_of(sys::absolute(config));
  const std::string root = repository_root(folder, files);
  const bool github = options.ci == "github";
  config::StarterCi ci;
  ci.forks = options.forks;
  ci.queue = options.queue;
  ci.version = k_version;
  ci.folder = relative_path(folder, root);
  ci.file = relative_path(sys::absolute(config), folder);
  const config::Settings& settings = *loaded.configuration.settings;
  ci.minutes = std::max(k_min_minutes, 3 * settings.gate.budget_seconds / 60);
  ci.vulkan = std::ranges::count(loaded.cells, std::string("vulkan"), &config::Cell::device) > 0;
  Unfinished unfinished;
  unfinished.likely_build = find_missing_files(job, loaded, folder, ci);
  const bool has_gate = has_gating_times(loaded);
  ci.has_counts = incomplete || has_counted_pass(job, std::move(loaded));
  if (!ci.has_counts && !ci.has_base) {
    return fail(Code::usage,
                "--ci {}: a runner could judge nothing: {} gives times alone, and lies outside of "
                "the repository, so that no base of it can run beside it\n  start it by a program "
                "of the repository (command: [./bench.sh]) or of a virtual environment "
                "([.venv/bin/python, bench.py]), or say what counts it (probes)",
                options.ci, verdict::list_some(ci.programs));
  }
  WEIR_TRY(const Workflows workflows, write_workflows(options, root, ci, files));
  job.answer_printable(workflows.report);
  if (incomplete) {
    return Answer{
        text::printable(fmt::format("nothing was measured: {} is an example still\n\n", config)) +
        steps_text({config + ": fill in what was not found",
                    "here: weir init --ci " + options.ci + " again; it goes on from there"},
                   job.width())};
  }
  job.selection.counts_only = ci.has_counts;
  MeasureOptions wanted;
  wanted.plan.times = !ci.has_counts;
  wanted.plan.runs = 1;
  WEIR_TRY(MeasuredRun measured, measure(job, wanted));
  redact_profiles(measured);
  unfinished.has_failed = std::ranges::any_of(
      measured.profiles, [](const profile::Profile& profile) { return !profile.errors.empty(); });
  if (unfinished.has_failed)
    job.answer_printable("\n" + report::profiles_text(measured.profiles, {.width = job.width()}));
  job.answer_printable(duration_text(measured, ci) + "\n");
  // Both sides share a virtual environment.
  unfinished.unbuilt = ci.programs;
  std::erase_if(unfinished.unbuilt, [&](const std::string& program) {
    return is_in_environment(files, folder, program);
  });
  unfinished.is_gated = ci.has_counts || has_gate;
  return profiles_answer(
      steps_text(remaining_steps(github, workflows, ci, unfinished), job.width()),
      measured.profiles);
}

// Folders where builds leave their programs, relative to the working directory. PATH comes after
// them.
constexpr std::array k_program_folders{".",   "build",       "build/bin",
                                       "bin", "zig-out/bin", "engines/llama.cpp"};
constexpr std::array k_model_folders{".", "models"};
constexpr std::size_t k_max_models = 4;
// The script that presets of packages run.
constexpr const char* k_script = "engine.mjs";

// Returns the path of a program that is built here, as the config should name it; nothing if it is
// not here.
std::optional<std::string> find_built_program(std::string_view program, const sys::Files& files) {
  for (const char* folder : k_program_folders) {
    const std::string candidate = fmt::format("{}/{}", folder, program);
    if (!sys::find_program(files, candidate, ".", "")) continue;
    return folder == std::string_view(".") ? candidate : fmt::format("./{}", candidate);
  }
  return std::nullopt;
}

// Returns the virtual environments of Python: the active one and those here, as the config should
// name them. A program in one starts by its path, whether the environment is active or not.
std::vector<std::string> find_environments(const sys::World& world) {
  std::vector<std::string> environments;
  const std::string here = sys::absolute(".");
  for (const std::string& name :
       {world.environment("VIRTUAL_ENV").value_or(""), std::string(".venv"), std::string("venv")}) {
    const std::string folder = sys::absolute(name);
    if (name.empty() || world.files.kind(sys::join_path(folder, "pyvenv.cfg")) != sys::Kind::file)
      continue;
    const auto inner = sys::relative_path(folder, here);
    const std::string shown = inner ? "./" + *inner : folder;
    if (!holds(environments, shown)) environments.push_back(shown);
  }
  return environments;
}

// Returns the program's path in the first of the environments that has it; nothing if none has.
std::optional<std::string> find_installed_program(std::string_view program,
                                                  const std::vector<std::string>& environments,
                                                  const sys::Files& files) {
  for (const std::string& environment : environments) {
    std::string path = fmt::format("{}/bin/{}", environment, program);
    if (sys::find_program(files, path, ".", "")) return path;
  }
  return std::nullopt;
}

// Returns the packages that package.json names here; none if there is no such file.
std::set<std::string> imported_packages(const sys::Files& files) {
  std::set<std::string> names;
  const auto text = files.read("package.json", std::uint64_t{1} << 20);
  const auto json = text ? parse_json(*text) : tl::unexpected(text.error());
  if (!json) return names;
  for (const char* kind : {"dependencies", "devDependencies"}) {
    const Json& packages = member_or_null(*json, kind);
    if (!packages.is_object()) continue;
    for (const auto& package : packages.items()) names.insert(package.key());
  }
  return names;
}

// Finds engines by the names of their programs, and starts none. Leaves inference servers to the
// author of the config, but for those that a virtual environment was made for.
std::vector<config::StarterEngine> find_engines(const sys::World& world) {
  const sys::Files& files = world.files;
  std::vector<config::StarterEngine> engines;
  const std::string path = world.environment("PATH").value_or("/usr/bin:/bin");
  const std::vector<std::string> environments = find_environments(world);
  for (const config::Preset& preset : config::presets()) {
    // One program of llama.cpp is enough; llama-bench comes first and reports most.
    const std::string name = preset.name.starts_with("llama-") ? "llama.cpp" : preset.name;
    const bool is_listed = std::ranges::count(engines, name, &config::StarterEngine::name) > 0;
    const bool is_server = preset.output.empty();
    // weir brings weir-engine along: only one that is built here is the project's own.
    const bool is_bundled = preset.name == "weir-engine";
    if (is_listed) continue;
    for (const std::string& program : preset.programs) {
      const auto built = is_server ? std::nullopt : find_built_program(program, files);
      const auto installed =
          built || is_bundled ? std::nullopt : find_installed_program(program, environments, files);
      if (built) {
        engines.push_back({name, *built, preset.name});
      } else if (installed) {
        engines.push_back({name, *installed, preset.name, true});
      } else if (!is_server && !is_bundled && sys::find_program(files, program, ".", path)) {
        engines.push_back({name, program, preset.name});
      }
    }
  }
  const std::set<std::string> imported = imported_packages(files);
  for (const config::Preset& preset : config::presets()) {
    const bool is_ours = std::ranges::any_of(
        preset.packages, [&](const std::string& package) { return imported.contains(package); });
    if (is_ours) engines.push_back({preset.name, "", preset.name});
  }
  return engines;
}

// Returns true if `path` is a model's folder as MLX and others load it.
bool is_model_folder(const sys::Files& files, const std::string& path) {
  if (files.kind(path) != sys::Kind::folder) return false;
  if (files.kind(sys::join_path(path, "config.json")) != sys::Kind::file) return false;
  const auto names = files.list(path);
  const auto weights = [](const std::string& name) { return name.ends_with(".safetensors"); };
  return names && std::ranges::any_of(*names, weights);
}

// Finds at most k_max_models models that the engines can load.
std::vector<config::StarterModel> find_models(const sys::Files& files,
                                              const std::vector<config::StarterEngine>& engines) {
  std::vector<config::StarterModel> models;
  std::set<std::string> endings{"gguf", "onnx"};
  for (const config::StarterEngine& engine : engines) {
    endings.insert(find_named(config::presets(), engine.preset)->loads);
  }
  endings.erase("");  // any
  for (const char* folder : k_model_folders) {
    for (const std::string& name : files.list(folder).value_or(std::vector<std::string>())) {
      if (models.size() == k_max_models) break;
      const std::string path =
          folder == std::string_view(".") ? name : sys::join_path(folder, name);
      // llama.cpp's own repository has vocabularies without a model.
      const std::size_t dot = std::min(name.rfind('.'), name.size() - 1);
      if (endings.contains(name.substr(dot + 1)) && !name.starts_with("ggml-vocab-")) {
        models.push_back({name.substr(0, dot), path});
      } else if (is_model_folder(files, path)) {
        models.push_back({name, path, true});
      }
    }
  }
  return models;
}

// Fails if the configuration's file is there and --force does not allow to write over it.
Result<void> check_is_free(const Job& job, const InitOptions& options) {
  const std::string& file = job.selection.config;
  if (options.force || !job.files().exists(file)) return {};
  return fail(Code::usage, "{} is there already\n  --force writes over it, -c names another", file);
}

// Writes a configuration for the engines and models found here. Returns true if some were not
// found, so that the user has to fill them in.
Result<bool> write_starter(const Job& job, const InitOptions& options) {
  sys::Files& files = job.files();
  const std::string& file = job.selection.config;
  WEIR_CHECK(check_is_free(job, options));
  config::StarterInput input;
  input.engines = find_engines(job.world);
  input.models = find_models(files, input.engines);
  input.build = find_build([&](const char* name) { return files.kind(name) == sys::Kind::file; });
  if (!options.twin.empty()) {
    const auto folders = probes::twin_folders(files, sys::folder_of(file));
    WEIR_TRY(const auto twin, probes::load_twin(files, folders, options.twin));
    input.twin_name = twin.name;
    input.imitated_device = twin.has_vulkan() ? "vulkan" : "cuda";
    for (const config::StarterEngine& engine : input.engines) {
      const config::Preset& preset = *find_named(config::presets(), engine.preset);
      if (find_named(preset.devices, input.imitated_device) == nullptr) {
        return fail(Code::usage, "--twin {}: a device for {}, on which {} does not run", twin.name,
                    input.imitated_device, engine.name);
      }
    }
  }
  const sys::Interrupts interrupts;
  config::Cell probe_cell;
  probe_cell.device = "vulkan";
  // Without the probes beside the program nothing can be asked; the starter then leaves Vulkan out.
  if (const auto devices =
          find_devices(probe_cell, sys::read_machine(files), job.world, interrupts.stop())) {
    input.has_vulkan = !devices->at("vulkan").absent;
  } else {
    input.has_probes = false;
  }
  WEIR_CHECK(files.write_atomic(file, config::starter_config(input)));
  std::string text = fmt::format("wrote {}\n", file);
  for (const config::StarterEngine& engine : input.engines) {
    const bool script = engine.program.empty();
    text += fmt::format("  engine  {} ({})\n", engine.name, script ? k_script : engine.program);
    if (script && !files.exists(k_script)) {
      text +=
          fmt::format("          {} is missing: docs/how-to/script-engines.md has one\n", k_script);
    }
  }
  if (input.engines.empty()) text += "  no engine found here or in PATH: fill in the example\n";
  for (const config::StarterModel& model : input.models) {
    text += fmt::format("  model   {}\n", model.path);
  }
  if (input.models.empty()) {
    text += "  no model found: weir model make models/tiny-llama.gguf writes a small one\n";
  }
  text += input.twin_name.empty()
              ? fmt::format("  vulkan  {}\n", input.has_vulkan ? "yes" : "no device")
              : fmt::format("  {:<7} {}, simulated\n", input.imitated_device, input.twin_name);
  const bool incomplete = input.engines.empty() || input.models.empty();
  const std::string config_option = file == "weir.yaml" ? "" : " -c " + file;
  if (options.ci.empty() && incomplete) {
    const char* missing = "engines and models";
    if (!input.engines.empty()) missing = "models";
    if (!input.models.empty()) missing = "engines";
    text += fmt::format("next: fill in {} in {}, then weir doctor\n", missing, file);
  } else if (options.ci.empty()) {
    text += fmt::format(
        "next: weir baseline accept{0} --counts-only, then weir gate{0} --counts-only\n",
        config_option);
  }
  job.answer_printable(text);
  return incomplete;
}

// Writes a configuration for the command after "--", which it starts once.
Result<void> write_command(const Job& job, const InitOptions& options) {
  const std::string& file = job.selection.config;
  WEIR_CHECK(check_is_free(job, options));
  AbOptions command;
  command.programs = {options.trailing_arguments.front()};
  command.trailing_arguments.assign(options.trailing_arguments.begin() + 1,
                                    options.trailing_arguments.end());
  command.metrics = options.metrics;
  command.write = file;
  WEIR_TRY(const config::TypedConfig config, config_for_command(job, command, {}));
  WEIR_CHECK(job.files().write_atomic(file, config.yaml));
  job.answer_printable(fmt::format("wrote {}\nnext: commit it; then weir gate --against HEAD~1{}\n",
                                   file, config.is_read ? "" : " --counts-only"));
  return {};
}

// Lists the presets with their programs and devices.
Answer list_presets() {
  const auto row = [](std::string_view name, std::string_view programs, std::string_view devices) {
    return fmt::format("{:<18}{:<18}{}\n", name, programs, devices);
  };
  std::string text = row("preset", "program", "devices");
  Json list = Json::array();
  for (const config::Preset& preset : config::presets()) {
    const auto devices = collect<std::string>(preset.devices, &config::Preset::Device::name);
    text += row(preset.name, preset.programs.empty() ? "any" : text::join(preset.programs),
                text::join(devices, " "));
    text += fmt::format(
        "    {}\n    {}\n", preset.about,
        preset.tried.empty() ? "not tried on the real program" : "tried on " + preset.tried);
    list.push_back({{"preset", preset.name},
                    {"version", preset.version},
                    {"programs", preset.programs},
                    {"devices", devices},
                    {"about", preset.about},
                    {"tried", preset.tried.empty() ? Json() : Json(preset.tried)}});
  }
  return {text, json_document({{"schema", "weir.presets/1"}, {"presets", list}})};
}

}  // namespace

// Writes a starter configuration, and with --ci also workflows, then measures once to estimate the
// time of a gate.
Result<Answer> init(const Job& job, const InitOptions& options) {
  if (options.list) return list_presets();
  if ((options.forks || options.queue || options.comments) && options.ci != "github") {
    return fail(Code::usage, "--forks, --queue and --comments go with --ci github");
  }
  if (options.twin.find('/') != std::string::npos) {
    return fail(Code::usage, "--twin takes a name (weir device list): put {} into configs/devices",
                text::printable(options.twin));
  }
  if (!options.twin.empty() && !options.ci.empty() && !options.force &&
      job.files().exists(job.selection.config)) {
    return fail(Code::usage,
                "--twin: {} is there already, and stays as it is\n  --force writes over it",
                job.selection.config);
  }
  if (!options.metrics.empty() && options.trailing_arguments.empty()) {
    return fail(Code::usage, "--metric is read from what a command prints: name it last, after --");
  }
  if (!options.trailing_arguments.empty()) {
    if (!options.ci.empty() || !options.twin.empty()) {
      return fail(Code::usage, "a command after -- cannot be combined with --ci or --twin");
    }
    WEIR_CHECK(write_command(job, options));
    return Answer{};
  }
  bool incomplete = false;
  if (options.ci.empty() || options.force || !job.files().exists(job.selection.config))
    WEIR_SET(incomplete, write_starter(job, options));
  if (options.ci.empty()) return Answer{};
  return init_ci(job, options, incomplete);
}

}  // namespace weir::flow
