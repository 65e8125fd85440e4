// A folder of one commit as files, without checking it out; what is written stays in memory.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "gate/source/git.hpp"
#include "gate/sys/files.hpp"

namespace weir::source {

// Files below a folder of a commit may not lead out of it: links and submodules are refused, and so
// is a folder that is reached through one.
class TreeFiles final : public sys::Files {
 public:
  // `folder` of `commit`, from the top of the repository ("" is all of it); names here begin with
  // `shown` in its place ("baselines" -> "baselines/llama.cpp/…"). Where the commit has no such
  // folder, nothing is there. `git` outlives this. Fails with Code::config on a link or submodule,
  // Code::data on more than 100 000 files.
  [[nodiscard]] static Result<std::unique_ptr<TreeFiles>> open(const Git& git,
                                                               const std::string& commit,
                                                               const std::string& folder,
                                                               const std::string& shown);

  // The same of no commit at all: what is written begins a history.
  [[nodiscard]] static std::unique_ptr<TreeFiles> nothing(const Git& git, const std::string& folder,
                                                          const std::string& shown) {
    return std::unique_ptr<TreeFiles>(new TreeFiles(git, folder, shown));
  }

  // Names of the files that only one of the two has, or that differ, as the commits have them.
  [[nodiscard]] std::vector<std::string> differing(const TreeFiles& other) const;

  // Changes that were made: path from the top of the repository -> text, or nothing if removed.
  [[nodiscard]] Git::Changes changes() const;
  [[nodiscard]] bool empty() const { return objects_.empty(); }

  [[nodiscard]] Result<std::string> read(const std::string& path,
                                         std::uint64_t max_bytes) const override;
  [[nodiscard]] Result<std::string> read_prefix(const std::string& path,
                                                std::uint64_t bytes) const override;
  [[nodiscard]] Result<void> write_atomic(const std::string& path, std::string_view text) override;
  [[nodiscard]] Result<std::unique_ptr<sys::AppendLog>> append_log(const std::string& path,
                                                                   std::uint64_t) override {
    return unsupported(path);
  }
  [[nodiscard]] sys::Kind kind(const std::string& path) const override;
  [[nodiscard]] bool readable(const std::string& path) const override { return exists(path); }
  [[nodiscard]] bool executable(const std::string&) const override { return false; }
  [[nodiscard]] bool writable(const std::string&) const override { return true; }
  [[nodiscard]] Result<std::uint64_t> size(const std::string& path) const override;
  [[nodiscard]] Result<std::string> stamp(const std::string& path) const override;
  [[nodiscard]] Result<std::vector<std::string>> list(const std::string& path) const override;
  [[nodiscard]] Result<void> make_dirs(const std::string&) override { return {}; }
  [[nodiscard]] Result<void> link(const std::string&, const std::string& path) override {
    return unsupported(path);
  }
  [[nodiscard]] Result<void> remove(const std::string& path) override;
  [[nodiscard]] Result<void> remove_tree(const std::string& path) override {
    return unsupported(path);
  }

 private:
  TreeFiles(const Git& git, std::string folder, std::string shown_prefix)
      : git_(git), folder_(std::move(folder)), shown_prefix_(std::move(shown_prefix)) {}
  [[nodiscard]] bool contains(const std::string& path) const;
  [[nodiscard]] std::set<std::string> names_in(const std::string& folder) const;
  [[nodiscard]] static tl::unexpected<Error> unsupported(const std::string& path) {
    return fail(Code::internal, "{}: a commit's files cannot be used so", path);
  }

  const Git& git_;
  std::string folder_, shown_prefix_;
  std::map<std::string, std::string> objects_;  // name here -> object
  Git::Changes changes_;                        // by names here
};

// One file of a commit, from the top of the repository; nothing where it has none. Fails with
// Code::config where it is, or is reached through, a link or submodule, Code::data where it is
// longer than `max_bytes` bytes.
[[nodiscard]] Result<std::optional<std::string>> file_of(const Git& git, const std::string& commit,
                                                         const std::string& path,
                                                         std::uint64_t max_bytes);

}  // namespace weir::source
