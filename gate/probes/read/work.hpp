// What engines computed, of all processes together: kinds of graphs, their ops, moved bytes.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "gate/probes/read/read.hpp"

namespace weir::probes {

class Work {
 public:
  void add(const ProbeFile& file);
  // Sorted, so that equal work gives equal text. Ops of one kind that come in very many shapes (a
  // context that grows by one each time) are told as one, with the shape "*".
  void tell(profile::ProbeCounts* out) const;

 private:
  // rows, ops, cpu_ops, splits, hash: rows first, since people look for the graph of one token.
  using GraphKey =
      std::tuple<std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t>;
  struct OpKey {
    GraphKey graph;
    std::string op, type, backend;
    bool on_cpu = false;
    auto operator<=>(const OpKey&) const = default;
  };
  using Shapes = std::map<std::string, std::int64_t>;  // shape -> count

  std::map<GraphKey, profile::GraphCount> graphs_;
  std::map<OpKey, Shapes> ops_;
  // kind, from, to -> calls, bytes
  std::map<std::tuple<std::string, std::string, std::string>, std::pair<std::int64_t, std::int64_t>>
      transfers_;
};

// Adds, but stays below 2^63 whatever files say.
void add_count(std::int64_t* sum, std::uint64_t amount);

// "q4_0,f32->f32" and "256x768,256->768"; "" for an op without its operands.
[[nodiscard]] std::string type_text(const ProbeOp& op);
[[nodiscard]] std::string shape_text(const ProbeOp& op);

}  // namespace weir::probes
