// Calls GitHub's REST API with retries, redirects and conditional requests.
#include "gate/publish/github.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "gate/base/find.hpp"
#include "gate/base/hash.hpp"

namespace weir::publish {
namespace {

constexpr int k_max_redirects = 3;
constexpr std::size_t k_max_cached_answers = 64;                  // answers
constexpr std::size_t k_max_cached_bytes = std::size_t{1} << 20;  // in one answer

constexpr std::string_view k_this_machine[] = {"127.0.0.1", "localhost", "[::1]"};

bool is_redirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

// Returns the array of a page: the page itself, or the only array beside "total_count". Null for
// anything else.
const Json* list_items(const Json& page) {
  if (page.is_array()) return &page;
  if (!page.is_object() || !page.contains("total_count")) return nullptr;
  const Json* items = nullptr;
  for (const auto& [key, value] : page.items()) {
    if (!value.is_array()) continue;
    if (items != nullptr) return nullptr;
    items = &value;
  }
  return items;
}

}  // namespace

// Checks the API's address, which must be https except on this machine, and the token. Fails on the
// first problem.
Result<GithubApi> GithubApi::make(GithubSettings settings, GithubEffects effects) {
  std::string text = settings.base_url;
  while (!text.empty() && text.back() == '/') text.pop_back();
  Masker masker;
  masker.add(settings.token);
  const auto base = parse_url(text);
  if (!base || base->target.find('?') != std::string::npos) {
    return fail(Code::usage, "\"{}\" is not the address of an API, as \"https://HOST/api/v3\" is",
                safe_text(settings.base_url, masker));
  }
  if (base->scheme != "https" && !holds(k_this_machine, base->host)) {
    return fail(Code::usage, "{}: a token goes over https alone", safe_text(text, masker));
  }
  const std::string& token = settings.token.reveal();
  if (std::ranges::any_of(token, [](char c) { return c <= ' ' || c >= 0x7F; })) {
    return fail(Code::usage,
                "the token holds a character that no token has (a line end or space?)");
  }
  return GithubApi(std::move(settings), effects, *base);
}

GithubApi::GithubApi(GithubSettings settings, GithubEffects effects, Url base)
    : settings_(std::move(settings)), effects_(effects), base_(std::move(base)) {
  while (base_.target.back() == '/' && base_.target.size() > 1) base_.target.pop_back();
  masker_.add(settings_.token);
}

// Returns the seconds until the deadline of all calls, which starts with the first call.
double GithubApi::seconds_left() {
  const double now = effects_.clock.steady();
  if (!deadline_) deadline_ = now + settings_.total_seconds;
  return *deadline_ - now;
}

// Returns a random fraction from 0 to 1 in steps of 1/256.
double GithubApi::jitter() {
  double fraction = 0;
  for (double part = 0.5; part > 0.003; part /= 2) {
    if (effects_.coin.flip()) fraction += part;
  }
  return fraction;
}

Result<Url> GithubApi::address(const std::string& path) const {
  const std::string root = base_.target == "/" ? "" : base_.target;
  const auto url = parse_url(base_.origin() + root + path);
  if (path.empty() || path[0] != '/' || !url || !is_below(base_, *url)) {
    return error(Code::data, "\"{}\" is no path of an API", safe_text(path, masker_));
  }
  return *url;
}

// Builds a request with GitHub's headers, the token, and the ETag of a cached answer. A null body
// is left out.
sys::HttpRequest GithubApi::make_request(const std::string& method, const Url& url,
                                         const Json& body) const {
  sys::HttpRequest request{.method = method, .url = url.text()};
  request.headers = {{"Accept", "application/vnd.github+json"},
                     {"X-GitHub-Api-Version", "2022-11-28"},
                     {"User-Agent", "weir/" + settings_.version}};
  if (!settings_.token.empty())
    request.authorization = Secret("Bearer " + settings_.token.reveal());
  if (!body.is_null()) {
    request.headers.emplace_back("Content-Type", "application/json");
    request.body = dump_json(body);
  }
  const CachedAnswer* cached = weir::look_up(cache_, url.text());
  if (method == "GET" && cached != nullptr) {
    request.headers.emplace_back("If-None-Match", cached->etag);
  }
  return request;
}

// Sends a request until it is answered or refused, or until time is up. Waits before each further
// attempt. `is_once`: the request must not be carried out twice.
Result<sys::HttpResponse> GithubApi::send_with_retries(const sys::HttpRequest& request,
                                                       bool is_once) {
  for (int attempt = 1;; ++attempt) {
    sys::HttpLimits limits = settings_.each;
    limits.total_seconds = std::min(limits.total_seconds, seconds_left());
    auto answer = effects_.http.send(request, limits, effects_.stop);
    if (!answer && answer.error().what == sys::HttpFailure::What::stopped) {
      if (answer.error().sent) may_be_done_ = true;
      return error(Code::interrupted, "interrupted");
    }
    if (answer && (is_redirect(answer->status) || answer->status == 304)) {
      return std::move(*answer);
    }
    const Next decision = answer ? after_answer(*answer, is_once, effects_.clock.now(), masker_)
                                 : after_failure(answer.error(), is_once, masker_);
    if (decision.what == Next::What::answer) return std::move(*answer);
    if (decision.maybe_done) may_be_done_ = true;
    if (decision.what == Next::What::refused) return error(Code::unavailable, "{}", decision.why);
    const double first_delay =
        decision.limit ? settings_.limit_delay_seconds : settings_.base_delay_seconds;
    const double longest_delay = std::max(first_delay, settings_.longest_delay_seconds);
    // Wait a little longer than the server asks for, so that not all clients come back at once.
    const double wait =
        decision.requested_seconds
            ? *decision.requested_seconds + settings_.base_delay_seconds * jitter() / 2
            : back_off(attempt, first_delay, longest_delay, jitter());
    if (attempt >= settings_.max_attempts) {
      return error(Code::unavailable, "gave up after {} attempts: {}", attempt, decision.why);
    }
    if (wait >= seconds_left()) {
      return error(Code::unavailable,
                   "{}\nwaiting {:.0f} s for it would go over the limit of {:.0f} s in all",
                   decision.why, std::ceil(wait), settings_.total_seconds);
    }
    if (settings_.say) {
      settings_.say(masker_.mask(fmt::format("trying again in {:.1f} s: {}", wait, decision.why)));
    }
    if (!effects_.pause.wait(wait, effects_.stop)) {
      return error(Code::interrupted, "interrupted while waiting: {}", decision.why);
    }
  }
}

// Returns the URL that a redirect names. Fails if it leaves the API, or if only a GET may follow
// it.
Result<Url> GithubApi::redirect_target(const Url& origin, const sys::HttpResponse& response,
                                       const std::string& method) const {
  const std::string location = response.header("location").value_or("");
  const auto target = resolve(origin, location);
  if (!target) {
    return error(Code::data, "{} to what is no address: \"{}\"", describe_answer(response, masker_),
                 safe_text(location, masker_));
  }
  if (!is_below(base_, *target)) {
    return error(Code::data, "redirected ({}) to {}, which is not the API at {}: not followed",
                 response.status, safe_text(target->origin() + target->path(), masker_),
                 safe_text(base_.text(), masker_));
  }
  const bool keeps_method = response.status == 307 || response.status == 308;
  if (method != "GET" && !keeps_method) {
    return error(Code::data, "redirected ({}) to {}: only a GET follows that", response.status,
                 safe_text(target->text(), masker_));
  }
  return *target;
}

// Replaces a 304 ("not modified") by the cached answer. Caches any other answer that has an ETag.
void GithubApi::use_cache(const Url& url, sys::HttpResponse& response) {
  if (const CachedAnswer* cached = weir::look_up(cache_, url.text());
      cached != nullptr && response.status == 304) {
    response.status = 200;
    response.body = cached->body;
    response.headers = {{"content-type", cached->type}, {"link", cached->link}};
    return;
  }
  const auto etag = response.header("etag");
  if (response.status != 200 || !etag || response.body.size() > k_max_cached_bytes) return;
  if (cache_.size() >= k_max_cached_answers) cache_.clear();
  cache_[url.text()] = {*etag, response.body, response.header("content-type").value_or(""),
                        response.header("link").value_or("")};
}

// Sends a request with retries and redirects. `is_once`: it must not be carried out twice. An error
// says if it may have been carried out.
Result<sys::HttpResponse> GithubApi::send_and_follow(std::string method, Url url, const Json& body,
                                                     bool is_once) {
  may_be_done_ = false;
  const Url first_url = url;
  const auto add_request = [&](Error problem) {
    if (may_be_done_ && method != "GET") problem.message += "\nit may have been carried out";
    return add_prefix(method + " " + safe_text(first_url.text(), masker_), problem);
  };
  for (int redirects = 0;; ++redirects) {
    auto response = seconds_left() > 0 ? send_with_retries(make_request(method, url, body), is_once)
                                       : error(Code::unavailable,
                                               "the {:.0f} s that all requests may take are over",
                                               settings_.total_seconds);
    if (!response) return tl::unexpected(add_request(response.error()));
    if (is_redirect(response->status)) {
      auto redirect = redirect_target(url, *response, method);
      if (redirect && redirects >= k_max_redirects)
        redirect = error(Code::data, "redirected too often");
      if (!redirect) return tl::unexpected(add_request(redirect.error()));
      url = *redirect;
      continue;
    }
    if (method == "GET") use_cache(url, *response);
    if (response->status == 304) {
      return tl::unexpected(
          add_request({Code::data, "304 Not Modified, without having been asked"}));
    }
    return response;
  }
}

// Sends a request and parses the answer's JSON. An error says if the request may have been carried
// out.
Result<ApiResponse> GithubApi::call(const ApiRequest& request) {
  WEIR_TRY(const Url url, address(request.path));
  const bool is_once = request.method == "POST" || request.once;
  WEIR_TRY(const sys::HttpResponse response,
           send_and_follow(request.method, url, request.body, is_once));
  auto json = parse_answer(response, masker_);
  if (!json) {
    may_be_done_ = request.method != "GET" && response.status < 300;
    return error(json.error().code, "{} {}: {}{}", request.method, safe_text(url.text(), masker_),
                 json.error().message, may_be_done_ ? "\nit may have been carried out" : "");
  }
  return ApiResponse{.status = response.status, .body = std::move(*json)};
}

// Reads a list page by page. Fails if it has more than `max_items` items, if pages repeat
// themselves, or if one lies outside the API.
Result<Json> GithubApi::list(const std::string& path, std::size_t max_items) {
  const bool has_size = path.find("per_page=") != std::string::npos;
  const char separator = path.find('?') == std::string::npos ? '?' : '&';
  WEIR_TRY(Url url, address(has_size ? path : path + separator + "per_page=100"));
  const auto problem = [&](const std::string& what) {
    return error(Code::data, "GET {}: {}", safe_text(url.text(), masker_), what);
  };
  Json all = Json::array();
  std::set<std::string> seen_urls, seen_pages;
  for (;;) {
    if (!seen_urls.insert(url.text()).second)
      return problem("this page of the list names itself next");
    if (seen_urls.size() > settings_.max_pages) {
      return problem(fmt::format("the list has more than {} pages", settings_.max_pages));
    }
    WEIR_TRY(const sys::HttpResponse response, send_and_follow("GET", url, Json(nullptr), false));
    if (response.status >= 300) return problem(describe_answer(response, masker_));
    const auto page = parse_answer(response, masker_);
    if (!page) return problem(page.error().message);
    const Json* items = list_items(*page);
    if (items == nullptr) return problem("not a list: " + safe_text(response.body, masker_));
    if (!items->empty() && !seen_pages.insert(hash_hex(response.body)).second) {
      return problem("a page of the list comes twice");
    }
    if (all.size() + items->size() > max_items) {
      return problem(fmt::format("the list has more than {} items", max_items));
    }
    all.insert(all.end(), items->begin(), items->end());
    const auto next = next_link(response.header("link").value_or(""));
    if (!next) return all;
    const auto next_url = resolve(url, *next);
    if (!next_url || !is_below(base_, *next_url)) {
      return problem(fmt::format("its next page is said to be elsewhere (\"{}\"): not followed",
                                 safe_text(*next, masker_)));
    }
    url = *next_url;
  }
}

}  // namespace weir::publish
