// The checklist for slow engines, ticked as far as what was measured can answer it. Pure.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "gate/explain/bands.hpp"
#include "gate/explain/evidence.hpp"

namespace weir::explain {

struct Check {
  enum class Answer { fine, wrong, unknown };
  std::string question;  // "Syncs: 3 a token or fewer"
  Answer answer = Answer::unknown;
  std::string note;  // what was seen, or why it can not be told
};
[[nodiscard]] std::string_view to_string(Check::Answer answer);  // "fine", "wrong", "unknown"

// Ops that the config lets run on the CPU; absent where that is not known.
using AllowedOps = std::optional<std::set<std::string>>;

// `kinds` are the names of the kinds of finding there are, which answer some of it.
[[nodiscard]] std::vector<Check> checklist_of(const Evidence& evidence, const Bands& bands,
                                              const std::vector<std::string_view>& kinds,
                                              const AllowedOps& cpu_ops_allowed = std::nullopt);

}  // namespace weir::explain
