// Counts all work of this engine, in the terms of docs/explanation/counting.md: dispatches,
// barriers, copies, submits, syncs, ops and where they ran. An engine is instrumented in this one
// place.
//
// Each call marks the event for weir (weir/instrument.h; without weir that tests one flag) and adds
// it to a tally of the engine's own, for its report. Events count where they are recorded, by the
// thread that decodes; not to be shared between threads.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>

#include <weir/instrument.h>

namespace weir::engine {

struct Tally {
  std::int64_t dispatches = 0, barriers = 0, copies = 0, submits = 0, syncs = 0, cpu_ops = 0;

  friend bool operator==(const Tally&, const Tally&) = default;
};
[[nodiscard]] Tally operator-(const Tally& all, const Tally& before);

enum class Copy : std::uint32_t { to_host = WEIR_COPY_TO_HOST, to_device = WEIR_COPY_TO_DEVICE };
enum class Where { backend, cpu };  // an op's device: the one that was asked for, or the host

struct BothClocks {
  std::uint64_t cpu_nanoseconds, ticks;
};

class Counts {
 public:
  // The device of the backend, once, before all else: `api` is "cpu" or "vulkan", `type` one of
  // weir_device_declare's.
  void works_on(const char* api, const char* type, const std::string& name) {
    cpu_ = weir_device_declare("cpu", "cpu", "host", "");
    on_cpu_ = std::string("cpu") == api;
    device_ = on_cpu_ ? cpu_ : weir_device_declare(api, type, name.c_str(), "");
    queue_ = weir_queue_declare(device_);
  }

  void dispatch(const char* kernel, std::uint32_t groups) {
    weir_dispatch_groups(queue_, kernel, groups, 1, 1);
    ++tally_.dispatches;
    ++kernels_[kernel];
  }
  void barrier() {
    weir_barrier(queue_);
    ++tally_.barriers;
  }
  void copy(Copy kind, std::uint64_t bytes) {
    weir_copy(queue_, static_cast<std::uint32_t>(kind), bytes);
    ++tally_.copies;
  }
  // A command buffer of a kind: 0 while nobody asks for times.
  [[nodiscard]] std::uint64_t buffer_begins(const char* label) const {
    return weir_buffer_begin(label);
  }
  void submit(std::uint64_t buffer) {
    weir_submit(queue_, buffer);
    ++tally_.submits;
    submitted_ = true;
  }
  // Calls around a wait, which is a sync if something was submitted since the last one.
  void wait_begins() { weir_wait_begin(); }
  void wait_ended() {
    weir_sync(queue_);
    if (submitted_) ++tally_.syncs;
    submitted_ = false;
  }

  // How long a tick of the device's clock is, and both clocks at one moment, where that is known.
  void clock(double tick_nanoseconds, const std::optional<BothClocks>& pair) const {
    weir_clock_rate(device_, tick_nanoseconds);
    if (pair) weir_clock_pair(device_, pair->cpu_nanoseconds, pair->ticks);
  }
  // When the device ran a buffer, in its ticks; `dispatches`: begin and end of each, or nothing.
  void buffer_times(std::uint64_t buffer, std::uint64_t begin, std::uint64_t end,
                    std::span<const std::uint64_t> dispatches) const {
    weir_buffer_times(queue_, buffer, begin, end, dispatches.data(),
                      static_cast<std::uint32_t>(dispatches.size() / 2));
  }

  // Sets the layer of the ops from here on.
  void set_layer(std::int32_t index) { layer_ = index; }
  // Marks the end of an evaluation of `tokens` tokens.
  void evaluated(std::uint32_t tokens) { weir_token(tokens); }

  [[nodiscard]] const Tally& tally() const { return tally_; }
  [[nodiscard]] const std::map<std::string, std::int64_t>& kernels() const { return kernels_; }
  [[nodiscard]] const std::map<std::string, std::int64_t>& cpu_ops() const { return cpu_ops_; }

 private:
  friend class Op;
  void op_begins(const char* name, Where where) {
    const bool on_host = on_cpu_ || where == Where::cpu;
    weir_op_begin(name, on_host ? cpu_ : device_, layer_);
    if (!on_host) return;
    ++tally_.cpu_ops;
    ++cpu_ops_[name];
  }

  std::uint32_t cpu_ = 0, device_ = 0, queue_ = 0;
  bool on_cpu_ = false;
  std::int32_t layer_ = WEIR_LAYER_UNKNOWN;
  Tally tally_;
  std::map<std::string, std::int64_t> kernels_, cpu_ops_;
  bool submitted_ = false;
};

// An op of the model, from here to the end of the block.
class Op {
 public:
  Op(Counts& counts, const char* name, Where where = Where::backend) {
    counts.op_begins(name, where);
  }
  ~Op() { weir_op_end(); }
  Op(const Op&) = delete;
  Op& operator=(const Op&) = delete;
};

inline Tally operator-(const Tally& all, const Tally& before) {
  return {all.dispatches - before.dispatches, all.barriers - before.barriers,
          all.copies - before.copies,         all.submits - before.submits,
          all.syncs - before.syncs,           all.cpu_ops - before.cpu_ops};
}

}  // namespace weir::engine
