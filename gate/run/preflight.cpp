// Checks everything that a run needs before it starts: programs, models, prompts, devices, probes.
#include "gate/run/preflight.hpp"

#include "gate/base/find.hpp"
#include "gate/base/hash.hpp"
#include "gate/base/text.hpp"
#include "gate/config/container.hpp"
#include "gate/run/container.hpp"
#include "gate/run/server_hold.hpp"
#include "gate/run/starts.hpp"
#include "gate/sys/paths.hpp"
#include "gate/sys/python_environment.hpp"
#include "gate/sys/resting.hpp"

namespace weir::run {
namespace {

constexpr std::uint64_t k_largest_prompt = std::uint64_t{16} << 20;
constexpr const char* k_ggml_devices = "GGML_VK_VISIBLE_DEVICES";

bool may_be_ggml(const config::Cell& cell) {
  return cell.adapter.starts_with("llama-") ||
         (cell.engine != nullptr && holds(cell.engine->probes, "ggml"));
}

// Returns the device class of a simulated GPU. Vulkan is the default and not part of the name.
std::string twin_device_class(const config::Cell& cell) {
  if (probes::find_runtime_api(cell.device) == nullptr) return "twin-" + *cell.twin;
  return fmt::format("twin-{}-{}{}", cell.device, *cell.twin,
                     cell.twin_devices == 1 ? "" : fmt::format("-x{}", cell.twin_devices));
}

class Preflight {
 public:
  Preflight(const Surroundings& around, const sys::Files& files)
      : surroundings_(around), files_(files) {}

  // Looks up everything that running the cell needs. Problems are added to problems().
  PreparedCell prepare(const config::Cell& cell) {
    PreparedCell prepared;
    prepared.cell = cell;
    prepared.folder = surroundings_.config_folder;
    prepared.threads = cell.threads > 0 ? cell.threads : surroundings_.machine.usable_cores;
    if (!cell.results.empty()) {
      for (const auto& [file, warning] : cell.results) {
        if (!files_.readable(file)) add_problem(file + ": cannot be read");
      }
    } else if (cell.command.empty() && cell.engine != nullptr && cell.engine->server) {
      check_url(prepared);
    } else if (find_container(prepared) != nullptr) {
      find_runtime(prepared);
    } else {
      find_engine_program(prepared);
    }
    check_token(cell);
    read_prompt(prepared);
    const ModelFacts model = check_model(prepared);
    fill_facts(prepared, model);
    fill_device(prepared);
    choose_probes(prepared);
    find_shader_files(prepared);
    check_mounts(prepared);
    return prepared;
  }

  // Adds a problem if `path`, where output will be written, cannot be written or created.
  void check_place(const std::string& path) {
    if (path.empty()) return;
    if (files_.kind(path) == sys::Kind::file || files_.kind(path) == sys::Kind::folder) {
      if (!files_.writable(path)) add_problem(fmt::format("{}: cannot be written", path));
      return;
    }
    // A missing path will be created below its nearest existing folder.
    std::string folder = sys::absolute(path);
    do {
      folder = sys::folder_of(folder);
    } while (files_.kind(folder) == sys::Kind::absent && folder != "/");
    if (files_.kind(folder) != sys::Kind::folder) {
      add_problem(fmt::format("{}: cannot be made: {} is not a folder", path, folder));
    } else if (!files_.writable(folder)) {
      add_problem(fmt::format("{}: cannot be made: {} cannot be written", path, folder));
    }
  }

  [[nodiscard]] const std::vector<std::string>& problems() const { return problems_; }

 private:
  [[nodiscard]] std::string resolve(const std::string& path) const {
    return sys::absolute(sys::join_path(surroundings_.config_folder, path));
  }

  static std::string config_location(const config::Cell& cell) {
    return cell.engine == nullptr || cell.engine->source.empty() ? std::string()
                                                                 : cell.engine->source + ": ";
  }

  // Adds a problem once: many cells share a program or a model.
  void add_problem(std::string problem) {
    if (!holds(problems_, problem)) problems_.push_back(std::move(problem));
  }
  void add_engine_problem(const config::Cell& cell, std::string_view problem) {
    add_problem(
        fmt::format("{}engine \"{}\": {}", config_location(cell), cell.key.engine, problem));
  }

