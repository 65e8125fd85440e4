// weir-devices, which loads the drivers of GPUs so that weir need not.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "gate/config/matrix.hpp"
#include "gate/flow/job.hpp"
#include "gate/probes/read/cuda_code.hpp"
#include "gate/probes/read/locate.hpp"
#include "gate/run/preflight.hpp"
#include "gate/run/prepare.hpp"
#include "gate/run/runner.hpp"
#include "gate/sys/interrupts.hpp"
#include "gate/sys/machine.hpp"
#include "gate/sys/process.hpp"
#include "gate/sys/world.hpp"

namespace weir::flow {
// Where probes and the programs beside them are installed: WEIR_PROBES, else beside weir.
[[nodiscard]] Result<probes::Places> probe_places(const sys::World& world);

// How probes look up variables of weir's own environment. `world` outlives it.
[[nodiscard]] inline auto variables_of(const sys::World& world) {
  return [&world](std::string_view name) { return world.environment(std::string(name)); };
}

// Runs weir-devices with the arguments that `spec` has, and whatever else it says. How it ended,
// and what it printed. Code::unavailable where it is not installed or cannot be started,
// Code::interrupted on Ctrl-C; a driver that crashes or hangs is an answer.
[[nodiscard]] Result<sys::Finished> ask_devices_program(sys::ProcessSpec& spec, sys::World& world,
                                                        const sys::Stop& stop);

// Which devices are there, asked before anything is measured.
// "cpu", and the cell's own device as the cell's environment shows it. A driver is loaded in a
// process of its own (weir-devices), so that one that crashes or hangs takes nothing with it: the
// device is then absent, with its last words.
[[nodiscard]] Result<std::map<std::string, run::DeviceFacts>> look_for_devices(
    const config::Cell& cell, const sys::Machine& machine, sys::World& world,
    const sys::Stop& stop);

// The GPUs that a container of docker or podman, or a step of Slurm has, as nvidia-smi says inside:
// "2x NVIDIA H100 80GB HBM3, 81559 MiB". Code::unavailable where it cannot be asked.
[[nodiscard]] Result<std::string> gpu_inside(const config::Cell& cell, const Job& job,
                                             const sys::Stop& stop);

// Device twins: which descriptions a config may name, and what an engine needs to see one.
// The names `twin:` may take in the config of `config_folder`; none where the driver is not
// installed.
[[nodiscard]] std::vector<std::string> known_twins(const sys::World& world,
                                                   const std::string& config_folder);

// The file in `out`/twins with what the kernels of `program` need of a CUDA twin, or those of
// `library`, which it opens by itself; "": that is not named. Made once for each build of them.
// `known`: by path, what was found before: a CUDA library is large. Code::unavailable where the
// program cannot run on one.
[[nodiscard]] Result<std::string> cuda_kernels_of(const std::string& program,
                                                  const std::string& library,
                                                  const run::DeviceTwin& twin,
                                                  const std::string& out, sys::World& world,
                                                  std::map<std::string, probes::CudaCode>& known);

// The twins that `cells` ask for, by run::twin_key. Their descriptions are compiled into
// `out`/twins, where engines' drivers read them. Code::data for a description that is none.
[[nodiscard]] Result<std::map<std::string, run::DeviceTwin>> make_twins(
    std::span<const config::Cell> cells, const std::string& config_folder, const std::string& out,
    sys::World& world);

// Wires gate/probes to the runner.
// Fails with Code::unavailable when the probes are not where the program expects them.
[[nodiscard]] Result<std::unique_ptr<run::Probing>> make_probing(sys::World& world);

}  // namespace weir::flow
