// Servers that are none, for whoever starts them: an engine for each mode of fake_server.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "tests/e2e/weir_process.hpp"

namespace weir::e2e {

inline const std::string k_fake = WEIR_BINARY_DIR "/tests/fake_engines/fake_server";

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
                 ", '{port}', " + mark() + "], api: completions, timeout: 60s" + more + "}\n";
    }
    spill(scratch_ / "model.bin", "no model at all");
    spill(scratch_ / "weir.yaml", "version: 1\nengines:\n" + engines +
                                      "models: {m: model.bin}\nbackends: {cpu: {}}\n"
                                      "prompts: " +
                                      prompts + "\ngate: {runs: 2}\n");
  }

  // Stands in the command line of every server of this test.
  [[nodiscard]] std::string mark() const { return scratch_.path().filename(); }

  // Does anything at 127.0.0.1?
  static bool listens(int port) {
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    at.sin_port = htons(static_cast<std::uint16_t>(port));
    const bool answered = connect(fd, reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0;
    close(fd);
    return answered;
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
