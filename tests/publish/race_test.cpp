// Tests concurrent posters. Random orders of their requests are played; nothing depends on the
// machine's speed.
#include <condition_variable>
#include <mutex>
#include <random>
#include <thread>

#include <gmock/gmock.h>

#include "gate/publish/post.hpp"

#include "tests/publish/store_api.hpp"

namespace weir::publish {
namespace race_test {

using ::testing::HasSubstr;
using tests::GithubStore;
using tests::StoreApi;

const std::string k_sha(40, 'a');

// Lets one of several threads at a time run up to its next request; the thread is drawn at random.
class Turns {
 public:
  Turns(std::size_t posters, unsigned seed) : alive_(posters, true), random_(seed) { draw(); }

  // Blocks until it is this poster's turn. Until its next call, it runs alone.
  void wait(std::size_t poster) {
    std::unique_lock lock(mutex_);
    if (started_.size() < alive_.size()) {
      started_.push_back(poster);
    } else {
      draw();
    }
    changed_.notify_all();
    changed_.wait(lock, [&] { return started_.size() == alive_.size() && turn_ == poster; });
  }
  void end(std::size_t poster) {
    const std::lock_guard lock(mutex_);
    alive_[poster] = false;
    draw();
    changed_.notify_all();
  }

 private:
  void draw() {
    std::vector<std::size_t> who;
    for (std::size_t i = 0; i < alive_.size(); ++i) {
      if (alive_[i]) who.push_back(i);
    }
    if (!who.empty()) turn_ = who[random_() % who.size()];
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<bool> alive_;
  std::vector<std::size_t> started_;
  std::size_t turn_ = 0;
  std::mt19937 random_;
};

struct Race {
  std::vector<RunNumber> runs;
  int create_lag = 0, delete_lag = 0;
  bool there_before = false;  // a comment of an older run
};

void play(const Race& race, unsigned seed) {
  GithubStore store;
  store.add_pull(7, k_sha);
  if (race.there_before) {
    store.add_comment(7, "github-actions[bot]",
                      Marker{"gate", {1, 1}, 7, "main"}.hidden() + "\nrun 1");
  }
  store.create_lag = race.create_lag;
  store.delete_lag = race.delete_lag;
  Turns turns(race.runs.size(), seed);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < race.runs.size(); ++i) {
    threads.emplace_back([&, i] {
      StoreApi api(store);
      api.before = [&, i](const ApiRequest&) { turns.wait(i); };
      const RunNumber run = race.runs[i];
      Texts texts;
      texts.comment = fmt::format("run {}.{}", run.id, run.attempt);
      texts.check = {"failure", texts.comment, texts.comment, {}};
      texts.status = {"failure", texts.comment};
      const Target target{.repository = "o/r",
                          .pull_request = 7,
                          .sha = k_sha,
                          .run = run,
                          .run_url = make_run_url("https://github.com", "o/r", run),
                          .base = "main"};
      (void)publish::post(api, target, texts, {}, [&, i](double) { turns.wait(i); });
      turns.end(i);
    });
  }
  for (std::thread& thread : threads) thread.join();
  const RunNumber newest = *std::max_element(race.runs.begin(), race.runs.end());
  const std::string wanted = fmt::format("run {}.{}", newest.id, newest.attempt);
  const auto about = [&] { return fmt::format("seed {}", seed); };
  ASSERT_EQ(store.comments(7).size(), 1U) << about();
  EXPECT_THAT(store.comments(7)[0]["body"].get<std::string>(), HasSubstr(wanted)) << about();
  ASSERT_FALSE(store.check_runs().empty());
  EXPECT_EQ(store.check_runs().back()["output"]["title"], wanted) << about();
  ASSERT_FALSE(store.statuses(k_sha).empty());
  EXPECT_EQ(store.statuses(k_sha)[0]["description"], wanted) << about();
}

TEST(RacingPosters, ConvergeOnOneCommentOfTheNewestRun) {
  for (unsigned seed = 0; seed < 500; ++seed) play({.runs = {{2, 1}, {3, 1}}}, seed);
}

TEST(RacingPosters, OfOneRunAndItsRerunConverge) {
  for (unsigned seed = 0; seed < 300; ++seed) play({.runs = {{2, 2}, {2, 1}}}, seed);
}

TEST(RacingPosters, ConvergeWhereListsLag) {
  for (unsigned seed = 0; seed < 500; ++seed) {
    play({.runs = {{2, 1}, {3, 1}}, .create_lag = 1, .delete_lag = 2}, seed);
  }
}

TEST(RacingPosters, ThreeOfThemConverge) {
  for (unsigned seed = 0; seed < 500; ++seed) play({.runs = {{3, 1}, {2, 1}, {4, 1}}}, seed);
}

TEST(RacingPosters, EditTheCommentThatWasThere) {
  for (unsigned seed = 0; seed < 500; ++seed) {
    play({.runs = {{3, 1}, {2, 1}}, .there_before = true}, seed);
  }
}

}  // namespace race_test
}  // namespace weir::publish
