// The inside of service.hpp. Used by this module alone.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gate/serve/access.hpp"
#include "gate/serve/http.hpp"
#include "gate/serve/intake.hpp"
#include "gate/serve/queries.hpp"
#include "gate/serve/service.hpp"
#include "gate/serve/uploads.hpp"
#include "gate/serve/workers.hpp"

namespace weir::serve {

// Which path is what, and who may ask for it. Pure.

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

// One request on its way to its answer.
struct Job {
  Request request;
  Handler::Answer answer;
  Route route = Route::none;
  Caller caller{};
  double begun = 0;
  Places::Place place{};  // of a query that waits
};
using JobPtr = std::shared_ptr<Job>;

struct Service::State {
  explicit State(ServiceOptions given);

  // Of service.cpp.
  [[nodiscard]] Result<void> start(const sys::Files& files);
  void renew_tokens();
  void stop();
  [[nodiscard]] std::optional<Response> let_in(const Head& head, Route route, Caller& caller,
                                               bool again);
  // False where there is no place for it.
  [[nodiscard]] bool queue(const JobPtr& job);
  void run(const JobPtr& job, std::size_t thread);
  void run_safely(const JobPtr& job, std::size_t thread);
  void respond(Job& job, Response response);
  void tell_trouble(const std::string& words) const;
  void tell(const Head& head, const Caller& caller, const Response& response, double seconds);
  [[nodiscard]] Response finished(const Head& head, Route route, Response response) const;
  // An Error of the store as an answer; what it says is for the log alone.
  [[nodiscard]] Response store_trouble(const Error& error) const;
  [[nodiscard]] ReadingRules rules() const { return {options.is_public, options.public_badges}; }

  // Of service_reads.cpp: on a reader's thread.
  [[nodiscard]] Response read(const Job& job, std::size_t thread);
  [[nodiscard]] Response badge(const Job& job, std::size_t thread);
  [[nodiscard]] Response health() const;
  [[nodiscard]] Response metrics();

  // Of service_uploads.cpp: on the uploaders' thread; answers from the writer's.
  void take_upload(const JobPtr& job);

  ServiceOptions options;
  sys::RealClock clock;
  Meters meters;
  Access access;
  std::unique_ptr<Pages> pages;
  std::vector<std::unique_ptr<StoreSlot>> slots;  // by reader
  std::mutex keeper_mutex;                        // of the next
  StoreSlot keeper;                               // reads tokens
  StoreSlot page_maker;
  std::unique_ptr<Intake> intake;
  Places places;  // of queries that wait, by peer
  std::unique_ptr<Workers> readers, uploaders;
  std::unique_ptr<Periodic> tokens_again, pages_again;
  double next_pages = 0;   // steady seconds; of the thread that makes them
  std::mutex large_mutex;  // one large body at a time is taken apart
  std::mutex traffic_mutex;
  std::function<Traffic()> traffic;  // under traffic_mutex
  std::atomic<bool> stopping{false};
  std::atomic<bool> healthy{true};  // the store answered when it was asked last
};

}  // namespace weir::serve
