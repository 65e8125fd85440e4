// Command lines that run an engine in a container or on a node of Slurm, as words. Pure.
#pragma once

#include <cstddef>

#include "gate/config/settings.hpp"

namespace weir::config {

inline constexpr auto k_runtimes = names_in_order<Runtime>("docker", "podman", "srun");
// "docker", "podman", "srun": as in weir.yaml, and the program's name.
[[nodiscard]] std::string_view to_string(Runtime runtime);

// The command is a whole line of the runtime's ("docker run …", "/usr/bin/srun …").
[[nodiscard]] bool begins_with(const Arguments& command, Runtime runtime);

// Where the parts of such a line are. Which options take a value is known of docker and podman; an
// option of srun's that is not known takes the next word where that can be a value.
struct RuntimeLine {
  std::size_t options = 0;  // the first word behind "docker … run", or behind "srun"
  // Behind the options: the image, and the engine's program with srun. The size when absent.
  std::size_t image = 0;
};
// Requires begins_with(). Nothing for docker and podman without "run".
[[nodiscard]] std::optional<RuntimeLine> parts_of(const Arguments& command, Runtime runtime);

// The line that runs `engine`: as it is where it begins with the runtime, else
// "docker run ARGS IMAGE engine…", "srun ARGS --container-image=IMAGE engine…".
[[nodiscard]] Arguments whole_command(const ContainerSettings& container, const Arguments& engine);

// The line that runs `words` in the place of a whole line's engine; nothing where placeholders
// stand among its options. Requires a command line of the runtime's.
[[nodiscard]] std::optional<Arguments> asking_inside(const Arguments& line, Runtime runtime,
                                                     const Arguments& words);

// What of `engine` (as in weir.yaml, or with more arguments) tells one cell from another: neither
// the place of the engine's program nor the runtime nor the image, which stands for the program.
[[nodiscard]] Arguments without_program(const ContainerSettings& container,
                                        const Arguments& engine);

// What of a whole line would keep weir from carrying probes in, from reading what the engine
// prints, or from ending what it left, in words. Empty when nothing would.
[[nodiscard]] std::vector<std::string> problems_of(const Arguments& line, Runtime runtime);

// The variable that a word of docker's or podman's options sets, with the word behind it: "-e A=b",
// "--env=A", "-ite A". Nothing for other options.
[[nodiscard]] std::optional<std::string> variable_set_by(const std::string& word,
                                                         const std::string& next);

// Of docker's and podman's options: one of them says how the container is reached over the network
// (--network, --publish and their short words), so that weir has nothing to add.
[[nodiscard]] bool says_network(const Arguments& line, const RuntimeLine& parts);

// Pyxis' option of srun.
inline constexpr std::string_view k_container_image = "--container-image";
// "OPTION", "OPTION=…".
[[nodiscard]] bool is_or_sets(std::string_view word, std::string_view option);

}  // namespace weir::config
