// weir trend site: pages of a history, for a file, a web server or GitHub Pages.
#include "gate/app/trend.hpp"
#include "gate/app/trend_changes.hpp"
#include "gate/base/text.hpp"
#include "gate/site/site.hpp"
#include "gate/sys/files.hpp"
#include "gate/sys/paths.hpp"

namespace weir::app {
namespace {

struct TrendSiteOptions {
  StoreOptions store;
  FilterOptions filter;
  std::string out, title;
  std::optional<std::string> repo;
  bool no_subjects = false;
};

// Of the repository at hand; none is no fault.
std::map<std::string, std::string> subjects_here() {
  const auto repository = Repository::around(sys::absolute("."));
  if (!repository) return {};
  return (*repository)->git().subjects().value_or(std::map<std::string, std::string>{});
}

// What the runs name, not all that the repository has.
std::map<std::string, std::string> subjects_of(const history::History& history) {
  const std::map<std::string, std::string> all = subjects_here();
  std::map<std::string, std::string> some;
  for (const history::RunFacts& run : history.runs) {
    if (!run.commit || some.contains(*run.commit)) continue;
    // A commit may be named by its first digits.
    const auto at = all.lower_bound(*run.commit);
    if (at != all.end() && at->first.starts_with(*run.commit))
      some.emplace(*run.commit, at->second);
  }
  return some;
}

Result<ExitCode> write_trend_site(const TrendSiteOptions& options) {
  site::SiteModel model;
  model.title = options.title;
  if (options.repo) {
    auto url = site::repo_url(*options.repo);
    if (!url) return tl::unexpected(with_context("--repo-url", std::move(url).error()));
    model.repo_url = *std::move(url);
  }
  sys::RealFiles files;
  WEIR_TRY(const std::string pages, site::find_pages(files, sys::own_program()));
  WEIR_TRY(const history::Filter filter, filter_of(options.filter));
  WEIR_TRY(const auto store, open_history(options.store, false));
  WEIR_TRY(ChangedHistory read,
           read_changes(*store, filter, commit_order(sys::absolute(".")), {}, Looks::known));
  model.changes = site::site_changes(read.history, read.changes);
  model.history = std::move(read.history);
  WEIR_TRY(model.verdicts, store->verdicts(filter));
  if (!options.no_subjects) model.subjects = subjects_of(model.history);
  const site::Site site(std::move(model));
  WEIR_TRY(const site::SiteWritten written, site::write_site(files, pages, site, options.out));
  say(fmt::format("{}: {} files written, {} as they were, {} removed\n",
                  sys::join_path(options.out, "index.html"), written.written, written.same,
                  written.removed));
  return ExitCode::pass;
}

}  // namespace

void add_trend_site(CLI::App& trend) {
  CLI::App* verb = trend.add_subcommand("site", "Pages of a history, to be opened in a browser");
  auto options = std::make_shared<TrendSiteOptions>();
  verb->add_option("OUT", options->out, "The folder to write them to; it may be new")
      ->type_name("")
      ->required();
  add_store_options(*verb, options->store);
  add_filter_options(*verb, options->filter);
  verb->add_option("--repo-url", options->repo,
                   "Where commits are shown, at URL/commit/NAME: https://github.com/me/engine")
      ->type_name("URL");
  verb->add_option("--title", options->title, "What stands above all pages")->type_name("TEXT");
  verb->add_flag("--no-subjects", options->no_subjects,
                 "Leave out the first lines of commit messages");
  verb->footer(
      "Examples:\n"
      "  weir trend site public --repo-url https://github.com/me/engine\n"
      "  weir trend site public --branch main --title 'Engine, nightly'\n"
      "Open public/index.html, or publish the folder. Files that are the same stay untouched.\n"
      "docs/trend-site.md says what the pages show.");
  set_action(*verb, [options] { return write_trend_site(*options); });
}

}  // namespace weir::app
