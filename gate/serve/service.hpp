// The service itself: requests in, answers out, without a socket. Start at handle().
//
// admit() and handle() never wait: what asks the store goes to a few threads with a connection
// each, what is added goes through Intake. docs/how-to/serve.md has the interface.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gate/base/result.hpp"
#include "gate/profile/profile.hpp"
#include "gate/serve/access.hpp"
#include "gate/serve/http.hpp"
#include "gate/serve/intake.hpp"
#include "gate/serve/pages.hpp"
#include "gate/serve/queries.hpp"
#include "gate/serve/uploads.hpp"
#include "gate/serve/workers.hpp"
#include "gate/sys/clock.hpp"
#include "gate/verdict/verdict.hpp"

namespace weir::serve {

// Gating what arrives: what the service asks of whoever put it together (gate/app).

// The facts that an upload states about itself. Its project is one that its token may upload to.
struct Arrival {
  std::string project;
  std::optional<std::string> commit;
  std::optional<std::int64_t> pull_request;
  bool is_merge = false;  // the commit is the one that GitHub made of the pull request and its base
};

// Called by several threads at once.
class Judge {
 public:
  virtual ~Judge() = default;
  // Nothing where this project is not gated here. An Error is told to the uploader as a warning:
  // what was measured is kept all the same. Its message says no place of this machine.
  [[nodiscard]] virtual Result<std::optional<verdict::GateVerdict>> judge(
      const Arrival& arrival, std::span<const profile::Profile> profiles) = 0;
};

// Says elsewhere what became of it. Called when the upload is on the disk; returns at once.
class Announcer {
 public:
  virtual ~Announcer() = default;
  virtual void announce(const Arrival& arrival, verdict::GateVerdict verdict) = 0;
};

// One line of the log. Texts of it are as they came.
struct RequestLine {
  std::string method, path, peer;
  std::string token;  // its id; "" without
  int status = 0;
  std::size_t bytes = 0;  // size of the answer's body
  double seconds = 0;
  std::string note{};  // names a removed run
};

struct ServiceOptions {
  OpenStore open;
  bool is_public = false;      // anybody may read
  bool public_badges = false;  // anybody may see badges
  // Only requests to this machine by its own names are answered: a page of somebody else's whose
  // name leads here (DNS rebinding) reads nothing.
  bool own_names_only = false;
  std::string version;
  std::size_t readers = 2;             // threads that ask the store
  std::size_t readers_waiting = 1024;  // queries, of one peer at most half
  double longest_wait_seconds = 15;    // for a query that waits for a reader; then 503
  double tokens_seconds = 2;           // how often tokens are read again
  double pages_seconds = 3;            // how often it is looked whether pages have to be made anew
  AccessLimits access{};
  IntakeLimits intake{};
  history::Quota quota{};
  std::optional<IssuerOptions> issuer{};  // an issuer whose tokens count too
  const sys::Clock* clock = nullptr;      // default: the machine's
  PageOptions pages{};
  Judge* judge = nullptr;  // may be none, as the next
  Announcer* announcer = nullptr;
  // Called by several threads.
  std::function<void(const RequestLine&)> log{};
  // Called with errors that answers do not show: the store's own messages.
  std::function<void(const std::string&)> trouble{};
};

// Which path is what, and who may ask for it. Pure.

// Does it change what is kept? Then a thread of its own carries it out.
[[nodiscard]] constexpr bool is_change(Route route) {
  return route == Route::runs || route == Route::run;
}
// The project of "/badge/PROJECT.svg".
[[nodiscard]] std::string badge_project(const std::string& path);
// The run of "/api/v1/runs/RUN".
[[nodiscard]] std::string removed_run(const std::string& path);

struct ReadingRules {
  bool is_public = false, public_badges = false;
};

// Nothing where `caller` may ask for it: else 401 or 403. `unverified` may, for now.
[[nodiscard]] std::optional<Response> check_access(Route route, const Target& target,
                                                   const Caller& caller, const ReadingRules& rules);
// 401 with what would do.
[[nodiscard]] Response unauthorized(Route route, std::string_view message);

// One request on its way to its answer.
struct Job {
  Request request;
  Handler::Answer answer;
  Route route = Route::none;
  Caller caller{};
  double begun = 0;
  Places::Place place{};  // while it waits
  std::string note{};     // for the log
};
using JobPtr = std::shared_ptr<Job>;

class Service final : public Handler {
 public:
  // Has read its tokens when it returns, and goes on to make the first pages: 503 until they are
  // there. Fails as the store does, or where there is no folder of pages as it was given.
  [[nodiscard]] static Result<std::unique_ptr<Service>> start(const sys::Files& files,
                                                              ServiceOptions options);
  // As stop().
  ~Service() override;
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  [[nodiscard]] Admission admit(const Head& head) override;
  void handle(Request request, Answer answer) override;

