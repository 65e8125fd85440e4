#include "gate/explain/observed_rows.hpp"

#include <algorithm>

#include "gate/base/text.hpp"
#include "gate/observed/totals.hpp"

namespace weir::explain {
namespace {

using observed::Observed;
using observed::ObservedOp;
using observed::Phase;

bool of_a_step(const Observed& observed) {
  return std::any_of(observed.ops.begin(), observed.ops.end(),
                     [](const ObservedOp& op) { return op.phase == Phase::decode && op.step; });
}

bool tells_tokens(const Observed& observed) { return decoded_tokens(observed).value_or(0) > 0; }

bool tells_decoding(const Observed& observed) {
  return std::any_of(observed.ops.begin(), observed.ops.end(),
                     [](const ObservedOp& op) { return op.phase == Phase::decode; });
}

}  // namespace

Shared shared_of(const Observed& before, const Observed& after) {
  Shared shared;
  shared.decoding = tells_decoding(before) && tells_decoding(after);
  shared.per_token = shared.decoding && tells_tokens(before) && tells_tokens(after);
  return shared;
}

bool RowChoice::takes(const ObservedOp& op) const {
  if (op.covers_others || (decoding && op.phase != Phase::decode)) return false;
  return !of_steps || op.step.has_value();
}

RowChoice rows_of_side(const Observed& observed, const Shared& shared) {
  RowChoice choice;
  choice.decoding = shared.decoding;
  choice.of_steps = shared.per_token && of_a_step(observed);
  choice.tokens = shared.per_token ? decoded_tokens(observed).value_or(1) : 1;
  return choice;
}

bool names_a_cpu(const std::string& backend) {
  const std::string name = text::lower(backend);
  return name.starts_with("cpu") || name == "blas" || name == "host";
}

}  // namespace weir::explain
