// Result files of other tools, in place of what engines print.
#include "gate/flow/result_files.hpp"

#include <functional>
#include <set>

#include "gate/adapters/format.hpp"
#include "gate/base/text.hpp"
#include "gate/baseline/baseline.hpp"
#include "gate/flow/newest_run.hpp"
#include "gate/run/journal.hpp"
#include "gate/sys/gunzip.hpp"
#include "gate/sys/paths.hpp"

namespace weir::flow {
namespace {

bool is_judged(const std::vector<const adapters::Format*>& formats) {
  return !formats.empty() && formats.front()->adapter.counts == adapters::Counts::results;
}

// Returns true if a tool that is judged by files wrote this one.
bool is_result(const std::string& path, const sys::Files& files) {
  constexpr std::uint64_t k_head = std::uint64_t{1} << 20;
  const auto head = files.read_prefix(path, k_head);
  if (!head) return false;
  const bool is_packed = sys::begins_gzip(*head);
  const auto text =
      is_packed ? sys::read_unpacked(files, path, adapters::k_max_result_bytes) : head;
  if (!text) return false;
  return is_judged(adapters::find_formats(adapters::Printed({*text, {}, path})));
}

// A result and the adapter that takes it.
struct ResultFile {
  std::string_view adapter;
  observed::Observed observed;
};

// Reads a result file of a load tool that weir judges by files. Fails for any other file.
Result<ResultFile> read_result(const std::string& file, const Job& job) {
  WEIR_TRY(const std::string text,
           sys::read_unpacked(job.files(), file, adapters::k_max_result_bytes));
  const adapters::Document document{text, {}, file};
  const auto formats = adapters::find_formats(adapters::Printed(document));
  if (!is_judged(formats)) {
    std::vector<std::string> tools;
    for (const adapters::Adapter& adapter : adapters::table()) {
      if (adapter.counts == adapters::Counts::results) tools.emplace_back(adapter.format);
    }
    return fail(Code::usage, "{}: no result of a tool that weir judges by files\n  they are: {}",
                file, text::join(tools));
  }
  const adapters::Format& format = *formats.front();
  WEIR_TRY(observed::Observed observed,
           adapters::read_as(format.name, document).map_error(with_prefix(file)));
  return ResultFile{format.adapter.name, std::move(observed)};
}

// Returns true if the file is a run of a tool. Its summaries of several runs are none.
bool is_run(const std::string& file, const Job& job) {
  if (!is_result(file, job.files())) return false;
  const auto result = read_result(file, job);
  if (!result || !result->observed.cases.empty()) return true;
  return result->observed.errors.empty() || result->observed.truncated;
}

// The results in a folder and in those below it, as tools make one for each load.
struct FolderResults {
  std::vector<std::string> results{};  // in the order of their names
  std::size_t others = 0;              // other files
  std::set<std::string> seen{};        // a link to a folder shows its files again

