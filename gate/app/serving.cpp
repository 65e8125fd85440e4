// weir serve, while it serves.
#include "gate/app/serve.hpp"

#ifdef WEIR_SERVE
#include <atomic>
#include <cstdlib>
#include <mutex>

#include "gate/app/arrivals.hpp"
#include "gate/app/github_access.hpp"
#include "gate/app/post_where.hpp"
#include "gate/app/serve_log.hpp"
#include "gate/app/systemd_notify.hpp"
#include "gate/app/version.hpp"
#include "gate/base/text.hpp"
#include "gate/publish/target.hpp"
#include "gate/publish/url.hpp"
#include "gate/serve/server.hpp"
#include "gate/serve/service.hpp"
#include "gate/site/site.hpp"
#include "gate/sys/http.hpp"
#include "gate/sys/interrupts.hpp"
#include "gate/sys/paths.hpp"

namespace weir::app {
namespace {

constexpr double k_order_seconds = 60;  // git is asked no more often

// The order of a checkout's commits, as it was a moment ago.
class KnownOrder {
 public:
  explicit KnownOrder(std::string folder) : folder_(std::move(folder)) {}
  history::CommitOrder get() {
    const std::lock_guard lock(mutex_);
    const double now = clock_.steady();
    if (!asked_ || now - *asked_ > k_order_seconds) {
      (void)renew();  // as it was a while ago is better than none
      asked_ = now;
    }
    return order_;
  }
  Result<void> renew() {
    const auto repository = Repository::around(sys::absolute(folder_));
    if (!repository) return tl::unexpected(repository.error());
    WEIR_TRY(auto commits, (*repository)->git().all_commits());
    order_ = history::CommitOrder(std::move(commits));
    return {};
  }

 private:
  std::string folder_;
  sys::RealClock clock_;
  std::mutex mutex_;
  history::CommitOrder order_;
  std::optional<double> asked_;
};

class Log {
 public:
  explicit Log(LogForm form) : form_(form), log_(make_log()) {}
  template <class What>
  void say(const What& what) {
    if (form_ != LogForm::none) log_->info("{}", log_line(what, clock_.now(), form_));
  }

 private:
  LogForm form_;
  std::shared_ptr<spdlog::logger> log_;
  sys::RealClock clock_;
};

// GitHub's API with all that it works on; no signals, which are the service's.
class PostingApi final : public publish::Api {
 public:
  static Result<std::unique_ptr<publish::Api>> make(const std::string& url, const Secret& token,
                                                    const sys::Stop& stop) {
    std::unique_ptr<PostingApi> made(new PostingApi);
    publish::GithubSettings settings;
    settings.base_url = url;
    settings.token = token;
    settings.version = k_version;
    WEIR_TRY(publish::GithubApi api,
             publish::GithubApi::make(std::move(settings), {made->http_, made->clock_, made->pause_,
                                                            made->coin_, stop}));
    made->api_ = std::make_unique<publish::GithubApi>(std::move(api));
    return made;
  }
  Result<publish::ApiResponse> call(const publish::ApiRequest& request) override {
    return api_->call(request);
  }
  Result<Json> list(const std::string& path, std::size_t most) override {
    return api_->list(path, most);
  }

