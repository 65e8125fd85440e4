// Sends bytes to a server over a socket, and reads its answers.
#include "tests/serve/raw_client.hpp"

#include <chrono>
#include <stdexcept>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gate/base/text.hpp"

namespace weir::tests {
namespace {

int connected(std::uint16_t port, const std::string& address) {
  const bool v6 = address.find(':') != std::string::npos;
  const int fd = socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in six_less{};
  sockaddr_in6 six{};
  six_less.sin_family = AF_INET;
  six.sin6_family = AF_INET6;
  six_less.sin_port = six.sin6_port = htons(port);
  inet_pton(v6 ? AF_INET6 : AF_INET, address.c_str(),
            v6 ? static_cast<void*>(&six.sin6_addr) : &six_less.sin_addr);
  const auto* to =
      v6 ? reinterpret_cast<const sockaddr*>(&six) : reinterpret_cast<const sockaddr*>(&six_less);
  if (fd < 0 || connect(fd, to, v6 ? sizeof six : sizeof six_less) != 0) {
    if (fd >= 0) close(fd);
    throw std::runtime_error("no connection to " + address);
  }
  return fd;
}

}  // namespace

std::string RawAnswer::header(const std::string& name) const {
  const auto match = headers.find(name);
  return match == headers.end() ? "" : match->second;
}

RawClient::RawClient(std::uint16_t port, const std::string& address)
    : fd_(connected(port, address)) {}

RawClient::~RawClient() { close(fd_); }

bool RawClient::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

bool RawClient::more(double seconds) {
  if (ended_) return false;
  pollfd watched{fd_, POLLIN, 0};
  if (poll(&watched, 1, static_cast<int>(seconds * 1000)) <= 0) return false;
  char part[64 << 10];
  const ssize_t got = recv(fd_, part, sizeof part, 0);
  ended_ = got <= 0;
  if (!ended_) buffer_.append(part, static_cast<std::size_t>(got));
  return !ended_;
}

std::optional<RawAnswer> RawClient::answer(bool to_head, double seconds) {
  std::size_t end = 0;
  while ((end = buffer_.find("\r\n\r\n")) == std::string::npos) {
    if (!more(seconds)) return std::nullopt;
  }
  const auto lines = text::lines(buffer_.substr(0, end));
  buffer_.erase(0, end + 4);
  RawAnswer answer;
  answer.line = lines.at(0);
  answer.status = static_cast<int>(text::to_int(answer.line.substr(9, 3)).value_or(0));
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const std::size_t colon = lines[i].find(':');
    answer.headers.emplace(text::lower(lines[i].substr(0, colon)),
                           text::trim(lines[i].substr(colon + 1)));
  }
  const auto length = text::to_int(answer.header("content-length"));
  const auto size = to_head ? 0 : static_cast<std::size_t>(length.value_or(0));
  while (buffer_.size() < size) {
    if (!more(seconds)) return std::nullopt;
  }
  answer.body = buffer_.substr(0, size);
  buffer_.erase(0, size);
  return answer;
}

bool RawClient::closed(double seconds) {
  return buffer_.empty() && !more(seconds) && ended_ && buffer_.empty();
}

std::string RawClient::rest(double seconds) {
  while (more(seconds)) continue;
  return std::move(buffer_);
}

void RawClient::half_close() { shutdown(fd_, SHUT_WR); }

void RawClient::abort() {
  const linger at_once{1, 0};
  setsockopt(fd_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  close(fd_);
  fd_ = -1;
  ended_ = true;
}

void RawClient::small_receive_buffer() {
  const int size = 4096;
  setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
}

}  // namespace weir::tests
