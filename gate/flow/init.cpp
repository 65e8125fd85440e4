// weir init: finds engines and models, and writes a configuration and CI workflows for them.
#include "gate/flow/init.hpp"

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/config/presets.hpp"
#include "gate/config/starter.hpp"
#include "gate/config/typed_command.hpp"
#include "gate/flow/ab.hpp"
#include "gate/flow/devices.hpp"
#include "gate/flow/repository.hpp"
#include "gate/flow/workflows.hpp"
#include "gate/probes/read/twin_folder.hpp"
#include "gate/report/layout.hpp"
#include "gate/source/virtual_environment.hpp"
#include "gate/sys/paths.hpp"
#include "gate/sys/python_environment.hpp"

namespace weir::flow {
namespace {

constexpr std::uint64_t k_max_ignore_bytes = std::uint64_t{1} << 20;

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
    if (name.empty() || !sys::is_python_environment(world.files, folder)) continue;
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

// Returns true if `path` is a model's folder as MLX, transformers and others load it; one without
// weights has a tokenizer.
bool is_model_folder(const sys::Files& files, const std::string& path) {
  if (files.kind(path) != sys::Kind::folder) return false;
  if (files.kind(sys::join_path(path, "config.json")) != sys::Kind::file) return false;
  const auto names = files.list(path);
  const auto is_of_a_model = [](const std::string& name) {
    return name.ends_with(".safetensors") || name == "tokenizer.json";
  };
  return names && std::ranges::any_of(*names, is_of_a_model);
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
        models.push_back({name, path, /*folder=*/true});
      }
    }
  }
  return models;
}

// Returns true if a file is weir's example for an unknown engine, as it was written here.
bool is_untouched_example(const sys::Files& files, const std::string& file) {
  const auto text = files.read(file, std::uint64_t{1} << 20);
  config::StarterInput input;
  input.models = find_models(files, {});
  for (const bool has_vulkan : {false, true}) {
    for (const bool has_probes : {false, true}) {
      input.has_vulkan = has_vulkan;
      input.has_probes = has_probes;
      if (text && *text == config::starter_config(input)) return true;
    }
  }
  return false;
}

// Fails if the configuration's file is there and --force does not allow to write over it.
Result<void> check_is_free(const Job& job, const InitOptions& options) {
  const std::string& file = job.selection.config;
  const bool is_free = !job.files().exists(file) || is_untouched_example(job.files(), file);
  if (options.force || is_free) return {};
  return fail(Code::usage, "{} is there already\n  --force writes over it, -c names another", file);
}

