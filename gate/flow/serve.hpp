// weir serve: serves the pages of a history, uploads and queries, and manages tokens.
// Code::unavailable in a weir that was built without it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gate/flow/post.hpp"
#include "gate/flow/trend.hpp"
#ifdef WEIR_SERVE
#include "gate/serve/issuer.hpp"
#endif
#include "gate/sys/http.hpp"

namespace weir::flow {

struct ServeOptions {
  StoreOptions store;
  std::string listen = "127.0.0.1:8080";
  std::string certificate, key;
  std::vector<std::string> trusted_proxies;
  bool plain_http = false;  // allow it beyond this machine
  bool is_public = false, is_private = false, public_badges = false;
  std::string title, repo_url, repository;
  std::string log = "text";
  std::size_t threads = 2;
  double upload_rate = 10;  // a second, for each token
  std::string quota = "20GiB", daily_quota = "1GiB";
  std::int64_t daily_runs = 10'000;
  std::vector<std::string> jobs;  // "PROJECT=OWNER/NAME@REF"
  std::string audience, issuer = "https://token.actions.githubusercontent.com";
  std::vector<std::string> gates, posts;  // "PROJECT=FOLDER", "PROJECT=OWNER/NAME"
  GithubOptions access;
  std::string check;  // a URL: only check that service
};
// Serves until SIGINT or SIGTERM. With options.check, asks a service if it is well.
[[nodiscard]] Result<Answer> serve_history(const Job& job, const ServeOptions& options);

// A parsed place to listen, like "127.0.0.1:8080" or "[::1]:8080".
struct ListenPlace {
  std::string address;
  std::uint16_t port = 0;
  bool loopback = false;
};
[[nodiscard]] Result<ListenPlace> parse_listen(const std::string& text);

// Parses "PROJECT=VALUE", each project once. Code::usage names `option`.
[[nodiscard]] Result<std::vector<std::pair<std::string, std::string>>> parse_pairs(
    const char* option, const std::vector<std::string>& texts);

#ifdef WEIR_SERVE
// Returns which CI jobs may upload; nothing without --oidc. Keys are fetched by `http`, which
// nobody else uses. Code::usage.
[[nodiscard]] Result<std::optional<serve::IssuerOptions>> issuer_options(
    const ServeOptions& options, std::shared_ptr<sys::Http> http);
#endif

// weir serve token.
struct TokenOptions {
  StoreOptions store;
  std::string project = "*", name, expires, id;
  std::vector<std::string> scopes;
};
[[nodiscard]] Result<Answer> add_token(const Job& job, const TokenOptions& options);
[[nodiscard]] Result<Answer> list_tokens(const Job& job, const TokenOptions& options);
[[nodiscard]] Result<Answer> revoke_token(const Job& job, const TokenOptions& options);

}  // namespace weir::flow
