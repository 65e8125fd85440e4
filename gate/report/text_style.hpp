// How a text for a terminal is set.
#pragma once

namespace weir::report {

struct TextStyle {
  int width = 80;
  bool color = false;
};

}  // namespace weir::report
