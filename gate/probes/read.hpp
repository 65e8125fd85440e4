// Reads what probes counted: the files of gate/probes/format.h, hostile until proven otherwise.
//
// An engine writes into its file as long as it runs and may have been killed at any moment; every
// count in it is right nevertheless. Pure but for collect().
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gate/base/result.hpp"
#include "gate/probes/format.h"
#include "gate/profile/counts.hpp"
#include "gate/sys/files.hpp"

namespace weir::probes {

using Counters = std::array<std::uint64_t, WEIR_COUNTERS>;  // by weir_probe_counter

struct ProbeDevice {
  std::string api, type, device_class, name, driver;
  std::uint32_t vendor = 0, device = 0, driver_id = 0, driver_version = 0;
  std::uint64_t feature_hash = 0;
  Counters counters{};  // calls that belong to no single queue: waits, polls
};

struct ProbeQueue {
  std::uint32_t device = 0;  // index into devices
  std::uint32_t family = 0, index = 0, flags = 0;
  Counters counters{};
};

struct ProbeKernel {
  std::string name, entry_point;
  std::uint32_t device = 0;
  bool named = false;  // by the program
  std::uint64_t hash = 0;
  std::uint64_t dispatches = 0;
};

// One process. Text is printable UTF-8.
struct ProbeFile {
  std::string probe;
  std::string process;
  std::uint32_t pid = 0, parent_pid = 0;
  std::uint32_t flags = 0;
  std::vector<ProbeDevice> devices;
  std::vector<ProbeQueue> queues;
  std::vector<ProbeKernel> kernels;  // [0] is what no kernel is known for
};

// Fails with Code::data on anything that is not a whole, consistent file: wrong magic (also of a
// process that was killed while it made the file), another version, sections out of bounds, indices
// of devices that are not there. Unknown sections and longer entries are fine.
[[nodiscard]] Result<ProbeFile> read_probe_file(std::string_view bytes);

// Did it submit anything to a device?
[[nodiscard]] bool did_work(const ProbeFile& file);

// The processes of one engine run together, for one probe; files of other probes are left out.
// Counted are dispatches, barriers, copies, submits, syncs, and, not gated: waits, polls,
// indirect_dispatches, command_buffers. Devices are those that received work; where none did, those
// that were made, so that "made but idle" can be told from "never made" (no devices at all).
// Kernels named differently on several devices or processes add up by name.
[[nodiscard]] profile::ProbeCounts merge(std::string_view probe, std::span<const ProbeFile> files);

// Reads and merges all files of `probe` in `folder`; unreadable ones become warnings. Fails only
// where the folder cannot be listed (Code::io).
[[nodiscard]] Result<profile::ProbeCounts> collect(const sys::Files& files,
                                                   const std::string& folder,
                                                   std::string_view probe);

}  // namespace weir::probes
