#include "gate/app/accept_allowed.hpp"

#include "gate/app/allowed.hpp"
#include "gate/app/branch.hpp"
#include "gate/app/rules.hpp"
#include "gate/app/session.hpp"
#include "gate/base/text.hpp"
#include "gate/source/tree_files.hpp"
#include "gate/sys/paths.hpp"

namespace weir::app {
namespace {

using verdict::Allowance;

struct Told {
  std::vector<std::string> lines;
  Json cells = Json::array();
  std::size_t stored = 0, left_out = 0;
};

// The cell's true name: allowances made from reports have an alias where it is private.
std::string true_name(const std::string& shown, const Loaded* loaded) {
  if (loaded == nullptr) return shown;
  for (const config::Cell& cell : loaded->cells) {
    if (loaded->veil.cell(cell.key).str() == shown) return cell.key.str();
  }
  return shown;
}

Result<void> store_one(const Allowance& allowance, const Loaded* loaded, StoredBaselines& stored,
                       Told& told) {
  verdict::Allowable what = allowance.what;
  what.cell = true_name(what.cell, loaded);
  WEIR_TRY(const profile::CellKey cell, profile::CellKey::parse(what.cell));
  WEIR_TRY(const std::vector<baseline::Baseline> known, stored.of_cell(cell));
  std::size_t files = 0;
  for (const baseline::Baseline& one : known) {
    const auto now = verdict::accepted_into(what, one);
    if (!now) continue;
    WEIR_TRY(const std::string path, stored.put(*now));
    (void)path;
    ++files;
  }
  const std::string title =
      fmt::format("{} of {}: {} → {}", what.metric, allowance.what.cell, what.from, what.to);
  const std::string_view outcome = files > 0 ? "accepted" : "left out";
  told.lines.push_back(fmt::format(
      "{:<8}  {}{}\n", outcome, text::printable(title),
      files > 0 ? "" : "\n    no exact count of that value is stored: measure and accept it"));
  told.cells.push_back({{"cell", allowance.what.cell},
                        {"outcome", outcome},
                        {"changes", what.metric + " " + what.from + " → " + what.to}});
  ++(files > 0 ? told.stored : told.left_out);
  return {};
}

Result<Told> store_all(const std::vector<Allowance>& all, const Loaded* loaded,
                       StoredBaselines& stored) {
  Told told;
  for (const Allowance& one : all) WEIR_CHECK(store_one(one, loaded, stored, told));
  return told;
}

}  // namespace

Result<ExitCode> accept_allowed(const AcceptAllowed& wanted, const CommonOptions& options,
                                sys::Files& files) {
  WEIR_TRY(const auto repository,
           Repository::around(sys::absolute(sys::folder_of(options.config))));
  const source::Git& git = repository->git();
  const std::string& ref = wanted.allowances_ref;
  // A branch as it is here, or as it was fetched.
  WEIR_TRY(std::optional<std::string> from, git.commit(ref));
  if (!from) {
    WEIR_TRY(from, git.commit("refs/remotes/origin/" + ref));
  }
  if (!from)
    return fail(Code::config, "--allowances-ref {}: is not known here", text::printable(ref));
  WEIR_TRY(const std::vector<Allowance> all, allowances_of(git, *from, wanted.pull_request));
  if (all.empty()) {
    return fail(Code::usage, "{}: pull request {} was allowed nothing", text::printable(ref),
                wanted.pull_request);
  }
  std::optional<Loaded> loaded;
  if (files.exists(options.config)) {
    WEIR_TRY(loaded, load_config(options, files));
  }
  const Loaded* names = loaded ? &*loaded : nullptr;
  Told told;
  if (wanted.baselines_ref) {
    WEIR_TRY(const BaselinesPlace place, baselines_place(*wanted.baselines_ref));
    const auto edit = [&](const std::optional<std::string>& parent) -> Result<BranchEdit> {
      if (!parent) return fail(Code::config, "{}: there is no such branch", place.ref);
      WEIR_TRY(const std::string folder, baselines_folder(git, *parent, place));
      WEIR_TRY(const auto tree, source::TreeFiles::open(git, *parent, folder, options.baselines));
      StoredBaselines stored(*tree, options.baselines);
      WEIR_TRY(told, store_all(all, names, stored));
      BranchEdit made{tree->changes(),
                      fmt::format("Accept what pull request {} was allowed", wanted.pull_request)};
      const std::string path = verdict::allowance_path(wanted.pull_request);
      if (place.ref == ref && told.left_out == 0) {
        WEIR_TRY(const auto there, git.entries(*parent, {path}));
        if (!there.empty()) made.changes[path] = std::nullopt;
      }
      return made;
    };
    WEIR_TRY(const std::string commit, edit_branch(*repository, place.ref, edit));
    told.lines.push_back(written_words(place.ref, commit));
  } else {
    StoredBaselines stored(files, options.baselines);
    WEIR_TRY(told, store_all(all, names, stored));
  }
  for (const std::string& line : told.lines) answer(options, line);
  answer(options,
         fmt::format("{} of {} allowances are the baseline now\n", told.stored, all.size()));
  WEIR_CHECK(write_json(
      options,
      dump_json({{"schema", "weir.accepted/1"}, {"cells", std::move(told.cells)}}, 1) + "\n"));
  return told.left_out == 0 ? ExitCode::pass : ExitCode::unmeasured;
}

}  // namespace weir::app
