// What the values of a mask of attention tell. Pure.
#pragma once

#include <stdint.h>

namespace weir_probe {

// Rows in sheets, one behind the other. A row attends to a place unless its value is `closed`.
template <class Value>
struct MaskValues {
  const Value* values;
  Value closed;  // minus infinity
  int64_t places, rows, sheets;

  [[nodiscard]] uint64_t open() const {
    uint64_t out = 0;
    for (int64_t i = 0; i < places * rows * sheets; ++i) out += values[i] != closed ? 1 : 0;
    return out;
  }

  // How many rows attend to a place that no other row of their sheet attends to, such as their own
  // token's; 0 if some row shares all its places. Rows without any are padding, and left out.
  [[nodiscard]] uint64_t rows_apart() const {
    uint64_t out = 0;
    for (int64_t sheet = 0; sheet < sheets; ++sheet) {
      for (int64_t row = 0; row < rows; ++row) {
        const Places found = places_of(sheet, row);
        if (found == Places::shared) return 0;
        out += found == Places::own ? 1 : 0;
      }
    }
    return out;
  }

 private:
  enum class Places { none, shared, own };

  [[nodiscard]] bool attends(int64_t sheet, int64_t row, int64_t place) const {
    return values[(sheet * rows + row) * places + place] != closed;
  }
  // The newest places are mostly the last ones: from there on a place of its own is found soonest.
  [[nodiscard]] Places places_of(int64_t sheet, int64_t row) const {
    Places found = Places::none;
    for (int64_t place = places; place-- > 0;) {
      if (!attends(sheet, row, place)) continue;
      found = Places::shared;
      int64_t other = 0;
      while (other < rows && (other == row || !attends(sheet, other, place))) ++other;
      if (other == rows) return Places::own;
    }
    return found;
  }
};

}  // namespace weir_probe
