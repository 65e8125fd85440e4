// weir serve: the pages of a history live, uploads, queries; who may read and upload.
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
  bool plain_http = false;  // beyond this machine, too
  bool is_public = false, is_private = false, public_badges = false;
  std::string title, repo_url, repository;
  std::string log = "text";
  std::size_t threads = 2;
  double upload_rate = 10;  // a second, of each token
  std::string quota = "20GiB", daily_quota = "1GiB";
  std::int64_t daily_runs = 10'000;
  std::vector<std::string> jobs;  // "PROJECT=OWNER/NAME@REF"
  std::string audience, issuer = "https://token.actions.githubusercontent.com";
  std::vector<std::string> gates, posts;  // "PROJECT=FOLDER", "PROJECT=OWNER/NAME"
  GithubOptions access;
  std::string check;  // a URL to ask instead
};
// Serves until SIGINT or SIGTERM; with options.check, asks a service whether it is well.
[[nodiscard]] Result<Answer> serve_history(const Job& job, const ServeOptions& options);

// "127.0.0.1:8080", "[::1]:8080". Code::usage.
struct ListenPlace {
  std::string address;
  std::uint16_t port = 0;
  bool loopback = false;
};
[[nodiscard]] Result<ListenPlace> parse_listen(const std::string& text);

// "PROJECT=VALUE", each project once. Code::usage naming `option`.
[[nodiscard]] Result<std::vector<std::pair<std::string, std::string>>> parse_pairs(
    const char* option, const std::vector<std::string>& texts);

#ifdef WEIR_SERVE
// Whose jobs may upload; nothing where there are none. Keys come by `http`, which outlives it and
// is nobody else's. Code::usage.
[[nodiscard]] Result<std::optional<serve::IssuerOptions>> issuer_of(
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
