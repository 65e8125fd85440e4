// What the programs have in common that weir replay starts: a recording and a few numbers on the
// command line, a line of JSON before and behind each node, and how long one is computed.
//
// Programs of their own, since they run code and shapes that come from elsewhere: weir goes on
// behind a node that ended one. Nothing in the recording is trusted beyond what
// gate/profile/replay.hpp and shapes.hpp check.
#pragma once

#include <functional>
#include <memory>
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

// A node, ready to be computed some times in a row.
class Work {
 public:
  Work() = default;
  virtual ~Work() = default;
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;
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

// All of main(): 0, or 1 with the reason as the last line.
[[nodiscard]] int run_program(int argc, char** argv, const Open& open);

// How often a node is computed in a row that a step has `count` times, where each copy takes `each`
// bytes of its own (0: it has no weights) and all take `shared` together: more often where its
// weights would otherwise stay in a cache that the whole step does not fit into.
// Code::unavailable where it does not fit into the memory that it may take.
[[nodiscard]] Result<std::int64_t> copies_of(std::int64_t count, std::int64_t each,
                                             std::int64_t shared, const Wish& wish);

}  // namespace weir::replay
