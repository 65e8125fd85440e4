// Tests locks between threads and between processes.
#include "gate/sys/lock.hpp"

#include <cstdlib>
#include <fstream>
#include <functional>

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gate/sys/clock.hpp"
#include "gate/sys/files.hpp"

namespace weir::sys {
namespace lock_test {

// A pause that does not wait: calls `meanwhile` with the number of each wait, from 1.
class Waits final : public Pause {
 public:
  explicit Waits(std::function<void(int)> meanwhile) : meanwhile_(std::move(meanwhile)) {}
  [[nodiscard]] bool wait(double, const Stop& stop) override {
    meanwhile_(++number);
    return !stop.requested();
  }
  int number = 0;

 private:
  std::function<void(int)> meanwhile_;
};

class Locking : public testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/weir-lock-XXXXXX";
    root_ = mkdtemp(pattern);
    folder_ = root_ + "/locks";
  }
  void TearDown() override { (void)RealFiles().remove_tree(root_); }

  // Takes the locks at once, or returns null.
  std::unique_ptr<Held> try_for(std::vector<LockWanted> wanted) {
    Stop at_once;
    at_once.request();
    auto acquired = HostLocks(folder_, real_pause_).acquire(std::move(wanted), at_once, {});
    return acquired ? std::move(*acquired) : nullptr;
  }
  std::string root_, folder_;
  RealPause real_pause_;
};

using enum Share;

TEST_F(Locking, ExcludesWhatMustNotRunTogether) {
  struct Case {
    std::vector<LockWanted> first, second;
    bool together;
  };
  const Case cases[] = {
      {{{"cpu", exclusive}}, {{"cpu", exclusive}}, false},
      {{{"cpu", exclusive}}, {{"cpu", shared}}, false},
      {{{"cpu", shared}}, {{"cpu", exclusive}}, false},
      {{{"cpu", shared}}, {{"cpu", shared}}, true},
      {{{"cpu", exclusive}}, {{"vulkan", exclusive}}, true},
      {{{"cpu", shared}, {"vulkan", exclusive}}, {{"cpu", shared}, {"cuda", exclusive}}, true},
      {{{"cpu", shared}, {"vulkan", exclusive}}, {{"vulkan", exclusive}}, false},
      // With several locks of one name, the strongest counts, and nobody waits for itself.
      {{{"cpu", shared}, {"cpu", exclusive}}, {{"cpu", shared}}, false},
  };
  for (const Case& c : cases) {
    {
      const auto first = try_for(c.first);
      ASSERT_NE(first, nullptr);
      EXPECT_EQ(try_for(c.second) != nullptr, c.together) << c.first[0].name;
    }
    EXPECT_NE(try_for(c.second), nullptr) << "free again";
  }
}

TEST_F(Locking, ExcludesOtherProcessesAndEndsWithThem) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    const auto acquired = try_for({{"cpu", exclusive}});
    if (write(ready[1], acquired ? "y" : "n", 1) != 1) _exit(1);
    for (;;) pause();
  }
  char got = 0;
  ASSERT_EQ(read(ready[0], &got, 1), 1);
  EXPECT_EQ(got, 'y');
  EXPECT_EQ(try_for({{"cpu", exclusive}}), nullptr);

  std::vector<std::string> lines;
  Waits waits([&](int number) {
    if (number < 3) return;
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  });
  const Stop never;
  const auto acquired =
      HostLocks(folder_, waits).acquire({{"cpu", exclusive}}, never, [&](const std::string& line) {
        lines.push_back(line);
      });
  EXPECT_TRUE(acquired.has_value());
  EXPECT_EQ(waits.number, 3) << "it ended with the process that had it";
  ASSERT_EQ(lines.size(), 1U) << "told once";
  EXPECT_EQ(lines[0], "waiting for cpu: another weir is using it (" + folder_ + "/cpu.lock)");
  close(ready[0]);
  close(ready[1]);
}

TEST_F(Locking, StopsWaitingWhenAsked) {
  const auto first = try_for({{"cpu", exclusive}});
  Stop stop;
  Waits waits([&](int number) {
    if (number == 3) stop.request();
  });
  const auto second = HostLocks(folder_, waits).acquire({{"cpu", exclusive}}, stop, {});
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().code, Code::interrupted);
}

TEST_F(Locking, MakesAPlaceThatAllUsersShareAndNothingElse) {
  umask(077);
  ASSERT_NE(try_for({{"../../evil name", exclusive}}), nullptr);
  umask(022);
  struct stat info {};
  ASSERT_EQ(stat(folder_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 01777U) << "sticky, for everybody";
  EXPECT_EQ(*RealFiles().list(folder_), std::vector<std::string>{"..-..-evil-name.lock"});
  ASSERT_EQ(stat((folder_ + "/..-..-evil-name.lock").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0644U) << "others can read it, and so lock it";
}

TEST_F(Locking, FollowsNoLinkThatSomebodyLaid) {
  ASSERT_NE(try_for({{"x", exclusive}}), nullptr);  // creates the folder
  const std::string target = root_ + "/target";
  ASSERT_EQ(symlink(target.c_str(), (folder_ + "/cpu.lock").c_str()), 0);
  EXPECT_EQ(try_for({{"cpu", exclusive}}), nullptr);
  EXPECT_FALSE(RealFiles().exists(target));

  const std::string linked = root_ + "/linked";
  ASSERT_EQ(symlink(folder_.c_str(), linked.c_str()), 0);
  const Stop never;
  const auto acquired = HostLocks(linked, real_pause_).acquire({{"cpu", exclusive}}, never, {});
  ASSERT_FALSE(acquired.has_value());
  EXPECT_NE(acquired.error().message.find("WEIR_LOCK_DIR"), std::string::npos);
}

}  // namespace lock_test
}  // namespace weir::sys
