// Runs weir serve: its log, its options, who may upload, and its tokens.
#include "gate/flow/serve.hpp"

#ifdef WEIR_SERVE
#include <cstdlib>

#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "gate/base/text.hpp"
#include "gate/flow/arrivals.hpp"
#include "gate/flow/repository.hpp"
#include "gate/history/history.hpp"
#include "gate/publish/target.hpp"
#include "gate/publish/url.hpp"
#include "gate/report/layout.hpp"
#include "gate/serve/access.hpp"
#include "gate/serve/server.hpp"
#include "gate/serve/service.hpp"
#include "gate/site/site.hpp"
#include "gate/sys/clock.hpp"
#include "gate/sys/paths.hpp"
#include "gate/sys/process.hpp"
#include "gate/unit/metric.hpp"

namespace weir::flow {
namespace {

constexpr std::size_t k_longest_path = 500;

// Returns `text` on one line, shortened, without control characters.
std::string single_line(const std::string& text) {
  return text::neutralize_ci_commands(report::printable_line(text, k_longest_path));
}

}  // namespace

// Returns one line for the log of requests, as JSON or as text. `now` is in Unix seconds.
std::string log_line(const serve::RequestLine& line, double now, LogForm form) {
  const double milliseconds = line.seconds * 1e3;
  if (form == LogForm::json) {
    Json json{
        {"time", sys::time_of(now)},     {"method", line.method}, {"path", single_line(line.path)},
        {"status", line.status},         {"bytes", line.bytes},   {"milliseconds", milliseconds},
        {"peer", single_line(line.peer)}};
    if (!line.token.empty()) json["token"] = single_line(line.token);
    if (!line.note.empty()) json["note"] = single_line(line.note);
    return dump_json(json);
  }
  return fmt::format("{} {} {} {} {} bytes {:.1f} ms {}{}{}{}{}", sys::time_of(now), line.status,
                     line.method, single_line(line.path), line.bytes, milliseconds,
                     single_line(line.peer), line.token.empty() ? "" : " ", single_line(line.token),
                     line.note.empty() ? "" : " ", single_line(line.note));
}

std::string log_line(const std::string& trouble, double now, LogForm form) {
  if (form == LogForm::json) {
    return dump_json(Json{{"time", sys::time_of(now)}, {"trouble", single_line(trouble)}});
  }
  return fmt::format("{} trouble {}", sys::time_of(now), single_line(trouble));
}

// Makes the log of requests on standard error. The server's own messages go there too, with a time.
std::shared_ptr<spdlog::logger> make_log() {
  auto log =
      std::make_shared<spdlog::logger>("weir", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  log->set_pattern("%v");
  log->flush_on(spdlog::level::info);
  auto server =
      std::make_shared<spdlog::logger>("server", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  server->set_formatter(std::make_unique<spdlog::pattern_formatter>(
      "%Y-%m-%dT%H:%M:%SZ %l %v", spdlog::pattern_time_type::utc));
  server->flush_on(spdlog::level::info);
  spdlog::set_default_logger(std::move(server));
  return log;
}

// Parses HOST:PORT, where an IPv6 address is in brackets.
Result<ListenPlace> parse_listen(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  const auto usage_error = [&] {
    return fail(Code::usage, "--listen {}: should be like 127.0.0.1:8080 or [::1]:8080",
                text::printable(text));
  };
  if (colon == std::string::npos) return usage_error();
  const auto port = text::to_int(text.substr(colon + 1));
  if (!port || *port < 0 || *port > 65'535) return usage_error();
  ListenPlace place{text.substr(0, colon), static_cast<std::uint16_t>(*port), false};
  if (place.address.starts_with('[') && place.address.ends_with(']')) {
    place.address = place.address.substr(1, place.address.size() - 2);
  } else if (place.address.find(':') != std::string::npos) {
    return usage_error();  // an IPv6 address without brackets has no clear port
  }
  if (place.address == "localhost") place.address = "127.0.0.1";
  if (place.address.empty()) return usage_error();
  place.loopback = place.address.starts_with("127.") || place.address == "::1";
  return place;
}

// Parses "PROJECT=VALUE" texts; each project may occur once.
Result<std::vector<std::pair<std::string, std::string>>> parse_pairs(
    const char* option, const std::vector<std::string>& texts) {
  std::vector<std::pair<std::string, std::string>> pairs;
  std::set<std::string> projects;
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    if (equals == 0 || equals == std::string::npos || equals + 1 == text.size()) {
      return fail(Code::usage, "{} {}: should be PROJECT=VALUE", option, text::printable(text));
    }
    pairs.emplace_back(text.substr(0, equals), text.substr(equals + 1));
    if (!projects.insert(pairs.back().first).second) {
      return fail(Code::usage, "{}: {} stands twice", option, text::printable(pairs.back().first));
    }
  }
  return pairs;
}

// Checks --oidc, --oidc-issuer and --oidc-audience, and makes the rules for uploads by CI jobs.
// Nullopt without --oidc.
Result<std::optional<serve::IssuerOptions>> issuer_options(const ServeOptions& options,
                                                           std::shared_ptr<sys::Http> http) {
  if (options.jobs.empty()) return std::nullopt;
  serve::IssuerOptions settings;
  settings.issuer = options.issuer;
  settings.audience = options.audience;
  const auto url = publish::parse_url(settings.issuer);
  if (!url || !settings.issuer.starts_with("https://")) {
    return fail(Code::usage, "--oidc-issuer {}: should be an https address",
                text::printable(settings.issuer));
  }
  if (settings.audience.empty()) {
    return fail(Code::usage, "--oidc needs --oidc-audience: the address of this service");
  }
  for (const std::string& text : options.jobs) {
    WEIR_TRY(const auto pairs, parse_pairs("--oidc", {text}));
    const auto& [project, place] = pairs.front();
    const std::size_t at = std::min(place.find('@'), place.size());
    serve::IssuerRule rule{project, place.substr(0, at),
                           place.substr(std::min(at + 1, place.size()))};
    if ((!publish::is_repository(rule.repository) && !text::to_int(rule.repository)) ||
        !rule.ref.starts_with("refs/") || history::stored_name(text) != text) {
      return fail(Code::usage,
                  "--oidc {}: should be like engine=me/engine@refs/heads/main, or a repository's "
                  "number in place of its name",
                  text::printable(text));
    }
    settings.rules.push_back(std::move(rule));
  }
  settings.fetch = [http = std::move(http), issuer = settings.issuer]() -> Result<std::string> {
    const auto answer = http->send(
        {.url = issuer + "/.well-known/jwks"},
        {.connect_seconds = 5, .total_seconds = 10, .body_bytes = 256 << 10}, sys::Stop());
    if (!answer) return fail(Code::unavailable, "{}", answer.error().message);
    if (answer->status == 200) return answer->body;
    return fail(Code::unavailable, "{} answered {}", issuer, answer->status);
  };
  return settings;
}

namespace {

constexpr double k_order_seconds = 60;  // git is asked at most once in this time

// The order of a checkout's commits, read again from git at most once in k_order_seconds.
class CachedCommitOrder {
 public:
  CachedCommitOrder(sys::World& world, std::string folder)
      : world_(world), folder_(std::move(folder)) {}

  // Returns the order, which may be up to k_order_seconds old. Thread-safe.
  history::CommitOrder get() {
    const std::lock_guard lock(mutex_);
    const double now = world_.clock.steady();
    if (!renewed_at_ || now - *renewed_at_ > k_order_seconds) {
      (void)renew();  // as it was a while ago is better than none
      renewed_at_ = now;
    }
    return order_;
  }
  Result<void> renew() {
    WEIR_TRY(const auto repository, Repository::containing(world_, sys::absolute(folder_)));
    WEIR_TRY(auto commits, repository->git().all_commits());
    order_ = history::CommitOrder(std::move(commits));
    return {};
  }

 private:
  sys::World& world_;
  std::string folder_;
  std::mutex mutex_;
  history::CommitOrder order_;
  std::optional<double> renewed_at_;
};

class Log {
 public:
  Log(LogForm form, const sys::Clock& clock) : form_(form), log_(make_log()), clock_(clock) {}
  template <class What>
  void say(const What& event) {
    if (form_ != LogForm::none) log_->info("{}", log_line(event, clock_.now(), form_));
  }

 private:
  LogForm form_;
  std::shared_ptr<spdlog::logger> log_;
  const sys::Clock& clock_;
};

// Judges uploaded runs and posts their verdicts; null if --gate or --post is not given.
struct Arrivals {
  std::unique_ptr<FolderJudge> judge;
  std::unique_ptr<Poster> poster;
};

// Checks --gate and --post, and makes the judge and the poster that they ask for.
Result<Arrivals> make_arrivals(const Job& job, const ServeOptions& options, Log& log) {
  Arrivals arrivals;
  WEIR_TRY(const auto gates, parse_pairs("--gate", options.gates));
  WEIR_TRY(const auto posts, parse_pairs("--post", options.posts));
  if (!gates.empty()) WEIR_TRY_SET(arrivals.judge, FolderJudge::make(job.world, gates));
  if (posts.empty()) return arrivals;
  std::map<std::string, std::string> repositories;
  for (const auto& [project, repository] : posts) {
    if (!publish::is_repository(repository)) {
      return fail(Code::usage, "--post {}={}: no OWNER/NAME", text::printable(project),
                  text::printable(repository));
    }
    if (std::ranges::none_of(gates, [&](const auto& gate) { return gate.first == project; })) {
      return fail(Code::usage, "--post {0}={1}: --gate {0}=FOLDER says by what it is judged",
                  text::printable(project), text::printable(repository));
    }
    repositories.emplace(project, repository);
  }
  publish::GithubSettings settings;
  WEIR_TRY(settings.base_url, github_api_url(job, options.access.api_url));
  WEIR_TRY(settings.token,
           github_token(job, options.access.token_file, "without --post nothing is posted"));
  auto masker = std::make_shared<Masker>();
  masker->add(settings.token);
  arrivals.poster = std::make_unique<Poster>(
      job.world, std::move(repositories),
      [&world = job.world, settings](const sys::Stop& stop)
          -> Result<std::unique_ptr<publish::Api>> { return github_api(world, settings, stop); },
      [&log, masker](const std::string& line) { log.say("post: " + masker->mask(line)); });
  return arrivals;
}

// Returns the options of the pages: title, links, files, and the order of commits. Warns and serves
// the API alone if the pages are not installed.
Result<serve::PageOptions> page_options(const Job& job, const ServeOptions& options) {
  serve::PageOptions pages;
  pages.title = options.title;
  if (!options.repo_url.empty())
    WEIR_TRY_SET(pages.repo_url,
                 site::repo_url(options.repo_url).map_error(with_prefix("--repo-url")));
  const auto folder = site::find_pages(job.files(), sys::own_program_path());
  if (folder) {
    pages.folder = *folder;
  } else {
    print_error(job.world,
                {folder.error().code, folder.error().message + "; serving the API alone"});
  }
  if (!options.repository.empty()) {
    auto order = std::make_shared<CachedCommitOrder>(job.world, options.repository);
    if (auto renewed = order->renew(); !renewed) {
      return fail(Code::config, "--repository {}: {}", text::printable(options.repository),
                  renewed.error().message);
    }
    pages.order = [order] { return order->get(); };
  }
  return pages;
}

Result<history::Quota> parse_quota(const ServeOptions& options) {
  history::Quota quota;
  WEIR_TRY(quota.bytes, unit::parse_bytes(options.quota).map_error(with_prefix("--project-quota")));
  WEIR_TRY(quota.day_bytes,
           unit::parse_bytes(options.daily_quota).map_error(with_prefix("--daily-quota")));
  quota.day_runs = options.daily_runs;
  return quota;
}

// Returns the options of the socket. Fails if a place beyond this machine has neither TLS nor
// --plain-http.
Result<serve::ServerOptions> make_server_options(const ServeOptions& options,
                                                 const ListenPlace& place) {
  serve::ServerOptions server;
  server.address = place.address;
  server.port = place.port;
  server.threads = options.threads;
  server.trusted_proxies = options.trusted_proxies;
  const bool has_certificate = !options.certificate.empty(), has_key = !options.key.empty();
  if (has_certificate != has_key) {
    return fail(Code::usage, "--tls-cert and --tls-key belong together");
  }
  if (has_certificate) server.tls = serve::Tls{options.certificate, options.key};
  if (!server.tls && !place.loopback && !options.plain_http) {
    return fail(Code::usage,
                "--listen {}: others on the network can read tokens sent without TLS\n"
                "  pass --tls-cert and --tls-key, listen on 127.0.0.1 behind a proxy, or pass "
                "--plain-http",
                text::printable(options.listen));
  }
  return server;
}

// Tells systemd the state, such as "READY=1": a datagram to the socket that NOTIFY_SOCKET names
// (sd_notify(3)). Does nothing without that variable, and ignores errors.
void notify_systemd(const Job& job, const std::string& state) {
  const std::string path = job.variable("NOTIFY_SOCKET");
  sockaddr_un address{};
  // '@' stands for the zero byte of an abstract name.
  if (path.size() < 2 || (path[0] != '/' && path[0] != '@') ||
      path.size() >= sizeof(address.sun_path)) {
    return;
  }
  address.sun_family = AF_UNIX;
  std::ranges::copy(path, address.sun_path);
  if (path[0] == '@') address.sun_path[0] = '\0';
  const int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
  if (fd < 0) return;
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size());
  (void)sendto(fd, state.data(), state.size(), 0, reinterpret_cast<const sockaddr*>(&address),
               size);
  close(fd);
}

// Asks the service at `url` if it is well. Fails with Code::unavailable if not.
Result<Answer> check_service(const Job& job, const std::string& url) {
  const std::string base = without_slash(url);
  if (!publish::parse_url(base)) {
    return fail(Code::usage, "--check {}: no http or https address", text::printable(url));
  }
  const auto response = job.world.http.send(
      {.url = base + "/healthz"}, {.connect_seconds = 5, .total_seconds = 10}, sys::Stop());
  if (!response) return fail(Code::unavailable, "{}: {}", base, response.error().message);
  if (response->status == 200) return Answer{};
  return fail(Code::unavailable, "{}: {} {}", base, response->status,
              text::printable(text::first_line(response->body.substr(0, 200))));
}

}  // namespace

Result<Answer> serve_history(const Job& job, const ServeOptions& options) {
  if (!options.check.empty()) return check_service(job, options.check);
  WEIR_TRY(const ListenPlace place, parse_listen(options.listen));
  WEIR_TRY(serve::ServerOptions server_options, make_server_options(options, place));
  // A database that does not answer is given up after a while: libpq by itself waits for minutes.
  (void)::setenv("PGCONNECT_TIMEOUT", "10", 0);
#ifdef __GLIBC__
  mallopt(M_ARENA_MAX, 2);  // each keeps some memory that nobody uses
#endif
  const bool is_public = options.is_public ||
                         (!options.is_private && place.loopback && options.trusted_proxies.empty());
  // Opened once before anything else, so that errors of the store appear on the command line.
  WEIR_TRY(auto history_store, open_service_history(job, options.store, /*create=*/true));
  const std::string store_name = history_store->history().name();
  history_store.reset();
  LogForm log_form = LogForm::text;
  if (options.log == "json") log_form = LogForm::json;
  if (options.log == "none") log_form = LogForm::none;
  Log log(log_form, job.world.clock);
  WEIR_TRY(const Arrivals arrivals, make_arrivals(job, options, log));
  // A connection that sent no complete request has neither method nor path.
  server_options.refused = [&log](int status, const std::string& peer) {
    serve::RequestLine line{"-", "-", peer, {}};
    line.status = status;
    log.say(line);
  };

  serve::ServiceOptions service_options;
  service_options.open = [&job, store = options.store] {
    return open_service_history(job, store, /*create=*/false);
  };
  service_options.is_public = is_public;
  service_options.public_badges = options.public_badges;
  service_options.own_names_only = is_public && !options.is_public;
  service_options.version = k_version;
  service_options.readers = options.threads;
  service_options.access.uploads = {.burst = std::max(1.0, 10 * options.upload_rate),
                                    .a_second = options.upload_rate};
  WEIR_TRY(service_options.quota, parse_quota(options));
  WEIR_TRY(service_options.issuer, issuer_options(options, std::make_shared<sys::RealHttp>()));
  service_options.clock = &job.world.clock;
  WEIR_TRY(service_options.pages, page_options(job, options));
  service_options.judge = arrivals.judge.get();
  service_options.announcer = arrivals.poster.get();
  service_options.log = [&log](const serve::RequestLine& line) { log.say(line); };
  service_options.trouble = [&log](const std::string& trouble) { log.say(trouble); };
  WEIR_TRY(const auto service, serve::Service::start(job.files(), std::move(service_options)));
  WEIR_TRY(const auto server, serve::Server::listen(server_options, *service));
  service->set_traffic([&server]() -> const serve::Traffic& { return server->traffic(); });

  const sys::Interrupts interrupts;
  const bool is_ipv6 = place.address.find(':') != std::string::npos;
  job.world.terminal.write(
      2, fmt::format("weir serve: ready on {}://{}{}{}:{}/, {}, {}\n",
                     options.certificate.empty() ? "http" : "https", is_ipv6 ? "[" : "",
                     place.address, is_ipv6 ? "]" : "", server->port(), text::printable(store_name),
                     is_public ? "anybody who reaches it may read" : "reading needs a token"));
  notify_systemd(job, "READY=1");
  server->run(interrupts.stop(), [&service, &job] {
    notify_systemd(job, "STOPPING=1");
    service->announce_stop();
  });
  service->stop();
  return Answer{};
}

namespace {

// Parses a date, or a duration from `now`, to Unix seconds; nullopt for "". Fails with Code::usage
// unless it lies in the future.
Result<std::optional<double>> parse_expiry(const std::string& text, double now) {
  if (text.empty()) return std::nullopt;
  std::optional<double> expiry = history::parse_time(text);
  if (!expiry) {
    const auto seconds = unit::parse_duration_seconds(text);
    if (seconds) expiry = now + *seconds;
  }
  if (!expiry || *expiry <= now) {
    return fail(Code::usage, "--expires {}: no time to come: 2027-01-31, or 2160h",
                text::printable(text));
  }
  return expiry;
}

// Describes if a token is valid, and until when.
std::string token_state(const history::StoredToken& token, double now) {
  if (token.revoked_at) return "revoked " + sys::date_of(*token.revoked_at);
  if (!token.expires_at) return "good";
  return (now < *token.expires_at ? "good until " : "over since ") +
         sys::date_of(*token.expires_at);
}

}  // namespace

// Makes a token for uploads or reading, and prints it once.
Result<Answer> add_token(const Job& job, const TokenOptions& options) {
  const double now = job.world.clock.now();
  history::StoredToken token;
  token.project = options.project;
  token.scopes = text::join(options.scopes, " ");
  token.name = options.name.empty() ? "" : history::stored_name(options.name);
  token.made_at = now;
  if (history::stored_name(token.project) != token.project) {
    return fail(Code::usage, "--project: no name that a project could have");
  }
  WEIR_TRY(token.expires_at, parse_expiry(options.expires, now));
  WEIR_TRY(const auto store, open_service_history(job, options.store, /*create=*/true));
  WEIR_TRY(const serve::NewToken created, serve::make_token(std::move(token)));
  WEIR_CHECK(store->add_token(created.stored));
  job.log(fmt::format("weir: token {} may {} for projects {}; it is shown this once",
                      created.stored.id,
                      text::join(text::split(created.stored.scopes, ' '), " and "),
                      text::printable(created.stored.project)));
  return Answer{text::printable(created.text.reveal() + "\n")};
}

// Lists the tokens with their state, never the secret itself.
Result<Answer> list_tokens(const Job& job, const TokenOptions& options) {
  WEIR_TRY(const auto store, open_service_history(job, options.store, /*create=*/false));
  WEIR_TRY(const auto tokens, store->tokens());
  const double now = job.world.clock.now();
  std::string lines;
  Json json = Json::array();
  for (const history::StoredToken& token : tokens) {
    lines += fmt::format("{}  {}  {:<16}  {}  {}{}{}\n", token.id, sys::date_of(token.made_at),
                         token_state(token, now), token.scopes, text::printable(token.project),
                         token.name.empty() ? "" : "  ", text::printable(token.name));
    const auto time = [](const std::optional<double>& moment) {
      return moment ? Json(sys::time_of(*moment)) : Json();
    };
    json.push_back({{"id", token.id},
                    {"project", token.project},
                    {"scopes", text::split(token.scopes, ' ')},
                    {"name", token.name},
                    {"made_at", sys::time_of(token.made_at)},
                    {"expires_at", time(token.expires_at)},
                    {"revoked_at", time(token.revoked_at)},
                    {"good", serve::is_usable_token(token, now)}});
  }
  return Answer{tokens.empty() ? "no tokens: weir serve token add makes one\n" : lines,
                json_document(json)};
}

Result<Answer> revoke_token(const Job& job, const TokenOptions& options) {
  WEIR_TRY(const auto store, open_service_history(job, options.store, /*create=*/false));
  WEIR_TRY(const bool revoked, store->revoke_token(options.id, job.world.clock.now()));
  if (!revoked) {
    return fail(Code::usage, "{}: no such token: weir serve token list",
                text::printable(options.id));
  }
  return Answer{text::printable(options.id + " is revoked\n")};
}

}  // namespace weir::flow

#else

namespace weir::flow {
namespace {

Result<Answer> built_without_service() {
  return fail(Code::unavailable,
              "this weir was built without its service (WEIR_SERVE=OFF)\n"
              "  weir trend site writes the same pages; a weir built from its sources serves them");
}

}  // namespace

Result<Answer> serve_history(const Job&, const ServeOptions&) { return built_without_service(); }
Result<Answer> add_token(const Job&, const TokenOptions&) { return built_without_service(); }
Result<Answer> list_tokens(const Job&, const TokenOptions&) { return built_without_service(); }
Result<Answer> revoke_token(const Job&, const TokenOptions&) { return built_without_service(); }

}  // namespace weir::flow

#endif
