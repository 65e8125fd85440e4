// Which path is what, and who may ask for it. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "gate/serve/access.hpp"
#include "gate/serve/http.hpp"

namespace weir::serve {

enum class Route {
  none,
  page,
  badge,
  series,
  changes,
  verdicts,
  projects,
  runs,
  metrics,
  health,
  description
};

[[nodiscard]] Route route_of(const std::string& path);
// The project of "/badge/PROJECT.svg".
[[nodiscard]] std::string badge_project(const std::string& path);

struct ReadingRules {
  bool is_public = false, public_badges = false;
};

// Nothing where the method is one that the route takes: else 404 or 405.
[[nodiscard]] std::optional<Response> wrong_route(Route route, Method method);
// Nothing where `caller` may ask for it: else 401 or 403. `perhaps` may, for now.
[[nodiscard]] std::optional<Response> refused(Route route, const Target& target,
                                              const Caller& caller, const ReadingRules& rules);
// 401 with what would do.
[[nodiscard]] Response unauthorized(Route route, std::string_view message);
[[nodiscard]] bool may_see(const Caller& caller, const std::string& project,
                           const ReadingRules& rules);

}  // namespace weir::serve
