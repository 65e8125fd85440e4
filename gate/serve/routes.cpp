#include "gate/serve/routes.hpp"

#include <array>

#include "gate/serve/answers.hpp"

namespace weir::serve {
namespace {

constexpr std::string_view k_badges = "/badge/", k_svg = ".svg";

bool reads_all(const Caller& caller) {
  return caller.token && allows_all(*caller.token, Scope::read);
}

std::optional<Response> refused_upload(const Target& target, const Caller& caller) {
  if (!caller.token || caller.basic) {
    return unauthorized(Route::runs, "an upload needs a token with the scope upload");
  }
  const std::string project = target.one("project").value_or("default");
  // Lines say themselves whose they are: each is looked at when they are read.
  const bool some = !target.query.contains("project") &&
                    allows(*caller.token, Scope::upload, caller.token->project);
  if (some || allows(*caller.token, Scope::upload, project)) return std::nullopt;
  return error_answer(403, "this token may not upload to that project",
                      "weir serve token list says what it may");
}

}  // namespace

Route route_of(const std::string& path) {
  static const std::array<std::pair<std::string_view, Route>, 9> k_routes{
      {{"/", Route::page},
       {"/index.html", Route::page},
       {"/api/v1/runs", Route::runs},
       {"/api/v1/series", Route::series},
       {"/api/v1/changes", Route::changes},
       {"/api/v1/verdicts", Route::verdicts},
       {"/api/v1/projects", Route::projects},
       {"/metrics", Route::metrics},
       {"/healthz", Route::health}}};
  for (const auto& [name, route] : k_routes) {
    if (path == name) return route;
  }
  if (path == "/api/v1/openapi.json") return Route::description;
  if (path.starts_with("/assets/") || path.starts_with("/data/")) return Route::page;
  if (path.starts_with(k_badges) && path.ends_with(k_svg) &&
      path.size() > k_badges.size() + k_svg.size()) {
    return Route::badge;
  }
  return Route::none;
}

std::string badge_project(const std::string& path) {
  return path.substr(k_badges.size(), path.size() - k_badges.size() - k_svg.size());
}

std::optional<Response> wrong_route(Route route, Method method) {
  if (route == Route::none) {
    return error_answer(404, "there is no such path", "/api/v1/openapi.json describes them");
  }
  const bool reads = method == Method::get || method == Method::head;
  if (route == Route::runs ? method == Method::post : reads) return std::nullopt;
  Response response = error_answer(405, "this path takes other methods");
  set_header(response, "Allow", route == Route::runs ? "POST" : "GET, HEAD");
  return response;
}

Response unauthorized(Route route, std::string_view message) {
  Response response = error_answer(
      401, message, "weir serve token add makes one; send it as Authorization: Bearer");
  // A browser asks for a password, which is the token.
  const bool browser = route == Route::page;
  set_header(response, "WWW-Authenticate",
             browser ? "Basic realm=\"weir\", charset=\"UTF-8\"" : "Bearer realm=\"weir\"");
  return response;
}

bool may_see(const Caller& caller, const std::string& project, const ReadingRules& rules) {
  return rules.is_public || (caller.token && allows(*caller.token, Scope::read, project));
}

std::optional<Response> refused(Route route, const Target& target, const Caller& caller,
                                const ReadingRules& rules) {
  if (route == Route::health || route == Route::description) return std::nullopt;
  if (caller.standing == Standing::unknown) {
    return unauthorized(route, "this token is not known, or no longer good");
  }
  if (caller.standing == Standing::perhaps) return std::nullopt;
  if (route == Route::runs) return refused_upload(target, caller);
  if (rules.is_public || (route == Route::badge && rules.public_badges)) return std::nullopt;
  if (!caller.token) return unauthorized(route, "this needs a token with the scope read");
  const auto project =
      route == Route::badge ? std::optional(badge_project(target.path)) : target.one("project");
  switch (route) {
    case Route::series:
    case Route::changes:
    case Route::verdicts:
    case Route::badge:
      if (project ? allows(*caller.token, Scope::read, *project) : reads_all(caller)) {
        return std::nullopt;
      }
      return error_answer(403, project ? "this token may not read that project"
                                       : "this token may not read all projects: name one");
    case Route::projects:
      if (allows(*caller.token, Scope::read, caller.token->project)) return std::nullopt;
      break;
    default:
      if (reads_all(caller)) return std::nullopt;
      return error_answer(403, "this is of all projects, which this token may not read");
  }
  return error_answer(403, "this token lacks the scope read");
}

}  // namespace weir::serve
