// Makes the documents of a weir.changes/1: steps from commit to commit, and the commits that use a
// kernel.
#include <algorithm>
#include <array>
#include <set>

#include "gate/base/find.hpp"
#include "gate/site/parts.hpp"

namespace weir::site {
namespace {

// Returns the key that sorts metrics by reading order: the best known first, the others by name.
std::pair<std::size_t, std::string> reading_order(const history::Metric& metric) {
  constexpr std::array<std::string_view, 6> k_first{"syncs_",   "dispatches_", "barriers_",
                                                    "submits_", "copies_",     "device_memory_"};
  std::size_t at = 0;
  while (at < k_first.size() && !metric.name.starts_with(k_first[at])) ++at;
  return {at, metric.name};
}

// Returns "worse", "better", "mixed" or "changed" for the values of a cell.
std::string_view cell_state(const ChangedCell& cell) {
  std::set<std::string_view> states;
  for (const ChangedValue& value : cell.values) states.insert(value.state);
  states.erase("changed");
  if (states.empty()) return "changed";
  return states.size() > 1 ? "mixed" : *states.begin();
}

const CountedCell* find_counts(const SiteIndex& index, std::size_t commit, std::size_t cell) {
  return look_up(index.model.commit_changes->counted[commit], cell);
}

// Values that a document holds once each, and refers to by number.
struct JsonList {
  NameList keys;
  Json all = Json::array();

