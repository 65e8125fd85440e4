// Devices, device twins and probes: finds what is installed here, and makes what engines need.
#include "gate/flow/devices.hpp"

#include "gate/base/find.hpp"
#include "gate/base/hash.hpp"
#include "gate/base/text.hpp"
#include "gate/config/container.hpp"
#include "gate/flow/newest_run.hpp"
#include "gate/flow/program.hpp"
#include "gate/probes/read/read.hpp"
#include "gate/probes/read/runtime_twin.hpp"
#include "gate/probes/read/stub_library.hpp"
#include "gate/probes/read/twin_folder.hpp"
#include "gate/run/container.hpp"
#include "gate/run/environment.hpp"
#include "gate/run/leftovers.hpp"
#include "gate/sys/paths.hpp"
#include "gate/sys/system.hpp"
#include "gate/unit/device_api.hpp"

namespace weir::flow {
Result<probes::Places> probe_places(const sys::World& world) {
  return probes::locate(world.files, sys::own_program_path(), world.environment("WEIR_PROBES"));
}

// Runs weir-devices, which asks drivers for devices, with the arguments in `spec`. Fails with
// Code::unavailable if it is not installed.
Result<sys::Finished> run_devices_program(sys::ProcessSpec& spec, sys::World& world,
                                          const sys::Stop& stop) {
  WEIR_TRY(const probes::Places places, probe_places(world));
  if (places.devices_program.empty()) {
    return fail(Code::unavailable, "{}",
                sys::k_on_macos
                    ? "weir-devices, which asks drivers for their devices, is not on macOS"
                    : "weir-devices is missing beside the probes in " + places.probes +
                          ": build or install weir again");
  }
  spec.argv.insert(spec.argv.begin(), places.devices_program);
  return run_program(world, spec, stop, /*has_to=*/true);
}

// Runs nvidia-smi in the cell's container, and returns the GPUs that it lists, like "2x NVIDIA
// H100, 81559 MiB".
Result<std::string> container_gpus(const config::Cell& cell, const Job& job,
                                   const sys::Stop& stop) {
  constexpr double k_start_seconds = 120;  // an image may have to be fetched
  constexpr std::size_t k_max_name_length = 100;
  const auto command = config::command_inside(
      cell.command, cell.engine->container->runtime,
      {"nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader"});
  if (!command) return fail(Code::unavailable, "its options hold placeholders");
  const config::Runtime runtime = cell.engine->container->runtime;
  run::ContainerInputs container;
  container.name = "weir-" + short_hash(fmt::format("{} gpu {}", job.selection.runs_folder,
                                                    job.world.clock.now()));
  container.id_file = sys::absolute(sys::join_path(job.selection.runs_folder, container.name));
  WEIR_CHECK(job.files().make_dirs(job.selection.runs_folder));
  WEIR_TRY(const sys::ProcessSpec program, command_spec(job, *command, k_start_seconds));
  WEIR_TRY(sys::ProcessSpec spec, run::container_command(runtime, program.argv, container));
  spec.timeout_seconds = program.timeout_seconds;
  spec.output_limit = program.output_limit;
  const auto finished = run_program(job.world, spec, stop, /*has_to=*/true);
  const run::Leftovers leftovers{job.world.processes, job.files(),    runtime,
                                 spec.argv.front(),   container.name, container.id_file};
  if (const std::string why = leftovers.end(finished); !why.empty()) job.log(why);
  (void)job.files().remove(container.id_file);
  if (!finished) return tl::unexpected(finished.error());
  if (const std::string failure = failure_text(*finished, spec); !failure.empty())
    return fail(Code::unavailable, "nvidia-smi: {}", failure);
  std::map<std::string, std::size_t> gpus;
  for (const std::string& line : text::lines(finished->out)) {
    const std::string name = text::printable(text::trim(line)).substr(0, k_max_name_length);
    if (!name.empty()) ++gpus[name];
  }
  if (gpus.empty()) return fail(Code::unavailable, "nvidia-smi lists no GPU");
  const auto names = collect<std::string>(gpus, [](const auto& gpu) {
    return gpu.second == 1 ? gpu.first : fmt::format("{}x {}", gpu.second, gpu.first);
  });
  return text::join(names, " + ").substr(0, k_max_name_length);
}

namespace {

constexpr double k_patience_seconds = 30;  // for one call of weir-devices

using Api = unit::DeviceApi;

// Returns an absent device, with a reason and a way out for people.
run::DeviceFacts absent_device(const Api& api, const std::string& why) {
  run::DeviceFacts facts;
  facts.absent = fmt::format(
      "asked for {}: {}, so nothing was run.\n"
      "  Install {} for a software device, simulate a GPU (twin: NAME beside\n"
      "  device:, weir device list), or take the backend out of the matrix\n"
      "  (--cell leaves it out for once).",
      api.title, why, api.package);
  return facts;
}

// Parses the output of weir-devices for one API. With several devices the class is "": the engine
// chooses one.
Result<run::DeviceFacts> parse_device_list(const Api& api, const std::string& text) {
  WEIR_TRY(const Json json, parse_json(text, {.bytes = std::size_t{1} << 20, .depth = 8}));
  JsonReader fields(json, "weir-devices");
  const std::string error_key = fmt::format("{}_error", api.name);
  const Json& devices = fields.array(api.name);
  const auto error = fields.optional_string(error_key.c_str());
  if (auto problem = fields.problem()) return tl::unexpected(*problem);
  if (devices.empty()) {
    const std::string no_device = fmt::format("this machine has no {} device", api.title);
    return absent_device(
        api, error ? fmt::format("{} ({})", no_device, text::printable(*error)) : no_device);
  }
  run::DeviceFacts facts;
  facts.on_cpu = true;
  for (const Json& device : devices) {
    JsonReader device_fields(device, fmt::format("weir-devices: {}", api.name));
    const std::string name = text::printable(device_fields.string("name"));
    facts.on_cpu = facts.on_cpu && device_fields.string("type") == "cpu";
    // With several devices the engine chooses; the probe reports which one it was.
    facts.device_class = devices.size() == 1 ? device_fields.string("class") : "";
    text::append_item(facts.name, ", ", name);
    if (auto problem = device_fields.problem()) return tl::unexpected(*problem);
  }
  return facts;
}

// Asks weir-devices for the devices of one API, in the cell's environment. A driver that fails
// counts as absent.
Result<run::DeviceFacts> find_device(const Api& api, const config::Cell& cell, sys::World& world,
                                     const sys::Stop& stop) {
  sys::ProcessSpec spec;
  spec.argv = {api.name};
  spec.env = run::merge_environment(sys::own_environment(), cell.env, {});
  spec.timeout_seconds = k_patience_seconds;
  spec.output_limit = std::uint64_t{1} << 20;
  WEIR_TRY(const sys::Finished finished, run_devices_program(spec, world, stop));
  const std::string failure = failure_text(finished, spec);
  if (failure.empty()) return parse_device_list(api, finished.out);
  return absent_device(api, fmt::format("its driver failed when asked for devices ({})", failure));
}

}  // namespace

// Returns the CPU and the cell's own device, as the cell's environment shows it, by name.
Result<std::map<std::string, run::DeviceFacts>> find_devices(const config::Cell& cell,
                                                             const sys::Machine& machine,
                                                             sys::World& world,
                                                             const sys::Stop& stop) {
  std::map<std::string, run::DeviceFacts> devices;
  devices["cpu"] = {
      .device_class = machine.cpu_class, .name = machine.cpu_model, .on_cpu = true, .absent = {}};
  for (const Api& api : unit::device_apis()) {
    if (cell.device != api.name || api.package.empty()) continue;
    WEIR_TRY(devices[api.name], find_device(api, cell, world, stop));
  }
  // Other devices cannot be asked for yet; the engine itself reports a missing one.
  return devices;
}

namespace {

// Returns a file beside the probes. Code::unavailable if it is absent; `what` begins the message.
Result<std::string> find_installed(const sys::World& world, const char* name,
                                   const std::string& message_start) {
  WEIR_TRY(const probes::Places places, probe_places(world));
  std::string path = sys::join_path(places.probes, name);
  if (world.files.kind(path) == sys::Kind::file) return path;
  return fail(Code::unavailable, "{} not installed: no {}", message_start, path);
}

Result<std::string> driver_manifest(const sys::World& world) {
  return find_installed(world, "weir_twin.json", "the driver of device twins is");
}

// Returns true if something lies at `path` that is no link.
bool is_no_link(const std::string& path) {
  const auto real = sys::real_path(path), above = sys::real_path(sys::folder_of(path));
  return real && above && *real == sys::join_path(*above, sys::file_name_of(path));
}

// Makes a folder where `path` lies: a link of that name, which may be committed, is replaced.
Result<void> make_own_folder(const std::string& path, sys::Files& files) {
  if (!is_no_link(path)) WEIR_CHECK(files.remove(path));
  return files.make_dirs(path);
}

// Makes a file hold `bytes`; one that does is left as it is, for another run may use it.
Result<void> write_if_other(const std::string& path, const std::string& bytes, sys::Files& files) {
  if (is_no_link(path)) {
    const auto there = files.read(path, bytes.size());
    if (there && *there == bytes) return {};
  }
  return files.write_unsynced(path, bytes);
}

// Makes a folder of links to the one library of an API's twins, under each name that it stands for.
// Removes other files there: loaders would prefer them to the system's libraries.
Result<std::string> link_libraries(const probes::RuntimeApi& api, const std::string& twins_folder,
                                   sys::World& world) {
  sys::Files& files = world.files;
  WEIR_TRY(
      const std::string library,
      find_installed(world, api.library, fmt::format("the libraries of {} twins are", api.title)));
  std::string folder =
      sys::join_path(twins_folder, fmt::format("{}-{}", api.name, short_hash(library)));
  WEIR_CHECK(make_own_folder(folder, files));
  WEIR_TRY(const std::vector<std::string> names, files.list(folder));
  for (const std::string& name : names) {
    if (!holds(api.names, name)) WEIR_CHECK(files.remove_tree(sys::join_path(folder, name)));
  }
  for (const char* name : api.names) {
    const std::string link = sys::join_path(folder, name);
    if (sys::real_path(link) != sys::real_path(library)) WEIR_CHECK(files.link(library, link));
  }
  return folder;
}

// Compiles the description of a cell's device twin (simulated GPU), and writes it where its driver
// reads it.
Result<run::DeviceTwin> make_twin(const config::Cell& cell, const std::vector<std::string>& folders,
                                  const std::string& twins_folder, sys::World& world) {
  sys::Files& files = world.files;
  WEIR_TRY(probes::Twin twin, probes::load_twin(files, folders, *cell.twin));
  run::DeviceTwin device_twin;
  device_twin.title = twin.title;
  std::string blob, ending = "blob";
  if (const probes::RuntimeApi* api = probes::find_runtime_api(cell.device)) {
    WEIR_TRY(device_twin.driver, link_libraries(*api, twins_folder, world));
    WEIR_TRY(probes::RuntimeTwin compiled,
             probes::compile_runtime_twin(twin, api->name, cell.twin_devices));
    device_twin.runtime = api;
    device_twin.target = compiled;
    device_twin.device = compiled.name;
    blob = std::move(compiled.blob);
    ending = api->name;
  } else if (twin.has_vulkan()) {
    WEIR_TRY(device_twin.driver, driver_manifest(world));
    blob = probes::compile_twin(twin);
    device_twin.compile = twin.compile;
    const Json* name = twin.value("VkPhysicalDeviceProperties", "deviceName");
    device_twin.device =
        name != nullptr && name->is_string() ? name->get<std::string>() : twin.title;
  } else {
    return fail(Code::config, "twin {}: it is not described for Vulkan: device: {}", *cell.twin,
                text::join(twin.apis(), " or "));
  }
  device_twin.hash = hash_hex(blob);
  device_twin.blob =
      sys::join_path(twins_folder, fmt::format("{}-{}.{}", twin.name, short_hash(blob), ending));
  WEIR_CHECK(write_if_other(device_twin.blob, blob, files));
  return device_twin;
}

}  // namespace

std::vector<std::string> twin_names(const sys::World& world, const std::string& config_folder) {
  const sys::Files& files = world.files;
  if (!driver_manifest(world)) return {};
  return probes::twin_names(files, probes::twin_folders(files, config_folder))
      .value_or(std::vector<std::string>());
}

// Makes the device twin of each cell that asks for one, once for each key.
Result<std::map<std::string, run::DeviceTwin>> make_twins(std::span<const config::Cell> cells,
                                                          const std::string& config_folder,
                                                          const std::string& out,
                                                          sys::World& world) {
  sys::Files& files = world.files;
  std::map<std::string, run::DeviceTwin> twins;
  const auto folders = probes::twin_folders(files, config_folder);
  const std::string twins_folder = sys::absolute(sys::join_path(out, "twins"));
  for (const config::Cell& cell : cells) {
    if (!cell.twin || twins.count(run::twin_key(cell)) != 0) continue;
    WEIR_CHECK(make_own_folder(twins_folder, files));
    WEIR_TRY(twins[run::twin_key(cell)], make_twin(cell, folders, twins_folder, world));
  }
  return twins;
}

namespace {

// Finds the GPU code of a program, or of the library that it opens by itself; each file is read
// once. Fails if the program has none.
Result<probes::RuntimeCode> find_code(const std::string& program, const std::string& library,
                                      const run::DeviceTwin& twin, const sys::World& world,
                                      ProgramCode& programs) {
  const probes::RuntimeApi& api = *twin.runtime;
  const std::string& binary = library.empty() ? program : library;
  const std::pair key(std::string(api.name), binary);
  if (!programs.by_file.contains(key)) {
    WEIR_TRY_SET(programs.by_file[key],
                 probes::find_runtime_code(api, binary, twin.driver, world.files,
                                           environment_reader(world)));
  }
  const probes::RuntimeCode& code = programs.by_file[key];
  if (code.files.empty() && library.empty()) {
    return fail(Code::config,
                "{} has no {} code: name the library that has it (engine: gpu_code: FILE)",
                sys::file_name_of(program), api.title);
  }
  return code;
}

// Writes the table of the code's kernels for a simulated GPU, and returns its path. If the cache
// may be reused, takes an earlier run's table, unless git tracks it or it has no kernels.
Result<std::string> write_kernels(const std::string& binary, const probes::RuntimeCode& code,
                                  const std::string& twins_folder, const run::DeviceTwin& twin,
                                  const Job& job, ProgramCode& programs) {
  sys::World& world = job.world;
  const probes::RuntimeApi& api = *twin.runtime;
  const std::string path = sys::join_path(
      twins_folder,
      fmt::format("{}-{}.kernels{}", short_hash(code.stamp), twin.target.file_name(), api.reader));
  if (programs.tables.contains(path)) return path;
  if (job.reuses_cache() && world.files.size(path).value_or(0) > probes::k_empty_kernel_table) {
    WEIR_TRY(const bool tracked, is_tracked(job, path));
    if (!tracked) return path;
  }
  WEIR_TRY(const probes::RuntimeKernels kernels,
           probes::read_runtime_kernels(api, code, twin.target, world.files));
  if (kernels.kernels == 0 && !kernels.targets.empty()) {
    programs.notes.insert(fmt::format(
        "{} has no code for {}: it has code for {}", sys::file_name_of(binary), twin.target.target,
        text::join(std::vector<std::string>(kernels.targets.begin(), kernels.targets.end()))));
  }
  WEIR_CHECK(world.files.write_atomic(path, kernels.table));
  if (kernels.kernels > 0) programs.tables.insert(path);
  return path;
}

}  // namespace

// Writes the files that stand in for a runtime's libraries: the table of the program's kernels, and
// stubs for libraries that are missing.
Result<run::RuntimeFiles> write_runtime_files(const std::string& program,
                                              const std::string& library,
                                              const run::DeviceTwin& twin, const Job& job,
                                              ProgramCode& programs) {
  WEIR_TRY(const probes::RuntimeCode code, find_code(program, library, twin, job.world, programs));
  const std::string twins_folder =
      sys::absolute(sys::join_path(job.selection.runs_folder, "twins"));
  run::RuntimeFiles files;
  WEIR_TRY_SET(files.kernels, write_kernels(library.empty() ? program : library, code, twins_folder,
                                            twin, job, programs));
  files.preloads = code.preloads;
  if (code.missing.empty()) return files;
  WEIR_TRY(const std::string stubs, probes::make_stub_library(code.missing));
  files.stubs = sys::join_path(twins_folder, fmt::format("stubs-{}.so", short_hash(stubs)));
  WEIR_CHECK(write_if_other(files.stubs, stubs, job.world.files));
  return files;
}

namespace {

class InstalledProbes final : public run::Probing {
 public:
  InstalledProbes(sys::World& world, probes::Places places)
      : world_(world), places_(std::move(places)) {}

