#include "gate/app/reference.hpp"

#include <algorithm>

#include "gate/profile/assemble.hpp"

namespace weir::app {

Result<void> choose_reference(Loaded& loaded, bool times, bool against) {
  const std::optional<std::string>& reference = loaded.settings->gate.reference;
  if (!reference) return {};
  const auto is_it = [&](const config::Cell& cell) { return cell.key.str() == *reference; };
  const auto here = std::find_if(loaded.cells.begin(), loaded.cells.end(), is_it);
  if (against) {
    if (here != loaded.cells.end() && loaded.cells.size() > 1) loaded.cells.erase(here);
    return {};
  }
  if (!times || here != loaded.cells.end()) return {};
  WEIR_TRY(const config::Matrix matrix, config::expand(*loaded.settings));
  std::copy_if(matrix.cells.begin(), matrix.cells.end(), std::back_inserter(loaded.cells), is_it);
  return {};
}

void take_reference(const config::Settings& settings, std::vector<profile::Profile>& profiles) {
  if (settings.gate.reference) profile::take_reference(profiles, *settings.gate.reference);
}

}  // namespace weir::app
