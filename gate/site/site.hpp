// The trend site: turns a history, its changes and its gates' verdicts into files for the pages
// (gate/web), one JSON document each. docs/how-to/trend-site.md.
//
// A document is a script that calls weirData(NAME, JSON AS TEXT), because pages opened from a file
// can load nothing but scripts. Pages load documents by need, and each is small, whatever the size
// of the history. They hold base units and unescaped texts; the pages make texts inert. No file's
// name is made of text from outside. Pure, and one path at a time: the server uses the same
// functions.
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
      changes;                                   // as site_changes() returns them; may be shorter
  std::vector<history::StoredVerdict> verdicts;  // unreadable ones are left out
  std::map<std::string, std::string> subjects;   // first lines of commits, by the runs' names
  std::optional<CommitChanges> commit_changes;   // without it there are no pages of changes
};

// Groups changes by series of `history`.
[[nodiscard]] std::vector<std::vector<history::SeriesChange>> site_changes(
    const history::History& history, const std::vector<history::SeriesChange>& changes);

// Returns the address of a repository, to which "/commit/NAME" can be added: http or https, without
// unsafe characters and a final '/'. Fails with Code::usage.
[[nodiscard]] Result<std::string> repo_url(std::string_view text);

inline constexpr std::size_t k_cells_a_spark_file = 50;
inline constexpr std::size_t k_kernels_a_file = 50;
inline constexpr std::size_t k_max_run_pages = 2'000;  // the newest, and as many with verdicts

struct SiteIndex;  // parts.hpp

class Site {
 public:
  explicit Site(SiteModel model);
  Site(Site&&) noexcept;
  Site& operator=(Site&&) = delete;
  ~Site();

  // Returns the paths of all documents: "data/overview.js", "data/cells/0a1b….js", …
  [[nodiscard]] std::vector<std::string> paths() const;
  // Returns nothing if there is no such document.
  [[nodiscard]] std::optional<std::string> text(std::string_view path) const;
  [[nodiscard]] const SiteIndex& index() const { return *index_; }

 private:
  std::unique_ptr<const SiteIndex> index_;
};

// Numbers of files that write_site() wrote, left alone and removed.
struct SiteWritten {
  std::size_t written = 0, same = 0, removed = 0;
};

// Writes the pages (`pages`: the folder that ci/web made) and the documents of `site` to `folder`,
// which is made if it isn't there. Files that are the same already stay untouched; any other is
// replaced atomically. At the end, documents of an earlier site that this one doesn't have are
// removed, and nothing else. Fails with Code::config, and writes nothing, if `folder` has an
// index.html of no site.
[[nodiscard]] Result<SiteWritten> write_site(sys::Files& files, const std::string& pages,
                                             const Site& site, const std::string& folder);

// Finds the pages for a program at `program` (absolute): share/weir/web in its folder or in the
// parent. Fails with Code::unavailable and these places.
[[nodiscard]] Result<std::string> find_pages(const sys::Files& files, const std::string& program);
// Reads one of those files, such as "profile.html". Fails as find_pages() does.
[[nodiscard]] Result<std::string> read_page(const sys::Files& files, const std::string& program,
                                            const std::string& name);

}  // namespace weir::site
