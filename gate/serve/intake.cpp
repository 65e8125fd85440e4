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

std::string Histogram::text(const std::string& name, const std::string& help) const {
  std::string text = fmt::format("# HELP {0} {1}\n# TYPE {0} histogram\n", name, help);
  std::uint64_t all = 0;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    all += counts_[i].load();
    const std::string bound = i < k_bounds.size() ? fmt::format("{}", k_bounds[i]) : "+Inf";
    text += fmt::format("{}_bucket{{le=\"{}\"}} {}\n", name, bound, all);
  }
  const double seconds = static_cast<double>(microseconds_.load()) / 1e6;
  return text + fmt::format("{0}_sum {1}\n{0}_count {2}\n", name, seconds, all);
}

Intake::Intake(OpenStore open, const IntakeLimits& limits, Meters& meters)
    : store_(std::move(open)), limits_(limits), meters_(meters) {}

bool Intake::put(history::Upload upload, std::uint64_t bytes, Done done) {
  const std::lock_guard lock(mutex_);
  const bool full =
      queue_.size() >= limits_.waiting || (!queue_.empty() && bytes_ + bytes > limits_.bytes);
  // One task an upload: where one before it took several, it finds none and is done.
  if (full || !writer_.post([this](std::size_t) { keep(next()); })) return false;
  queue_.push_back({std::move(upload), bytes, std::move(done)});
  bytes_ += bytes;
  return true;
}

std::size_t Intake::waiting() const {
  const std::lock_guard lock(mutex_);
  return queue_.size();
}

// As many as fit into one transaction.
std::vector<Intake::Waiting> Intake::next() {
  const std::lock_guard lock(mutex_);
  std::vector<Waiting> some;
  std::uint64_t bytes = 0;
  while (!queue_.empty() && some.size() < limits_.together) {
    bytes += queue_.front().bytes;
    if (!some.empty() && bytes > limits_.bytes_together) break;
    bytes_ -= queue_.front().bytes;
    some.push_back(std::move(queue_.front()));
    queue_.pop_front();
  }
  return some;
}

Result<std::vector<history::UploadOutcome>> Intake::add(
    const std::vector<history::Upload>& uploads) {
  const sys::RealClock clock;
  const double begun = clock.steady();
  auto outcomes =
      store_.with([&](history::ServiceStore& store) { return store.add_uploads(uploads); });
  meters_.store.observe(clock.steady() - begun);
  ++meters_.transactions;
  return outcomes;
}

void Intake::keep(std::vector<Waiting> some) {
  if (some.empty()) return;
  std::vector<history::Upload> uploads;
  for (Waiting& one : some) uploads.push_back(std::move(one.upload));
  auto outcomes = add(uploads);
  if (outcomes) {
    for (std::size_t i = 0; i < some.size(); ++i) some[i].done(std::move((*outcomes)[i]));
    return;
  }
  // Which one it was is not known: each for itself. Where it was the store (others keep it busy, it
  // cannot be reached), each would wait as long again.
  std::optional<Error> for_all;
  if (some.size() == 1 || outcomes.error().code == Code::unavailable) for_all = outcomes.error();
  for (std::size_t i = 0; i < some.size(); ++i) {
    if (for_all) {
      some[i].done(tl::unexpected(*for_all));
      continue;
    }
    auto one = add({std::move(uploads[i])});
    if (!one && one.error().code != Code::data) for_all = one.error();
    some[i].done(one ? Result<history::UploadOutcome>(std::move(one->front()))
                     : tl::unexpected(one.error()));
  }
}

}  // namespace weir::serve
