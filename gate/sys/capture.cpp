#include "gate/sys/capture.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace weir::sys {

void Capture::add(std::string_view bytes) {
  bytes_ += bytes.size();
  if (whole_) {
    head_.append(bytes);
  } else {
    add_cut(bytes);
  }
}

void Capture::add_cut(std::string_view bytes) {
  const std::size_t room = head_limit_ - std::min(head_limit_, head_.size());
  const std::size_t first = std::min(room, bytes.size());
  head_.append(bytes.substr(0, first));
  tail_.append(bytes.substr(first));
  // Trimmed now and then, not at every call: each byte is moved once on average.
  if (tail_.size() > 2 * tail_limit_ + 4096) tail_.erase(0, tail_.size() - tail_limit_);
}

void Capture::cut() {
  if (!whole_) return;
  whole_ = false;
  const std::string all = std::exchange(head_, {});
  add_cut(all.size() > head_limit_ + tail_limit_ ? std::string_view(all).substr(0, head_limit_)
                                                 : std::string_view(all));
  if (all.size() > head_limit_ + tail_limit_) {
    tail_ = all.substr(all.size() - tail_limit_);
  }
}

void Capture::reserve(std::size_t bytes) { head_.reserve(bytes); }

std::string Capture::take() {
  if (tail_.size() > tail_limit_) tail_.erase(0, tail_.size() - tail_limit_);
  const std::uint64_t missing = bytes_ - head_.size() - tail_.size();
  std::string text = std::move(head_);
  if (missing > 0) text += fmt::format("\n[... {} bytes left out ...]\n", missing);
  text += tail_;
  return text;
}

}  // namespace weir::sys
