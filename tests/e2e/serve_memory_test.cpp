// Attacks on the memory of the service: whatever is stored and asked for, it holds in 256 MiB.
#include <functional>

#include <arpa/inet.h>
#include <sys/socket.h>

#include "tests/e2e/serve_support.hpp"

namespace weir::e2e {
namespace serve_memory_test {

constexpr long k_max_kib = 256 << 10;

// A verdict's text of so many bytes that is mostly numbers.
std::string verdict_text(std::size_t bytes) {
  std::string text = R"({"schema":"weir.verdict/1","verdict":"pass","cells":[],"more":[0)";
  while (text.size() + 4 < bytes) text += ",0";
  return text + "]}";
}

class ServeMemory : public Serve {
 protected:
  // Adds what an uploader may have stored over some days: long names, long verdicts, many samples.
  static void fill(const std::string& where) {
    const auto store = open(where);
    history::Batch verdicts;
    for (int i = 0; i < 8; ++i) {
      history::StoredVerdict verdict = history::verdict_at(fmt::format("v{}", i), i, "pass");
      verdict.text = verdict_text(std::size_t{8} << 20);
      verdict.text[verdict.text.size() - 3] = static_cast<char>('1' + i);
      verdict.id = hash_hex(verdict.text);
      verdicts.verdicts = {std::move(verdict)};
      history::value_of(store->add(verdicts));
    }
    for (int run = 0; run < 20; ++run) {
      std::vector<history::Point> points;
      for (int i = 0; i < 10'000; ++i) {
        points.push_back(history::count_point(fmt::format("e/m/b/{:0300d}", i), run));
      }
      const std::vector<double> samples(16'000, 1.0 / 3);
      for (int i = 0; i < 40; ++i) {
        points.push_back(history::time_point(fmt::format("e/m/b/samples{}", i), run, samples));
      }
      history::Batch batch;
      batch.runs = {history::run_at(fmt::format("r{}", run), run, std::move(points))};
      history::value_of(store->add(batch));
    }
    history::Batch many;
    for (int i = 0; i < 20'000; ++i) {
      many.runs.push_back(history::run_at(fmt::format("{:0500d}", i), i, {}));
      many.runs.back().facts.project = fmt::format("p{}", i % 50);
    }
    history::value_of(store->add(many));
  }

  struct Attack {
    std::string name;
    std::function<void(Served&)> run;
  };

  // Runs the attacks one after the other against one service. After each it still answers, and its
  // peak memory since it started is within the limit.
  void hold(const std::string& where, const std::vector<Attack>& attacks) {
    Served served(scratch_, where, {"--public", "--daily-quota", "10 GiB"});
    EXPECT_TRUE(eventually([&] { return served.client().get("/data/overview.js").status != 503; }));
    for (const Attack& attack : attacks) {
      const long before = served.peak_kib();
      attack.run(served);
      EXPECT_EQ(served.client().get("/healthz").status, 200) << attack.name;
      const long peak = served.peak_kib();
      std::cout << attack.name << ": " << peak / 1024 << " MiB, " << before / 1024 << " before\n";
      EXPECT_LT(peak, k_max_kib) << attack.name;
    }
    EXPECT_EQ(served.stop().exit_code, 0);
  }
};

// Asks for all pages from `path` on, a bounded number; all are answered.
void ask_for_all(Served& served, std::string path) {
  Client client = served.client();
  for (int i = 0; i < 20 && !path.empty(); ++i) {
    const auto answer = client.get(path);
    EXPECT_THAT(answer.status, testing::AnyOf(200, 400)) << path << answer.body.substr(0, 200);
    const std::size_t at = answer.body.rfind("\"next\":\"");
    const std::size_t from = at + 8;
    path =
        at == std::string::npos ? "" : answer.body.substr(from, answer.body.find('"', from) - from);
  }
}

TEST_P(ServeMemory, HoldsWhateverIsStoredAndAskedFor) {
  const std::string where = fresh();
  fill(where);
  std::vector<Attack> attacks{
      {"pages", [](Served&) {}},
      {"verdicts", [](Served& served) {
         std::vector<std::thread> clients;
         for (int i = 0; i < 4; ++i) {
           clients.emplace_back(
               [&] { ask_for_all(served, "/api/v1/verdicts?project=default&full=1&limit=20"); });
         }
         for (std::thread& client : clients) client.join();
       }}};
  for (const std::string path :
       {"/api/v1/series?project=default&limit=10000&samples=1&cell=e/m/b/samples*",
        "/api/v1/series?limit=10000", "/api/v1/series?project=p1&cell=nothing*",
        "/api/v1/changes?limit=5000", "/api/v1/changes?project=default&all=1", "/api/v1/projects",
        "/badge/default.svg?cell=e/*"}) {
    attacks.push_back({path, [path](Served& served) {
                         std::thread other([&] { ask_for_all(served, path); });
                         ask_for_all(served, path);
                         other.join();
                       }});
  }
  hold(where, attacks);
}

std::string many_values() {
  std::string body = R"({"schema":"weir.verdict/1","a":[{})";
  while (body.size() < std::size_t{15} << 20) body += ",{}";
  return body + "]}";
}

std::string many_keys() {
  std::string body = R"({"schema":"weir.verdict/1")";
  for (int i = 0; i < 490'000; ++i) body += fmt::format(",\"{:x}\":0", i);
  return body + "}";
}

std::string many_points() {
  history::Run run = history::run_at("r", 1, {});
  for (int i = 0; i < 60'000; ++i)
    run.points.push_back(history::count_point(fmt::format("{:x}", i), 1));
  return history::first_line() + "\n" + history::line_of(run) + "\n";
}

std::string many_names() {
  std::string lines = history::first_line() + "\n";
  for (int i = 0; i < 9'000; ++i) {
    const std::string name = fmt::format("{:0400d}", i);
    lines += history::line_of(history::run_at(name, 1, {history::count_point(name, 1)})) + "\n";
  }
  return lines;
}

TEST_P(ServeMemory, HoldsWhateverIsUploaded) {
  const std::string where = fresh();
  const std::string mine = token(where);
  const auto send = [&](Served& served, const std::string& type, const std::string& body) {
    std::vector<std::thread> clients;
    for (int i = 0; i < 4; ++i) {
      clients.emplace_back([&] {
        Client client = served.client(mine);
        const int status =
            client.send("POST", "/api/v1/runs?project=default", body, {{"Content-Type", type}})
                .status;
        EXPECT_THAT(status, testing::AnyOf(201, 200, 413, 422, 503)) << status;
      });
    }
    for (std::thread& client : clients) client.join();
  };
  const char* json = "application/json";
  const char* lines = "application/x-ndjson";
  hold(where, {{"values", [&](Served& served) { send(served, json, many_values()); }},
               {"keys", [&](Served& served) { send(served, json, many_keys()); }},
               {"points", [&](Served& served) { send(served, lines, many_points()); }},
               {"names", [&](Served& served) { send(served, lines, many_names()); }}});
}

// Opens many connections. Each sends as much of a head as it may, and never its end.
void connect_without_end(Served& served) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(
      static_cast<std::uint16_t>(std::stoi(served.url().substr(served.url().rfind(':') + 1))));
  inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
  const std::string head = "GET / HTTP/1.1\r\nHost: localhost\r\nX: " + std::string(15'000, 'x');
  std::vector<int> sockets;
  for (int i = 0; i < 1'200; ++i) {
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0) break;
    sockaddr_in from{};
    from.sin_family = AF_INET;
    inet_pton(AF_INET, fmt::format("127.0.1.{}", 1 + i % 5).c_str(), &from.sin_addr);
    EXPECT_EQ(bind(fd, reinterpret_cast<const sockaddr*>(&from), sizeof from), 0);
    if (connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0) {
      (void)::send(fd, head.data(), head.size(), MSG_NOSIGNAL);
    }
    sockets.push_back(fd);
  }
  EXPECT_TRUE(eventually([&] { return served.client().get("/healthz").status == 200; }));
  for (const int fd : sockets) close(fd);
}

TEST_P(ServeMemory, HoldsAsManyConnectionsAsItTakes) {
  const std::string where = fresh();
  open(where);
  hold(where, {{"connections", connect_without_end}});
}

INSTANTIATE_TEST_SUITE_P(Both, ServeMemory,
                         testing::Values(history::Kind::sqlite, history::Kind::postgres),
                         history::name_of);

}  // namespace serve_memory_test
}  // namespace weir::e2e
