// A run that is judged by a commit's rules (weir gate --from RUN --rules-from REF): a fork may have
// written it, so that every byte of its folder is a claim. Its numbers are taken as they are, and
// nothing else that a configuration says by itself: what a cell is, which ops it may leave on the
// CPU, and what holds it come from the text of its weir.yaml under the commit's rules, by the way
// that a run about to be measured takes.
#pragma once

#include "gate/flow/configure.hpp"
#include "gate/run/journal.hpp"

namespace weir::flow {
// Whether `job` judges what it reads by a commit's rules.
[[nodiscard]] bool judges_claims(const Job& job);

// What is read of a run's folder lies in it: Code::data where a link leads elsewhere.
[[nodiscard]] Result<void> stays_inside(const std::string& run, const sys::Files& files);

// Its configuration under the rules of `job`, and `header` in accordance with that: facts that are
// not measured are the configuration's. Cells that the rules hold and the run has not are gone.
// Code::data where it has a cell that its configuration does not have, or one of them twice;
// Code::usage of a single shard.
[[nodiscard]] Result<Configured> configured_by_rules(const Job& job, run::RunHeader& header);

}  // namespace weir::flow
