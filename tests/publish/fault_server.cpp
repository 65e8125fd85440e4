// Serves GitHub's API on 127.0.0.1 with injected faults: sockets, threads and answers.
#include "tests/publish/fault_server.hpp"

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <thread>
#include <tuple>

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gate/base/hash.hpp"

#include "tests/publish/wire.hpp"

namespace weir::tests {
struct FaultServer::State {
  struct Rule {
    When when;
    Fault fault;
    int met = 0;
  };
  std::string token;
  int listener = -1, port = 0;
  mutable std::mutex mutex;
  std::condition_variable ending;
  bool end = false;
  GithubStore store;
  std::vector<Rule> rules;
  std::vector<ReceivedRequest> requests;
  int answered = 0;
  std::set<int> open;
  std::vector<std::thread> threads;  // one per connection
  std::thread acceptor;

  [[nodiscard]] std::string url() const { return fmt::format("http://127.0.0.1:{}", port); }
  void accept_all();
  void serve(int fd);
  bool answer_request(int fd, const ReceivedRequest& request);
  std::optional<Fault> find_fault(const ReceivedRequest& request);
  Wire carry_out(const ReceivedRequest& request);
  bool send_slowly(int fd, const std::string& text, double pause);
};

// Returns the fault for this request, if any. Call it with the mutex held, as for all rules and the
// store.
std::optional<Fault> FaultServer::State::find_fault(const ReceivedRequest& request) {
  for (Rule& rule : rules) {
    const When& when = rule.when;
    if (!when.method.empty() && when.method != request.method) continue;
    if (request.target.find(when.path) == std::string::npos) continue;
    const int met = rule.met++;
    if (met < when.after || (when.times > 0 && met >= when.after + when.times)) continue;
    return rule.fault;
  }
  return std::nullopt;
}

Wire FaultServer::State::carry_out(const ReceivedRequest& request) {
  Wire wire;
  wire.headers = {{"Content-Type", "application/json; charset=utf-8"},
                  {"X-RateLimit-Limit", "1000"},
                  {"X-RateLimit-Remaining", "900"}};
  const auto header = [&](const char* name) {
    const auto match = request.headers.find(name);
    return match == request.headers.end() ? std::string() : match->second;
  };
  StoreAnswer answer;
  const StoreRequest parsed_request = store_request(request);
  if (header("user-agent").empty()) {
    answer = {.status = 403, .body = {{"message", "Request forbidden by administrative rules."}}};
  } else if (!token.empty() && header("authorization") != "Bearer " + token) {
    answer = {.status = 401, .body = {{"message", "Bad credentials"}}};
  } else {
    answer = store.answer(parsed_request);
  }
  wire.status = answer.status;
  if (!answer.body.is_null()) wire.body = dump_json(answer.body);
  if (answer.next_page > 0) {
    wire.headers.emplace_back("Link",
                              fmt::format(R"(<{}>; rel="next", <{}>; rel="last")",
                                          at_page(url(), parsed_request, answer.next_page),
                                          at_page(url(), parsed_request, answer.last_page)));
  }
  if (request.method == "GET" && wire.status == 200) {
    const std::string tag = "W/\"" + short_hash(wire.body, 16) + "\"";
    wire.headers.emplace_back("ETag", tag);
    if (header("if-none-match") == tag) {
      wire.status = 304;
      wire.body.clear();
    }
  }
  return wire;
}

bool FaultServer::State::send_slowly(int fd, const std::string& text, double pause) {
  for (const char c : text) {
    if (!send_all(fd, std::string_view(&c, 1))) return false;
    std::unique_lock lock(mutex);
    if (ending.wait_for(lock, std::chrono::duration<double>(pause), [&] { return end; }))
      return false;
  }
  return true;
}

// Answers one request. Returns false if the connection is over.
bool FaultServer::State::answer_request(int fd, const ReceivedRequest& request) {
  Fault fault;
  Wire wire;
  {
    const std::lock_guard lock(mutex);
    requests.push_back(request);
    const auto match = find_fault(request);
    if (!match || match->carried_out ||
        (match->status == 0 && match->how == Fault::How::complete)) {
      wire = carry_out(request);
    }
    if (match) fault = *match;
    const int count = ++answered;
    if (fault.status != 0) {
      wire = {.status = fault.status, .headers = fault.headers, .body = fault.body};
      wire.headers.emplace_back("Content-Type", fault.content_type);
      const std::string path = request.target.substr(0, request.target.find('?'));
      const auto filled = [&](std::string& text) {
        replace_all(text, "%COUNT%", std::to_string(count));
        replace_all(text, "%NEXT%", std::to_string(count + 1));
        replace_all(text, "%URL%", url());
        replace_all(text, "%PATH%", path);
      };
      filled(wire.body);
      for (auto& header : wire.headers) filled(header.second);
    } else {
      wire.headers.insert(wire.headers.end(), fault.headers.begin(), fault.headers.end());
    }
  }
  const std::string text = to_text(wire);
  switch (fault.how) {
    case Fault::How::complete:
      return send_all(fd, text);
    case Fault::How::cut:
      return false;
    case Fault::How::half:
      send_all(fd, std::string_view(text).substr(0, text.size() - (wire.body.size() + 1) / 2));
      return false;
    case Fault::How::drip:
      return send_slowly(fd, text, fault.pause);
    case Fault::How::never:
      break;
  }
  std::string ignored;
  fill(fd, ignored, SIZE_MAX);  // until the peer or the ending server closes it
  return false;
}

void FaultServer::State::serve(int fd) {
  std::string buffer;
  while (auto request = read_request(fd, buffer)) {
    if (!answer_request(fd, *request)) break;
  }
  const std::lock_guard lock(mutex);
  open.erase(fd);
  close(fd);
}

void FaultServer::State::accept_all() {
  for (;;) {
    const int fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    const std::lock_guard lock(mutex);
    if (end || fd < 0) {
      if (fd >= 0) close(fd);
      if (end) return;
      continue;
    }
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    open.insert(fd);
    threads.emplace_back([this, fd] { serve(fd); });
  }
}

FaultServer::FaultServer(const std::string& token) : state_(std::make_unique<State>()) {
  state_->token = token;
  std::tie(state_->listener, state_->port) = bound_socket();
  if (listen(state_->listener, 64) != 0)
    throw std::runtime_error("the tests' server cannot listen");
  state_->acceptor = std::thread([state = state_.get()] { state->accept_all(); });
}

FaultServer::~FaultServer() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->end = true;
    state_->ending.notify_all();
    for (const int fd : state_->open) shutdown(fd, SHUT_RDWR);
  }
  shutdown(state_->listener, SHUT_RDWR);
  state_->acceptor.join();
  for (std::thread& thread : state_->threads) thread.join();
  close(state_->listener);
}

