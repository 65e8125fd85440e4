#include "gate/run/preflight.hpp"

#include "gate/base/find.hpp"
#include "gate/base/hash.hpp"
#include "gate/base/text.hpp"
#include "gate/config/container.hpp"
#include "gate/run/container.hpp"
#include "gate/run/server_hold.hpp"
#include "gate/run/starts.hpp"
#include "gate/sys/paths.hpp"
#include "gate/sys/resting.hpp"

namespace weir::run {
namespace {

constexpr std::uint64_t k_largest_prompt = std::uint64_t{16} << 20;
constexpr const char* k_ggml_devices = "GGML_VK_VISIBLE_DEVICES";

bool may_be_ggml(const config::Cell& cell) {
  return cell.adapter.starts_with("llama-") ||
         (cell.engine != nullptr && holds(cell.engine->probes, "ggml"));
}

// What is Vulkan's has been called so from the start.
std::string class_of_twin(const config::Cell& cell) {
  if (cell.device != "cuda") return "twin-" + *cell.twin;
  return fmt::format("twin-cuda-{}{}", *cell.twin,
                     cell.twin_devices == 1 ? "" : fmt::format("-x{}", cell.twin_devices));
}

class Preflight {
 public:
  Preflight(const Surroundings& around, const sys::Files& files) : around_(around), files_(files) {}

  PreparedCell prepare(const config::Cell& cell) {
    PreparedCell prepared;
    prepared.cell = cell;
    prepared.folder = around_.config_folder;
    prepared.threads = cell.threads > 0 ? cell.threads : around_.machine.usable_cores;
    if (!cell.results.empty()) {
      for (const std::string& file : cell.results) {
        if (!files_.readable(file)) add(file + ": cannot be read");
      }
    } else if (cell.command.empty() && cell.engine != nullptr && cell.engine->server) {
      note_address(prepared);
    } else if (container_of(prepared) != nullptr) {
      look_for_runtime(prepared);
    } else {
      look_for_program(prepared);
    }
    look_for_token(cell);
    look_at_prompt(prepared);
    const ModelFacts model = look_at_model_of(prepared);
    fill_facts(prepared, model);
    look_at_device(prepared);
    choose_probes(prepared);
    look_for_shaders(prepared);
    check_mounts(prepared);
    return prepared;
  }

  void check_place(const std::string& path) {
    if (path.empty()) return;
    if (files_.kind(path) == sys::Kind::file || files_.kind(path) == sys::Kind::folder) {
      if (!files_.writable(path)) add(fmt::format("{}: cannot be written", path));
      return;
    }
    // What is not there will be made, in the nearest folder above that is.
    std::string folder = sys::absolute(path);
    do {
      folder = sys::folder_of(folder);
    } while (files_.kind(folder) == sys::Kind::absent && folder != "/");
    if (files_.kind(folder) != sys::Kind::folder) {
      add(fmt::format("{}: cannot be made: {} is not a folder", path, folder));
    } else if (!files_.writable(folder)) {
      add(fmt::format("{}: cannot be made: {} cannot be written", path, folder));
    }
  }

  [[nodiscard]] const std::vector<std::string>& problems() const { return problems_; }

 private:
  [[nodiscard]] std::string resolve(const std::string& path) const {
    return sys::absolute(sys::join_path(around_.config_folder, path));
  }

  static std::string where(const config::Cell& cell) {
    return cell.engine == nullptr || cell.engine->source.empty() ? std::string()
                                                                 : cell.engine->source + ": ";
  }

  // In the order they were found, each once: many cells share a program or a model.
  void add(std::string problem) {
    if (!holds(problems_, problem)) problems_.push_back(std::move(problem));
  }
  void add_of_engine(const config::Cell& cell, std::string_view problem) {
    add(fmt::format("{}engine \"{}\": {}", where(cell), cell.key.engine, problem));
  }

  // What names the program: as written, or its counterpart in the other checkout.
  [[nodiscard]] std::optional<std::string> program_of(const std::string& name) const {
    if (!around_.programs) return name;
    if (name.find('/') == std::string::npos) return std::nullopt;
    const std::string path = resolve(name);
    for (const std::string& root : around_.programs->own_roots) {
      if (path.starts_with(root + "/")) return around_.programs->root + path.substr(root.size());
    }
    return std::nullopt;
  }

  [[nodiscard]] std::optional<std::string> find(std::string_view name) const {
    return sys::find_program(files_, name, around_.config_folder, around_.path_variable);
  }

