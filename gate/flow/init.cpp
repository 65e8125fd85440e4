#include "gate/flow/init.hpp"

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/config/presets.hpp"
#include "gate/config/starter.hpp"
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

// The least that a hosted runner is given: it installs packages and builds an engine first.
constexpr double k_least_minutes = 30;

// The folder above `folder` (absolute) that git knows, or `folder` itself where none does.
std::string repository_of(const std::string& folder, const sys::Files& files) {
  for (std::string at = folder;;) {
    if (files.exists(sys::join_path(at, ".git"))) return at;
    const std::string above = sys::folder_of(at);
    if (above == at || above.empty() || above == ".") return folder;
    at = above;
  }
}

// `folder` as seen from `root` above it.
std::string path_from(const std::string& folder, const std::string& root) {
  if (folder == root) return ".";
  return folder.substr(root == "/" ? 1 : root.size() + 1);
}

// Where the workflows go, and what is said of them; a file that is there is never written over.
Result<std::string> write_new(bool github, const std::string& root, const config::StarterCi& found,
                              sys::Files& files) {
  std::vector<std::string> all = found.programs;
  all.insert(all.end(), found.models.begin(), found.models.end());
  const std::string missing = text::join(all);
  std::string then = missing.empty() ? "commit it" : "say in it where these come from: " + missing;
  then += fmt::format("; put weir's {} in place of OWNER/weir", github ? "repository" : "releases");
  std::vector<std::pair<std::string, std::string>> made{
      // name, text
      github ? std::pair(".github/workflows/weir.yml", config::starter_github(found))
             : std::pair(".gitlab-ci.yml", config::starter_gitlab(found))};
  if (found.forks) {
    made.emplace_back(".github/workflows/weir-post.yml", config::starter_github_post(found));
  }
  if (!github && files.exists(sys::join_path(root, made.front().first))) {
    made.front().first = ".gitlab/weir.yml";
    then += "; .gitlab-ci.yml takes it in by\n          include: [{local: /.gitlab/weir.yml}]";
  }
  // Written together or not at all: each needs the other as it is made here.
  std::string said;
  const auto there = [&](const auto& one) { return files.exists(sys::join_path(root, one.first)); };
  if (std::ranges::any_of(made, there)) {
    for (const auto& one : made) {
      said += there(one) ? fmt::format(
                               "  kept    {}: it is there already; move it away to get a new one\n",
                               one.first)
                         : fmt::format("  not written  {}: it goes with a new one\n", one.first);
    }
    return said;
  }
  for (const auto& [name, text] : made) {
    const std::string place = sys::join_path(root, name);
    WEIR_CHECK(files.make_dirs(sys::folder_of(place)));
    WEIR_CHECK(files.write_atomic(place, text));
    said += fmt::format("wrote {}\n", name);
  }
  said += fmt::format("  next    {}\n", then);
  for (const std::string& program : found.programs) {
    said += fmt::format("  engine  {}\n", config::missing_build(program));
  }
  return said;
}

std::string minutes_text(const std::vector<PlannedCommand>& commands, const Measured& measured) {
  const auto timed = static_cast<std::size_t>(
      std::ranges::count(commands, profile::Pass::timed, &PlannedCommand::pass));
  const std::size_t counted = commands.size() - timed;
  std::string text = fmt::format("\nHow long a gate takes on this machine\n  counts  {}: {}\n",
                                 unit::show_duration(measured.seconds),
                                 report::plural(counted, "process", "processes"));
  if (timed > 0 && counted > 0) {
    // Counted processes run side by side and are short: a timed one takes no less.
    const double each = measured.seconds / static_cast<double>(counted);
    text += fmt::format("  times   at least {} more: {}, one after the other\n",
                        unit::show_duration(each * static_cast<double>(timed)),
                        report::plural(timed, "process", "processes"));
  }
  return text +
         fmt::format(
             "  beside  a base (--against): counts of both, its build, and at most {} of pairs"
             "\n          (gate.budget; weir calibrate says what it takes)\n",
             unit::show_duration(measured.known.settings->gate.budget_seconds));
}

// --- what a runner has to make or get, for git does not hold it ----------------------------------

// Absolute; nothing where git does not answer, and then all is taken to be there.
std::optional<std::set<std::string>> tracked_files(const Job& job, const std::string& folder) {
  const auto repository = Repository::around(job.world, folder);
  if (!repository) return std::nullopt;
  const source::Git& git = (*repository)->git();
  const auto names = git.tracked_files();
  if (!names) return std::nullopt;
  std::set<std::string> files;
  for (const std::string& name : *names) files.insert(sys::join_path(git.top(), name));
  return files;
}

