// Command lines that run an engine in a container or on a node of Slurm, as words. Pure.
#pragma once

#include <cstddef>

#include "gate/config/settings.hpp"

namespace weir::config {

inline constexpr auto k_runtimes = names_in_order<Runtime>("docker", "podman", "srun");
// "docker", "podman", "srun": as in weir.yaml, and the program's name.
[[nodiscard]] std::string_view to_string(Runtime runtime);

// Returns true if the command is a whole line of the runtime ("docker run …", "/usr/bin/srun …").
[[nodiscard]] bool begins_with(const Arguments& command, Runtime runtime);

// Places of the parts of such a line. The options of docker and podman are known; an unknown option
// of srun takes the next word if that can be a value.
struct RuntimeLine {
  std::size_t options = 0;  // the first word after "docker … run", or after "srun"
  // The word after the options: the image, or with srun the engine's program. The size when absent.
  std::size_t image = 0;
};
// Requires begins_with(). Nothing for docker and podman without "run".
[[nodiscard]] std::optional<RuntimeLine> parse_runtime_line(const Arguments& command,
                                                            Runtime runtime);

// The line that runs `engine`: as it is where it begins with the runtime, else
// "docker run ARGS IMAGE engine…", "srun ARGS --container-image=IMAGE engine…".
[[nodiscard]] Arguments container_command(const ContainerSettings& container,
                                          const Arguments& engine);

// The line that runs `words` in the place of a whole line's engine; nothing where placeholders
// stand among its options. Requires a command line of the runtime's.
[[nodiscard]] std::optional<Arguments> command_inside(const Arguments& line, Runtime runtime,
                                                      const Arguments& words);

// Returns the words of `engine` (as in weir.yaml, or with more arguments) that tell one cell from
// another. It leaves out the folder of the engine's program, the runtime and the image.
[[nodiscard]] Arguments fingerprint_command(const ContainerSettings& container,
                                            const Arguments& engine);

// Returns the problems of a whole line: options that keep weir from loading probes, from reading
// the engine's output, or from cleaning up.
[[nodiscard]] std::vector<std::string> check_runtime_line(const Arguments& line, Runtime runtime);

// Returns the variable that an option of docker or podman sets: "-e A=b", "--env=A", "-ite A".
// `next` is the word after it. Nothing for other options.
[[nodiscard]] std::optional<std::string> variable_set_by(const std::string& word,
                                                         const std::string& next);

// Returns true if an option of docker or podman sets up the network (--network, --publish and their
// short forms), so that weir has nothing to add.
[[nodiscard]] bool has_network_option(const Arguments& line, const RuntimeLine& parts);

// Pyxis' option of srun.
inline constexpr std::string_view k_container_image = "--container-image";
// Returns true if `word` is "OPTION" or "OPTION=…".
[[nodiscard]] bool matches_option(std::string_view word, std::string_view option);

}  // namespace weir::config
