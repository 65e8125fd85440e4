// A recorded node as a graph of the engine's ggml, with data of its own.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include <sys/mman.h>

#include "gate/base/find.hpp"

#include "tools/replay/ggml/ggml.hpp"

namespace weir::replay {
namespace {

using profile::ReplayNode;
using profile::ReplayTensor;

constexpr std::int64_t k_alignment = 256;  // no device asks for more
constexpr std::size_t k_slack = 4096;      // kernels may look a little beyond the last row
constexpr int k_usage_weights = 1;         // GGML_BACKEND_BUFFER_USAGE_WEIGHTS

std::int64_t round_up(std::int64_t bytes) {
  return (bytes + k_alignment - 1) / k_alignment * k_alignment;
}

// --- values of a node's tensors: random weights that ggml itself quantizes, valid places, and
// masks as open as the recorded ones

// xorshift: the same data in every run.
class Noise {
 public:
  float next() {  // -1 to 1
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return static_cast<float>(static_cast<double>(state_ >> 11) * 0x1p-52 - 1);
  }

 private:
  std::uint64_t state_ = 0x9e3779b97f4a7c15ULL;
};

bool is_integer(const std::string& type) {
  return type == "i8" || type == "i16" || type == "i32" || type == "i64";
}

// Returns true if the slot of the op is a mask: it selects the positions that the op reads.
bool is_mask(const ReplayNode& node, std::int64_t slot) {
  return (node.op == "SOFT_MAX" && slot == 2) || (node.op == "FLASH_ATTN_EXT" && slot == 4);
}

// Makes random weights of a type, quantized by ggml itself, to be repeated over a tensor.
Result<std::vector<char>> make_weights(const Engine& ggml, int type, const std::string& name) {
  constexpr std::int64_t k_elements = 1 << 14;  // whole blocks of every type
  const std::int64_t block = ggml.blck_size(type);
  if (block < 1 || k_elements % block != 0)
    return left_out_error("weir cannot fill tensors of {}", name);
  Noise noise;
  std::vector<float> values(k_elements);
  for (float& value : values) value = noise.next();
  const std::vector<float> importance(k_elements, 1.0F);  // some types need it
  std::vector<char> bytes(static_cast<std::size_t>(k_elements / block) * ggml.type_size(type));
  const std::size_t written =
      ggml.quantize_chunk(type, values.data(), bytes.data(), 0, 1, k_elements, importance.data());
  if (written != bytes.size()) return left_out_error("weir cannot fill tensors of {}", name);
  return bytes;
}

// Returns how many rows, experts or positions the integers of a slot choose from; 1 for other
// slots.
std::int64_t count_places(const ReplayNode& node, std::int64_t slot) {
  const auto dimension_of = [&](std::int64_t tensor_slot, std::size_t dimension) -> std::int64_t {
    const auto* match = find_first(
        node.tensors, [&](const ReplayTensor& tensor) { return tensor.slot == tensor_slot; });
    return match == nullptr ? 1 : match->ne[dimension];
  };
  if (node.op == "GET_ROWS" && slot == 2) return dimension_of(1, 1);
  if (node.op == "SET_ROWS" && slot == 2) return dimension_of(0, 1);
  if (node.op == "MUL_MAT_ID" && slot == 3) return dimension_of(1, 2);
  if (node.op == "ROPE" && slot == 2) return 4096;
  return 1;
}

// Calls visit(address, index along the first dimension) for each element, in order.
template <class Visit>
void each_number(const ReplayTensor& tensor, char* at, Visit visit) {
  for (std::int64_t l = 0; l < tensor.ne[3]; ++l) {
    for (std::int64_t k = 0; k < tensor.ne[2]; ++k) {
      for (std::int64_t j = 0; j < tensor.ne[1]; ++j) {
        char* row = at + j * tensor.nb[1] + k * tensor.nb[2] + l * tensor.nb[3];
        for (std::int64_t i = 0; i < tensor.ne[0]; ++i) visit(row + i * tensor.nb[0], i);
      }
    }
  }
}

// Writes valid indices into a tensor of integers: look-ups jump, writes come in order.
void fill_indices(const ReplayNode& node, const ReplayTensor& tensor, char* at) {
  const std::int64_t place_count = std::max<std::int64_t>(count_places(node, tensor.slot), 1);
  const bool is_look_up = node.op == "GET_ROWS";
  std::int64_t number = 0;
  each_number(tensor, at, [&](char* to, std::int64_t) {
    const std::int64_t index =
        is_look_up ? spread_index(number, place_count) : number % place_count;
    const auto index_32 = static_cast<std::int32_t>(index);
    if (tensor.type == "i64") std::memcpy(to, &index, sizeof index);
    if (tensor.type == "i32") std::memcpy(to, &index_32, sizeof index_32);
    ++number;
  });
}

// Fills an attention mask: the first positions of each row are open, as many as in the recording on
// average. The others get minus infinity.
void fill_mask(const ReplayTensor& tensor, double mask_open, char* at) {
  constexpr std::uint32_t k_closed_f32 = 0xFF800000U;
  constexpr std::uint16_t k_closed_f16 = 0xFC00U;
  const auto open =
      static_cast<std::int64_t>(std::ceil(mask_open * static_cast<double>(tensor.ne[0])));
  const std::int64_t first_closed = std::max<std::int64_t>(open, 1);
  each_number(tensor, at, [&](char* to, std::int64_t i) {
    if (i < first_closed) return;
    if (tensor.type == "f32") std::memcpy(to, &k_closed_f32, sizeof k_closed_f32);
    if (tensor.type == "f16") std::memcpy(to, &k_closed_f16, sizeof k_closed_f16);
  });
}

// Returns "" if the places or mask in a tensor have bytes of their own, else the reason: bytes
// shared with another tensor would hold that tensor's values.
std::string places_problem(const ReplayNode& node, const ReplayTensor& tensor) {
  if (tensor.slot == 0 || (!is_integer(tensor.type) && !is_mask(node, tensor.slot))) return "";
  for (const ReplayTensor& other : node.tensors) {
    if (other.slot != tensor.slot && other.root == tensor.root) {
      return "another tensor looks at the bytes of its places";
    }
  }
  return "";
}

// --- a node as a graph

class NodeGraph final : public Work {
 public:
  NodeGraph(const Engine& engine, const ReplayNode& node, const ReplayLimits& limits)
      : engine_(&engine), node_(&node), mask_open_(limits.visible_mask_share) {}

