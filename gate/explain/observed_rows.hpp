// Which rows of two profilers' outputs are held against each other. Used by this module alone.
#pragma once

#include <cstdint>
#include <string>

#include "gate/observed/observed.hpp"

namespace weir::explain {

// Decoding is what is compared, where both sides tell it apart; per token, where both also say how
// many tokens it was. Then only rows that belong to those tokens count.
struct Shared {
  bool decoding = false;
  bool per_token = false;
};
[[nodiscard]] Shared shared_of(const observed::Observed& before, const observed::Observed& after);

struct RowChoice {
  bool decoding = false;
  bool of_steps = false;
  std::int64_t tokens = 1;  // to divide by

  [[nodiscard]] bool takes(const observed::ObservedOp& op) const;
};
[[nodiscard]] RowChoice rows_of_side(const observed::Observed& observed, const Shared& shared);

[[nodiscard]] bool names_a_cpu(const std::string& backend);  // "CPU", "BLAS"

}  // namespace weir::explain
