// The counts of probes in one engine run (all its processes merged).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "gate/base/fields.hpp"
#include "gate/base/result.hpp"

namespace weir::profile {
// A device that received work, as the probe saw it.
struct ProbedDevice {
  std::string api;           // "vulkan"
  std::string name;          // "llvmpipe (LLVM 15.0.6, 256 bits)"
  std::string type;          // "cpu", "discrete", "integrated", "virtual", "other"
  std::string device_class;  // file name safe: "vulkan-10005-0-d-1-0a1b2c3d"

  friend bool operator==(const ProbedDevice&, const ProbedDevice&) = default;
};

// Ops of one kind, in one kind of graph, on one backend of the engine.
struct OpCount {
  std::string op;          // "MUL_MAT"
  std::string type;        // types of the sources and the result: "q4_0,f32->f32"; "" if unknown
  std::string shape;       // in the same order, without trailing ones: "256x768,256->768"
  std::string backend;     // "Vulkan0"
  bool on_cpu = false;     // the backend computes on the host, regardless of its name
  std::int64_t graph = 0;  // index into ProbeCounts::graphs
  std::int64_t count = 0;  // all computations of the graph together
  std::string api{};       // of the backend's device: "vulkan", or what the engine declared; "":
                           // unknown

  friend bool operator==(const OpCount&, const OpCount&) = default;
};

// The shape of ops that come in too many to be listed one by one.
inline constexpr std::string_view k_any_shape = "*";
// "256x64" -> {256, 64}: up to four sizes, each from 1 to 2^40; nothing when it is no such shape.
[[nodiscard]] std::optional<std::vector<std::uint64_t>> sizes_of(std::string_view shape);

// Returns true for a probe that counts from outside of an engine. Other sources of counts are an
// engine's own word: its output, and its marks (weir/instrument.h).
[[nodiscard]] bool counts_from_outside(std::string_view source);

// Identifies a kind of op, regardless of the graph it is in.
struct OpKey {
  std::string op, type, shape, backend;
  bool on_cpu = false;
  std::string api{};

  friend auto operator<=>(const OpKey&, const OpKey&) = default;
};
[[nodiscard]] inline OpKey op_key(const OpCount& op) {
  return {op.op, op.type, op.shape, op.backend, op.on_cpu, op.api};
}

// One kind of graph: the same ops on the same backends in the same order for as many rows.
struct GraphCount {
  std::int64_t rows = 0;      // tokens of a language model's batch; 0 when unknown
  std::int64_t computed = 0;  // how often
  std::int64_t ops = 0;       // each time, as are these two
  std::int64_t cpu_ops = 0;
  std::int64_t splits = 0;
  // All computations together, by base name: tensor_copies, tensor_sets, tensor_gets, copied_bytes,
  // backend_syncs; each from the end of the graph before.
  std::map<std::string, std::int64_t> sums{};
  // How often the ops of each fusion (unit/fusions.hpp) stand in a row among ops of devices, each
  // time. Absent if the order of the ops is not known.
  std::optional<std::map<std::string, std::int64_t>> fusible{};

  friend bool operator==(const GraphCount&, const GraphCount&) = default;
};

// Bytes that the engine asked to be moved between kinds of memory.
struct TransferCount {
  std::string kind;  // "copy", "set", "get", "fill"
  std::string from;  // "CPU", "Vulkan_Host", "program"; "" when unknown
  std::string to;
  std::int64_t calls = 0;
  std::int64_t bytes = 0;

  friend bool operator==(const TransferCount&, const TransferCount&) = default;
};

// Facts about one piece of code that kernels run, besides its hash.
struct CodeFacts {
  std::string source{};  // hash of the code alone, without what specializes it
  // Options that specialize it: "constant 2" -> "64", "subgroup size" -> "32".
  std::map<std::string, std::string> options{};
  // Costs by name as the device's compiler reports them (unit/kernel_cost.hpp): "registers" -> 84.
  // Absent is absent.
  std::map<std::string, std::int64_t> costs{};
  std::string not_compiled{};  // why there are none, where a compiler was asked

