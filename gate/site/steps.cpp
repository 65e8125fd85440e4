// Steps from commit to commit, and which commits take a kernel: documents of a weir.changes/1.
#include <algorithm>
#include <array>
#include <set>

#include "gate/base/find.hpp"
#include "gate/site/parts.hpp"

namespace weir::site {
namespace {

// What people know best comes first.
std::pair<std::size_t, std::string> order_of(const history::Metric& metric) {
  constexpr std::array<std::string_view, 6> k_first{"syncs_",   "dispatches_", "barriers_",
                                                    "submits_", "copies_",     "device_memory_"};
  std::size_t at = 0;
  while (at < k_first.size() && !metric.name.starts_with(k_first[at])) ++at;
  return {at, metric.name};
}

std::string_view state_of_cell(const ChangedCell& cell) {
  std::set<std::string_view> states;
  for (const ChangedValue& value : cell.values) states.insert(value.state);
  states.erase("changed");
  return states.empty() ? "changed" : states.size() > 1 ? "mixed" : *states.begin();
}

const CountedCell* counted_at(const SiteIndex& index, std::size_t commit, std::size_t cell) {
  return look_up(index.model.commit_changes->counted[commit], cell);
}

// What a document has once, by number.
struct JsonList {
  NameList keys;
  Json all = Json::array();

  std::size_t of(const Json& one) {
    const std::size_t at = keys.of(dump_json(one));
    if (at == all.size()) all.push_back(one);
    return at;
  }
};

Json step_line(const SiteIndex& index, const SiteStep& step, JsonList& metrics) {
  const CommitChanges& all = *index.model.commit_changes;
  std::map<std::string, std::size_t> cells;  // by state
  std::map<std::pair<std::size_t, std::string>, std::array<std::size_t, 3>> by_metric;
  std::map<std::string, std::size_t> by_finding;  // the first of a cell
  for (const auto& [cell, changed] : *step.changed) {
    ++cells[std::string(state_of_cell(changed))];
    if (!changed.findings.empty()) ++by_finding[changed.findings.front().kind];
    for (const ChangedValue& value : changed.values) {
      if (value.state == "changed") continue;
      auto& line = by_metric[order_of(value.metric)];
      line[0] = metrics.of(site_metric_json(value.metric));
      ++line[value.state == "worse" ? 1 : 2];
    }
  }
  Json on = Json::array();
  for (const auto& [order, line] : by_metric) on.push_back(line);
  const auto& counted = all.counted[step.commit];
  return {{"commit", all.commits.all[step.commit]},
          {"before", all.commits.all[step.before]},
          {"counted", counted.size()},
          {"failed", std::ranges::count_if(
                         counted, [](const auto& one) { return one.second.words.has_value(); })},
          {"states", cells},
          {"metrics", std::move(on)},
          {"findings", by_finding}};
}

Json changed_json(const SiteIndex& index, const SiteStep& step, std::size_t cell, JsonList& metrics,
                  JsonList& causes, NameList& texts) {
  const ChangedCell& changed = step.changed->at(cell);
  Json values = Json::array(), findings = Json::array(), found = Json::array();
  std::vector<ChangedValue> sorted = changed.values;
  std::ranges::sort(sorted, {}, [](const ChangedValue& one) {
    return std::pair(one.state == "changed", order_of(one.metric));
  });
  for (const ChangedValue& one : sorted) {
    values.push_back({metrics.of(site_metric_json(one.metric)), with_digits(one.before, 9),
                      with_digits(one.after, 9), one.state});
  }
  for (const ChangeFinding& one : changed.findings) {
    findings.push_back({one.kind, texts.of(one.text)});
  }
  for (const ChangeCause& one : changed.causes) {
    found.push_back(causes.of({one.text, one.sure, one.pulls}));
  }
  const CountedCell* before = counted_at(index, step.before, cell);
  const CountedCell* now = counted_at(index, step.commit, cell);
  return {{"cell", index.model.commit_changes->cells.all[cell]},
          {"state", state_of_cell(changed)},
          {"kernels", before != nullptr && now != nullptr && before->kernels != now->kernels},
          {"values", std::move(values)},
          {"findings", std::move(findings)},
          {"causes", std::move(found)}};
}

}  // namespace

void index_commit_changes(SiteIndex& index) {
  static const std::map<std::size_t, ChangedCell> k_none;
  if (!index.model.commit_changes) return;
  const CommitChanges& all = *index.model.commit_changes;
  std::optional<std::size_t> before;  // the last commit that was counted
  std::vector<std::optional<std::size_t>> seen(all.cells.all.size());  // and of each cell
  std::map<std::pair<std::size_t, std::size_t>, std::size_t> last;     // run by kernel and cell
  index.kernel_runs.resize(all.kernels.all.size());
  for (std::size_t commit = 0; commit < all.commits.all.size(); ++commit) {
    auto at = all.changed.lower_bound({commit, 0});
    const bool said = at != all.changed.end() && at->first.first == commit;
    for (; at != all.changed.end() && at->first.first == commit; ++at) {
      index.steps.push_back({commit, at->first.second, &at->second});
    }
    if (all.counted[commit].empty()) continue;
    if (!said && before) index.steps.push_back({commit, *before, &k_none});
    before = commit;
    for (const auto& [cell, counted] : all.counted[commit]) {
      for (const auto& [kernel, times] : counted.kernels) {
        auto& runs = index.kernel_runs[kernel];
        const auto [run, fresh] = last.try_emplace({kernel, cell}, runs.size());
        if (!fresh && runs[run->second].to == seen[cell] && runs[run->second].times == times) {
          runs[run->second].to = commit;
        } else {
          run->second = runs.size();
          runs.push_back({cell, commit, commit, times});
        }
      }
      seen[cell] = commit;
    }
  }
}

Json site_steps_json(const SiteIndex& index) {
  JsonList metrics;
  Json steps = Json::array();
  for (const SiteStep& one : index.steps) steps.push_back(step_line(index, one, metrics));
  return {{"format", 1}, {"metrics", std::move(metrics.all)}, {"steps", std::move(steps)}};
}

Json site_step_json(const SiteIndex& index, std::size_t number) {
  const SiteStep& step = index.steps[number];
  const CommitChanges& all = *index.model.commit_changes;
  JsonList metrics, causes;
  NameList texts;
  Json cells = Json::array(), same = Json::array(), fresh = Json::array(), failed = Json::array();
  for (const auto& [cell, changed] : *step.changed) {
    cells.push_back(changed_json(index, step, cell, metrics, causes, texts));
  }
  for (const auto& [cell, counted] : all.counted[step.commit]) {
    const std::string& name = all.cells.all[cell];
    const CountedCell* before = counted_at(index, step.before, cell);
    if (counted.words) {
      failed.push_back({name, texts.of(*counted.words)});
    } else if (!step.changed->contains(cell)) {
      if (before == nullptr || before->words) {
        fresh.push_back(name);
      } else {
        same.push_back(name);
      }
    }
  }
  return {{"format", 1},
          {"commit", all.commits.all[step.commit]},
          {"before", all.commits.all[step.before]},
          {"steps", index.steps.size()},
          {"metrics", std::move(metrics.all)},
          {"cells", std::move(cells)},
          {"same", std::move(same)},
          {"new", std::move(fresh)},
          {"failed", std::move(failed)},
          {"causes", std::move(causes.all)},
          {"texts", texts.all}};
}

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