// The arguments of `weir model make` for a model that it made: what its name in the header says.
// "" for others.
std::string made_by_weir(const std::string& file, const std::string& shown, sys::Files& files) {
  const auto header =
      model::load_gguf([&](std::uint64_t bytes) { return files.read_prefix(file, bytes); });
  if (!header || !std::ranges::all_of(shown, [](char c) {
        return text::is_alphanumeric(c) || c == '/' || c == '.' || c == '_' || c == '-';
      })) {
    return "";  // what a shell may mean something by
  }
  // "weir llama 4x256 f16"
  const model::GgufValue* name = header->find("general.name");
  const auto words = text::split(name == nullptr ? "" : name->to_string().value_or(""), ' ');
  const auto plain = [](const std::string& word) {
    return !word.empty() &&
           std::ranges::all_of(word, [](char c) { return text::is_alphanumeric(c) || c == '_'; });
  };
  if (words.size() != 4 || words[0] != "weir" || !std::ranges::all_of(words, plain)) return "";
  const auto sizes = text::split(words[2], 'x');
  if (sizes.size() != 2) return "";
  return fmt::format("{} --arch {} --layers {} --embedding {} --quantization {}", shown, words[1],
                     sizes[0], sizes[1], words[3]);
}

void look_what_git_lacks(const Job& job, const Loaded& loaded, const std::string& folder,
                         config::StarterCi& found) {
  std::set<std::string> seen;
  const auto once = [&](const std::string& what) { return seen.insert(what).second; };
  const auto tracked = tracked_files(job, folder);
  const auto lacks = [&](const std::string& place) {
    const std::string path = sys::absolute(sys::join_path(folder, place));
    const std::string real = sys::real_path(path).value_or(path);
    return tracked && !tracked->contains(path) && !tracked->contains(real);
  };
  found.has_base = false;
  for (const config::Cell& cell : loaded.cells) {
    const config::EngineSettings& engine = *cell.engine;
    const std::string program = engine.command.empty() ? "" : engine.command.front();
    // By its name alone it is found in PATH, which no commit holds.
    const bool inside = program.find('/') != std::string::npos && !program.starts_with('/');
    found.has_base = found.has_base || inside;
    const auto build = text::join(collect<std::string>(engine.build, text::shell_word), " ");
    if (!build.empty() && once(build)) found.builds.push_back(build);
    if (build.empty() && (!inside || lacks(program)) && once(program)) {
      found.programs.push_back(program);
    }
    if (cell.model_path.empty() || !lacks(cell.model_path) || !once(cell.model_path)) continue;
    const std::string made =
        made_by_weir(sys::join_path(folder, cell.model_path), cell.model_path, job.files());
    if (made.empty()) {
      found.models.push_back(cell.model_path);
    } else {
      found.made.push_back(made);
    }
  }
}

Result<Answer> init_ci(const Job& asked, const InitOptions& options, bool incomplete) {
  Job job = asked;
  job.asked.config_given = true;
  job.asked.counts_only = true;
  const std::string& config = job.asked.config;
  sys::Files& files = job.files();
  WEIR_TRY(const Loaded loaded, load_config(job));
  const std::string folder = sys::folder_of(sys::absolute(config));
  const std::string root = repository_of(folder, files);
  config::StarterCi found;
  found.forks = options.forks;
  found.version = k_version;
  found.folder = path_from(folder, root);
  found.file = path_from(sys::absolute(config), folder);
  const config::Settings& settings = *loaded.known.settings;
  found.minutes = std::max(k_least_minutes, 3 * settings.gate.budget_seconds / 60);
  found.vulkan = std::ranges::count(loaded.cells, std::string("vulkan"), &config::Cell::device) > 0;
  look_what_git_lacks(job, loaded, folder, found);
  WEIR_TRY(const std::string said, write_new(options.ci == "github", root, found, files));
  job.say(said);
  if (incomplete) {
    return Answer{text::printable(fmt::format(
        "nothing was measured: {} is an example still. Fill in what was not found, then run this\n"
        "again: it goes on from there.\n",
        config))};
  }
  WEIR_TRY(const Answer looked, doctor(job, {}));
  job.answer("\n" + looked.text);
  MeasureOptions wanted;
  wanted.plan.times = false;
  WEIR_TRY(Measured measured, measure(job, wanted));
  redact_profiles(measured);
  job.say("\n" + report::profiles_text(measured.profiles, {.width = job.width()}));
  WEIR_TRY(Loaded again, load_config(job));
  wanted.plan.times = true;
  WEIR_TRY(const auto commands,
           planned_commands(std::move(again), job, wanted, {job.asked.out, ""}));
  job.say(minutes_text(commands, measured));
  return profiles_answer(
      text::printable(fmt::format(
          "next: open a pull request: it is compared with its base. Stored baselines:\n"
          "  weir baseline accept{} --counts-only, or on the runner (\"Run workflow\")\n",
          config == "weir.yaml" ? "" : " -c " + config)),
      measured.profiles);
}

