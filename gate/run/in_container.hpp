// The effects of running an engine in a container: the call that starts it, and the end of what it
// left behind.
#pragma once

#include <string>

#include "gate/run/container.hpp"
#include "gate/run/runner.hpp"

namespace weir::run {

// Nullptr when the cell's engine runs on this machine.
[[nodiscard]] const config::ContainerSettings* container_of(const PreparedCell& cell);
// It begins with the image's environment, not with weir's own.
[[nodiscard]] bool has_own_environment(const config::ContainerSettings& container);

// The folders of one process that are carried in.
struct CarriedPlace {
  std::string root;    // absolute; of weir alone
  std::string out;     // below it: whoever the engine is inside may write there
  std::string counts;  // the same; "" where nothing is counted
  std::string port{};  // of a server that is started, which shall be reached there
};

// What a process of the cell is carried in with. `probes` is where probes and the twins' driver
// lie, `line_env` the engine's own environment (line_of()), `probe_env` what attaches probes.
// `name` is a word that no other process has.
[[nodiscard]] Carried carried_into(const PreparedCell& cell, const CarriedPlace& place,
                                   const std::string& probes, const std::string& name,
                                   const config::Environment& line_env,
                                   const config::Environment& probe_env);

// Puts docker, podman or srun with its arguments and environment into `spec`, which holds the
// engine's, and opens the folders to whoever the engine is inside.
[[nodiscard]] Result<void> put_in_container(const Effects& effects, const PreparedCell& cell,
                                            const CarriedPlace& place, const std::string& name,
                                            const config::Environment& line_env,
                                            const config::Environment& probe_env,
                                            sys::ProcessSpec& spec);

// Whether what the runtime had started may go on without it.
[[nodiscard]] bool may_have_left(const PreparedCell& cell, const Result<sys::Finished>& finished);

// Then: it is stopped and removed. What can not be, or is not known, is told in words; "" when
// nothing is left.
[[nodiscard]] std::string end_container(const Effects& effects, const PreparedCell& cell,
                                        const CarriedPlace& place, const std::string& name);

// What take_over() knows of docker, podman or srun, and not of the engine.
void leave_out_runtimes_own(profile::RunRecord& record);

// Why an engine that ended like this measures nothing, `failure` being what is said of any process.
[[nodiscard]] std::string failure_in_container(const PreparedCell& cell,
                                               const sys::Finished& finished, std::string failure);

}  // namespace weir::run