  // Returns the variables that attach probes which write to `folder`. `inside` is the environment
  // in a container; null outside of one.
  Result<config::Environment> attach(std::span<const std::string> names, const std::string& folder,
                                     const config::Environment* inside) override {
#ifdef __APPLE__
    if (inside != nullptr) {
      return fail(Code::unavailable, "containers run Linux, whose probes are not built on macOS");
    }
#endif
    const auto variable = [&](std::string_view name) -> std::optional<std::string> {
      if (inside == nullptr) return world_.environment(std::string(name));
      const std::string* value = look_up(*inside, std::string(name));
      return value == nullptr ? std::nullopt : std::optional(*value);
    };
    config::Environment added;
    for (const std::string& name : names) {
      WEIR_TRY(const auto variables,
               probes::environment_for(name, places_, folder, world_.files, variable));
      // Several probes share a loader's list; the caller keeps the existing entries.
      for (const auto& [key, value] : variables) {
        std::string& joined = added[key];
        if (joined != value) text::append_item(joined, ":", value);
      }
    }
    return added;
  }

  Result<std::vector<profile::ProbeCounts>> collect(
      std::span<const std::string> names, const std::string& folder,
      std::span<const config::ProcessRole> roles) override {
    return probes::collect_all(world_.files, folder, names, roles);
  }

  [[nodiscard]] std::string folder() const override { return places_.probes; }

 private:
  sys::World& world_;
  probes::Places places_;
};

}  // namespace

Result<std::unique_ptr<run::Probing>> make_probing(sys::World& world, bool needed) {
  auto places = probe_places(world);
  if (!places && needed) return tl::unexpected(std::move(places).error());
  return std::make_unique<InstalledProbes>(world, places ? std::move(*places) : probes::Places{});
}

}  // namespace weir::flow
