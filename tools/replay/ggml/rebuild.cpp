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

constexpr std::int64_t k_line = 256;   // and the most that a device asks tensors to begin at
constexpr std::size_t k_slack = 4096;  // kernels may look a little beyond the last row
constexpr int k_usage_weights = 1;     // GGML_BACKEND_BUFFER_USAGE_WEIGHTS

std::int64_t up(std::int64_t bytes) { return (bytes + k_line - 1) / k_line * k_line; }

// --- what the tensors of a node hold: random weights that ggml itself quantizes, places that are
// there, masks as open as the recorded ones were

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

bool is_whole(const std::string& type) {
  return type == "i8" || type == "i16" || type == "i32" || type == "i64";
}

// What says which positions an op looks at.
bool is_mask(const ReplayNode& node, std::int64_t slot) {
  return (node.op == "SOFT_MAX" && slot == 2) || (node.op == "FLASH_ATTN_EXT" && slot == 4);
}

// Random weights of a type, quantized by ggml itself, as many as are put one behind the other.
Result<std::vector<char>> pattern_of(const Engine& ggml, int type, const std::string& name) {
  constexpr std::int64_t k_elements = 1 << 14;  // whole blocks of every type
  const std::int64_t block = ggml.blck_size(type);
  if (block < 1 || k_elements % block != 0) return left_out("weir cannot fill tensors of {}", name);
  Noise noise;
  std::vector<float> values(k_elements);
  for (float& value : values) value = noise.next();
  const std::vector<float> importance(k_elements, 1.0F);  // some types insist on being told
  std::vector<char> bytes(static_cast<std::size_t>(k_elements / block) * ggml.type_size(type));
  const std::size_t made =
      ggml.quantize_chunk(type, values.data(), bytes.data(), 0, 1, k_elements, importance.data());
  if (made != bytes.size()) return left_out("weir cannot fill tensors of {}", name);
  return bytes;
}

// Values that an op takes as places: of rows, experts or tokens. How many there are to point at.
std::int64_t places_of(const ReplayNode& node, std::int64_t slot) {
  const auto size = [&](std::int64_t tensor_slot, std::size_t dimension) -> std::int64_t {
    const auto* found = first_of(
        node.tensors, [&](const ReplayTensor& tensor) { return tensor.slot == tensor_slot; });
    return found == nullptr ? 1 : found->ne[dimension];
  };
  if (node.op == "GET_ROWS" && slot == 2) return size(1, 1);
  if (node.op == "SET_ROWS" && slot == 2) return size(0, 1);
  if (node.op == "MUL_MAT_ID" && slot == 3) return size(1, 2);
  if (node.op == "ROPE" && slot == 2) return 4096;
  return 1;
}

// Calls visit(address, number along the first dimension) for each of its numbers, in order.
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

void fill_indices(const ReplayNode& node, const ReplayTensor& tensor, char* at) {
  const std::int64_t places = std::max<std::int64_t>(places_of(node, tensor.slot), 1);
  const bool apart = node.op == "GET_ROWS";  // look-ups jump; what is written comes in order
  std::int64_t number = 0;
  each_number(tensor, at, [&](char* to, std::int64_t) {
    const std::int64_t wide = (apart ? number % places * 7919 : number) % places;
    const auto narrow = static_cast<std::int32_t>(wide);
    if (tensor.type == "i64") std::memcpy(to, &wide, sizeof wide);
    if (tensor.type == "i32") std::memcpy(to, &narrow, sizeof narrow);
    ++number;
  });
}

// As many first places of each row are open as there were on average; the others hold minus
// infinity.
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

// Places and masks have values of their own: in bytes that another tensor looks at they would be
// whatever that one holds. "" where they have, else what is wrong.
std::string places_problem(const ReplayNode& node, const ReplayTensor& tensor) {
  if (tensor.slot == 0 || (!is_whole(tensor.type) && !is_mask(node, tensor.slot))) return "";
  for (const ReplayTensor& other : node.tensors) {
    if (other.slot != tensor.slot && other.root == tensor.root) {
      return "another tensor looks at the bytes of its places";
    }
  }
  return "";
}

// --- the node

class NodeGraph final : public Work {
 public:
  NodeGraph(const Engine& engine, const ReplayNode& node, const Wish& wish)
      : engine_(&engine), node_(&node), mask_open_(wish.mask_open) {}

  ~NodeGraph() override {
    if (backend_ != nullptr) engine_->backend_free(backend_);
    for (Buffer* buffer : buffers_) engine_->backend_buffer_free(buffer);
    if (context_ != nullptr) engine_->free(context_);
  }
  NodeGraph(const NodeGraph&) = delete;
  NodeGraph& operator=(const NodeGraph&) = delete;

