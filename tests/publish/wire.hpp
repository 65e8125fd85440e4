// Reads and writes HTTP/1.1 on sockets, as far as the tests' own server needs; for fault_server.cpp
// only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/publish/fault_server.hpp"

namespace weir::tests {

// Binds a socket to a free port of 127.0.0.1 and returns both.
std::pair<int, int> bound_socket();
// Receives until `buffer` holds `until` bytes. Returns false if the peer is gone before.
bool fill(int fd, std::string& buffer, std::size_t until);
bool send_all(int fd, std::string_view bytes);
// Reads one request from `fd`; `buffer` keeps the bytes after it.
std::optional<ReceivedRequest> read_request(int fd, std::string& buffer);

StoreRequest store_request(const ReceivedRequest& received);
// Returns the URL of another page of the same list, as in GitHub's Link headers.
std::string at_page(const std::string& url, const StoreRequest& request, std::int64_t page);
void replace_all(std::string& text, const std::string& what, const std::string& with);

struct Wire {
  int status = 200;
  std::vector<std::pair<std::string, std::string>> headers{};
  std::string body{};
};
std::string to_text(const Wire& wire);

}  // namespace weir::tests
