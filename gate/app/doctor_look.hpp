// What doctor asks other programs: weir-devices and nvidia-smi, each in a process of its own with a
// time limit. One that is missing, crashes or hangs is an answer, never an error.
#pragma once

#include <vector>

#include "gate/report/texts.hpp"
#include "gate/sys/files.hpp"
#include "gate/sys/interrupts.hpp"
#include "gate/sys/machine_health.hpp"

namespace weir::app {

// Fills probes and probes_error: those whose files are installed.
void look_at_probes(const sys::Files& files, report::Diagnosis& diagnosis);
// Fills devices and device_errors.
void look_at_devices(const sys::Files& files, const sys::Stop& stop, report::Diagnosis& diagnosis);
// Fills always_layers and layers, from the manifests in the Vulkan loader's usual places.
void look_at_layers(const sys::Files& files, report::Diagnosis& diagnosis);
// Empty without NVIDIA's driver.
[[nodiscard]] std::vector<sys::GpuHealth> look_at_nvidia_gpus(const sys::Files& files,
                                                              const sys::Stop& stop);

}  // namespace weir::app