  void look_for_program(PreparedCell& prepared) {
    const config::Cell& cell = prepared.cell;
    if (cell.command.empty()) {
      return add_of_engine(cell, "it has no command: name its result files (weir gate --results)");
    }
    const auto place = program_of(cell.command.front());
    if (!place) {
      return add_of_engine(cell,
                           cell.command.front() +
                               ": outside the repository, so no other commit has a program of "
                               "its own in its place");
    }
    const std::string& name = *place;
    const auto found = find(name);
    if (found) {
      prepared.program = *found;
      prepared.program_stamp = files_.stamp(*found).value_or("");
      return;
    }
    if (name.find('/') == std::string::npos) {
      return add_of_engine(
          cell,
          fmt::format("no program \"{}\" in PATH; install it, or name it with its path", name));
    }
    const std::string path = resolve(name);
    add_of_engine(cell, path + (files_.kind(path) == sys::Kind::file
                                    ? ": is not executable (chmod +x)"
                                    : ": no such program; build it, or correct the path"));
  }

  // Of a server that runs already nothing lies here.
  void note_address(PreparedCell& prepared) {
    const config::Cell& cell = prepared.cell;
    if (around_.programs) {
      return add_of_engine(cell,
                           "it is a server that runs already, so no other commit has a program in "
                           "its place; give it a command");
    }
    prepared.program_stamp = cell.engine->server->url;
  }

  void look_for_token(const config::Cell& cell) {
    if (cell.engine == nullptr || !cell.engine->server || !around_.starts) return;
    const std::string& variable = cell.engine->server->token_env;
    if (variable.empty()) return;
    const auto token = server_token(variable, look_up(around_.tokens, variable, Secret()));
    if (!token) add_of_engine(cell, token.error().message);
  }

  // Of an engine in a container only docker, podman or srun lies here.
  void look_for_runtime(PreparedCell& prepared) {
    const config::Cell& cell = prepared.cell;
    const config::Runtime runtime = container_of(prepared)->runtime;
    if (around_.programs) {
      return add_of_engine(
          cell, "it runs in a container, so no other commit has a program of its own in its place");
    }
    const std::string& name = cell.command.front();
    const auto found = find(name);
    if (!found) {
      return add_of_engine(
          cell,
          fmt::format("container: {}: no program \"{}\" {}; install it, or run weir where it is",
                      config::to_string(runtime), name,
                      name.find('/') == std::string::npos ? "in PATH" : "here"));
    }
    prepared.program = *found;
    // Of weir.yaml as written that was said there; here come the words of {args} and of --against.
    for (const std::string& problem : config::problems_of(cell.command, runtime)) {
      add_of_engine(cell, problem);
    }
    // What is known of the program: which image it is in.
    const auto parts = config::parts_of(cell.command, runtime);
    if (runtime != config::Runtime::srun && parts && parts->image < cell.command.size()) {
      prepared.program_stamp = cell.command[parts->image];
    }
  }

  void check_mounts(const PreparedCell& prepared) {
    const config::ContainerSettings* container = container_of(prepared);
    if (container == nullptr || container->runtime == config::Runtime::srun) return;
    std::vector<Mount> mounts = mounts_of(prepared);
    for (const std::string& place : around_.output_places) mounts.push_back({sys::absolute(place)});
    for (const Mount& mount : mounts) {
      if (auto why = why_not_mounted(container->runtime, mount.path)) {
        add_of_engine(prepared.cell, *why);
      }
    }
  }

  void look_at_prompt(PreparedCell& prepared) {
    const config::Cell& cell = prepared.cell;
    if (!cell.prompt_file) return;
    prepared.prompt_file = resolve(*cell.prompt_file);
    const auto text = files_.read(prepared.prompt_file, k_largest_prompt);
    if (!text) {
      add(fmt::format("prompt \"{}\": {}", cell.key.prompt, text.error().message));
      return;
    }
    prompts_[prepared.prompt_file] = *text;
  }

  ModelFacts look_at_model_of(PreparedCell& prepared) {
    const config::Cell& cell = prepared.cell;
    if (cell.model_path.empty()) return {};
    prepared.model = resolve(cell.model_path);
    const auto [at, fresh] = models_.try_emplace(prepared.model);
    ModelFacts& facts = at->second;
    const std::string model = fmt::format("model \"{}\": ", cell.key.model);
    if (!fresh) {  // what was wrong with it has been said
    } else if (!files_.exists(prepared.model)) {
      add(fmt::format("{}{}: no such file", model, prepared.model));
    } else if (!files_.readable(prepared.model)) {
      add(fmt::format("{}{}: cannot be read", model, prepared.model));
    } else if (auto looked = look_at_model(files_, prepared.model)) {
      facts = *looked;
    } else {
      add(model + looked.error().message);
    }
    prepared.model_bytes = facts.bytes;
    return facts;
  }

