// What macOS says of the machine: sysctlbyname(3), host_statistics(3). Built, not run.
#include <mach/mach.h>
#include <sys/utsname.h>

#include "gate/sys/apple_facts.hpp"
#include "gate/sys/apple_sysctls.hpp"
#include "gate/sys/machine.hpp"

namespace weir::sys {

Machine read_machine(const Files& /*files*/) {
  utsname system{};
  uname(&system);
  return apple_machine(real_sysctls(), system.machine);
}

std::optional<CpuTicks> RealMachineLoad::ticks() const {
  host_cpu_load_info load{};
  mach_msg_type_number_t count = HOST_CPU_LOAD_INFO_COUNT;
  const mach_port_t host = mach_host_self();
  const kern_return_t answer =
      host_statistics(host, HOST_CPU_LOAD_INFO, reinterpret_cast<host_info_t>(&load), &count);
  mach_port_deallocate(mach_task_self(), host);
  if (answer != KERN_SUCCESS) return std::nullopt;
  return apple_ticks(load.cpu_ticks[CPU_STATE_USER], load.cpu_ticks[CPU_STATE_SYSTEM],
                     load.cpu_ticks[CPU_STATE_IDLE], load.cpu_ticks[CPU_STATE_NICE]);
}

std::optional<std::int64_t> RealMachineLoad::memory_available() const {
  vm_statistics64 pages{};
  mach_msg_type_number_t count = HOST_VM_INFO64_COUNT;
  const mach_port_t host = mach_host_self();
  vm_size_t page_bytes = 0;
  const bool known =
      host_page_size(host, &page_bytes) == KERN_SUCCESS &&
      host_statistics64(host, HOST_VM_INFO64, reinterpret_cast<host_info64_t>(&pages), &count) ==
          KERN_SUCCESS;
  mach_port_deallocate(mach_task_self(), host);
  if (!known) return std::nullopt;
  return apple_available(pages.free_count, pages.inactive_count, page_bytes);
}

}  // namespace weir::sys
