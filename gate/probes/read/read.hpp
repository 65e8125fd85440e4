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
#include "gate/config/settings.hpp"
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
using ProbeRead = weir_probe_read;

struct ProbeDevice {
  std::string api, type, device_class, name;
  // By weir_probe_counter; calls that belong to no single queue: waits, polls.
  std::array<std::uint64_t, WEIR_COUNTERS> counters{};
};

// True for ggml's own CPU backend, and for a device that an engine declares as the CPU. A device of
// Vulkan or another API that runs on the CPU (lavapipe) is the requested device, not a fallback.
[[nodiscard]] bool is_cpu_backend(const ProbeDevice& device);

struct ProbeKernel {
  std::string name;
  std::uint32_t device = 0;  // index into devices
  bool named = false;        // the program gave the name
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
  std::uint64_t hash = 0;  // scopes of an engine's marks refer to the op by it
};

// "q4_0,f32->f32" and "256x768,256->768"; "" for an op without its operands.
[[nodiscard]] std::string type_text(const ProbeOp& op);
[[nodiscard]] std::string shape_text(const ProbeOp& op);

struct ProbeTransfer {
  std::uint32_t kind = 0;  // weir_probe_transfer_kind, or a later one
  std::string from, to;
  std::uint64_t calls = 0, bytes = 0;
};

// A function that Python called: in its main thread, and in others.
struct ProbeFunction {
  std::string name;
  std::uint32_t flags = 0;
  std::uint64_t calls = 0, calls_in_threads = 0, lines = 0;
  bool waits = false;  // gives up the processor in at least half of its calls
};

// One process. Text is printable UTF-8.
struct ProbeFile {
  std::string probe;
  std::string process;
  std::string command;  // its command line, or the name that it gave itself; "": unknown
  std::uint32_t pid = 0, parent_pid = 0;
  std::uint32_t flags = 0;
  std::vector<ProbeDevice> devices;
  std::vector<ProbeQueue> queues;
  std::vector<ProbeKernel> kernels;               // [0]: dispatches of unknown kernels
  std::map<std::string, std::uint64_t> counters;  // the process's, by base name
  std::vector<ProbeOp> ops;
  std::vector<ProbeGraph> graphs;  // [0]: all graphs that found no room
  std::vector<ProbeTransfer> transfers;
  std::vector<ProbeLaunch> launches;     // [0]: all launches that found no room
  std::vector<ProbeCode> codes;          // [0]: all code that found no room
  std::vector<ProbeStep> steps;          // ops in order, graph by graph
  std::vector<ProbeRead> reads;          // of few bytes, by the kernel that wrote them
  std::vector<ProbeFunction> functions;  // of Python; [0]: all that found no room
};

// Fails with Code::data unless the file is complete and consistent: wrong magic (also of a process
// that was killed while it made the file), another version, sections or indices out of bounds,
// impossible counts. Unknown sections and longer entries are fine.
[[nodiscard]] Result<ProbeFile> read_probe_file(std::string_view bytes);

// True if the process submitted work to a device, or computed a graph.
[[nodiscard]] bool did_work(const ProbeFile& file);

// Sums one probe's counts over the processes of an engine run; files of other probes are left out.
//
// - Counts: dispatches, barriers, copies, submits, syncs, and, not gated: waits, polls,
//   indirect_dispatches, command_buffers.
// - Devices: those that received work. If none did, those that were created: "created but idle"
//   differs from "never created" (no devices at all).
// - Kernels are summed by name, over devices and processes.
// - Counters that a probe names itself ("ggml": graphs, splits, cpu_ops, …) are summed as they are.
//   Without ops, cpu_ops and splits if some graph's ops could not be listed: no number is better
//   than one too low.
// - Reads of few bytes are functions, named by the kernel that wrote the bytes last.
// - Graphs of several processes that differ only in their counts are one.
[[nodiscard]] profile::ProbeCounts merge(std::string_view probe, std::span<const ProbeFile> files);

// Merges one role after the other: processes of other names count nothing. Those of one role do
// equal work, so that the first by its name stands for all; what another one does more or less is
// counted as rank_differences, by name, and how many there are as processes. The first role that
// worked has the probe's name, others "cuda@rank". Without roles, all processes are merged.
[[nodiscard]] std::vector<profile::ProbeCounts> merge_by_role(
    std::string_view probe, std::span<const ProbeFile> files,
    std::span<const config::ProcessRole> roles);

// Paths of a folder's files whose names start with `begin` and end with `end`. Fails with Code::io
// where the folder cannot be listed.
[[nodiscard]] Result<std::vector<std::string>> list_files(const sys::Files& files,
                                                          const std::string& folder,
                                                          std::string_view begin,
                                                          std::string_view end);

// Reads the probe's file of each process. Unreadable files become warnings. Fails as collect()
// does.
[[nodiscard]] Result<std::vector<ProbeFile>> read_processes(const sys::Files& files,
                                                            const std::string& folder,
                                                            std::string_view probe,
                                                            std::vector<std::string>& warnings);

// Reads and merges all files of `probe` in `folder`; unreadable ones become warnings. Fails where
// the folder cannot be listed (Code::io), or where a process says that it could not be listened to
// at all (Code::unavailable).
[[nodiscard]] Result<profile::ProbeCounts> collect(const sys::Files& files,
                                                   const std::string& folder,
                                                   std::string_view probe);
// The same for each role, at least one entry.
[[nodiscard]] Result<std::vector<profile::ProbeCounts>> collect_by_role(
    const sys::Files& files, const std::string& folder, std::string_view probe,
    std::span<const config::ProcessRole> roles);

// collect() for all `names`. A probe with a second one to check it (unit/device_api.hpp) is
// followed by the check's counts, if there are any. Where only the check saw a device, its counts
// replace the probe's, with a warning.
[[nodiscard]] Result<std::vector<profile::ProbeCounts>> collect_all(
    const sys::Files& files, const std::string& folder, std::span<const std::string> names,
    std::span<const config::ProcessRole> roles = {});

}  // namespace weir::probes
