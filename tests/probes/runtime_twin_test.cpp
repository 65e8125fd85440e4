// What the libraries of a HIP twin are told: of the GPU, and of a program's kernels. Both tables of
// runtimes.
#include "gate/probes/read/runtime_twin.hpp"

#include <cstring>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gate/base/find.hpp"
#include "gate/probes/read/amd_code.hpp"
#include "gate/probes/read/program_file.hpp"
#include "gate/probes/read/runtime_code.hpp"
#include "gate/probes/read/runtime_kernels.hpp"
#include "gate/probes/read/twin_folder.hpp"
#include "gate/probes/twin/runtime/blob.h"
#include "gate/unit/device_api.hpp"

#include "tests/probes/amd_bytes.hpp"
#include "tests/probes/support.hpp"

namespace weir::probes {
namespace runtime_twin_test {

using testing::ElementsAre;
using testing::HasSubstr;

Result<RuntimeTwin> compile_hip(const std::string& section, std::int64_t devices = 1) {
  WEIR_TRY(const Twin twin,
           read_twin(R"({"weir": {"schema": "weir.device/1", "hip": )" + section + "}}"));
  return compile_runtime_twin(twin, "hip", devices);
}

weir_hip_twin hip_blob_of(const RuntimeTwin& twin) {
  weir_hip_twin blob{};
  EXPECT_EQ(twin.blob.size(), sizeof blob);
  std::memcpy(&blob, twin.blob.data(), std::min(twin.blob.size(), sizeof blob));
  return blob;
}
weir_runtime_twin blob_of(const RuntimeTwin& twin) { return hip_blob_of(twin).common; }

TEST(RuntimeApis, AreThoseWhoseDevicesAreCountedAsTwinsOfARuntime) {
  std::vector<std::string> names;
  for (const RuntimeApi* api : runtime_apis()) {
    names.emplace_back(api->name);
    EXPECT_EQ(find_runtime_api(api->name), api);
    EXPECT_EQ(unit::find_device_api(api->name)->title, std::string(api->title));
    int last = -1;
    for (const RuntimeAttribute& attribute : api->attributes) {
      EXPECT_GT(attribute.number, last) << attribute.name;
      EXPECT_LT(attribute.number, int{WEIR_RUNTIME_ATTRIBUTES}) << attribute.name;
      last = attribute.number;
    }
    for (const char* name : api->names) {
      EXPECT_TRUE(std::ranges::any_of(api->stems, [&](std::string_view stem) {
        return std::string(name).starts_with(stem);
      })) << name;
    }
  }
  EXPECT_EQ(names, unit::devices_with(unit::DeviceApi::Twin::runtime));
  EXPECT_EQ(find_runtime_api("vulkan"), nullptr);
}

TEST(HipDescriptions, SayWhatHipAnswersByItsOwnNumbers) {
  const auto twin = compile_hip(R"({"name": "AMD Radeon RX 7900 XTX", "target": "gfx1100",
      "multiprocessors": 48, "memory_bytes": 25753026560, "used_bytes": 1024,
      "attributes": {"L2CacheSize": 6291456, "Integrated": 1}})",
                                3);
  ASSERT_TRUE(twin) << twin.error().message;
  EXPECT_EQ(twin->name, "AMD Radeon RX 7900 XTX");
  EXPECT_EQ(twin->target, "gfx1100");
  const weir_runtime_twin blob = blob_of(*twin);
  EXPECT_EQ(blob.devices, 3U);
  EXPECT_EQ(blob.total_bytes, 25753026560U);
  EXPECT_EQ(blob.used_bytes, 1024U);
  EXPECT_EQ(blob.driver_version, 60300000);
  EXPECT_EQ(blob.peers, 0U);
  EXPECT_STREQ(blob.name, "AMD Radeon RX 7900 XTX");
  EXPECT_STREQ(hip_blob_of(*twin).target, "gfx1100");
  // hipDeviceAttribute_t: cooperativeLaunch, integrated, l2CacheSize, major, threads of a block,
  // minor, multiprocessors, shared memory (usual, at most), threads of a wave
  const std::map<int, int> expected = {{10, 1},     {16, 1},     {19, 6291456}, {23, 11},
                                       {56, 1024},  {57, 2048},  {61, 0},       {63, 48},
                                       {72, 65536}, {74, 65536}, {75, 65536},   {87, 32}};
  for (const auto& [number, value] : expected) {
    EXPECT_EQ(blob.attributes[number], value) << number;
  }
}

