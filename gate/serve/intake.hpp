// Uploads into the store: one thread writes, and takes several that wait into one transaction, for
// each transaction waits for the disk. An upload is answered when it is on the disk. Thread-safe.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "gate/serve/meters.hpp"
#include "gate/serve/store_slot.hpp"

namespace weir::serve {

struct IntakeLimits {
  std::size_t waiting = 256;                              // uploads
  std::uint64_t bytes = std::uint64_t{128} << 20;         // of the bodies that they came as
  std::size_t together = 64;                              // in one transaction
  std::uint64_t bytes_together = std::uint64_t{8} << 20;  // but one at least
};

class Intake {
 public:
  // Called once for each upload that was taken, by the writing thread. Code::data: this upload is
  // wrong; anything else: the store could not keep it, and it may be sent again.
  using Done = std::function<void(Result<history::UploadOutcome>)>;

  Intake(OpenStore open, const IntakeLimits& limits, Meters& meters);
  ~Intake();  // as stop()
  Intake(const Intake&) = delete;
  Intake& operator=(const Intake&) = delete;

  // False where too much waits, or after stop(): `done` is not called then.
  [[nodiscard]] bool put(history::Upload upload, std::uint64_t bytes, Done done);
  // Takes no more; returns when all that was taken is answered.
  void stop();
  [[nodiscard]] std::size_t waiting() const;

 private:
  struct Waiting {
    history::Upload upload;
    std::uint64_t bytes = 0;
    Done done;
  };
  void work();
  [[nodiscard]] std::vector<Waiting> next();
  void keep(std::vector<Waiting> some);
  [[nodiscard]] Result<std::vector<history::UploadOutcome>> add(
      const std::vector<history::Upload>& uploads);

  StoreSlot store_;
  const IntakeLimits limits_;
  Meters& meters_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Waiting> queue_;  // under mutex_, as the next two
  std::uint64_t bytes_ = 0;
  bool stopped_ = false;
  std::mutex joining_;
  std::thread thread_;
};

}  // namespace weir::serve
