// Finds the run that a verb takes when none is named, and checks the folder of runs.
#include "gate/flow/newest_run.hpp"

#include "gate/base/text.hpp"
#include "gate/flow/repository.hpp"
#include "gate/run/journal.hpp"
#include "gate/sys/clock.hpp"
#include "gate/sys/paths.hpp"

namespace weir::flow {
namespace {

// Returns true if the nearest repository around `path` (absolute) tracks it, a file below it, or a
// link or submodule on the way to it.
Result<bool> tracks(const Job& job, const std::string& path) {
  std::string top = path;
  while (!job.files().exists(sys::join_path(top, ".git"))) {
    if (top == "/" || top.empty()) return false;
    top = sys::folder_of(top);
  }
  // Git may refuse a repository of another user. Then nobody knows what is tracked.
  WEIR_TRY(const auto repository, Repository::containing(job.world, sys::folder_of(path)));
  const std::string& git_top = repository->git().top();
  if (!path.starts_with(git_top + "/")) return false;
  return repository->git().tracks(path.substr(git_top.size() + 1));
}

// Returns true if git tracks a run, where it lies or where links lead to it.
Result<bool> is_tracked_run(const Job& job, const std::string& run) {
  const std::string folder = sys::absolute(run), out = sys::folder_of(folder);
  const std::string above = sys::folder_of(out);
  const std::string named =
      sys::join_path(sys::real_path(above).value_or(above),
                     sys::join_path(sys::file_name_of(out), sys::file_name_of(folder)));
  const std::string journal = sys::join_path(folder, run::k_journal_name);
  const std::string real = sys::folder_of(sys::real_path(journal).value_or(journal));
  WEIR_TRY(const bool is_named, tracks(job, named));
  if (is_named || real == named) return is_named;
  return tracks(job, real);
}

}  // namespace

Result<bool> is_tracked(const Job& job, const std::string& file) {
  const std::string path = sys::absolute(file), folder = sys::folder_of(path);
  const std::string named =
      sys::join_path(sys::real_path(folder).value_or(folder), sys::file_name_of(path));
  WEIR_TRY(const bool is_named, tracks(job, named));
  const std::string real = sys::real_path(path).value_or(named);
  if (is_named || real == named) return is_named;
  return tracks(job, real);
}

// Fails if a link that git tracks leads to --out: whoever committed it would choose where runs are
// written.
Result<void> check_runs_folder(const Job& job) {
  std::string path = sys::absolute(job.selection.runs_folder);
  for (; path != "/" && !path.empty(); path = sys::folder_of(path)) {
    const auto real = sys::real_path(path), above = sys::real_path(sys::folder_of(path));
    if (!real || !above) continue;
    const std::string named = sys::join_path(*above, sys::file_name_of(path));
    if (*real == named) continue;
    WEIR_TRY(const bool is_tracked_link, tracks(job, named).map_error(with_prefix(named)));
    if (!is_tracked_link) continue;
    return fail(Code::config,
                "--out {}: {} is a link that git tracks: remove it from the repository, or give "
                "another folder",
                text::printable(job.selection.runs_folder), text::printable(named));
  }
  return {};
}

// Returns the folder of the run that began last. Leaves out, with a message, runs that git tracks
// and runs that begin in the future.
Result<std::string> newest_run(const Job& job) {
  const std::string& out = job.selection.runs_folder;
  const double now = job.world.clock.now();
  const auto leave_out = [&](const std::string& run, std::string_view why) {
    job.log(
        fmt::format("{} is not taken for the newest run: {}; name it if it is meant", run, why));
  };
  std::optional<std::string> newest;
  double began_at = 0;
  auto runs = run::list_runs(job.files(), out);
  std::ranges::reverse(runs);
  for (const std::string& run : runs) {
    // The name begins with the time, so most headers need not be read.
    if (newest && run::named_before(run, began_at)) continue;
    WEIR_TRY(const bool tracked, is_tracked_run(job, run).map_error(with_prefix(run)));
    if (tracked) {
      leave_out(run, "git tracks it");
      continue;
    }
    WEIR_TRY(const double started_at, run::read_started_at(job.files(), run));
    if (started_at > now) {
      leave_out(run, "it begins in the future");
    } else if (!newest || started_at > began_at) {
      newest = run;
      began_at = started_at;
    }
  }
  if (!newest) return run::no_run(out);
  return *newest;
}

}  // namespace weir::flow
