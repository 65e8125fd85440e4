// Both sides of a hold: the probe's, as it is compiled into engines, and weir's.
#include "gate/probes/read/hold.hpp"

#include <atomic>
#include <thread>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "gate/probes/inject/writer/hold.h"
#include "gate/sys/files.hpp"

#include "tests/support/eventually.hpp"

namespace weir::probes {
namespace hold_test {

// The file of a process that can be held, as a probe makes it.
class Probe {
 public:
  Probe(const std::string& path, std::uint32_t flags, std::uint32_t pid = 17) {
    const int descriptor = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL, 0644);
    EXPECT_EQ(ftruncate(descriptor, k_page), 0);
    void* page = mmap(nullptr, k_page, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    EXPECT_NE(page, MAP_FAILED);
    close(descriptor);
    file_.header = static_cast<weir_probe_header*>(page);
    file_.header->version = WEIR_PROBE_VERSION;
    file_.header->flags = flags;
    file_.header->pid = pid;
    memcpy(file_.header->magic, WEIR_PROBE_MAGIC, sizeof file_.header->magic);
  }
  ~Probe() { munmap(file_.header, k_page); }
  Probe(const Probe&) = delete;
  Probe& operator=(const Probe&) = delete;

  void compute() {
    weir_probe::hold_back(&file_);
    ++computed;
  }
  std::atomic<int> computed{0};

 private:
  static constexpr std::size_t k_page = 4096;
  weir_probe::File file_{};
};

class Holds : public testing::Test {
 protected:
  sys::RealFiles files_;
  sys::ScratchFolder scratch_ = *sys::ScratchFolder::make_temporary(files_, "weir-hold-");
  static constexpr double k_long = 60;
};

TEST_F(Holds, AThreadComputesWhenItIsLetGo) {
  Probe probe(scratch_.at("a.weirprobe"), WEIR_PROBE_HOLDS);
  probe.compute();
  EXPECT_EQ(probe.computed, 1) << "nothing is held yet";
  Hold hold(files_, scratch_.path());
  EXPECT_EQ(hold.processes(), std::vector<std::int64_t>{17});
  for (int round = 0; round < 2; ++round) {
    hold.begin(k_long);
    EXPECT_FALSE(hold.is_held()) << "nobody is about to compute";
    std::thread engine([&] { probe.compute(); });
    EXPECT_TRUE(tests::eventually([&] { return hold.is_held(); }));
    EXPECT_EQ(probe.computed, 1 + 2 * round);
    hold.release();
    engine.join();
    EXPECT_FALSE(hold.gave_up());
    probe.compute();
    EXPECT_EQ(probe.computed, 3 + 2 * round) << "the hold is over";
  }
}

TEST_F(Holds, AThreadGoesOnByItselfWhenTheTimeIsOver) {
  Probe probe(scratch_.at("a.weirprobe"), WEIR_PROBE_HOLDS);
  Hold hold(files_, scratch_.path());
  hold.begin(0.01);
  probe.compute();
  EXPECT_TRUE(hold.is_held());
  EXPECT_TRUE(hold.gave_up());
  probe.compute();
  EXPECT_EQ(probe.computed, 2) << "it waits once";
}

TEST_F(Holds, EndWithWhoeverBeganThem) {
  Probe probe(scratch_.at("a.weirprobe"), WEIR_PROBE_HOLDS);
  { Hold(files_, scratch_.path()).begin(k_long); }
  probe.compute();
  EXPECT_EQ(probe.computed, 1);
}

TEST_F(Holds, AreOfProcessesWhoseProbesCanAlone) {
  Probe not_holding(scratch_.at("b.weirprobe"), 0, 18);
  EXPECT_TRUE(files_.write_unsynced(scratch_.at("c.weirprobe"), "short"));
  EXPECT_TRUE(files_.write_unsynced(scratch_.at("d.weirprobe"), std::string(4096, 'x')));
  EXPECT_TRUE(Hold(files_, scratch_.path()).processes().empty());
  EXPECT_TRUE(Hold(files_, scratch_.at("none")).processes().empty());
  Probe holding(scratch_.at("e.weirprobe"), WEIR_PROBE_HOLDS, 19);
  EXPECT_EQ(Hold(files_, scratch_.path()).processes(), std::vector<std::int64_t>{19});
}

}  // namespace hold_test
}  // namespace weir::probes