  // Returns the program's path: its counterpart in the other checkout, else `name` as written. One
  // of a virtual environment that the other checkout lacks stays, too: both sides share it.
  [[nodiscard]] std::string resolve_program(const std::string& name) const {
    if (!surroundings_.programs || name.find('/') == std::string::npos) return name;
    const std::string path = resolve(name);
    for (const std::string& root : surroundings_.programs->own_roots) {
      if (!path.starts_with(root + "/")) continue;
      const std::string environment = sys::folder_of(sys::folder_of(path));
      std::string counterpart = surroundings_.programs->root + path.substr(root.size());
      const bool is_shared =
          !files_.exists(counterpart) && sys::is_python_environment(files_, environment);
      return is_shared ? path : counterpart;
    }
    return name;
  }

  [[nodiscard]] std::optional<std::string> find(std::string_view name) const {
    return sys::find_program(files_, name, surroundings_.config_folder,
                             surroundings_.path_variable);
  }

  // Finds the engine's program, or adds a problem with what to do.
  void find_engine_program(PreparedCell& prepared) {
    const config::Cell& cell = prepared.cell;
    if (cell.command.empty()) {
      return add_engine_problem(cell,
                                "it has no command: name its result files (weir gate --results)");
    }
    const std::string name = resolve_program(cell.command.front());
    const auto program = find(name);
    if (program) {
      prepared.program = *program;
      prepared.program_stamp = files_.stamp(*program).value_or("");
      return;
    }
    if (name.find('/') == std::string::npos) {
      return add_engine_problem(
          cell,
          fmt::format("no program \"{}\" in PATH; install it, or name it with its path", name));
    }
    const std::string path = resolve(name);
    add_engine_problem(cell, path + (files_.kind(path) == sys::Kind::file
                                         ? ": is not executable (chmod +x)"
                                         : ": no such program; build it, or correct the path"));
  }

  // A server that runs already has no program here to look for.
  void check_url(PreparedCell& prepared) {
    const config::Cell& cell = prepared.cell;
    if (surroundings_.programs) {
      return add_engine_problem(
          cell,
          "it is a server that runs already, so no other commit has a program in "
          "its place; give it a command");
    }
    prepared.program_stamp = cell.engine->server->url;
  }

  // Adds a problem if the server's token cannot be used in a request.
  void check_token(const config::Cell& cell) {
    if (cell.engine == nullptr || !cell.engine->server || !surroundings_.starts) return;
    const std::string& variable = cell.engine->server->token_env;
    if (variable.empty()) return;
    const auto token =
        check_server_token(variable, look_up(surroundings_.tokens, variable, Secret()));
    if (!token) add_engine_problem(cell, token.error().message);
  }

  // Finds docker, podman or srun: the engine itself lies in the container.
  void find_runtime(PreparedCell& prepared) {
    const config::Cell& cell = prepared.cell;
    const config::Runtime runtime = find_container(prepared)->runtime;
    if (surroundings_.programs) {
      return add_engine_problem(
          cell, "it runs in a container, so no other commit has a program of its own in its place");
    }
    const std::string& name = cell.command.front();
    const auto program = find(name);
    if (!program) {
      return add_engine_problem(
          cell,
          fmt::format("container: {}: no program \"{}\" {}; install it, or run weir where it is",
                      config::to_string(runtime), name,
                      name.find('/') == std::string::npos ? "in PATH" : "here"));
    }
    prepared.program = *program;
    // weir.yaml was checked when it was read; this checks {args} and the words of --against.
    for (const std::string& problem : config::check_runtime_line(cell.command, runtime)) {
      add_engine_problem(cell, problem);
    }
    // The image is all that is known of the program.
    const auto parts = config::parse_runtime_line(cell.command, runtime);
    if (runtime != config::Runtime::srun && parts && parts->image < cell.command.size()) {
      prepared.program_stamp = cell.command[parts->image];
    }
  }

