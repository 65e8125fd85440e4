#include "gate/serve/pages.hpp"

#include "gate/history/changed.hpp"
#include "gate/serve/answers.hpp"
#include "gate/site/site.hpp"
#include "gate/sys/paths.hpp"

namespace weir::serve {
namespace {

constexpr std::uint64_t k_largest_file = std::uint64_t{16} << 20;
constexpr std::size_t k_most_kept = std::size_t{64} << 20;  // of a snapshot's documents
constexpr const char* k_script = "text/javascript; charset=utf-8";
// What was added to a run that is known shows in no revision.
constexpr double k_longest_unchanged = 600;  // seconds

std::string type_of(const std::string& name) {
  if (name.ends_with(".html")) return "text/html; charset=utf-8";
  if (name.ends_with(".css")) return "text/css; charset=utf-8";
  if (name.ends_with(".js")) return k_script;
  if (name.ends_with(".svg")) return "image/svg+xml";
  return "application/octet-stream";
}

}  // namespace

Result<std::unique_ptr<Pages>> Pages::load(const sys::Files& files, PageOptions options) {
  std::unique_ptr<Pages> pages(new Pages(std::move(options)));
  const std::string& folder = pages->options_.folder;
  if (folder.empty()) return pages;
  const auto load = [&](const std::string& name) -> Result<void> {
    WEIR_TRY(std::string text, files.read(sys::join_path(folder, name), k_largest_file));
    pages->files_["/" + name] = text_answer(200, type_of(name), std::move(text));
    return {};
  };
  WEIR_CHECK(load("index.html"));
  pages->files_["/"] = pages->files_["/index.html"];
  WEIR_TRY(const std::vector<std::string> names, files.list(sys::join_path(folder, "assets")));
  for (const std::string& name : names) WEIR_CHECK(load("assets/" + name));
  return pages;
}

Result<void> Pages::renew(history::ServiceStore& store, double now) {
  if (options_.folder.empty()) return {};
  WEIR_TRY(std::string revision, store.revision());
  {
    const std::lock_guard lock(mutex_);
    if (snapshot_.site && snapshot_.revision == revision &&
        now - snapshot_.made_at < k_longest_unchanged) {
      return {};
    }
  }
  site::SiteModel model;
  model.title = options_.title;
  model.repo_url = options_.repo_url;
  WEIR_TRY(history::ChangedHistory read,
           history::read_changes(store.history(), {}, order(), {}, history::Looks::known));
  model.changes = site::site_changes(read.history, read.changes);
  model.history = std::move(read.history);
  WEIR_TRY(model.verdicts, store.history().verdicts({}));
  if (options_.subjects) model.subjects = options_.subjects(model.history);
  Snapshot made{std::make_shared<const site::Site>(std::move(model)), std::make_shared<Documents>(),
                std::move(revision), now};
  const std::lock_guard lock(mutex_);
  std::swap(snapshot_, made);
  return {};
}

// Null where there is no such path. Two that ask at once for what is not kept may both make it.
std::shared_ptr<const std::string> Pages::document(const site::Site& site, Documents& known,
                                                   const std::string& path) {
  {
    const std::lock_guard lock(known.mutex);
    if (const auto found = known.by_path.find(path); found != known.by_path.end()) {
      return found->second;
    }
  }
  auto made = site.text(std::string_view(path).substr(1));
  if (!made) return nullptr;
  const auto text = std::make_shared<const std::string>(*std::move(made));
  const std::lock_guard lock(known.mutex);
  if (known.bytes + text->size() > k_most_kept) return text;
  const auto [place, is_new] = known.by_path.emplace(path, text);
  if (is_new) known.bytes += text->size();
  return place->second;
}

std::optional<Response> Pages::find(const std::string& path) const {
  if (const auto file = files_.find(path); file != files_.end()) return file->second;
  if (files_.empty() || !path.starts_with("/data/")) return std::nullopt;
  std::shared_ptr<const site::Site> site;
  std::shared_ptr<Documents> documents;
  {
    const std::lock_guard lock(mutex_);
    site = snapshot_.site;
    documents = snapshot_.documents;
  }
  if (!site) return later_answer(503, "the pages are being made", 1);
  auto text = document(*site, *documents, path);
  if (!text) return std::nullopt;
  return Response{200, k_script, {}, std::move(text)};
}

std::optional<Response> Pages::kept(const std::string& path) const {
  if (const auto file = files_.find(path); file != files_.end()) return file->second;
  std::shared_ptr<Documents> documents;
  {
    const std::lock_guard lock(mutex_);
    documents = snapshot_.documents;
  }
  if (!documents) return std::nullopt;
  const std::lock_guard lock(documents->mutex);
  const auto found = documents->by_path.find(path);
  if (found == documents->by_path.end()) return std::nullopt;
  return Response{200, k_script, {}, found->second};
}

std::optional<double> Pages::made_at() const {
  const std::lock_guard lock(mutex_);
  return snapshot_.site ? std::optional(snapshot_.made_at) : std::nullopt;
}

}  // namespace weir::serve
