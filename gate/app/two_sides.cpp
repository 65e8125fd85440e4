#include "gate/app/two_sides.hpp"

#include <algorithm>

#include "gate/base/text.hpp"
#include "gate/observed/timeline.hpp"
#include "gate/probes/read/timeline.hpp"
#include "gate/run/journal.hpp"
#include "gate/sys/paths.hpp"

namespace weir::app {

bool holds_run(const std::string& path, const sys::Files& files) {
  if (files.kind(path) == sys::Kind::folder) {
    return files.kind(sys::join_path(path, std::string(run::k_journal_name))) == sys::Kind::file;
  }
  if (!path.ends_with(".jsonl")) return false;
  // Engines write JSON lines too; a journal's first one says that it is one.
  const auto begin = files.read_prefix(path, std::uint64_t{1} << 20);
  return begin && begin->substr(0, begin->find('\n')).find("\"weir.run/") != std::string::npos;
}

Result<ProfileFile> read_side(const CommonOptions& options, const std::string& path,
                              const sys::Files& files, std::optional<Measured>& measured) {
  if (holds_run(path, files)) {
    CommonOptions every = options;
    every.cells.clear();
    WEIR_TRY(Measured run, read_measured(every, path, files));
    veil_profiles(run);
    ProfileFile read;
    read.profiles = run.profiles;
    measured = std::move(run);
    return read;
  }
  if (files.kind(path) == sys::Kind::folder) {
    WEIR_TRY(const observed::Timeline timeline, probes::collect_timeline(files, path));
    if (timeline.processes.empty()) {
      return fail(Code::usage, "{}: neither a run (no {}) nor what weir profile --keep leaves",
                  path, run::k_journal_name);
    }
    ProfileFile read;
    read.observed = observed::observed_of(timeline);
    return read;
  }
  return read_profile_file(path, files);
}

bool cell_wanted(const CommonOptions& options, const std::string& cell) {
  return options.cells.empty() ||
         std::any_of(options.cells.begin(), options.cells.end(),
                     [&](const std::string& glob) { return text::glob_match(glob, cell); });
}

CellPairs cell_pairs(const ProfileFile& a, const ProfileFile& b, const CommonOptions& options) {
  CellPairs pairs;
  const bool one_each = a.profiles.size() == 1 && b.profiles.size() == 1;
  for (const profile::Profile& after : b.profiles) {
    if (!cell_wanted(options, after.cell.str())) continue;
    for (const profile::Profile& before : a.profiles) {
      if (one_each || before.cell == after.cell) pairs.emplace_back(&before, &after);
    }
  }
  return pairs;
}

}  // namespace weir::app
