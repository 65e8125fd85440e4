// Which probes can see a program of macOS, on whatever system that is asked.
#include <algorithm>

#include "gate/base/text.hpp"
#include "gate/probes/read/fit.hpp"
#include "gate/sys/paths.hpp"
#include "gate/sys/system.hpp"

namespace weir::probes {
namespace {

using State = Fit::State;

constexpr const char* k_own_build =
    "Use a build of your own: DYLD_INSERT_LIBRARIES is passed by in it";

// Why dyld would put nothing into it; nothing when it does.
std::optional<Fit> shut(const ProgramFacts& program) {
  const std::string path = sys::absolute(program.path);
  for (const char* folder :
       {"/System/", "/usr/bin/", "/usr/sbin/", "/usr/libexec/", "/bin/", "/sbin/"}) {
    if (path.starts_with(folder)) {
      return Fit{"", State::blind, "a program of the system, which macOS protects (SIP)",
                 k_own_build};
    }
  }
  const MachO& file = *program.file.mach_o;
  if (!file.is_program) {
    return Fit{"", State::perhaps, "a library: seen in the program that loads it",
               "Name that program"};
  }
  if (!file.dynamic) {
    return Fit{"", State::blind, "statically linked: it loads no library, and so no probe",
               "Link it dynamically"};
  }
  if (file.restricted) {
    return Fit{"", State::blind, "marked as restricted, so dyld loads nothing else into it",
               k_own_build};
  }
  if (file.closed()) {
    return Fit{"", State::blind,
               fmt::format("signed with a hardened runtime and without {}",
                           file.allows_variables
                               ? "com.apple.security.cs.disable-library-validation"
                               : "com.apple.security.cs.allow-dyld-environment-variables"),
               "Sign a copy again, without: codesign --force --sign - COPY"};
  }
  return std::nullopt;
}

Fit ggml_on_macos(const ProgramFacts& program) {
  if (program.file.mach_o->needs("libggml")) {
    return {"ggml", State::sees, "preloaded in front of libggml by dyld", ""};
  }
  if (program.holds_ggml) {
    return {"ggml", State::blind,
            "ggml is inside the program: its calls go straight there, nothing can stand in front",
            "Build it with -DBUILD_SHARED_LIBS=ON"};
  }
  return {"ggml", State::perhaps, "if a library that it opens brings a dynamic ggml", ""};
}

Fit metal_on_macos(const ProgramFacts& program) {
  if (program.file.mach_o->needs("Metal")) {
    return {"metal", State::sees, "put in by dyld, in front of Metal's objects", ""};
  }
  return {"metal", State::perhaps, "put in by dyld, if a library that it opens uses Metal", ""};
}

// A weir of macOS without it.
Fit not_here(std::string_view probe) {
  if (probe == "ggml") {
    return {"ggml", State::absent, "the ggml probe is not on macOS",
            "Count by Metal (probes: [metal])"};
  }
  return {std::string(probe), State::absent, "this weir has no such probe",
          "ci/macos links it, on Linux"};
}

}  // namespace

std::vector<Fit> judge_mach_o(const ProgramFacts& program,
                              const std::vector<std::string>& installed) {
  const std::optional<Fit> barrier =
      program.file.mach_o ? shut(program)
                          : Fit{"", State::perhaps, "a program of macOS that cannot be read", ""};
  std::vector<Fit> fits;
  if (const auto marks = judge_marks(program)) fits.push_back(*marks);
  for (const char* probe : {"ggml", "metal"}) {
    const bool here = std::find(installed.begin(), installed.end(), probe) != installed.end();
    Fit fit = barrier                             ? *barrier
              : std::string_view(probe) == "ggml" ? ggml_on_macos(program)
                                                  : metal_on_macos(program);
    fit.probe = probe;
    if (sys::k_on_macos) {
      if (!here && fit.state != State::blind) fit = not_here(probe);
    } else if (fit.state == State::sees) {
      fit.state = State::perhaps;
      fit.how += "; on macOS, not here";
      fit.cure = "Run weir on a Mac: Metal and DYLD_INSERT_LIBRARIES are macOS's alone";
    }
    fits.push_back(std::move(fit));
  }
  return fits;
}

}  // namespace weir::probes
