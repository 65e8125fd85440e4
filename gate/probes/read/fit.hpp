// Judges which probes can see a program, by reading its files. Nothing is run.
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
  std::string name;  // as `needed_by` writes it: "libggml-base.so"
  std::string path;
  std::string needed_by;  // file name of a program or library; "" for a plug-in
  ProgramFile file;
};

struct ProgramFacts {
  std::string path;
  ProgramFile file;
  bool changes_rights = false;           // setuid, setgid or file capabilities
  std::vector<LoadedLibrary> libraries;  // loaded at its start, in the loader's order
  std::vector<LoadedLibrary> plug_ins;   // ggml's backends in its own folder, and their libraries
  // A Python environment's packages: libraries that need one of a device API.
  std::string environment;  // its folder; "" for other programs
  std::vector<LoadedLibrary> packages;
  std::vector<std::string> missing;     // "libx.so (needed by engine)"
  std::vector<std::string> unreadable;  // libraries, each with a reason
  // Words in the bytes of the program and its own libraries show what it may open at run time.
  // `names`: APIs ("vulkan") whose libraries the words name, though none is loaded.
  std::vector<std::string> names;
  bool holds_ggml = false;   // ggml's messages, though no library of ggml's is loaded
  bool holds_marks = false;  // weir's instrument library, as an archive
};

// Reads the program at `path` and the libraries that it loads. Links are followed for $ORIGIN, as
// the loader does. Fails with Code::io or Code::data where the program itself cannot be read.
[[nodiscard]] Result<ProgramFacts> read_program_facts(const std::string& path,
                                                      const sys::Files& files,
                                                      const Lookup& environment);

struct Fit {
  enum class State {
    sees,     // attached, it will count
    may_see,  // depends on what the program does when it runs
    cannot_see,
    absent,  // this weir has no such probe
    unused,  // nothing in the program uses what it sees
  };
  std::string probe;  // "vulkan"
  State state = State::unused;
  std::string how;   // "preloaded in front of libggml-base.so", or why not
  std::string cure;  // a remedy if it cannot; may be ""
};
// Returns one entry for ggml and each API of unit/device_api.hpp, in this order. A macOS program
// gets ggml and the APIs of macOS. A program with weir's marks gets an entry for instrument in
// front. `installed`: names of this build's probes.
[[nodiscard]] std::vector<Fit> judge_fit(const ProgramFacts& program,
                                         const std::vector<std::string>& installed);

// The ways to count instructions that this machine has, and those that weir.yaml wants.
struct InstructionSupport {
  std::optional<std::string> no_perf{};  // sys::why_not_counted(): a line with the reason, a cure
  bool has_valgrind = false;
  bool wants_valgrind = false, wants_perf = false;  // neither: perf events where there are any
};
// Judges the probe `instructions`. It runs outside the program, so it fits any of this system.
[[nodiscard]] Fit judge_instructions(const ProgramFacts& program, const InstructionSupport& ways);
// Judges the probe `host`. `no_trace`: sys::why_not_traced().
[[nodiscard]] Fit judge_host(const ProgramFacts& program,
                             const std::optional<std::string>& no_trace);
// Judges the probe `python`; nullopt unless the program is an interpreter of Python or a script for
// one.
[[nodiscard]] std::optional<Fit> judge_python(const ProgramFacts& program);

}  // namespace weir::probes
