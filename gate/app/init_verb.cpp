// weir init: a starter weir.yaml for the engines found on this machine.
#include <algorithm>
#include <memory>

#include "gate/adapters/format.hpp"
#include "gate/app/command_line.hpp"
#include "gate/app/devices.hpp"
#include "gate/app/init_ci.hpp"
#include "gate/config/starter.hpp"
#include "gate/sys/files.hpp"
#include "gate/sys/machine.hpp"
#include "gate/sys/paths.hpp"
#include "gate/sys/process.hpp"

namespace weir::app {
namespace {

// Where builds leave their programs, counted from here; PATH comes after them.
constexpr std::array k_program_folders{".", "build", "build/bin", "bin", "engines/llama.cpp"};
constexpr std::array k_model_folders{".", "models"};
constexpr std::size_t k_most_models = 4;

struct InitOptions {
  std::string file = "weir.yaml";
  bool force = false;
  std::string ci;  // "github", "gitlab"; "": none
};

// As it shall stand in the config; nothing where it is not here.
std::optional<std::string> find_place(std::string_view program, const std::string& path,
                                      const sys::Files& files) {
  for (const char* folder : k_program_folders) {
    const std::string candidate = fmt::format("{}/{}", folder, program);
    if (!sys::find_program(files, candidate, ".", "")) continue;
    return folder == std::string_view(".") ? candidate : fmt::format("./{}", candidate);
  }
  if (sys::find_program(files, program, ".", path)) return std::string(program);
  return std::nullopt;
}

// By the names of their programs alone: none is started. Ollama's models are no files and its
// program takes no number of tokens, so it is left to whoever writes the config.
std::vector<config::StarterEngine> find_engines(const sys::Files& files) {
  std::vector<config::StarterEngine> found;
  const std::string path = sys::environment_value("PATH").value_or("/usr/bin:/bin");
  for (const adapters::Adapter& adapter : adapters::table()) {
    // Of llama.cpp one is enough, and llama-bench says most.
    const bool llama_is_here = std::any_of(
        found.begin(), found.end(), [](const auto& one) { return one.adapter == "llama-bench"; });
    if (adapter.name == "llama-perf" && llama_is_here) continue;
    for (const std::string_view program : adapter.programs) {
      const auto place = find_place(program, path, files);
      if (!place) continue;
      const bool llama = adapter.name == "llama-bench" || adapter.name == "llama-perf";
      found.push_back(
          {llama ? "llama.cpp" : std::string(adapter.name), *place, std::string(adapter.name)});
    }
  }
  return found;
}

// A folder as MLX and others load it.
bool model_folder(const sys::Files& files, const std::string& path) {
  if (files.kind(path) != sys::Kind::folder) return false;
  if (files.kind(sys::join_path(path, "config.json")) != sys::Kind::file) return false;
  const auto names = files.list(path);
  return names && std::any_of(names->begin(), names->end(), [](const std::string& name) {
           return name.ends_with(".safetensors");
         });
}

std::vector<config::StarterModel> find_models(const sys::Files& files) {
  std::vector<config::StarterModel> found;
  for (const char* folder : k_model_folders) {
    const auto names = files.list(folder);
    if (!names) continue;
    for (const std::string& name : *names) {
      if (found.size() == k_most_models) break;
      const std::string path =
          folder == std::string_view(".") ? name : sys::join_path(folder, name);
      if (name.ends_with(".gguf")) {
        found.push_back({name.substr(0, name.size() - 5), path});
      } else if (model_folder(files, path)) {
        found.push_back({name, path, true});
      }
    }
  }
  return found;
}

// What was found, written down. True where something was not, so that it has to be filled in.
Result<bool> write_starter(const InitOptions& options, sys::Files& files) {
  if (files.exists(options.file) && !options.force) {
    return fail(Code::usage, "{} is there already\n  --force writes over it, -c names another",
                options.file);
  }
  config::StarterInput found;
  found.engines = find_engines(files);
  found.models = find_models(files);
  const sys::Interrupts interrupts;
  config::Cell probe_cell;
  probe_cell.device = "vulkan";
  // Without the probes beside the program nothing can be asked; the starter then leaves Vulkan out.
  if (const auto devices =
          look_for_devices(probe_cell, sys::read_machine(files), interrupts.stop())) {
    const run::DeviceFacts& vulkan = devices->at("vulkan");
    found.has_vulkan = !vulkan.absent;
    found.vulkan_is_cpu = vulkan.on_cpu;
  } else {
    found.has_probes = false;
  }
  WEIR_CHECK(files.write_atomic(options.file, config::starter_config(found)));
  std::string said = fmt::format("wrote {}\n", options.file);
  for (const config::StarterEngine& engine : found.engines) {
    said += fmt::format("  engine  {} ({})\n", engine.name, engine.program);
  }
  if (found.engines.empty()) said += "  no engine found here or in PATH: fill in the example\n";
  for (const config::StarterModel& model : found.models) {
    said += fmt::format("  model   {}\n", model.path);
  }
  if (found.models.empty()) {
    said += "  no model found: weir model make models/tiny-llama.gguf writes a small one\n";
  }
  said += fmt::format("  vulkan  {}\n", found.has_vulkan ? "yes" : "no device");
  if (options.ci.empty()) {
    said += fmt::format(
        "next: weir gate -c {} --counts-only, then weir baseline accept -c {} --counts-only\n",
        options.file, options.file);
  }
  say(said);
  return found.engines.empty() || found.models.empty();
}

Result<ExitCode> init(const InitOptions& options) {
  sys::RealFiles files;
  bool incomplete = false;
  if (options.ci.empty() || options.force || !files.exists(options.file)) {
    WEIR_TRY(incomplete, write_starter(options, files));
  }
  if (options.ci.empty()) return ExitCode::pass;
  return init_ci(options.ci == "github" ? CiSystem::github : CiSystem::gitlab, options.file,
                 incomplete, files);
}

}  // namespace

void add_init(CLI::App& app) {
  CLI::App* verb =
      app.add_subcommand("init", "Write a starter weir.yaml for the engines found here");
  auto options = std::make_shared<InitOptions>();
  verb->add_option("-c,--config", options->file, "Where to write it")
      ->type_name("FILE")
      ->capture_default_str();
  verb->add_flag("--force", options->force, "Write over a file that is there");
  verb->add_option(
          "--ci", options->ci,
          "Also a workflow for github or gitlab, a first count, and how long a gate takes;\n"
          "what is there already stays")
      ->type_name("SYSTEM")
      ->check(CLI::IsMember({"github", "gitlab"}));
  verb->footer(
      "Looks for llama-bench (or llama-completion), agave, hf2q and mlx_lm.benchmark here, in\n"
      "build/, build/bin, bin, engines/llama.cpp and PATH, and for models here and in models/:\n"
      "GGUF files, and folders with config.json and safetensors. Nothing is started but a\n"
      "look for devices.\n\n"
      "Examples:\n  weir init && weir gate --counts-only\n  weir init --ci github");
  set_action(*verb, [options] { return init(*options); });
}

}  // namespace weir::app
