// kill -9 of weir serve at many moments under load: what it answered is kept, nothing is kept in
// part, nothing twice, also where clients send again what was not answered.
#include <atomic>
#include <mutex>
#include <random>
#include <set>

#include "tests/e2e/serve_support.hpp"

namespace weir::e2e {
namespace serve_kill_test {

constexpr int k_kills = 200, k_writers = 4;

using ServeKilled = Serve;

struct Writer {
  int number = 0;  // number of the next upload, which is repeated until it is answered
};

TEST_P(ServeKilled, KeepsWhatItAnswered) {
  const std::string where = fresh();
  const std::string mine = token(where);
  std::mt19937 random(8);
  std::mutex mutex;
  std::set<std::string> acknowledged;
  std::vector<Writer> writers(k_writers);
  int amid = 0;  // kills while an upload was under way
  for (int kill = 0; kill < k_kills; ++kill) {
    Served served(scratch_, where);
    ASSERT_FALSE(served.url().empty());
    std::atomic<int> under_way{0}, answered{0};
    std::vector<std::thread> threads;
    for (int at = 0; at < k_writers; ++at) {
      threads.emplace_back([&, at] {
        Client client = served.client(mine);
        Writer& writer = writers[static_cast<std::size_t>(at)];
        while (true) {
          const std::string id = make_id(at, writer.number);
          ++under_way;
          const auto answer = client.upload(make_lines(at, writer.number), id);
          --under_way;
          if (answer.status == 0) return;  // it has gone, in whatever it was
          if (answer.status == 429 || answer.status == 503) {
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
            continue;
          }
          EXPECT_EQ(answer.status, 201) << answer.body;
          if (answer.status != 201) return;
          const std::lock_guard lock(mutex);
          acknowledged.insert(id);
          ++writer.number;
          ++answered;
        }
      });
    }
    // Every other one waits for an answer first.
    EXPECT_TRUE(eventually([&] { return kill % 2 == 1 ? answered > 0 : under_way > 0; }));
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 60'000));
    if (under_way > 0) ++amid;
    served.kill(SIGKILL);
    const Ended ended = served.wait();
    EXPECT_EQ(ended.signal, SIGKILL) << ended.err;
    for (std::thread& thread : threads) thread.join();
    if (kill % 20 == 19 || kill == k_kills - 1) {
      const std::vector<std::string> there = ids_in(where);
      const std::set<std::string> once(there.begin(), there.end());
      EXPECT_EQ(once.size(), there.size());
      for (const std::string& id : acknowledged) EXPECT_TRUE(once.contains(id)) << id;
    }
    if (HasFailure()) FAIL() << "after " << kill + 1 << " kills";
  }
  EXPECT_GT(amid, k_kills / 2);
  EXPECT_GE(acknowledged.size(),
            static_cast<std::size_t>(k_kills / 2));  // however slow the machine
  std::printf("%d kills, %d of them amid uploads, %zu uploads answered\n", k_kills, amid,
              acknowledged.size());
}

INSTANTIATE_TEST_SUITE_P(Both, ServeKilled,
                         testing::Values(history::Kind::sqlite, history::Kind::postgres),
                         history::name_of);

}  // namespace serve_kill_test
}  // namespace weir::e2e
