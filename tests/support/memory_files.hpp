// Files that live in memory: for tests, and to see what a change would write.
//
// Folders come and go as real ones do. Nothing is synced; everything may be read and written, and
// is executable where set_executable() said so.
#pragma once

#include <map>
#include <mutex>
#include <set>
#include <string>

#include "gate/sys/files.hpp"

namespace weir::sys {

class MemoryFiles final : public Files {
 public:
  MemoryFiles();
  // A file with its folders, without errors: for setting a scene.
  void put(const std::string& path, std::string text);
  void set_executable(const std::string& path);
  // Sets the time that written_at() returns; without it none is known.
  void set_written_at(const std::string& path, double seconds) { times_[path] = seconds; }
  // Every later write below `path` fails, as on a full disk.
  void refuse_writes(const std::string& path);
  // The log at `path` takes so many bytes more: of the line that does not fit its beginning stays,
  // as if nothing could be cut off again, and later lines are written behind it.
  void tear_after(const std::string& path, std::size_t bytes);

  [[nodiscard]] Result<std::string> read(const std::string& path,
                                         std::uint64_t max_bytes) const override;
  [[nodiscard]] Result<std::string> read_prefix(const std::string& path,
                                                std::uint64_t bytes) const override;
  [[nodiscard]] Result<void> write_atomic(const std::string& path, std::string_view text) override;
  [[nodiscard]] Result<std::unique_ptr<AppendLog>> append_log(const std::string& path,
                                                              std::uint64_t keep_bytes) override;
  [[nodiscard]] Kind kind(const std::string& path) const override;
  [[nodiscard]] bool readable(const std::string& path) const override;
  [[nodiscard]] bool executable(const std::string& path) const override;
  [[nodiscard]] bool writable(const std::string& path) const override;
  [[nodiscard]] Result<std::uint64_t> size(const std::string& path) const override;
  [[nodiscard]] Result<std::string> stamp(const std::string& path) const override;
  [[nodiscard]] Result<double> written_at(const std::string& path) const override {
    const auto time = times_.find(path);
    return time == times_.end() ? Files::written_at(path) : time->second;
  }
  [[nodiscard]] Result<std::vector<std::string>> list(const std::string& path) const override;
  [[nodiscard]] Result<void> make_dirs(const std::string& path) override;
  [[nodiscard]] Result<void> link(const std::string& target, const std::string& path) override;
  [[nodiscard]] Result<void> remove(const std::string& path) override;
  [[nodiscard]] Result<void> remove_tree(const std::string& path) override;

 private:
  class Log;
  [[nodiscard]] bool refused(const std::string& path) const;
  [[nodiscard]] Kind kind_locked(const std::string& path) const;
  // `path` with the links in it followed; not the one that it names itself, unless `last`.
  [[nodiscard]] std::string follow(std::string path, bool last = true) const;

  mutable std::mutex mutex_;
  std::map<std::string, std::string> files_;
  std::map<std::string, int> writes_;  // per path: the stamp
  std::map<std::string, double> times_;
  std::set<std::string> folders_;
  std::map<std::string, std::string> links_;  // name -> target
  std::set<std::string> executables_;
  std::set<std::string> refused_;
  std::map<std::string, std::size_t> tears_;
};

}  // namespace weir::sys
