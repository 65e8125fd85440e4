// The trend site: a history in order, its changes and its gates' verdicts -> files to put beside
// the pages (gate/web), one JSON document each. docs/how-to/trend-site.md.
//
// A document is a script that calls weirData(NAME, JSON AS TEXT), because pages opened from a file
// can load scripts and nothing else. Documents are small enough to be loaded by need, whatever the
// size of the history, and hold base units and any text as it is: who shows it makes it inert. No
// name of a file is made of text from outside. Pure, and one path at a time: the server answers
// with the same functions.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gate/base/result.hpp"
#include "gate/history/changes.hpp"
#include "gate/history/history.hpp"
#include "gate/site/changes.hpp"
#include "gate/sys/files.hpp"

namespace weir::site {

struct SiteModel {
  std::string title;     // "" is "weir"
  std::string repo_url;  // commits are at <it>/commit/NAME; "" makes no links
  history::History history;
  std::vector<std::vector<history::SeriesChange>>
      changes;                                   // as site_changes() has them; may be shorter
  std::vector<history::StoredVerdict> verdicts;  // those that cannot be read are left out
  std::map<std::string, std::string> subjects;   // of commits, as the runs name them
  std::optional<CommitChanges> commit_changes;   // without it there are no pages of changes
};

// By series of `history`, each by index.
[[nodiscard]] std::vector<std::vector<history::SeriesChange>> site_changes(
    const history::History& history, const std::vector<history::SeriesChange>& changes);

// An address to which "/commit/NAME" can be put: http or https, nothing in it that a browser would
// read otherwise; without a final '/'. Code::usage.
[[nodiscard]] Result<std::string> repo_url(std::string_view text);

inline constexpr std::size_t k_cells_a_spark_file = 50;
inline constexpr std::size_t k_kernels_a_file = 50;
inline constexpr std::size_t k_most_run_pages = 2'000;  // the newest, and as many with verdicts

struct SiteIndex;  // parts.hpp

class Site {
 public:
  explicit Site(SiteModel model);
  Site(Site&&) noexcept;
  Site& operator=(Site&&) = delete;
  ~Site();

  // Of all documents: "data/overview.js", "data/cells/0a1b….js", …
  [[nodiscard]] std::vector<std::string> paths() const;
  // Nothing where there is no such document.
  [[nodiscard]] std::optional<std::string> text(std::string_view path) const;
  [[nodiscard]] const SiteIndex& index() const { return *index_; }

 private:
  std::unique_ptr<const SiteIndex> index_;
};

// A site into a folder: the pages and the documents they load.

struct SiteWritten {
  std::size_t written = 0, same = 0, removed = 0;  // files
};

// Writes the pages (`pages`: the folder that ci/web made) and the documents of `site` to `folder`,
// which is made if it is not there. Files that are the same already stay untouched, each other one
// is replaced at once; documents of an earlier site that this one has not are removed, the last
// of all, and nothing else ever is. Code::config where `folder` has an index.html that is no
// site's: nothing is written then.
[[nodiscard]] Result<SiteWritten> write_site(sys::Files& files, const std::string& pages,
                                             const Site& site, const std::string& folder);

// Where the pages lie, for a program at `program` (absolute): share/weir/web beside it or below the
// folder above it. Code::unavailable with the places looked at.
[[nodiscard]] Result<std::string> find_pages(const sys::Files& files, const std::string& program);
// One of those files, "profile.html". Fails as find_pages() does.
[[nodiscard]] Result<std::string> read_page(const sys::Files& files, const std::string& program,
                                            const std::string& name);

}  // namespace weir::site
