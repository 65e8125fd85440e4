// The C++ interface to weir/instrument.h, with scopes that end by themselves. Header only, C++17;
// it throws and allocates nothing. A scope must end on the thread that began it.
#pragma once

#include <cstdint>

#include "weir/instrument.h"

namespace weir::instrument {

class Queue;

// A declared device; copies refer to the same one. Costs nothing while off.
class Device {
 public:
  Device(const char* api, const char* type, const char* name,
         const char* device_class = "") noexcept
      : id_(weir_device_declare(api, type, name, device_class)) {}
  [[nodiscard]] std::uint32_t id() const noexcept { return id_; }
  void clock_pair(std::uint64_t cpu_nanoseconds, std::uint64_t gpu_ticks) const noexcept {
    weir_clock_pair(id_, cpu_nanoseconds, gpu_ticks);
  }

 private:
  std::uint32_t id_;
};

// A command buffer; 0 while off.
class Buffer {
 public:
  explicit Buffer(const char* label) noexcept : id_(weir_buffer_begin(label)) {}
  [[nodiscard]] std::uint64_t id() const noexcept { return id_; }

 private:
  std::uint64_t id_;
};

class Queue {
 public:
  explicit Queue(const Device& device) noexcept : id_(weir_queue_declare(device.id())) {}
  [[nodiscard]] std::uint32_t id() const noexcept { return id_; }
  void dispatch(const char* kernel) const noexcept { weir_dispatch(id_, kernel); }
  void dispatch(const char* kernel, std::uint32_t x, std::uint32_t y,
                std::uint32_t z) const noexcept {
    weir_dispatch_groups(id_, kernel, x, y, z);
  }
  void barrier() const noexcept { weir_barrier(id_); }
  void copy(std::uint32_t kind, std::uint64_t bytes) const noexcept { weir_copy(id_, kind, bytes); }
  void submit() const noexcept { weir_submit(id_, 0); }
  void submit(const Buffer& buffer) const noexcept { weir_submit(id_, buffer.id()); }
  void sync() const noexcept { weir_sync(id_); }

 private:
  std::uint32_t id_;
};

// An op, from here to the end of the block.
class Op {
 public:
  Op(const char* name, const Device& device, std::int32_t layer = WEIR_LAYER_UNKNOWN) noexcept {
    weir_op_begin(name, device.id(), layer);
  }
  ~Op() { weir_op_end(); }
  Op(const Op&) = delete;
  Op& operator=(const Op&) = delete;
  Op& operand(const char* type, const std::int64_t (&ne)[4]) noexcept {
    weir_op_operand(type, ne);
    return *this;
  }
};

// A wait for a queue, from here to the end of the block.
class Wait {
 public:
  explicit Wait(const Queue& queue) noexcept : queue_(queue.id()) { weir_wait_begin(); }
  ~Wait() { weir_sync(queue_); }
  Wait(const Wait&) = delete;
  Wait& operator=(const Wait&) = delete;

 private:
  std::uint32_t queue_;
};

inline bool enabled(std::uint32_t flags) noexcept { return weir_profile_is_enabled(flags) != 0; }
inline void token(std::uint32_t rows) noexcept { weir_token(rows); }

}  // namespace weir::instrument
