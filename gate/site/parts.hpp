// What the documents of a site have in common: what is where. Internal to publish.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "gate/base/json.hpp"
#include "gate/site/site.hpp"
#include "gate/site/tally.hpp"

namespace weir::site {

// The newest verdict on a cell.
struct SiteGate {
  std::size_t verdict = 0, cell = 0;  // places in SiteIndex::verdicts and in its cells
};

struct SiteCell {
  std::string project, name, id;    // id: what its file is named by
  std::vector<std::size_t> series;  // places in the history
  std::optional<SiteGate> gate;
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
  std::size_t commit_digits = 0;  // of a commit's name that its file is named by

  [[nodiscard]] const std::vector<SiteChange>& changes_of(std::size_t series) const;
};

[[nodiscard]] Json overview_json(const SiteIndex& index);
[[nodiscard]] Json sparks_json(const SiteIndex& index, std::size_t file);
[[nodiscard]] Json site_cell_json(const SiteIndex& index, const SiteCell& cell);
[[nodiscard]] Json site_runs_json(const SiteIndex& index);
[[nodiscard]] Json site_run_json(const SiteIndex& index, std::size_t run);
[[nodiscard]] Json site_baselines_json(const SiteIndex& index);
[[nodiscard]] Json site_tally_json(const SiteIndex& index);
[[nodiscard]] Json site_metric_json(const history::Metric& metric);
[[nodiscard]] Json site_change_json(const SiteIndex& index, const history::Series& series,
                                    const SiteChange& change);

// A commit as documents have it but for those of runs: enough digits to be the only one.
[[nodiscard]] std::string short_commit(const std::optional<std::string>& commit);
// How a change or a last value reads: "worse", "better", "changed" (which way is good is not
// known), "place", "known", "steady".
[[nodiscard]] std::string_view series_state(const history::Series& series,
                                            const std::vector<SiteChange>& changes);

// The call that hands a document over. Nothing in it ends a script or a line early.
[[nodiscard]] std::string site_script(std::string_view name, const Json& document);

}  // namespace weir::site
