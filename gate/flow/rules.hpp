// Who may change the rules: limits, allow-lists, gate settings and baselines read from a commit
// (--rules-from, --baselines-ref) in place of the working tree. docs/explanation/rules.md.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gate/config/matrix.hpp"
#include "gate/flow/job.hpp"
#include "gate/flow/repository.hpp"
#include "gate/flow/stored_baselines.hpp"
#include "gate/verdict/removed.hpp"

namespace weir::flow {
// What a run was judged by, as its journal keeps it: enough to judge it again.
struct RulesUsed {
  std::optional<verdict::RulesFrom> from;
  std::string config_text;
  std::string baselines_words;   // "stored baselines of origin/main, 1a2b3c4 "…"", or ""
  std::string baselines_commit;  // where baselines were read; "": in the working tree
  std::vector<verdict::Proposal> proposals;
  std::vector<std::string> not_judged, notes;
  std::vector<verdict::HeldCell> held;  // cells of the commit's matrix, of those that are selected
};
void fields(Fields& io, RulesUsed& used);

// What a commit holds of the rules.
struct Rules {
  RulesUsed used;  // with proposals of edits to baselines
  std::unique_ptr<config::Settings> settings;
  std::shared_ptr<sys::Files> baselines;   // null: in the working tree
  std::shared_ptr<Repository> repository;  // that `baselines` reads from
};

// What --baselines-ref names.
struct BaselinesPlace {
  std::string ref;
  std::optional<std::string> path;  // from the top of it; absent: `baselines` if it has that
};
[[nodiscard]] Result<BaselinesPlace> baselines_place(const std::string& wanted);
[[nodiscard]] Result<std::string> baselines_folder(const source::Git& git,
                                                   const std::string& commit,
                                                   const BaselinesPlace& place);

struct RulesWanted {
  std::optional<std::string> rules_from, baselines_ref;
};
// Nothing where nothing is wanted. Fails with Code::config where REF is no commit here, or what it
// holds cannot be used.
[[nodiscard]] Result<std::shared_ptr<const Rules>> read_rules(const RulesWanted& wanted,
                                                              const Job& job);

// Of the local branch that --baselines-ref names, as it is before it is written to; nothing where
// it is not there yet.
[[nodiscard]] Result<std::shared_ptr<const Rules>> rules_of_branch(const std::string& wanted,
                                                                   const Job& job);

// Where `options` say that baselines are.
[[nodiscard]] StoredBaselines baselines_of(const Job& job);

// A commit's configuration, whose limits that are over by now are left out, not refused: they must
// not keep the one out that takes them away.
struct BaseSettings {
  config::Settings settings;
  std::vector<std::string> notes;  // of what was over
};
[[nodiscard]] Result<BaseSettings> parse_base_settings(const std::string& text,
                                                       const std::string& shown,
                                                       config::Known known);

// Puts the rules in place of `head`'s own, and says what that changed. Cells point into `head`.
// `globs`: --cell.
[[nodiscard]] RulesUsed apply_rules(const Rules& rules, const config::Matrix& matrix,
                                    const std::string& config_folder,
                                    const std::vector<std::string>& globs, config::Settings& head);

// Cells that are gone by the configuration and there by the fingerprint and device class of what is
// `stored` of them: renamed.
[[nodiscard]] Result<void> find_renamed(RulesUsed& used,
                                        const std::vector<profile::Profile>& profiles,
                                        const StoredBaselines& stored);

// The folder of a run in which the baselines lie that it was judged by.
[[nodiscard]] std::string baselines_in_run(const std::string& run_folder);
// Copies what is stored of `cells`, and of the lines over their depths, into the run's folder.
[[nodiscard]] Result<void> keep_baselines(const Rules& rules, const Job& job,
                                          const std::vector<profile::CellKey>& cells,
                                          const std::string& run_folder);

}  // namespace weir::flow
