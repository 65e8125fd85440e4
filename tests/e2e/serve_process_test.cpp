// weir serve as a process: uploads over real sockets into both databases, and its end.
#include <atomic>
#include <mutex>
#include <set>

#include "tests/e2e/serve_support.hpp"

namespace weir::e2e {
namespace serve_process_test {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::UnorderedElementsAreArray;

TEST_P(Serve, ListensUntilItIsTold) {
  const std::string where = fresh();
  Served served(scratch_, where);
  EXPECT_EQ(served.client().get("/healthz").status, 200);
  const Ended ended = served.stop();
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_EQ(ended.signal, 0);
}

TEST_P(Serve, KeepsWhatItTookOverARestart) {
  const std::string where = fresh();
  const std::string mine = token(where);
  {
    Served served(scratch_, where);
    Client client = served.client(mine);
    EXPECT_EQ(client.upload(make_lines(0, 0)).status, 201) << client.failure();
    // Known already: said to be so, and not doubled.
    EXPECT_EQ(client.upload(make_lines(0, 0)).status, 200);
    EXPECT_EQ(client.upload(make_lines(0, 1)).status, 201);
    EXPECT_EQ(served.stop().exit_code, 0);
  }
  EXPECT_THAT(ids_in(where), UnorderedElementsAreArray({make_id(0, 0), make_id(0, 1)}));
  Served served(scratch_, where);
  const auto series = served.client(mine).get("/api/v1/series?project=default");
  EXPECT_EQ(series.status, 200) << series.body;
  EXPECT_THAT(series.body, HasSubstr("a/b/vulkan/decode"));
}

TEST_P(Serve, TakesNothingFromStrangersAndTellsNobodysToken) {
  const std::string where = fresh();
  const std::string mine = token(where), others = token(where, "upload", "other");
  const std::string reader = token(where, "read");
  Served served(scratch_, where);
  EXPECT_EQ(served.client().upload(make_lines(0, 0)).status, 401);
  EXPECT_EQ(served.client("weir_nonsense").upload(make_lines(0, 0)).status, 401);
  std::string almost = mine;
  almost.back() = almost.back() == '0' ? '1' : '0';
  EXPECT_EQ(served.client(almost).upload(make_lines(0, 0)).status, 401);
  EXPECT_EQ(served.client(others).upload(make_lines(0, 0)).status, 403);
  EXPECT_EQ(served.client(reader).upload(make_lines(0, 0)).status, 403);
  EXPECT_EQ(served.client(mine).upload(make_lines(0, 0)).status, 201);
  const Ended ended = served.stop();
  for (const std::string& secret : {mine, others, reader, almost}) {
    EXPECT_THAT(ended.err + ended.out, Not(HasSubstr(secret)));
    EXPECT_THAT(ended.err + ended.out, Not(HasSubstr(secret.substr(secret.size() - 16))));
  }
  EXPECT_EQ(ids_in(where), std::vector{make_id(0, 0)});
}

TEST_P(Serve, SendsNothingTwiceUnderOneKey) {
  const std::string where = fresh();
  const std::string mine = token(where);
  Served served(scratch_, where);
  Client client = served.client(mine);
  const auto first = client.upload(make_lines(0, 0), "key-1");
  EXPECT_EQ(first.status, 201) << first.body;
  const auto again = client.upload(make_lines(0, 0), "key-1");
  EXPECT_EQ(again.status, first.status);
  EXPECT_EQ(again.body, first.body);
  EXPECT_EQ(client.upload(make_lines(0, 1), "key-1").status, 422);
  EXPECT_EQ(served.stop().exit_code, 0);
  EXPECT_EQ(ids_in(where), std::vector{make_id(0, 0)});
}

TEST_P(Serve, LogsAlsoWhatWasNoRequest) {
  Served served(scratch_, fresh());
  Client client = served.client();
  EXPECT_EQ(client.send("GET", "/", {}, {{"X-Long", std::string(100'000, 'a')}}).status, 431);
  EXPECT_THAT(served.stop().err, HasSubstr(" 431 - - 0 bytes"));
}

// Uploads never stop; it is told to at some moment among them. Whatever it said was kept, is.
TEST_P(Serve, LosesNoUploadThatItAnsweredWhenItIsToldToStop) {
  constexpr int k_writers = 6, k_rounds = 4;
  const std::string where = fresh();
  const std::string mine = token(where);
  std::set<std::string> acknowledged;
  int next = 0;
  for (int round = 0; round < k_rounds; ++round) {
    Served served(scratch_, where);
    std::mutex mutex;
    std::atomic<bool> over{false};
    std::atomic<int> answered{0};
    std::vector<std::thread> writers;
    for (int writer = 0; writer < k_writers; ++writer) {
      writers.emplace_back([&, writer, from = next] {
        Client client = served.client(mine);
        for (int number = from; !over && number < from + 1000; ++number) {
          const auto answer = client.upload(make_lines(writer, number));
          if (answer.status == 201) {
            const std::lock_guard lock(mutex);
            acknowledged.insert(make_id(writer, number));
            ++answered;
          } else if (answer.status == 0) {
            return;  // it has gone
          } else {
            EXPECT_THAT(answer.status, AnyOf(429, 503)) << answer.body;
          }
        }
      });
    }
    EXPECT_TRUE(eventually([&] { return answered >= 20 * (round + 1); }));
    const Ended ended = served.stop();
    EXPECT_EQ(ended.exit_code, 0) << ended.err;
    over = true;
    for (std::thread& writer : writers) writer.join();
    next += 1000;
  }
  const std::vector<std::string> there = ids_in(where);
  const std::set<std::string> once(there.begin(), there.end());
  EXPECT_EQ(once.size(), there.size());
  for (const std::string& id : acknowledged) EXPECT_TRUE(once.contains(id)) << id;
}

INSTANTIATE_TEST_SUITE_P(Both, Serve,
                         testing::Values(history::Kind::sqlite, history::Kind::postgres),
                         history::name_of);

}  // namespace serve_process_test
}  // namespace weir::e2e