  // Adds a problem for each path that the container's runtime cannot mount.
  void check_mounts(const PreparedCell& prepared) {
    const config::ContainerSettings* container = find_container(prepared);
    if (container == nullptr || container->runtime == config::Runtime::srun) return;
    std::vector<Mount> mounts = needed_mounts(prepared);
    for (const std::string& place : surroundings_.output_places)
      mounts.push_back({sys::absolute(place)});
    for (const Mount& mount : mounts) {
      if (auto reason = mount_problem(container->runtime, mount.path)) {
        add_engine_problem(prepared.cell, *reason);
      }
    }
  }

  void read_prompt(PreparedCell& prepared) {
    const config::Cell& cell = prepared.cell;
    if (!cell.prompt_file) return;
    prepared.prompt_file = resolve(*cell.prompt_file);
    const auto text = files_.read(prepared.prompt_file, k_largest_prompt);
    if (!text) {
      add_problem(fmt::format("prompt \"{}\": {}", cell.key.prompt, text.error().message));
      return;
    }
    prompts_[prepared.prompt_file] = *text;
  }

  // Reads the model's header, once a file, and adds a problem if that fails.
  ModelFacts check_model(PreparedCell& prepared) {
    const config::Cell& cell = prepared.cell;
    if (cell.model_path.empty()) return {};
    prepared.model = resolve(cell.model_path);
    const auto [at, is_new] = models_.try_emplace(prepared.model);
    ModelFacts& facts = at->second;
    const std::string model = fmt::format("model \"{}\": ", cell.key.model);
    if (!is_new) {  // its problems were added with the first cell
    } else if (!files_.exists(prepared.model)) {
      add_problem(fmt::format(
          "{}{}: no such file\n  weir.yaml names it under models: fetch it, or make it as CI does "
          "(models: of the workflow); weir model make {} makes a small GGUF",
          model, prepared.model, text::shell_word(cell.model_path)));
    } else if (!files_.readable(prepared.model)) {
      add_problem(fmt::format("{}{}: cannot be read", model, prepared.model));
    } else if (auto model_facts = read_model_facts(files_, prepared.model)) {
      facts = *model_facts;
    } else {
      add_problem(model + model_facts.error().message);
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
    facts.provenance.fingerprint = combine_fingerprint(facts.provenance.fingerprint_parts);
    facts.provenance.machine_name = surroundings_.machine.name();
  }

  // Returns how to count without the GPU that a cell asks for; "" if the machine may have one, or
  // there is no twin of its kind.
  [[nodiscard]] std::string twin_advice(const PreparedCell& prepared) const {
    const config::Cell& cell = prepared.cell;
    struct Kind {
      std::string_view device, twin;
      std::array<const char*, 2> files;  // of the driver, and of Windows' below Linux
    };
    constexpr std::array k_kinds{Kind{"cuda", "nvidia-rtx-4090", {"/dev/nvidiactl", "/dev/dxg"}},
                                 Kind{"hip", "amd-rx-7900-xtx", {"/dev/kfd", "/dev/dxg"}}};
    const Kind* kind =
        find_first(k_kinds, [&](const Kind& row) { return row.device == cell.device; });
    if (kind == nullptr || find_container(prepared) != nullptr) return "";
    const auto is_there = [&](const char* file) { return files_.exists(file); };
    if (std::ranges::any_of(kind->files, is_there)) return "";
    return fmt::format(
        "This machine has no such GPU. Simulate one by its name (weir device list): backends: "
        "{{{}: "
        "{{device: {}, twin: {}}}}}",
        cell.key.backend, cell.device, kind->twin);
  }

  // Fills in the device's class and name, and whether the cell can run on it.
  void fill_device(PreparedCell& prepared) {
    const std::string& device = prepared.cell.device;
    profile::Provenance& from = prepared.facts.provenance;
    if (prepared.cell.compile != config::k_no_compiler) prepared.compile = prepared.cell.compile;
    if (prepared.cell.twin) {
      use_twin(prepared);
    } else if (!prepared.cell.results.empty()) {
      prepared.on_cpu = false;  // nothing is known about the device that served
    } else if (device == "cpu") {
      from.device_class = surroundings_.machine.cpu_class;
      from.device_name = surroundings_.machine.cpu_model;
      prepared.on_cpu = true;
    } else if (const DeviceFacts* facts = look_up(surroundings_.devices, device)) {
      prepared.on_cpu = facts->on_cpu;
      prepared.unavailable = facts->absent;
      from.device_class = facts->device_class;
      from.device_name = facts->name;
      if (!facts->absent) prepared.facts.device_present = facts->name;
      if (facts->on_cpu && device == "vulkan" && may_be_ggml(prepared.cell) &&
          !prepared.cell.env.contains(k_ggml_devices)) {
        prepared.facts.device_cure = fmt::format(
            "It is a CPU, and ggml leaves such devices out unless the backend has env: {{{}: "
            "\"0\"}}",
            k_ggml_devices);
      }
    } else {
      prepared.on_cpu = false;
      prepared.facts.device_cure = twin_advice(prepared);
    }
    const std::string& gpu = prepared.cell.gpu;
    if (!gpu.empty() && from.device_name.empty()) from.device_name = gpu;
    const std::string& described_class = from.device_class.empty() ? device : from.device_class;
    from.machine_class = sys::machine_class(
        surroundings_.machine,
        gpu.empty() ? described_class : fmt::format("{}-{}", described_class, gpu));
  }

  // Uses a simulated GPU as the cell's device. Only the processors of this machine matter then.
  void use_twin(PreparedCell& prepared) {
    profile::CellFacts& facts = prepared.facts;
    const config::Cell& cell = prepared.cell;
    const DeviceTwin* twin = look_up(surroundings_.twins, twin_key(cell));
    if (twin == nullptr) {
      prepared.unavailable =
          fmt::format("the twin \"{}\" is not described here: see weir device list", *cell.twin);
      return;
    }
    prepared.twin = *twin;
    prepared.on_cpu = true;
    if (cell.compile.empty()) prepared.compile = twin->compile;
    facts.twin = *cell.twin;
    facts.device_present = twin->device;
    facts.provenance.device_class = twin_device_class(cell);
    facts.provenance.device_name = twin->title + " (twin)";
    if (twin->runtime != nullptr) add_runtime_files(prepared);
    facts.provenance.fingerprint_parts[k_device_description] = short_hash(twin->hash);
    facts.provenance.fingerprint = combine_fingerprint(facts.provenance.fingerprint_parts);
  }

  // Adds what belongs to the engine's program to its simulated device.
  void add_runtime_files(PreparedCell& prepared) {
    if (find_container(prepared) != nullptr) {
      prepared.unavailable =
          fmt::format("{} twins are not carried into containers", prepared.twin->runtime->title);
      return;
    }
    const std::string library = resolve_engine_file(prepared.cell.engine->gpu_code).value_or("");
    if (!library.empty() && files_.kind(library) != sys::Kind::file) {
      return add_engine_problem(prepared.cell, fmt::format("gpu_code: {}: no such file", library));
    }
    auto files = surroundings_.runtime_files(prepared.program, library, *prepared.twin);
    if (files) {
      prepared.twin->files = std::move(*files);
    } else {
      const Error& error = files.error();
      const config::Cell& cell = prepared.cell;
      prepared.unavailable = error.code == Code::config
                                 ? fmt::format("{}engine \"{}\": {}", config_location(cell),
                                               cell.key.engine, error.message)
                                 : error.message;
    }
  }

  // Chooses which probes, and which other ways of counting, see the cell's work. If none does, the
  // facts say why counts are skipped.
  void choose_probes(PreparedCell& prepared) {
    const config::Cell& cell = prepared.cell;
    if (cell.engine == nullptr) return;
    prepared.counts_work = !cell.workload;
    if (cell.workload) {
      prepared.facts.counts_skip_reason = "a recorded workload is timed and not counted";
      return;
    }
    bool instructions = false;
    for (const std::string& probe : cell.engine->probes) {
      const auto* devices = look_up(surroundings_.probe_devices, probe);
      if (devices == nullptr || !holds(*devices, cell.device)) continue;
      // These are counted in processes of their own.
      if (probe == "instructions") {
        instructions = true;
      } else if (probe == "host") {
        prepared.host = !surroundings_.no_trace;
        if (surroundings_.no_trace) {
          prepared.facts.host_skip_reason =
              "system calls are not counted: " + printable_line(*surroundings_.no_trace);
        }
      } else if (probe == profile::k_python) {
        prepared.python = true;
      } else {
        prepared.probes.push_back(probe);
      }
    }
    // Without a probe that can hold the server back, requests are counted as they overlap.
    if (cell.sweep == profile::Sweep::burst &&
        (!sys::can_see_rest() || cell.engine->container ||
         !(holds(prepared.probes, "ggml") || holds(prepared.probes, "vulkan")))) {
      if (cell.must_be_held) {
        add_problem(fmt::format("{}prompt \"{}\": {}", config_location(cell), cell.key.prompt,
                                k_hold_unsupported));
      }
      prepared.cell.sweep = profile::Sweep::overlapping;
      prepared.facts.sweep = profile::Sweep::overlapping;
    }
    const bool reports = cell.engine->reports_counts();
    prepared.facts.counts_reported_per_token =
        reports && prepared.probes.empty() && cell.sweep == profile::Sweep::none;
    prepared.counts_work = !prepared.probes.empty() || reports;
    if (instructions) choose_instruction_counter(prepared);
    if (prepared.counts_work || prepared.instructions || prepared.host || prepared.python) return;
    prepared.facts.counts_skip_reason = reason_for_no_counts(prepared);
  }

  // Returns why nothing of the cell is counted.
  static std::string reason_for_no_counts(const PreparedCell& prepared) {
    const config::Cell& cell = prepared.cell;
    const profile::CellFacts& facts = prepared.facts;
    if (facts.instructions_skip_reason) return *facts.instructions_skip_reason;
    if (facts.host_skip_reason) return *facts.host_skip_reason;
    if (!cell.engine->probes.empty()) return "no probe sees " + cell.device;
    if (cell.engine->reports_counts_on_request) {
      return "the engine has no probes, and nothing asks for its own counts (counted_env, "
             "profile_args)";
    }
    return "the engine has no probes and reports no counts";
  }

  // Resolves a file that an engine names besides its program, or its counterpart in the other
  // checkout, to an absolute path. Returns nothing if there is none.
  [[nodiscard]] std::optional<std::string> resolve_engine_file(std::string path) const {
    if (path.empty()) return std::nullopt;
    if (path.find('/') == std::string::npos) path.insert(0, "./");
    return resolve(resolve_program(path));
  }

  // Finds the files that name the engine's kernels. A base without them is no problem: it may be
  // older than they are.
  void find_shader_files(PreparedCell& prepared) {
    if (prepared.cell.engine == nullptr || prepared.probes.empty()) return;
    const auto pattern = resolve_engine_file(prepared.cell.engine->kernel_names);
    if (!pattern) return;
    auto& shader_files = shaders_[*pattern];
    if (!shader_files) shader_files = probes::find_shaders(files_, *pattern);
    if (*shader_files) {
      prepared.shaders = **shader_files;
    } else if (!surroundings_.programs) {
      add_engine_problem(prepared.cell, "kernel_names: " + shader_files->error().message);
    }
  }

  // Chooses how instructions are counted: perf events, or valgrind where the config asks for it.
  // valgrind is too slow to be a default.
  void choose_instruction_counter(PreparedCell& prepared) {
    const config::EngineSettings& engine = *prepared.cell.engine;
    if (engine.instructions == config::InstructionsBy::valgrind) {
      const auto program = find("valgrind");
      if (!program) {
        return add_engine_problem(
            prepared.cell,
            "no program \"valgrind\" in PATH, which instructions: valgrind counts "
            "with; install it (Debian: apt-get install valgrind)");
      }
      prepared.instructions = CountInstructions::valgrind;
      prepared.valgrind = *program;
      return;
    }
    if (!surroundings_.no_perf) {
      prepared.instructions = CountInstructions::perf;
    } else if (engine.instructions == config::InstructionsBy::perf) {
      add_engine_problem(prepared.cell, "instructions: " + printable_line(*surroundings_.no_perf));
    } else {
      prepared.facts.instructions_skip_reason =
          "instructions are not counted: " + printable_line(*surroundings_.no_perf);
    }
  }

  // Joins the lines of a reason and its remedy into one.
  static std::string printable_line(const std::string& lines) {
    return text::join(text::lines(lines), "; ");
  }

  const Surroundings& surroundings_;
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

// Checks that programs, models, devices and output places are usable and prepares all cells. Fails
// with all problems, one a line.
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