// Where builds leave their programs, counted from here; PATH comes after them.
constexpr std::array k_program_folders{".",   "build",       "build/bin",
                                       "bin", "zig-out/bin", "engines/llama.cpp"};
constexpr std::array k_model_folders{".", "models"};
constexpr std::size_t k_most_models = 4;
// What presets of packages run.
constexpr const char* k_script = "engine.mjs";

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

// The packages that package.json here names; none where there is no such file.
std::set<std::string> imported_packages(const sys::Files& files) {
  std::set<std::string> names;
  const auto text = files.read("package.json", std::uint64_t{1} << 20);
  const auto json = text ? parse_json(*text) : tl::unexpected(text.error());
  if (!json) return names;
  for (const char* kind : {"dependencies", "devDependencies"}) {
    const Json& packages = below(*json, kind);
    if (!packages.is_object()) continue;
    for (const auto& package : packages.items()) names.insert(package.key());
  }
  return names;
}

// By the names of their programs alone: none is started. Inference servers are left to whoever
// writes the config.
std::vector<config::StarterEngine> find_engines(const sys::World& world) {
  const sys::Files& files = world.files;
  std::vector<config::StarterEngine> found;
  const std::string path = world.environment("PATH").value_or("/usr/bin:/bin");
  for (const config::Preset& preset : config::presets()) {
    // Of llama.cpp one is enough, and llama-bench, which comes first, reports most.
    const std::string name = preset.name.starts_with("llama-") ? "llama.cpp" : preset.name;
    const bool known = std::ranges::count(found, name, &config::StarterEngine::name) > 0;
    if (preset.output.empty() || known) continue;
    for (const std::string& program : preset.programs) {
      // weir brings weir-engine along: only one that is built here is the project's own.
      const bool brought = preset.name == "weir-engine";
      if (const auto place = find_place(program, brought ? "" : path, files)) {
        found.push_back({name, *place, preset.name});
      }
    }
  }
  const std::set<std::string> imported = imported_packages(files);
  for (const config::Preset& preset : config::presets()) {
    const bool is_ours = std::ranges::any_of(
        preset.packages, [&](const std::string& package) { return imported.contains(package); });
    if (is_ours) found.push_back({preset.name, "", preset.name});
  }
  return found;
}

// What builds a program in a fresh checkout, by a file that lies here.
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

// A folder as MLX and others load it.
bool model_folder(const sys::Files& files, const std::string& path) {
  if (files.kind(path) != sys::Kind::folder) return false;
  if (files.kind(sys::join_path(path, "config.json")) != sys::Kind::file) return false;
  const auto names = files.list(path);
  const auto weights = [](const std::string& name) { return name.ends_with(".safetensors"); };
  return names && std::ranges::any_of(*names, weights);
}

std::vector<config::StarterModel> find_models(const sys::Files& files,
                                              const std::vector<config::StarterEngine>& engines) {
  std::vector<config::StarterModel> found;
  std::set<std::string> endings{"gguf", "onnx"};
  for (const config::StarterEngine& engine : engines) {
    endings.insert(find_named(config::presets(), engine.preset)->loads);
  }
  endings.erase("");  // any
  for (const char* folder : k_model_folders) {
    for (const std::string& name : files.list(folder).value_or(std::vector<std::string>())) {
      if (found.size() == k_most_models) break;
      const std::string path =
          folder == std::string_view(".") ? name : sys::join_path(folder, name);
      // llama.cpp's own repository has vocabularies without a model.
      const std::size_t dot = std::min(name.rfind('.'), name.size() - 1);
      if (endings.contains(name.substr(dot + 1)) && !name.starts_with("ggml-vocab-")) {
        found.push_back({name.substr(0, dot), path});
      } else if (model_folder(files, path)) {
        found.push_back({name, path, true});
      }
    }
  }
  return found;
}

