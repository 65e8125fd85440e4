// Tracks the device memory that a program allocates by CUDA or HIP.
//
// Sizes are rounded up as by the driver. Memory of cuMemCreate has a handle in place of an address,
// and lives until that is released and it is mapped nowhere. Not thread-safe: its owner holds a
// lock.
#pragma once

#include <stdint.h>
#include <stdlib.h>

namespace weir_probe {

constexpr int k_max_memory_devices = 16;  // devices
constexpr uint64_t k_reservation_granularity =
    2 << 20;                                        // granularity of cuMemCreate and of addresses
constexpr uint64_t k_allocation_granularity = 512;  // granularity of cudaMalloc

// Rounds up to a multiple of `granularity`; down where that would overflow.
inline uint64_t round_up_to(uint64_t bytes, uint64_t granularity) {
  return (bytes > UINT64_MAX - granularity ? UINT64_MAX - granularity : bytes + granularity - 1) /
         granularity * granularity;
}

class DeviceMemory {
 public:
  struct Block {
    uint64_t at, bytes;     // an address or a handle, and the bytes that it spans
    uint64_t device_bytes;  // bytes of the device's memory; 0: an address alone
    int device;
    uint64_t mapped_at;  // address of memory that has a handle; 0: not mapped
    bool released;       // its handle was released
    Block* next;         // by address
  };

  // Inserts a block before `*link`, which comes from first() or Block::next. False: memory is out.
  bool insert_block(Block** link, uint64_t at, uint64_t bytes, uint64_t device_bytes, int device) {
    auto* block = static_cast<Block*>(malloc(sizeof(Block)));
    if (block == nullptr) return false;
    *block = {at, bytes, device_bytes, device, 0, false, *link};
    *link = block;
    used_[device] += device_bytes;
    if (used_[device] > peak_[device]) peak_[device] = used_[device];
    return true;
  }
  // Does the same at the place that the address has among the others.
  bool insert_block(uint64_t at, uint64_t device_bytes, int device) {
    Block** link = &first_;
    while (*link != nullptr && (*link)->at < at) link = &(*link)->next;
    return insert_block(link, at, device_bytes, device_bytes, device);
  }
  // Removes the block at `at`; false if there is none.
  bool give_back(uint64_t at) {
    return remove_blocks([at](const Block& block) { return block.at == at; });
  }
  bool map(uint64_t handle, uint64_t at) {
    Block* block = first_;
    while (block != nullptr && block->at != handle) block = block->next;
    if (block != nullptr) block->mapped_at = at;
    return block != nullptr;
  }
  void release(uint64_t handle) {
    remove_blocks([handle](Block& block) {
      if (block.at != handle) return false;
      block.released = true;
      return block.mapped_at == 0;
    });
  }
  void unmap(uint64_t at, uint64_t bytes) {
    remove_blocks([=](Block& block) {
      if (block.mapped_at < at || block.mapped_at - at >= bytes) return false;
      block.mapped_at = 0;
      return block.released;
    });
  }

  void reset(int device) {
    remove_blocks([device](const Block& block) { return block.device == device; });
  }

  // The block that contains an address, or null.
  [[nodiscard]] const Block* find(uint64_t at) const {
    const Block* block = first_;
    while (block != nullptr && at - block->at >= block->bytes) block = block->next;
    return block;
  }
  Block** first() { return &first_; }
  [[nodiscard]] uint64_t used(int device) const { return used_[device]; }
  // The sum of the devices' maxima.
  [[nodiscard]] uint64_t peak() const {
    uint64_t sum = 0;
    for (const uint64_t bytes : peak_) sum += bytes;
    return sum;
  }

 private:
  // Removes each block for which `predicate` is true. Returns true if there was one.
  template <class Predicate>
  bool remove_blocks(Predicate predicate) {
    bool removed_any = false;
    for (Block** link = &first_; *link != nullptr;) {
      Block* block = *link;
      if (!predicate(*block)) {
        link = &block->next;
        continue;
      }
      *link = block->next;
      used_[block->device] -= block->device_bytes;
      free(block);
      removed_any = true;
    }
    return removed_any;
  }

  Block* first_ = nullptr;
  uint64_t used_[k_max_memory_devices] = {}, peak_[k_max_memory_devices] = {};
};

}  // namespace weir_probe
