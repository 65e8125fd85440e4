// weir init: a starter weir.yaml for the engines found on this machine.
#include <algorithm>
#include <memory>

#include "gate/adapters/adapter.hpp"
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

std::vector<config::StarterEngine> find_engines(const sys::Files& files) {
  std::vector<config::StarterEngine> found;
  const std::string path = sys::environment_value("PATH").value_or("/usr/bin:/bin");
  for (const adapters::Adapter& adapter : adapters::table()) {
    for (const std::string_view program : adapter.programs) {
      std::optional<std::string> place;
      for (const char* folder : k_program_folders) {
        const std::string candidate = fmt::format("{}/{}", folder, program);
        if (!place && sys::find_program(files, candidate, ".", "")) {
          place = folder == std::string_view(".") ? candidate : fmt::format("./{}", candidate);
        }
      }
      if (!place && sys::find_program(files, program, ".", path)) place = std::string(program);
      if (place) {
        const std::string name = adapter.name == "llama-bench" ? "llama.cpp" : std::string(program);
        found.push_back({name, *place, std::string(adapter.name)});
      }
    }
  }
  return found;
}

std::vector<config::StarterModel> find_models(const sys::Files& files) {
  std::vector<config::StarterModel> found;
  for (const char* folder : k_model_folders) {
    const auto names = files.list(folder);
    if (!names) continue;
    for (const std::string& name : *names) {
      if (!name.ends_with(".gguf") || found.size() == k_most_models) continue;
      const std::string path =
          folder == std::string_view(".") ? name : sys::join_path(folder, name);
      found.push_back({name.substr(0, name.size() - 5), path});
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
  verb->footer("Examples:\n  weir init && weir gate --counts-only\n  weir init --ci github");
  set_action(*verb, [options] { return init(*options); });
}

}  // namespace weir::app
