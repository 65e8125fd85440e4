#include "gate/app/reaching.hpp"

#include <algorithm>
#include <set>

#include "gate/app/checkouts.hpp"
#include "gate/base/json.hpp"
#include "gate/base/text.hpp"
#include "gate/sys/paths.hpp"

namespace weir::app {
namespace {

constexpr std::uint64_t k_largest_record = std::uint64_t{256} << 20;

Result<ReachBetween> reach_of_measured(const Measured& measured, const StoredReach& stored,
                                       sys::Files& files) {
  // Lines over depths are measured by other cells.
  WEIR_TRY(const config::Matrix matrix, config::expand(*measured.settings));
  std::set<std::string> names;
  for (const profile::Profile& profile : measured.profiles) names.insert(profile.cell.str());
  std::vector<ReachCell> cells = reach_cells(matrix.cells);
  std::erase_if(cells, [&](const ReachCell& cell) { return !names.contains(cell.cell); });
  const BaseFacts& facts = measured.beside->facts;
  Outside outside(files);
  WEIR_TRY(const source::Git git,
           source::Git::open(outside.effects, sys::folder_of(sys::absolute(measured.config_file))));
  return reach_between(git, *facts.commit, *facts.candidate_commit, cells, stored);
}

}  // namespace

StoredReach::StoredReach(sys::Files& files, const std::string& out)
    : files_(files), folder_(sys::join_path(out, "reach")) {}

std::string StoredReach::path_of(const std::string& cell) const {
  return sys::join_path(folder_, cell + ".json");
}

Result<std::optional<profile::Reach>> StoredReach::of(const std::string& cell) const {
  const std::string path = path_of(cell);
  if (!files_.exists(path)) return std::nullopt;
  WEIR_TRY(const std::string text, files_.read(path, k_largest_record));
  auto reach =
      parse_json(text, {.bytes = k_largest_record, .depth = 16}).and_then([](const Json& json) {
        return profile::reach_from_json(json);
      });
  if (!reach) return tl::unexpected(with_context(path, std::move(reach).error()));
  if (reach->cell != cell) {
    return fail(Code::data, "{}: holds what \"{}\" runs; it was moved or edited by hand", path,
                reach->cell);
  }
  return std::move(*reach);
}

Result<void> StoredReach::put(const profile::Reach& reach) {
  const std::string path = path_of(reach.cell);
  WEIR_CHECK(files_.make_dirs(sys::folder_of(path)));
  return files_.write_atomic(path, dump_json(profile::to_json(reach), 1) + "\n");
}

std::vector<ReachCell> reach_cells(std::span<const config::Cell> cells) {
  std::vector<ReachCell> out;
  for (const config::Cell& cell : cells) out.push_back({cell.key.str(), cell.device});
  return out;
}

Result<ReachBetween> reach_between(const source::Git& git, const std::string& from,
                                   const std::string& to, std::span<const ReachCell> cells,
                                   const StoredReach& stored) {
  ReachBetween between;
  std::vector<profile::CellReach> known;
  for (const ReachCell& cell : cells) {
    WEIR_TRY(auto reach, stored.of(cell.cell));
    if (reach) ++between.recorded;
    known.push_back({cell.cell, cell.device, std::move(reach)});
  }
  WEIR_TRY(const std::vector<profile::ChangedFile> changed, git.changed(from, to));
  WEIR_TRY(const std::vector<std::string> all, git.files_of(to));
  between.changed = changed.size();
  between.diff = profile::reach_of_diff(known, changed, all);
  return between;
}

void tell_reach(const Measured& measured, const CommonOptions& options,
                verdict::GateVerdict& verdict, sys::Files& files) {
  if (!measured.beside) return;
  const BaseFacts& facts = measured.beside->facts;
  if (!facts.commit || !facts.candidate_commit || facts.commit == facts.candidate_commit) return;
  const StoredReach stored(files, options.out);
  if (files.kind(stored.folder()) != sys::Kind::folder) return;
  const auto between = reach_of_measured(measured, stored, files);
  if (!between) {
    verdict.notes.push_back("which changed files these cells run is not known: " +
                            text::printable(between.error().message));
    return;
  }
  if (between->recorded == 0) return;
  std::string words = profile::words_of_none(between->diff);
  if (words.empty()) return;
  if (measured.some_cells) words += " (of the cells of this gate)";
  // In the first line: a green that says nothing about a change must not look like one that does.
  verdict.not_judged.push_back(std::move(words));
}

}  // namespace weir::app
