// Servers that are none, for whoever starts them: an engine for each mode of fake_server.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "tests/e2e/weir_process.hpp"

namespace weir::e2e {

inline const std::string k_fake = WEIR_BINARY_DIR "/tests/fake_engines/fake_server";

// A port of 127.0.0.1 that the system gives nobody by itself while this lives: servers, which let
// their address be used again, may listen there.
class Port {
 public:
  Port() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const int yes = 1;
    setsockopt(fd_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    sockaddr_in at{};
    socklen_t size = sizeof at;
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(bind(fd_, reinterpret_cast<const sockaddr*>(&at), size), 0);
    EXPECT_EQ(getsockname(fd_, reinterpret_cast<sockaddr*>(&at), &size), 0);
    number_ = ntohs(at.sin_port);
  }
  ~Port() { close(fd_); }
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;

  [[nodiscard]] std::string str() const { return std::to_string(number_); }
  // Does anything listen there?
  [[nodiscard]] bool answers() const {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    at.sin_port = htons(number_);
    const bool answered = connect(fd, reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0;
    close(fd);
    return answered;
  }

 private:
  int fd_ = -1;
  std::uint16_t number_ = 0;
};

class Servers : public testing::Test {
 protected:
  // An engine for each mode, one model, the CPU; `more` of the engine, `prompts` and what follows.
  void write_config(const std::vector<std::string>& modes, const std::string& more = "",
                    const std::string& prompts =
                        "{hello: {text: Hello world, tokens: 8, "
                        "requests: 4}}") {
    std::string engines;
    for (const std::string& mode : modes) {
      engines += "  " + mode + ": {kind: server, command: [" + k_fake + ", " + mode +
                 ", '{port}', " + mark() + "], api: completions, timeout: 10m" + more + "}\n";
    }
    spill(scratch_ / "model.bin", "no model at all");
    spill(scratch_ / "weir.yaml", "version: 1\nengines:\n" + engines +
                                      "models: {m: model.bin}\nbackends: {cpu: {}}\n"
                                      "prompts: " +
                                      prompts + "\ngate: {runs: 2}\n");
  }

  // Stands in the command line of every server of this test.
  [[nodiscard]] std::string mark() const { return scratch_.path().filename(); }
  // For servers that answer so many prompts in all and then none.
  [[nodiscard]] std::map<std::string, std::string> answering(int prompts) const {
    return {{"FAKE_SERVER_PROMPTS", (scratch_ / "prompts").string()},
            {"FAKE_SERVER_ANSWERS", std::to_string(prompts)}};
  }

  Json gate(int exit_code, const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments{"gate", "--json", "-"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    last_ = weir(scratch_, arguments);
    EXPECT_EQ(last_.exit_code, exit_code) << last_.err;
    EXPECT_EQ(processes_with(mark()), std::vector<std::string>{}) << "left behind";
    return json_of(last_);
  }

  Scratch scratch_;
  Ended last_;
};

}  // namespace weir::e2e
