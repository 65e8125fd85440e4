// The service: routes requests, checks who may do what, and hands work to its threads.
#include "gate/serve/service.hpp"

#include "gate/base/text.hpp"

namespace weir::serve {

namespace {

constexpr std::string_view k_badges = "/badge/", k_svg = ".svg", k_run = "/api/v1/runs/";

bool may_read_all(const Caller& caller) {
  return caller.token && allows_all(*caller.token, Scope::read);
}

// Returns the refusal (401 or 403) of an upload or removal; nullopt if the caller's token has the
// scope for the project.
std::optional<Response> check_change(Route route, const Target& target, const Caller& caller) {
  const Scope scope = route == Route::run ? Scope::remove : Scope::upload;
  if (!caller.token || caller.basic) {
    return unauthorized(route,
                        fmt::format("this needs a token with the scope {}", to_string(scope)));
  }
  const std::string project = target.value("project").value_or("default");
  if (route == Route::run) {
    if (allows(*caller.token, scope, project)) return std::nullopt;
    return error_answer(403, "this token may not remove runs of that project");
  }
  // JSON lines name their projects themselves; each is checked when it is read.
  const bool may_upload_own_project = !target.query.contains("project") &&
                                      allows(*caller.token, Scope::upload, caller.token->project);
  if (may_upload_own_project || allows(*caller.token, Scope::upload, project)) return std::nullopt;
  return error_answer(403, "this token may not upload to that project",
                      "weir serve token list says what it may");
}

// Returns true for names of this machine: "localhost", "127.0.0.1:8080", "[::1]". A missing Host is
// accepted, because HTTP/1.0 may omit it.
bool is_own_name(const std::string* host) {
  if (host == nullptr) return true;
  const std::string name = text::lower(host->substr(0, host->rfind(':')));
  const std::string full_name = text::lower(*host);
  const auto is_local = [](const std::string& host_name) {
    const bool address = host_name.starts_with("127.") &&
                         host_name.find_first_not_of("0123456789.") == std::string::npos;
    return host_name == "localhost" || host_name == "[::1]" || address;
  };
  return is_local(name) || is_local(full_name);
}

// Bytes of a body that may come with a token not yet verified. Few such requests are admitted, so
// strangers can occupy little of the room for bodies.
constexpr std::uint64_t k_max_unverified_body_bytes = std::uint64_t{64} << 10;
constexpr double k_keys_seconds = 3600;  // an issuer's keys change by the month

const sys::RealClock k_machine_clock;

// Returns the route of a decoded path; `none` if there is none.
Route find_route(const std::string& path) {
  constexpr Name<Route> k_routes[] = {{Route::page, "/"},
                                      {Route::page, "/index.html"},
                                      {Route::runs, "/api/v1/runs"},
                                      {Route::series, "/api/v1/series"},
                                      {Route::changes, "/api/v1/changes"},
                                      {Route::verdicts, "/api/v1/verdicts"},
                                      {Route::projects, "/api/v1/projects"},
                                      {Route::description, "/api/v1/openapi.json"},
                                      {Route::metrics, "/metrics"},
                                      {Route::health, "/healthz"}};
  if (const auto route = value_of<Route>(k_routes, path)) return *route;
  if (path.starts_with(k_run) && path.size() > k_run.size()) return Route::run;
  if (path.starts_with("/assets/") || path.starts_with("/data/")) return Route::page;
  if (path.starts_with(k_badges) && path.ends_with(k_svg) &&
      path.size() > k_badges.size() + k_svg.size()) {
    return Route::badge;
  }
  return Route::none;
}

// Returns 404 if there is no such route, 405 if it does not take the method, and nullopt if it
// does.
std::optional<Response> check_route(Route route, Method method) {
  if (route == Route::none) {
    return error_answer(404, "there is no such path", "/api/v1/openapi.json describes them");
  }
  bool is_allowed = method == Method::get || method == Method::head;
  if (route == Route::runs) is_allowed = method == Method::post;
  if (route == Route::run) is_allowed = method == Method::remove;
  if (is_allowed) return std::nullopt;
  Response response = error_answer(405, "this path takes other methods");
  std::string_view allowed = "GET, HEAD";
  if (route == Route::runs) allowed = "POST";
  if (route == Route::run) allowed = "DELETE";
  set_header(response, "Allow", std::string(allowed));
  return response;
}

}  // namespace

std::string badge_project(const std::string& path) {
  return path.substr(k_badges.size(), path.size() - k_badges.size() - k_svg.size());
}

std::string removed_run(const std::string& path) { return path.substr(k_run.size()); }

Response unauthorized(Route route, std::string_view message) {
  Response response = error_answer(
      401, message, "weir serve token add makes one; send it as Authorization: Bearer");
  // A browser asks the user for a password; the token is that password.
  const bool browser = route == Route::page;
  set_header(response, "WWW-Authenticate",
             browser ? "Basic realm=\"weir\", charset=\"UTF-8\"" : "Bearer realm=\"weir\"");
  return response;
}

// Returns the refusal (401 or 403); nullopt if the caller may use the route. An `unverified` caller
// passes for now: its token is checked again when the store was read.
std::optional<Response> check_access(Route route, const Target& target, const Caller& caller,
                                     const ReadingRules& rules) {
  if (route == Route::health || route == Route::description) return std::nullopt;
  if (caller.standing == Standing::unknown) {
    return unauthorized(route, "this token is not known, or no longer good");
  }
  if (caller.standing == Standing::unverified) return std::nullopt;
  if (is_change(route)) return check_change(route, target, caller);
  if (rules.is_public || (route == Route::badge && rules.public_badges)) return std::nullopt;
  if (!caller.token) return unauthorized(route, "this needs a token with the scope read");
  const auto project =
      route == Route::badge ? std::optional(badge_project(target.path)) : target.value("project");
  switch (route) {
    case Route::series:
    case Route::changes:
    case Route::verdicts:
    case Route::badge:
      if (project ? allows(*caller.token, Scope::read, *project) : may_read_all(caller)) {
        return std::nullopt;
      }
      return error_answer(403, project ? "this token may not read that project"
                                       : "this token may not read all projects: name one");
    case Route::projects:
      if (allows(*caller.token, Scope::read, caller.token->project)) return std::nullopt;
      break;
    default:
      if (may_read_all(caller)) return std::nullopt;
      return error_answer(403, "this is of all projects, which this token may not read");
  }
  return error_answer(403, "this token lacks the scope read");
}

Service::Service(ServiceOptions options)
    : options_(std::move(options)),
      clock_(options_.clock != nullptr ? *options_.clock : k_machine_clock),
      issuer_(options_.issuer ? std::make_unique<Issuer>(*options_.issuer) : nullptr),
      access_(options_.access, issuer_.get()),
      token_store_(options_.open),
      page_maker_(options_.open),
      places_(options_.readers_waiting),
      upload_places_(options_.intake.waiting) {
  for (std::size_t i = 0; i < options_.readers; ++i) {
    slots_.push_back(std::make_unique<StoreSlot>(options_.open));
  }
}

// Loads the pages and tokens, and starts all threads: readers, the uploader, and those that refresh
// tokens, keys and pages.
Result<void> Service::begin(const sys::Files& files) {
  WEIR_TRY(pages_, Pages::load(files, options_.pages));
  WEIR_TRY(const auto tokens,
           token_store_.with([](history::ServiceStore& store) { return store.tokens(); }));
  access_.put(tokens);
  intake_ = std::make_unique<Intake>(options_.open, options_.intake, meters_);
  readers_ = std::make_unique<Workers>(options_.readers, options_.readers_waiting);
  uploaders_ = std::make_unique<Workers>(1, options_.intake.waiting);
  token_refresh_ = std::make_unique<Periodic>(
      options_.tokens_seconds, [this] { renew_tokens(); },
      [this](const std::string& words) { log_trouble("tokens: " + words); });
  if (issuer_) {
    const auto report = [this](const std::string& words) { log_trouble("issuer: " + words); };
    key_refresh_ = std::make_unique<Periodic>(
        k_keys_seconds,
        [this, report] {
          if (const auto renewed = issuer_->renew(clock_.steady()); !renewed)
            report(renewed.error().message);
        },
        report, Periodic::First::at_once);
  }
  page_refresh_ = std::make_unique<Periodic>(
      options_.pages_seconds,
      [this] {
        const double began_at = clock_.steady();
        if (began_at < next_pages_) return;
        const auto remade = page_maker_.with(
            [this](history::ServiceStore& store) { return pages_->renew(store, clock_.now()); });
        if (!remade) log_trouble("pages: " + remade.error().message);
        // A large history takes a while: use at most a fifth of one processor.
        next_pages_ = clock_.steady() + 4 * (clock_.steady() - began_at);
      },
      [this](const std::string& words) { log_trouble("pages: " + words); },
      // The first pages of a large history take a while, so they are made on this thread too.
      Periodic::First::at_once);
  return {};
}

void Service::log_trouble(const std::string& words) const {
  if (options_.trouble) options_.trouble(words);
}

void Service::renew_tokens() {
  const std::lock_guard lock(token_store_mutex_);
  const auto tokens =
      token_store_.with([](history::ServiceStore& store) { return store.tokens(); });
  healthy_ = tokens.has_value();
  if (tokens) {
    access_.put(*tokens);
  } else {
    log_trouble("tokens: " + tokens.error().message);
  }
}

void Service::stop() {
  stopping_ = true;
  if (readers_) readers_->stop();
  if (uploaders_) uploaders_->stop();
  if (intake_) intake_->stop();
  // Only stopped, not destroyed: requests may still arrive and use them.
  if (token_refresh_) token_refresh_->stop();
  if (page_refresh_) page_refresh_->stop();
  if (key_refresh_) key_refresh_->stop();
}

Response Service::finish_response(const Head& head, Route route, Response response) const {
  const ResponseOptions options{.secure = head.secure,
                                .page = route == Route::page && response.status == 200,
                                .is_public = options_.is_public};
  add_standard_headers(head, options, response);
  return response;
}

// Counts an answer and writes it to the log.
void Service::record_answer(const Head& head, const Caller& caller, const Response& response,
                            double seconds, const std::string& note) {
  meters_.count_answer(response.status);
  meters_.answer_times.observe(seconds);
  if (!options_.log) return;
  options_.log({std::string(name_of(k_methods, head.method)), head.target.path, head.peer,
                caller.token ? caller.token->id : std::string(), response.status,
                response.body ? response.body->size() : 0, seconds, note});
}

void Service::respond(Job& job, Response response) {
  response = finish_response(job.request.head, job.route, std::move(response));
  record_answer(job.request.head, job.caller, response, clock_.steady() - job.begun, job.note);
  // Free the request's body: the server may hold the answer for a long time.
  job.request.body = {};
  const Handler::Answer answer = std::move(job.answer);
  job.answer = nullptr;
  answer(std::move(response));
}

Response Service::store_trouble(const Error& error) const {
  log_trouble(error.message);
  if (error.code == Code::internal) return error_answer(500, "a fault in weir");
  return later_answer(503, "the history cannot be asked at the moment", 5);
}

// Identifies the caller and stores it in `caller`. Returns the refusal if it may not use the route;
// 429 for peers that send many invalid tokens. With `again` the store was just read.
std::optional<Response> Service::check_caller(const Head& head, Route route, Caller& caller,
                                              bool again) {
  caller = access_.find(parse_credential(head.header("authorization")), clock_.now(),
                        clock_.steady(), again);
  auto response = check_access(route, head.target, caller, rules());
  if (!response || caller.standing != Standing::unknown) return response;
  ++meters_.tokens_refused;
  if (const auto wait = access_.count_refusal(head.peer, clock_.steady())) {
    ++meters_.rates_exceeded;
    return later_answer(429, "too many tokens that are none", *wait);
  }
  return response;
}

// Carries out a job on one of the service's threads and answers it. `thread` is the number of the
// reader thread.
void Service::run(const JobPtr& job, std::size_t thread) {
  const bool is_upload = is_change(job->route);
  // While the service stops, uploads are still stored, but queries are refused.
  if (stopping_ && !is_upload) return respond(*job, later_answer(503, "the service stops", 1));
  // A client that waited this long has given up. Skipping it keeps later requests in time.
  if (!is_upload && clock_.steady() - job->begun > options_.longest_wait_seconds) {
    return respond(*job, later_answer(503, "too busy", 5));
  }
  if (job->caller.standing == Standing::unverified) {
    // The token may have been added since the last refresh.
    renew_tokens();
    if (auto response = check_caller(job->request.head, job->route, job->caller, /*again=*/false)) {
      return respond(*job, *std::move(response));
    }
  }
  if (job->route == Route::run) return handle_removal(job);
  if (is_upload) return handle_upload(job);
  respond(*job, read(*job, thread));
}

// Queues a job; returns false if there is no room. Uploads have a thread of their own, so no query
// delays them, and each token has its own share of the queue.
bool Service::queue(const JobPtr& job) {
  const bool is_upload = is_change(job->route);
  const std::string owner = is_upload && job->caller.token
                                ? job->caller.token->id
                                : peer_client_key(job->request.head.peer);
  job->place = is_upload ? upload_places_.take(owner) : places_.take(owner);
  if (!job->place) return false;
  // An exception thrown by a library affects this request only.
  const auto run_safely = [this, job](std::size_t thread) {
    job->place.reset();
    try {
      run(job, thread);
    } catch (const std::exception& error) {
      log_trouble(fmt::format("a fault in weir: {}", error.what()));
      if (job->answer) respond(*job, error_answer(500, "a fault in weir"));
    }
  };
  return is_upload ? uploaders_->post(run_safely, owner) : readers_->post(run_safely, owner);
}

Service::~Service() { stop(); }

Result<std::unique_ptr<Service>> Service::start(const sys::Files& files, ServiceOptions options) {
  std::unique_ptr<Service> service(new Service(std::move(options)));
  WEIR_CHECK(service->begin(files));
  return service;
}

// Decides from a request's head whether to read its body, and how many bytes at most.
Admission Service::admit(const Head& head) {
  const double began_at = clock_.steady();
  const Route route = find_route(head.target.path);
  Caller caller;
  auto refuse = [&](Response response) {
    response = finish_response(head, route, std::move(response));
    record_answer(head, caller, response, clock_.steady() - began_at);
    return Admission{0, std::move(response)};
  };
  if (options_.own_names_only && !is_own_name(head.header("host"))) {
    return refuse(error_answer(421, "this service answers to localhost alone",
                               "weir serve --public answers to every name"));
  }
  if (auto response = check_route(route, head.method)) return refuse(*std::move(response));
  if (auto response = check_caller(head, route, caller, /*again=*/true))
    return refuse(*std::move(response));
  if (caller.wants_keys) {
    key_refresh_->soon();
    return refuse(
        later_answer(503, "the keys of the token's issuer are fetched: send it again", 2));
  }
  const auto count_upload = [&](std::size_t max_bytes) {
    const auto wait = access_.count_upload(caller, clock_.steady());
    if (!wait) return Admission{max_bytes, {}};
    ++meters_.rates_exceeded;
    return refuse(later_answer(429, "too many uploads and removals with this token", *wait));
  };
  if (route == Route::run && caller.standing == Standing::identified) return count_upload(0);
  if (route != Route::runs) return {0, {}};
  const std::string* type = head.header("content-type");
  if (type == nullptr || !upload_type(*type)) {
    return refuse(error_answer(415, "Content-Type: application/json or application/x-ndjson"));
  }
  if (head.length && *head.length > k_max_upload_bytes) {
    return refuse(error_answer(413, fmt::format("more than {} bytes", k_max_upload_bytes),
                               "send runs in several uploads"));
  }
  if (caller.standing == Standing::unverified) {
    token_refresh_->soon();
    if (!head.length || *head.length > k_max_unverified_body_bytes) {
      return refuse(later_answer(503, "this token is looked for: send the upload again", 1));
    }
    return {k_max_unverified_body_bytes, {}};
  }
  return count_upload(k_max_upload_bytes);
}

// Answers a complete request: at once if the store is not needed, else from a thread. Answers 503
// if the queue is full.
void Service::handle(Request request, Answer answer) {
  auto job = std::make_shared<Job>();
  job->begun = clock_.steady();
  job->request = std::move(request);
  job->answer = std::move(answer);
  const Head& head = job->request.head;
  job->route = find_route(head.target.path);
  if (auto response = check_route(job->route, head.method)) {
    return respond(*job, *std::move(response));
  }
  job->caller = access_.find(parse_credential(head.header("authorization")), clock_.now(),
                             clock_.steady(), /*again=*/false);
  // admit() has accepted it, so an unknown token may be a new one.
  if (job->caller.standing == Standing::unknown) job->caller.standing = Standing::unverified;
  if (auto response = check_access(job->route, head.target, job->caller, rules())) {
    return respond(*job, *std::move(response));
  }
  if (job->route == Route::health) return respond(*job, health());
  if (job->route == Route::description) {
    return respond(*job, text_answer(200, "application/json", std::string(openapi_text())));
  }
  if (job->route == Route::page && job->caller.standing != Standing::unverified) {
    if (auto page = pages_->find(head.target.path, Pages::Making::no)) {
      return respond(*job, *std::move(page));
    }
  }
  if (!queue(job)) {
    respond(*job, later_answer(503, stopping_ ? "the service stops" : "too busy", 1));
  }
}

void Service::set_traffic(std::function<const Traffic&()> traffic) {
  const std::lock_guard lock(traffic_mutex_);
  read_traffic_ = std::move(traffic);
}

void Service::announce_stop() { stopping_ = true; }

}  // namespace weir::serve