// What was found, written down. True where something was not, so that it has to be filled in.
Result<bool> write_starter(const Job& job, const InitOptions& options) {
  sys::Files& files = job.files();
  const std::string& file = job.asked.config;
  if (files.exists(file) && !options.force) {
    return fail(Code::usage, "{} is there already\n  --force writes over it, -c names another",
                file);
  }
  config::StarterInput found;
  found.engines = find_engines(job.world);
  found.models = find_models(files, found.engines);
  found.build = find_build(files);
  if (!options.twin.empty()) {
    const auto folders = probes::twin_folders(files, sys::folder_of(file));
    WEIR_TRY(const auto twin, probes::load_twin(files, folders, options.twin));
    found.twin = twin.name;
    found.twin_device = twin.has_vulkan() ? "vulkan" : "cuda";
    for (const config::StarterEngine& engine : found.engines) {
      const config::Preset& preset = *find_named(config::presets(), engine.preset);
      if (find_named(preset.devices, found.twin_device) == nullptr) {
        return fail(Code::usage, "--twin {}: a device for {}, on which {} does not run", twin.name,
                    found.twin_device, engine.name);
      }
    }
  }
  const sys::Interrupts interrupts;
  config::Cell probe_cell;
  probe_cell.device = "vulkan";
  // Without the probes beside the program nothing can be asked; the starter then leaves Vulkan out.
  if (const auto devices =
          look_for_devices(probe_cell, sys::read_machine(files), job.world, interrupts.stop())) {
    found.has_vulkan = !devices->at("vulkan").absent;
  } else {
    found.has_probes = false;
  }
  WEIR_CHECK(files.write_atomic(file, config::starter_config(found)));
  std::string said = fmt::format("wrote {}\n", file);
  for (const config::StarterEngine& engine : found.engines) {
    const bool script = engine.program.empty();
    said += fmt::format("  engine  {} ({})\n", engine.name, script ? k_script : engine.program);
    if (script && !files.exists(k_script)) {
      said +=
          fmt::format("          {} is missing: docs/how-to/script-engines.md has one\n", k_script);
    }
  }
  if (found.engines.empty()) said += "  no engine found here or in PATH: fill in the example\n";
  for (const config::StarterModel& model : found.models) {
    said += fmt::format("  model   {}\n", model.path);
  }
  if (found.models.empty()) {
    said += "  no model found: weir model make models/tiny-llama.gguf writes a small one\n";
  }
  said += found.twin.empty()
              ? fmt::format("  vulkan  {}\n", found.has_vulkan ? "yes" : "no device")
              : fmt::format("  {:<7} {}, simulated\n", found.twin_device, found.twin);
  const bool incomplete = found.engines.empty() || found.models.empty();
  const std::string named = file == "weir.yaml" ? "" : " -c " + file;
  if (options.ci.empty() && incomplete) {
    const char* what = !found.engines.empty() ? "models"
                       : found.models.empty() ? "engines and models"
                                              : "engines";
    said += fmt::format("next: fill in {} in {}, then weir doctor\n", what, file);
  } else if (options.ci.empty()) {
    said += fmt::format(
        "next: weir baseline accept{0} --counts-only, then weir gate{0} --counts-only\n", named);
  }
  job.say(said);
  return incomplete;
}

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
  return {text, document({{"schema", "weir.presets/1"}, {"presets", list}})};
}

}  // namespace

Result<Answer> init(const Job& job, const InitOptions& options) {
  if (options.list) return list_presets();
  if (options.forks && options.ci != "github") {
    return fail(Code::usage, "--forks goes with --ci github: elsewhere one file gates forks too");
  }
  if (options.twin.find('/') != std::string::npos) {
    return fail(Code::usage, "--twin takes a name (weir device list): put {} into configs/devices",
                text::printable(options.twin));
  }
  if (!options.twin.empty() && !options.ci.empty() && !options.force &&
      job.files().exists(job.asked.config)) {
    return fail(Code::usage,
                "--twin: {} is there already, and stays as it is\n  --force writes over it",
                job.asked.config);
  }
  bool incomplete = false;
  if (options.ci.empty() || options.force || !job.files().exists(job.asked.config))
    WEIR_SET(incomplete, write_starter(job, options));
  if (options.ci.empty()) return Answer{};
  return init_ci(job, options, incomplete);
}

}  // namespace weir::flow
