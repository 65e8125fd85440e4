// Uploads into the store: one thread writes, and takes several that wait into one transaction, for
// each transaction waits for the disk. An upload is answered when it is on the disk. Thread-safe.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "gate/history/store.hpp"
#include "gate/serve/workers.hpp"

namespace weir::serve {

// The service's own counts, for /metrics. Thread-safe.

class Histogram {
 public:
  void observe(double seconds);
  // In the Prometheus text format, with its type and help.
  [[nodiscard]] std::string prometheus_text(const std::string& name, const std::string& help) const;

 private:
  static constexpr std::array<double, 10> k_bounds{0.001, 0.003, 0.01, 0.03, 0.1,
                                                   0.3,   1,     3,    10,   30};
  std::array<std::atomic<std::uint64_t>, k_bounds.size() + 1> counts_{};  // the last: longer
  std::atomic<std::uint64_t> microseconds_{0};
};

struct Meters {
  using Count = std::atomic<std::uint64_t>;
  Count uploads_kept{0};     // something of them was new
  Count uploads_known{0};    // all of it was there
  Count uploads_refused{0};  // by their content
  Count uploads_failed{0};   // the store could not keep them
  Count tokens_refused{0}, rates_exceeded{0};
  std::array<Count, 6> answers{};  // by the first digit of their status; [0]: others
  Count transactions{0};
  // Seconds of a transaction of uploads, and from a whole request to its answer.
  Histogram transaction_times, answer_times;

  void count_answer(int status) {
    ++answers[status >= 100 && status < 600 ? static_cast<std::size_t>(status / 100) : 0];
  }
};

// A connection to the store for one thread, opened when it is needed and again after it broke.

using OpenStore = std::function<Result<std::unique_ptr<history::ServiceStore>>()>;

class StoreSlot {
 public:
  explicit StoreSlot(OpenStore open) : open_(std::move(open)) {}

  // Returns what `ask` returns for the store; Code::internal if it throws. After an Error that is
  // not the question's, the next call opens a new connection.
  template <class Ask>
  auto with(Ask ask) -> decltype(ask(std::declval<history::ServiceStore&>())) {
    try {
      if (!store_) {
        WEIR_TRY(store_, open_());
      }
      auto answer = ask(*store_);
      if (!answer && answer.error().code != Code::usage) store_.reset();
      return answer;
    } catch (const std::exception& error) {  // its state may be inconsistent
      store_.reset();
      return fail(Code::internal, "{}", error.what());
    }
  }

 private:
  OpenStore open_;
  std::unique_ptr<history::ServiceStore> store_;
};

struct IntakeLimits {
  std::size_t waiting = 256;                              // uploads
  std::uint64_t bytes = std::uint64_t{24} << 20;          // in memory; one may have more
  std::size_t together = 64;                              // in one transaction
  std::uint64_t bytes_together = std::uint64_t{4} << 20;  // but one at least
};

class Intake {
 public:
  // Called once for each upload that was taken, by the writing thread. Code::data: this upload is
  // wrong; anything else: the store could not keep it, and it may be sent again.
  using Done = std::function<void(Result<history::UploadOutcome>)>;

  // Gone, it has stopped.
  Intake(OpenStore open, const IntakeLimits& limits, Meters& meters);

  // False where too much waits, or after stop(): `done` is not called then.
  [[nodiscard]] bool put(history::Upload upload, std::uint64_t bytes, Done done);
  // Takes no more; returns when all that was taken is answered.
  void stop() { writer_.stop(); }
  [[nodiscard]] std::size_t waiting() const;

 private:
  struct Waiting {
    history::Upload upload;
    std::uint64_t bytes = 0;
    Done done;
  };
  [[nodiscard]] std::vector<Waiting> take_batch();
  void store_batch(std::vector<Waiting> batch);
  [[nodiscard]] Result<std::vector<history::UploadOutcome>> add(
      const std::vector<history::Upload>& uploads);

  StoreSlot store_;
  const IntakeLimits limits_;
  Meters& meters_;
  mutable std::mutex mutex_;
  std::deque<Waiting> queue_;  // under mutex_, as the next
  std::uint64_t bytes_ = 0;
  Workers writer_{1, SIZE_MAX};  // the last: it uses all of the above
};

}  // namespace weir::serve
