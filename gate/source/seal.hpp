// Files that a comparison rests on, held to be what they were before anything ran.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
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
  // Adds a place from which programs load what they run before their own code, by a name for
  // people; does nothing for one that was added before. It may be a file, a folder or nothing: a
  // file that is new counts as changed. In a folder those files are held whose names, from there,
  // `is_held` accepts.
  using IsHeld = std::function<bool(std::string_view name)>;
  void add_start_place(const sys::Files& files, const std::string& path, const std::string& name,
                       IsHeld is_held);
  // The same for the files right in a folder, as programs and libraries are looked up. Hidden files
  // are left out.
  void add_search_folder(const sys::Files& files, const std::string& folder);
  [[nodiscard]] bool empty() const { return sealed_.empty() && start_places_.empty(); }
  // Fails with Code::unavailable if a file was changed, replaced or removed since.
  [[nodiscard]] Result<void> check(const sys::Files& files) const;

 private:
  struct Sealed {
    std::string path, name, place;
    sys::FileState state;
  };
  struct StartPlace {
    std::string path, name;
    IsHeld is_held;                       // null: files right in the folder
    std::optional<sys::FileState> state;  // of a file
    sys::FileStates states;               // of the files of a folder
  };
  static void read_states(const sys::Files& files, StartPlace& place);
  [[nodiscard]] Result<void> check_start_places(const sys::Files& files) const;

  std::vector<Sealed> sealed_;  // the first that was written to is named
  std::set<std::string> paths_;
  std::vector<StartPlace> start_places_;
  std::set<std::pair<std::string, bool>> places_;  // their paths, and those with is_held
};

}  // namespace weir::source
