// What the documents of a site have in common: what is where. Used by site alone.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "gate/base/json.hpp"
#include "gate/history/history.hpp"
#include "gate/site/site.hpp"
#include "gate/verdict/verdict.hpp"

namespace weir::site {

// The gate's own tally: what became of what it said. Pure.

struct SiteVerdict {
  const history::StoredVerdict* stored = nullptr;
  verdict::GateVerdict gate;
};
// Those that can be read, by project, time and when they were kept. They point into `stored`.
[[nodiscard]] std::vector<SiteVerdict> read_verdicts(
    const std::vector<history::StoredVerdict>& stored);

// What came after a red metric: the next verdict of the same project and branch on the same cell
// and metric decides.
enum class Fate {
  accepted,  // it was allowed, or is judged by another baseline and red no more
  reverted,  // it is red no more beside the same baseline
  disputed,  // another verdict on the same commit says that it is not red
  open,      // it is red still, or nothing came after it
};
[[nodiscard]] std::string_view to_string(Fate fate);

struct Red {
  std::size_t verdict = 0, cell = 0;  // places
  std::string metric;                 // its name, or a rule's: "kernels"
  Fate fate = Fate::open;
};

struct Tally {
  std::int64_t verdicts = 0;   // that were read
  std::int64_t red_gates = 0;  // among them
  std::int64_t errors = 0;     // could not be measured
  std::int64_t undecided = 0;  // metrics, of the newest verdict on each commit
  std::int64_t judged = 0;     // metrics that were judged
  // A metric that stays red over several verdicts in a row is one, told by its first.
  std::vector<Red> reds;
};
[[nodiscard]] Tally tally(const std::vector<SiteVerdict>& verdicts);

// The newest verdict on a cell.
struct SiteGate {
  std::size_t verdict = 0, cell = 0;  // places in SiteIndex::verdicts and in its cells
};

struct SiteCell {
  std::string project, name, id;    // id: what its file is named by
  std::vector<std::size_t> series;  // places in the history
  std::optional<SiteGate> gate;
};

// From one commit to the next that was counted, or to that which somebody compared with it.
struct SiteStep {
  std::size_t commit = 0, before = 0;
  const std::map<std::size_t, ChangedCell>* changed = nullptr;  // by cell
};

// A cell takes a kernel so often in all commits from one to another in which it was counted.
struct KernelRun {
  std::size_t cell = 0, from = 0, to = 0;
  double times = 0;
};

struct SiteIndex {
  SiteModel model;
  std::vector<SiteCell> cells;                                         // by project and name
  std::map<std::pair<std::string, std::string>, std::size_t> cell_at;  // project and name
  std::map<std::string, std::size_t> cell_by_id;
  std::vector<history::Metric> metrics;   // by name
  std::vector<std::string> machines;      // by name
  std::vector<SiteVerdict> verdicts;      // readable ones, by time
  std::vector<std::string> verdict_page;  // the id of its run's page; "" where there is none
  std::vector<std::size_t> run_pages;     // places of runs, the newest first
  std::map<std::string, std::size_t> run_by_id;
  std::unordered_map<std::size_t, std::string> run_id;                     // of those with a page
  std::unordered_map<std::size_t, std::vector<std::size_t>> run_verdicts;  // places in `verdicts`
  // Points of runs with a page: series and point.
  std::unordered_map<std::size_t, std::vector<std::pair<std::size_t, std::size_t>>> run_points;
  std::map<std::string, std::vector<std::string>> commits;  // by the name of their file
  std::size_t commit_digits = 0;                    // of a commit's name that its file is named by
  std::vector<SiteStep> steps;                      // the oldest first
  std::vector<std::vector<KernelRun>> kernel_runs;  // by kernel

  [[nodiscard]] const std::vector<history::SeriesChange>& changes_of(std::size_t series) const;
};

[[nodiscard]] Json overview_json(const SiteIndex& index);
[[nodiscard]] Json sparks_json(const SiteIndex& index, std::size_t file);
[[nodiscard]] Json site_cell_json(const SiteIndex& index, const SiteCell& cell);
[[nodiscard]] Json site_runs_json(const SiteIndex& index);
[[nodiscard]] Json site_run_json(const SiteIndex& index, std::size_t run);
[[nodiscard]] Json site_baselines_json(const SiteIndex& index);
[[nodiscard]] Json site_tally_json(const SiteIndex& index);
// Of the model's commit_changes.
void index_commit_changes(SiteIndex& index);
[[nodiscard]] Json site_steps_json(const SiteIndex& index);
[[nodiscard]] Json site_step_json(const SiteIndex& index, std::size_t number);
[[nodiscard]] Json site_kernels_json(const SiteIndex& index);
[[nodiscard]] Json site_kernel_file_json(const SiteIndex& index, std::size_t file);
[[nodiscard]] Json site_metric_json(const history::Metric& metric);
// Device and machine, each with its class.
[[nodiscard]] Json site_place_json(const history::Place& place);
[[nodiscard]] Json site_change_json(const SiteIndex& index, const history::Series& series,
                                    const history::SeriesChange& change);

// So many digits: noise is in those behind them, and much text.
[[nodiscard]] double with_digits(double value, int digits);
// A commit as documents have it but for those of runs: enough digits to be the only one.
[[nodiscard]] std::string short_commit(const std::optional<std::string>& commit);
// How a change or a last value reads: "worse", "better", "changed" (which way is good is not
// known), "place", "known", "unclear" (no change, but its last nights lie outside its band),
// "steady".
[[nodiscard]] std::string_view series_state(const history::Series& series,
                                            const std::vector<history::SeriesChange>& changes);

// The call that hands a document over. Nothing in it ends a script or a line early.
[[nodiscard]] std::string site_script(std::string_view name, const Json& document);

}  // namespace weir::site
