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

// Families by the name that newer versions of Mesa have for them, and the one of 22.3.
constexpr std::pair<std::string_view, std::string_view> k_older_names[] = {
    {"navi31", "gfx1100"}, {"navi32", "gfx1101"}, {"navi33", "gfx1102"}};

}  // namespace

Result<KernelCompiler::Driver> KernelCompiler::driver_of(const std::string& target,
                                                         const sys::Stop& stop) {
  const std::string family = target.starts_with(k_radv) ? target.substr(k_radv.size()) : "";
  if (family.empty() ||
      !std::ranges::all_of(family, [](char c) { return text::is_alphanumeric(c) || c == '_'; })) {
    return fail(Code::config,
                "\"{}\": no compiler of that name; those of Radeon GPUs are called \"radv-navi31\"",
                text::printable(target));
  }
  const std::lock_guard hold(mutex_);
  if (const Driver* known = look_up(drivers_, target)) return *known;
  std::vector<std::string> names = {family};
  for (const auto& [newer, older] : k_older_names) {
    if (newer == family) names.emplace_back(older);
  }
  std::string why;
  for (const std::string& name : names) {
    // A driver that does not know the family aborts.
    WEIR_TRY(const CompilerRun ran, run_compiler(processes_, places_, name, {}, 0, stop));
    for (const Json& line : ran.lines) {
      const auto version = JsonReader(line, "weir-compile-vulkan").optional_string("driver");
      if (version) return drivers_[target] = {name, text::printable(*version)};
    }
    if (why.empty()) why = text::first_line(text::trim(text::printable(ran.finished.err)));
  }
  return fail(Code::unavailable,
              "{} does not compile for {}{}\n  Another Mesa may: ci/mesa gets {}, and WEIR_MESA "
              "names a folder with one",
              places_.driver, target, why.empty() ? "" : ": " + why, k_pinned);
}

static std::string device_hash(const probes::RecordedDevice& device) {
  std::string all = fmt::format("{}", device.api_version);
  for (const std::string& extension : device.extensions) all += '\n' + extension;
  for (const auto& [type, values] : device.features) all += fmt::format("\n{} ", type) + values;
  return short_hash(all);
}

Result<CompiledCode> KernelCompiler::compile(const std::string& target,
                                             std::span<const std::string> files,
                                             const sys::Stop& stop) {
  WEIR_TRY(const Driver driver, driver_of(target, stop));
  CompiledCode out;
  out.compiler = fmt::format("{}, {}", target, driver.version);
  CodeCache cache(files_, places_.cache, out.compiler);
  std::vector<CompileJob> jobs;
  for (std::size_t file = 0; file < files.size(); ++file) {
    const auto recorded = probes::read_recording(files_, files[file]);
    if (!recorded) {
      out.warnings.push_back(recorded.error().message);
      continue;
    }
    CodesByIdentity facts = probes::code_facts(*recorded);
    // The code that a compiler makes also depends on what the device was made with.
    const auto devices = collect<std::string>(recorded->devices, device_hash);
    for (std::size_t i = 0; i < recorded->pipelines.size(); ++i) {
      const auto& pipeline = recorded->pipelines[i];
      const std::string identity = probes::identity_of(pipeline);
      const auto [place, is_new] = out.codes.try_emplace(identity);
      if (!is_new) continue;
      place->second = std::move(facts[identity]);
      const std::string kept_as = identity + "/" + devices[pipeline.head.device];
      if (const profile::CodeFacts* known = cache.find(kept_as)) {
        place->second.costs = known->costs;
        place->second.not_compiled = known->not_compiled;
        continue;
      }
      const auto& words = recorded->codes[pipeline.head.code].words;
      const auto module =
          explain::read_spirv(words, explain::spirv_constants(place->second.options));
      jobs.push_back(
          {file, i, words.size(), identity, kept_as, module ? module->threads.value_or(0) : 0});
    }
  }
  WEIR_TRY(CodesByIdentity fresh,
           compile_all({processes_, places_, driver.family, files, stop, cache}, std::move(jobs)));
  for (auto& [identity, facts] : fresh) {
    out.codes[identity].costs = std::move(facts.costs);
    out.codes[identity].not_compiled = std::move(facts.not_compiled);
  }
  if (const auto saved = cache.save(); !saved) out.warnings.push_back(saved.error().message);
  return out;
}

Result<std::string> KernelCompiler::assembly(const std::string& target, const std::string& file,
                                             const std::string& identity, const sys::Stop& stop) {
  WEIR_TRY(const Driver driver, driver_of(target, stop));
  WEIR_TRY(const auto recorded, probes::read_recording(files_, file));
  const auto* pipeline = first_of(recorded.pipelines, [&](const probes::RecordedPipeline& one) {
    return probes::identity_of(one) == identity;
  });
  if (pipeline == nullptr) return fail(Code::data, "{}: no code {}", file, identity);
  const auto number = pipeline - recorded.pipelines.data();
  WEIR_TRY(const CompilerRun ran,
           run_compiler(processes_, places_, driver.family,
                        {file, "--only", fmt::format("{}", number), "--assembly"}, places_.seconds,
                        stop));
  std::string why = compile_failure(ran.finished, places_).words;
  for (const Json& line : ran.lines) {
    JsonReader read(line, "weir-compile-vulkan");
    if (const auto found = read.optional_string("assembly")) return text::printable(*found);
    if (const auto left_out = read.optional_string("left_out")) why = text::printable(*left_out);
  }
  return fail(Code::unavailable, "not compiled: {}", why);
}

Result<CompilerPlaces> find_compiler(const sys::Files& files, const probes::Places& probes,
                                     const std::string& cache_folder,
                                     const probes::Lookup& environment) {
  CompilerPlaces out;
  out.program = probes.compile_vulkan_program;
  if (out.program.empty()) {
    return fail(Code::unavailable,
                "weir-compile-vulkan is missing beside the probes in {}: build or install weir "
                "again (there is none on macOS)",
                probes.probes);
  }
  out.cache = sys::join_path(cache_folder, "kernels");
  std::vector<std::string> folders = {
      sys::join_path(cache_folder, fmt::format("mesa/{}", k_pinned)), "/usr/local/share/vulkan",
      "/usr/share/vulkan", "/etc/vulkan"};
  const std::string own = environment("WEIR_MESA").value_or("");
  if (!own.empty()) folders = {sys::absolute(own)};
  for (const std::string& folder : folders) {
    const std::string manifests = sys::join_path(folder, "icd.d");
    // Of several architectures' the last one: "i686" stands before "x86_64".
    for (const std::string& name : files.list(manifests).value_or(std::vector<std::string>())) {
      if (name.starts_with("radeon_icd") && name.ends_with(".json")) {
        out.driver = sys::join_path(manifests, name);
      }
    }
    if (out.driver.empty()) continue;
    const std::string libraries = sys::join_path(folder, "lib");
    if (files.kind(libraries) == sys::Kind::folder) out.libraries = libraries;
    return out;
  }
  if (!own.empty()) {
    return fail(Code::unavailable, "WEIR_MESA: {} has no icd.d/radeon_icd*.json", folders.front());
  }
  return fail(Code::unavailable,
              "no compiler of Radeon GPUs: run ci/mesa of weir's sources, which gets Mesa {}, or "
              "install Debian's mesa-vulkan-drivers",
              k_pinned);
}

}  // namespace weir::run
