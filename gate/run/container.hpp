// How an engine's process is started where it does not run here: in a container of docker or
// podman, or by Slurm's srun. What weir carries in keeps its path inside. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gate/base/result.hpp"
#include "gate/config/settings.hpp"
#include "gate/run/prepare.hpp"
#include "gate/sys/process.hpp"

namespace weir::run {

// A file or folder of this machine (absolute) that is seen inside under the same path.
struct Mount {
  std::string path;
  bool writable = false;
  friend bool operator==(const Mount&, const Mount&) = default;
};

// Files of this machine that the cell's command names: the model (for a split one its folder, for a
// snapshot of Hugging Face's cache the repository's folder, where its links lead), the prompt's
// file, and a twin's description.
[[nodiscard]] std::vector<Mount> needed_mounts(const PreparedCell& cell);

// All that a process gets in its container.
struct ContainerInputs {
  config::Environment env;  // for the engine
  std::vector<Mount> mounts;
  std::string id_file;  // absolute, not there yet: docker and podman write the container's id
  std::string port{};   // a server's port: published, unless the command says how it is reached
  std::string name{};   // name of srun's step; also in the container's label
  // Variables of weir's own that the engine gets as they are, their values in no command line.
  std::vector<std::string> passed_variables{};
};

// The runtime's process: its command, and an own environment that holds nothing that is meant for
// the engine alone. Requires a command line of the runtime's (config::whole_command()). What
// `command` mounts itself is left to it. Code::config with a path or value that the runtime cannot
// be told.
[[nodiscard]] Result<sys::ProcessSpec> container_command(config::Runtime runtime,
                                                         const config::Arguments& command,
                                                         const ContainerInputs& inputs);

// The option that labels a container with that name: it is found by it where its id is not known.
[[nodiscard]] std::string label_option(std::string_view name);

// Why a path cannot be mounted; nothing when it can.
[[nodiscard]] std::optional<std::string> mount_problem(config::Runtime runtime,
                                                       std::string_view path);

// By which docker and podman say that they failed themselves.
inline constexpr int k_runtime_failed = 125;
// Explains the runtime's exit code; "" if there is nothing to explain.
[[nodiscard]] std::string describe_exit_code(config::Runtime runtime, int code);

// Steps of Slurm by that name, from what "squeue --steps --format=%i %j" lists.
[[nodiscard]] std::vector<std::string> parse_step_ids(std::string_view listed,
                                                      std::string_view name);

// Nullptr when the cell's engine runs on this machine.
[[nodiscard]] const config::ContainerSettings* find_container(const PreparedCell& cell);
// It begins with the image's environment, not with weir's own.
[[nodiscard]] bool has_own_environment(const config::ContainerSettings& container);

// The folders of one process that its container sees, and its port.
struct ContainerFolders {
  std::string root;    // absolute; of weir alone
  std::string out;     // below it: whoever the engine is inside may write there
  std::string counts;  // the same; "" where nothing is counted
  std::string port{};  // port at which a server that weir starts shall be reached
};

// Collects what a process of the cell needs in its container. `probes`: folder of the probes and
// the twins' driver; `line_env`: the engine's own environment; `probe_env`: variables
// that attach probes; `name`: a word that no other process has.
[[nodiscard]] ContainerInputs make_container_inputs(const PreparedCell& cell,
                                                    const ContainerFolders& folders,
                                                    const std::string& probes,
                                                    const std::string& name,
                                                    const config::Environment& line_env,
                                                    const config::Environment& probe_env);

}  // namespace weir::run
