// Compiles recorded kernels with a Radeon driver and reads their figures.
#include "gate/run/kernel_compiler.hpp"

#include <algorithm>

#include "gate/base/find.hpp"
#include "gate/base/hash.hpp"
#include "gate/base/json.hpp"
#include "gate/base/text.hpp"
#include "gate/explain/spirv.hpp"
#include "gate/probes/read/code_facts.hpp"
#include "gate/run/code_cache.hpp"
#include "gate/run/compile_batch.hpp"
#include "gate/sys/paths.hpp"

namespace weir::run {
namespace {

constexpr std::string_view k_radv = "radv-";
constexpr const char* k_pinned = "25.0.7";  // the Mesa of ci/mesa

// Names of GPU families in current Mesa, and in Mesa 22.3.
constexpr std::pair<std::string_view, std::string_view> k_older_names[] = {
    {"navi31", "gfx1100"}, {"navi32", "gfx1101"}, {"navi33", "gfx1102"}};

}  // namespace

// Returns the driver's version and its name for the target's GPU family ("radv-navi31"). Asks the
// compiler once a target; fails if it does not know the family.
Result<KernelCompiler::Driver> KernelCompiler::find_driver(const std::string& target,
                                                           const sys::Stop& stop) {
  const std::string family = target.starts_with(k_radv) ? target.substr(k_radv.size()) : "";
  if (family.empty() ||
      !std::ranges::all_of(family, [](char c) { return text::is_alphanumeric(c) || c == '_'; })) {
    return fail(Code::config,
                "\"{}\": no compiler of that name; those of Radeon GPUs are called \"radv-navi31\"",
                text::printable(target));
  }
  const std::lock_guard hold(mutex_);
  if (const Driver* driver = look_up(drivers_, target)) return *driver;
  std::vector<std::string> names = {family};
  for (const auto& [newer, older] : k_older_names) {
    if (newer == family) names.emplace_back(older);
  }
  std::string reason;
  for (const std::string& name : names) {
    // A driver that does not know the family aborts; try the next name.
    WEIR_TRY(const CompilerRun compiler_run, run_compiler(processes_, places_, name, {}, 0, stop));
    for (const Json& line : compiler_run.lines) {
      const auto version = JsonReader(line, "weir-compile-vulkan").optional_string("driver");
      if (version) return drivers_[target] = {name, text::printable(*version)};
    }
    if (reason.empty())
      reason = text::first_line(text::trim(text::printable(compiler_run.finished.err)));
  }
  return fail(Code::unavailable,
              "{} does not compile for {}{}\n  Another Mesa may: ci/mesa gets {}, and WEIR_MESA "
              "names a folder with one",
              places_.driver, target, text::prefix_if_any(": ", reason), k_pinned);
}

// Hashes the version, extensions and features that a device was created with.
static std::string device_hash(const probes::RecordedDevice& device) {
  std::string description = fmt::format("{}", device.api_version);
  for (const std::string& extension : device.extensions) description += '\n' + extension;
  for (const auto& [type, values] : device.features)
    description += fmt::format("\n{} ", type) + values;
  return short_hash(description);
}

// Compiles the kernels recorded in the files for a target GPU and returns their figures by
// identity, a hash. Figures in the cache are not computed again.
Result<CompiledCode> KernelCompiler::compile(const std::string& target,
                                             std::span<const std::string> files,
                                             const sys::Stop& stop) {
  WEIR_TRY(const Driver driver, find_driver(target, stop));
  CompiledCode result;
  result.compiler = fmt::format("{}, {}", target, driver.version);
  CodeCache cache(files_, places_.cache, result.compiler);
  std::vector<CompileJob> jobs;
  for (std::size_t file = 0; file < files.size(); ++file) {
    const auto recorded = probes::read_recording(files_, files[file]);
    if (!recorded) {
      result.warnings.push_back(recorded.error().message);
      continue;
    }
    CodesByIdentity facts = probes::code_facts(*recorded);
    // Compiled code also depends on how the device was created.
    const auto devices = collect<std::string>(recorded->devices, device_hash);
    for (std::size_t i = 0; i < recorded->pipelines.size(); ++i) {
      const auto& pipeline = recorded->pipelines[i];
      const std::string identity = probes::pipeline_hash(pipeline);
      const auto [entry, is_new] = result.codes.try_emplace(identity);
      if (!is_new) continue;
      entry->second = std::move(facts[identity]);
      const std::string cache_key = identity + "/" + devices[pipeline.head.device];
      if (const profile::CodeFacts* cached = cache.find(cache_key)) {
        entry->second.costs = cached->costs;
        entry->second.not_compiled = cached->not_compiled;
        continue;
      }
      const auto& words = recorded->codes[pipeline.head.code].words;
      const auto module =
          explain::read_spirv(words, explain::spirv_constants(entry->second.options));
      jobs.push_back(
          {file, i, words.size(), identity, cache_key, module ? module->threads.value_or(0) : 0});
    }
  }
  WEIR_TRY(CodesByIdentity compiled,
           compile_all({processes_, places_, driver.family, files, stop, cache}, std::move(jobs)));
  for (auto& [identity, facts] : compiled) {
    result.codes[identity].costs = std::move(facts.costs);
    result.codes[identity].not_compiled = std::move(facts.not_compiled);
  }
  if (const auto saved = cache.save(); !saved) result.warnings.push_back(saved.error().message);
  return result;
}

// Returns the machine code of one recorded kernel as text, compiled for the target. Fails if there
// is no such kernel or the compiler has none.
Result<std::string> KernelCompiler::assembly(const std::string& target, const std::string& file,
                                             const std::string& identity, const sys::Stop& stop) {
  WEIR_TRY(const Driver driver, find_driver(target, stop));
  WEIR_TRY(const auto recorded, probes::read_recording(files_, file));
  const auto* pipeline =
      find_first(recorded.pipelines, [&](const probes::RecordedPipeline& candidate) {
        return probes::pipeline_hash(candidate) == identity;
      });
  if (pipeline == nullptr) return fail(Code::data, "{}: no code {}", file, identity);
  const auto number = pipeline - recorded.pipelines.data();
  WEIR_TRY(const CompilerRun compiler_run,
           run_compiler(processes_, places_, driver.family,
                        {file, "--only", fmt::format("{}", number), "--assembly"}, places_.seconds,
                        stop));
  std::string reason = compile_failure(compiler_run.finished, places_).words;
  for (const Json& line : compiler_run.lines) {
    JsonReader reader(line, "weir-compile-vulkan");
    if (const auto assembly = reader.optional_string("assembly")) return text::printable(*assembly);
    if (const auto left_out = reader.optional_string("left_out"))
      reason = text::printable(*left_out);
  }
  return fail(Code::unavailable, "not compiled: {}", reason);
}

// Finds the compiler program and the Mesa driver that it uses: that of WEIR_MESA, of ci/mesa, or of
// the system. Fails with what to install.
Result<CompilerPlaces> find_compiler(const sys::Files& files, const probes::Places& probes,
                                     const std::string& cache_folder,
                                     const probes::Lookup& environment) {
  CompilerPlaces places;
  places.program = probes.compile_vulkan_program;
  if (places.program.empty()) {
    return fail(Code::unavailable,
                "weir-compile-vulkan is missing beside the probes in {}: build or install weir "
                "again (there is none on macOS)",
                probes.probes);
  }
  places.cache = sys::join_path(cache_folder, "kernels");
  std::vector<std::string> folders = {
      sys::join_path(cache_folder, fmt::format("mesa/{}", k_pinned)), "/usr/local/share/vulkan",
      "/usr/share/vulkan", "/etc/vulkan"};
  const std::string mesa_folder = environment("WEIR_MESA").value_or("");
  if (!mesa_folder.empty()) folders = {sys::absolute(mesa_folder)};
  for (const std::string& folder : folders) {
    const std::string manifests = sys::join_path(folder, "icd.d");
    // If there are several architectures, the last one: "i686" sorts before "x86_64".
    for (const std::string& name : files.list(manifests).value_or(std::vector<std::string>())) {
      if (name.starts_with("radeon_icd") && name.ends_with(".json")) {
        places.driver = sys::join_path(manifests, name);
      }
    }
    if (places.driver.empty()) continue;
    const std::string libraries = sys::join_path(folder, "lib");
    if (files.kind(libraries) == sys::Kind::folder) places.libraries = libraries;
    return places;
  }
  if (!mesa_folder.empty()) {
    return fail(Code::unavailable, "WEIR_MESA: {} has no icd.d/radeon_icd*.json", folders.front());
  }
  return fail(Code::unavailable,
              "no compiler of Radeon GPUs: run ci/mesa of weir's sources, which gets Mesa {}, or "
              "install Debian's mesa-vulkan-drivers",
              k_pinned);
}

}  // namespace weir::run
