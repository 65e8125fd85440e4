// Programs that a flow starts: commands after "--", their probes, weir's own helpers.
#pragma once

#include <string>
#include <vector>

#include "gate/config/settings.hpp"
#include "gate/flow/job.hpp"
#include "gate/run/runner.hpp"
#include "gate/sys/interrupts.hpp"
#include "gate/sys/process.hpp"

namespace weir::flow {

// Advice for a variable that is withheld from engines.
inline constexpr std::string_view k_pass_through =
    "a name under env without a value passes it through";

// Returns how to run a command; Code::usage if there is no such program.
[[nodiscard]] Result<sys::ProcessSpec> command_spec(const Job& job,
                                                    const std::vector<std::string>& command,
                                                    double timeout_seconds);
// Returns the installed probes that can see something in the program; all of them if its file shows
// nothing (a script). Writes nothing to `folder`.
[[nodiscard]] std::vector<std::string> fitting_probes(const Job& job, const std::string& program,
                                                      run::Probing& probing,
                                                      const std::string& folder);
// Attaches `probes`, which write below `folder`, by the environment of `spec`. `more` has variables
// for the probes.
[[nodiscard]] Result<void> attach_probes(run::Probing& probing,
                                         const std::vector<std::string>& probes,
                                         const std::string& folder,
                                         const config::Environment& probe_variables,
                                         sys::ProcessSpec& spec);

// Runs a program to its end. Code::interrupted on a stop; Code::unavailable if it `has_to` start
// and cannot.
[[nodiscard]] Result<sys::Finished> run_program(sys::World& world, const sys::ProcessSpec& spec,
                                                const sys::Stop& stop, bool has_to = false);
// Returns "" for a program that ended well, else for instance "it exited with code 2".
[[nodiscard]] std::string failure_text(const sys::Finished& finished, const sys::ProcessSpec& spec);
// Prints the lines of a text as a program's.
void talk_output(const Job& job, const std::string& output);

// Returns the path of weir-engine, the reference engine (docs/reference/engine.md): `option`
// (--engine), else beside `program` (weir itself, absolute), where a build or an installation puts
// it. Code::usage if there is none at `option`. Code::unavailable lists the places searched and how
// to get it. `who` needs it: "the demo".
[[nodiscard]] Result<std::string> find_weir_engine(const sys::Files& files,
                                                   const std::string& option,
                                                   const std::string& program,
                                                   const std::string& who);

// Returns Code::usage if the `file` of an option cannot be written.
[[nodiscard]] Result<void> check_place(const char* option, const std::string& file,
                                       const sys::Files& files);

}  // namespace weir::flow
