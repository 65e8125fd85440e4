// 200 readers and 20 writers at once: everybody is answered, nothing is lost, nothing is doubled.
#include <atomic>
#include <map>
#include <mutex>
#include <set>

#include "tests/e2e/serve_support.hpp"

namespace weir::e2e {
namespace serve_load_test {

using ::testing::AnyOf;

constexpr int k_readers = 200, k_reads = 12, k_writers = 20, k_writes = 12;

using ServeUnderLoad = Serve;

TEST_P(ServeUnderLoad, AnswersEverybodyAndLosesNothing) {
  const std::string where = fresh();
  const std::string mine = token(where);
  Served served(scratch_, where, {"--public"});
  {
    Client client = served.client(mine);
    for (int number = 0; number < 20; ++number)
      ASSERT_EQ(client.upload(make_lines(99, number)).status, 201);
  }
  const std::vector<std::string> paths{"/",
                                       "/api/v1/series?project=default&cell=a/b/vulkan/*",
                                       "/api/v1/verdicts?project=default",
                                       "/healthz",
                                       "/api/v1/changes?project=default",
                                       "/metrics"};
  std::mutex mutex;
  std::map<int, int> read;  // status -> how often
  std::set<std::string> acknowledged;
  std::vector<std::thread> threads;
  for (int reader = 0; reader < k_readers; ++reader) {
    threads.emplace_back([&, reader] {
      Client client = served.client();
      for (int i = 0; i < k_reads;) {
        const auto answer = client.get(paths[static_cast<std::size_t>(reader + i) % paths.size()]);
        {
          const std::lock_guard lock(mutex);
          ++read[answer.status];
        }
        if (answer.status == 429 || answer.status == 503) {  // comes again later
          std::this_thread::sleep_for(std::chrono::milliseconds(100));
        } else {
          ++i;
        }
      }
    });
  }
  for (int writer = 0; writer < k_writers; ++writer) {
    threads.emplace_back([&, writer] {
      Client client = served.client(mine);
      for (int number = 0; number < k_writes;) {
        const auto answer = client.upload(make_lines(writer, number), make_id(writer, number));
        if (answer.status == 429 || answer.status == 503) {
          std::this_thread::sleep_for(std::chrono::milliseconds(100));
          continue;
        }
        EXPECT_EQ(answer.status, 201) << answer.body << client.failure();
        const std::lock_guard lock(mutex);
        acknowledged.insert(make_id(writer, number));
        ++number;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(served.client().get("/healthz").status, 200);
  EXPECT_EQ(served.stop().exit_code, 0);
  for (const auto& [status, times] : read) {
    EXPECT_THAT(status, AnyOf(200, 429, 503)) << times << " times";
  }
  EXPECT_EQ(read[200], k_readers * k_reads);
  const std::vector<std::string> there = ids_in(where);
  EXPECT_EQ(there.size(), static_cast<std::size_t>(k_writers * k_writes + 20));
  const std::set<std::string> once(there.begin(), there.end());
  EXPECT_EQ(once.size(), there.size());
  for (const std::string& id : acknowledged) EXPECT_TRUE(once.contains(id)) << id;
}

INSTANTIATE_TEST_SUITE_P(Both, ServeUnderLoad,
                         testing::Values(history::Kind::sqlite, history::Kind::postgres),
                         history::name_of);

}  // namespace serve_load_test
}  // namespace weir::e2e
