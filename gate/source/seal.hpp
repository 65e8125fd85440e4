// Files that a comparison rests on, held to be what they were before anything ran.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "gate/base/result.hpp"
#include "gate/sys/files.hpp"

namespace weir::source {

// The candidate's engine may write wherever the base's program lies, and what both sides read. A
// seal tells if it did, even if it put the old contents back.
class Seal {
 public:
  // Adds what `path` leads to now; does nothing if that is neither a file nor a folder. Of a folder
  // it only holds that it is that one. `name` and `place` are for people: "engine", " in the base's
  // checkout".
  void add(const sys::Files& files, const std::string& path, const std::string& name,
           const std::string& place = "");
  [[nodiscard]] bool empty() const { return sealed_.empty(); }
  // Fails with Code::unavailable if a file was changed, replaced or removed since.
  [[nodiscard]] Result<void> check(const sys::Files& files) const;

 private:
  struct Sealed {
    std::string path, name, place;
    sys::FileState state;
  };
  std::vector<Sealed> sealed_;  // the first that was written to is named
  std::set<std::string> paths_;
};

}  // namespace weir::source
