// Programs that a flow starts: what stands after "--", the probes in it, weir's own helpers.
#pragma once

#include <string>
#include <vector>

#include "gate/config/settings.hpp"
#include "gate/flow/job.hpp"
#include "gate/run/runner.hpp"
#include "gate/sys/interrupts.hpp"
#include "gate/sys/process.hpp"

namespace weir::flow {

// How an engine gets a variable that is withheld.
inline constexpr std::string_view k_pass_through =
    "a name under env without a value passes it through";

// Code::usage where there is no such program.
[[nodiscard]] Result<sys::ProcessSpec> command_spec(const Job& job,
                                                    const std::vector<std::string>& command,
                                                    double timeout_seconds);
// Probes that see something in the program, of what is installed; all that are where its file tells
// nothing (a script). `folder` is not written to.
[[nodiscard]] std::vector<std::string> fitting_probes(const Job& job, const std::string& program,
                                                      run::Probing& probing,
                                                      const std::string& folder);
// Adds what attaches `probes`, which write below `folder`, to the environment of `spec`, and
// `more`, which switches things on in them.
[[nodiscard]] Result<void> attach_probes(run::Probing& probing,
                                         const std::vector<std::string>& probes,
                                         const std::string& folder, const config::Environment& more,
                                         sys::ProcessSpec& spec);

// To its end. Code::interrupted on a stop; Code::unavailable where it `has_to` start and cannot.
[[nodiscard]] Result<sys::Finished> run_program(sys::World& world, const sys::ProcessSpec& spec,
                                                const sys::Stop& stop, bool has_to = false);
// "" where it ended well, else "it exited with code 2".
[[nodiscard]] std::string failure_words(const sys::Finished& finished,
                                        const sys::ProcessSpec& spec);
// What it said on standard error, as talk.
void talk_of(const Job& job, const std::string& said);

// Where weir-engine is, the reference engine (docs/reference/engine.md): `given` where it names one
// (--engine), else the engine as a build leaves it or an installation has it, below the folder of
// `program` (weir itself, absolute) or the one above. Code::usage where there is none at `given`,
// Code::unavailable with where it was looked for and how to get it; `who` needs it: "the demo".
[[nodiscard]] Result<std::string> find_weir_engine(const sys::Files& files,
                                                   const std::string& given,
                                                   const std::string& program,
                                                   const std::string& who);

// Code::usage where `file`, of an option, cannot be written.
[[nodiscard]] Result<void> check_place(const char* option, const std::string& file,
                                       const sys::Files& files);

}  // namespace weir::flow
