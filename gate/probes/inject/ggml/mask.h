// Counts places and rows in the values of an attention mask. Pure.
#pragma once

#include <stdint.h>

namespace weir_probe {

// The values of a mask: rows in sheets, one behind the other. A row attends to a place unless its
// value is `closed`.
template <class Value>
struct MaskValues {
  const Value* values;
  Value closed;  // minus infinity
  int64_t places, rows, sheets;

  [[nodiscard]] uint64_t attended_places() const {
    uint64_t count = 0;
    for (int64_t i = 0; i < places * rows * sheets; ++i) {
      if (values[i] != closed) ++count;
    }
    return count;
  }

  // Returns the number of rows that attend to a place that no other row of their sheet attends to,
  // such as their own token's. 0 if some row shares all its places. Rows without places are padding
  // and do not count.
  [[nodiscard]] uint64_t independent_rows() const {
    uint64_t count = 0;
    for (int64_t sheet = 0; sheet < sheets; ++sheet) {
      for (int64_t row = 0; row < rows; ++row) {
        const Places kind = classify_places(sheet, row);
        if (kind == Places::shared) return 0;
        if (kind == Places::own) ++count;
      }
    }
    return count;
  }

 private:
  enum class Places { none, shared, own };

  [[nodiscard]] bool attends(int64_t sheet, int64_t row, int64_t place) const {
    return values[(sheet * rows + row) * places + place] != closed;
  }
  // Searches from the last place on, as the newest places are mostly there: a row's own token is
  // found soonest.
  [[nodiscard]] Places classify_places(int64_t sheet, int64_t row) const {
    Places result = Places::none;
    for (int64_t place = places; place-- > 0;) {
      if (!attends(sheet, row, place)) continue;
      result = Places::shared;
      int64_t other = 0;
      while (other < rows && (other == row || !attends(sheet, other, place))) ++other;
      if (other == rows) return Places::own;
    }
    return result;
  }
};

}  // namespace weir_probe
