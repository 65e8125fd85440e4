// Compares the files of a checkout with what they were.
#include "gate/source/seal.hpp"

#include <set>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"

namespace weir::source {

Result<Seal> Seal::take(const std::string& folder, const std::vector<std::string>& tracked) {
  Seal seal;
  seal.folder_ = folder;
  WEIR_TRY(seal.states_, sys::file_states(folder));
  const std::set<std::string> names(tracked.begin(), tracked.end());
  std::erase_if(seal.states_, [&](const auto& file) {
    return !file.second.executable && !names.contains(file.first);
  });
  return seal;
}

Result<void> Seal::check() const {
  WEIR_TRY(const auto now, sys::file_states(folder_));
  for (const auto& [name, state] : states_) {
    const sys::FileState* current = look_up(now, name);
    if (current != nullptr && *current == state) continue;
    return fail(Code::unavailable,
                "{}: it was {} in the base's checkout while both sides ran, so nothing can be "
                "compared with the base\n  what an engine writes belongs into a folder that git "
                "ignores",
                text::printable(name), current == nullptr ? "removed" : "written to");
  }
  return {};
}

}  // namespace weir::source