TEST(HipDescriptions, FollowFromTheTarget) {
  struct Case {
    const char* target;
    int major, minor, wave, threads, shared;
  };
  for (const Case& c :
       {Case{"gfx908:sramecc+:xnack-", 9, 0, 64, 2560, 64 << 10},
        Case{"gfx90a:sramecc+:xnack-", 9, 0, 64, 2048, 64 << 10},
        Case{"gfx942", 9, 4, 64, 2048, 64 << 10}, Case{"gfx950", 9, 5, 64, 2048, 160 << 10},
        Case{"gfx1010", 10, 1, 32, 2560, 64 << 10}, Case{"gfx1030", 10, 3, 32, 2048, 64 << 10},
        Case{"gfx1151", 11, 5, 32, 2048, 64 << 10}, Case{"gfx1201", 12, 0, 32, 2048, 64 << 10}}) {
    const auto twin = compile_hip(fmt::format(
        R"({{"name": "x", "target": "{}", "multiprocessors": 1, "memory_bytes": 1}})", c.target));
    ASSERT_TRUE(twin) << c.target << ": " << twin.error().message;
    const weir_runtime_twin blob = blob_of(*twin);
    EXPECT_EQ(twin->major, c.major) << c.target;
    EXPECT_EQ(twin->minor, c.minor) << c.target;
    EXPECT_EQ(blob.attributes[23], c.major) << c.target;
    EXPECT_EQ(blob.attributes[61], c.minor) << c.target;
    EXPECT_EQ(blob.attributes[87], c.wave) << c.target;
    EXPECT_EQ(blob.attributes[57], c.threads) << c.target;
    EXPECT_EQ(blob.attributes[74], c.shared) << c.target;
    EXPECT_STREQ(hip_blob_of(*twin).target, c.target);
  }
}

TEST(HipDescriptions, AreRefusedWithWhatIsWrongInThem) {
  const auto problem = [](const std::string& more) {
    const auto twin =
        compile_hip(R"({"name": "x", "multiprocessors": 1, "memory_bytes": 1)" + more + "}");
    return twin ? "made" : twin.error().message;
  };
  EXPECT_THAT(problem(""), HasSubstr("target"));
  for (const char* target :
       {"gfx803", "sm_90", "gfx11-generic", "gfx9", "gfx1250", "gfx", "gfx90a:../x", ""}) {
    EXPECT_THAT(problem(fmt::format(R"(, "target": "{}")", target)),
                HasSubstr("weir.hip.target: \"" + std::string(target) + "\"; known here"))
        << target;
  }
  EXPECT_THAT(problem(R"(, "target": "gfx1100", "attributes": {"L2_CACHE_SIZE": 1})"),
              HasSubstr("weir.hip.attributes: \"L2_CACHE_SIZE\""));
  const auto unknown = compile_runtime_twin(Twin(), "hip", 1);
  ASSERT_FALSE(unknown);
  EXPECT_THAT(unknown.error().message, HasSubstr("it is not described for HIP (no weir.hip)"));
}

