// The HTTP server that plays scripts at given moments.
#include "tests/load/stream_server.hpp"

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <list>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

namespace weir::tests {
namespace {

double steady() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

// The first request in `buffer`, taken out of it; nothing until it is whole.
std::optional<ReceivedPost> take_post(std::string& buffer) {
  const std::size_t head_end = buffer.find("\r\n\r\n");
  if (head_end == std::string::npos) return std::nullopt;
  ReceivedPost post;
  std::string_view head = std::string_view(buffer).substr(0, head_end);
  const std::size_t first = head.find(' ');
  if (first != std::string_view::npos) {
    post.target = head.substr(first + 1, head.find(' ', first + 1) - first - 1);
  }
  for (std::size_t at = head.find("\r\n"); at != std::string_view::npos;) {
    const std::size_t next = head.find("\r\n", at + 2);
    const std::string_view line =
        head.substr(at + 2, next == std::string_view::npos ? next : next - at - 2);
    if (const std::size_t colon = line.find(':'); colon != std::string_view::npos) {
      std::string_view value = line.substr(colon + 1);
      while (value.starts_with(' ')) value.remove_prefix(1);
      post.headers[lower(line.substr(0, colon))] = value;
    }
    at = next;
  }
  const auto length = static_cast<std::size_t>(std::atol(post.headers["content-length"].c_str()));
  if (buffer.size() < head_end + 4 + length) return std::nullopt;
  post.body = buffer.substr(head_end + 4, length);
  buffer.erase(0, head_end + 4 + length);
  return post;
}

}  // namespace

class StreamServer::Loop {
 public:
  explicit Loop(Answer answer) : answer_(std::move(answer)) {
    listener_ = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    if (bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
        listen(listener_, 1024) != 0 ||
        getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0 ||
        pipe2(wake_, O_NONBLOCK | O_CLOEXEC) != 0) {
      std::abort();
    }
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { run(); });
  }
  ~Loop() {
    stopped_ = true;
    static_cast<void>(!write(wake_[1], "x", 1));
    thread_.join();
    for (const Peer& peer : peers_) close(peer.fd);
    close(listener_);
    close(wake_[0]);
    close(wake_[1]);
  }

  int port_ = 0;
  std::atomic<std::int64_t> connections_{0}, requests_{0};
  std::atomic<bool> dead_{false};
  mutable std::mutex mutex_;
  std::map<std::int64_t, std::vector<double>> moments_;  // under mutex_

 private:
  struct Peer {
    int fd = -1;
    std::string in, out;
    std::int64_t posts = 0;
    std::optional<Script> script;
    std::size_t step = 0;
    double began = 0;
    bool hangs = false, gone = false;
    std::vector<double> sent;
  };

  void run() {
    std::vector<pollfd> watched;
    while (!stopped_) {
      watched.clear();
      watched.push_back({listener_, POLLIN, 0});
      watched.push_back({wake_[0], POLLIN, 0});
      double due = steady() + 60;
      for (const Peer& peer : peers_) {
        short events = peer.hangs ? 0 : POLLIN;
        if (!peer.out.empty()) events |= POLLOUT;
        watched.push_back({peer.fd, events, 0});
        if (peer.script && peer.out.empty() && peer.step < peer.script->steps.size())
          due = std::min(due, peer.began + peer.script->steps[peer.step].at);
      }
      const double wait = std::max(due - steady(), 0.0);
      timespec limit{};
      limit.tv_sec = static_cast<time_t>(wait);
      limit.tv_nsec = static_cast<long>((wait - static_cast<double>(limit.tv_sec)) * 1e9);
      ppoll(watched.data(), watched.size(), &limit, nullptr);
      std::size_t i = 2;
      for (Peer& peer : peers_) {
        if ((watched[i++].revents & (POLLIN | POLLHUP | POLLERR)) != 0) receive(peer);
      }
      for (Peer& peer : peers_) advance(peer);
      peers_.remove_if([](const Peer& peer) {
        if (peer.gone) close(peer.fd);
        return peer.gone;
      });
      if ((watched[0].revents & POLLIN) != 0) take_connections();
    }
  }

  void take_connections() {
    for (;;) {
      const int fd = accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (fd < 0) return;
      ++connections_;
      if (dead_) {
        close(fd);
        continue;
      }
      const int on = 1;
      setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      peers_.push_back({});
      peers_.back().fd = fd;
    }
  }

  void receive(Peer& peer) {
    char buffer[65536];
    for (;;) {
      const ssize_t got = recv(peer.fd, buffer, sizeof buffer, 0);
      if (got > 0) {
        peer.in.append(buffer, static_cast<std::size_t>(got));
        continue;
      }
      if (got == 0 || (errno != EAGAIN && errno != EINTR)) peer.gone = true;
      break;
    }
    if (peer.script || peer.gone) return;
    if (auto post = take_post(peer.in)) {
      post->number = requests_++;
      post->on_connection = peer.posts++;
      peer.began = steady();
      peer.step = 0;
      peer.sent.clear();
      peer.script = answer_(*post);
    }
  }

  void advance(Peer& peer) {
    while (!peer.gone && peer.script) {
      if (peer.out.empty()) {
        if (peer.step == peer.script->steps.size()) return end(peer);
        const Script::Step& next = peer.script->steps[peer.step];
        const double now = steady();
        if (peer.began + next.at > now) return;
        peer.out = next.bytes;
        ++peer.step;
        if (peer.script->keeps_moments_as) peer.sent.push_back(now);
      }
      const ssize_t put = send(peer.fd, peer.out.data(), peer.out.size(), MSG_NOSIGNAL);
      if (put < 0) {
        if (errno != EAGAIN && errno != EINTR) peer.gone = true;
        return;
      }
      peer.out.erase(0, static_cast<std::size_t>(put));
      if (!peer.out.empty()) return;
    }
  }

  void end(Peer& peer) {
    if (const auto& key = peer.script->keeps_moments_as) {
      const std::lock_guard lock(mutex_);
      moments_[*key] = std::move(peer.sent);
    }
    const Script::End how = peer.script->end;
    peer.script.reset();
    if (how == Script::End::hang) {
      peer.hangs = true;
    } else if (how != Script::End::keep) {
      if (how == Script::End::reset) {
        const linger at_once{1, 0};
        setsockopt(peer.fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
      }
      peer.gone = true;
    }
  }

  Answer answer_;
  int listener_ = -1;
  int wake_[2] = {-1, -1};
  std::list<Peer> peers_;
  std::atomic<bool> stopped_{false};
  std::thread thread_;
};

StreamServer::StreamServer(Answer answer) : loop_(std::make_unique<Loop>(std::move(answer))) {}
StreamServer::~StreamServer() = default;
std::string StreamServer::url() const { return "http://127.0.0.1:" + std::to_string(port()); }
int StreamServer::port() const { return loop_->port_; }
std::int64_t StreamServer::connections() const { return loop_->connections_; }
std::int64_t StreamServer::requests() const { return loop_->requests_; }
void StreamServer::die() { loop_->dead_ = true; }
std::map<std::int64_t, std::vector<double>> StreamServer::moments() const {
  const std::lock_guard lock(loop_->mutex_);
  return loop_->moments_;
}

}  // namespace weir::tests
