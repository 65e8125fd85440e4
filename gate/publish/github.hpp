// GitHub's REST API: github.com or a GitHub Enterprise server.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "gate/base/secret.hpp"
#include "gate/publish/api.hpp"
#include "gate/publish/github_retry.hpp"
#include "gate/publish/url.hpp"
#include "gate/sys/clock.hpp"
#include "gate/sys/http.hpp"

namespace weir::publish {

struct GithubSettings {
  // "https://HOST/api/v3" on GitHub Enterprise. http is accepted only for this machine (tests).
  std::string base_url = "https://api.github.com";
  Secret token{};         // empty: none is sent
  std::string version{};  // weir's own, for the User-Agent
  // Limit for all calls of one object, from the first one on, waits included.
  double total_seconds = 300;
  sys::HttpLimits each{};  // limits of one attempt
  int max_attempts = 8;    // for one request
  // Waits if the server names none: the first and the longest. After a rate limit the first wait is
  // `limit_delay_seconds`, as GitHub wants at least a minute.
  double base_delay_seconds = 1;
  double longest_delay_seconds = 60;
  double limit_delay_seconds = 60;
  std::size_t max_pages = 100;
  // Called before every wait with a text that is safe to show. May be empty.
  std::function<void(const std::string&)> say{};
};

// The effects of an object, which must outlive it.
struct GithubEffects {
  sys::Http& http;
  const sys::Clock& clock;
  sys::Pause& pause;
  sys::Coin& coin;  // spreads the retries of posters that fail together
  const sys::Stop& stop;
};

class GithubApi final : public Api {
 public:
  // Fails with Code::usage if the base URL or the token is malformed.
  [[nodiscard]] static Result<GithubApi> make(GithubSettings settings, GithubEffects effects);

  // As in api.hpp. Errors say what came or what was waited for, and if the request may have been
  // carried out. Code::interrupted on a stop, Code::data for an answer that is none of an API's,
  // Code::unavailable for the rest.
  [[nodiscard]] Result<ApiResponse> call(const ApiRequest& request) override;
  // `path` is asked for with 100 items a page unless it says otherwise. A list is an array, or what
  // GitHub wraps one in: an object with "total_count".
  [[nodiscard]] Result<Json> list(const std::string& path, std::size_t max_items) override;

  // Returns true if the last call failed although the request may have been carried out.
  [[nodiscard]] bool maybe_done() const { return may_be_done_; }

 private:
  // An answer to a GET, for conditional requests.
  struct CachedAnswer {
    std::string etag, body, type, link;
  };
  GithubApi(GithubSettings settings, GithubEffects effects, Url base);

  [[nodiscard]] Result<Url> address(const std::string& path) const;
  [[nodiscard]] sys::HttpRequest make_request(const std::string& method, const Url& url,
                                              const Json& body) const;
  // Sends a request with retries and redirects. Returns a 2xx, or a refusal that the caller can
  // use.
  Result<sys::HttpResponse> send_and_follow(std::string method, Url url, const Json& body,
                                            bool once);
  // Sends a request to one URL until it is answered or refused, or time is up. A 3xx is an answer.
  Result<sys::HttpResponse> send_with_retries(const sys::HttpRequest& request, bool once);
  // Returns the URL of a redirect; an Error if it leaves the API or would need another method.
  Result<Url> redirect_target(const Url& from, const sys::HttpResponse& response,
                              const std::string& method) const;
  // Replaces a 304 by the cached answer; caches any other answer that has an ETag.
  void use_cache(const Url& url, sys::HttpResponse& response);
  [[nodiscard]] double seconds_left();
  [[nodiscard]] double jitter();
  template <class... Args>
  [[nodiscard]] tl::unexpected<Error> error(Code code, fmt::format_string<Args...> message,
                                            Args&&... args) const {
    return fail(code, "{}", masker_.mask(fmt::format(message, std::forward<Args>(args)...)));
  }

  GithubSettings settings_;
  GithubEffects effects_;
  Url base_;
  Masker masker_;
  std::optional<double> deadline_;  // by the steady clock
  bool may_be_done_ = false;
  std::map<std::string, CachedAnswer> cache_;
};

}  // namespace weir::publish