TEST(HipDescriptions, OfWeirAreTheSevenGpusThatTheirTargetsName) {
  const sys::RealFiles files;
  const std::string folder = WEIR_SOURCE_DIR "/configs/devices";
  std::map<std::string, std::string> targets;
  const auto entries = list_twins(files, {folder});
  ASSERT_TRUE(entries);
  for (const TwinEntry& entry : *entries) {
    if (!holds(entry.apis, "hip")) continue;
    const auto description = load_twin(files, {folder}, entry.name);
    const auto twin = compile_runtime_twin(description.value_or(Twin()), "hip", 1);
    ASSERT_TRUE(twin) << entry.name << ": " << twin.error().message;
    EXPECT_GT(blob_of(*twin).total_bytes, blob_of(*twin).used_bytes) << entry.name;
    EXPECT_GT(blob_of(*twin).attributes[19], 0) << entry.name;
    targets[entry.name] = twin->target;
  }
  EXPECT_EQ(targets, (std::map<std::string, std::string>{{"amd-mi210", "gfx90a:sramecc+:xnack-"},
                                                         {"amd-mi300x", "gfx942:sramecc+:xnack-"},
                                                         {"amd-mi355x", "gfx950:sramecc+:xnack-"},
                                                         {"amd-rx-6900-xt", "gfx1030"},
                                                         {"amd-rx-7900-xtx", "gfx1100"},
                                                         {"amd-rx-9070-xt", "gfx1201"},
                                                         {"amd-strix-halo", "gfx1151"}}));
}

// --- kernels

constexpr std::uint64_t k_address = 0x40000;

AmdKernelBytes kernel_of(const std::string& name, std::uint64_t registers) {
  return {name,
          std::string(80, 'c'),
          {{".vgpr_count", registers},
           {".sgpr_count", 30},
           {".vgpr_spill_count", 51},
           {".private_segment_fixed_size", 180},
           {".group_segment_fixed_size", 1024},
           {".max_flat_workgroup_size", 256},
           {".wavefront_size", 64}}};
}
std::string object_of(const std::string& target, std::uint64_t registers) {
  return AmdObjectBytes{.target = target, .kernels = {kernel_of("scale", registers)}}.str();
}
// A library with two bundles, each with a kernel of the same name for two GPUs.
std::string library() {
  const std::string bundles =
      bundle_bytes({{"gfx1100", object_of("gfx1100", 10)}, {"gfx942", object_of("gfx942", 20)}}) +
      std::string(4096, '\0') +
      bundle_bytes({{"gfx942", object_of("gfx942", 30)}, {"gfx1100", object_of("gfx1100", 40)}});
  return library_bytes(
      {{".text", 1, 0x1000, std::string(100, 't')}, {".hip_fatbin", 1, k_address, bundles}}, 62);
}
Result<RuntimeKernels> kernels_in(const std::string& bytes, const std::string& target) {
  const PartialFile file{bytes.size(), bytes_of(bytes)};
  return read_hip_kernels({&file, 1}, {.target = target});
}
std::vector<weir_runtime_kernel> entries_of(const RuntimeKernels& kernels) {
  weir_runtime_kernels head{};
  std::memcpy(&head, kernels.table.data(), sizeof head);
  EXPECT_EQ(head.magic, WEIR_RUNTIME_KERNELS_MAGIC);
  EXPECT_EQ(head.bytes, sizeof(weir_runtime_kernel));
  std::vector<weir_runtime_kernel> entries(head.count);
  EXPECT_EQ(kernels.table.size(), sizeof head + entries.size() * sizeof entries[0]);
  if (!entries.empty()) {
    std::memcpy(entries.data(), kernels.table.data() + sizeof head,
                entries.size() * sizeof(weir_runtime_kernel));
  }
  return entries;
}
std::uint64_t key_at(std::uint64_t address) { return weir_probe::kernel_key("scale", 5, address); }

TEST(HipKernels, OfOneNameAreToldApartByTheAddressOfTheirBundle) {
  const std::string bytes = library();
  const auto kernels = kernels_in(bytes, "gfx1100");
  ASSERT_TRUE(kernels) << kernels.error().message;
  EXPECT_EQ(kernels->kernels, 2U);
  EXPECT_THAT(kernels->targets, ElementsAre("gfx1100", "gfx942"));
  const std::uint64_t first = bytes.find("__CLANG_OFFLOAD_BUNDLE__");
  const std::uint64_t second = bytes.find("__CLANG_OFFLOAD_BUNDLE__", first + 1);
  std::map<std::uint64_t, std::uint32_t> registers;
  for (const weir_runtime_kernel& entry : entries_of(*kernels)) {
    registers[entry.key] = entry.registers;
  }
  EXPECT_EQ(registers, (std::map<std::uint64_t, std::uint32_t>{
                           {key_at(k_address), 10}, {key_at(k_address + second - first), 40}}));
}

