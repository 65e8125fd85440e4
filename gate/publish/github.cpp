#include "gate/publish/github.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "gate/base/find.hpp"
#include "gate/base/hash.hpp"

namespace weir::publish {
namespace {

constexpr int k_most_redirects = 3;
constexpr std::size_t k_most_kept = 64;                          // answers
constexpr std::size_t k_most_kept_bytes = std::size_t{1} << 20;  // of one

constexpr std::string_view k_this_machine[] = {"127.0.0.1", "localhost", "[::1]"};

bool is_redirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

// The array of a page: itself, or the one array beside "total_count".
const Json* items_of(const Json& page) {
  if (page.is_array()) return &page;
  if (!page.is_object() || !page.contains("total_count")) return nullptr;
  const Json* found = nullptr;
  for (const auto& [key, value] : page.items()) {
    if (!value.is_array()) continue;
    if (found != nullptr) return nullptr;
    found = &value;
  }
  return found;
}

}  // namespace

Result<GithubApi> GithubApi::make(GithubSettings settings, GithubEffects effects) {
  std::string text = settings.base_url;
  while (!text.empty() && text.back() == '/') text.pop_back();
  Masker masker;
  masker.add(settings.token);
  const auto base = parse_url(text);
  if (!base || base->target.find('?') != std::string::npos) {
    return fail(Code::usage, "\"{}\" is not the address of an API, as \"https://HOST/api/v3\" is",
                shown(settings.base_url, masker));
  }
  if (base->scheme != "https" && !holds(k_this_machine, base->host)) {
    return fail(Code::usage, "{}: a token goes over https alone", shown(text, masker));
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

double GithubApi::left() {
  const double now = effects_.clock.steady();
  if (!deadline_) deadline_ = now + settings_.total_seconds;
  return *deadline_ - now;
}

double GithubApi::jitter() {
  double fraction = 0;
  for (double part = 0.5; part > 0.003; part /= 2) fraction += effects_.coin.flip() ? part : 0;
  return fraction;
}

Result<Url> GithubApi::address(const std::string& path) const {
  const std::string root = base_.target == "/" ? "" : base_.target;
  const auto url = parse_url(base_.origin() + root + path);
  if (path.empty() || path[0] != '/' || !url || !below(base_, *url)) {
    return failed(Code::data, "\"{}\" is no path of an API", shown(path, masker_));
  }
  return *url;
}

sys::HttpRequest GithubApi::request_for(const std::string& method, const Url& url,
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
  const Kept* kept = weir::look_up(kept_, url.text());
  if (method == "GET" && kept != nullptr) {
    request.headers.emplace_back("If-None-Match", kept->etag);
  }
  return request;
}

Result<sys::HttpResponse> GithubApi::attempts(const sys::HttpRequest& request, bool once) {
  for (int attempt = 1;; ++attempt) {
    sys::HttpLimits limits = settings_.each;
    limits.total_seconds = std::min(limits.total_seconds, left());
    auto answer = effects_.http.send(request, limits, effects_.stop);
    if (!answer && answer.error().what == sys::HttpFailure::What::stopped) {
      maybe_done_ = maybe_done_ || answer.error().sent;
      return failed(Code::interrupted, "interrupted");
    }
    if (answer && (is_redirect(answer->status) || answer->status == 304)) {
      return std::move(*answer);
    }
    const Next next = answer ? after_answer(*answer, once, effects_.clock.now(), masker_)
                             : after_failure(answer.error(), once, masker_);
    if (next.what == Next::What::answer) return std::move(*answer);
    maybe_done_ = maybe_done_ || next.maybe_done;
    if (next.what == Next::What::refused) return failed(Code::unavailable, "{}", next.why);
    const double base = next.limit ? settings_.limit_delay_seconds : settings_.base_delay_seconds;
    const double longest = std::max(base, settings_.longest_delay_seconds);
    // On top of what the server asks for a little, so that not all come back at once.
    const double wait = next.asked_seconds
                            ? *next.asked_seconds + settings_.base_delay_seconds * jitter() / 2
                            : back_off(attempt, base, longest, jitter());
    if (attempt >= settings_.most_attempts) {
      return failed(Code::unavailable, "gave up after {} attempts: {}", attempt, next.why);
    }
    if (wait >= left()) {
      return failed(Code::unavailable,
                    "{}\nwaiting {:.0f} s for it would go over the limit of {:.0f} s in all",
                    next.why, std::ceil(wait), settings_.total_seconds);
    }
    if (settings_.say) {
      settings_.say(masker_.mask(fmt::format("trying again in {:.1f} s: {}", wait, next.why)));
    }
    if (!effects_.pause.wait(wait, effects_.stop)) {
      return failed(Code::interrupted, "interrupted while waiting: {}", next.why);
    }
  }
}

Result<Url> GithubApi::redirected(const Url& from, const sys::HttpResponse& response,
                                  const std::string& method) const {
  const std::string location = response.header("location").value_or("");
  const auto to = resolve(from, location);
  if (!to) {
    return failed(Code::data, "{} to what is no address: \"{}\"", said(response, masker_),
                  shown(location, masker_));
  }
  if (!below(base_, *to)) {
    return failed(Code::data, "redirected ({}) to {}, which is not the API at {}: not followed",
                  response.status, shown(to->origin() + to->path(), masker_),
                  shown(base_.text(), masker_));
  }
  const bool keeps_method = response.status == 307 || response.status == 308;
  if (method != "GET" && !keeps_method) {
    return failed(Code::data, "redirected ({}) to {}: only a GET follows that", response.status,
                  shown(to->text(), masker_));
  }
  return *to;
}

void GithubApi::keep(const Url& url, sys::HttpResponse& response) {
  if (const Kept* kept = weir::look_up(kept_, url.text());
      kept != nullptr && response.status == 304) {
    response.status = 200;
    response.body = kept->body;
    response.headers = {{"content-type", kept->type}, {"link", kept->link}};
    return;
  }
  const auto etag = response.header("etag");
  if (response.status != 200 || !etag || response.body.size() > k_most_kept_bytes) return;
  if (kept_.size() >= k_most_kept) kept_.clear();
  kept_[url.text()] = {*etag, response.body, response.header("content-type").value_or(""),
                       response.header("link").value_or("")};
}

Result<sys::HttpResponse> GithubApi::ask(std::string method, Url url, const Json& body, bool once) {
  maybe_done_ = false;
  const Url first = url;
  const auto place = [&](const Error& why) {
    Error told = why;
    if (maybe_done_ && method != "GET") told.message += "\nit may have been carried out";
    return with_context(method + " " + shown(first.text(), masker_), told);
  };
  for (int redirects = 0;; ++redirects) {
    auto response =
        left() > 0 ? attempts(request_for(method, url, body), once)
                   : failed(Code::unavailable, "the {:.0f} s that all requests may take are over",
                            settings_.total_seconds);
    if (!response) return tl::unexpected(place(response.error()));
    if (is_redirect(response->status)) {
      auto to = redirected(url, *response, method);
      if (to && redirects >= k_most_redirects) to = failed(Code::data, "redirected too often");
      if (!to) return tl::unexpected(place(to.error()));
      url = *to;
      continue;
    }
    if (method == "GET") keep(url, *response);
    if (response->status == 304) {
      return tl::unexpected(place({Code::data, "304 Not Modified, without having been asked"}));
    }
    return response;
  }
}

Result<ApiResponse> GithubApi::call(const ApiRequest& request) {
  WEIR_TRY(const Url url, address(request.path));
  const bool once = request.method == "POST" || request.once;
  WEIR_TRY(const sys::HttpResponse response, ask(request.method, url, request.body, once));
  auto json = json_of(response, masker_);
  if (!json) {
    maybe_done_ = request.method != "GET" && response.status < 300;
    return failed(json.error().code, "{} {}: {}{}", request.method, shown(url.text(), masker_),
                  json.error().message, maybe_done_ ? "\nit may have been carried out" : "");
  }
  return ApiResponse{.status = response.status, .body = std::move(*json)};
}

Result<Json> GithubApi::list(const std::string& path, std::size_t most) {
  const bool has_size = path.find("per_page=") != std::string::npos;
  const char mark = path.find('?') == std::string::npos ? '?' : '&';
  WEIR_TRY(Url url, address(has_size ? path : path + mark + "per_page=100"));
  const auto problem = [&](const std::string& what) {
    return failed(Code::data, "GET {}: {}", shown(url.text(), masker_), what);
  };
  Json all = Json::array();
  std::set<std::string> asked, pages;
  for (;;) {
    if (!asked.insert(url.text()).second) return problem("this page of the list names itself next");
    if (asked.size() > settings_.most_pages) {
      return problem(fmt::format("the list has more than {} pages", settings_.most_pages));
    }
    WEIR_TRY(const sys::HttpResponse response, ask("GET", url, Json(nullptr), false));
    if (response.status >= 300) return problem(said(response, masker_));
    const auto page = json_of(response, masker_);
    if (!page) return problem(page.error().message);
    const Json* items = items_of(*page);
    if (items == nullptr) return problem("not a list: " + shown(response.body, masker_));
    if (!items->empty() && !pages.insert(hash_hex(response.body)).second) {
      return problem("a page of the list comes twice");
    }
    if (all.size() + items->size() > most) {
      return problem(fmt::format("the list has more than {} items", most));
    }
    all.insert(all.end(), items->begin(), items->end());
    const auto next = next_link(response.header("link").value_or(""));
    if (!next) return all;
    const auto to = resolve(url, *next);
    if (!to || !below(base_, *to)) {
      return problem(fmt::format("its next page is said to be elsewhere (\"{}\"): not followed",
                                 shown(*next, masker_)));
    }
    url = *to;
  }
}

}  // namespace weir::publish
