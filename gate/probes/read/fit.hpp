// Which probes can see a program, by what its files say of themselves. Nothing is run.
//
// look_at_program() reads files; judge_fit() is pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gate/base/result.hpp"
#include "gate/probes/read/locate.hpp"
#include "gate/probes/read/program_file.hpp"
#include "gate/sys/files.hpp"

namespace weir::probes {

struct LoadedLibrary {
  std::string name;  // as the one who needs it says: "libggml-base.so"
  std::string path;
  std::string needed_by;  // file name of a program or library; "" for a plug-in
  ProgramFile file;
};

struct ProgramFacts {
  std::string path;
  ProgramFile file;
  bool changes_rights = false;
  std::vector<LoadedLibrary> libraries;  // loaded at its start, in the loader's order
  std::vector<LoadedLibrary> plug_ins;   // ggml's backends in its own folder, with what they need
  std::vector<std::string> missing;      // "libx.so (needed by engine)"
  std::vector<std::string> unreadable;   // libraries with why
  // Words found in the program's own bytes and in its own libraries': what it may open by itself.
  // `names`: APIs whose libraries it names ("vulkan"), though none is loaded.
  std::vector<std::string> names;
  bool holds_ggml = false;   // ggml's messages, though no library of ggml's is loaded
  bool holds_marks = false;  // weir's instrument library, as an archive
};

// Code::io or Code::data where the program itself cannot be read. `path`: of the program; links are
// followed for $ORIGIN, as the loader does.
[[nodiscard]] Result<ProgramFacts> look_at_program(const std::string& path, const sys::Files& files,
                                                   const Lookup& environment);

struct Fit {
  enum class State {
    sees,     // attached, it will count
    perhaps,  // depends on what the program does when it runs
    blind,    // cannot
    absent,   // this weir has no such probe
    unused,   // nothing in the program uses what it sees
  };
  std::string probe;  // "vulkan"
  State state = State::unused;
  std::string how;   // "preloaded in front of libggml-base.so", or why not
  std::string cure;  // when it cannot; may be ""
};
// One entry for ggml and each API of unit/device_api.hpp, in this order; for a program of macOS,
// for ggml and the APIs of macOS. One for instrument in front, where the program has it.
// `installed`: names of this build's probes.
[[nodiscard]] std::vector<Fit> judge_fit(const ProgramFacts& program,
                                         const std::vector<std::string>& installed);

// How instructions can be counted on this machine, and how weir.yaml wants them counted.
struct InstructionWays {
  std::optional<std::string> no_perf{};  // sys::why_not_counted(): a reason, and its cure below it
  bool has_valgrind = false;
  bool wants_valgrind = false, wants_perf = false;  // neither: perf events where there are any
};
// The probe `instructions`, which stands outside and so fits any program of this system.
[[nodiscard]] Fit judge_instructions(const ProgramFacts& program, const InstructionWays& ways);
// The probe `host`. `no_trace`: sys::why_not_traced().
[[nodiscard]] Fit judge_host(const ProgramFacts& program,
                             const std::optional<std::string>& no_trace);

}  // namespace weir::probes
