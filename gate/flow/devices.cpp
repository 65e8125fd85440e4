#include "gate/flow/devices.hpp"

#include "gate/base/find.hpp"
#include "gate/base/hash.hpp"
#include "gate/base/text.hpp"
#include "gate/config/container.hpp"
#include "gate/flow/program.hpp"
#include "gate/probes/read/cuda_twin.hpp"
#include "gate/probes/read/read.hpp"
#include "gate/probes/read/twin_folder.hpp"
#include "gate/run/container.hpp"
#include "gate/run/environment.hpp"
#include "gate/run/leftovers.hpp"
#include "gate/sys/paths.hpp"
#include "gate/sys/system.hpp"
#include "gate/unit/device_api.hpp"

namespace weir::flow {
Result<probes::Places> probe_places(const sys::World& world) {
  return probes::locate(world.files, sys::own_program(), world.environment("WEIR_PROBES"));
}

Result<sys::Finished> ask_devices_program(sys::ProcessSpec& spec, sys::World& world,
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
  return run_program(world, spec, stop, true);
}

Result<std::string> gpu_inside(const config::Cell& cell, const Job& job, const sys::Stop& stop) {
  constexpr double k_start_seconds = 120;  // an image may have to be fetched
  constexpr std::size_t k_longest = 100;
  const auto words = config::asking_inside(
      cell.command, cell.engine->container->runtime,
      {"nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader"});
  if (!words) return fail(Code::unavailable, "its options hold placeholders");
  const config::Runtime runtime = cell.engine->container->runtime;
  run::Carried carried;
  carried.name =
      "weir-" + short_hash(fmt::format("{} gpu {}", job.asked.out, job.world.clock.now()));
  carried.id_file = sys::absolute(sys::join_path(job.asked.out, carried.name));
  WEIR_CHECK(job.files().make_dirs(job.asked.out));
  WEIR_TRY(const sys::ProcessSpec program, command_spec(job, *words, k_start_seconds));
  WEIR_TRY(sys::ProcessSpec spec, run::carry_in(runtime, program.argv, carried));
  spec.timeout_seconds = program.timeout_seconds;
  spec.output_limit = program.output_limit;
  const auto finished = run_program(job.world, spec, stop, true);
  const run::Leftovers left{job.world.processes, job.files(),  runtime,
                            spec.argv.front(),   carried.name, carried.id_file};
  if (const std::string why = left.end(finished); !why.empty()) job.talk(why);
  (void)job.files().remove(carried.id_file);
  if (!finished) return tl::unexpected(finished.error());
  if (const std::string failed = failure_words(*finished, spec); !failed.empty())
    return fail(Code::unavailable, "nvidia-smi: {}", failed);
  std::map<std::string, std::size_t> gpus;
  for (const std::string& line : text::lines(finished->out)) {
    const std::string name = text::printable(text::trim(line)).substr(0, k_longest);
    if (!name.empty()) ++gpus[name];
  }
  if (gpus.empty()) return fail(Code::unavailable, "nvidia-smi lists no GPU");
  const auto list = collect<std::string>(gpus, [](const auto& gpu) {
    return gpu.second == 1 ? gpu.first : fmt::format("{}x {}", gpu.second, gpu.first);
  });
  return text::join(list, " + ").substr(0, k_longest);
}

namespace {

constexpr double k_patience_seconds = 30;

using Api = unit::DeviceApi;  // whose devices weir-devices can list

run::DeviceFacts absent(const Api& api, const std::string& why) {
  run::DeviceFacts facts;
  facts.absent = fmt::format(
      "asked for {}: {}, so nothing was run.\n"
      "  Install {} for a software device, or take the backend out of the\n"
      "  matrix (--cell leaves it out for once).",
      api.title, why, api.package);
  return facts;
}

// The answer of weir-devices.
Result<run::DeviceFacts> read_answer(const Api& api, const std::string& text) {
  WEIR_TRY(const Json json, parse_json(text, {.bytes = std::size_t{1} << 20, .depth = 8}));
  JsonReader read(json, "weir-devices");
  const std::string error_key = fmt::format("{}_error", api.name);
  const Json& devices = read.array(api.name);
  const auto error = read.optional_string(error_key.c_str());
  if (auto problem = read.problem()) return tl::unexpected(*problem);
  if (devices.empty()) {
    const std::string none = fmt::format("this machine has no {} device", api.title);
    return absent(api, error ? fmt::format("{} ({})", none, text::printable(*error)) : none);
  }
  run::DeviceFacts facts;
  facts.on_cpu = true;
  for (const Json& device : devices) {
    JsonReader one(device, fmt::format("weir-devices: {}", api.name));
    const std::string name = text::printable(one.string("name"));
    facts.on_cpu = facts.on_cpu && one.string("type") == "cpu";
    // With several devices the engine chooses; the probe tells which one it was.
    facts.device_class = devices.size() == 1 ? one.string("class") : "";
    facts.name += (facts.name.empty() ? "" : ", ") + name;
    if (auto problem = one.problem()) return tl::unexpected(*problem);
  }
  return facts;
}

Result<run::DeviceFacts> look_for(const Api& api, const config::Cell& cell, sys::World& world,
                                  const sys::Stop& stop) {
  sys::ProcessSpec spec;
  spec.argv = {api.name};
  spec.env = run::merge_environment(sys::own_environment(), cell.env, {});
  spec.timeout_seconds = k_patience_seconds;
  spec.output_limit = std::uint64_t{1} << 20;
  WEIR_TRY(const sys::Finished finished, ask_devices_program(spec, world, stop));
  const std::string how = failure_words(finished, spec);
  if (how.empty()) return read_answer(api, finished.out);
  return absent(api, fmt::format("its driver failed when asked for devices ({})", how));
}

}  // namespace

Result<std::map<std::string, run::DeviceFacts>> look_for_devices(const config::Cell& cell,
                                                                 const sys::Machine& machine,
                                                                 sys::World& world,
                                                                 const sys::Stop& stop) {
  std::map<std::string, run::DeviceFacts> devices;
  devices["cpu"] = {
      .device_class = machine.cpu_class, .name = machine.cpu_model, .on_cpu = true, .absent = {}};
  for (const Api& api : unit::device_apis()) {
    if (cell.device != api.name || api.package.empty()) continue;
    WEIR_TRY(devices[api.name], look_for(api, cell, world, stop));
  }
  // Nothing here can ask for other devices yet; the engine itself says when one is missing.
  return devices;
}

namespace {

// A file beside the probes; `what` is not installed where it is not there.
Result<std::string> installed(const sys::World& world, const char* name, const char* what) {
  WEIR_TRY(const probes::Places places, probe_places(world));
  std::string path = sys::join_path(places.probes, name);
  if (world.files.kind(path) == sys::Kind::file) return path;
  return fail(Code::unavailable, "{} not installed: no {}", what, path);
}

Result<std::string> driver_manifest(const sys::World& world) {
  return installed(world, "weir_twin.json", "the driver of device twins is");
}

// Named by what is in it: one that is there is the same.
Result<std::string> keep(const std::string& place, const std::string& stem, const std::string& end,
                         const std::string& bytes, sys::Files& files) {
  const std::string path =
      sys::join_path(place, fmt::format("{}-{}.{}", stem, short_hash(bytes), end));
  if (files.kind(path) != sys::Kind::file) WEIR_CHECK(files.write_atomic(path, bytes));
  return path;
}

// A folder in which the one library has the name of each that it stands for.
Result<std::string> cuda_libraries(const std::string& place, sys::World& world) {
  sys::Files& files = world.files;
  WEIR_TRY(const std::string library,
           installed(world, probes::k_cuda_twin_library, "the libraries of CUDA twins are"));
  std::string folder = sys::join_path(place, "cuda-" + short_hash(library));
  WEIR_CHECK(files.make_dirs(folder));
  for (const char* name : probes::k_cuda_libraries) {
    const std::string link = sys::join_path(folder, name);
    if (!files.exists(link)) WEIR_CHECK(files.link(library, link));
  }
  return folder;
}

Result<run::DeviceTwin> make_twin(const config::Cell& cell, const std::vector<std::string>& folders,
                                  const std::string& place, sys::World& world) {
  sys::Files& files = world.files;
  WEIR_TRY(probes::Twin twin, probes::load_twin(files, folders, *cell.twin));
  run::DeviceTwin made;
  made.title = twin.title;
  made.cuda = cell.device == "cuda";
  std::string blob;
  if (made.cuda) {
    WEIR_TRY(made.driver, cuda_libraries(place, world));
    WEIR_TRY(probes::CudaTwin compiled, probes::compile_cuda_twin(twin, cell.twin_devices));
    made.major = compiled.major;
    made.minor = compiled.minor;
    made.device = compiled.name;
    blob = std::move(compiled.blob);
  } else if (twin.has_vulkan()) {
    WEIR_TRY(made.driver, driver_manifest(world));
    blob = probes::compile_twin(twin);
    made.compile = twin.compile;
    const Json* name = twin.value("VkPhysicalDeviceProperties", "deviceName");
    made.device = name != nullptr && name->is_string() ? name->get<std::string>() : twin.title;
  } else {
    return fail(Code::config, "twin {}: it is described for CUDA alone: device: cuda", *cell.twin);
  }
  made.hash = hash_hex(blob);
  WEIR_TRY(made.blob, keep(place, twin.name, made.cuda ? "cuda" : "blob", blob, files));
  return made;
}

}  // namespace

std::vector<std::string> known_twins(const sys::World& world, const std::string& config_folder) {
  const sys::Files& files = world.files;
  if (!driver_manifest(world)) return {};
  return probes::twin_names(files, probes::twin_folders(files, config_folder))
      .value_or(std::vector<std::string>());
}

Result<std::map<std::string, run::DeviceTwin>> make_twins(std::span<const config::Cell> cells,
                                                          const std::string& config_folder,
                                                          const std::string& out,
                                                          sys::World& world) {
  sys::Files& files = world.files;
  std::map<std::string, run::DeviceTwin> twins;
  const auto folders = probes::twin_folders(files, config_folder);
  const std::string place = sys::absolute(sys::join_path(out, "twins"));
  for (const config::Cell& cell : cells) {
    if (!cell.twin || twins.count(run::twin_key(cell)) != 0) continue;
    WEIR_CHECK(files.make_dirs(place));
    WEIR_TRY(twins[run::twin_key(cell)], make_twin(cell, folders, place, world));
  }
  return twins;
}

Result<std::string> cuda_kernels_of(const std::string& program, const std::string& library,
                                    const run::DeviceTwin& twin, const std::string& out,
                                    sys::World& world,
                                    std::map<std::string, probes::CudaCode>& known) {
  const std::string place = sys::absolute(sys::join_path(out, "twins"));
  const std::string& of = library.empty() ? program : library;
  if (!known.contains(of))
    WEIR_SET(known[of], probes::find_cuda_code(of, twin.driver, world.files, variables_of(world)));
  const probes::CudaCode& code = known[of];
  if (code.files.empty() && library.empty()) {
    return fail(Code::unavailable,
                "{} has no CUDA code: name the library that has it (engine: cuda_code: FILE)",
                sys::file_name_of(program));
  }
  const std::string path =
      sys::join_path(place, fmt::format("{}-{}{}.kernels{}", short_hash(code.stamp), twin.major,
                                        twin.minor, probes::k_cuda_reader));
  if (world.files.kind(path) == sys::Kind::file) return path;
  WEIR_TRY(const probes::CudaKernels kernels,
           probes::read_cuda_kernels(code, twin.major, twin.minor, world.files));
  WEIR_CHECK(world.files.write_atomic(path, kernels.table));
  return path;
}

namespace {

class InstalledProbes final : public run::Probing {
 public:
  InstalledProbes(sys::World& world, probes::Places places)
      : world_(world), places_(std::move(places)) {}

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
      WEIR_TRY(const auto one,
               probes::environment_for(name, places_, folder, world_.files, variable));
      // Loader lists of several probes are joined; the caller keeps what is there already.
      for (const auto& [key, value] : one) {
        std::string& there = added[key];
        if (there != value) there += (there.empty() ? "" : ":") + value;
      }
    }
    return added;
  }

  Result<std::vector<profile::ProbeCounts>> collect(std::span<const std::string> names,
                                                    const std::string& folder) override {
    return probes::collect_all(world_.files, folder, names);
  }

  [[nodiscard]] std::string folder() const override { return places_.probes; }

 private:
  sys::World& world_;
  probes::Places places_;
};

}  // namespace

Result<std::unique_ptr<run::Probing>> make_probing(sys::World& world) {
  WEIR_TRY(probes::Places places, probe_places(world));
  return std::make_unique<InstalledProbes>(world, std::move(places));
}

}  // namespace weir::flow
