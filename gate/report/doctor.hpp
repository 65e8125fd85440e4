// What `weir doctor` found, as text and as JSON (weir.doctor/1). Pure.
//
// What is wrong stands first, each with its cure. Names and reasons come from files and drivers:
// they are made inert here.
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

// How one probe gets on with one engine.
struct DoctorFit {
  std::string probe;
  std::string state;  // "sees", "perhaps", "blind", "absent", "unused"
  std::string how, cure;
  bool asked_for = false;  // weir.yaml attaches it to this engine
};

struct DoctorEngine {
  std::string name;   // as asked for: a path, or an engine of weir.yaml
  std::string path;   // of the program; "" where none was found
  std::string error;  // why it could not be looked at; then there is nothing else
  std::vector<DoctorFit> fits;
  std::vector<DoctorFinding> findings;  // missing libraries and the like
};

struct DoctorDevice {
  std::string api;                 // "vulkan"
  std::string name, type, driver;  // "llvmpipe (…)", "cpu", "llvmpipe"; type and driver may be ""
};

struct Diagnosis {
  std::string weir_version;
  std::string machine;  // "AMD EPYC 9654 96-Core Processor, 2 cores, 24 GiB, debian 12"
  std::vector<DoctorFinding> findings;     // of the machine, the heaviest first
  std::vector<std::string> fine, unknown;  // subjects
  std::vector<std::string> probes;         // installed
  std::string probes_error;                // why there are none
  std::vector<DoctorDevice> devices;
  std::vector<std::pair<std::string, std::string>> device_errors;  // API and why it has no device
  std::vector<std::string> always_layers;  // Vulkan layers that nobody has to ask for
  std::vector<std::string> layers;         // the other ones
  std::vector<DoctorEngine> engines;
};

// How many findings make times worse, probes that weir.yaml asks for cannot see, or engines could
// not be looked at.
[[nodiscard]] std::size_t problems(const Diagnosis& diagnosis);

[[nodiscard]] std::string doctor_text(const Diagnosis& diagnosis, const TextStyle& style);
[[nodiscard]] std::string doctor_json(const Diagnosis& diagnosis);

}  // namespace weir::report
