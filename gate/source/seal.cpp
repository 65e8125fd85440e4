// Compares files with what they were.
#include "gate/source/seal.hpp"

#include "gate/base/text.hpp"

namespace weir::source {

void Seal::add(const sys::Files& files, const std::string& path, const std::string& name,
               const std::string& place) {
  const auto state = files.state(path);
  if (state && paths_.insert(path).second) sealed_.push_back({path, name, place, *state});
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
  return {};
}

}  // namespace weir::source
