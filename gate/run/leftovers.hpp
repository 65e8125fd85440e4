// Ends what docker, podman or Slurm may leave of a process that ended otherwise than by itself.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gate/config/settings.hpp"
#include "gate/sys/files.hpp"
#include "gate/sys/process.hpp"

namespace weir::run {

struct Leftovers {
  sys::Processes& processes;
  const sys::Files& files;
  config::Runtime runtime;
  std::string program;  // the runtime's program, absolute
  std::string name;     // as ContainerInputs::name
  std::string id_file;  // as ContainerInputs::id_file

  // Ends what a process that has ended may have left. Returns a warning if that fails or is
  // uncertain, else "".
  [[nodiscard]] std::string end(const Result<sys::Finished>& finished) const;

 private:
  // The output of a call of the runtime's; nothing when it did not end well.
  [[nodiscard]] std::optional<std::string> run_command(std::vector<std::string> argv) const;
  [[nodiscard]] bool remove_container(const std::string& id) const;
  [[nodiscard]] std::string end_containers() const;
  [[nodiscard]] std::string end_steps() const;
};

}  // namespace weir::run
