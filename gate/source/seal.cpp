// Compares the files of a checkout with what they were.
#include "gate/source/seal.hpp"

#include <set>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"

namespace weir::source {

Seal::Seal(std::string folder, sys::FileStates states, const std::vector<std::string>& tracked)
    : folder_(std::move(folder)), states_(std::move(states)) {
  const std::set<std::string> names(tracked.begin(), tracked.end());
  std::erase_if(states_, [&](const auto& file) {
    return !file.second.executable && !names.contains(file.first);
  });
}

Result<void> Seal::check(const sys::Files& files) const {
  WEIR_TRY(const sys::FileStates now, files.states(folder_));
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
