// GitHub's REST API, of github.com or of a GitHub Enterprise server.
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
  // "https://HOST/api/v3" on GitHub Enterprise. http is taken for this machine alone (tests).
  std::string base_url = "https://api.github.com";
  Secret token{};         // empty: none is sent
  std::string version{};  // weir's own, for the User-Agent
  // Over all calls of one object, from its first one on, waits included.
  double total_seconds = 300;
  sys::HttpLimits each{};  // of one attempt
  int most_attempts = 8;   // of one request
  // Waits where the server names none: the first one and the longest; after a rate limit, where
  // GitHub wants a minute at least, the first one there.
  double base_delay_seconds = 1;
  double longest_delay_seconds = 60;
  double limit_delay_seconds = 60;
  std::size_t most_pages = 100;
  // Told of every wait, in words that are safe to show: "GitHub asks ...". May be empty.
  std::function<void(const std::string&)> say{};
};

// All that an object works with outlives it.
struct GithubEffects {
  sys::Http& http;
  const sys::Clock& clock;
  sys::Pause& pause;
  sys::Coin& coin;  // makes posters that fail together come back apart
  const sys::Stop& stop;
};

class GithubApi final : public Api {
 public:
  // Code::usage when the base URL or the token cannot be one.
  [[nodiscard]] static Result<GithubApi> make(GithubSettings settings, GithubEffects effects);

  // As in api.hpp. Errors say what came, or what was waited for; of a request that may have been
  // carried out they say so. Code::interrupted on a stop, Code::data for what is no API's answer,
  // Code::unavailable for the rest.
  [[nodiscard]] Result<ApiResponse> call(const ApiRequest& request) override;
  // `path` is asked for with 100 items a page unless it says otherwise. A list is an array, or what
  // GitHub wraps one in: an object with "total_count".
  [[nodiscard]] Result<Json> list(const std::string& path, std::size_t most) override;

  // Whether the last call ended in an Error although the request may have been carried out.
  [[nodiscard]] bool maybe_done() const { return maybe_done_; }

 private:
  struct Kept {  // of a GET, for conditional requests
    std::string etag, body, type, link;
  };
  GithubApi(GithubSettings settings, GithubEffects effects, Url base);

  [[nodiscard]] Result<Url> address(const std::string& path) const;
  [[nodiscard]] sys::HttpRequest request_for(const std::string& method, const Url& url,
                                             const Json& body) const;
  // With retries and redirects; 2xx, or a refusal that the caller can use.
  Result<sys::HttpResponse> ask(std::string method, Url url, const Json& body, bool once);
  // One URL until it is answered, refused, or time is up. 3xx is an answer here.
  Result<sys::HttpResponse> attempts(const sys::HttpRequest& request, bool once);
  Result<Url> redirected(const Url& from, const sys::HttpResponse& response,
                         const std::string& method) const;
  void keep(const Url& url, sys::HttpResponse& response);
  [[nodiscard]] double left();
  [[nodiscard]] double jitter();
  template <class... Args>
  [[nodiscard]] tl::unexpected<Error> failed(Code code, fmt::format_string<Args...> message,
                                             Args&&... args) const {
    return fail(code, "{}", masker_.mask(fmt::format(message, std::forward<Args>(args)...)));
  }

  GithubSettings settings_;
  GithubEffects effects_;
  Url base_;
  Masker masker_;
  std::optional<double> deadline_;  // of the steady clock
  bool maybe_done_ = false;
  std::map<std::string, Kept> kept_;
};

}  // namespace weir::publish
