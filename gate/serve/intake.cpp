// Stores uploads in batches, one transaction each, on a writer's thread.
#include "gate/serve/intake.hpp"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "gate/sys/clock.hpp"

namespace weir::serve {

void Histogram::observe(double seconds) {
  const auto at = std::lower_bound(k_bounds.begin(), k_bounds.end(), seconds);
  ++counts_[static_cast<std::size_t>(at - k_bounds.begin())];
  microseconds_ += static_cast<std::uint64_t>(std::max(seconds, 0.0) * 1e6);
}

// Returns the histogram in the Prometheus text format.
std::string Histogram::prometheus_text(const std::string& name, const std::string& help) const {
  std::string text = fmt::format("# HELP {0} {1}\n# TYPE {0} histogram\n", name, help);
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    total += counts_[i].load();
    const std::string bound = i < k_bounds.size() ? fmt::format("{}", k_bounds[i]) : "+Inf";
    text += fmt::format("{}_bucket{{le=\"{}\"}} {}\n", name, bound, total);
  }
  const double seconds = static_cast<double>(microseconds_.load()) / 1e6;
  return text + fmt::format("{0}_sum {1}\n{0}_count {2}\n", name, seconds, total);
}

Intake::Intake(OpenStore open, const IntakeLimits& limits, Meters& meters)
    : store_(std::move(open)), limits_(limits), meters_(meters) {}

// Queues an upload for the writer; returns false if too much waits or the writer has stopped.
bool Intake::put(history::Upload upload, std::uint64_t bytes, Done done) {
  const std::lock_guard lock(mutex_);
  const bool full =
      queue_.size() >= limits_.waiting || (!queue_.empty() && bytes_ + bytes > limits_.bytes);
  // One task for each upload. If an earlier task stored it already, its task finds nothing to do.
  if (full || !writer_.post([this](std::size_t) { store_batch(take_batch()); })) return false;
  queue_.push_back({std::move(upload), bytes, std::move(done)});
  bytes_ += bytes;
  return true;
}

std::size_t Intake::waiting() const {
  const std::lock_guard lock(mutex_);
  return queue_.size();
}

// Takes the uploads that fit into one transaction from the queue: at least one, unless the queue is
// empty.
std::vector<Intake::Waiting> Intake::take_batch() {
  const std::lock_guard lock(mutex_);
  std::vector<Waiting> batch;
  std::uint64_t bytes = 0;
  while (!queue_.empty() && batch.size() < limits_.together) {
    bytes += queue_.front().bytes;
    if (!batch.empty() && bytes > limits_.bytes_together) break;
    bytes_ -= queue_.front().bytes;
    batch.push_back(std::move(queue_.front()));
    queue_.pop_front();
  }
  return batch;
}

// Stores uploads in one transaction and measures its time.
Result<std::vector<history::UploadOutcome>> Intake::add(
    const std::vector<history::Upload>& uploads) {
  const sys::RealClock clock;
  const double began_at = clock.steady();
  auto outcomes =
      store_.with([&](history::ServiceStore& store) { return store.add_uploads(uploads); });
  meters_.transaction_times.observe(clock.steady() - began_at);
  ++meters_.transactions;
  return outcomes;
}

// Stores a batch in one transaction and reports each upload's outcome to its `done`. If that fails,
// stores each upload by itself.
void Intake::store_batch(std::vector<Waiting> batch) {
  if (batch.empty()) return;
  std::vector<history::Upload> uploads;
  for (Waiting& waiting_upload : batch) uploads.push_back(std::move(waiting_upload.upload));
  auto outcomes = add(uploads);
  if (outcomes) {
    for (std::size_t i = 0; i < batch.size(); ++i) batch[i].done(std::move((*outcomes)[i]));
    return;
  }
  // The error does not say which upload failed, so try each one. If the store itself is
  // unavailable, all get its error: each attempt would wait as long again.
  std::optional<Error> shared_error;
  if (batch.size() == 1 || outcomes.error().code == Code::unavailable)
    shared_error = outcomes.error();
  for (std::size_t i = 0; i < batch.size(); ++i) {
    if (shared_error) {
      batch[i].done(tl::unexpected(*shared_error));
      continue;
    }
    auto outcome = add({std::move(uploads[i])});
    if (!outcome && outcome.error().code != Code::data) shared_error = outcome.error();
    if (outcome) {
      batch[i].done(std::move(outcome->front()));
    } else {
      batch[i].done(tl::unexpected(outcome.error()));
    }
  }
}

}  // namespace weir::serve
