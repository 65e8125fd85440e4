// Reads what probes counted: the files of gate/probes/format.h, hostile until proven otherwise.
//
// An engine writes into its file as long as it runs and may have been killed at any moment; every
// count in it is right nevertheless. Pure but for collect().
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gate/base/result.hpp"
#include "gate/probes/format.h"
#include "gate/profile/counts.hpp"
#include "gate/sys/files.hpp"

namespace weir::probes {

// Entries of the file that hold no text are as they stand there.
using ProbeQueue = weir_probe_queue;
using ProbeGraph = weir_probe_graph;
using ProbeLaunch = weir_probe_launch;
using ProbeCode = weir_probe_code;
using ProbeStep = weir_probe_step;

struct ProbeDevice {
  std::string api, type, device_class, name;
  // By weir_probe_counter; calls that belong to no single queue: waits, polls.
  std::array<std::uint64_t, WEIR_COUNTERS> counters{};
};

// What is computed on it is computed by the CPU: ggml's own CPU backend, or what an engine declares
// as such. A device of Vulkan, OpenCL or another API that is made of the processor (lavapipe) is
// the device that was asked for, not a fall back.
[[nodiscard]] bool is_cpu_backend(const ProbeDevice& device);

struct ProbeKernel {
  std::string name;
  std::uint32_t device = 0;  // index into devices
  bool named = false;        // by the program
  std::uint64_t dispatches = 0;
};

struct ProbeOperand {
  std::string type;
  std::array<std::int64_t, 4> ne{};
};

struct ProbeOp {
  std::string op;
  std::uint32_t graph = 0;   // index into graphs
  std::uint32_t device = 0;  // index into devices
  bool shaped = false;       // operands are known: the sources, then the result
  std::vector<ProbeOperand> operands;
  std::uint64_t count = 0;
  std::uint64_t hash = 0;  // what scopes of an engine's marks name it by
};

// "q4_0,f32->f32" and "256x768,256->768"; "" for an op without its operands.
[[nodiscard]] std::string type_text(const ProbeOp& op);
[[nodiscard]] std::string shape_text(const ProbeOp& op);

struct ProbeTransfer {
  std::uint32_t kind = 0;  // weir_probe_transfer_kind, or one not known yet
  std::string from, to;
  std::uint64_t calls = 0, bytes = 0;
};

// One process. Text is printable UTF-8.
struct ProbeFile {
  std::string probe;
  std::string process;
  std::uint32_t pid = 0, parent_pid = 0;
  std::uint32_t flags = 0;
  std::vector<ProbeDevice> devices;
  std::vector<ProbeQueue> queues;
  std::vector<ProbeKernel> kernels;               // [0] is what no kernel is known for
  std::map<std::string, std::uint64_t> counters;  // of the process, by base name
  std::vector<ProbeOp> ops;
  std::vector<ProbeGraph> graphs;  // [0] is what there was no room for
  std::vector<ProbeTransfer> transfers;
  std::vector<ProbeLaunch> launches;  // [0] is what there was no room for
  std::vector<ProbeCode> codes;       // the same
  std::vector<ProbeStep> steps;       // ops in order, graph by graph
};

// Fails with Code::data on anything that is not a whole, consistent file: wrong magic (also of a
// process that was killed while it made the file), another version, sections out of bounds, indices
// of devices or graphs that are not there, impossible counts. Unknown sections and longer entries
// are fine.
[[nodiscard]] Result<ProbeFile> read_probe_file(std::string_view bytes);

// Did it submit anything to a device, or compute a graph?
[[nodiscard]] bool did_work(const ProbeFile& file);

// The processes of one engine run together, for one probe; files of other probes are left out.
// Counted are dispatches, barriers, copies, submits, syncs, and, not gated: waits, polls,
// indirect_dispatches, command_buffers. Devices are those that received work; where none did, those
// that were made, so that "made but idle" can be told from "never made" (no devices at all).
// Kernels named differently on several devices or processes add up by name. What a probe counts by
// name ("ggml": graphs, splits, cpu_ops, …) is added up as it is, but for ops, cpu_ops and splits
// where a process had graphs whose ops could not be listed: no number is better than one too low.
// Graphs of several processes that are alike in everything but their counts are one.
[[nodiscard]] profile::ProbeCounts merge(std::string_view probe, std::span<const ProbeFile> files);

// The files of a folder whose names begin and end so, by name. Code::io where it cannot be listed.
[[nodiscard]] Result<std::vector<std::string>> files_named(const sys::Files& files,
                                                           const std::string& folder,
                                                           std::string_view begin,
                                                           std::string_view end);

// Reads and merges all files of `probe` in `folder`; unreadable ones become warnings. Fails where
// the folder cannot be listed (Code::io), or where a process says that it could not be listened to
// at all (Code::unavailable).
[[nodiscard]] Result<profile::ProbeCounts> collect(const sys::Files& files,
                                                   const std::string& folder,
                                                   std::string_view probe);

// The same of all `names`, and behind each what its check counted (unit/device_api.hpp), if
// anything. Where only the check saw a device its counts are the probe's, with a warning.
[[nodiscard]] Result<std::vector<profile::ProbeCounts>> collect_all(
    const sys::Files& files, const std::string& folder, std::span<const std::string> names);

}  // namespace weir::probes