  // Before all else.
  Result<void> make(const Wish& wish) {
    WEIR_CHECK(measure());
    WEIR_CHECK(choose_copies(wish));
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
  // Where bytes lie: of the process, or at a device's address within a buffer of its own.
  struct Place {
    char* at = nullptr;
    Buffer* buffer = nullptr;
  };
  // The bytes of a root that the node's tensors look at, aligned.
  struct Span {
    std::int64_t begin = 0, end = 0;
    bool rotated = false;              // each copy has its own
    BufferType* rearranged = nullptr;  // lies in memory of this kind
    Place shared;
  };

  // What each root has to hold, and in which kind of memory.
  Result<void> measure() {
    const char* op = engine_->op_name(static_cast<int>(node_->op_number));
    if (op == nullptr || node_->op != op) {
      return left_out("number {} is {} in this ggml, not {}", node_->op_number,
                      op == nullptr ? "nothing" : op, node_->op);
    }
    spans_.resize(node_->roots.size());
    for (std::size_t i = 0; i < spans_.size(); ++i) {
      const profile::ReplayRoot& root = node_->roots[i];
      spans_[i].rotated = root.constant;
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
        return left_out("it used memory of the kind {}, which is not there", root.memory);
      }
    }
    for (const ReplayTensor& tensor : node_->tensors) {
      const int type = static_cast<int>(tensor.type_number);
      const char* name = engine_->type_name(type);
      if (name == nullptr || tensor.type != name) {
        return left_out("type {} is {} in this ggml, not {}", type, name == nullptr ? "none" : name,
                        tensor.type);
      }
      const TypeSize size{static_cast<std::int64_t>(engine_->type_size(type)),
                          engine_->blck_size(type)};
      const auto end = end_of(tensor, size);
      const auto root = static_cast<std::size_t>(tensor.root);
      if (!end || *end > node_->roots[root].bytes) {
        return left_out("a tensor of it does not lie within its bytes");
      }
      for (const std::string& why :
           {layout_problem(node_->op, tensor, size), places_problem(*node_, tensor)}) {
        if (!why.empty()) return left_out("{}", why);
      }
      Span& span = spans_[root];
      span.begin = std::min(span.begin, tensor.offset / k_line * k_line);
      span.end = std::max(span.end, *end);
      if (span.rearranged != nullptr && tensor.offset != 0) {
        return left_out("a part of a re-arranged tensor cannot be made alone");
      }
    }
    for (Span& span : spans_) span.begin = std::min(span.begin, span.end);  // looked at by nobody
    return {};
  }

  Result<void> choose_copies(const Wish& wish) {
    std::int64_t each = 0, shared = 0;
    for (const Span& span : spans_) {
      const std::int64_t room = up(span.end - span.begin) + static_cast<std::int64_t>(k_slack);
      if (span.rotated) {
        each += room;
      } else {
        shared += room;
      }
    }
    WEIR_TRY(copies_, copies_of(node_->count, each, shared, wish));
    return {};
  }

  Result<void> build() {
    if (engine_->memory != nullptr) {
      backend_ = engine_->backend_dev_init(engine_->device, nullptr);
      if (backend_ == nullptr) return left_out("the device takes no work");
    }
    const auto copies = static_cast<std::size_t>(copies_);
    // Those of the node, and for each root one that a device's buffer is filled by.
    const std::size_t tensors = copies * (node_->tensors.size() + spans_.size()) + 16;
    context_ = engine_->init({engine_->graph_overhead_custom(tensors, false) +
                                  (tensors + 16) * engine_->tensor_overhead(),
                              nullptr, true});
    if (context_ == nullptr) return left_out("ggml has no memory for its graph");
    graph_ = engine_->new_graph_custom(context_, tensors, false);
    for (std::size_t i = 0; i < copies; ++i) {
      WEIR_TRY(Tensor* const result, add_copy());
      if (i == 0 && !engine_->backend_dev_supports_op(engine_->device, result)) {
        return left_out("this ggml does not do it {}",
                        engine_->memory == nullptr ? "on the CPU" : "on this device");
      }
      engine_->build_forward_expand(graph_, result);
    }
    if (engine_->graph_n_nodes(graph_) != static_cast<int>(copies)) {
      return left_out("ggml made another graph of it");
    }
    return {};
  }

