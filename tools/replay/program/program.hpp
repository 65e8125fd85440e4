// What the programs have in common that weir replay starts: a recording and a few numbers on the
// command line, a line of JSON before and behind each node, and how long one is computed.
//
// Programs of their own, since they run code and shapes that come from elsewhere: weir goes on
// behind a node that ended one. Nothing in the recording is trusted beyond what
// gate/profile/replay.hpp and shapes.cpp check.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "gate/base/json.hpp"
#include "gate/profile/replay.hpp"

namespace weir::replay {

struct Wish {
  std::int64_t cache_bytes = 0;     // of the last-level cache
  std::int64_t constant_bytes = 0;  // weights and caches of the whole step together
  std::int64_t most_bytes = 0;      // that one node's graph may take
  double mask_open = 1;             // share of the places in a mask that are looked at
  std::int64_t least_copies = 1;    // of the node in one graph, memory permitting
  bool any_shape = false;           // also of ops that weir has no rule for
};

struct ProgramOptions {
  std::string file;        // the recording, of one step
  std::string engine, on;  // folder of libraries, backend; "" not told
  int threads = 1;
  std::size_t from = 0;  // the node to begin with
  double seconds = 0.2;  // of each node
  Wish wish;
  bool any_version = false;
};

// Why a node, or everything, is left out.
template <class... Args>
auto left_out(fmt::format_string<Args...> format, Args&&... args) {
  return fail(Code::unavailable, format, std::forward<Args>(args)...);
}

// A node, ready to be computed some times in a row.
class Work {
 public:
  virtual ~Work() = default;
  [[nodiscard]] virtual std::int64_t copies() const = 0;
  // All copies once; false where the engine says that it failed.
  [[nodiscard]] virtual bool compute() = 0;
};

struct Opened {
  Json said;            // "library", "version", …, for the first line
  bool waited = false;  // a graph is handed to a device and waited for
  // Code::unavailable with why a node is left out.
  std::function<Result<std::unique_ptr<Work>>(const profile::ReplayNode&, const Wish&)> make;
};
using Open = std::function<Result<Opened>(const ProgramOptions&, const profile::Replay&)>;

// A line on standard output, at once.
void print(const Json& line);

// All of main(): 0, or 1 with the reason as the last line.
[[nodiscard]] int run_program(int argc, char** argv, const Open& open);

// How often a node is computed in a row that a step has `count` times, where each copy takes `each`
// bytes of its own (0: it has no weights) and all take `shared` together: more often where its
// weights would otherwise stay in a cache that the whole step does not fit into.
// Code::unavailable where it does not fit into the memory that it may take.
[[nodiscard]] Result<std::int64_t> copies_of(std::int64_t count, std::int64_t each,
                                             std::int64_t shared, const Wish& wish);

// --- Do a node's shapes fit its op? Kernels trust that they do: one that is told otherwise reads
// and writes beyond its tensors. Pure.

// Of a type of ggml's: bytes of a block, elements in it. 0, 0: there is no such type.
struct TypeSize {
  std::int64_t bytes = 0;
  std::int64_t elements = 0;
};

// Where a tensor ends in its root, counted from the root's begin; nothing where that is no number
// within bounds, or where the tensor is empty, has no whole blocks, or holds more than 16 times
// what its bytes are.
[[nodiscard]] std::optional<std::int64_t> end_of(const profile::ReplayTensor& tensor,
                                                 const TypeSize& type);

// "" where kernels of the op may trust the strides: numbers lie apart, and rows of a result lie
// behind each other, since some kernels write it as one run of bytes.
[[nodiscard]] std::string layout_problem(const std::string& op, const profile::ReplayTensor& tensor,
                                         const TypeSize& type);

// "" where they fit, else why they do not: "weir has no rule for the shapes of SSM_SCAN".
[[nodiscard]] std::string shape_problem(const profile::ReplayNode& node);
// Is there a rule for the op?
[[nodiscard]] bool has_rule(const std::string& op);

}  // namespace weir::replay
