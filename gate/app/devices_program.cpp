#include "gate/app/devices_program.hpp"

#include "gate/probes/read/locate.hpp"
#include "gate/sys/files.hpp"
#include "gate/sys/system.hpp"

namespace weir::app {

Result<sys::Finished> ask_devices_program(const AskDevices& ask, const sys::Stop& stop) {
  const sys::RealFiles files;
  WEIR_TRY(const probes::Places places, probes::locate(files));
  if (places.devices_program.empty() && sys::k_on_macos) {
    return fail(Code::unavailable,
                "weir-devices, which asks Vulkan and OpenCL for their devices, is not on macOS");
  }
  if (places.devices_program.empty()) {
    return fail(Code::unavailable,
                "weir-devices is missing beside the probes in {}: build or install weir again",
                places.probes);
  }
  sys::RealProcesses processes;
  sys::ProcessSpec spec;
  spec.argv = {places.devices_program};
  spec.argv.insert(spec.argv.end(), ask.arguments.begin(), ask.arguments.end());
  spec.env = ask.env;
  spec.timeout_seconds = ask.patience_seconds;
  spec.output_limit = ask.output_limit;
  WEIR_TRY(sys::Finished finished, processes.run(spec, stop));
  if (finished.ended == sys::HowEnded::interrupted) return fail(Code::interrupted, "interrupted");
  if (finished.ended == sys::HowEnded::not_started) {
    return fail(Code::unavailable, "{}: can not be run: {}", places.devices_program,
                finished.start_error);
  }
  return finished;
}

}  // namespace weir::app