 private:
  PostingApi() = default;
  sys::RealHttp http_;
  sys::RealClock clock_;
  sys::RealPause pause_;
  sys::RealCoin coin_;
  std::unique_ptr<publish::GithubApi> api_;
};

// Judging and posting, where they were asked for.
struct Arrivals {
  std::unique_ptr<FolderJudge> judge;
  std::unique_ptr<Poster> poster;
};

Result<Arrivals> arrivals_of(const ServeOptions& options, const sys::Files& files, Log& log) {
  Arrivals made;
  WEIR_TRY(const auto gates, parse_pairs("--gate", options.gates));
  WEIR_TRY(const auto posts, parse_pairs("--post", options.posts));
  if (!gates.empty()) {
    WEIR_TRY(made.judge, FolderJudge::make(gates));
  }
  if (posts.empty()) return made;
  std::map<std::string, std::string> repositories;
  for (const auto& [project, repository] : posts) {
    if (!publish::is_repository(repository)) {
      return fail(Code::usage, "--post {}={}: no OWNER/NAME", text::printable(project),
                  text::printable(repository));
    }
    const bool judged =
        std::any_of(gates.begin(), gates.end(),
                    [&, &name = project](const auto& gate) { return gate.first == name; });
    if (!judged) {
      return fail(Code::usage, "--post {0}={1}: --gate {0}=FOLDER says by what it is judged",
                  text::printable(project), text::printable(repository));
    }
    repositories.emplace(project, repository);
  }
  PostWords words;
  words.api_url = options.api_url;
  WEIR_TRY(const std::string url, api_url_of(words));
  WEIR_TRY(const Secret token,
           token_of(options.token_file, files, "without --post nothing is posted"));
  auto masker = std::make_shared<Masker>();
  masker->add(token);
  made.poster = std::make_unique<Poster>(
      std::move(repositories),
      [url, token](const sys::Stop& stop) { return PostingApi::make(url, token, stop); },
      [&log, masker](const std::string& line) { log.say("post: " + masker->mask(line)); });
  return made;
}

Result<serve::PageOptions> pages_of(const ServeOptions& options, const sys::Files& files) {
  serve::PageOptions pages;
  pages.title = options.title;
  if (!options.repo_url.empty()) {
    auto url = site::repo_url(options.repo_url);
    if (!url) return tl::unexpected(with_context("--repo-url", std::move(url).error()));
    pages.repo_url = *std::move(url);
  }
  const auto folder = site::find_pages(files, sys::own_program());
  if (folder) {
    pages.folder = *folder;
  } else {
    print_error({folder.error().code, folder.error().message + "; serving the API alone"});
  }
  if (!options.repository.empty()) {
    auto order = std::make_shared<KnownOrder>(options.repository);
    if (auto known = order->renew(); !known) {
      return fail(Code::config, "--repository {}: {}", text::printable(options.repository),
                  known.error().message);
    }
    pages.order = [order] { return order->get(); };
  }
  return pages;
}

Result<serve::ServerOptions> server_of(const ServeOptions& options, const ListenPlace& place) {
  serve::ServerOptions server;
  server.address = place.address;
  server.port = place.port;
  server.threads = options.threads;
  server.trusted_proxies = options.trusted_proxies;
  if (options.certificate.empty() != options.key.empty()) {
    return fail(Code::usage, "--tls-cert and --tls-key belong together");
  }
  if (!options.certificate.empty()) server.tls = serve::Tls{options.certificate, options.key};
  return server;
}

std::string ready_words(const ServeOptions& options, const ListenPlace& place, std::uint16_t port,
                        bool is_public, const std::string& store) {
  const bool six = place.address.find(':') != std::string::npos;
  return fmt::format("weir serve: ready on {}://{}{}{}:{}/, {}, {}\n",
                     options.certificate.empty() ? "http" : "https", six ? "[" : "", place.address,
                     six ? "]" : "", port, text::printable(store),
                     is_public ? "anybody who reaches it may read" : "reading needs a token");
}

}  // namespace

Result<ExitCode> serve(const ServeOptions& options) {
  WEIR_TRY(const ListenPlace place, parse_listen(options.listen));
  WEIR_TRY(serve::ServerOptions server_options, server_of(options, place));
  // A database that does not answer is given up after a while: libpq by itself waits for minutes.
  (void)::setenv("PGCONNECT_TIMEOUT", "10", 0);
  const sys::RealFiles files;
  const bool is_public = options.is_public ||
                         (!options.is_private && place.loopback && options.trusted_proxies.empty());
  // Made before all else, with what is said of it at the command line.
  WEIR_TRY(auto first, open_service_history(options.store, true));
  const std::string shown = first->history().name();
  first.reset();
  Log log(options.log == "json"   ? LogForm::json
          : options.log == "none" ? LogForm::none
                                  : LogForm::text);
  WEIR_TRY(const Arrivals arrivals, arrivals_of(options, files, log));
  // What was no request, or never came whole, has neither method nor path.
  server_options.refused = [&log](int status, const std::string& peer) {
    serve::RequestLine line{"-", "-", peer, {}};
    line.status = status;
    log.say(line);
  };

  serve::ServiceOptions service_options;
  service_options.open = [store = options.store] { return open_service_history(store, false); };
  service_options.is_public = is_public;
  service_options.public_badges = options.public_badges;
  service_options.own_names_only = is_public && !options.is_public;
  service_options.version = k_version;
  service_options.readers = options.threads;
  service_options.access.uploads = {.burst = std::max(1.0, 10 * options.upload_rate),
                                    .a_second = options.upload_rate};
  WEIR_TRY(service_options.pages, pages_of(options, files));
  service_options.judge = arrivals.judge.get();
  service_options.announcer = arrivals.poster.get();
  service_options.log = [&log](const serve::RequestLine& line) { log.say(line); };
  service_options.trouble = [&log](const std::string& words) { log.say(words); };
  WEIR_TRY(const auto service, serve::Service::start(files, std::move(service_options)));
  WEIR_TRY(const auto server, serve::Server::listen(server_options, *service));
  service->set_traffic([&server] { return server->traffic(); });

  const sys::Interrupts interrupts;
  fmt::print(stderr, "{}", ready_words(options, place, server->port(), is_public, shown));
  notify_systemd("READY=1");
  server->run(interrupts.stop(), [&service] {
    notify_systemd("STOPPING=1");
    service->announce_stop();
  });
  service->stop();
  return ExitCode::pass;
}

Result<ExitCode> check_service(const std::string& url) {
  std::string base = url;
  while (base.ends_with('/')) base.pop_back();
  if (!publish::parse_url(base)) {
    return fail(Code::usage, "--check {}: no http or https address", text::printable(url));
  }
  sys::RealHttp http;
  const sys::Stop never;
  sys::HttpRequest request;
  request.url = base + "/healthz";
  const auto answered = http.send(request, {.connect_seconds = 5, .total_seconds = 10}, never);
  if (!answered) return fail(Code::unavailable, "{}: {}", base, answered.error().message);
  if (answered->status == 200) return ExitCode::pass;
  return fail(Code::unavailable, "{}: {} {}", base, answered->status,
              text::printable(text::first_line(answered->body.substr(0, 200))));
}

}  // namespace weir::app
#endif
