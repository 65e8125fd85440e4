// Lines of terminal text with colour. Used by the terminal report alone.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "gate/verdict/verdict.hpp"

namespace weir::report {

// Collects lines. Colour is put around whole pieces after they are laid out, so that it never
// counts as width. Not thread-safe; owned by one report.
class Page {
 public:
  Page(bool color, std::size_t width) : color_(color), width_(width) {}

  void blank() { out_ += '\n'; }
  // `first` and then `body`, wrapped; what was printed of `first` takes the colour.
  void paragraph(std::string_view first, std::string_view body, std::size_t indent,
                 std::string_view first_color = "", std::string_view body_color = "");
  [[nodiscard]] std::size_t width() const { return width_; }
  [[nodiscard]] std::string finish() { return std::move(out_); }

 private:
  [[nodiscard]] std::string paint(std::string_view text, std::string_view color) const;

  bool color_;
  std::size_t width_;
  std::string out_;
};

inline constexpr std::string_view k_dim = "2";
inline constexpr std::string_view k_bold = "1";
// The SGR parameters for an outcome: "1;31" for a broken limit.
[[nodiscard]] std::string_view color_of(verdict::Outcome outcome);

}  // namespace weir::report