  Result<void> add(const std::string& folder, const Job& job, int depth = 0) {
    constexpr int k_max_depth = 4;
    WEIR_TRY(std::vector<std::string> names, job.files().list(folder));
    std::ranges::sort(names);
    for (const std::string& name : names) {
      const std::string path = sys::join_path(folder, name);
      const sys::Kind kind = job.files().kind(path);
      if (kind == sys::Kind::folder && depth < k_max_depth) {
        WEIR_CHECK(add(path, job, depth + 1));
      } else if (kind == sys::Kind::file &&
                 seen.insert(sys::real_path(path).value_or(path)).second) {
        if (is_run(path, job)) {
          results.push_back(path);
        } else {
          ++others;
        }
      }
    }
    return {};
  }
};

// Returns true if the cell's engine output is a result file of a load generator.
bool takes_results(const config::Cell& cell) {
  const adapters::Adapter* adapter = adapters::find(cell.adapter);
  return adapter != nullptr && adapter->counts == adapters::Counts::results;
}

// Gives each cell the files with a run of its load. Fails if a file, or a cell, has none, or if two
// cells have the same run. Runs of no cell are noted.
Result<void> assign_results(const std::vector<std::string>& files, const Job& job,
                            LoadedConfig& loaded) {
  const auto shown_name = [&](const config::Cell& cell) {
    return loaded.configuration.redactor.cell(cell.key).str();
  };
  for (const std::string& file : files) {
    WEIR_TRY(const ResultFile result, read_result(file, job));
    std::vector<config::Cell*> matching_cells;
    std::size_t matched_runs = 0;
    for (config::Cell& cell : loaded.cells) {
      if (cell.adapter != result.adapter) continue;
      const std::size_t runs = adapters::count_runs(result.observed, cell.wanted_load);
      if (runs > 0) matching_cells.push_back(&cell);
      matched_runs += runs;
    }
    const std::size_t all_runs = result.observed.cases.size();
    if (matching_cells.empty()) {
      return fail(
          Code::usage,
          "--results: {} holds no run of the load of one of the {} cells that take results: "
          "name one with --cell",
          file, loaded.cells.size());
    }
    if (matched_runs > all_runs) {
      return fail(Code::usage, "--results: {} is of {} as of {}: name one with --cell", file,
                  shown_name(*matching_cells.front()), shown_name(*matching_cells.back()));
    }
    if (matched_runs < all_runs) {
      loaded.configuration.notes.push_back(fmt::format("{}: {} of {} runs are of no cell here",
                                                       file, all_runs - matched_runs, all_runs));
    }
    for (config::Cell* cell : matching_cells) cell->results.push_back({file});
  }
  for (const config::Cell& cell : loaded.cells) {
    if (!cell.results.empty()) continue;
    return fail(Code::usage,
                "--results: no file holds a run of {}: give its file as well, or name the other "
                "cells with --cell",
                shown_name(cell));
  }
  return {};
}

// Returns when the newest run of a cell began (Unix seconds); nullopt if none of the last ones has
// the cell.
std::optional<double> newest_start(const profile::CellKey& cell, const Job& job) {
  constexpr std::size_t k_max_runs = 20;
  auto runs = run::list_runs(job.files(), job.selection.runs_folder);
  std::ranges::reverse(runs);
  if (runs.size() > k_max_runs) runs.resize(k_max_runs);
  for (const std::string& folder : runs) {
    const auto run = run::read_run(job.files(), folder);
    const auto is_cell = [&](const profile::CellFacts& facts) { return facts.cell == cell; };
    if (run && std::ranges::any_of(run->header.cells, is_cell)) return run->header.started_at;
  }
  return std::nullopt;
}

// Returns when a baseline of a cell was last written (Unix seconds), here or by a checkout; nullopt
// if there is none.
std::optional<double> newest_baseline(const profile::CellKey& cell, const Job& job) {
  const auto path = baseline::path_of(cell, "any");
  if (!path) return std::nullopt;
  const std::string folder = sys::folder_of(sys::join_path(job.selection.baselines, *path));
  const auto names = job.files().list(folder);
  std::optional<double> newest;
  for (const std::string& name : names.value_or(std::vector<std::string>())) {
    const auto written = job.files().written_at(sys::join_path(folder, name));
    if (written && *written > newest.value_or(0)) newest = *written;
  }
  return newest;
}

// An event that a result of this cell's tool comes after.
struct EarlierEvent {
  std::optional<double> time;  // absent: it did not happen
  const char* what;
};

// Lists what comes before a new result of a cell. A CI job begins with a checkout, which writes
// weir.yaml.
std::vector<EarlierEvent> list_earlier_events(const profile::CellKey& cell, const Job& job) {
  std::optional<double> job_began;
  if (!job.variable("CI").empty()) {
    if (const auto time = job.files().written_at(job.selection.config)) job_began = *time;
  }
  return {{job_began, "this job checked out its weir.yaml"},
          {newest_start(cell, job), "the newest run of this cell began"},
          {newest_baseline(cell, job), "the baseline of this cell"}};
}

// Returns a warning if a file may be of an earlier run of its tool; nullopt if it is newer than all
// events. AIPerf writes none if all requests failed, and the old one stays.
std::optional<std::string> describe_age(const std::string& file,
                                        const std::vector<EarlierEvent>& events, const Job& job) {
  const auto written = job.files().written_at(file);
  if (!written) return std::nullopt;
  for (const auto& [time, event] : events) {
    if (time.value_or(0) <= *written) continue;
    return fmt::format(
        "{} was written before {}: a tool whose requests all failed may leave an old result. "
        "Remove results before the tool runs",
        file, event);
  }
  return std::nullopt;
}

}  // namespace

// Returns the paths with each folder replaced by the results of tools in it and below it, in the
// order of their names.
Result<std::vector<std::string>> list_results(const std::vector<std::string>& paths,
                                              const Job& job) {
  std::vector<std::string> results;
  for (const std::string& path : paths) {
    if (job.files().kind(path) != sys::Kind::folder) {
      results.push_back(path);
      continue;
    }
    FolderResults folder;
    WEIR_CHECK(folder.add(path, job));
    if (folder.results.empty())
      return fail(Code::usage, "{}: no result of a tool is in this folder", path);
    if (folder.others > 0) {
      job.log(fmt::format("{}: {} taken, {} left out: no results", path,
                          text::plural(folder.results.size(), "result"),
                          text::plural(folder.others, "other file")));
    }
    results.insert(results.end(), folder.results.begin(), folder.results.end());
  }
  return results;
}

Result<void> check_own(const std::vector<std::string>& files, const Job& job) {
  for (const std::string& file : files) {
    WEIR_TRY(const bool tracked, is_tracked(job, file).map_error(with_prefix(file)));
    if (!tracked) continue;
    return fail(Code::usage,
                "--results: {}: git tracks it, so this job did not measure it\n"
                "  remove it from the repository, or have the tool write to another folder",
                text::printable(file));
  }
  return {};
}

// Returns a minimal weir.yaml to judge a result file without a configuration.
Result<std::string> make_results_config(const std::string& file, const Job& job) {
  WEIR_TRY(const ResultFile result, read_result(file, job));
  const auto concurrencies = adapters::list_concurrencies(result.observed);
  return fmt::format(
      "version: 1\n"
      "engines: {{{0}: {{output: {0}}}}}\n"
      "backends: {{server: {{device: cpu}}}}\n"
      "prompts: {{load: {{{1}}}}}\n",
      result.adapter,
      concurrencies.empty() ? ""
                            : fmt::format("concurrency: [{}]", fmt::join(concurrencies, ", ")));
}

void leave_out_results(LoadedConfig& loaded) {
  const auto only_results = [](const config::Cell& cell) {
    return cell.command.empty() && takes_results(cell);
  };
  if (std::ranges::all_of(loaded.cells, only_results)) return;  // which says what is missing
  if (const auto count = std::erase_if(loaded.cells, only_results); count > 0) {
    loaded.configuration.notes.push_back(
        fmt::format("{} of result files left out: weir gate --results judges {}",
                    text::plural(count, "cell"), count == 1 ? "it" : "them"));
  }
}

// Leaves the cells that take result files, assigns the files to them, and plans a timed run for
// each file.
Result<void> use_result_files(const std::vector<std::string>& files, const Job& job,
                              LoadedConfig& loaded, run::PlanOptions& plan) {
  std::erase_if(loaded.cells, std::not_fn(takes_results));
  if (loaded.cells.empty()) {
    return fail(Code::usage,
                "--results: none of the cells of {} take results: they need output: vllm-bench, "
                "sglang, aiperf, guidellm or another of docs/reference/formats.md",
                loaded.configuration.file);
  }
  if (loaded.cells.size() > 1) {
    WEIR_CHECK(assign_results(files, job, loaded));
  } else {
    for (const std::string& file : files) loaded.cells.front().results.push_back({file});
  }
  plan.counts = false;
  std::size_t runs = 0;
  for (config::Cell& cell : loaded.cells) {
    const std::vector<EarlierEvent> events = list_earlier_events(cell.key, job);
    for (auto& [file, warning] : cell.results) warning = describe_age(file, events, job);
    runs = std::max(runs, cell.results.size());
  }
  plan.runs = static_cast<std::int64_t>(runs);
  return {};
}

}  // namespace weir::flow
