// The base program that --against names: found (and built), put beside the candidate's cells, and
// what a run has measured of it.
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

namespace weir::flow {
// Two commits of the candidate's repository, checked out and built: neither side is what lies in
// the user's checkout.
struct TwoCommits {
  // The one that the other is held to; what candidate_root and candidate_commit say is of the
  // other.
  source::BaseTree base;
  std::shared_ptr<sys::Held> candidate_held;
  std::vector<std::string> own_roots;  // all names of the top of the user's checkout
  std::string counts_folder;           // of counts known by the base's commit
};

struct BaseRequest {
  std::string spec;                  // REF or DIR; "" with a command
  std::vector<std::string> command;  // what stands behind "--"
  // Of the command, in place of the engine's; absent: the engine's.
  std::optional<config::Environment> env = std::nullopt;
  bool own = false;           // neither: the candidate's own program, by another path
  bool other_commit = false;  // a base that is the candidate itself is Code::unavailable
  std::shared_ptr<const TwoCommits> commits{};  // in place of all of these
};

// What the verdict says of the base.
struct BaseFacts {
  verdict::Against against;  // as typed
  std::string words;         // "merge-base of HEAD and origin/main, 1a2b3c4 …", "the command …"
  std::optional<std::string> commit, candidate_commit;
  bool candidate_dirty = false;
  std::vector<std::string> notes;
};
void fields(Fields& io, BaseFacts& facts);

// Both sides, ready to be planned. Keep it while the cells are used.
struct PreparedBase {
  BaseFacts facts;
  std::vector<run::PreparedCell> cells;        // the base's, in the candidate's order
  std::unique_ptr<config::Settings> settings;  // of a base command, whose cells point into it
  std::string counts_folder;                   // of counts known by its commit; "" when none may be
  std::shared_ptr<sys::Held> held;             // its worktree
};

// How one set of cells is prepared: preflight with all that it looks up.
using PrepareCells =
    std::function<Result<std::vector<run::PreparedCell>>(const std::vector<config::Cell>&)>;

// Finds the base, builds it where that is configured, and points both sides' programs through
// paths of equal length: `candidate` is changed too. Takes as long as a build.
[[nodiscard]] Result<PreparedBase> prepare_base(const BaseRequest& wanted, const Job& job,
                                                const config::Settings& settings,
                                                const config::Redactor& redactor,
                                                std::vector<run::PreparedCell>& candidate,
                                                const PrepareCells& prepare, const sys::Stop& stop);

// Counts by commit from the cache, or those that were copied into a run's folder.
class CachedCounts final : public run::KnownCounts {
 public:
  // "": knows nothing.
  CachedCounts(sys::Files& files, std::string folder) : stored_(files, folder), folder_(folder) {}
  [[nodiscard]] std::vector<baseline::Baseline> of(const profile::CellKey& cell) const override;
  // Nothing where there is no folder.
  [[nodiscard]] Result<void> keep(const baseline::Baseline& counts);

 private:
  StoredBaselines stored_;
  std::string folder_;
};

// What a run measured beside its base, cell by cell; behind them the lines over depths, of whose
// facts there is the name alone.
struct Beside {
  BaseFacts facts;
  std::vector<baseline::Choice> counts;  // what each cell's counts are held to; none with a reason
  std::vector<profile::PairedRuns> pairs;
  std::vector<profile::CellFacts> cells;  // the candidate's
};
[[nodiscard]] Beside measured_beside(const BaseFacts& facts, const run::RunHeader& header,
                                     const std::vector<profile::Profile>& profiles,
                                     const std::vector<profile::RunRecord>& records,
                                     const run::KnownCounts& known);

// Keeps what was counted of the base for the next run, and what was known of it for this one.
// What could not be kept is told; the run loses nothing by it.
[[nodiscard]] std::vector<std::string> keep_base_counts(
    const PreparedBase& base, const run::RunHeader& header,
    const std::vector<profile::RunRecord>& records, const std::string& run_folder,
    sys::Files& files);
// Where a run's folder holds the latter.
[[nodiscard]] std::string base_counts_folder(const std::string& run_folder);
// Where the cache holds what was counted of a commit's checkout.
[[nodiscard]] std::string counts_of_tree(const std::string& cache_folder, const std::string& tree);

// The plan of pairs, for people: a line each.
[[nodiscard]] std::vector<std::string> words_of(const run::PairsPlan& plan, const BaseFacts& facts,
                                                const config::Redactor& redactor);

}  // namespace weir::flow
