// Bounded capture of an engine's output: all of it, or its beginning and its end.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace weir::sys {

class Capture {
 public:
  Capture(std::size_t head, std::size_t tail) : head_limit_(head), tail_limit_(tail) {}

  // While `whole` (the beginning), everything is kept; cut() keeps only head and tail from now on.
  void add(std::string_view bytes) {
    bytes_ += bytes.size();
    if (is_complete_) {
      head_.append(bytes);
    } else {
      add_cut(bytes);
    }
  }

  // Lets go of the middle. The memory is given back at once.
  void cut() {
    if (!is_complete_) return;
    is_complete_ = false;
    const std::string all = std::exchange(head_, {});
    add_cut(all.size() > head_limit_ + tail_limit_ ? std::string_view(all).substr(0, head_limit_)
                                                   : std::string_view(all));
    if (all.size() > head_limit_ + tail_limit_) {
      tail_ = all.substr(all.size() - tail_limit_);
    }
  }

  // Room for `bytes` at least, not for much more.
  void reserve(std::size_t bytes) { head_.reserve(bytes); }

  [[nodiscard]] bool is_complete() const { return is_complete_; }
  [[nodiscard]] std::size_t size() const { return head_.size() + tail_.size(); }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }  // added so far
  // Head, a line that tells how much is left out, tail. Ends the capture.
  [[nodiscard]] std::string take() {
    if (tail_.size() > tail_limit_) tail_.erase(0, tail_.size() - tail_limit_);
    const std::uint64_t missing = bytes_ - head_.size() - tail_.size();
    std::string text = std::move(head_);
    if (missing > 0) text += fmt::format("\n[... {} bytes left out ...]\n", missing);
    text += tail_;
    return text;
  }

 private:
  void add_cut(std::string_view bytes) {
    const std::size_t room = head_limit_ - std::min(head_limit_, head_.size());
    const std::size_t first = std::min(room, bytes.size());
    head_.append(bytes.substr(0, first));
    tail_.append(bytes.substr(first));
    // Trimmed now and then, not at every call: each byte is moved once on average.
    if (tail_.size() > 2 * tail_limit_ + 4096) tail_.erase(0, tail_.size() - tail_limit_);
  }

  std::size_t head_limit_, tail_limit_;
  bool is_complete_ = true;
  std::uint64_t bytes_ = 0;
  std::string head_, tail_;
};

}  // namespace weir::sys
