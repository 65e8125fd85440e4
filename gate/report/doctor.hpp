// The result of `weir doctor` as text and as JSON (weir.doctor/1). Pure.
//
// Problems come first, each with its cure. Names and reasons come from files and drivers and are
// made inert here.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "gate/report/text_style.hpp"

namespace weir::report {

enum class Health { worse, note };

struct DoctorFinding {
  std::string subject;  // "governor"
  Health health = Health::note;
  std::string what, cure;
};

// How much a probe sees of an engine.
struct DoctorFit {
  std::string probe;
  std::string state;  // "sees", "perhaps", "blind", "absent", "unused"
  std::string how, cure;
  bool asked_for = false;  // weir.yaml attaches it to this engine
};

struct DoctorEngine {
  std::string name;   // as asked for: a path, or an engine of weir.yaml
  std::string path;   // path of the program; "" if there is none
  std::string error;  // why it could not be examined; then the rest is empty
  std::vector<DoctorFit> fits;
  std::vector<DoctorFinding> findings;  // missing libraries and the like
};

struct DoctorDevice {
  std::string api;                 // "vulkan"
  std::string name, type, driver;  // "llvmpipe (…)", "cpu", "llvmpipe"; type and driver may be ""

  friend bool operator==(const DoctorDevice&, const DoctorDevice&) = default;
};

// The command of a cell that was run once.
struct DoctorCommand {
  std::string cell;
  std::string line;  // as a shell takes it, with the variables of the cell; "": it cannot run here
  std::string folder;                   // where it ran
  std::string outcome;                  // "it exited with code 2"; "": it ended well
  std::vector<std::string> out, err;    // its last lines
  std::vector<std::string> unread;      // why it measures nothing: metrics that were not found
  bool answered = false;                // it is a server, and answered a request
  std::vector<std::string> warnings{};  // about its answer

  [[nodiscard]] bool has_failed() const { return !outcome.empty() || !unread.empty(); }
};

struct Diagnosis {
  std::string weir_version;
  std::string machine;  // "AMD EPYC 9654 96-Core Processor, 2 cores, 24 GiB, debian 12"
  std::vector<DoctorFinding> findings;     // about the machine, the heaviest first
  std::vector<std::string> fine, unknown;  // subjects
  std::vector<std::string> probes;         // installed
  std::string probes_error;                // why there are none; "": not examined
  std::vector<DoctorDevice> devices;
  std::vector<std::pair<std::string, std::string>> device_errors;  // API and why it has no device
  std::vector<std::string> always_layers;  // Vulkan layers that nobody has to ask for
  std::vector<std::string> layers;         // the other ones
  std::vector<DoctorEngine> engines;
  std::vector<DoctorCommand> commands;
  bool is_idle = false;  // the engines are those of weir.yaml, and none was started
};

// Counts findings that make times worse, probes of weir.yaml that see nothing, engines that could
// not be examined, and commands that did not end well.
[[nodiscard]] std::size_t count_problems(const Diagnosis& diagnosis);

[[nodiscard]] std::string doctor_text(const Diagnosis& diagnosis, const TextStyle& style);
[[nodiscard]] std::string doctor_json(const Diagnosis& diagnosis);

}  // namespace weir::report
