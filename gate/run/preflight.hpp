// Everything that can be checked before the first engine starts, and everything looked up that a
// cell needs to run: programs, models and their headers, prompts, fingerprints.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gate/base/secret.hpp"
#include "gate/config/matrix.hpp"
#include "gate/run/prepare.hpp"
#include "gate/sys/files.hpp"
#include "gate/sys/machine.hpp"

namespace weir::run {

// A device as this machine has it; keyed by the config's word ("vulkan").
struct DeviceFacts {
  std::string device_class;  // "" when not known before a run
  std::string name;
  bool on_cpu = false;  // a software driver
  // Why it is not there, ready to show; the other fields mean nothing then.
  std::optional<std::string> absent;
};

// Another checkout of the repository, whose programs run in place of the candidate's own.
struct OtherCheckout {
  std::vector<std::string> own_roots;  // absolute: all names of the candidate's top
  std::string root;                    // absolute: what stands for it
};

struct Surroundings {
  std::string config_folder;  // relative paths count from it
  std::string path_variable;  // PATH
  sys::Machine machine;
  std::map<std::string, DeviceFacts> devices;  // devices that were looked up; "cpu" needs none
  // probe -> devices it sees: {"vulkan": {"vulkan"}}
  std::map<std::string, std::vector<std::string>> probe_devices;
  std::map<std::string, DeviceTwin> twins{};  // by twin_key: those that the cells ask for
  // Makes the files that stand in for a runtime's libraries beside a program, or beside the library
  // with GPU code that it opens by itself ("": it is not named). An error says why the program cannot
  // run on the twin.
  std::function<Result<RuntimeFiles>(const std::string& program, const std::string& library,
                                     const DeviceTwin&)>
      runtime_files{};
  // Why this machine's counters of instructions cannot be had, and the cure below it; absent: they
  // can.
  std::optional<std::string> no_perf{};
  std::optional<std::string> no_trace{};   // the same of system calls
  std::map<std::string, Secret> tokens{};  // by variable: those of token_env that are set
  bool starts = true;                      // false: only looked at, and no token is missed
  std::vector<std::string> output_places;  // folders and files that will be written
  std::optional<OtherCheckout> programs{};
};

// By what the twins of a run are told apart. Requires that the cell has one.
[[nodiscard]] std::string twin_key(const config::Cell& cell);

// All problems at once, one a line, as one Error (Code::config). An absent device is none: its
// cells come back `unavailable`.
[[nodiscard]] Result<std::vector<PreparedCell>> preflight(std::span<const config::Cell> cells,
                                                          const Surroundings& surroundings,
                                                          const sys::Files& files);

}  // namespace weir::run
