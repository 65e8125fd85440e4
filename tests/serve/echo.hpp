// A service that echoes its requests, and a server for it that runs while the object lives.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "gate/base/json.hpp"
#include "gate/serve/server.hpp"
#include "gate/serve/workers.hpp"

namespace weir::tests {

// Paths: /slow answers from another thread after let_go(); /big has a body of `big` octets; /throw
// throws; /forget never answers; /refused is not admitted. All others return the request as JSON.
class Echo final : public serve::Handler {
 public:
  std::uint64_t max_body_bytes = 1 << 20;
  std::shared_ptr<const std::string> big = std::make_shared<const std::string>(1 << 20, 'b');

  serve::Admission admit(const serve::Head& head) override {
    ++admitted;
    if (head.target.path == "/throw_early") throw std::runtime_error("early");
    serve::Admission admission;
    admission.max_body_bytes = head.method == serve::Method::get ? 0 : max_body_bytes;
    if (head.target.path == "/refused") {
      admission.refused = serve::Response{.status = 403, .type = "text/plain"};
      admission.refused->body = std::make_shared<const std::string>("no\n");
    }
    return admission;
  }

  void handle(serve::Request request, Answer answer) override {
    ++handled;
    const std::string path = request.head.target.path;
    if (path == "/throw") throw std::runtime_error("late");
    if (path == "/forget") return;
    serve::Response response{.status = 200, .type = "application/json"};
    response.body = path == "/big" ? big : std::make_shared<const std::string>(echo_text(request));
    if (path == "/evil") response.headers.emplace_back("X-Said", "a\r\nSet-Cookie: b");
    if (path == "/nothing") response = serve::Response{.status = 204, .type = ""};
    if (path == "/twice") answer(response);
    if (path != "/slow") return answer(std::move(response));
    const bool taken = workers_.post([this, response, answer](std::size_t) {
      std::unique_lock lock(mutex_);
      ++waiting_;
      changed_.notify_all();
      changed_.wait(lock, [&] { return free_; });
      answer(response);
    });
    if (!taken) answer(serve::Response{.status = 503, .type = ""});
  }

  void wait_for_slow(int count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return waiting_ >= count; });
  }
  void let_go() {
    const std::lock_guard lock(mutex_);
    free_ = true;
    changed_.notify_all();
  }
  ~Echo() override { let_go(); }

  std::atomic<int> admitted{0}, handled{0};

 private:
  static std::string echo_text(const serve::Request& request) {
    Json headers = Json::object();
    for (const auto& [name, value] : request.head.headers) headers[name] = value;
    return dump_json({{"method", static_cast<int>(request.head.method)},
                      {"path", request.head.target.path},
                      {"headers", headers},
                      {"peer", request.head.peer},
                      {"secure", request.head.secure},
                      {"body", request.body}});
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  int waiting_ = 0;
  bool free_ = false;
  serve::Workers workers_{4, 1000};
};

class Served {
 public:
  explicit Served(const serve::ServerOptions& options = local()) { start(options); }
  ~Served() { end(); }

  // Options for a free port of 127.0.0.1.
  static serve::ServerOptions local() {
    serve::ServerOptions options;
    options.port = 0;
    return options;
  }

  void stop() { stop_.request(); }
  void wait() {
    if (thread_.joinable()) thread_.join();
  }
  void end() {
    echo.let_go();
    stop_.request();
    wait();
    server.reset();
  }
  [[nodiscard]] std::uint16_t port() const { return server->port(); }

  Echo echo;
  std::unique_ptr<serve::Server> server;

 private:
  void start(const serve::ServerOptions& options) {
    auto listening = serve::Server::listen(options, echo);
    if (!listening) throw std::runtime_error(listening.error().message);
    server = std::move(*listening);
    thread_ = std::thread([this] { server->run(stop_); });
  }

  sys::Stop stop_;
  std::thread thread_;
};

}  // namespace weir::tests
