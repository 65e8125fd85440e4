// Makes the documents of the trend site from a history, its changes and its verdicts.
#include "gate/site/site.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "gate/base/find.hpp"
#include "gate/base/hash.hpp"
#include "gate/base/text.hpp"
#include "gate/site/parts.hpp"

namespace weir::site {

// Returns a script that passes the document as text. JSON.parse is faster than a script for much
// data, and gives no name a meaning ("__proto__").
std::string site_script(std::string_view name, const Json& document) {
  const std::string json = dump_json(document);
  std::string script = fmt::format("weirData(\"{}\",'", name);
  script.reserve(script.size() + json.size() + json.size() / 16);
  for (std::size_t i = 0; i < json.size(); ++i) {
    if (json[i] == '\\' || json[i] == '\'') {
      script += {'\\', json[i]};
    } else if (json[i] == '<' || json[i] == '>') {  // "</script>", "<!--", "-->"
      script += json[i] == '<' ? "\\u003c" : "\\u003e";
    } else if (json.compare(i, 3, "\xe2\x80\xa8") == 0) {  // these end lines of scripts
      script += "\\u2028";
      i += 2;
    } else if (json.compare(i, 3, "\xe2\x80\xa9") == 0) {
      script += "\\u2029";
      i += 2;
    } else {
      script += json[i];
    }
  }
  return script + "');\n";
}

namespace {

constexpr std::size_t k_commits_a_file = 2'000;

// Returns a file's name made of the hash of `text` that is not in `used`. It stays the same as long
// as the names before it do.
template <class Value>
std::string unused_id(const std::map<std::string, Value>& used, const std::string& text) {
  std::string id = short_hash(text, 16);
  for (int attempt = 1; used.contains(id); ++attempt) {
    id = short_hash(fmt::format("{}\n{}", text, attempt), 16);
  }
  return id;
}

// Fills the index's cells, metrics and machines from all series that have points.
void index_cells(SiteIndex& index) {
  std::set<history::Metric> metrics;
  std::set<std::string> machines;
  const auto& series = index.model.history.series;
  for (std::size_t i = 0; i < series.size(); ++i) {
    if (series[i].points.empty()) continue;
    const auto [entry, is_new] = index.cell_index_by_name.try_emplace(
        {series[i].project, series[i].cell}, index.cells.size());
    if (is_new) {
      const std::string id =
          unused_id(index.cell_index_by_id, series[i].project + "\n" + series[i].cell);
      index.cell_index_by_id.emplace(id, index.cells.size());
      index.cells.push_back({series[i].project, series[i].cell, id, {}, {}});
    }
    index.cells[entry->second].series.push_back(i);
    metrics.insert(series[i].metric);
    machines.insert(series[i].machine);
  }
  index.metrics.assign(metrics.begin(), metrics.end());
  index.machines.assign(machines.begin(), machines.end());
}

// Parses the stored verdicts and gives each cell its newest one. Frees their texts.
void index_verdicts(SiteIndex& index) {
  index.verdicts = read_verdicts(index.model.verdicts);
  for (history::StoredVerdict& verdict : index.model.verdicts) verdict.text = {};  // read already
  for (std::size_t verdict_index = 0; verdict_index < index.verdicts.size(); ++verdict_index) {
    const auto& cells = index.verdicts[verdict_index].gate.cells;
    for (std::size_t cell_in_verdict = 0; cell_in_verdict < cells.size(); ++cell_in_verdict) {
      const auto* cell_index =
          look_up(index.cell_index_by_name, std::pair(index.verdicts[verdict_index].stored->project,
                                                      cells[cell_in_verdict].cell.str()));
      if (cell_index != nullptr)
        index.cells[*cell_index].gate = SiteGate{verdict_index, cell_in_verdict};
    }
  }
}

// Chooses the runs that get a page: the newest, and as many older ones with verdicts. Finds their
// verdicts and points.
void index_runs(SiteIndex& index) {
  const auto& runs = index.model.history.runs;
  std::map<std::pair<std::string, std::string>, std::size_t> run_index_by_id;
  std::vector<std::size_t> newest_first(runs.size());
  for (std::size_t i = 0; i < runs.size(); ++i) {
    newest_first[i] = i;
    run_index_by_id.emplace(std::pair(runs[i].project, runs[i].id), i);
  }
  for (std::size_t verdict_index = index.verdicts.size(); verdict_index-- > 0;) {
    const history::StoredVerdict& stored = *index.verdicts[verdict_index].stored;
    const auto* run_index = look_up(run_index_by_id, std::pair(stored.project, stored.run));
    if (run_index != nullptr) index.verdicts_by_run[*run_index].push_back(verdict_index);
  }
  std::ranges::stable_sort(newest_first, [&](std::size_t a, std::size_t b) {
    return std::tie(runs[b].time, runs[b].id) < std::tie(runs[a].time, runs[a].id);
  });
  std::size_t newest_count = 0, judged_count = 0;
  for (const std::size_t run : newest_first) {
    const bool has_verdict = index.verdicts_by_run.contains(run);
    if (newest_count >= k_max_run_pages && (!has_verdict || judged_count >= k_max_run_pages))
      continue;
    if (newest_count < k_max_run_pages) {
      newest_count += 1;
    } else {
      judged_count += 1;
    }
    const std::string id =
        unused_id(index.run_index_by_id, runs[run].project + "\n" + runs[run].id);
    index.run_index_by_id.emplace(id, run);
    index.page_id_by_run.emplace(run, id);
    index.runs_with_pages.push_back(run);
  }
  index.page_id_by_verdict.resize(index.verdicts.size());
  for (const auto& [run, verdicts] : index.verdicts_by_run) {
    for (const std::size_t verdict_index : verdicts)
      index.page_id_by_verdict[verdict_index] = look_up(index.page_id_by_run, run, "");
  }
  const auto& all_series = index.model.history.series;
  for (std::size_t series_index = 0; series_index < all_series.size(); ++series_index) {
    for (std::size_t point_index = 0; point_index < all_series[series_index].points.size();
         ++point_index) {
      if (index.page_id_by_run.contains(all_series[series_index].points[point_index].run)) {
        index.points_by_run[all_series[series_index].points[point_index].run].emplace_back(
            series_index, point_index);
      }
    }
  }
}

bool is_commit(const std::string& text) {
  return text.size() >= 7 && text.size() <= 64 && text::is_hex(text);
}

// Sorts the commits of runs whose subjects (first message lines) are known into files: one file, or
// 256 for many.
void index_commits(SiteIndex& index) {
  std::set<std::string> commits;
  for (const history::RunFacts& run : index.model.history.runs) {
    if (run.commit && is_commit(*run.commit) && index.model.subjects.contains(*run.commit)) {
      commits.insert(*run.commit);
    }
  }
  index.commit_digits = commits.size() > k_commits_a_file ? 2 : 0;
  for (const std::string& commit : commits) {
    const std::string file = commit.substr(0, index.commit_digits);
    index.commits[file.empty() ? "all" : file].push_back(commit);
  }
}

Json commits_json(const SiteIndex& index, const std::vector<std::string>& commits) {
  Json json = Json::array();
  for (const std::string& commit : commits) {
    json.push_back({short_commit(commit), index.model.subjects.at(commit)});
  }
  return json;
}

// Documents named by numbers: "sparks/0", "sparks/1", …
struct NumberedDocuments {
  std::string_view kind;
  std::size_t count = 0;
  Json (*json)(const SiteIndex& index, std::size_t number) = nullptr;
};
std::array<NumberedDocuments, 3> numbered_documents(const SiteIndex& index) {
  const auto files = [](std::size_t items, std::size_t items_a_file) {
    return (items + items_a_file - 1) / items_a_file;
  };
  return {{{"sparks", files(index.cells.size(), k_cells_a_spark_file), sparks_json},
           {"changes", index.steps.size(), site_step_json},
           {"kernels", files(index.kernel_runs.size(), k_kernels_a_file), site_kernel_file_json}}};
}

// Returns "cells/0a1b" for "data/cells/0a1b.js"; nothing for other paths.
std::optional<std::string_view> document_name(std::string_view path) {
  constexpr std::string_view k_folder = "data/", k_ending = ".js";
  const std::size_t around = k_folder.size() + k_ending.size();
  const bool fits = path.starts_with(k_folder) && path.ends_with(k_ending) && path.size() > around;
  return fits ? std::optional(path.substr(k_folder.size(), path.size() - around)) : std::nullopt;
}

// Returns the document of this name ("overview", "cells/ID", …); nullopt if there is none.
std::optional<Json> make_document(const SiteIndex& index, std::string_view name) {
  if (name == "overview") return overview_json(index);
  if (name == "runs") return site_runs_json(index);
  if (name == "baselines") return site_baselines_json(index);
  if (name == "tally") return site_tally_json(index);
  if (name == "changes" && index.model.commit_changes) return site_steps_json(index);
  if (name == "kernels" && index.model.commit_changes) return site_kernels_json(index);
  const std::size_t slash = name.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const std::string_view kind = name.substr(0, slash);
  const std::string id(name.substr(slash + 1));
  if (kind == "cells") {
    if (const auto* at = look_up(index.cell_index_by_id, id)) {
      return site_cell_json(index, index.cells[*at]);
    }
  } else if (kind == "runs") {
    if (const auto* at = look_up(index.run_index_by_id, id)) return site_run_json(index, *at);
  } else if (kind == "commits") {
    if (const auto* at = look_up(index.commits, id)) return commits_json(index, *at);
  } else {
    for (const NumberedDocuments& numbered_document : numbered_documents(index)) {
      const auto number = kind == numbered_document.kind ? text::to_int(id) : std::nullopt;
      if (number && *number >= 0 && static_cast<std::size_t>(*number) < numbered_document.count &&
          id == fmt::format("{}", *number)) {
        return numbered_document.json(index, static_cast<std::size_t>(*number));
      }
    }
  }
  return std::nullopt;
}

}  // namespace

const std::vector<history::SeriesChange>& SiteIndex::series_changes(std::size_t series) const {
  static const std::vector<history::SeriesChange> none;
  return series < model.changes.size() ? model.changes[series] : none;
}

std::vector<std::vector<history::SeriesChange>> site_changes(
    const history::History& history, const std::vector<history::SeriesChange>& changes) {
  std::vector<std::vector<history::SeriesChange>> all(history.series.size());
  for (const history::SeriesChange& change : changes) all[change.series].push_back(change);
  return all;
}

double with_digits(double value, int digits) {
  if (value == 0 || !std::isfinite(value)) return value;
  const double scale = std::pow(10.0, digits - 1 - std::floor(std::log10(std::fabs(value))));
  return std::isfinite(scale) && scale > 0 ? std::round(value * scale) / scale : value;
}

Json site_place_json(const history::Place& place) {
  return {{"device_class", place.device_class},
          {"device", place.device_name},
          {"machine_class", place.machine_class},
          {"machine", place.machine_name}};
}

std::string short_commit(const std::optional<std::string>& commit) {
  return commit ? text::short_commit(*commit, 12) : std::string();
}

// Checks the web address of a repository, and returns it without a final '/'.
Result<std::string> repo_url(std::string_view text) {
  std::string url(text);
  while (url.ends_with('/')) url.pop_back();
  std::size_t scheme = 0;
  for (const std::string_view prefix : {"https://", "http://"}) {
    if (url.starts_with(prefix)) scheme = prefix.size();
  }
  const auto is_unsafe = [](unsigned char byte) {
    return byte <= ' ' || byte >= 0x7f ||
           std::string_view("\"'<>\\^`{|}?#@").find(static_cast<char>(byte)) !=
               std::string_view::npos;
  };
  if (scheme == 0 || url.size() == scheme || url[scheme] == '/' ||
      std::ranges::any_of(url, is_unsafe)) {
    return fail(Code::usage,
                "\"{}\": not the address of a repository, as in https://github.com/me/engine",
                text::printable(text));
  }
  return url;
}

Site::Site(SiteModel model) {
  auto index = std::make_unique<SiteIndex>();
  index->model = std::move(model);
  index_cells(*index);
  index_verdicts(*index);
  index_runs(*index);
  index_commits(*index);
  index_commit_changes(*index);
  index_ = std::move(index);
}

Site::Site(Site&&) noexcept = default;
Site::~Site() = default;

// Returns the paths of all documents: "data/overview.js", "data/cells/0a1b….js", …
std::vector<std::string> Site::paths() const {
  std::vector<std::string> paths;
  const auto add = [&](std::string_view folder, const auto& name) {
    paths.push_back(fmt::format("data/{}{}.js", folder, name));
  };
  for (const char* name : {"overview", "runs", "baselines", "tally"}) add("", name);
  if (index_->model.commit_changes) {
    for (const char* name : {"changes", "kernels"}) add("", name);
  }
  for (const NumberedDocuments& documents : numbered_documents(*index_)) {
    for (std::size_t i = 0; i < documents.count; ++i) add(fmt::format("{}/", documents.kind), i);
  }
  for (const SiteCell& cell : index_->cells) add("cells/", cell.id);
  for (const std::size_t run : index_->runs_with_pages)
    add("runs/", index_->page_id_by_run.at(run));
  for (const auto& [file, commits] : index_->commits) add("commits/", file);
  return paths;
}

std::optional<std::string> Site::text(std::string_view path) const {
  const auto name = document_name(path);
  if (!name) return std::nullopt;
  const std::optional<Json> json = make_document(*index_, *name);
  if (!json) return std::nullopt;
  // The document exists, so its name has only safe characters.
  return site_script(*name, *json);
}

}  // namespace weir::site
