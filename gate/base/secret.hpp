// Text that must not leave the program by accident: tokens. Pure.
#pragma once

#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace weir {

// Neither prints, formats, converts nor compares; only reveal() gives it away, so a search for that
// word finds every place where it does.
class Secret {
 public:
  Secret() = default;
  explicit Secret(std::string text) : text_(std::move(text)) {}

  [[nodiscard]] bool empty() const { return text_.empty(); }
  [[nodiscard]] const std::string& reveal() const { return text_; }

 private:
  std::string text_;
};
std::ostream& operator<<(std::ostream&, const Secret&) = delete;

// Takes registered secrets out of text that leaves the program: as they are, in base64 (also where
// they stand amid other bytes, as in "user:token" of a Basic header), percent-encoded (either case
// of digits), JSON-escaped. Secrets of fewer than 6 characters are left alone: masking them would
// tear up innocent text. Not thread-safe while add() runs.
class Masker {
 public:
  void add(const Secret& secret);
  static constexpr std::size_t k_min_secret_bytes = 6;
  // "***" in their place. Text without a secret comes back unchanged.
  [[nodiscard]] std::string mask(std::string_view text) const;
  // The same of text that others have cut: also a part of at least 6 characters that a secret
  // begins or ends with.
  [[nodiscard]] std::string mask_with_parts(std::string_view text) const;

 private:
  std::vector<std::string> forms_;  // the longest first
};

}  // namespace weir

template <>
struct fmt::formatter<weir::Secret> {
  formatter() = delete;  // formatting one does not compile
};
