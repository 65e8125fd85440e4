// The HIP probe on a stand-in runtime: counts known by hand.
#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gate/base/text.hpp"
#include "gate/probes/read/locate.hpp"
#include "gate/probes/twin/runtime/blob.h"

#include "tests/probes/old_systems.hpp"
#include "tests/probes/support.hpp"

namespace weir::probes {
namespace hip_test {

using profile::TransferCount;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::UnorderedElementsAre;

const std::string k_probe = WEIR_BINARY_DIR "/lib/weir/probes/libweir_hip.so";

struct Played {
  Ran ran;
  std::vector<ProbeFile> files;
  profile::ProbeCounts counts;

  explicit Played(const std::vector<std::string>& argv,
                  std::map<std::string, std::string> env = {}) {
    const Folder folder;
    env.insert({{"WEIR_PROBE_DIR", folder.path()}, {"LD_PRELOAD", k_probe}});
    ran = run(argv, env);
    files = probe_files(folder.path());
    counts = merge("hip", files);
  }
};

void expect_all(const Played& played) {
  ASSERT_EQ(played.ran.status, 0) << played.ran.err;
  EXPECT_EQ(played.ran.err, "");
  const std::map<std::string, std::int64_t> expected = {
      {"dispatches", 10},  // 3 + 5 + 2
      {"barriers", 1},     // a stream that waits for an event
      {"copies", 4},       // 2 + 2: what hipMemcpy calls within is its own affair
      {"submits", 14},     // one each
      {"syncs", 4},        // null 2, a 1, b 1
      {"waits", 6},        // hipMemcpy 2, device 2, event 1, stream 1
      {"polls", 3},        // not ready twice, then done
      {"markers", 1},      // one event recorded
      {"command_buffers", 0},
      {"indirect_dispatches", 0},
      {"graph_launches", 0},
      {"graph_instantiations", 0},
      {"hipblas_calls", 0},
      {"device_memory_bytes", 0},
      {"allocations", 0},
      {"device_memory_peak_bytes", 0},
      {"out_of_memory", 0},
      {"device_memory_steady_bytes", 0},
      {"small_read_backs", 1},
  };
  EXPECT_EQ(played.counts.counts, expected);
  EXPECT_EQ(played.counts.kernels, (std::map<std::string, std::int64_t>{
                                       {"kernel_one", 7}, {"kernel_two", 1}, {"of_a_module", 2}}));
  EXPECT_TRUE(played.counts.kernels_named);
  EXPECT_THAT(played.counts.transfers,
              UnorderedElementsAre(TransferCount{"set", "program", "device", 1, 64},
                                   TransferCount{"get", "device", "program", 1, 16},
                                   TransferCount{"copy", "device", "device", 1, 32},
                                   TransferCount{"fill", "program", "device", 1, 64}));
  ASSERT_THAT(played.counts.devices, SizeIs(1));
  EXPECT_EQ(played.counts.devices[0].name, "Stand-in GPU");
  EXPECT_THAT(played.counts.devices[0].device_class, testing::StartsWith("hip-1002-"));
  ASSERT_THAT(played.files, SizeIs(1));
  EXPECT_EQ(played.files[0].devices[0].type, "integrated");
  EXPECT_THAT(played.counts.warnings, IsEmpty());
}

TEST(HipProbe, CountsWhatAProgramAsksItsStreamsFor) {
  expect_all(Played({WEIR_HIP_SCENES, "all"}));
}

// Engines load their backends as plug-ins: the runtime is then in nobody's sight but theirs. Wheels
// give libraries other names, and a twin's names are all of one file.
TEST(HipProbe, FindsARuntimeThatWasLoadedPrivatelyWhateverItsName) {
  for (const char* name : {"amdhip64", "amdhip64-1ce46982", "hipblas-1ce46982", "rocblas"}) {
    SCOPED_TRACE(name);
    const std::string library = fmt::format("{}/libhip_scenes_{}.so", WEIR_HIP_LIBRARIES, name);
    expect_all(Played({WEIR_GGML_HOST, "all", library}));
  }
}

TEST(HipProbe, CountsTheCallsOfAGraphEachTimeItIsLaunched) {
  const Played played({WEIR_HIP_SCENES, "graphs"});
  ASSERT_EQ(played.ran.status, 0) << played.ran.err;
  const auto& counts = played.counts.counts;
  EXPECT_EQ(counts.at("dispatches"), 10 * 3);  // and none for the calls that were captured
  EXPECT_EQ(counts.at("copies"), 10 * 2);
  EXPECT_EQ(counts.at("submits"), 10);
  EXPECT_EQ(counts.at("command_buffers"), 10);
  EXPECT_EQ(counts.at("graph_launches"), 10);
  EXPECT_EQ(counts.at("graph_instantiations"), 2);
  EXPECT_EQ(counts.at("syncs"), 1);
  EXPECT_EQ(counts.at("barriers"), 0);
  EXPECT_EQ(counts.at("markers"), 0);
  EXPECT_EQ(played.counts.kernels,
            (std::map<std::string, std::int64_t>{{"kernel_one", 20}, {"kernel_two", 10}}));
  EXPECT_THAT(played.counts.warnings, IsEmpty());
  ASSERT_THAT(played.files, SizeIs(1));
  for (const ProbeLaunch& launch : played.files[0].launches) {
    if (launch.count == 0) continue;
    EXPECT_EQ(launch.dimensions, 2U);
    EXPECT_THAT(launch.global, testing::ElementsAre(4 * 32, 2, 1));
    EXPECT_THAT(launch.local, testing::ElementsAre(32, 1, 1));
    EXPECT_EQ(launch.shared, 128U);
  }
}

TEST(HipProbe, WarnsOfAGraphThatWasNotCaptured) {
  const Played played({WEIR_HIP_SCENES, "unseen"});
  EXPECT_EQ(played.counts.counts.at("dispatches"), 0);
  EXPECT_EQ(played.counts.counts.at("graph_launches"), 1);
  EXPECT_THAT(played.counts.warnings, SizeIs(1));
}

// However many kernels the library runs, in a graph and outside.
TEST(HipProbe, CountsACallOfALibraryAsOneDispatch) {
  const Played played({WEIR_HIP_SCENES, "libraries"});
  ASSERT_EQ(played.ran.status, 0) << played.ran.err;
  std::map<std::string, std::int64_t> expected;
  for (const char* name :
       {"hipblasGemmEx", "hipblasGemmEx_v2", "hipblasGemmBatchedEx", "hipblasGemmBatchedEx_v2",
        "hipblasGemmStridedBatchedEx", "hipblasGemmStridedBatchedEx_v2", "hipblasSgemm",
        "hipblasHgemm", "hipblasSgemmBatched", "hipblasSgemmStridedBatched", "hipblasStrsmBatched",
        "hipblasLtMatmul", "rocblas_gemm_ex", "rocblas_gemm_batched_ex",
        "rocblas_gemm_strided_batched_ex", "rocblas_sgemm", "rocblas_hgemm"}) {
    expected[name] = 1 + 2;
  }
  EXPECT_EQ(played.counts.kernels, expected);
  const auto all = static_cast<std::int64_t>(expected.size());
  EXPECT_EQ(played.counts.counts.at("dispatches"), 3 * all);
  EXPECT_EQ(played.counts.counts.at("hipblas_calls"), 3 * all);
  EXPECT_EQ(played.counts.counts.at("submits"), all + 2);
}

TEST(HipProbe, TellsKernelsOfOneNameApartByTheirBundleAndWhatTheyCost) {
  const Played first({WEIR_HIP_SCENES, "costs"});
  ASSERT_EQ(first.ran.status, 0) << first.ran.err;
  EXPECT_THAT(first.counts.code_facts, IsEmpty()) << "no table";
  const std::vector<std::string> places = text::lines(text::trim(first.ran.out));
  ASSERT_THAT(places, SizeIs(2));
  std::vector<weir_runtime_kernel> kernels(2);
  constexpr std::string_view k_name = "_Z5scalePf";
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    kernels[i].key = weir_probe::kernel_key(k_name.data(), k_name.size(), std::stoull(places[i]));
    kernels[i].code = 0x1000 + i;
    kernels[i].code_bytes = 4096;
    kernels[i].spilled_registers = i == 0 ? 0 : 51;
  }
  std::ranges::sort(kernels, {}, &weir_runtime_kernel::key);
  const weir_runtime_kernels head{WEIR_RUNTIME_KERNELS_MAGIC, 2, sizeof(weir_runtime_kernel)};
  std::string table(reinterpret_cast<const char*>(&head), sizeof head);
  table.append(reinterpret_cast<const char*>(kernels.data()), 2 * sizeof kernels[0]);
  const Folder folder;
  ASSERT_TRUE(sys::RealFiles().write_atomic(folder.path() + "/kernels", table));
  const Played played({WEIR_HIP_SCENES, "costs"},
                      {{WEIR_RUNTIME_KERNELS_VARIABLE, folder.path() + "/kernels"}});
  ASSERT_EQ(played.ran.status, 0) << played.ran.err;
  EXPECT_EQ(played.counts.kernels, (std::map<std::string, std::int64_t>{{"scale", 6}}));
  EXPECT_EQ(played.counts.codes,
            (std::map<std::string, std::int64_t>{{"scale@0000000000001000", 2},
                                                 {"scale@0000000000001001", 2}}));
  // 10 groups of 100 threads are 40 groups of 32, 4 of 256 are 32.
  std::map<std::string, std::int64_t> costs{{"registers", 128},   {"scratch_bytes", 180},
                                            {"code_bytes", 4096}, {"shared_memory_bytes", 512},
                                            {"occupancy", 32},    {"spilled_registers", 0}};
  EXPECT_EQ(played.counts.code_facts.at("0000000000001000").costs, costs);
  costs["occupancy"] = 3 * 9;  // 3 groups of 257 threads
  costs["spilled_registers"] = 51;
  EXPECT_EQ(played.counts.code_facts.at("0000000000001001").costs, costs);
  EXPECT_THAT(played.counts.code_facts.at("0000000000001000").options, IsEmpty());
}

TEST(HipProbe, AsksWhereCopiesGoThatLeaveItToTheAddresses) {
  EXPECT_THAT(Played({WEIR_HIP_SCENES, "directions"}).counts.transfers,
              UnorderedElementsAre(TransferCount{"set", "program", "device", 1, 1},
                                   TransferCount{"get", "device", "program", 1, 2},
                                   TransferCount{"copy", "device", "device", 1, 4},
                                   TransferCount{"copy", "program", "program", 1, 8}));
}

TEST(HipProbe, CountsTheMemoryThatDevicesAreAskedFor) {
  const Played played({WEIR_HIP_SCENES, "memory"});
  ASSERT_EQ(played.ran.status, 0) << played.ran.err;
  const auto& counts = played.counts.counts;
  EXPECT_EQ(counts.at("allocations"), 4);
  EXPECT_EQ(counts.at("device_memory_peak_bytes"), 2000 + 500 + 4096);
  EXPECT_EQ(counts.at("device_memory_steady_bytes"), 2000 + 500 + 4096);
  EXPECT_EQ(counts.at("device_memory_bytes"), 2000 + 500 + 4096);
  EXPECT_EQ(counts.at("out_of_memory"), 1);
}

TEST(HipProbe, LosesNothingToSixteenThreads) {
  const Played played({WEIR_HIP_SCENES, "threads"});
  ASSERT_EQ(played.ran.status, 0) << played.ran.err;
  EXPECT_EQ(played.counts.counts.at("dispatches"), 16 * 1000);
  EXPECT_EQ(played.counts.counts.at("syncs"), 16 * 100);
  EXPECT_EQ(played.counts.kernels.at("kernel_two"), 16 * 500);
}

TEST(HipProbe, KeepsTheCountsOfAProcessThatIsKilled) {
  const Played played({WEIR_HIP_SCENES, "killed"});
  EXPECT_EQ(played.ran.status, 128 + SIGKILL);
  EXPECT_EQ(played.counts.counts.at("dispatches"), 10);
}

TEST(HipProbe, LetsTheProgramRunWhereItCannotCount) {
  const Ran ran =
      run({WEIR_HIP_SCENES, "all"}, {{"WEIR_PROBE_DIR", "/no/such"}, {"LD_PRELOAD", k_probe}});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_THAT(text::lines(text::trim(ran.err)), testing::ElementsAre(HasSubstr("/no/such")));
  // A program without HIP is left alone altogether.
  const Played none({"/bin/true"});
  EXPECT_EQ(none.ran.status, 0);
  EXPECT_THAT(none.files, IsEmpty());
}

TEST(HipProbe, IsAttachedByTheEnvironmentThatIsNamedForIt) {
  const sys::RealFiles files;
  const auto places = locate(files);
  ASSERT_TRUE(places) << places.error().message;
  const Folder folder;
  const auto env = environment_for("hip", *places, folder.path(), files,
                                   [](std::string_view) { return std::nullopt; });
  ASSERT_TRUE(env) << env.error().message;
  EXPECT_EQ(run({WEIR_HIP_SCENES, "killed"}, *env).status, 128 + SIGKILL);
  EXPECT_EQ(merge("hip", probe_files(folder.path())).counts.at("dispatches"), 10);
  EXPECT_THAT(probe_devices().at("hip"), testing::ElementsAre("hip"));
}

TEST(HipProbe, NeedsLibcAndLibdlAloneAndExportsOnlyWhatItStandsInFrontOf) {
  const auto exported = expect_loads_on_old_systems(k_probe, k_libc_and_libdl);
  EXPECT_THAT(exported, testing::Each(testing::ContainsRegex("^(hip|__hip|rocblas_|nccl)")));
  EXPECT_GT(exported.size(), 40U);
}

}  // namespace hip_test
}  // namespace weir::probes
