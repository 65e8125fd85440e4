// Reads and writes HTTP/1.1 on sockets for the tests' own server.
#include "tests/publish/wire.hpp"

#include <stdexcept>

#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gate/base/text.hpp"

namespace weir::tests {
namespace {

constexpr std::size_t k_max_head_bytes = 64 << 10;
constexpr std::size_t k_max_body_bytes = 8 << 20;

std::string decoded(std::string_view text) {
  const auto digit = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    const int lower_case = c | 0x20;
    return lower_case >= 'a' && lower_case <= 'f' ? lower_case - 'a' + 10 : -1;
  };
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && digit(text[i + 1]) >= 0 &&
        digit(text[i + 2]) >= 0) {
      out += static_cast<char>(digit(text[i + 1]) * 16 + digit(text[i + 2]));
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

}  // namespace

std::pair<int, int> bound_socket() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (fd < 0 || bind(fd, generic, size) != 0 || getsockname(fd, generic, &size) != 0) {
    throw std::runtime_error("the tests' server found no port on 127.0.0.1");
  }
  return {fd, ntohs(address.sin_port)};
}

bool fill(int fd, std::string& buffer, std::size_t until) {
  char part[16 << 10];
  while (buffer.size() < until) {
    const ssize_t got = recv(fd, part, sizeof part, 0);
    if (got <= 0) return false;
    buffer.append(part, static_cast<std::size_t>(got));
  }
  return true;
}

bool send_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

std::optional<ReceivedRequest> read_request(int fd, std::string& buffer) {
  std::size_t end = 0;
  while ((end = buffer.find("\r\n\r\n")) == std::string::npos) {
    if (buffer.size() > k_max_head_bytes || !fill(fd, buffer, buffer.size() + 1))
      return std::nullopt;
  }
  const std::vector<std::string> lines = text::lines(buffer.substr(0, end));
  buffer.erase(0, end + 4);
  const std::vector<std::string> words = text::split(lines.empty() ? "" : lines[0], ' ');
  if (words.size() != 3) return std::nullopt;
  ReceivedRequest request{.method = words[0], .target = words[1]};
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const std::size_t colon = lines[i].find(':');
    if (colon == std::string::npos) return std::nullopt;
    request.headers[text::lower(lines[i].substr(0, colon))] =
        text::trim(lines[i].substr(colon + 1));
  }
  const auto length = text::to_int(
      request.headers.count("content-length") != 0 ? request.headers["content-length"] : "0");
  if (!length || *length < 0 || static_cast<std::size_t>(*length) > k_max_body_bytes)
    return std::nullopt;
  if (request.headers.count("expect") != 0 && !send_all(fd, "HTTP/1.1 100 Continue\r\n\r\n")) {
    return std::nullopt;
  }
  if (!fill(fd, buffer, static_cast<std::size_t>(*length))) return std::nullopt;
  request.body = buffer.substr(0, static_cast<std::size_t>(*length));
  buffer.erase(0, request.body.size());
  return request;
}

StoreRequest store_request(const ReceivedRequest& received) {
  const std::size_t mark = received.target.find('?');
  StoreRequest request{.method = received.method,
                       .path = decoded(received.target.substr(0, mark)),
                       .body = received.body};
  if (mark == std::string::npos) return request;
  for (const std::string& part : text::split(received.target.substr(mark + 1), '&')) {
    const std::size_t equal = part.find('=');
    if (equal != std::string::npos) {
      request.query[decoded(part.substr(0, equal))] = decoded(part.substr(equal + 1));
    }
  }
  return request;
}

std::string at_page(const std::string& url, const StoreRequest& request, std::int64_t page) {
  std::string link = url + request.path + "?";
  for (const auto& [name, value] : request.query) {
    if (name != "page") link += name + "=" + value + "&";
  }
  return fmt::format("{}page={}", link, page);
}

void replace_all(std::string& text, const std::string& what, const std::string& with) {
  for (std::size_t at = text.find(what); at != std::string::npos;
       at = text.find(what, at + with.size())) {
    text.replace(at, what.size(), with);
  }
}

std::string to_text(const Wire& wire) {
  std::string out = fmt::format("HTTP/1.1 {} Said\r\n", wire.status);
  for (const auto& [name, value] : wire.headers) out += name + ": " + value + "\r\n";
  if (wire.status != 204 && wire.status != 304) {
    out += fmt::format("Content-Length: {}\r\n", wire.body.size());
  }
  return out + "\r\n" + wire.body;
}

}  // namespace weir::tests
