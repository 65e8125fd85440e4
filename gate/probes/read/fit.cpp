// Judges, for each probe, if it can see a program.
#include "gate/probes/read/fit.hpp"

#include <algorithm>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/sys/paths.hpp"
#include "gate/sys/system.hpp"
#include "gate/unit/device_api.hpp"

namespace weir::probes {
namespace {

using State = Fit::State;
using unit::DeviceApi;

constexpr const char* k_copy = "Measure a copy without: cp PROGRAM copy";

// The call of ggml's (ggml.h) that every program with ggml makes: the preload counts nothing
// without it.
constexpr const char* k_sentinel = "ggml_backend_synchronize";

// Fits of each state; the caller sets the probe.
Fit cannot_see(std::string how, std::string cure = "") {
  return {"", State::cannot_see, std::move(how), std::move(cure)};
}
Fit may_see(std::string how, std::string cure = "") {
  return {"", State::may_see, std::move(how), std::move(cure)};
}
Fit sees(std::string how) { return {"", State::sees, std::move(how), ""}; }
Fit unused(std::string how) { return {"", State::unused, std::move(how), ""}; }
Fit make_ggml_inside_fit() {
  return cannot_see(
      "ggml is inside the program: its calls go straight there, nothing can stand in front",
      "Build it with -DBUILD_SHARED_LIBS=ON");
}
Fit make_library_fit() {
  return may_see("a library: seen in the program that loads it", "Name that program");
}

const LoadedLibrary* find_library(const std::vector<LoadedLibrary>& libraries,
                                  std::string_view prefix) {
  return find_first(libraries,
                    [&](const LoadedLibrary& library) { return library.name.starts_with(prefix); });
}

// Returns true for interpreters and for launchers: programs that run other code than their own.
bool runs_other_programs(const ProgramFacts& program) {
  const std::string name = sys::file_name_of(program.path);
  const std::string_view stem =
      std::string_view(name).substr(0, name.find_last_not_of("0123456789.") + 1);
  constexpr std::string_view k_runners[] = {
      "python", "node", "ruby",    "java",   "bash",    "sh",      "dash",   "perl", "env",
      "nice",   "time", "timeout", "ionice", "taskset", "numactl", "stdbuf", "chrt", "setarch"};
  return holds(k_runners, stem);
}

// Returns the reason why no probe (a library of weir's that counts) can be loaded into a Linux
// program; nothing if all can.
std::optional<Fit> find_loading_barrier(const ProgramFacts& program) {
  const ProgramFile& file = program.file;
  if (file.kind == FileKind::script) {
    return may_see(fmt::format("a script for {}: what it starts is seen where that can be",
                               file.script.empty() ? "a shell" : file.script),
                   "Name the program that it starts: weir doctor PROGRAM");
  }
  if (file.kind == FileKind::windows) {
    return cannot_see("a program of Windows", "Probes exist for Linux and macOS");
  }
  if (file.kind == FileKind::other) return cannot_see("neither a program nor a script");
  if (file.bits != 64 || file.machine != own_elf_machine()) {
    return cannot_see(
        fmt::format("built for {} ({} bits), weir's probes for {}", machine_name(file.machine),
                    file.bits, machine_name(own_elf_machine())),
        "Build weir for that machine");
  }
  if (!file.is_program) return make_library_fit();
  if (file.is_static()) {
    return cannot_see("statically linked: it loads no library, and so no probe",
                      "Link it dynamically (leave -static out)");
  }
  if (program.changes_rights) {
    return cannot_see(
        "runs with other rights than its caller's (setuid or file capabilities), so its "
        "loader ignores LD_PRELOAD and VK_LAYER_PATH",
        k_copy);
  }
  if (file.loader && file.loader->find("ld-musl") != std::string::npos) {
    return cannot_see("linked with musl; probes need glibc", "Build it on a system with glibc");
  }
  return std::nullopt;
}

// Names those of the program's files that call ggml from outside of it: weir's probe can see such
// calls.
std::string callers_of_ggml(const ProgramFacts& program) {
  std::vector<std::string> names;
  const auto add = [&](const std::string& name, const ProgramFile& file) {
    if (file.imports(k_sentinel) || file.imports("ggml_backend_sched_graph_compute_async") ||
        file.imports("ggml_backend_graph_compute")) {
      names.push_back(name);
    }
  };
  add(sys::file_name_of(program.path), program.file);
  for (const LoadedLibrary& library : program.libraries) add(library.name, library.file);
  return text::join(names);
}

// Judges if weir's probe of ggml can see what a Linux program does with ggml.
Fit judge_ggml(const ProgramFacts& program) {
  const auto* ggml = find_first(program.libraries, [](const LoadedLibrary& library) {
    return library.file.exports(k_sentinel);
  });
  if (ggml != nullptr && ggml->file.symbolic) {
    return may_see(
        fmt::format("{} is linked with -Bsymbolic: calls within it are not seen", ggml->name),
        "Link it without, or counts miss what ggml asks of itself");
  }
  if (ggml != nullptr) {
    const std::string callers = callers_of_ggml(program);
    return sees(fmt::format("preloaded in front of {}{}", ggml->name,
                            text::prefix_if_any(", called by ", callers)));
  }
  const ProgramFile& own = program.file;
  if (program.holds_ggml || own.exports(k_sentinel) ||
      std::binary_search(own.inner.begin(), own.inner.end(), k_sentinel)) {
    return make_ggml_inside_fit();
  }
  if (!program.plug_ins.empty()) {
    return may_see("ggml's libraries lie beside it, and it may open them when it runs");
  }
  if (runs_other_programs(program)) {
    return may_see("runs what it is given: seen if that loads a dynamic ggml");
  }
  return unused("no ggml in it");
}

// Judges if the probe of a device API can see a Linux program. Looks for a library of the API that
// the program or a plug-in needs, else for a name in the program's bytes.
Fit judge_api(const DeviceApi& api, const ProgramFacts& program) {
  if (api.on_macos) {
    return unused(fmt::format("{} needs macOS, and a program built for it", api.title));
  }
  // The Vulkan loader need not be named: there is only one, whoever opens it.
  const bool is_vulkan = api.load == DeviceApi::Load::vulkan_layer;
  for (const auto* libraries : {&program.libraries, &program.plug_ins, &program.packages}) {
    for (const std::string_view prefix : api.needs) {
      const LoadedLibrary* library = prefix.empty() ? nullptr : find_library(*libraries, prefix);
      if (library == nullptr) continue;
      if (!is_vulkan) {
        return sees(
            fmt::format("{} ({}, which {} needs)", api.how, library->name, library->needed_by));
      }
      std::string how = fmt::format("{}, which {} needs", api.how, library->needed_by);
      if (libraries == &program.plug_ins) how += ", a plug-in beside the program";
      return sees(how);
    }
  }
  if (holds(program.names, api.name)) {
    std::string cure;
    if (!api.check.empty()) {
      cure =
          "A runtime that is linked in cannot be stood in front of: "
          "link it dynamically (nvcc --cudart shared)";
    }
    return may_see(fmt::format("{}, if it opens that when it runs", api.how), cure);
  }
  if (runs_other_programs(program)) {
    return may_see(fmt::format("runs what it is given: seen if that uses {}", api.title));
  }
  return unused(fmt::format("nothing in it uses {}", api.title));
}

constexpr const char* k_own_build =
    "Use a build of your own: DYLD_INSERT_LIBRARIES is passed by in it";

// Returns the reason why macOS loads no probe (a library of weir's that counts) into a program;
// nothing if it does.
std::optional<Fit> find_macos_barrier(const ProgramFacts& program) {
  const std::string path = sys::absolute(program.path);
  for (const char* folder :
       {"/System/", "/usr/bin/", "/usr/sbin/", "/usr/libexec/", "/bin/", "/sbin/"}) {
    if (path.starts_with(folder)) {
      return cannot_see("a program of the system, which macOS protects (SIP)", k_own_build);
    }
  }
  const MachO& file = *program.file.mach_o;
  if (!file.is_program) return make_library_fit();
  if (!file.dynamic) {
    return cannot_see("statically linked: it loads no library, and so no probe",
                      "Link it dynamically");
  }
  if (file.restricted) {
    return cannot_see("marked as restricted, so dyld loads nothing else into it", k_own_build);
  }
  if (file.closed()) {
    return cannot_see(fmt::format("signed with a hardened runtime and without {}",
                                  file.allows_variables
                                      ? "com.apple.security.cs.disable-library-validation"
                                      : "com.apple.security.cs.allow-dyld-environment-variables"),
                      "Sign a copy again, without: codesign --force --sign - COPY");
  }
  return std::nullopt;
}

Fit judge_ggml_on_macos(const ProgramFacts& program) {
  if (program.file.mach_o->needs("libggml")) return sees("preloaded in front of libggml by dyld");
  if (program.holds_ggml) return make_ggml_inside_fit();
  return may_see("if a library that it opens brings a dynamic ggml");
}

Fit judge_api_on_macos(const DeviceApi& api, const ProgramFacts& program) {
  if (program.file.mach_o->needs(api.needs.front())) return sees(std::string(api.how));
  return may_see(fmt::format("put in by dyld, if a library that it opens uses {}", api.title));
}

// The fit of a probe that this weir for macOS does not have.
Fit missing_on_macos(std::string_view probe) {
  if (probe == "ggml") {
    return {"", State::absent, "the ggml probe is not on macOS",
            "Count by Metal (probes: [metal])"};
  }
  return {"", State::absent, "this weir has no such probe", "ci/macos links it, on Linux"};
}

// Judges what each probe can see of a macOS program. On Linux, one that would see it is reported
// as "perhaps".
std::vector<Fit> judge_mach_o(const ProgramFacts& program,
                              const std::vector<std::string>& installed) {
  const std::optional<Fit> barrier = program.file.mach_o
                                         ? find_macos_barrier(program)
                                         : may_see("a program of macOS that cannot be read");
  std::vector<Fit> fits;
  const auto add = [&](const char* probe, const auto& judge) {
    Fit fit = barrier ? *barrier : judge();
    if (sys::k_on_macos) {
      if (!holds(installed, probe) && fit.state != State::cannot_see) fit = missing_on_macos(probe);
    } else if (fit.state == State::sees) {
      fit.state = State::may_see;
      fit.how += "; on macOS, not here";
      fit.cure = "Run weir on a Mac: Metal and DYLD_INSERT_LIBRARIES are macOS's alone";
    }
    fit.probe = probe;
    fits.push_back(std::move(fit));
  };
  add("ggml", [&] { return judge_ggml_on_macos(program); });
  for (const DeviceApi& api : unit::device_apis()) {
    if (api.on_macos) add(api.name, [&] { return judge_api_on_macos(api, program); });
  }
  return fits;
}

// Judges a program that is linked with weir's instrument library; nothing for other programs. As
// the program loads this library itself, nothing can keep it out.
std::optional<Fit> judge_marks(const ProgramFacts& program) {
  const auto see = [&](std::string how) {
    Fit fit = program.changes_rights
                  ? cannot_see(
                        "runs with other rights than its caller's, so the library in it ignores "
                        "WEIR_PROFILE",
                        k_copy)
                  : sees(std::move(how));
    fit.probe = "instrument";
    return fit;
  };
  for (const auto* libraries : {&program.libraries, &program.plug_ins}) {
    if (const LoadedLibrary* library = find_library(*libraries, "libweir_instrument.so")) {
      return see(fmt::format("the engine's own marks ({}, which {} needs)", library->name,
                             library->needed_by));
    }
  }
  if (program.holds_marks) return see("the engine's own marks: weir's library is inside it");
  if (program.file.kind == FileKind::script || runs_other_programs(program)) {
    Fit script = may_see("runs what it is given: seen if that has marks");
    script.probe = "instrument";
    return script;
  }
  return std::nullopt;
}

// Judges what each probe can see of any program but one of macOS: an ELF file of Linux, a script,
// or a file of another kind. A probe that cannot be loaded gets that reason, and one that this weir
// lacks is absent. An API of macOS alone is unused here, and listed for ELF files only.
std::vector<Fit> judge_linux_program(const ProgramFacts& program,
                                     const std::vector<std::string>& installed) {
  std::vector<Fit> fits;
  const std::optional<Fit> barrier = find_loading_barrier(program);
  const bool is_elf = program.file.kind == FileKind::elf;
  const auto add = [&](const char* probe, Fit fit) {
    // An API that the program does not use needs no reason why it cannot be seen. If we cannot
    // read what the program uses, the barrier is the answer for every probe.
    if (barrier && (!is_elf || fit.state != State::unused || program.file.is_static())) {
      fit = *barrier;
    }
    if (!holds(installed, probe) && fit.state != State::unused) {
      fit = {"", State::absent, "this weir has no such probe",
             "The engine's own profiler can be read: profile_args in weir.yaml"};
    }
    fit.probe = probe;
    fits.push_back(std::move(fit));
  };
  add("ggml", judge_ggml(program));
  for (const DeviceApi& api : unit::device_apis()) {
    Fit fit = judge_api(api, program);
    const bool is_installed = holds(installed, api.name);
    if (api.on_macos) {
      fit.probe = api.name;
      if (is_elf) fits.push_back(std::move(fit));
    } else if (is_installed || fit.state != State::unused ||
               api.load == DeviceApi::Load::vulkan_layer) {
      // A missing probe that nothing needs gets no line; Vulkan's always does.
      add(api.name, std::move(fit));
    }
  }
  return fits;
}

}  // namespace

std::vector<Fit> judge_fit(const ProgramFacts& program, const std::vector<std::string>& installed) {
  std::vector<Fit> fits = program.file.kind == FileKind::mach_o
                              ? judge_mach_o(program, installed)
                              : judge_linux_program(program, installed);
  if (auto marks = judge_marks(program)) fits.insert(fits.begin(), std::move(*marks));
  return fits;
}

// Judges if a program's instructions can be counted in the way that weir.yaml wants: by the
// processor (perf events) or by valgrind.
Fit judge_instructions(const ProgramFacts& program, const InstructionSupport& ways) {
  const auto fit = [](State state, std::string how, std::string cure = "") {
    return Fit{"instructions", state, std::move(how), std::move(cure)};
  };
  constexpr const char* k_get_valgrind = "Install valgrind (Debian: apt-get install valgrind)";
  const FileKind kind = program.file.kind;
  if (kind != FileKind::elf && kind != FileKind::script) {
    return fit(State::cannot_see, "neither perf events nor valgrind run such a program");
  }
  if (program.changes_rights && (ways.no_perf || ways.wants_valgrind)) {
    return fit(State::cannot_see, "runs with other rights than its caller's, which valgrind cannot",
               k_copy);
  }
  if (ways.wants_valgrind && !ways.has_valgrind) {
    return fit(State::cannot_see, "weir.yaml says valgrind, which is not in PATH", k_get_valgrind);
  }
  if (ways.wants_valgrind) {
    return fit(State::sees, "by valgrind, some fifty times slower, by function");
  }
  if (!ways.no_perf) return fit(State::sees, "by perf events, from outside");
  const std::vector<std::string> lines = text::lines(*ways.no_perf);
  const std::string reason = lines.empty() ? "" : lines.front();
  const std::string cure = lines.size() > 1 ? lines[1] : "";
  const std::string not_by_perf = "not by perf events: " + reason;
  if (ways.wants_perf) return fit(State::cannot_see, not_by_perf, cure);
  if (ways.has_valgrind) {
    return fit(State::may_see,
               not_by_perf + "; by valgrind where weir.yaml says instructions: valgrind", cure);
  }
  return fit(State::cannot_see, not_by_perf + "; valgrind is not in PATH",
             fmt::format("{}. {}", k_get_valgrind, cure));
}

Fit judge_host(const ProgramFacts& program, const std::optional<std::string>& no_trace) {
  Fit fit{"host", Fit::State::sees,
          "system calls by ptrace, from outside, in processes of their own", ""};
  if (program.changes_rights) {
    fit = {"host", Fit::State::cannot_see, "runs with other rights than its caller's", k_copy};
  } else if (no_trace) {
    const std::vector<std::string> lines = text::lines(*no_trace);
    fit = {"host", Fit::State::cannot_see, lines.front(), lines.size() > 1 ? lines[1] : ""};
  }
  return fit;
}

std::optional<Fit> judge_python(const ProgramFacts& program) {
  const FileKind kind = program.file.kind;
  const bool runs_here = kind == FileKind::elf || kind == FileKind::script;
  const bool is_python = runs_here && (sys::file_name_of(program.path).starts_with("python") ||
                                       program.file.script.find("python") != std::string::npos);
  if (!is_python) return std::nullopt;
  return Fit{"python", Fit::State::sees,
             "calls of functions in Python 3.10 to 3.13, in processes of their own; loops without "
             "calls with python_lines: true",
             ""};
}

}  // namespace weir::probes