  void fill_facts(PreparedCell& prepared, const ModelFacts& model) const {
    const config::Cell& cell = prepared.cell;
    profile::CellFacts& facts = prepared.facts;
    describe(cell, facts);
    facts.provenance.fingerprint_parts =
        fingerprint_parts(cell, model, look_up(prompts_, prepared.prompt_file, ""));
    facts.provenance.fingerprint = fingerprint_of(facts.provenance.fingerprint_parts);
    facts.provenance.machine_name = around_.machine.name();
  }

  void look_at_device(PreparedCell& prepared) {
    const std::string& device = prepared.cell.device;
    profile::Provenance& from = prepared.facts.provenance;
    if (prepared.cell.compile != config::k_no_compiler) prepared.compile = prepared.cell.compile;
    if (prepared.cell.twin) {
      take_twin(prepared);
    } else if (!prepared.cell.results.empty()) {
      prepared.on_cpu = false;  // whatever served, it was not looked at
    } else if (device == "cpu") {
      from.device_class = around_.machine.cpu_class;
      from.device_name = around_.machine.cpu_model;
      prepared.on_cpu = true;
    } else if (const DeviceFacts* found = look_up(around_.devices, device)) {
      prepared.on_cpu = found->on_cpu;
      prepared.unavailable = found->absent;
      from.device_class = found->device_class;
      from.device_name = found->name;
      if (!found->absent) prepared.facts.device_present = found->name;
      if (found->on_cpu && device == "vulkan" && may_be_ggml(prepared.cell) &&
          !prepared.cell.env.contains(k_ggml_devices)) {
        prepared.facts.device_cure = fmt::format(
            "It is a CPU, and ggml leaves such devices out unless the backend has env: {{{}: "
            "\"0\"}}",
            k_ggml_devices);
      }
    } else {
      prepared.on_cpu = false;
    }
    const std::string& gpu = prepared.cell.gpu;
    if (!gpu.empty() && from.device_name.empty()) from.device_name = gpu;
    const std::string& seen = from.device_class.empty() ? device : from.device_class;
    from.machine_class =
        sys::machine_class(around_.machine, gpu.empty() ? seen : fmt::format("{}-{}", seen, gpu));
  }

  // Nothing of this machine but its processors: the driver runs nothing.
  void take_twin(PreparedCell& prepared) {
    profile::CellFacts& facts = prepared.facts;
    const config::Cell& cell = prepared.cell;
    const DeviceTwin* found = look_up(around_.twins, twin_key(cell));
    if (found == nullptr) {
      prepared.unavailable =
          fmt::format("the twin \"{}\" is not described here: see weir device list", *cell.twin);
      return;
    }
    prepared.twin = *found;
    prepared.on_cpu = true;
    if (cell.compile.empty()) prepared.compile = found->compile;
    facts.twin = *cell.twin;
    facts.device_present = found->device;
    facts.provenance.device_class = class_of_twin(cell);
    facts.provenance.device_name = found->title + " (twin)";
    if (found->cuda) add_cuda_kernels(prepared);
    facts.provenance.fingerprint_parts[k_device_description] = short_hash(found->hash);
    facts.provenance.fingerprint = fingerprint_of(facts.provenance.fingerprint_parts);
  }

  void add_cuda_kernels(PreparedCell& prepared) {
    if (container_of(prepared) != nullptr) {
      prepared.unavailable = "CUDA twins are not carried into containers";
      return;
    }
    const std::string library = files_of_engine(prepared.cell.engine->cuda_code).value_or("");
    if (!library.empty() && files_.kind(library) != sys::Kind::file) {
      return add_of_engine(prepared.cell, fmt::format("cuda_code: {}: no such file", library));
    }
    auto kernels = around_.cuda_kernels(prepared.program, library, *prepared.twin);
    if (kernels) {
      prepared.twin->kernels = std::move(*kernels);
    } else {
      prepared.unavailable = std::move(kernels).error().message;
    }
  }

