// The common part of the programs that weir replay starts: a recording and a few numbers on the
// command line, a line of JSON before and after each node, and how long one is computed.
//
// Programs of their own, since they run code and shapes that come from elsewhere: weir goes on
// after the node that ended one. Nothing in the recording is trusted beyond what
// gate/profile/replay.hpp and shapes.cpp check.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "gate/base/json.hpp"
#include "gate/profile/replay.hpp"

namespace weir::replay {

// How a node is computed: sizes of this machine and of the whole step.
struct ReplayLimits {
  std::int64_t cache_bytes = 0;     // the last-level cache
  std::int64_t constant_bytes = 0;  // weights and caches of the whole step together
  std::int64_t max_bytes = 0;       // for one node's graph
  double visible_mask_share = 1;    // share of a mask's places that an op reads, 0 to 1
  std::int64_t min_copies = 1;      // copies of the node in one graph, memory permitting
  bool any_shape = false;           // computes ops without a rule for their shapes, too
};

struct ProgramOptions {
  std::string file;        // the recording, of one step
  std::string engine, on;  // folder of libraries, backend; "": not given
  int threads = 1;
  std::size_t from = 0;  // the first node
  double seconds = 0.2;  // for each node
  ReplayLimits limits;
  bool any_version = false;
};

// The error of a node, or of all nodes, that cannot be computed: its message is the reason.
template <class... Args>
auto left_out_error(fmt::format_string<Args...> format, Args&&... args) {
  return fail(Code::unavailable, format, std::forward<Args>(args)...);
}

// A node, ready to be computed some times in a row.
class Work {
 public:
  virtual ~Work() = default;
  [[nodiscard]] virtual std::int64_t copies() const = 0;
  // Computes all copies once. Returns false if the engine reports a failure.
  [[nodiscard]] virtual bool compute() = 0;
};

struct OpenedDevice {
  Json identity;                  // "library", "version", …, for the first line
  bool waits_for_device = false;  // each graph is submitted to a device and waited for
  // Makes the work of a node; Code::unavailable with the reason if it cannot be computed.
  std::function<Result<std::unique_ptr<Work>>(const profile::ReplayNode&, const ReplayLimits&)>
      make;
};
using OpenDevice =
    std::function<Result<OpenedDevice>(const ProgramOptions&, const profile::Replay&)>;

// Prints a line on standard output, unbuffered.
void print(const Json& line);

// Does all of main(). Returns 0, or 1 after the reason as the last line.
[[nodiscard]] int run_program(int argc, char** argv, const OpenDevice& open);

// Returns how many copies of a node one graph computes. A step has the node `count` times; a copy
// has `each` bytes of its own (0: no weights), all have `shared` bytes together. More copies are
// needed if the weights would stay in a cache that the whole step does not fit into.
// Code::unavailable if it does not fit into limits.max_bytes.
[[nodiscard]] Result<std::int64_t> copies_needed(std::int64_t count, std::int64_t each,
                                                 std::int64_t shared, const ReplayLimits& limits);

// Returns a place for look-up `number` in a table of `places` (at least 1): places are far apart,
// and each comes once before one comes again.
[[nodiscard]] std::int64_t spread_index(std::int64_t number, std::int64_t places);

// --- Checks that a node's shapes fit its op. Kernels trust them: with wrong ones they read and
// write beyond their tensors. Pure.

// The bytes and elements of one block of a ggml type; 0 and 0 for an unknown type.
struct TypeSize {
  std::int64_t bytes = 0;
  std::int64_t elements = 0;
};

// Returns where a tensor ends, in bytes from the begin of its root. Nothing if that overflows, or
// if the tensor is empty, has no whole blocks, or has over 16 times as many elements as bytes.
[[nodiscard]] std::optional<std::int64_t> end_of(const profile::ReplayTensor& tensor,
                                                 const TypeSize& type);

// Returns "" if kernels of the op may trust the strides, else the reason: numbers must not overlap,
// and rows of a result must follow each other, as some kernels write it as one run of bytes.
[[nodiscard]] std::string layout_problem(const std::string& op, const profile::ReplayTensor& tensor,
                                         const TypeSize& type);

// Returns "" if the shapes fit, else the reason: "weir has no rule for the shapes of SSM_SCAN".
[[nodiscard]] std::string shape_problem(const profile::ReplayNode& node);
// Returns true if there is a rule for the shapes of the op.
[[nodiscard]] bool has_rule(const std::string& op);

}  // namespace weir::replay
