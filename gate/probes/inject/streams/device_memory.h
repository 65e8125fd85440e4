// How much of each device's memory is taken, of what a program asks CUDA or HIP for.
//
// Sizes are rounded up as the driver hands memory out. Memory of cuMemCreate has a handle for its
// address, and lives until that is released and it is mapped nowhere. Not for several threads at
// once: its owner holds a lock.
#pragma once

#include <stdint.h>
#include <stdlib.h>

namespace weir_probe {

constexpr int k_most_memories = 16;            // devices
constexpr uint64_t k_memory_unit = 2 << 20;    // of cuMemCreate, and what addresses are aligned to
constexpr uint64_t k_small_memory_unit = 512;  // of cudaMalloc

// The most there is where that would overflow: no memory is so large.
inline uint64_t up_to_unit(uint64_t bytes, uint64_t unit) {
  return (bytes > UINT64_MAX - unit ? UINT64_MAX - unit : bytes + unit - 1) / unit * unit;
}

class DeviceMemory {
 public:
  struct Block {
    uint64_t at, bytes;  // an address or a handle, and what it spans there
    uint64_t counted;    // bytes of the device's memory; 0: an address alone
    int device;
    uint64_t mapped_at;  // of memory without an address of its own: where it is seen; 0: nowhere
    bool released;       // its handle
    Block* next;         // by address
  };

  // The block goes in before `*link`, which first() and Block::next lead to. False: no memory.
  bool take(Block** link, uint64_t at, uint64_t bytes, uint64_t counted, int device) {
    auto* block = static_cast<Block*>(malloc(sizeof(Block)));
    if (block == nullptr) return false;
    *block = {at, bytes, counted, device, 0, false, *link};
    *link = block;
    used_[device] += counted;
    if (used_[device] > most_[device]) most_[device] = used_[device];
    return true;
  }
  // The same where only its place among the others is to be found.
  bool take(uint64_t at, uint64_t counted, int device) {
    Block** link = &first_;
    while (*link != nullptr && (*link)->at < at) link = &(*link)->next;
    return take(link, at, counted, counted, device);
  }
  // Whether it was there.
  bool give_back(uint64_t at) {
    return end_those([at](const Block& block) { return block.at == at; });
  }
  bool map(uint64_t handle, uint64_t at) {
    Block* block = first_;
    while (block != nullptr && block->at != handle) block = block->next;
    if (block != nullptr) block->mapped_at = at;
    return block != nullptr;
  }
  void release(uint64_t handle) {
    end_those([handle](Block& block) {
      if (block.at != handle) return false;
      block.released = true;
      return block.mapped_at == 0;
    });
  }
  void unmap(uint64_t at, uint64_t bytes) {
    end_those([=](Block& block) {
      if (block.mapped_at < at || block.mapped_at - at >= bytes) return false;
      block.mapped_at = 0;
      return block.released;
    });
  }

  void reset(int device) {
    end_those([device](const Block& block) { return block.device == device; });
  }

  Block** first() { return &first_; }
  [[nodiscard]] uint64_t used(int device) const { return used_[device]; }
  // The most that was taken of each device at once, added up.
  [[nodiscard]] uint64_t most() const {
    uint64_t sum = 0;
    for (const uint64_t one : most_) sum += one;
    return sum;
  }

 private:
  // Every block that `meant` takes; whether there was one.
  template <class Meant>
  bool end_those(Meant meant) {
    bool any = false;
    for (Block** link = &first_; *link != nullptr;) {
      Block* block = *link;
      if (!meant(*block)) {
        link = &block->next;
        continue;
      }
      *link = block->next;
      used_[block->device] -= block->counted;
      free(block);
      any = true;
    }
    return any;
  }

  Block* first_ = nullptr;
  uint64_t used_[k_most_memories] = {}, most_[k_most_memories] = {};
};

}  // namespace weir_probe
