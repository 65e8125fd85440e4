// Writes a site into a folder, and finds the installed pages.
#include <set>

#include "gate/base/text.hpp"
#include "gate/site/site.hpp"
#include "gate/sys/paths.hpp"

namespace weir::site {
namespace {

constexpr std::uint64_t k_largest_page = std::uint64_t{16} << 20;
constexpr std::uint64_t k_largest_document = std::uint64_t{1} << 30;
constexpr const char* k_folders[] = {"data/cells",   "data/runs",    "data/sparks",
                                     "data/commits", "data/changes", "data/kernels"};
// Documents that only some sites have.
constexpr const char* k_optional_files[] = {"data/changes.js", "data/kernels.js"};
// A line of every index.html of a site (gate/web/index.html).
constexpr std::string_view k_generator = "<meta name=\"generator\" content=\"weir\">";

// Writes a file unless it has this text already, and counts it.
Result<void> write_if_changed(sys::Files& files, const std::string& path, const std::string& text,
                              SiteWritten& count) {
  const auto size = files.size(path);
  if (size && *size == text.size() && files.read(path, k_largest_document) == text) {
    ++count.same;
    return {};
  }
  ++count.written;
  return files.write_unsynced(path, text);
}

// Returns true for a name that a document below data/ may have: "0a1b2c3d4e5f6071.js", "12.js",
// "all.js".
bool is_document_name(std::string_view name) {
  if (!name.ends_with(".js")) return false;
  name.remove_suffix(3);
  return name == "all" || (!name.empty() && name.size() <= 32 && text::is_hex(name));
}

}  // namespace

Result<std::string> find_pages(const sys::Files& files, const std::string& program) {
  const std::string program_folder = sys::folder_of(program);
  std::vector<std::string> places;
  for (const char* place : {"share/weir/web", "../share/weir/web"}) {
    places.push_back(sys::absolute(sys::join_path(program_folder, place)));
    if (files.exists(sys::join_path(places.back(), "index.html"))) return places.back();
  }
  return fail(Code::unavailable, "the pages of the trend site are not installed: looked in {}",
              text::join(places));
}

Result<std::string> read_page(const sys::Files& files, const std::string& program,
                              const std::string& name) {
  WEIR_TRY(const std::string pages, find_pages(files, program));
  return files.read(sys::join_path(pages, name), k_largest_page);
}

// Writes the pages and documents of a site to `folder`, and removes documents of an earlier one.
// Files that are the same stay untouched. Fails if the folder has another index.html.
Result<SiteWritten> write_site(sys::Files& files, const std::string& pages, const Site& site,
                               const std::string& folder) {
  const std::string index = sys::join_path(folder, "index.html");
  if (files.exists(index)) {
    WEIR_TRY(const std::string existing, files.read_prefix(index, 4096));
    if (existing.find(k_generator) == std::string::npos) {
      return fail(Code::config, "{} is not one of weir's: name a folder of its own", index);
    }
  }
  // Files of the pages; index.html is written last, because it loads the others.
  WEIR_TRY(std::vector<std::string> page_files, files.list(sys::join_path(pages, "assets")));
  for (std::string& name : page_files) name.insert(0, "assets/");
  page_files.emplace_back("index.html");
  SiteWritten count;
  std::set<std::string> documents;
  WEIR_CHECK(files.make_dirs(sys::join_path(folder, "assets")));
  for (const char* below : k_folders) WEIR_CHECK(files.make_dirs(sys::join_path(folder, below)));
  for (const std::string& path : site.paths()) {
    const auto text = site.text(path);
    if (!text) return fail(Code::internal, "a site without its own document {}", path);
    WEIR_CHECK(write_if_changed(files, sys::join_path(folder, path), *text, count));
    documents.insert(path);
  }
  for (const std::string& path : page_files) {
    WEIR_TRY(const std::string text, files.read(sys::join_path(pages, path), k_largest_page));
    WEIR_CHECK(write_if_changed(files, sys::join_path(folder, path), text, count));
  }
  // Remove documents of an earlier site.
  std::vector<std::string> existing(std::begin(k_optional_files), std::end(k_optional_files));
  for (const char* below : k_folders) {
    WEIR_TRY(const std::vector<std::string> names, files.list(sys::join_path(folder, below)));
    for (const std::string& name : names) {
      if (is_document_name(name)) existing.push_back(fmt::format("{}/{}", below, name));
    }
  }
  for (const std::string& path : existing) {
    if (documents.contains(path) || !files.exists(sys::join_path(folder, path))) continue;
    WEIR_CHECK(files.remove(sys::join_path(folder, path)));
    ++count.removed;
  }
  return count;
}

}  // namespace weir::site