  friend bool operator==(const CodeFacts&, const CodeFacts&) = default;
};

// The prefix of a system call's name among functions.
inline constexpr std::string_view k_system_call = "system call ";
// The same of a read of few bytes from a device: "read back 8 bytes of reduce_kernel".
inline constexpr std::string_view k_read_back = "read back ";
// The same of a function that Python's main thread called, and of lines that ran in one.
inline constexpr std::string_view k_host_call = "call of ";
inline constexpr std::string_view k_host_lines = "lines of ";
// The same of a function that other threads of Python called.
inline constexpr std::string_view k_thread_call = "call in a thread of ";
// The same of a function in C that gives up the processor in at least half of its calls.
inline constexpr std::string_view k_host_wait = "wait in ";
// The function in such a name: "time.sleep" of "call of time.sleep".
[[nodiscard]] std::string_view function_of(std::string_view name);
// Probe that counts calls of Python's functions.
inline constexpr const char* k_python = "python";

// The same of what equal processes count differently: "rank difference of A and B: syncs".
inline constexpr std::string_view k_rank_difference = "rank difference of ";

// Names a probe's counts of a further role of processes: "cuda@rank". The role in such a name; ""
// if it names none.
[[nodiscard]] std::string probe_of_role(std::string_view probe, std::string_view role);
[[nodiscard]] std::string_view role_of_probe(std::string_view probe);

struct ProbeCounts {
  std::string probe;                            // "vulkan"
  std::vector<ProbedDevice> devices;            // devices that were created; sorted by class
  std::map<std::string, std::int64_t> counts;   // by base name ("dispatches"), summed over devices
  std::map<std::string, std::int64_t> kernels;  // kernel name -> dispatches
  bool kernels_named = false;                   // every kernel's name was given by the program
  // Dispatches, and groups of all of them, of named kernels whose code is known; by code_key().
  std::map<std::string, std::int64_t> codes{}, code_groups{};
  std::vector<std::string> warnings;  // "kernel table overflowed: 12 kernels counted as (other)"
  // Filled by probes that see what an engine computes ("ggml"); sorted, without entries of 0.
  std::vector<GraphCount> graphs{};
  std::vector<OpCount> ops{};
  std::vector<TransferCount> transfers{};
  // Function -> instructions that it took itself; small ones are in "(other)". System calls are
  // here under k_system_call and their name, reads of few bytes under k_read_back, calls and lines
  // of Python under k_host_call and k_host_lines.
  std::map<std::string, std::int64_t> functions{};
  std::map<std::string, CodeFacts> code_facts{};  // by the hash in code_key()
  std::string compiler{};  // compiler of code_facts: "radv-navi31, Mesa 25.0.7"; "": none

  friend bool operator==(const ProbeCounts&, const ProbeCounts&) = default;
};

void fields(Fields& io, CodeFacts& code);

// "mul_mat_vec_f16@00c0ffee00c0ffee": a kernel with the hash of its code; the former of that, and
// the latter.
[[nodiscard]] std::string code_key(std::string_view kernel, std::uint64_t hash);
[[nodiscard]] std::string_view kernel_of_code(std::string_view key);
[[nodiscard]] std::string hash_of_code(std::string_view key);
[[nodiscard]] std::string code_hash(std::uint64_t hash);

// Counts between two readings of a process that goes on: those of a server's requests alone,
// without its start and its warm-up. Pure.

// Returns `after` − `before`, probe by probe; a probe that is not in `before` had seen nothing by
// then. Counts that did not change are 0; kernels, graphs, ops and transfers that did not occur in
// between are left out, and so are functions. Devices, names and warnings are those of `after`.
// Graphs are matched by their ops, not by their place in the list.
// Fails with Code::data if a count went back: then these are not readings of one process.
[[nodiscard]] Result<std::vector<ProbeCounts>> counts_between(std::span<const ProbeCounts> before,
                                                              std::span<const ProbeCounts> after);

}  // namespace weir::profile