// Has git ignore the folder of runs: adds it to the .gitignore beside it. Says what it did, or why
// the user has to.
void ignore_runs(const Job& job) {
  sys::Files& files = job.files();
  const std::string runs = sys::absolute(job.selection.runs_folder);
  const auto repository = Repository::containing(job.world, sys::folder_of(runs));
  if (!repository) return;
  const auto inner = sys::relative_path(runs, (*repository)->git().top());
  if (!inner || (*repository)->git().ignores(*inner + "/run").value_or(false)) return;
  const std::string line = sys::file_name_of(runs) + "/\n";
  const std::string file = sys::join_path(sys::folder_of(runs), ".gitignore");
  const bool is_there = files.exists(file);
  Result<std::string> text = is_there ? files.read(file, k_max_ignore_bytes) : std::string();
  if (text && !text->empty() && !text->ends_with('\n')) *text += '\n';
  const auto added = text ? files.write_atomic(file, *text + line) : tl::unexpected(text.error());
  job.answer_printable(
      added ? fmt::format("added {} to .gitignore\n", text::trim(line))
            : fmt::format("add {} to .gitignore: {}\n", text::trim(line), added.error().message));
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
    const auto runs_on = [](const config::StarterEngine& engine, const std::string& device) {
      const config::Preset& preset = *find_named(config::presets(), engine.preset);
      return find_named(preset.devices, device) != nullptr;
    };
    const std::vector<std::string> apis = twin.apis();
    const auto usable = std::ranges::find_if(apis, [&](const std::string& api) {
      return std::ranges::all_of(input.engines,
                                 [&](const auto& engine) { return runs_on(engine, api); });
    });
    input.imitated_device = usable == apis.end() ? apis.front() : *usable;
    for (const config::StarterEngine& engine : input.engines) {
      if (runs_on(engine, input.imitated_device)) continue;
      return fail(Code::usage, "--twin {}: a device for {}, on which {} does not run", twin.name,
                  text::join(apis, " or "), engine.name);
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
  ignore_runs(job);
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

// Returns true if a program is of a virtual environment in which the checkout at `top` is
// installed.
bool installs_itself(const Job& job, const std::string& program, const std::string& top) {
  const auto environment = source::environment_around(job.files(), sys::absolute(program));
  return environment && source::find_way_back(job.files(), *environment, {top});
}

// Says which argument was read as the number of tokens, or which may be it.
std::string describe_tokens(const config::TypedConfig& config, const InitOptions& options,
                            const std::string& file, int width) {
  const auto paragraph = [&](const std::string& sentence) {
    const auto lines = report::wrap(sentence, static_cast<std::size_t>(width), "", 6);
    return text::join(lines, "\n") + "\n";
  };
  if (!config.token_words.empty()) {
    return paragraph(
        fmt::format("note: {} is read as the number of tokens, and written as {{tokens}}: counts "
                    "are per token",
                    config.token_words));
  }
  if (config.likely_tokens.empty()) return "";
  return paragraph(fmt::format("note: {} looks like the number of tokens. If it is, this counts "
                               "per token:",
                               config.likely_tokens)) +
         fmt::format("  weir init --force{} --tokens {} -- {}\n",
                     file == "weir.yaml" ? "" : " -c " + text::shell_word(file),
                     config.likely_tokens, text::shell_line(options.trailing_arguments));
}

// Names numbers that the command printed and that the configuration does not read; "" without any.
std::string describe_other_numbers(const config::TypedConfig& config, int width) {
  if (config.other_numbers.empty()) return "";
  const auto lines =
      report::wrap(fmt::format("note: not read: {}. To gate one, name it: --metric NAME=REGEX",
                               text::join(config.other_numbers)),
                   static_cast<std::size_t>(width), "", 6);
  return text::join(lines, "\n") + "\n";
}

// Returns what to do with a configuration that was just written; {} stands for its options.
const char* next_step(const Repository* repository) {
  if (repository == nullptr) return "weir baseline accept{0}, then weir gate{0} after a change";
  const auto parent = repository->git().resolve_commit("HEAD~1");
  const bool has_parent = parent && *parent;
  return has_parent ? "commit it; then weir gate --against HEAD~1{}"
                    : "commit it; then, after a change, weir gate --against HEAD{}";
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
  command.timeout = options.timeout;
  command.write = file;
  command.has_token_flags = true;
  command.tokens = options.tokens;
  WEIR_TRY(const config::TypedConfig config, config_for_command(job, command, {}));
  WEIR_CHECK(job.files().write_atomic(file, config.yaml));
  ignore_runs(job);
  const std::string options_text = fmt::format("{}{}", file == "weir.yaml" ? "" : " -c " + file,
                                               config.is_read ? "" : " --counts-only");
  const auto repository = Repository::containing(job.world, job.folder());
  const char* next = next_step(repository ? repository->get() : nullptr);
  if (repository && installs_itself(job, command.programs.front(), (*repository)->git().top())) {
    next =
        "its virtual environment has this repository installed: say under build: how each checkout "
        "makes its own (build: [sh, -c, \"python3 -m venv .venv && .venv/bin/pip install .\"])";
  }
  job.answer_printable(fmt::format(
      "wrote {}\n{}{}next: {}\n", file, describe_tokens(config, options, file, job.width()),
      describe_other_numbers(config, job.width()), fmt::format(fmt::runtime(next), options_text)));
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
  const bool needs_github = options.forks || options.queue || options.comments || options.nightly;
  if (needs_github && options.ci != "github") {
    return fail(Code::usage, "--forks, --queue, --comments and --nightly go with --ci github");
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
  if (!options.tokens.empty() && !holds(options.trailing_arguments, options.tokens)) {
    return fail(Code::usage, "--tokens {}: no argument of the command after -- is {}",
                text::printable(options.tokens), text::printable(options.tokens));
  }
  if (!options.trailing_arguments.empty()) {
    if (!options.ci.empty() || !options.twin.empty()) {
      return fail(Code::usage,
                  "a command after -- cannot be combined with --ci or --twin\n  two steps: weir "
                  "init -- {}, then {}",
                  text::shell_line(options.trailing_arguments),
                  options.twin.empty()
                      ? "weir init --ci " + options.ci
                      : "\"twin: " + options.twin + "\" at a backend of weir.yaml");
    }
    WEIR_CHECK(write_command(job, options));
    return Answer{};
  }
  bool incomplete = false;
  if (options.ci.empty() || options.force || !job.files().exists(job.selection.config)) {
    WEIR_TRY_SET(incomplete, write_starter(job, options));
  } else {
    ignore_runs(job);
  }
  if (options.ci.empty()) return Answer{};
  return init_ci(job, options, incomplete);
}

}  // namespace weir::flow