TEST(HipKernels, NeedWhatTheirMetadataSays) {
  const auto kernels = kernels_in(library(), "gfx942:sramecc+:xnack-");
  ASSERT_TRUE(kernels) << kernels.error().message;
  const auto entries = entries_of(*kernels);
  ASSERT_EQ(entries.size(), 2U);
  for (const weir_runtime_kernel& entry : entries) {
    EXPECT_EQ(entry.registers, entry.key == key_at(k_address) ? 20U : 30U);
    EXPECT_EQ(entry.scalar_registers, 30U);
    EXPECT_EQ(entry.spilled_registers, 51U);
    EXPECT_EQ(entry.local_bytes, 180U);
    EXPECT_EQ(entry.shared_bytes, 1024U);
    EXPECT_EQ(entry.max_threads, 256U);
    EXPECT_EQ(entry.code_bytes, 80U);
    EXPECT_EQ(entry.flags, 0U);
    EXPECT_NE(entry.code, 0U);
  }
}

TEST(HipKernels, AreNoneForAGpuWithoutCode) {
  const auto kernels = kernels_in(library(), "gfx1201");
  ASSERT_TRUE(kernels) << kernels.error().message;
  EXPECT_EQ(kernels->kernels, 0U);
  EXPECT_TRUE(entries_of(*kernels).empty());
  EXPECT_THAT(kernels->targets, ElementsAre("gfx1100", "gfx942"));
}

TEST(HipKernels, FitByTheFeaturesOfTheirTarget) {
  struct Case {
    const char *code, *gpu;
    bool fits;
  };
  for (const Case& c :
       {Case{"gfx90a", "gfx90a", true}, Case{"gfx90a", "gfx90a:sramecc+:xnack-", true},
        Case{"gfx90a:xnack-", "gfx90a:sramecc+:xnack-", true},
        Case{"gfx90a:xnack+", "gfx90a:sramecc+:xnack-", false},
        Case{"gfx90a:sramecc-:xnack-", "gfx90a:sramecc+:xnack-", false},
        Case{"gfx90a:xnack+", "gfx90a", true}, Case{"gfx90a", "gfx906", false},
        Case{"", "gfx906", false}}) {
    EXPECT_EQ(runs_on(c.code, c.gpu), c.fits) << c.code << " on " << c.gpu;
  }
  const std::string bytes =
      library_bytes({{".hip_fatbin", 1, k_address,
                      bundle_bytes({{"gfx90a:xnack+", object_of("gfx90a:xnack+", 10)},
                                    {"gfx90a:xnack-", object_of("gfx90a:xnack-", 20)}})}},
                    62);
  const auto kernels = kernels_in(bytes, "gfx90a:sramecc+:xnack-");
  ASSERT_TRUE(kernels) << kernels.error().message;
  const auto entries = entries_of(*kernels);
  ASSERT_EQ(entries.size(), 1U);
  EXPECT_EQ(entries[0].registers, 20U);
}

TEST(HipKernels, SurviveDamageAndShortFiles) {
  const std::string intact = library();
  for (std::size_t size = 0; size < intact.size(); size += 61) {
    static_cast<void>(kernels_in(intact.substr(0, size), "gfx942"));
  }
  for (std::size_t at = 0; at < intact.size(); at += 17) {
    std::string damaged = intact;
    damaged[at] = static_cast<char>(0xff);
    static_cast<void>(kernels_in(damaged, "gfx942"));
  }
}

}  // namespace runtime_twin_test
}  // namespace weir::probes