  ~NodeGraph() override {
    if (backend_ != nullptr) engine_->backend_free(backend_);
    for (Buffer* buffer : buffers_) engine_->backend_buffer_free(buffer);
    if (context_ != nullptr) engine_->free(context_);
  }
  NodeGraph(const NodeGraph&) = delete;
  NodeGraph& operator=(const NodeGraph&) = delete;

  // Builds the graph; the first call.
  Result<void> make(const ReplayLimits& limits) {
    WEIR_CHECK(measure());
    WEIR_CHECK(choose_copies(limits));
    return build();
  }
  [[nodiscard]] std::int64_t copies() const override { return copies_; }
  [[nodiscard]] bool compute() override {
    Backend* backend = backend_ == nullptr ? engine_->backend : backend_;
    return engine_->backend_graph_compute(backend, graph_) == 0;
  }

 private:
  struct Unmap {
    std::size_t bytes;
    void operator()(char* at) const { munmap(at, bytes); }
  };
  using Block = std::unique_ptr<char, Unmap>;
  // The address of bytes: in this process, or within a device's buffer.
  struct Place {
    char* at = nullptr;
    Buffer* buffer = nullptr;
  };
  // The bytes of a root that the node's tensors use, aligned.
  struct Span {
    std::int64_t begin = 0, end = 0;
    bool per_copy = false;             // each copy has its own bytes
    BufferType* rearranged = nullptr;  // lies in memory of this kind
    Place shared;
  };

  // Finds the bytes that each root needs and their kind of memory.
  Result<void> measure() {
    const char* op = engine_->op_name(static_cast<int>(node_->op_number));
    if (op == nullptr || node_->op != op) {
      return left_out_error("number {} is {} in this ggml, not {}", node_->op_number,
                            op == nullptr ? "nothing" : op, node_->op);
    }
    spans_.resize(node_->roots.size());
    for (std::size_t i = 0; i < spans_.size(); ++i) {
      const profile::ReplayRoot& root = node_->roots[i];
      spans_[i].per_copy = root.constant;
      spans_[i].begin = root.bytes;
      for (BufferType* extra : engine_->extra) {
        const char* name = engine_->backend_buft_name(extra);
        if (name != nullptr && root.memory == name) spans_[i].rearranged = extra;
      }
      // On a device everything lies as its type says; the CPU's kernels also know other ways.
      const bool plain = engine_->memory != nullptr || root.memory.empty() ||
                         root.memory == "CPU" || root.memory == "CPU_Mapped" ||
                         root.memory.starts_with("Vulkan") ||
                         root.memory.find("Host") != std::string::npos;
      if (!plain && spans_[i].rearranged == nullptr) {
        return left_out_error("it used memory of the kind {}, which is not there", root.memory);
      }
    }
    for (const ReplayTensor& tensor : node_->tensors) {
      const int type = static_cast<int>(tensor.type_number);
      const char* name = engine_->type_name(type);
      if (name == nullptr || tensor.type != name) {
        return left_out_error("type {} is {} in this ggml, not {}", type,
                              name == nullptr ? "none" : name, tensor.type);
      }
      const TypeSize size{static_cast<std::int64_t>(engine_->type_size(type)),
                          engine_->blck_size(type)};
      const auto end = end_of(tensor, size);
      const auto root = static_cast<std::size_t>(tensor.root);
      if (!end || *end > node_->roots[root].bytes) {
        return left_out_error("a tensor of it does not lie within its bytes");
      }
      for (const std::string& why :
           {layout_problem(node_->op, tensor, size), places_problem(*node_, tensor)}) {
        if (!why.empty()) return left_out_error("{}", why);
      }
      Span& span = spans_[root];
      span.begin = std::min(span.begin, tensor.offset / k_alignment * k_alignment);
      span.end = std::max(span.end, *end);
      if (span.rearranged != nullptr && tensor.offset != 0) {
        return left_out_error("a part of a re-arranged tensor cannot be made alone");
      }
    }
    for (Span& span : spans_) span.begin = std::min(span.begin, span.end);  // no tensor uses it
    return {};
  }

