// weir serve: the pages of a history live, uploads, queries; who may read and upload.
// Code::unavailable in a weir that was built without it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "gate/flow/post.hpp"
#include "gate/flow/trend.hpp"

namespace weir::flow {

struct ServeOptions {
  StoreOptions store;
  std::string listen = "127.0.0.1:8080";
  std::string certificate, key;
  std::vector<std::string> trusted_proxies;
  bool is_public = false, is_private = false, public_badges = false;
  std::string title, repo_url, repository;
  std::string log = "text";
  std::size_t threads = 2;
  double upload_rate = 10;                // a second, of each token
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
