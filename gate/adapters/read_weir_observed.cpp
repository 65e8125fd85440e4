// weir.observed/1, read back.
#include "gate/adapters/readers.hpp"

namespace weir::adapters::weir_observed {

int recognises(const Printed& printed) { return printed.holds("\"weir.observed/1\"") ? 90 : 0; }

Result<observed::Observed> read(const Printed& printed) {
  WEIR_TRY(const Json json, parse_json(printed.document().out));
  return observed::observed_from_json(json);
}

}  // namespace weir::adapters::weir_observed