  Result<void> choose_copies(const ReplayLimits& limits) {
    std::int64_t each = 0, shared = 0;
    for (const Span& span : spans_) {
      const std::int64_t room =
          round_up(span.end - span.begin) + static_cast<std::int64_t>(k_slack);
      if (span.per_copy) {
        each += room;
      } else {
        shared += room;
      }
    }
    WEIR_TRY(copies_, copies_needed(node_->count, each, shared, limits));
    return {};
  }

  Result<void> build() {
    if (engine_->memory != nullptr) {
      backend_ = engine_->backend_dev_init(engine_->device, nullptr);
      if (backend_ == nullptr) return left_out_error("the device takes no work");
    }
    const auto copies = static_cast<std::size_t>(copies_);
    // The node's tensors, and one for each root, by which a device's buffer is filled.
    const std::size_t tensors = copies * (node_->tensors.size() + spans_.size()) + 16;
    context_ = engine_->init({engine_->graph_overhead_custom(tensors, false) +
                                  (tensors + 16) * engine_->tensor_overhead(),
                              nullptr, true});
    if (context_ == nullptr) return left_out_error("ggml has no memory for its graph");
    graph_ = engine_->new_graph_custom(context_, tensors, false);
    for (std::size_t i = 0; i < copies; ++i) {
      WEIR_TRY(Tensor* const result, add_copy());
      if (i == 0 && !engine_->backend_dev_supports_op(engine_->device, result)) {
        return left_out_error("this ggml does not do it {}",
                              engine_->memory == nullptr ? "on the CPU" : "on this device");
      }
      engine_->build_forward_expand(graph_, result);
    }
    if (engine_->graph_n_nodes(graph_) != static_cast<int>(copies)) {
      return left_out_error("ggml made another graph of it");
    }
    return {};
  }

  // Adds a copy of the node and returns its result, whose sources no other node computes.
  Result<Tensor*> add_copy() {
    std::vector<Place> own(spans_.size());
    Tensor* tensors[profile::k_replay_sources + 1] = {};
    for (const ReplayTensor& from : node_->tensors) {
      const auto root = static_cast<std::size_t>(from.root);
      Span& span = spans_[root];
      Tensor* tensor =
          engine_->new_tensor(context_, static_cast<int>(from.type_number), 4, from.ne.data());
      tensors[from.slot] = tensor;
      if (span.rearranged != nullptr) {
        WEIR_CHECK(put_rearranged(tensor, root));
        continue;
      }
      Place& place = span.per_copy ? own[root] : span.shared;
      if (place.at == nullptr) {
        WEIR_TRY(place, place_root(root));
      }
      for (std::size_t i = 0; i < 4; ++i) tensor->nb[i] = static_cast<std::uint64_t>(from.nb[i]);
      char* const at = place.at + (from.offset - span.begin);
      if (place.buffer != nullptr) {
        engine_->backend_tensor_alloc(place.buffer, tensor, at);
      } else {
        tensor->data = at;
      }
    }
    Tensor* result = tensors[0];
    result->op = static_cast<std::int32_t>(node_->op_number);
    std::copy(node_->params.begin(), node_->params.end(), std::begin(result->params));
    result->flags = static_cast<std::int32_t>(node_->flags);
    for (std::size_t i = 0; i < std::size(result->source); ++i) result->source[i] = tensors[i + 1];
    return result;
  }

