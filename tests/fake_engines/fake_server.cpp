// A server of a model that is not there: answers /health and /v1/models, and prompts as OpenAI's
// completions and chats do.
//
//   fake_server MODE PORT
//
//   ok           serves at once; slow_start: says 503 for a third of a second before
//   never_up     says 503 for ever
//   dies_early   complains and exits with 3; exits_early: exits with 0
//   dies_serving crashes within its fourth answer
//   refuses      answers prompts with HTTP 500
//   stays        does not listen to SIGTERM
//   leaves       leaves a process behind, in a session of its own, whose id is in left.pid
//   slower       takes 3 ms a token
//   late         takes 15 ms to its first token
//   steady       takes 15 ms to its first token and 3 ms a token
//   overloaded   the same; answers every fourth prompt with HTTP 503
//   talks        prints 8 KiB a request
//   differs      ends every third answer with another token
//   short        answers with half of the tokens
//   unreported   does not report how many tokens an answer has
//   salted       answers HTTP 422 to prompts without "cache_salt":"x"
//   guarded      answers 401 to all but /health without "Bearer sesame-0123", and says what it got
// All count tokens under /metrics, as llama-server does; miscounts: 7 too many each time.
// All but never_up and dies_early print "listening on PORT" when they are up.
//
// FAKE_SERVER_PROMPTS names a file to which every prompt of any server adds a byte; of those beyond
// the first FAKE_SERVER_ANSWERS none is answered, ever.
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/load/scripts.hpp"

