// Compares files with what they were.
#include "gate/source/seal.hpp"

#include <algorithm>

#include "gate/base/text.hpp"
#include "gate/sys/paths.hpp"

namespace weir::source {
namespace {

// Returns the name of the first file that is in one of two folders alone, or differs; "" if none.
std::string find_difference(const sys::FileStates& before, const sys::FileStates& now) {
  const auto [in_before, in_now] = std::ranges::mismatch(before, now);
  if (in_before == before.end()) return in_now == now.end() ? "" : in_now->first;
  if (in_now == now.end()) return in_before->first;
  return std::min(in_before->first, in_now->first);
}

}  // namespace

void Seal::add(const sys::Files& files, const std::string& path, const std::string& name,
               const std::string& place) {
  const auto state = files.state(path);
  if (state && paths_.insert(path).second) sealed_.push_back({path, name, place, *state});
}

// Reads the state (times, size) of the files at the place now. A folder that cannot be read counts
// as empty.
void Seal::read_states(const sys::Files& files, StartPlace& place) {
  if (files.kind(place.path) != sys::Kind::folder) {
    place.state = files.state(place.path);
    place.states.clear();
    return;
  }
  place.state.reset();
  if (!place.is_held) {
    place.states.clear();
    for (const std::string& name : files.list(place.path).value_or(std::vector<std::string>())) {
      // Nothing is looked up by a hidden name. pyenv makes one in its folder with each new shell.
      if (name.starts_with('.')) continue;
      const std::string file = sys::join_path(place.path, name);
      if (files.kind(file) != sys::Kind::file) continue;
      if (const auto state = files.state(file)) place.states.emplace(name, *state);
    }
    return;
  }
  place.states = files.states(place.path).value_or(sys::FileStates());
  std::erase_if(place.states, [&](const auto& file) { return !place.is_held(file.first); });
}

void Seal::add_start_place(const sys::Files& files, const std::string& path,
                           const std::string& name, IsHeld is_held) {
  if (!places_.insert({path, is_held != nullptr}).second) return;
  StartPlace place{path, name, std::move(is_held), {}, {}};
  read_states(files, place);
  start_places_.push_back(std::move(place));
}

void Seal::add_search_folder(const sys::Files& files, const std::string& folder) {
  add_start_place(files, folder, folder, nullptr);
}

// Fails if a file that programs load at their start was written to or removed since it was
// recorded.
Result<void> Seal::check_start_places(const sys::Files& files) const {
  for (const StartPlace& place : start_places_) {
    StartPlace now = place;
    read_states(files, now);
    if (now.state == place.state && now.states == place.states) continue;
    const std::string file = find_difference(place.states, now.states);
    return fail(
        Code::unavailable,
        "{}: it was written to or removed while both sides ran, and programs of the base may "
        "load it, so nothing can be compared with the base\n"
        "  install and configure before the measurement",
        text::printable(file.empty() ? place.name : sys::join_path(place.name, file)));
  }
  return {};
}

Result<void> Seal::check(const sys::Files& files) const {
  for (const Sealed& sealed : sealed_) {
    const auto now = files.state(sealed.path);
    if (now == sealed.state) continue;
    return fail(Code::unavailable,
                "{}: it was {}{} while both sides ran, so nothing can be compared with the base\n"
                "  what an engine writes belongs into a folder that git ignores",
                text::printable(sealed.name), now ? "written to" : "removed", sealed.place);
  }
  return check_start_places(files);
}

}  // namespace weir::source
