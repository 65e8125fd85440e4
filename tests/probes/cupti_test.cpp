// The probe that CUPTI tells, on a stand-in for CUDA and CUPTI: counts known by hand. It has not
// run on a GPU.
#include "gate/probes/read/locate.hpp"

#ifdef WEIR_CUDA_SCENES
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gate/base/text.hpp"

#include "tests/probes/old_systems.hpp"
#include "tests/probes/support.hpp"

namespace weir::probes {
namespace cupti_test {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

const std::string k_probe = WEIR_BINARY_DIR "/lib/weir/probes/libweir_cupti.so";

TEST(CuptiProbe, CountsTheOutermostCallsOfRuntimeAndDriver) {
  const Folder folder;
  const Ran ran = run({WEIR_CUDA_SCENES}, {{"WEIR_PROBE_DIR", folder.path()},
                                           {"CUDA_INJECTION64_PATH", k_probe},
                                           {"LD_LIBRARY_PATH", WEIR_CUDA_STAND_INS}});
  ASSERT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(ran.err, "");
  const auto files = probe_files(folder.path());
  const profile::ProbeCounts counts = merge("cupti", files);
  const std::map<std::string, std::int64_t> expected = {
      {"dispatches", 26},                  // 5 + 1 + 10 graphs of 2
      {"barriers", 0},    {"copies", 11},  // one in each graph, and 1
      {"submits", 17},                     // 5 + 1 + 10 + 1
      {"syncs", 3},       {"waits", 3},    // 2, and the copy
      {"polls", 2},       {"markers", 0}, {"command_buffers", 10}, {"indirect_dispatches", 0},
  };
  EXPECT_EQ(counts.counts, expected);
  EXPECT_EQ(counts.kernels, (std::map<std::string, std::int64_t>{
                                {"of_the_runtime", 5}, {"of_the_driver", 1}, {"in_a_graph", 20}}));
  EXPECT_THAT(counts.transfers,
              ElementsAre(profile::TransferCount{"get", "device", "program", 1, 48}));
  ASSERT_THAT(counts.devices, SizeIs(1));
  EXPECT_EQ(counts.devices[0].api, "cuda");
  EXPECT_EQ(counts.devices[0].name, "Stand-in GPU");
}

TEST(CuptiProbe, IsBelievedWhereNothingElseSawTheDevice) {
  const Folder folder;
  run({WEIR_CUDA_SCENES}, {{"WEIR_PROBE_DIR", folder.path()},
                           {"CUDA_INJECTION64_PATH", k_probe},
                           {"LD_LIBRARY_PATH", WEIR_CUDA_STAND_INS}});
  const std::string name = "cuda";
  const auto counts = collect_all(sys::RealFiles(), folder.path(), {&name, 1});
  ASSERT_TRUE(counts);
  ASSERT_THAT(*counts, SizeIs(1));
  EXPECT_EQ(counts->front().probe, "cuda");
  EXPECT_EQ(counts->front().counts.at("dispatches"), 26);
  EXPECT_THAT(counts->front().warnings, ElementsAre(HasSubstr("counted by cupti alone")));
}

TEST(CuptiProbe, SaysThatAnotherProfilerHoldsCuptiInsteadOfCountingNothing) {
  const Folder folder;
  const Ran ran = run({WEIR_CUDA_SCENES}, {{"WEIR_PROBE_DIR", folder.path()},
                                           {"CUDA_INJECTION64_PATH", k_probe},
                                           {"STAND_IN_HELD", "1"},
                                           {"LD_LIBRARY_PATH", WEIR_CUDA_STAND_INS}});
  EXPECT_EQ(ran.status, 0);
  EXPECT_EQ(ran.out, "done\n");
  EXPECT_THAT(text::lines(text::trim(ran.err)), ElementsAre(HasSubstr("another profiler")));
  const auto counts = collect(sys::RealFiles(), folder.path(), "cupti");
  ASSERT_FALSE(counts);
  EXPECT_EQ(counts.error().code, Code::unavailable);
}

TEST(CuptiProbe, NeedsLibcAndLibdlAlone) { expect_loads_on_old_systems(k_probe, k_libc_and_libdl); }

}  // namespace cupti_test
}  // namespace weir::probes
#endif
