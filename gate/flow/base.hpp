// The base program that --against names: finds and builds it, prepares its cells, and assembles
// what a run measured of it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gate/config/matrix.hpp"
#include "gate/flow/job.hpp"
#include "gate/flow/stored_baselines.hpp"
#include "gate/profile/paired.hpp"
#include "gate/run/against.hpp"
#include "gate/run/journal.hpp"
#include "gate/source/base.hpp"
#include "gate/source/seal.hpp"

namespace weir::flow {
// Two commits of the candidate's repository, checked out and built apart from the user's checkout.
struct TwoCommits {
  // The base commit. Its candidate_root and candidate_commit describe the candidate.
  source::BaseTree base;
  std::shared_ptr<sys::Held> candidate_checkout;
  std::vector<std::string> own_roots;  // every path of the top of the user's checkout
  std::string counts_folder;           // the folder of counts by commit, for the base's
};

struct BaseRequest {
  std::string spec;                  // REF or DIR; "" if there is a command
  std::vector<std::string> command;  // after "--"
  // The environment of the command; absent: that of the engine.
  std::optional<config::Environment> env = std::nullopt;
  bool own = false;           // no spec or command: the candidate's program by another path
  bool other_commit = false;  // Code::unavailable if the base is the candidate itself
  std::shared_ptr<const TwoCommits> commits{};  // replaces all other fields
};

// Facts about the base, for the verdict.
struct BaseFacts {
  verdict::Against against;  // as typed
  std::string words;         // "merge-base of HEAD and origin/main, 1a2b3c4 …", "the command …"
  std::optional<std::string> commit, candidate_commit;
  bool candidate_dirty = false;
  std::vector<std::string> notes;
  std::size_t merge_bases = 0;  // BaseTree::merge_bases
  bool is_behind = false;       // the candidate lacks the commit whose rules judge it
};
void fields(Fields& io, BaseFacts& facts);

// The base's cells, ready to be planned. Keep it while the cells are used.
struct PreparedBase {
  BaseFacts facts;
  std::vector<run::PreparedCell> cells;        // in the candidate's order
  std::unique_ptr<config::Settings> settings;  // for a base command: its cells point into them
  std::string counts_folder;        // the folder of counts by commit; "" if none may be reused
  std::shared_ptr<sys::Held> held;  // keeps its worktree
  source::Seal seal{};  // in CI: of the base's program and files, and of what both sides read
};

// Prepares a set of cells: preflight with everything that it looks up.
using PrepareCells =
    std::function<Result<std::vector<run::PreparedCell>>(const std::vector<config::Cell>&)>;

// Finds the base, builds it if a build is configured, and gives the programs of both sides paths of
// equal length, so it changes `candidate` too. Takes as long as a build.
[[nodiscard]] Result<PreparedBase> prepare_base(const BaseRequest& wanted, const Job& job,
                                                const config::Settings& settings,
                                                const config::Redactor& redactor,
                                                std::vector<run::PreparedCell>& candidate,
                                                const PrepareCells& prepare, const sys::Stop& stop);

// Counts of a base commit, from the cache or from a run's folder.
class CachedCounts final : public run::KnownCounts {
 public:
  // `folder` "" holds nothing.
  CachedCounts(sys::Files& files, std::string folder) : stored_(files, folder), folder_(folder) {}
  [[nodiscard]] std::vector<baseline::Baseline> find_counts(
      const profile::CellKey& cell) const override;
  // Stores nothing without a folder.
  [[nodiscard]] Result<void> keep(const baseline::Baseline& counts);

 private:
  StoredBaselines stored_;
  std::string folder_;
};

// The runs of a base program, by cell of the candidate. The lines over depths follow the cells;
// their facts have the name alone.
struct BaseRuns {
  BaseFacts facts;
  std::vector<baseline::BaselineChoice>
      counts;  // the base counts of each cell; `none` has a reason
  std::vector<profile::PairedRuns> pairs;
  std::vector<profile::CellFacts> cells;  // the candidate's
};
[[nodiscard]] BaseRuns assemble_base_runs(const BaseFacts& facts, const run::RunHeader& header,
                                          const std::vector<profile::Profile>& profiles,
                                          const profile::RecordsByCell& records,
                                          const run::KnownCounts& known_counts);

// Stores the base's counts in the cache for later runs, and cached counts in this run's folder.
// Returns a warning if they could not be stored; the run itself is complete without.
[[nodiscard]] std::vector<std::string> keep_base_counts(const PreparedBase& base,
                                                        const run::RunHeader& header,
                                                        const profile::RecordsByCell& records,
                                                        const std::string& run_folder,
                                                        sys::Files& files);
// Returns the folder of base counts in a run's folder.
[[nodiscard]] std::string base_counts_folder(const std::string& run_folder);
// Returns the cache's folder of counts for a commit's checkout.
[[nodiscard]] std::string tree_counts_folder(const std::string& cache_folder,
                                             const std::string& tree);

// Describes the plan of pairs for people, in lines.
[[nodiscard]] std::vector<std::string> describe_pairs(const run::PairsPlan& plan,
                                                      const BaseFacts& facts,
                                                      const config::Redactor& redactor);

}  // namespace weir::flow
