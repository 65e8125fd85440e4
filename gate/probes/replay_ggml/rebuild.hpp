// A recorded node as a graph of the engine's ggml, with data of its own.
#pragma once

#include <string>
#include <vector>

#include "gate/probes/replay_ggml/ggml.hpp"
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

// The node as often in one graph as the step has it, and more often where its weights would
// otherwise stay in a cache that the whole step does not fit into. Its copies have weights of their
// own and share everything else, which in a step was written just before.
class Rebuilt {
 public:
  // Code::unavailable with why it is left out.
  [[nodiscard]] static Result<Rebuilt> make(const Engine& engine, const profile::ReplayNode& node,
                                            const Wish& wish);
  ~Rebuilt();
  Rebuilt(Rebuilt&& other) noexcept;
  Rebuilt(const Rebuilt&) = delete;
  Rebuilt& operator=(const Rebuilt&) = delete;
  Rebuilt& operator=(Rebuilt&&) = delete;

  [[nodiscard]] std::int64_t copies() const { return copies_; }
  // Computes the graph once; false where ggml says that it failed.
  [[nodiscard]] bool compute() const;

 private:
  struct Block {
    char* at;
    std::size_t bytes;
  };
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

  explicit Rebuilt(const Engine& engine, const profile::ReplayNode& node)
      : engine_(&engine), node_(&node) {}
  Result<void> measure();
  Result<void> choose_copies(const Wish& wish);
  Result<void> build();
  Result<Tensor*> add_copy();
  Result<char*> filled(std::size_t root);
  Result<Place> placed(std::size_t root);
  void forget_last_block();
  Result<void> put_rearranged(Tensor* tensor, std::size_t root);
  void fill_mask(const profile::ReplayTensor& tensor, char* at) const;
  void fill_indices(const profile::ReplayTensor& tensor, char* at) const;

  const Engine* engine_;
  const profile::ReplayNode* node_;
  double mask_open_ = 1;
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

}  // namespace weir::replay