  // Writes the values of a root, whose memory is at `at`, by the first source that uses it. A root
  // that is only written stays 0.
  Result<void> fill(std::size_t root, char* at) const {
    const Span& span = spans_[root];
    for (const ReplayTensor& tensor : node_->tensors) {
      if (tensor.slot == 0 || static_cast<std::size_t>(tensor.root) != root) continue;
      char* begin = at + (tensor.offset - span.begin);
      if (is_integer(tensor.type)) {
        fill_indices(*node_, tensor, begin);
      } else if (is_mask(*node_, tensor.slot)) {
        fill_mask(tensor, mask_open_, begin);
      } else {
        WEIR_TRY(const auto pattern,
                 make_weights(*engine_, static_cast<int>(tensor.type_number), tensor.type));
        const auto room = static_cast<std::size_t>(span.end - tensor.offset);
        for (std::size_t done = 0; done < room; done += pattern.size()) {
          std::memcpy(begin + done, pattern.data(), std::min(pattern.size(), room - done));
        }
      }
      break;
    }
    return {};
  }

  // Allocates memory with the values that the node reads of a root.
  Result<Block> make_values(std::size_t root) {
    const Span& span = spans_[root];
    const auto bytes = static_cast<std::size_t>(round_up(span.end - span.begin)) + k_slack;
    void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) return left_out_error("there are no {} MiB for it", bytes >> 20);
    Block block(static_cast<char*>(mapped), Unmap{bytes});
    // A mapped file lies in small pages.
    if (node_->roots[root].memory == "CPU_Mapped") (void)madvise(mapped, bytes, MADV_NOHUGEPAGE);
    std::memset(mapped, 0, bytes);
    WEIR_CHECK(fill(root, block.get()));
    return block;
  }

  // Puts the values of a root where the engine's kernels read them.
  Result<Place> place_root(std::size_t root) {
    WEIR_TRY(Block data, make_values(root));
    if (engine_->memory == nullptr) {
      return Place{blocks_.emplace_back(std::move(data)).get(), nullptr};
    }
    const std::size_t bytes = data.get_deleter().bytes;
    Buffer* buffer = engine_->backend_buft_alloc_buffer(engine_->memory, bytes);
    if (buffer == nullptr) return left_out_error("the device has no {} MiB for it", bytes >> 20);
    buffers_.push_back(buffer);
    // ggml writes to tensors only: this one covers the buffer.
    const std::int64_t ne[4] = {static_cast<std::int64_t>(bytes), 1, 1, 1};
    Tensor* all = engine_->new_tensor(context_, k_bytes_type, 4, ne);
    char* const base = static_cast<char*>(engine_->backend_buffer_get_base(buffer));
    engine_->backend_tensor_alloc(buffer, all, base);
    engine_->backend_tensor_set(all, data.get(), 0, bytes);
    return Place{base, buffer};
  }

  Result<void> put_rearranged(Tensor* tensor, std::size_t root) {
    BufferType* kind = spans_[root].rearranged;
    Buffer* buffer = engine_->backend_buft_alloc_buffer(
        kind, engine_->backend_buft_get_alloc_size(kind, tensor));
    if (buffer == nullptr) return left_out_error("there is no memory of the kind it used");
    buffers_.push_back(buffer);
    engine_->backend_buffer_set_usage(buffer, k_usage_weights);
    engine_->backend_tensor_alloc(buffer, tensor, engine_->backend_buffer_get_base(buffer));
    WEIR_TRY(const Block data, make_values(root));
    engine_->backend_tensor_set(tensor, data.get(), 0, engine_->nbytes(tensor));
    return {};
  }

  const Engine* engine_;
  const ReplayNode* node_;
  double mask_open_;
  std::vector<Span> spans_;
  std::vector<Block> blocks_;
  std::vector<Buffer*> buffers_;
  Context* context_ = nullptr;
  Graph* graph_ = nullptr;
  // A device's backend for this node alone. ggml keeps its descriptor sets, which would still name
  // freed buffers of earlier nodes: one backend for all corrupted lavapipe's heap.
  Backend* backend_ = nullptr;
  std::int64_t copies_ = 1;
};

}  // namespace

// Builds a graph of copies of the node. Fails with the reason if the recording has not enough to
// compute it.
Result<std::unique_ptr<Work>> rebuild_node(const Engine& engine, const ReplayNode& node,
                                           const ReplayLimits& limits) {
  if (node.tensors.empty()) return left_out_error("its tensors were not recorded");
  if (has_rule(node.op) || !limits.any_shape) {
    if (const std::string problem = shape_problem(node); !problem.empty()) {
      return left_out_error("{}{}", problem, has_rule(node.op) ? "" : " (--any-op replays it)");
    }
  }
  auto graph = std::make_unique<NodeGraph>(engine, node, limits);
  WEIR_CHECK(graph->make(limits));
  return graph;
}

}  // namespace weir::replay
