// A cell with everything looked up that running it needs: what preflight makes and a plan holds.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gate/base/json.hpp"
#include "gate/base/result.hpp"
#include "gate/config/matrix.hpp"
#include "gate/probes/read/kernel_names.hpp"
#include "gate/probes/read/runtime_api.hpp"
#include "gate/profile/assemble.hpp"
#include "gate/sys/files.hpp"
#include "gate/sys/process.hpp"

namespace weir::run {

// How the instructions of a cell are counted.
enum class CountInstructions { perf, valgrind };

// A GPU that is not there, and the driver that answers in its place.
// What stands in for a runtime's libraries beside one program.
struct RuntimeFiles {
  std::string kernels{};  // absolute; its kernels
  // For a Python environment: names of the twin's library to load first, and the library (absolute)
  // of functions that the twin lacks.
  std::vector<std::string> preloads{};
  std::string stubs{};
};

struct DeviceTwin {
  std::string device;     // its name as the driver reports it to the engine
  std::string title;      // for people
  std::string hash;       // hash of the description: counts depend on all of it
  std::string blob;       // absolute; the description as the driver reads it
  std::string driver;     // absolute; the driver's manifest; of a runtime the libraries' folder
  std::string compile{};  // compiler that the description names: "radv-navi31"
  // The API whose runtime libraries stand in; null: Vulkan's driver does. With it the code that the
  // GPU runs, and what belongs to the program (empty before that is known).
  const probes::RuntimeApi* runtime = nullptr;
  probes::CodeTarget target{};
  RuntimeFiles files{};
};

struct PreparedCell {
  config::Cell cell;
  profile::CellFacts facts;  // provenance without what only a run can tell
  std::string program;       // absolute
  std::string model;         // absolute
  std::string prompt_file;   // absolute, "" when none
  std::string folder;        // to run in: that of the config, or its counterpart in a checkout
  // Variables of weir's own environment with another value: those that lead into that checkout.
  config::Environment moved_env{};
  // The user's work tree, for a base that has a checkout of its own: code there is the candidate's.
  // For a candidate an environment with copies of packages that it edits.
  std::optional<sys::WatchedFolder> watched{};
  std::uint64_t model_bytes = 0;
  std::string program_stamp;        // differs when the program was built again
  std::vector<std::string> probes;  // attached in the counted pass; those that see the device
  std::vector<probes::ShaderFile> shaders;  // files that name kernels
  bool counts_work = true;                  // some probe sees it, or the engine reports counts
  std::optional<CountInstructions> instructions{};  // in processes of their own
  bool host = false;                                // its system calls are counted, in the same way
  bool python = false;                              // calls of Python's functions, too
  std::string valgrind{};                           // absolute, where it is what counts them
  std::int64_t threads = 1;                         // value of {threads} if nothing else runs
  std::optional<DeviceTwin> twin{};
  std::string compile{};  // compiler for the kernels that the counted pass records; "": none
  // The device is the CPU, or a driver that runs on it: times need the processors alone, and
  // counted processes may run side by side.
  bool on_cpu = true;
  // Why nothing can be run, ready to show: the device is not there. The cell is then an error.
  std::optional<std::string> unavailable;

  // The value of {threads}. Counted processes that share the processors get one thread each, unless
  // the config says otherwise. Counts do not depend on it, and threads that wait by spinning take
  // the processors from each other (measured: half the time and none of the scatter).
  [[nodiscard]] std::int64_t threads_in(profile::Pass pass) const {
    return pass == profile::Pass::counted && on_cpu && cell.threads == 0 ? 1 : threads;
  }
};

// A cell's fingerprint: what must be the same for stored counts to be of the same cell.

// The version of the rules of what is counted how (docs/explanation/counting.md); part of every
// fingerprint.
inline constexpr std::string_view k_counting_rules = "1";
inline constexpr const char* k_counting_rules_part = "counting rules";

struct ModelFacts {
  std::string header_hash;  // GGUF header, or the beginning of other files
  std::uint64_t bytes = 0;  // all files of a folder together
};
// Reads no more than the header. A folder is known by its files' names and sizes and the contents
// of its config.json. Fails with Code::data on a file named .gguf that is none, Code::io.
[[nodiscard]] Result<ModelFacts> read_model_facts(const sys::Files& files, const std::string& path);

// The files of a model: the file with the other parts of it ("m-00001-of-00003.gguf"), or those of
// a folder. None of an engine that loads no model.
[[nodiscard]] std::vector<std::string> model_files(const sys::Files& files,
                                                   const std::string& path);

// The part of a device twin's fingerprint that tells its description.
inline constexpr const char* k_device_description = "device description";

// Fills in what the configuration alone says of a cell: what it is, and what may run on the CPU.
void describe(const config::Cell& cell, profile::CellFacts& facts);

// name -> short hash: the cell's identity, "model header", "model size", "prompt file" (where there
// is one), "counting rules"; and k_variables, but for a private cell.
[[nodiscard]] std::map<std::string, std::string> fingerprint_parts(const config::Cell& cell,
                                                                   const ModelFacts& model,
                                                                   std::string_view prompt_text);
// From its parts.
[[nodiscard]] std::string combine_fingerprint(const std::map<std::string, std::string>& parts);

}  // namespace weir::run
