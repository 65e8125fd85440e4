// weir-devices, which loads the drivers of GPUs so that weir need not.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "gate/config/matrix.hpp"
#include "gate/flow/job.hpp"
#include "gate/probes/read/locate.hpp"
#include "gate/probes/read/runtime_code.hpp"
#include "gate/run/preflight.hpp"
#include "gate/run/prepare.hpp"
#include "gate/run/runner.hpp"
#include "gate/sys/interrupts.hpp"
#include "gate/sys/machine.hpp"
#include "gate/sys/process.hpp"
#include "gate/sys/world.hpp"

namespace weir::flow {
// Returns the folders of probes and their programs: in WEIR_PROBES, else beside weir.
[[nodiscard]] Result<probes::Places> probe_places(const sys::World& world);

// Returns a function that looks up variables in weir's own environment. `world` outlives it.
[[nodiscard]] inline auto environment_reader(const sys::World& world) {
  return [&world](std::string_view name) { return world.environment(std::string(name)); };
}

// Runs weir-devices with the arguments and limits in `spec`, and returns its output and how it
// ended. A driver that crashes or hangs is a result. Code::unavailable if the program cannot be
// started, Code::interrupted on Ctrl-C.
[[nodiscard]] Result<sys::Finished> run_devices_program(sys::ProcessSpec& spec, sys::World& world,
                                                        const sys::Stop& stop);

// Returns the devices "cpu" and the cell's own, as the cell's environment shows it. weir-devices
// loads the driver in a process of its own, so a crash or a hang only makes the device absent, with
// the reason.
[[nodiscard]] Result<std::map<std::string, run::DeviceFacts>> find_devices(
    const config::Cell& cell, const sys::Machine& machine, sys::World& world,
    const sys::Stop& stop);

// Returns the GPUs in a container (docker, podman) or a step of Slurm, as nvidia-smi lists them
// inside: "2x NVIDIA H100 80GB HBM3, 81559 MiB". Code::unavailable if it cannot be run there.
[[nodiscard]] Result<std::string> container_gpus(const config::Cell& cell, const Job& job,
                                                 const sys::Stop& stop);

// Returns the device twins that a config in `config_folder` may name; none if their driver is not
// installed.
[[nodiscard]] std::vector<std::string> twin_names(const sys::World& world,
                                                  const std::string& config_folder);

struct ProgramCode {
  // By the API and the file: libraries with code are large.
  std::map<std::pair<std::string, std::string>, probes::RuntimeCode> by_file{};
  std::set<std::string> tables{};  // paths of the tables that this run wrote
  std::set<std::string> notes{};   // programs without code for a twin, and what they have code for
};

// Writes what stands in for a runtime's libraries beside `program` into the job's --out, below
// twins/: the table of its kernels, or of those of `library` (unless ""), which the program opens
// itself. Written once for each build; in CI by each run, for a pull request may have committed one.
// Code::unavailable if the program has no code for the twin's API.
[[nodiscard]] Result<run::RuntimeFiles> write_runtime_files(const std::string& program,
                                                            const std::string& library,
                                                            const run::DeviceTwin& twin,
                                                            const Job& job, ProgramCode& programs);

// Returns the twins that `cells` ask for, by run::twin_key. Compiles their descriptions into
// `out`/twins, where drivers read them, whatever lies there already. Code::data for a bad
// description.
[[nodiscard]] Result<std::map<std::string, run::DeviceTwin>> make_twins(
    std::span<const config::Cell> cells, const std::string& config_folder, const std::string& out,
    sys::World& world);

// Connects gate/probes to the runner. Code::unavailable if the probes are not installed, unless
// none is `needed`.
[[nodiscard]] Result<std::unique_ptr<run::Probing>> make_probing(sys::World& world,
                                                                 bool needed = true);

}  // namespace weir::flow
