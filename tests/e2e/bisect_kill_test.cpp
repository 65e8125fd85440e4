// weir bisect that is killed and goes on, and by times.
#include <chrono>
#include <thread>

#include <gmock/gmock.h>

#include "tests/e2e/engine_project.hpp"

namespace weir::e2e {
namespace bisect_kill_test {

using ::testing::HasSubstr;

class BisectLong : public EngineProject {
 protected:
  [[nodiscard]] fs::path journal() const {
    if (!fs::exists(scratch_ / "out/bisect")) return {};
    for (const auto& entry : fs::directory_iterator(scratch_ / "out/bisect")) {
      return entry.path() / "bisect.jsonl";
    }
    return {};
  }
  [[nodiscard]] std::size_t lines() const {
    const std::string text = journal().empty() ? "" : slurp(journal());
    return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  }
};

TEST_F(BisectLong, FindsOneDropOfSpeedAmongTwoHundredCommits) {
  make(line(200, 137, 61, tenth(200, {60, 61})));
  const std::string before = checkout();
  const Ended ended = bisect({sha(0), "main", "--times"});
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  const Json json = json_of(ended);
  EXPECT_EQ(json["first_bad"], sha(61));
  const Json rate =
      metric_of(cell_of(json["verdict"], "mine/m/metal/decode"), "decode_tokens_per_second");
  EXPECT_EQ(rate["verdict"], "fail");
  EXPECT_NEAR(rate["change"].get<double>(), 10.0 / 11.5 - 1, 0.01);
  EXPECT_LE(built().size(), 2 + 8 + 5U) << ended.err;
  EXPECT_EQ(checkout(), before);
}

TEST_F(BisectLong, GoesOnAfterAKillAtAnyMoment) {
  make(line(200, 137, 61, tenth(200, {136, 137})));
  const std::string before = checkout();
  // Killed three times: after its first commits, and each time two further on.
  for (int kills = 0; kills < 3; ++kills) {
    // One more than it is killed after, and what a kill cut off: it is not over before.
    hold_builds_after(built().size() + (kills == 0 ? 5 : 3));
    Weir running(scratch_,
                 words(kills == 0 ? std::vector<std::string>{sha(0), "main"}
                                  : std::vector<std::string>{"--resume"}),
                 env());
    const std::size_t until = lines() + (kills == 0 ? 4 : 2);
    EXPECT_TRUE(eventually([&] { return lines() >= until || !running.running(); }));
    // Somewhere within a checkout, a build or a measurement.
    std::this_thread::sleep_for(std::chrono::milliseconds(15 * kills));
    running.kill(SIGKILL);
    EXPECT_EQ(running.wait().signal, SIGKILL) << "it was over before it could be killed";
  }
  fs::remove(scratch_ / "builds.most");
  // And as if the power had failed within a line.
  std::ofstream(journal(), std::ios::app) << "{\"commit\": \"12";
  const Ended ended = bisect({"--resume"});
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_EQ(json_of(ended)["first_bad"], sha(137));
  EXPECT_THAT(ended.err, HasSubstr("\"change 137\""));
  // Only what a kill cut off is built again.
  const std::vector<std::string> all = built();
  const std::set<std::string> once(all.begin(), all.end());
  EXPECT_LE(all.size() - once.size(), 3U);
  EXPECT_LE(once.size(), 2 + 8 + 5U);
  EXPECT_EQ(checkout(), before);
}

}  // namespace bisect_kill_test
}  // namespace weir::e2e
