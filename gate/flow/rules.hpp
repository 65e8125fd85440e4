// Rules of a commit: reads limits, allow-lists, gate settings and baselines from a commit
// (--rules-from, --baselines-ref) in place of the working tree. See docs/explanation/rules.md.
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
// The rules that judged a run, as its journal stores them: enough to judge it again.
struct AppliedRules {
  std::optional<verdict::RulesFrom> from;
  std::string config_text;
  std::string baselines_words;   // "stored baselines of origin/main, 1a2b3c4 "…"", or ""
  std::string baselines_commit;  // the commit of the baselines; "": the working tree
  std::vector<verdict::Proposal> proposals;
  std::vector<std::string> not_judged, notes;
  std::vector<verdict::BaseCell> required_cells;  // the selected cells of the commit's matrix
  bool no_reference = false;  // gate.reference is not used, for a reason in `notes`
};
void fields(Fields& io, AppliedRules& used);
// The base's names of the cells, and of the lines over their depths, that have another name now.
[[nodiscard]] config::FormerNames former_names(const AppliedRules& used);

// The rules in a commit.
struct Rules {
  AppliedRules used;
  std::unique_ptr<config::Settings> settings;
  std::string config_place;               // the folder of its weir.yaml, from the top
  std::shared_ptr<sys::Files> baselines;  // null: the working tree's
  // The folder of its baselines, from the top; absent: a branch of their own, or outside.
  std::optional<std::string> baselines_folder;
  std::shared_ptr<Repository> repository;  // the repository behind `baselines`
};

// The value of --baselines-ref.
struct BaselinesPlace {
  std::string ref;
  std::optional<std::string> path;  // from the top; absent: `baselines` if that exists
};
[[nodiscard]] Result<BaselinesPlace> baselines_place(const std::string& wanted);
[[nodiscard]] Result<std::string> baselines_folder(const source::Git& git,
                                                   const std::string& commit,
                                                   const BaselinesPlace& place);

struct RulesOptions {
  std::optional<std::string> rules_from, baselines_ref;
};
// Reads the rules of a commit; null if the options name none. Code::config if REF is no commit
// here, or its rules cannot be used.
[[nodiscard]] Result<std::shared_ptr<const Rules>> read_rules(const RulesOptions& wanted,
                                                              const Job& job);

// Reads the rules of the branch that --baselines-ref names, before it is written to; null if the
// branch does not exist yet.
[[nodiscard]] Result<std::shared_ptr<const Rules>> read_branch_rules(const std::string& wanted,
                                                                     const Job& job);

// Returns the baselines of the job: those of its rules, else those in its folder.
[[nodiscard]] StoredBaselines stored_baselines(const Job& job);

// A commit's configuration without its expired limits. They are dropped, not refused, so that a
// pull request which removes them can pass.
struct BaseSettings {
  config::Settings settings;
  std::vector<std::string> notes;  // for the dropped limits
};
[[nodiscard]] Result<BaseSettings> parse_base_settings(const std::string& text,
                                                       const std::string& shown,
                                                       config::Supported context);

// Replaces the rules of `head` by those of the job, and returns what that changed. Cells point into
// `head`. A cell of the base is required if --cell selects it by its name there or by its own.
// `redactor` hides the names that either calls private.
[[nodiscard]] Result<AppliedRules> apply_rules(const Job& job, const config::Matrix& matrix,
                                               const config::Redactor& redactor,
                                               config::Settings& head);

// Leaves gate.reference out of `settings`, with a note.
void drop_reference_cell(const std::string& why, config::Settings& settings, AppliedRules& used);

// Returns the folder in a run's folder with the baselines that judged it.
[[nodiscard]] std::string baselines_in_run(const std::string& run_folder);
// Copies the stored baselines of `cells`, and of the lines over their depths, into the run's
// folder.
[[nodiscard]] Result<void> keep_baselines(const Rules& rules, const Job& job,
                                          const std::vector<profile::CellKey>& cells,
                                          const std::string& run_folder);

}  // namespace weir::flow