  void choose_probes(PreparedCell& prepared) {
    const config::Cell& cell = prepared.cell;
    if (cell.engine == nullptr) return;
    prepared.counts_work = !cell.workload;
    if (cell.workload) {
      prepared.facts.counts_skipped = "a recorded workload is timed and not counted";
      return;
    }
    bool instructions = false;
    for (const std::string& probe : cell.engine->probes) {
      const auto* sees = look_up(around_.probe_devices, probe);
      if (sees == nullptr || !holds(*sees, cell.device)) continue;
      // Not a library in the engine: processes of their own.
      if (probe == "instructions") {
        instructions = true;
      } else if (probe == "host") {
        prepared.host = !around_.no_trace;
        if (around_.no_trace) {
          prepared.facts.host_skipped =
              "system calls are not counted: " + one_line(*around_.no_trace);
        }
      } else {
        prepared.probes.push_back(probe);
      }
    }
    // Where nothing holds the server back, requests are counted as they happen to meet.
    if (cell.sweep == profile::Sweep::held &&
        (!sys::can_see_rest() || cell.engine->container ||
         !(holds(prepared.probes, "ggml") || holds(prepared.probes, "vulkan")))) {
      if (cell.must_be_held) {
        add(fmt::format("{}prompt \"{}\": {}", where(cell), cell.key.prompt, k_cannot_be_held));
      }
      prepared.cell.sweep = prepared.facts.sweep = profile::Sweep::overlapping;
    }
    const bool reports = cell.engine->reports_counts();
    prepared.facts.counts_reported_per_token =
        reports && prepared.probes.empty() && cell.sweep == profile::Sweep::none;
    prepared.counts_work = !prepared.probes.empty() || reports;
    if (instructions) choose_way(prepared);
    if (prepared.counts_work || prepared.instructions || prepared.host) return;
    const auto& facts = prepared.facts;
    prepared.facts.counts_skipped = facts.instructions_skipped     ? *facts.instructions_skipped
                                    : facts.host_skipped           ? *facts.host_skipped
                                    : !cell.engine->probes.empty() ? "no probe sees " + cell.device
                                    : cell.engine->tells_counts_if_asked
                                        ? "the engine has no probes, and nothing asks for its own "
                                          "counts (counted_env, profile_args)"
                                        : "the engine has no probes and reports no counts";
  }

  // What an engine names beside its program: absolute, or its counterpart in the other checkout.
  [[nodiscard]] std::optional<std::string> files_of_engine(std::string named) const {
    if (named.empty()) return std::nullopt;
    if (named.find('/') == std::string::npos) named.insert(0, "./");
    const auto place = program_of(named);
    return place ? std::optional(resolve(*place)) : std::nullopt;
  }

  // A base may have had none yet.
  void look_for_shaders(PreparedCell& prepared) {
    if (prepared.cell.engine == nullptr || prepared.probes.empty()) return;
    const auto pattern = files_of_engine(prepared.cell.engine->kernel_names);
    if (!pattern) return;
    auto& found = shaders_[*pattern];
    if (!found) found = probes::find_shaders(files_, *pattern);
    if (*found) {
      prepared.shaders = **found;
    } else if (!around_.programs) {
      add_of_engine(prepared.cell, "kernel_names: " + found->error().message);
    }
  }

  // Perf events, or valgrind where that is asked for: it is too slow to be taken unasked.
  void choose_way(PreparedCell& prepared) {
    const config::EngineSettings& engine = *prepared.cell.engine;
    if (engine.instructions == config::InstructionsBy::valgrind) {
      const auto found = find("valgrind");
      if (!found) {
        return add_of_engine(prepared.cell,
                             "no program \"valgrind\" in PATH, which instructions: valgrind counts "
                             "with; install it (Debian: apt-get install valgrind)");
      }
      prepared.instructions = CountInstructions::valgrind;
      prepared.valgrind = *found;
      return;
    }
    if (!around_.no_perf) {
      prepared.instructions = CountInstructions::perf;
    } else if (engine.instructions == config::InstructionsBy::perf) {
      add_of_engine(prepared.cell, "instructions: " + one_line(*around_.no_perf));
    } else {
      prepared.facts.instructions_skipped =
          "instructions are not counted: " + one_line(*around_.no_perf);
    }
  }

  // A reason and its cure, which stand on two lines.
  static std::string one_line(const std::string& words) {
    return text::join(text::lines(words), "; ");
  }

  const Surroundings& around_;
  const sys::Files& files_;
  std::vector<std::string> problems_;
  std::map<std::string, std::optional<Result<std::vector<probes::ShaderFile>>>>
      shaders_;                                 // by pattern
  std::map<std::string, ModelFacts> models_;    // by path: headers are read once
  std::map<std::string, std::string> prompts_;  // by path
};

}  // namespace

std::string twin_key(const config::Cell& cell) {
  return fmt::format("{} {} {}", cell.device, *cell.twin, cell.twin_devices);
}

Result<std::vector<PreparedCell>> preflight(std::span<const config::Cell> cells,
                                            const Surroundings& surroundings,
                                            const sys::Files& files) {
  Preflight checks(surroundings, files);
  auto prepared =
      collect<PreparedCell>(cells, [&](const auto& cell) { return checks.prepare(cell); });
  for (const std::string& place : surroundings.output_places) checks.check_place(place);
  if (!checks.problems().empty()) {
    return fail(Code::config, "{}", text::join(checks.problems(), "\n"));
  }
  return prepared;
}

}  // namespace weir::run
