// Everything that this engine counts of itself goes through here, in the words of docs/counting.md:
// what reaches the device (dispatches, barriers, copies, submits, syncs), and ops that ran on the
// CPU, by name. It is the one place to look for how an engine is instrumented.
//
// Counted where it is recorded, by the thread that decodes; not to be shared between threads.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace weir::engine {

struct Tally {
  std::int64_t dispatches = 0, barriers = 0, copies = 0, submits = 0, syncs = 0, cpu_ops = 0;

  friend bool operator==(const Tally&, const Tally&) = default;
};
[[nodiscard]] Tally operator-(const Tally& all, const Tally& before);

class Counts {
 public:
  void dispatch(const char* kernel) {
    ++tally_.dispatches;
    ++kernels_[kernel];
  }
  void barrier() { ++tally_.barriers; }
  void copy() { ++tally_.copies; }
  void submit() {
    ++tally_.submits;
    submitted_ = true;
  }
  // A wait that ended. It is a sync when something was submitted since the last one.
  void wait() {
    tally_.syncs += submitted_ ? 1 : 0;
    submitted_ = false;
  }
  void cpu_op(const char* name) {
    ++tally_.cpu_ops;
    ++cpu_ops_[name];
  }

  [[nodiscard]] const Tally& tally() const { return tally_; }
  [[nodiscard]] const std::map<std::string, std::int64_t>& kernels() const { return kernels_; }
  [[nodiscard]] const std::map<std::string, std::int64_t>& cpu_ops() const { return cpu_ops_; }

 private:
  Tally tally_;
  std::map<std::string, std::int64_t> kernels_, cpu_ops_;
  bool submitted_ = false;
};

inline Tally operator-(const Tally& all, const Tally& before) {
  return {all.dispatches - before.dispatches, all.barriers - before.barriers,
          all.copies - before.copies,         all.submits - before.submits,
          all.syncs - before.syncs,           all.cpu_ops - before.cpu_ops};
}

}  // namespace weir::engine
