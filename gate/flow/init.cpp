// weir init: finds engines and models, and writes a configuration and CI workflows for them.
#include "gate/flow/init.hpp"

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/config/presets.hpp"
#include "gate/config/starter.hpp"
#include "gate/flow/ab.hpp"
#include "gate/flow/devices.hpp"
#include "gate/flow/doctor.hpp"
#include "gate/flow/measure.hpp"
#include "gate/flow/repository.hpp"
#include "gate/model/gguf.hpp"
#include "gate/probes/read/twin_folder.hpp"
#include "gate/report/layout.hpp"
#include "gate/report/profile_text.hpp"
#include "gate/sys/paths.hpp"
#include "gate/unit/metric.hpp"

namespace weir::flow {
namespace {

// The least time for a job on a hosted runner, which installs packages and builds an engine first.
constexpr double k_min_minutes = 30;

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

// Writes the CI workflows and returns what to print about them. Never writes over an existing file.
Result<std::string> write_workflows(const InitOptions& options, const std::string& root,
                                    const config::StarterCi& ci, sys::Files& files) {
  const bool github = options.ci == "github";
  std::vector<std::string> missing_inputs = ci.programs;
  missing_inputs.insert(missing_inputs.end(), ci.models.begin(), ci.models.end());
  const std::string missing = text::join(missing_inputs);
  std::string next_step =
      missing.empty() ? "commit it" : "say in it where these come from: " + missing;
  next_step +=
      fmt::format("; put weir's {} in place of OWNER/weir", github ? "repository" : "releases");
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
  if (!github && files.exists(sys::join_path(root, workflows.front().first))) {
    workflows.front().first = ".gitlab/weir.yml";
    next_step += "; .gitlab-ci.yml takes it in by\n          include: [{local: /.gitlab/weir.yml}]";
  }
  // All are written or none: each is made to work with the others.
  std::string report;
  const auto exists = [&](const auto& workflow) {
    return files.exists(sys::join_path(root, workflow.first));
  };
  if (std::ranges::any_of(workflows, exists)) {
    for (const auto& workflow : workflows) {
      report +=
          exists(workflow)
              ? fmt::format("  kept    {}: it is there already; move it away to get a new one\n",
                            workflow.first)
              : fmt::format("  not written  {}: it goes with a new one\n", workflow.first);
    }
    return report;
  }
  for (const auto& [name, text] : workflows) {
    const std::string place = sys::join_path(root, name);
    WEIR_CHECK(files.make_dirs(sys::folder_of(place)));
    WEIR_CHECK(files.write_atomic(place, text));
    report += fmt::format("wrote {}\n", name);
  }
  report += fmt::format("  next    {}\n", next_step);
  for (const std::string& program : ci.programs) {
    report += fmt::format("  engine  {}\n", config::build_hint(program));
  }
  return report;
}

// Estimates from a counts-only run how long a gate takes on this machine.
std::string duration_text(const std::vector<PlannedCommand>& commands,
                          const MeasuredRun& measured) {
  const auto timed = static_cast<std::size_t>(
      std::ranges::count(commands, profile::Pass::timed, &PlannedCommand::pass));
  const std::size_t counted = commands.size() - timed;
  std::string text = fmt::format("\nHow long a gate takes on this machine\n  counts  {}: {}\n",
                                 unit::show_duration(measured.seconds),
                                 text::plural(counted, "process", "processes"));
  if (timed > 0 && counted > 0) {
    // Counted processes run side by side and are short: a timed one takes no less.
    const double seconds_each = measured.seconds / static_cast<double>(counted);
    text += fmt::format("  times   at least {} more: {}, one after the other\n",
                        unit::show_duration(seconds_each * static_cast<double>(timed)),
                        text::plural(timed, "process", "processes"));
  }
  return text +
         fmt::format(
             "  beside  a base (--against): counts of both, its build, and at most {} of pairs"
             "\n          (gate.budget; weir calibrate says what it takes)\n",
             unit::show_duration(measured.configuration.settings->gate.budget_seconds));
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

// Lists the programs, builds and models of the cells that a fresh checkout lacks.
void find_missing_files(const Job& job, const LoadedConfig& loaded, const std::string& folder,
                        config::StarterCi& ci) {
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
    ci.has_base = ci.has_base || inside;
    const auto build = text::join(collect<std::string>(engine.build, text::shell_word), " ");
    if (!build.empty() && is_new(build)) ci.builds.push_back(build);
    if (build.empty() && (!inside || is_missing(program)) && is_new(program)) {
      ci.programs.push_back(program);
    }
    if (cell.model_path.empty() || !is_missing(cell.model_path) || !is_new(cell.model_path))
      continue;
    const std::string arguments =
        model_make_arguments(sys::join_path(folder, cell.model_path), cell.model_path, job.files());
    if (arguments.empty()) {
      ci.models.push_back(cell.model_path);
    } else {
      ci.generated_models.push_back(arguments);
    }
  }
}

// Writes the CI workflows, then examines this machine and runs one counts-only pass to estimate how
// long a gate takes.
Result<Answer> init_ci(const Job& given_job, const InitOptions& options, bool incomplete) {
  Job job = given_job;
  job.selection.config_is_set = true;
  job.selection.counts_only = true;
  const std::string& config = job.selection.config;
  sys::Files& files = job.files();
  WEIR_TRY(const LoadedConfig loaded, load_config(job));
  const std::string folder = sys::folder_of(sys::absolute(config));
  const std::string root = repository_root(folder, files);
  config::StarterCi ci;
  ci.forks = options.forks;
  ci.queue = options.queue;
  ci.version = k_version;
  ci.folder = relative_path(folder, root);
  ci.file = relative_path(sys::absolute(config), folder);
  const config::Settings& settings = *loaded.configuration.settings;
  ci.minutes = std::max(k_min_minutes, 3 * settings.gate.budget_seconds / 60);
  ci.vulkan = std::ranges::count(loaded.cells, std::string("vulkan"), &config::Cell::device) > 0;
  find_missing_files(job, loaded, folder, ci);
  WEIR_TRY(const std::string written, write_workflows(options, root, ci, files));
  job.answer_printable(written);
  if (incomplete) {
    return Answer{text::printable(fmt::format(
        "nothing was measured: {} is an example still. Fill in what was not found, then run this\n"
        "again: it goes on from there.\n",
        config))};
  }
  WEIR_TRY(const Answer diagnosis, doctor(job, {}));
  job.answer("\n" + diagnosis.text);
  MeasureOptions wanted;
  wanted.plan.times = false;
  WEIR_TRY(MeasuredRun measured, measure(job, wanted));
  redact_profiles(measured);
  job.answer_printable("\n" + report::profiles_text(measured.profiles, {.width = job.width()}));
  WEIR_TRY(LoadedConfig reloaded, load_config(job));
  wanted.plan.times = true;
  WEIR_TRY(const auto commands,
           planned_commands(std::move(reloaded), job, wanted, {job.selection.runs_folder, ""}));
  job.answer_printable(duration_text(commands, measured));
  return profiles_answer(
      text::printable(fmt::format(
          "next: open a pull request: it is compared with its base. Stored baselines:\n"
          "  weir baseline accept{} --counts-only, or on the runner (\"Run workflow\")\n",
          config == "weir.yaml" ? "" : " -c " + config)),
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

// Returns the program's path as the config should name it; nothing if it is not here.
std::optional<std::string> find_program_path(std::string_view program, const std::string& path,
                                             const sys::Files& files) {
  for (const char* folder : k_program_folders) {
    const std::string candidate = fmt::format("{}/{}", folder, program);
    if (!sys::find_program(files, candidate, ".", "")) continue;
    return folder == std::string_view(".") ? candidate : fmt::format("./{}", candidate);
  }
  if (sys::find_program(files, program, ".", path)) return std::string(program);
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
// author of the config.
std::vector<config::StarterEngine> find_engines(const sys::World& world) {
  const sys::Files& files = world.files;
  std::vector<config::StarterEngine> engines;
  const std::string path = world.environment("PATH").value_or("/usr/bin:/bin");
  for (const config::Preset& preset : config::presets()) {
    // One program of llama.cpp is enough; llama-bench comes first and reports most.
    const std::string name = preset.name.starts_with("llama-") ? "llama.cpp" : preset.name;
    const bool is_listed = std::ranges::count(engines, name, &config::StarterEngine::name) > 0;
    if (preset.output.empty() || is_listed) continue;
    for (const std::string& program : preset.programs) {
      // weir brings weir-engine along: only one that is built here is the project's own.
      const bool is_bundled = preset.name == "weir-engine";
      if (const auto program_path = find_program_path(program, is_bundled ? "" : path, files)) {
        engines.push_back({name, *program_path, preset.name});
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

// Returns the command that builds a program in a fresh checkout, judged by the build files here.
std::string find_build(const sys::Files& files) {
  constexpr std::pair<const char*, const char*> k_builds[] = {
      {"build.sh", "[./build.sh]"},
      {"CMakeLists.txt",
       "[sh, -c, \"cmake -B build -DCMAKE_BUILD_TYPE=Release && cmake --build build -j\"]"},
      {"build.zig", "[zig, build, -Doptimize=ReleaseFast]"},
      {"Cargo.toml", "[cargo, build, --release]"},
      {"Makefile", "[make, -j]"}};
  for (const auto& [file, build] : k_builds) {
    if (files.kind(file) == sys::Kind::file) return build;
  }
  return "";
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
  input.build = find_build(files);
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
      return fail(Code::usage, "a command after -- goes without --ci and --twin");
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
