// A running weir serve, on SQLite and on the tests' PostgreSQL, and clients of it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "gate/history/json_lines.hpp"
#include "gate/sys/http.hpp"

#include "tests/e2e/weir_process.hpp"
#include "tests/history/store/stores.hpp"

namespace weir::e2e {

// One client's connection; of one thread.
class Client {
 public:
  Client(std::string url, std::string token) : url_(std::move(url)), token_(std::move(token)) {}

  // Status 0: no answer, or not a whole one.
  sys::HttpResponse send(const std::string& method, const std::string& path,
                         const std::optional<std::string>& body = {},
                         const sys::HttpHeaders& headers = {}) {
    sys::HttpRequest request;
    request.method = method;
    request.url = url_ + path;
    request.headers = headers;
    request.body = body;
    if (!token_.empty()) request.authorization = Secret("Bearer " + token_);
    auto answer =
        http_.send(request, {.total_seconds = 60, .body_bytes = std::size_t{32} << 20}, stop_);
    if (answer) return *std::move(answer);
    failure_ = answer.error().message;
    return {};
  }
  sys::HttpResponse get(const std::string& path) { return send("GET", path); }
  sys::HttpResponse upload(const std::string& lines, const std::string& key = "",
                           const std::string& path = "/api/v1/runs?project=default") {
    sys::HttpHeaders headers{{"Content-Type", "application/x-ndjson"}};
    if (!key.empty()) headers.emplace_back("Idempotency-Key", key);
    return send("POST", path, lines, headers);
  }
  [[nodiscard]] const std::string& failure() const { return failure_; }

 private:
  std::string url_, token_, failure_;
  sys::RealHttp http_;
  sys::Stop stop_;
};

class Served {
 public:
  Served(const Scratch& scratch, const std::string& where, std::vector<std::string> more = {},
         const std::string& listen = "127.0.0.1:0") {
    // No limit that a test could run into by being quick.
    std::vector<std::string> words{"serve",         "--listen", listen,         "--db",   where,
                                   "--upload-rate", "100000",   "--daily-runs", "1000000"};
    words.insert(words.end(), more.begin(), more.end());
    weir_ = std::make_unique<Weir>(scratch, words);
    const bool listens = eventually([&] {
      const std::string log = weir_->err_so_far();
      const std::size_t at = log.find("http://");
      const std::size_t over = at == std::string::npos ? at : log.find('/', at + 7);
      if (over != std::string::npos) url_ = log.substr(at, over - at);
      return !url_.empty() || !weir_->running();
    });
    if (!listens || url_.empty()) ADD_FAILURE() << "it never listened: " << weir_->err_so_far();
  }

  [[nodiscard]] const std::string& url() const { return url_; }
  [[nodiscard]] Client client(const std::string& token = "") const { return {url_, token}; }
  void kill(int signal) { weir_->kill(signal); }
  [[nodiscard]] long peak_kib() const { return weir_->peak_kib(); }
  Ended wait() { return weir_->wait(); }
  Ended stop() {
    weir_->kill(SIGTERM);
    return weir_->wait();
  }

 private:
  std::unique_ptr<Weir> weir_;
  std::string url_;
};

class Serve : public history::OnBoth {
 protected:
  // Shown once.
  std::string token(const std::string& where, const std::string& scope = "upload",
                    const std::string& project = "default") {
    const Ended ended = weir(
        scratch_, {"serve", "token", "add", "--db", where, "--scope", scope, "--project", project});
    EXPECT_EQ(ended.exit_code, 0) << ended.out << ended.err;
    const std::size_t at = ended.out.find("weir_");
    if (at == std::string::npos) {
      ADD_FAILURE() << "no token in: " << ended.out;
      return "";
    }
    return ended.out.substr(at, ended.out.find_first_of(" \n", at) - at);
  }

  static std::string make_id(int writer, int number) {
    return fmt::format("{:08x}{:08x}", writer + 1, number + 1);
  }
  // One run of two cells, as weir trend export writes it.
  static std::string make_lines(int writer, int number) {
    const auto time = 1795000000.0 + number;
    history::Run run =
        history::run_at(make_id(writer, number), time,
                        {history::time_point("a/b/cpu/decode", 40 + number % 7),
                         history::count_point("a/b/vulkan/decode", Rational(65 + number % 2))},
                        fmt::format("{:040x}", number + 1));
    run.facts.machine = fmt::format("box{}", writer);
    return history::first_line() + "\n" + history::line_of(run) + "\n";
  }
  // Ids of the runs in a store, each as often as it is there.
  static std::vector<std::string> ids_in(const std::string& where) {
    std::vector<std::string> ids;
    for (const history::Run& run : history::content_of(*open(where)).runs) {
      EXPECT_EQ(run.points.size(), 2U) << run.facts.id;
      ids.push_back(run.facts.id);
    }
    return ids;
  }

  Scratch scratch_;
};

}  // namespace weir::e2e
