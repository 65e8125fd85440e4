// A site into a folder: the pages and the documents they load.
#pragma once

#include <cstddef>
#include <string>

#include "gate/base/result.hpp"
#include "gate/site/site.hpp"
#include "gate/sys/files.hpp"

namespace weir::site {

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

}  // namespace weir::site
