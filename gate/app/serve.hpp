// weir serve: what its parts share.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gate/app/command_line.hpp"
#include "gate/app/trend.hpp"

namespace weir::app {

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
  std::string api_url, token_file;
  std::string check;  // a URL to ask instead
};

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

// Serves until SIGINT or SIGTERM.
[[nodiscard]] Result<ExitCode> serve(const ServeOptions& options);
// Asks a service whether it is well: 0 or 3.
[[nodiscard]] Result<ExitCode> check_service(const std::string& url);

// `weir serve token …`; the one that was chosen is put into `chosen`.
void add_serve_tokens(CLI::App& serve, std::shared_ptr<Action> chosen);

}  // namespace weir::app
