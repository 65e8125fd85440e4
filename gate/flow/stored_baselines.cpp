// The stored baselines of a folder: reads, writes, lists and prunes them.
#include "gate/flow/stored_baselines.hpp"

#include <fmt/format.h>

#include "gate/base/text.hpp"
#include "gate/flow/accept.hpp"
#include "gate/flow/configure.hpp"
#include "gate/report/baseline_text.hpp"
#include "gate/sys/paths.hpp"

namespace weir::flow {
namespace {

constexpr std::uint64_t k_largest_file = std::uint64_t{16} << 20;
constexpr std::size_t k_max_files = 100'000;
constexpr int k_levels = 4;  // engine, model, backend, prompt; the files lie below

}  // namespace

StoredBaselines::StoredBaselines(sys::Files& files, std::string folder, std::string words)
    : files_(files), folder_(std::move(folder)), words_(std::move(words)) {}

std::string StoredBaselines::words() const {
  if (!words_.empty()) return words_;
  return files_.kind(folder_) == sys::Kind::folder
             ? "stored baselines in " + folder_
             : fmt::format("no stored baselines: there is no folder {}", folder_);
}

Result<baseline::Baseline> StoredBaselines::read(const std::string& path) const {
  return files_.read(path, k_largest_file).and_then(baseline::parse).map_error(with_prefix(path));
}

// Reads the baselines of a cell, one for each device class. Fails on a file that was moved, renamed
// or edited.
Result<std::vector<baseline::Baseline>> StoredBaselines::of_cell(
    const profile::CellKey& cell) const {
  std::vector<baseline::Baseline> baselines;
  const std::string folder = sys::join_path(folder_, cell.str());
  if (files_.kind(folder) != sys::Kind::folder) return baselines;
  WEIR_TRY(const std::vector<std::string> names, files_.list(folder));
  for (const std::string& name : names) {
    if (name.size() <= 5 || !name.ends_with(".json") || name.front() == '.') continue;
    const std::string path = sys::join_path(folder, name);
    WEIR_TRY(baseline::Baseline stored, read(path));
    if (stored.cell != cell.str()) {
      return fail(Code::config, "{}: holds the baseline of \"{}\"; it was moved or edited by hand",
                  path, stored.cell);
    }
    if (name != stored.device_class + ".json") {
      return fail(Code::config,
                  "{}: holds the baseline of device class \"{}\": it was renamed or copied", path,
                  stored.device_class);
    }
    baselines.push_back(std::move(stored));
  }
  return baselines;
}

Result<std::optional<baseline::Baseline>> StoredBaselines::of_class(
    const profile::CellKey& cell, const std::string& device_class) const {
  WEIR_TRY(std::vector<baseline::Baseline> baselines, of_cell(cell));
  for (baseline::Baseline& stored : baselines) {
    if (stored.device_class == device_class) return std::optional(std::move(stored));
  }
  return std::nullopt;
}

// Reads all baselines below the folder: ENGINE/MODEL/BACKEND/PROMPT/CLASS.json.
Result<std::vector<StoredBaselines::Entry>> StoredBaselines::all() const {
  std::vector<Entry> entries;
  if (files_.kind(folder_) != sys::Kind::folder) return entries;
  std::vector<std::string> folders{""};
  for (int level = 0; level < k_levels; ++level) {
    std::vector<std::string> inner_folders;
    for (const std::string& folder : folders) {
      WEIR_TRY(const std::vector<std::string> names,
               files_.list(folder.empty() ? folder_ : sys::join_path(folder_, folder)));
      for (const std::string& name : names) inner_folders.push_back(sys::join_path(folder, name));
    }
    std::erase_if(inner_folders, [&](const std::string& inner) {
      return files_.kind(sys::join_path(folder_, inner)) != sys::Kind::folder;
    });
    folders = std::move(inner_folders);
  }
  for (const std::string& folder : folders) {
    const auto cell = profile::CellKey::parse(folder);
    if (!cell) continue;  // not a folder that weir writes
    WEIR_TRY(std::vector<baseline::Baseline> stored, of_cell(*cell));
    for (baseline::Baseline& item : stored) {
      WEIR_TRY(const std::string path, baseline::path_of(*cell, item.device_class));
      entries.push_back({sys::join_path(folder_, path), std::move(item)});
      if (entries.size() > k_max_files) {
        return fail(Code::data, "{}: more than {} baselines", folder_, k_max_files);
      }
    }
  }
  return entries;
}

Result<std::string> StoredBaselines::put(const baseline::Baseline& stored) {
  WEIR_TRY(const profile::CellKey cell, profile::CellKey::parse(stored.cell));
  WEIR_TRY(const std::string relative, baseline::path_of(cell, stored.device_class));
  const std::string path = sys::join_path(folder_, relative);
  WEIR_CHECK(files_.make_dirs(sys::folder_of(path)));
  WEIR_CHECK(files_.write_atomic(path, baseline::to_text(stored)));
  return path;
}

Result<void> StoredBaselines::remove(const Entry& entry) { return files_.remove(entry.path); }

// Lists the stored baselines of the selected cells, one line each or in full.
Result<Answer> list_baselines(const Job& job, const BaselineListOptions& wanted) {
  WEIR_TRY(auto entries, StoredBaselines(job.files(), job.selection.baselines).all());
  std::erase_if(entries,
                [&](const auto& entry) { return !job.selection.wants(entry.baseline.cell); });
  if (entries.empty() && !job.selection.cells.empty()) {
    return fail(Code::usage, "{}: no stored baseline of a cell that matches {}",
                job.selection.baselines, text::join(job.selection.cells));
  }
  std::vector<baseline::Baseline> baselines;
  Json list = Json::array();
  std::string text;
  for (const StoredBaselines::Entry& entry : entries) {
    baselines.push_back(entry.baseline);
    WEIR_TRY(const Json content, parse_json(baseline::to_text(entry.baseline)));
    list.push_back({{"path", entry.path}, {"baseline", content}});
    if (wanted.in_full) text += report::baseline_show(entry.baseline, job.width());
  }
  if (baselines.empty()) {
    text = fmt::format("No baselines in {}. weir baseline accept stores what was measured.\n",
                       job.selection.baselines);
  } else if (!wanted.in_full) {
    text = report::baseline_list(baselines, job.width());
  }
  return Answer{text, json_document({{"schema", "weir.baselines/1"}, {"baselines", list}})};
}

// Removes the baselines of cells that the configuration no longer has, or only lists them.
Result<Answer> prune_baselines(const Job& job, const BaselinePruneOptions& wanted) {
  WEIR_TRY(const LoadedConfig loaded, load_config(job));
  const std::set<std::string> configured_cells = cell_names(loaded.cells);
  StoredBaselines stored(job.files(), job.selection.baselines);
  WEIR_TRY(const auto entries, stored.all());
  std::size_t removed = 0;
  std::string text;
  for (const StoredBaselines::Entry& entry : entries) {
    if (configured_cells.contains(entry.baseline.cell)) continue;
    if (!wanted.dry) WEIR_CHECK(stored.remove(entry));
    text += fmt::format("{} {}\n", wanted.dry ? "would remove" : "removed", entry.path);
    ++removed;
  }
  return Answer{text + fmt::format("{} of {} baselines belong to no cell of {}\n", removed,
                                   entries.size(), job.selection.config)};
}

}  // namespace weir::flow