std::string FaultServer::url() const { return state_->url(); }
int FaultServer::port() const { return state_->port; }

void FaultServer::fault(const When& when, const Fault& fault) {
  const std::lock_guard lock(state_->mutex);
  state_->rules.push_back({when, fault});
}

void FaultServer::no_faults() {
  const std::lock_guard lock(state_->mutex);
  state_->rules.clear();
}

void FaultServer::store(const std::function<void(GithubStore&)>& look) {
  const std::lock_guard lock(state_->mutex);
  look(state_->store);
}

std::vector<ReceivedRequest> FaultServer::requests() const {
  const std::lock_guard lock(state_->mutex);
  return state_->requests;
}

int FaultServer::count(const std::string& method, const std::string& path) const {
  int matches = 0;
  for (const ReceivedRequest& request : requests()) {
    if ((method.empty() || request.method == method) &&
        request.target.find(path) != std::string::npos) {
      ++matches;
    }
  }
  return matches;
}

bool FaultServer::saw(const std::string& text) const {
  for (const ReceivedRequest& request : requests()) {
    std::string all = request.method + " " + request.target + "\n" + request.body;
    for (const auto& [name, value] : request.headers) all += "\n" + name + ": " + value;
    if (all.find(text) != std::string::npos) return true;
  }
  return false;
}

int closed_port() {
  // The port stays bound until the program ends, so nobody else gets it.
  const auto [fd, port] = bound_socket();
  const int yes = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  return port;
}

}  // namespace weir::tests
