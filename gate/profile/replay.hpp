// The ops of recorded graphs, each with all that computing it again without the model takes
// (weir.ops/1): what weir replay reads. A recording is hostile: what is read has numbers within
// bounds, and whether shapes fit their op is for those to say who know ggml's types. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "gate/base/json_fwd.hpp"
#include "gate/base/result.hpp"

namespace weir::profile {

inline constexpr std::size_t k_replay_params =
    16;  // 32-bit words that an op is told beside tensors
inline constexpr std::int64_t k_replay_sources = 10;

// Bytes that tensors are views of.
struct ReplayRoot {
  std::int64_t bytes = 0;
  bool constant = false;  // no op makes it: weights, caches. Each node of a step has its own
  std::string memory;     // the kind that it lay in: "CPU", "CPU_Mapped", "CPU_REPACK"; "" unknown

  friend bool operator==(const ReplayRoot&, const ReplayRoot&) = default;
};

struct ReplayTensor {
  std::int64_t slot = 0;  // 0 the result, i + 1 source i
  std::string type;       // "q8_0"
  std::int64_t type_number = 0;
  std::array<std::int64_t, 4> ne{};  // elements
  std::array<std::int64_t, 4> nb{};  // strides in bytes
  std::int64_t offset = 0;           // in its root
  std::int64_t root = 0;             // index into ReplayNode::roots

  friend bool operator==(const ReplayTensor&, const ReplayTensor&) = default;
};

// Nodes of a step that differ in nothing but the bytes they compute with.
struct ReplayNode {
  std::string op;           // name of op_number: "UNARY"
  std::string description;  // "SILU"
  std::int64_t op_number = 0;
  std::array<std::int32_t, k_replay_params> params{};
  std::int64_t flags = 0;
  std::string backend;     // "CPU"
  std::string name;        // name of the first one: "Qcur-0"
  std::int64_t count = 1;  // how many in a step
  std::vector<ReplayRoot> roots;
  std::vector<ReplayTensor> tensors;  // empty: the probe could not look at it

  friend bool operator==(const ReplayNode&, const ReplayNode&) = default;
};

// All graphs of the same ops with the same shapes.
struct ReplayStep {
  std::int64_t rows = 0;   // tokens it computes, by its first look-up; 0 unknown
  std::int64_t views = 0;  // nodes that only look at bytes in another way: no work
  // Share of the places in masks of attention that are looked at, over all graphs: kernels skip the
  // others.
  std::optional<double> visible_mask_share;
  std::vector<double> seconds;  // time of each graph but the first, which also touches fresh memory
  std::vector<ReplayNode> nodes;

  friend bool operator==(const ReplayStep&, const ReplayStep&) = default;
};

struct Replay {
  std::string program;          // "llama-bench"
  std::string version, commit;  // ggml's; "" if it does not say
  std::string library;          // path of the ggml that computed; "" unknown
  std::optional<std::int64_t> threads;
  std::vector<ReplayStep> steps;
  std::vector<std::string> warnings;

  friend bool operator==(const Replay&, const Replay&) = default;
};

void fields(Fields& io, Replay& replay);
// Code::data with the place where it is no weir.ops/1 or has a number out of bounds.
[[nodiscard]] Result<Replay> replay_from_json(const Json& json);

// The step that stands for decoding: of one token, with most graphs timed; where none is of one
// token, the one that took most time. Nothing where there are none.
[[nodiscard]] std::optional<std::size_t> main_step(const Replay& replay);

// "256x64": without the sizes of 1 at the end.
[[nodiscard]] std::string sizes_text(const std::array<std::int64_t, 4>& ne);
// As ops are told elsewhere: "q8_0,f32->f32" and "256x64,256->64".
[[nodiscard]] std::string type_text(const ReplayNode& node);
[[nodiscard]] std::string shape_text(const ReplayNode& node);

}  // namespace weir::profile