namespace {

using Clock = std::chrono::steady_clock;

std::string mode;
Clock::time_point up_at;
std::atomic<int> prompts{0}, answers{0}, tokens_out{0};

void say(int fd, const std::string& text) {
  std::size_t sent = 0;
  while (sent < text.size()) {
    const ssize_t got = send(fd, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (got <= 0) return;
    sent += static_cast<std::size_t>(got);
  }
}

// One request, header and body; "" at the connection's end.
std::string hear(int fd) {
  std::string text;
  char buffer[4096];
  for (;;) {
    const std::size_t end = text.find("\r\n\r\n");
    if (end != std::string::npos) {
      const std::size_t length = text.find("Content-Length: ");
      const std::size_t body =
          length < end ? std::strtoul(text.c_str() + length + 16, nullptr, 10) : 0;
      if (text.size() >= end + 4 + body) return text;
    }
    const ssize_t got = recv(fd, buffer, sizeof buffer, 0);
    if (got <= 0) return "";
    text.append(buffer, static_cast<std::size_t>(got));
  }
}

void answer(int fd, const std::string& status, const std::string& type, const std::string& body) {
  say(fd, "HTTP/1.1 " + status + "\r\nContent-Type: " + type +
              "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
}

void wait_where_enough_was_answered() {
  const char* path = std::getenv("FAKE_SERVER_PROMPTS");
  const char* most = std::getenv("FAKE_SERVER_ANSWERS");
  if (path == nullptr || most == nullptr) return;
  const int file = open(path, O_WRONLY | O_APPEND | O_CREAT, 0644);
  // The offset after the own byte is the number, even if other processes write too.
  const off_t number = write(file, ".", 1) == 1 ? lseek(file, 0, SEEK_CUR) : -1;
  close(file);
  while (number > std::atoll(most)) pause();
}

// Returns the number that stands after the first of `names` in `request`, or 1.
int asked_tokens(const std::string& request) {
  for (const std::string name : {"\"max_tokens\":", "\"max_completion_tokens\":"}) {
    const std::size_t at = request.find(name);
    if (at != std::string::npos) return std::atoi(request.c_str() + at + name.size());
  }
  return 1;
}

void answer_prompt(int fd, const std::string& request) {
  wait_where_enough_was_answered();
  const bool is_steady = mode == "steady" || mode == "overloaded";
  if (++prompts % 4 == 0 && mode == "overloaded") {
    return answer(fd, "503 Service Unavailable", "application/json",
                  R"({"error": {"message": "overloaded"}})");
  }
  if (mode == "refuses") {
    return answer(fd, "500 Internal Server Error", "application/json",
                  R"({"error": {"message": "out of memory"}})");
  }
  if (mode == "salted" && request.find(R"("cache_salt":"x")") == std::string::npos) {
    return answer(fd, "422 Unprocessable Entity", "application/json", R"({"detail": "no salt"})");
  }
  if (mode == "talks") std::puts(std::string(8 << 10, '.').c_str());
  const int tokens = asked_tokens(request) / (mode == "short" ? 2 : 1);
  const int number = ++answers;
  const bool dies = number == 4 && mode == "dies_serving";
  const bool is_chat = request.starts_with("POST /v1/chat/");
  auto words =
      is_chat ? weir::tests::scripts::chat(tokens) : weir::tests::scripts::completions(tokens);
  // The event before [DONE] is the report, which clients have to ask for.
  const bool reports = request.find("\"include_usage\"") != std::string::npos;
  if (!reports || mode == "unreported") words.end.erase(words.end.end() - 2);
  if (mode == "differs" && number % 3 == 0) {
    const std::string text = "\"text\":\"";
    words.tokens.back().insert(words.tokens.back().find(text) + text.size(), "other ");
  }
  say(fd, weir::tests::scripts::head());
  if (mode == "late" || is_steady) std::this_thread::sleep_for(std::chrono::milliseconds(15));
  for (const std::string& event : words.tokens) {
    if (mode == "slower" || is_steady) std::this_thread::sleep_for(std::chrono::milliseconds(3));
    say(fd, weir::tests::scripts::chunk(event));
    if (dies) {
      std::signal(SIGSEGV, SIG_DFL);  // a sanitizer would make an exit code of it
      std::raise(SIGSEGV);
    }
  }
  for (const std::string& event : words.end) say(fd, weir::tests::scripts::chunk(event));
  tokens_out += tokens + (mode == "miscounts" ? 7 : 0);
  say(fd, weir::tests::scripts::last_chunk());
}

bool let_in(const std::string& request) {
  return mode != "guarded" || request.find("Bearer sesame-0123") != std::string::npos;
}

void serve(int fd) {
  for (std::string request = hear(fd); !request.empty(); request = hear(fd)) {
    if (!request.starts_with("GET /health") && !let_in(request)) {
      const std::size_t at = request.find("Authorization: ");
      const std::string got =
          at == std::string::npos ? "" : request.substr(at, request.find('\r', at) - at);
      answer(fd, "401 Unauthorized", "application/json",
             "{\"error\": {\"message\": \"not with " + got + "\"}}");
    } else if (request.starts_with("GET /metrics ")) {
      answer(fd, "200 OK", "text/plain; version=0.0.4",
             "# TYPE llamacpp:tokens_predicted_total counter\nllamacpp:tokens_predicted_total " +
                 std::to_string(tokens_out.load()) + "\n");
    } else if (request.starts_with("GET /v1/models")) {
      answer(fd, "200 OK", "application/json",
             R"({"object": "list", "data": [{"id": "m", "object": "model"}]})");
    } else if (request.starts_with("POST ")) {
      answer_prompt(fd, request);
    } else if (!request.starts_with("GET /health")) {
      answer(fd, "404 Not Found", "application/json", R"({"error": {"message": "no such page"}})");
    } else {
      const bool up = mode != "never_up" && Clock::now() >= up_at;
      answer(fd, up ? "200 OK" : "503 Service Unavailable", "text/plain", up ? "ok" : "loading");
    }
  }
  close(fd);
}

}  // namespace

int main(int count, char** words) {
  if (count < 3) return 2;
  mode = words[1];
  if (mode == "dies_early") {
    std::fprintf(stderr, "error: no such model\n");
    return 3;
  }
  if (mode == "exits_early") return 0;
  // The first process of a container gets no signal that it does not handle.
  if (getpid() == 1) std::signal(SIGTERM, [](int) { _exit(0); });
  if (mode == "stays") std::signal(SIGTERM, SIG_IGN);
  if (mode == "leaves") {
    if (const pid_t left = fork(); left == 0) {
      setsid();
      pause();
      _exit(0);
    } else {
      std::ofstream("left.pid") << left << "\n";
    }
  }
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  const int yes = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  at.sin_port = htons(static_cast<std::uint16_t>(std::atoi(words[2])));
  if (bind(listener, reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0 ||
      listen(listener, 64) != 0) {
    std::perror("bind");
    return 1;
  }
  up_at = Clock::now() + std::chrono::milliseconds(mode == "slow_start" ? 300 : 0);
  if (mode != "never_up") {
    std::printf("listening on %s\n", words[2]);
    std::fflush(stdout);
  }
  for (;;) {
    const int fd = accept(listener, nullptr, nullptr);
    if (fd < 0) continue;
    // A token goes out when it is there, not when the token before it was acknowledged.
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    std::thread(serve, fd).detach();
  }
}