  // /metrics tells it from now on.
  void set_traffic(std::function<const Traffic&()> traffic);
  // /healthz says that it stops, and queries are answered 503, also those that wait already;
  // uploads go on. For when the server begins to drain. Returns at once.
  void announce_stop();
  // As announce_stop(). Returns when everything that was taken has been answered: uploads when they
  // are kept. Requests after it are answered 503.
  void stop();

 private:
  // Defined in service.cpp.
  explicit Service(ServiceOptions options);
  [[nodiscard]] Result<void> begin(const sys::Files& files);
  void renew_tokens();
  [[nodiscard]] std::optional<Response> check_caller(const Head& head, Route route, Caller& caller,
                                                     bool again);
  // False where there is no place for it.
  [[nodiscard]] bool queue(const JobPtr& job);
  void run(const JobPtr& job, std::size_t thread);
  void respond(Job& job, Response response);
  void log_trouble(const std::string& words) const;
  void record_answer(const Head& head, const Caller& caller, const Response& response,
                     double seconds, const std::string& note = "");
  [[nodiscard]] Response finish_response(const Head& head, Route route, Response response) const;
  // An Error of the store as an answer; what it says is for the log alone.
  [[nodiscard]] Response store_trouble(const Error& error) const;
  [[nodiscard]] ReadingRules rules() const { return {options_.is_public, options_.public_badges}; }

  // Defined in service_reads.cpp; run on a reader's thread.
  [[nodiscard]] Response read(const Job& job, std::size_t thread);
  [[nodiscard]] Response badge(const Job& job, std::size_t thread);
  [[nodiscard]] Response health() const;
  [[nodiscard]] Response metrics();

  // Defined in uploads.cpp; run on the uploaders' thread, and answer from the writer's.
  void handle_upload(const JobPtr& job);
  void handle_removal(const JobPtr& job);
  // Answers what did not come to be kept; else `answer`, with what became of it.
  // `weight`: bytes in memory while it waits.
  void keep(const JobPtr& job, history::Upload upload, std::size_t weight,
            std::function<void(const history::UploadOutcome&)> answer);

  ServiceOptions options_;
  const sys::Clock& clock_;
  Meters meters_;
  std::unique_ptr<Issuer> issuer_;  // may be none
  Access access_;
  std::unique_ptr<Pages> pages_;
  std::vector<std::unique_ptr<StoreSlot>> slots_;  // by reader
  std::mutex token_store_mutex_;                   // guards token_store_
  StoreSlot token_store_;                          // reads tokens
  StoreSlot page_maker_;
  std::unique_ptr<Intake> intake_;
  Places places_, upload_places_;  // waiting queries by peer, and uploads by token
  std::unique_ptr<Workers> readers_, uploaders_;
  std::unique_ptr<Periodic> token_refresh_, page_refresh_, key_refresh_;
  double next_pages_ = 0;   // steady seconds; of the thread that makes them
  std::mutex large_mutex_;  // one large verdict at a time is parsed for a badge
  std::mutex traffic_mutex_;
  std::function<const Traffic&()> read_traffic_;  // under traffic_mutex_
  std::atomic<bool> stopping_{false};
  std::atomic<bool> healthy_{true};  // the store answered when it was asked last
};

// The description of the interface (openapi.json, OpenAPI 3.1) as it was when weir was built.

[[nodiscard]] std::string_view openapi_text();

}  // namespace weir::serve