  // The node once more: its result, whose sources are tensors without a past.
  Result<Tensor*> add_copy() {
    std::vector<Place> own(spans_.size());
    Tensor* made[profile::k_replay_sources + 1] = {};
    for (const ReplayTensor& from : node_->tensors) {
      const auto root = static_cast<std::size_t>(from.root);
      Span& span = spans_[root];
      Tensor* tensor =
          engine_->new_tensor(context_, static_cast<int>(from.type_number), 4, from.ne.data());
      made[from.slot] = tensor;
      if (span.rearranged != nullptr) {
        WEIR_CHECK(put_rearranged(tensor, root));
        continue;
      }
      Place& place = span.rotated ? own[root] : span.shared;
      if (place.at == nullptr) {
        WEIR_TRY(place, placed(root));
      }
      for (std::size_t i = 0; i < 4; ++i) tensor->nb[i] = static_cast<std::uint64_t>(from.nb[i]);
      char* const at = place.at + (from.offset - span.begin);
      if (place.buffer != nullptr) {
        engine_->backend_tensor_alloc(place.buffer, tensor, at);
      } else {
        tensor->data = at;
      }
    }
    Tensor* result = made[0];
    result->op = static_cast<std::int32_t>(node_->op_number);
    std::copy(node_->params.begin(), node_->params.end(), std::begin(result->params));
    result->flags = static_cast<std::int32_t>(node_->flags);
    for (std::size_t i = 0; i < std::size(result->source); ++i) result->source[i] = made[i + 1];
    return result;
  }

  // Writes what the first source holds that looks at the root, whose memory is at `at`; what is
  // written only stays 0.
  Result<void> fill(std::size_t root, char* at) const {
    const Span& span = spans_[root];
    for (const ReplayTensor& tensor : node_->tensors) {
      if (tensor.slot == 0 || static_cast<std::size_t>(tensor.root) != root) continue;
      char* begin = at + (tensor.offset - span.begin);
      if (is_whole(tensor.type)) {
        fill_indices(*node_, tensor, begin);
      } else if (is_mask(*node_, tensor.slot)) {
        fill_mask(tensor, mask_open_, begin);
      } else {
        WEIR_TRY(const auto pattern,
                 pattern_of(*engine_, static_cast<int>(tensor.type_number), tensor.type));
        const auto room = static_cast<std::size_t>(span.end - tensor.offset);
        for (std::size_t done = 0; done < room; done += pattern.size()) {
          std::memcpy(begin + done, pattern.data(), std::min(pattern.size(), room - done));
        }
      }
      break;
    }
    return {};
  }

  // Fresh memory with what the node reads of a root.
  Result<Block> filled(std::size_t root) {
    const Span& span = spans_[root];
    const auto bytes = static_cast<std::size_t>(up(span.end - span.begin)) + k_slack;
    void* made = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (made == MAP_FAILED) return left_out("there are no {} MiB for it", bytes >> 20);
    Block block(static_cast<char*>(made), Unmap{bytes});
    // A mapped file lies in small pages.
    if (node_->roots[root].memory == "CPU_Mapped") (void)madvise(made, bytes, MADV_NOHUGEPAGE);
    std::memset(made, 0, bytes);
    WEIR_CHECK(fill(root, block.get()));
    return block;
  }

  Result<Place> placed(std::size_t root) {
    WEIR_TRY(Block data, filled(root));
    if (engine_->memory == nullptr) {
      return Place{blocks_.emplace_back(std::move(data)).get(), nullptr};
    }
    const std::size_t bytes = data.get_deleter().bytes;
    Buffer* buffer = engine_->backend_buft_alloc_buffer(engine_->memory, bytes);
    if (buffer == nullptr) return left_out("the device has no {} MiB for it", bytes >> 20);
    buffers_.push_back(buffer);
    // ggml writes to tensors: one that is all of the buffer.
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
    if (buffer == nullptr) return left_out("there is no memory of the kind it used");
    buffers_.push_back(buffer);
    engine_->backend_buffer_set_usage(buffer, k_usage_weights);
    engine_->backend_tensor_alloc(buffer, tensor, engine_->backend_buffer_get_base(buffer));
    WEIR_TRY(const Block data, filled(root));
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
  // Of a device, this node's alone. ggml keeps its descriptor sets, which then still name buffers
  // of nodes before, gone since: with one backend for all, lavapipe's heap was soon corrupted.
  Backend* backend_ = nullptr;
  std::int64_t copies_ = 1;
};

}  // namespace

Result<std::unique_ptr<Work>> rebuilt(const Engine& engine, const ReplayNode& node,
                                      const Wish& wish) {
  if (node.tensors.empty()) return left_out("its tensors were not recorded");
  if (has_rule(node.op) || !wish.any_shape) {
    if (const std::string problem = shape_problem(node); !problem.empty()) {
      return left_out("{}{}", problem, has_rule(node.op) ? "" : " (--any-op replays it)");
    }
  }
  auto made = std::make_unique<NodeGraph>(engine, node, wish);
  WEIR_CHECK(made->make(wish));
  return made;
}

}  // namespace weir::replay