  std::size_t number(const Json& value) {
    const std::size_t at = keys.number(dump_json(value));
    if (at == all.size()) all.push_back(value);
    return at;
  }
};

// Returns the line of a step (from one counted commit to the next): counts of cells by state, of
// changes by metric, and of findings.
Json step_line(const SiteIndex& index, const SiteStep& step, JsonList& metrics) {
  const CommitChanges& all = *index.model.commit_changes;
  std::map<std::string, std::size_t> cells_by_state;  // by state
  struct MetricLine {
    std::size_t metric = 0;  // its number in `metrics`
    std::size_t worse = 0, better = 0;
  };
  std::map<std::pair<std::size_t, std::string>, MetricLine> lines_by_metric;
  std::map<std::string, std::size_t> cells_by_finding;  // by the first finding of a cell
  for (const auto& [cell, changed] : *step.changed) {
    ++cells_by_state[std::string(cell_state(changed))];
    if (!changed.findings.empty()) ++cells_by_finding[changed.findings.front().kind];
    for (const ChangedValue& value : changed.values) {
      if (value.state == "changed") continue;
      auto& line = lines_by_metric[reading_order(value.metric)];
      line.metric = metrics.number(site_metric_json(value.metric));
      if (value.state == "worse") {
        ++line.worse;
      } else {
        ++line.better;
      }
    }
  }
  Json metric_lines = Json::array();
  for (const auto& [order, line] : lines_by_metric) {
    metric_lines.push_back({line.metric, line.worse, line.better});
  }
  const auto& counted = all.counted[step.commit];
  return {
      {"commit", all.commits.all[step.commit]},
      {"before", all.commits.all[step.before]},
      {"counted", counted.size()},
      {"failed", std::ranges::count_if(
                     counted, [](const auto& entry) { return entry.second.words.has_value(); })},
      {"states", cells_by_state},
      {"metrics", std::move(metric_lines)},
      {"findings", cells_by_finding}};
}

// Returns what changed in a cell: values, findings and causes. They refer to the lists `metrics`,
// `causes` and `texts` by number.
Json changed_json(const SiteIndex& index, const SiteStep& step, std::size_t cell, JsonList& metrics,
                  JsonList& causes, NameList& texts) {
  const ChangedCell& changed = step.changed->at(cell);
  Json values = Json::array(), findings = Json::array(), cell_causes = Json::array();
  std::vector<ChangedValue> sorted = changed.values;
  std::ranges::sort(sorted, {}, [](const ChangedValue& value) {
    return std::pair(value.state == "changed", reading_order(value.metric));
  });
  for (const ChangedValue& value : sorted) {
    values.push_back({metrics.number(site_metric_json(value.metric)), with_digits(value.before, 9),
                      with_digits(value.after, 9), value.state});
  }
  for (const ChangeFinding& finding : changed.findings) {
    findings.push_back({finding.kind, texts.number(finding.text)});
  }
  for (const ChangeCause& cause : changed.causes) {
    cell_causes.push_back(causes.number({cause.text, cause.sure, cause.pulls}));
  }
  const CountedCell* before = find_counts(index, step.before, cell);
  const CountedCell* after = find_counts(index, step.commit, cell);
  return {{"cell", index.model.commit_changes->cells.all[cell]},
          {"state", cell_state(changed)},
          {"kernels", before != nullptr && after != nullptr && before->kernels != after->kernels},
          {"values", std::move(values)},
          {"findings", std::move(findings)},
          {"causes", std::move(cell_causes)}};
}

// Adds the steps to each commit. A commit that changed nothing still gets a step without changes,
// from the last commit with counts.
void add_steps(SiteIndex& index) {
  static const std::map<std::size_t, ChangedCell> k_no_changes;
  const CommitChanges& changes = *index.model.commit_changes;
  std::optional<std::size_t> last_counted_commit;
  auto next = changes.changed.begin();  // sorted by commit, then by the commit before
  for (std::size_t commit = 0; commit < changes.commits.all.size(); ++commit) {
    bool has_changes = false;
    for (; next != changes.changed.end() && next->first.first == commit; ++next) {
      const std::size_t before = next->first.second;
      index.steps.push_back({.commit = commit, .before = before, .changed = &next->second});
      has_changes = true;
    }
    if (changes.counted[commit].empty()) continue;
    if (!has_changes && last_counted_commit) {
      index.steps.push_back(
          {.commit = commit, .before = *last_counted_commit, .changed = &k_no_changes});
    }
    last_counted_commit = commit;
  }
}

// Adds the runs of all kernels: spans of commits in which a cell ran the kernel equally often. A
// span goes on if the count is that of the last counted commit.
void add_kernel_runs(SiteIndex& index) {
  const CommitChanges& changes = *index.model.commit_changes;
  std::vector<std::optional<std::size_t>> last_commit(changes.cells.all.size());  // by cell
  std::map<std::pair<std::size_t, std::size_t>, std::size_t> last_run;  // by kernel and cell
  index.kernel_runs.resize(changes.kernels.all.size());
  for (std::size_t commit = 0; commit < changes.commits.all.size(); ++commit) {
    for (const auto& [cell, counted] : changes.counted[commit]) {
      for (const auto& [kernel, count] : counted.kernels) {
        auto& runs = index.kernel_runs[kernel];
        const std::size_t* last_span = look_up(last_run, std::pair(kernel, cell));
        if (last_span != nullptr && runs[*last_span].to == last_commit[cell] &&
            runs[*last_span].times == count) {
          runs[*last_span].to = commit;
        } else {
          last_run[{kernel, cell}] = runs.size();
          runs.push_back({.cell = cell, .from = commit, .to = commit, .times = count});
        }
      }
      last_commit[cell] = commit;
    }
  }
}

}  // namespace

void index_commit_changes(SiteIndex& index) {
  if (!index.model.commit_changes) return;
  add_steps(index);
  add_kernel_runs(index);
}

Json site_steps_json(const SiteIndex& index) {
  JsonList metrics;
  Json steps = Json::array();
  for (const SiteStep& step : index.steps) steps.push_back(step_line(index, step, metrics));
  return {{"format", 1}, {"metrics", std::move(metrics.all)}, {"steps", std::move(steps)}};
}

// Returns the document of a step from one counted commit to the next: which cells changed, are the
// same, new, or failed.
Json site_step_json(const SiteIndex& index, std::size_t number) {
  const SiteStep& step = index.steps[number];
  const CommitChanges& commit_changes = *index.model.commit_changes;
  JsonList metrics, causes;
  NameList texts;
  Json cells = Json::array(), same = Json::array(), added = Json::array(), failed = Json::array();
  for (const auto& [cell, changed] : *step.changed) {
    cells.push_back(changed_json(index, step, cell, metrics, causes, texts));
  }
  for (const auto& [cell, counted] : commit_changes.counted[step.commit]) {
    const std::string& name = commit_changes.cells.all[cell];
    const CountedCell* before = find_counts(index, step.before, cell);
    if (counted.words) {
      failed.push_back({name, texts.number(*counted.words)});
    } else if (!step.changed->contains(cell)) {
      if (before == nullptr || before->words) {
        added.push_back(name);
      } else {
        same.push_back(name);
      }
    }
  }
  return {{"format", 1},
          {"commit", commit_changes.commits.all[step.commit]},
          {"before", commit_changes.commits.all[step.before]},
          {"steps", index.steps.size()},
          {"metrics", std::move(metrics.all)},
          {"cells", std::move(cells)},
          {"same", std::move(same)},
          {"new", std::move(added)},
          {"failed", std::move(failed)},
          {"causes", std::move(causes.all)},
          {"texts", texts.all}};
}

// Returns the list of all kernels: name, number of cells, and the first and last commit that ran
// it.
Json site_kernels_json(const SiteIndex& index) {
  const CommitChanges& all = *index.model.commit_changes;
  Json kernels = Json::array();
  for (std::size_t kernel = 0; kernel < index.kernel_runs.size(); ++kernel) {
    std::set<std::size_t> cells;
    std::size_t first = SIZE_MAX, last = 0;
    for (const KernelRun& run : index.kernel_runs[kernel]) {
      cells.insert(run.cell);
      first = std::min(first, run.from);
      last = std::max(last, run.to);
    }
    kernels.push_back({all.kernels.all[kernel], cells.size(), first, last});
  }
  return {{"format", 1},
          {"a_file", k_kernels_a_file},
          {"commits", all.commits.all},
          {"cells", all.cells.all},
          {"kernels", std::move(kernels)}};
}

// Returns the kernels of file number `file`: for each, the spans of commits in which a cell ran it,
// and how often.
Json site_kernel_file_json(const SiteIndex& index, std::size_t file) {
  Json kernels = Json::array();
  const std::size_t end = std::min(index.kernel_runs.size(), (file + 1) * k_kernels_a_file);
  for (std::size_t kernel = file * k_kernels_a_file; kernel < end; ++kernel) {
    Json runs = Json::array();
    for (const KernelRun& run : index.kernel_runs[kernel]) {
      runs.push_back({run.cell, run.from, run.to, number_to_json(with_digits(run.times, 9))});
    }
    kernels.push_back(std::move(runs));
  }
  return kernels;
}

}  // namespace weir::site
