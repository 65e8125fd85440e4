#include "gate/serve/service.hpp"

#include "gate/base/text.hpp"

namespace weir::serve {

namespace {

constexpr std::string_view k_badges = "/badge/", k_svg = ".svg", k_run = "/api/v1/runs/";

bool reads_all(const Caller& caller) {
  return caller.token && allows_all(*caller.token, Scope::read);
}

std::optional<Response> refused_change(Route route, const Target& target, const Caller& caller) {
  const Scope scope = route == Route::run ? Scope::remove : Scope::upload;
  if (!caller.token || caller.basic) {
    return unauthorized(route,
                        fmt::format("this needs a token with the scope {}", to_string(scope)));
  }
  const std::string project = target.one("project").value_or("default");
  if (route == Route::run) {
    if (allows(*caller.token, scope, project)) return std::nullopt;
    return error_answer(403, "this token may not remove runs of that project");
  }
  // Lines say themselves whose they are: each is looked at when they are read.
  const bool some = !target.query.contains("project") &&
                    allows(*caller.token, Scope::upload, caller.token->project);
  if (some || allows(*caller.token, Scope::upload, project)) return std::nullopt;
  return error_answer(403, "this token may not upload to that project",
                      "weir serve token list says what it may");
}

// "localhost", "127.0.0.1:8080", "[::1]"; HTTP/1.0 may leave it out.
bool is_own_name(const std::string* host) {
  if (host == nullptr) return true;
  const std::string name = text::lower(host->substr(0, host->rfind(':')));
  const std::string whole = text::lower(*host);
  const auto own = [](const std::string& one) {
    const bool address =
        one.starts_with("127.") && one.find_first_not_of("0123456789.") == std::string::npos;
    return one == "localhost" || one == "[::1]" || address;
  };
  return own(name) || own(whole);
}

// What may come with a token that is looked for still. Such a request is admitted once in a while,
// so that a stranger's hold little of the room for bodies, however slowly they come.
constexpr std::uint64_t k_most_unknown = std::uint64_t{64} << 10;
constexpr double k_keys_seconds = 3600;  // an issuer's keys change by the month

const sys::RealClock k_machine_clock;

Route route_of(const std::string& path) {
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

// Nothing where the method is one that the route takes: else 404 or 405.
std::optional<Response> wrong_route(Route route, Method method) {
  if (route == Route::none) {
    return error_answer(404, "there is no such path", "/api/v1/openapi.json describes them");
  }
  const bool reads = method == Method::get || method == Method::head;
  const bool fits = route == Route::runs  ? method == Method::post
                    : route == Route::run ? method == Method::remove
                                          : reads;
  if (fits) return std::nullopt;
  Response response = error_answer(405, "this path takes other methods");
  set_header(response, "Allow",
             route == Route::runs  ? "POST"
             : route == Route::run ? "DELETE"
                                   : "GET, HEAD");
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
  // A browser asks for a password, which is the token.
  const bool browser = route == Route::page;
  set_header(response, "WWW-Authenticate",
             browser ? "Basic realm=\"weir\", charset=\"UTF-8\"" : "Bearer realm=\"weir\"");
  return response;
}

std::optional<Response> refused(Route route, const Target& target, const Caller& caller,
                                const ReadingRules& rules) {
  if (route == Route::health || route == Route::description) return std::nullopt;
  if (caller.standing == Standing::unknown) {
    return unauthorized(route, "this token is not known, or no longer good");
  }
  if (caller.standing == Standing::perhaps) return std::nullopt;
  if (is_change(route)) return refused_change(route, target, caller);
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

Service::Service(ServiceOptions given)
    : options_(std::move(given)),
      clock_(options_.clock != nullptr ? *options_.clock : k_machine_clock),
      issuer_(options_.issuer ? std::make_unique<Issuer>(*options_.issuer) : nullptr),
      access_(options_.access, issuer_.get()),
      keeper_(options_.open),
      page_maker_(options_.open),
      places_(options_.readers_waiting),
      upload_places_(options_.intake.waiting) {
  for (std::size_t i = 0; i < options_.readers; ++i) {
    slots_.push_back(std::make_unique<StoreSlot>(options_.open));
  }
}

Result<void> Service::begin(const sys::Files& files) {
  WEIR_TRY(pages_, Pages::load(files, options_.pages));
  WEIR_TRY(const auto tokens,
           keeper_.with([](history::ServiceStore& store) { return store.tokens(); }));
  access_.put(tokens);
  intake_ = std::make_unique<Intake>(options_.open, options_.intake, meters_);
  readers_ = std::make_unique<Workers>(options_.readers, options_.readers_waiting);
  uploaders_ = std::make_unique<Workers>(1, options_.intake.waiting);
  tokens_again_ = std::make_unique<Periodic>(
      options_.tokens_seconds, [this] { renew_tokens(); },
      [this](const std::string& words) { tell_trouble("tokens: " + words); });
  if (issuer_) {
    const auto tell = [this](const std::string& words) { tell_trouble("issuer: " + words); };
    keys_again_ = std::make_unique<Periodic>(
        k_keys_seconds,
        [this, tell] {
          if (const auto done = issuer_->renew(clock_.steady()); !done) tell(done.error().message);
        },
        tell, Periodic::First::at_once);
  }
  pages_again_ = std::make_unique<Periodic>(
      options_.pages_seconds,
      [this] {
        const double begun = clock_.steady();
        if (begun < next_pages_) return;
        const auto done = page_maker_.with(
            [this](history::ServiceStore& store) { return pages_->renew(store, clock_.now()); });
        if (!done) tell_trouble("pages: " + done.error().message);
        // Of a large history they take a while: a fifth of one processor at most.
        next_pages_ = clock_.steady() + 4 * (clock_.steady() - begun);
      },
      [this](const std::string& words) { tell_trouble("pages: " + words); },
      // Of a large history the first take a while, too: uploads are taken meanwhile.
      Periodic::First::at_once);
  return {};
}

void Service::tell_trouble(const std::string& words) const {
  if (options_.trouble) options_.trouble(words);
}

void Service::renew_tokens() {
  const std::lock_guard lock(keeper_mutex_);
  const auto tokens = keeper_.with([](history::ServiceStore& store) { return store.tokens(); });
  healthy_ = tokens.has_value();
  if (tokens) {
    access_.put(*tokens);
  } else {
    tell_trouble("tokens: " + tokens.error().message);
  }
}

void Service::stop() {
  stopping_ = true;
  if (readers_) readers_->stop();
  if (uploaders_) uploaders_->stop();
  if (intake_) intake_->stop();
  // They stay there: requests may still come, and ask for tokens.
  if (tokens_again_) tokens_again_->stop();
  if (pages_again_) pages_again_->stop();
  if (keys_again_) keys_again_->stop();
}

Response Service::finished(const Head& head, Route route, Response response) const {
  const Finish how{.secure = head.secure,
                   .page = route == Route::page && response.status == 200,
                   .is_public = options_.is_public};
  finish(head, how, response);
  return response;
}

void Service::tell(const Head& head, const Caller& caller, const Response& response, double seconds,
                   const std::string& note) {
  meters_.count_answer(response.status);
  meters_.answer.observe(seconds);
  if (!options_.log) return;
  options_.log({std::string(name_of(k_methods, head.method)), head.target.path, head.peer,
                caller.token ? caller.token->id : std::string(), response.status,
                response.body ? response.body->size() : 0, seconds, note});
}

void Service::respond(Job& job, Response response) {
  response = finished(job.request.head, job.route, std::move(response));
  tell(job.request.head, job.caller, response, clock_.steady() - job.begun, job.note);
  // Its body is needed no more, and the server may hold the answer for long.
  job.request.body = {};
  const Handler::Answer answer = std::exchange(job.answer, nullptr);
  answer(std::move(response));
}

Response Service::store_trouble(const Error& error) const {
  tell_trouble(error.message);
  if (error.code == Code::internal) return error_answer(500, "a fault in weir");
  return later_answer(503, "the history cannot be asked at the moment", 5);
}

std::optional<Response> Service::let_in(const Head& head, Route route, Caller& caller, bool again) {
  caller = access_.find(credential_of(head.header("authorization")), clock_.now(), clock_.steady(),
                        again);
  auto response = refused(route, head.target, caller, rules());
  if (!response || caller.standing != Standing::unknown) return response;
  ++meters_.tokens_refused;
  if (const auto wait = access_.count_refusal(head.peer, clock_.steady())) {
    ++meters_.rates_exceeded;
    return later_answer(429, "too many tokens that are none", *wait);
  }
  return response;
}

void Service::run(const JobPtr& job, std::size_t thread) {
  const bool upload = is_change(job->route);
  // Uploads are kept to the last; nobody needs to wait for queries that may take long.
  if (stopping_ && !upload) return respond(*job, later_answer(503, "the service stops", 1));
  // Whoever asked has given up, or soon will: what comes behind it is not late yet.
  if (!upload && clock_.steady() - job->begun > options_.longest_wait_seconds) {
    return respond(*job, later_answer(503, "too busy", 5));
  }
  if (job->caller.standing == Standing::perhaps) {
    // It may have been made a moment ago.
    renew_tokens();
    if (auto response = let_in(job->request.head, job->route, job->caller, false)) {
      return respond(*job, *std::move(response));
    }
  }
  if (job->route == Route::run) return take_removal(job);
  if (upload) return take_upload(job);
  respond(*job, read(*job, thread));
}

// Uploads have a thread of their own: no query keeps them waiting, and no token another's.
bool Service::queue(const JobPtr& job) {
  const bool upload = is_change(job->route);
  const std::string whose =
      upload && job->caller.token ? job->caller.token->id : holder_of_peer(job->request.head.peer);
  job->place = (upload ? upload_places_ : places_).take(whose);
  if (!job->place) return false;
  // What a library throws in spite of all is this request's trouble alone.
  const auto run_safely = [this, job](std::size_t thread) {
    job->place.reset();
    try {
      run(job, thread);
    } catch (const std::exception& error) {
      tell_trouble(fmt::format("a fault in weir: {}", error.what()));
      if (job->answer) respond(*job, error_answer(500, "a fault in weir"));
    }
  };
  return (upload ? uploaders_ : readers_)->post(run_safely, whose);
}

Service::~Service() { stop(); }

Result<std::unique_ptr<Service>> Service::start(const sys::Files& files, ServiceOptions options) {
  std::unique_ptr<Service> service(new Service(std::move(options)));
  WEIR_CHECK(service->begin(files));
  return service;
}

Admission Service::admit(const Head& head) {
  const double begun = clock_.steady();
  const Route route = route_of(head.target.path);
  Caller caller;
  auto refuse = [&](Response response) {
    response = finished(head, route, std::move(response));
    tell(head, caller, response, clock_.steady() - begun);
    return Admission{0, std::move(response)};
  };
  if (options_.own_names_only && !is_own_name(head.header("host"))) {
    return refuse(error_answer(421, "this service answers to localhost alone",
                               "weir serve --public answers to every name"));
  }
  if (auto wrong = wrong_route(route, head.method)) return refuse(*std::move(wrong));
  if (auto response = let_in(head, route, caller, true)) return refuse(*std::move(response));
  if (caller.wants_keys) {
    keys_again_->soon();
    return refuse(
        later_answer(503, "the keys of the token's issuer are fetched: send it again", 2));
  }
  const auto count = [&](std::size_t most) {
    const auto wait = access_.count_upload(caller, clock_.steady());
    if (!wait) return Admission{most, {}};
    ++meters_.rates_exceeded;
    return refuse(later_answer(429, "too many uploads and removals with this token", *wait));
  };
  if (route == Route::run && caller.standing == Standing::known) return count(0);
  if (route != Route::runs) return {0, {}};
  const std::string* type = head.header("content-type");
  if (type == nullptr || !upload_type(*type)) {
    return refuse(error_answer(415, "Content-Type: application/json or application/x-ndjson"));
  }
  if (head.length && *head.length > k_most_upload) {
    return refuse(error_answer(413, fmt::format("more than {} bytes", k_most_upload),
                               "send runs in several uploads"));
  }
  if (caller.standing == Standing::perhaps) {
    tokens_again_->soon();
    if (!head.length || *head.length > k_most_unknown) {
      return refuse(later_answer(503, "this token is looked for: send the upload again", 1));
    }
    return {k_most_unknown, {}};
  }
  return count(k_most_upload);
}

void Service::handle(Request request, Answer answer) {
  auto job = std::make_shared<Job>();
  job->begun = clock_.steady();
  job->request = std::move(request);
  job->answer = std::move(answer);
  const Head& head = job->request.head;
  job->route = route_of(head.target.path);
  if (auto wrong = wrong_route(job->route, head.method)) {
    return respond(*job, *std::move(wrong));
  }
  job->caller = access_.find(credential_of(head.header("authorization")), clock_.now(),
                             clock_.steady(), false);
  // admit() let it in, so that it may be a token that is new.
  if (job->caller.standing == Standing::unknown) job->caller.standing = Standing::perhaps;
  if (auto response = refused(job->route, head.target, job->caller, rules())) {
    return respond(*job, *std::move(response));
  }
  if (job->route == Route::health) return respond(*job, health());
  if (job->route == Route::description) {
    return respond(*job, text_answer(200, "application/json", std::string(openapi_text())));
  }
  if (job->route == Route::page && job->caller.standing != Standing::perhaps) {
    if (auto kept = pages_->find(head.target.path, Pages::Making::no)) {
      return respond(*job, *std::move(kept));
    }
  }
  if (!queue(job)) {
    respond(*job, later_answer(503, stopping_ ? "the service stops" : "too busy", 1));
  }
}

void Service::set_traffic(std::function<const Traffic&()> traffic) {
  const std::lock_guard lock(traffic_mutex_);
  traffic_ = std::move(traffic);
}

void Service::announce_stop() { stopping_ = true; }

}  // namespace weir::serve
