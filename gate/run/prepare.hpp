// A cell with everything looked up that running it needs: what preflight makes and a plan holds.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "gate/config/matrix.hpp"
#include "gate/profile/assemble.hpp"

namespace weir::run {

// How the instructions of a cell are counted.
enum class CountInstructions { perf, valgrind };

// A GPU that is not there, and the driver that answers in its place.
struct DeviceTwin {
  std::string device;  // what the driver calls itself to the engine
  std::string title;   // for people
  std::string hash;    // of the description: counts depend on all of it
  std::string blob;    // absolute; the description as the driver reads it
  std::string driver;  // absolute; the driver's manifest
};

struct PreparedCell {
  config::Cell cell;
  profile::CellFacts facts;  // provenance without what only a run can tell
  std::string program;       // absolute
  std::string model;         // absolute
  std::string prompt_file;   // absolute, "" when none
  std::string folder;        // to run in: that of the config
  std::uint64_t model_bytes = 0;
  std::string program_stamp;        // differs when the program was built again
  std::vector<std::string> probes;  // attached in the counted pass; those that see the device
  bool counts_work = true;          // some probe sees it, or the engine reports counts
  std::optional<CountInstructions> instructions{};  // in processes of their own
  std::string valgrind{};                           // absolute, where it is what counts them
  std::int64_t threads = 1;                         // what {threads} is when nothing runs beside it
  std::optional<DeviceTwin> twin{};
  // The device is the CPU, or a driver that runs on it: times need the processors alone, and
  // counted processes may run side by side.
  bool on_cpu = true;
  // Why nothing can be run, ready to show: the device is not there. The cell is then an error.
  std::optional<std::string> unavailable;

  // What {threads} is. Counted processes that share the processors get one thread each where the
  // config does not say otherwise: counts do not depend on it, and threads that wait by spinning
  // take the processors from each other (measured: half the time and none of the scatter).
  [[nodiscard]] std::int64_t threads_in(profile::Pass pass) const {
    return pass == profile::Pass::counted && on_cpu && cell.threads == 0 ? 1 : threads;
  }
};

}  // namespace weir::run
