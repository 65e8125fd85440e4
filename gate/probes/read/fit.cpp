#include "gate/probes/read/fit.hpp"

#include <algorithm>

#include "gate/base/text.hpp"
#include "gate/sys/paths.hpp"

namespace weir::probes {
namespace {

using State = Fit::State;

// What the ggml preload lives from (ggml.h): without any of these calls nothing is counted.
constexpr const char* k_sentinel = "ggml_backend_synchronize";

const LoadedLibrary* find(const std::vector<LoadedLibrary>& libraries, std::string_view prefix) {
  const auto found =
      std::find_if(libraries.begin(), libraries.end(),
                   [&](const LoadedLibrary& one) { return one.name.starts_with(prefix); });
  return found == libraries.end() ? nullptr : &*found;
}

// Programs that load whatever the text they are given asks for.
bool runs_text(const ProgramFacts& program) {
  const std::string name = sys::file_name_of(program.path);
  for (const char* known : {"python", "node", "ruby", "java", "bash", "sh", "perl"}) {
    const std::string_view rest =
        std::string_view(name).substr(std::min(name.size(), std::string_view(known).size()));
    if (name.starts_with(known) &&
        rest.find_first_not_of("0123456789.") == std::string_view::npos) {
      return true;
    }
  }
  return false;
}

// Why nothing at all can be loaded into it; nothing when it can.
std::optional<Fit> no_way_in(const ProgramFacts& program) {
  const ProgramFile& file = program.file;
  switch (file.kind) {
    case FileKind::script:
      return Fit{"", State::perhaps,
                 fmt::format("a script for {}: what it starts is seen where that can be",
                             file.script.empty() ? "a shell" : file.script),
                 "Name the program that it starts: weir doctor PROGRAM"};
    case FileKind::windows:
      return Fit{"", State::blind, "a program of Windows", "Probes exist for Linux and macOS"};
    case FileKind::other:
      return Fit{"", State::blind, "neither a program nor a script", ""};
    case FileKind::mach_o:  // judge_mach_o
    case FileKind::elf:
      break;
  }
  if (file.bits != 64 || file.machine != own_elf_machine()) {
    return Fit{"", State::blind,
               fmt::format("built for {} ({} bits), weir's probes for {}",
                           machine_name(file.machine), file.bits, machine_name(own_elf_machine())),
               "Build weir for that machine"};
  }
  if (!file.is_program) {
    return Fit{"", State::perhaps, "a library: seen in the program that loads it",
               "Name that program"};
  }
  if (file.is_static()) {
    return Fit{"", State::blind, "statically linked: it loads no library, and so no probe",
               "Link it dynamically (leave -static out)"};
  }
  if (program.changes_rights) {
    return Fit{"", State::blind,
               "runs with other rights than its caller's (setuid or file capabilities), so its "
               "loader ignores LD_PRELOAD and VK_LAYER_PATH",
               "Measure a copy without: cp PROGRAM copy"};
  }
  if (file.loader && file.loader->find("ld-musl") != std::string::npos) {
    return Fit{"", State::blind, "linked with musl; probes need glibc",
               "Build it on a system with glibc"};
  }
  return std::nullopt;
}

// Whose calls can be stood in front of, among program and libraries.
std::string callers_of_ggml(const ProgramFacts& program) {
  std::vector<std::string> names;
  const auto add = [&](const std::string& name, const ProgramFile& file) {
    if (file.imports(k_sentinel) || file.imports("ggml_backend_sched_graph_compute_async") ||
        file.imports("ggml_backend_graph_compute")) {
      names.push_back(name);
    }
  };
  add(sys::file_name_of(program.path), program.file);
  for (const LoadedLibrary& one : program.libraries) add(one.name, one.file);
  return text::join(names);
}

Fit fit_ggml(const ProgramFacts& program) {
  Fit fit{.probe = "ggml", .state = State::unused, .how = "no ggml in it", .cure = ""};
  const LoadedLibrary* ggml = nullptr;
  for (const LoadedLibrary& one : program.libraries) {
    if (ggml == nullptr && one.file.exports(k_sentinel)) ggml = &one;
  }
  if (ggml != nullptr && ggml->file.symbolic) {
    return {"ggml", State::perhaps,
            fmt::format("{} is linked with -Bsymbolic: calls within it are not seen", ggml->name),
            "Link it without, or counts miss what ggml asks of itself"};
  }
  if (ggml != nullptr) {
    const std::string callers = callers_of_ggml(program);
    return {"ggml", State::sees,
            fmt::format("preloaded in front of {}{}", ggml->name,
                        callers.empty() ? "" : fmt::format(", called by {}", callers)),
            ""};
  }
  const ProgramFile& own = program.file;
  if (program.holds_ggml || own.exports(k_sentinel) ||
      std::binary_search(own.inner.begin(), own.inner.end(), k_sentinel)) {
    return {"ggml", State::blind,
            "ggml is inside the program: its calls go straight there, nothing can stand in front",
            "Build it with -DBUILD_SHARED_LIBS=ON"};
  }
  if (!program.plug_ins.empty()) {
    return {"ggml", State::perhaps,
            "ggml's libraries lie beside it, and it may open them when it runs", ""};
  }
  if (runs_text(program)) {
    return {"ggml", State::perhaps, "runs what it is given: seen if that loads a dynamic ggml", ""};
  }
  return fit;
}

Fit fit_vulkan(const ProgramFacts& program) {
  const std::string layer = "as a layer of the Vulkan loader";
  if (const LoadedLibrary* loader = find(program.libraries, "libvulkan.so")) {
    return {"vulkan", State::sees, fmt::format("{}, which {} needs", layer, loader->needed_by), ""};
  }
  if (const LoadedLibrary* loader = find(program.plug_ins, "libvulkan.so")) {
    return {
        "vulkan", State::sees,
        fmt::format("{}, which {} needs, a plug-in beside the program", layer, loader->needed_by),
        ""};
  }
  if (program.names_vulkan) {
    return {"vulkan", State::perhaps, fmt::format("{}, if it opens that when it runs", layer), ""};
  }
  if (runs_text(program)) {
    return {"vulkan", State::perhaps, "runs what it is given: seen if that uses Vulkan", ""};
  }
  return {"vulkan", State::unused, "nothing in it uses Vulkan", ""};
}

struct Interface {
  const char* probe;
  const char* name;
  std::vector<std::string_view> libraries;
  const char* how;
};

Fit fit_by_library(const Interface& interface, const ProgramFacts& program) {
  for (const auto* libraries : {&program.libraries, &program.plug_ins}) {
    for (const std::string_view prefix : interface.libraries) {
      if (const LoadedLibrary* found = find(*libraries, prefix)) {
        return {
            interface.probe, State::sees,
            fmt::format("{} ({}, which {} needs)", interface.how, found->name, found->needed_by),
            ""};
      }
    }
  }
  return {interface.probe, State::unused, fmt::format("nothing in it uses {}", interface.name), ""};
}

}  // namespace

std::vector<Fit> judge_fit(const ProgramFacts& program, const std::vector<std::string>& installed) {
  if (program.file.kind == FileKind::mach_o) return judge_mach_o(program, installed);
  static const std::vector<Interface> k_interfaces{
      {"opencl", "OpenCL", {"libOpenCL.so"}, "as a layer of the OpenCL ICD loader"},
      {"cuda",
       "CUDA",
       {"libcuda.so", "libcudart.so", "libcublas.so"},
       "injected by the CUDA driver"},
      {"hip", "HIP", {"libamdhip64.so"}, "preloaded in front of HIP"}};
  std::vector<Fit> fits;
  if (const auto marks = judge_marks(program)) fits.push_back(*marks);
  const std::optional<Fit> barrier = no_way_in(program);
  const auto add = [&](const char* probe, Fit fit) {
    // What is not used is not worth a reason why it could not be seen; but of a program that
    // nothing is known of, every probe has the same answer.
    const bool known = program.file.kind == FileKind::elf;
    if (barrier && (!known || fit.state != State::unused || program.file.is_static())) {
      fit = *barrier;
    }
    fit.probe = probe;
    const bool here = std::find(installed.begin(), installed.end(), probe) != installed.end();
    if (!here && fit.state != State::unused) {
      fit = {probe, State::absent, "this weir has no such probe",
             "The engine's own profiler can be read: profile_args in weir.yaml"};
    }
    fits.push_back(std::move(fit));
  };
  add("ggml", fit_ggml(program));
  add("vulkan", fit_vulkan(program));
  for (const Interface& interface : k_interfaces) {
    Fit fit = fit_by_library(interface, program);
    // Of what nothing is known, only the probes that are here are worth a line.
    const bool here =
        std::find(installed.begin(), installed.end(), interface.probe) != installed.end();
    if (here || fit.state != State::unused) add(interface.probe, std::move(fit));
  }
  if (program.file.kind == FileKind::elf) {
    fits.push_back({"metal", State::unused, "Metal needs macOS, and a program built for it", ""});
  }
  return fits;
}

// Nothing has to be loaded, so what keeps probes out does not keep this one out.
std::optional<Fit> judge_marks(const ProgramFacts& program) {
  const auto fit = [&](std::string how) -> Fit {
    if (program.changes_rights) {
      return {"instrument", State::blind,
              "runs with other rights than its caller's, so the library in it ignores WEIR_PROFILE",
              "Measure a copy without: cp PROGRAM copy"};
    }
    return {"instrument", State::sees, std::move(how), ""};
  };
  for (const auto* libraries : {&program.libraries, &program.plug_ins}) {
    if (const LoadedLibrary* found = find(*libraries, "libweir_instrument.so")) {
      return fit(fmt::format("the engine's own marks ({}, which {} needs)", found->name,
                             found->needed_by));
    }
  }
  if (program.holds_marks) return fit("the engine's own marks: weir's library is inside it");
  return std::nullopt;
}

Fit judge_instructions(const ProgramFacts& program, const InstructionWays& ways) {
  constexpr const char* k_name = "instructions";
  constexpr const char* k_get_valgrind = "Install valgrind (Debian: apt-get install valgrind)";
  const FileKind kind = program.file.kind;
  if (kind != FileKind::elf && kind != FileKind::script) {
    return {k_name, State::blind, "neither perf events nor valgrind run such a program", ""};
  }
  if (program.changes_rights && (ways.no_perf || ways.wants_valgrind)) {
    return {k_name, State::blind,
            "runs with other rights than its caller's, which valgrind can not",
            "Measure a copy without: cp PROGRAM copy"};
  }
  if (ways.wants_valgrind) {
    if (!ways.has_valgrind) {
      return {k_name, State::blind, "weir.yaml says valgrind, which is not in PATH",
              k_get_valgrind};
    }
    return {k_name, State::sees, "by valgrind, some fifty times slower, by function", ""};
  }
  if (!ways.no_perf) return {k_name, State::sees, "by perf events, from outside", ""};
  const std::vector<std::string> words = text::lines(*ways.no_perf);
  const std::string why = words.empty() ? "" : words.front();
  const std::string cure = words.size() > 1 ? words[1] : "";
  if (ways.wants_perf) return {k_name, State::blind, "not by perf events: " + why, cure};
  if (ways.has_valgrind) {
    return {k_name, State::perhaps,
            fmt::format("not by perf events: {}; by valgrind where weir.yaml says instructions: "
                        "valgrind",
                        why),
            cure};
  }
  return {k_name, State::blind, fmt::format("not by perf events: {}; valgrind is not in PATH", why),
          fmt::format("{}. {}", k_get_valgrind, cure)};
}

}  // namespace weir::probes
