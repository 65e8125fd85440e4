// The index that all documents of a site are made from. Only this module includes it.
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

struct SiteVerdict {
  const history::StoredVerdict* stored = nullptr;
  verdict::GateVerdict gate;
};
// Returns the verdicts that can be read, by project, time and when they were stored. They point
// into `stored`.
[[nodiscard]] std::vector<SiteVerdict> read_verdicts(
    const std::vector<history::StoredVerdict>& stored);

// The fate of a red metric, by the next verdict of the same project and branch on the same cell
// and metric.
enum class Fate {
  accepted,  // the change was waived, or another baseline judges and it is red no more
  reverted,  // it is red no more with the same baseline
  disputed,  // another verdict on the same commit says that it is not red
  open,      // it is still red, or nothing came after it
};
[[nodiscard]] std::string_view to_string(Fate fate);

// A metric that was red, in one verdict or several in a row.
struct Red {
  std::size_t verdict = 0, cell = 0;  // places of the first
  std::string metric;                 // its name, or a rule's: "kernels"
  Fate fate = Fate::open;
};

struct Tally {
  std::int64_t verdicts = 0;   // readable verdicts
  std::int64_t red_gates = 0;  // failed verdicts
  std::int64_t errors = 0;     // verdicts of gates that could not measure
  std::int64_t undecided = 0;  // inconclusive metrics, by the newest verdict on each commit
  std::int64_t judged = 0;     // decided metrics, by the newest verdict on each commit
  std::vector<Red> reds;       // newest first
};
// Counts verdicts and metrics. Pure.
[[nodiscard]] Tally tally(const std::vector<SiteVerdict>& verdicts);

// The newest verdict on a cell.
struct SiteGate {
  std::size_t verdict = 0, cell = 0;  // places in SiteIndex::verdicts and in its cells
};

struct SiteCell {
  std::string project, name, id;    // id: the name of its file
  std::vector<std::size_t> series;  // places in the history
  std::optional<SiteGate> gate;
};

// A step from one commit to the next with counts, or to one that was compared with it.
struct SiteStep {
  std::size_t commit = 0, before = 0;
  const std::map<std::size_t, ChangedCell>* changed = nullptr;  // by cell
};

// A range of commits in which a cell uses a kernel equally often whenever it was counted.
struct KernelRun {
  std::size_t cell = 0, from = 0, to = 0;
  double times = 0;
};

struct SiteIndex {
  SiteModel model;
  std::vector<SiteCell> cells;  // by project and name
  std::map<std::pair<std::string, std::string>, std::size_t> cell_index_by_name;  // project, name
  std::map<std::string, std::size_t> cell_index_by_id;
  std::vector<history::Metric> metrics;         // by name
  std::vector<std::string> machines;            // by name
  std::vector<SiteVerdict> verdicts;            // readable ones, by time
  std::vector<std::string> page_id_by_verdict;  // the id of its run's page; "" for none
  std::vector<std::size_t> runs_with_pages;     // places of runs, the newest first
  std::map<std::string, std::size_t> run_index_by_id;
  std::unordered_map<std::size_t, std::string> page_id_by_run;  // for runs with a page
  // Places in `verdicts`.
  std::unordered_map<std::size_t, std::vector<std::size_t>> verdicts_by_run;
  // Points of runs with a page: series and point.
  std::unordered_map<std::size_t, std::vector<std::pair<std::size_t, std::size_t>>> points_by_run;
  std::map<std::string, std::vector<std::string>> commits;  // by the name of their file
  std::size_t commit_digits = 0;                            // digits of a commit that name its file
  std::vector<SiteStep> steps;                              // the oldest first
  std::vector<std::vector<KernelRun>> kernel_runs;          // by kernel

  [[nodiscard]] const std::vector<history::SeriesChange>& series_changes(std::size_t series) const;
};

[[nodiscard]] Json overview_json(const SiteIndex& index);
[[nodiscard]] Json sparks_json(const SiteIndex& index, std::size_t file);
[[nodiscard]] Json site_cell_json(const SiteIndex& index, const SiteCell& cell);
[[nodiscard]] Json site_runs_json(const SiteIndex& index);
[[nodiscard]] Json site_run_json(const SiteIndex& index, std::size_t run);
[[nodiscard]] Json site_baselines_json(const SiteIndex& index);
[[nodiscard]] Json site_tally_json(const SiteIndex& index);
// Fills steps and kernel_runs from the model's commit_changes.
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

// Rounds to so many digits: further ones are noise, and take space.
[[nodiscard]] double with_digits(double value, int digits);
// Returns the first 12 digits of a commit, enough to be unique; "" for none.
[[nodiscard]] std::string short_commit(const std::optional<std::string>& commit);
// Returns the state of a series: "worse", "better", "changed" (it is unknown which way is good),
// "place", "known", "unclear" (no change, but the last points are outside its band), "steady".
[[nodiscard]] std::string_view series_state(const history::Series& series,
                                            const std::vector<history::SeriesChange>& changes);

// Returns the script that hands a document over. Nothing in it ends a script or a line early.
[[nodiscard]] std::string site_script(std::string_view name, const Json& document);

}  // namespace weir::site
