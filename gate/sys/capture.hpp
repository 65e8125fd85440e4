// What an engine prints, kept within bounds: all of it, or its beginning and its end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace weir::sys {

class Capture {
 public:
  Capture(std::size_t head, std::size_t tail) : head_limit_(head), tail_limit_(tail) {}

  // While `whole` (the beginning), everything is kept; cut() keeps only head and tail from now on.
  void add(std::string_view bytes);
  // Lets go of the middle. The memory is given back at once.
  void cut();
  // Room for `bytes` at least, not for much more.
  void reserve(std::size_t bytes);

  [[nodiscard]] bool whole() const { return whole_; }
  [[nodiscard]] std::size_t held() const { return head_.size() + tail_.size(); }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }  // added so far
  // Head, a line that tells how much is left out, tail. Ends the capture.
  [[nodiscard]] std::string take();

 private:
  void add_cut(std::string_view bytes);
  std::size_t head_limit_, tail_limit_;
  bool whole_ = true;
  std::uint64_t bytes_ = 0;
  std::string head_, tail_;
};

}  // namespace weir::sys
