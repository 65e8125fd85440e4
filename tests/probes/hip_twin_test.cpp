// The libraries of a HIP twin: what a program is answered, as CUDA's of the same scenes
// (cuda_twin_test.cpp) but for what AMD's runtime does in another way.
#include <cstring>
#include <filesystem>
#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gate/base/text.hpp"
#include "gate/probes/twin/runtime/blob.h"

#include "tests/probes/old_systems.hpp"
#include "tests/probes/support.hpp"

namespace weir::probes {
namespace hip_twin_test {

using testing::ElementsAre;
using testing::HasSubstr;

// hipDeviceAttribute_t of hip_runtime_api.h.
constexpr int k_major = 23, k_max_threads = 56, k_shared = 74, k_shared_optin = 75, k_wave = 87;

weir_hip_twin described(const std::string& target, int major, int wave) {
  weir_hip_twin gpu{};
  weir_runtime_twin& twin = gpu.common;
  twin.magic = WEIR_RUNTIME_TWIN_MAGIC;
  twin.bytes = sizeof twin;
  twin.devices = 2;
  twin.total_bytes = std::uint64_t{4} << 30;
  twin.used_bytes = std::uint64_t{256} << 20;
  std::strcpy(twin.name, "Radeon");
  std::strcpy(gpu.target, target.c_str());
  twin.attributes[k_major] = major;
  twin.attributes[k_max_threads] = 1024;
  twin.attributes[k_shared] = twin.attributes[k_shared_optin] = 64 << 10;
  twin.attributes[k_wave] = wave;
  return gpu;
}

template <class Struct>
std::string bytes_of(const Struct& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

class HipLibraries : public testing::Test {
 protected:
  // `kernel`: facts for its function "_Z5scalePf".
  Ran play(const std::string& scene, const weir_hip_twin& twin = described("gfx1100", 11, 32),
           std::optional<weir_runtime_kernel> kernel = std::nullopt) {
    const weir_runtime_kernels head{WEIR_RUNTIME_KERNELS_MAGIC, kernel ? 1U : 0U,
                                    sizeof(weir_runtime_kernel)};
    std::string table = bytes_of(head);
    if (kernel) {
      constexpr std::string_view k_name = "_Z5scalePf";
      kernel->key = weir_probe::kernel_key(k_name.data(), k_name.size(), container());
      table += bytes_of(*kernel);
    }
    sys::RealFiles files;
    EXPECT_TRUE(files.write_atomic(place_.path() + "/twin", bytes_of(twin)));
    EXPECT_TRUE(files.write_atomic(place_.path() + "/kernels", table));
    return run_program(scene);
  }
  // Where the program's code bundle lies in its file.
  std::uint64_t container() {
    constexpr std::string_view k_words = "container ";
    const std::string out = run_program("container").out;
    const std::size_t at = out.find(k_words);
    EXPECT_NE(at, std::string::npos) << out;
    return std::stoull(out.substr(at + k_words.size()));
  }
  Ran run_program(const std::string& scene) {
    const std::string library = place_.path() + "/libamdhip64.so.6";
    std::filesystem::remove(library);
    std::filesystem::create_symlink(WEIR_HIP_TWIN_LIBRARY, library);
    return run({WEIR_RUNTIME_TWIN_PROGRAM, "hip", library, scene},
               {{"ASAN_OPTIONS", "detect_leaks=0:intercept_tls_get_addr=0"},
                {"WEIR_PROBE_DIR", place_.path()},  // sanitizers see the probe with the twin
                {WEIR_RUNTIME_TWIN_VARIABLE, place_.path() + "/twin"},
                {WEIR_RUNTIME_KERNELS_VARIABLE, place_.path() + "/kernels"}});
  }

  Folder place_;
};

TEST_F(HipLibraries, RefuseWhatARuntimeRefuses) {
  weir_runtime_kernel facts{};
  // Of 1536 registers in units of 24, 64 waves of 40: 16 at most, on 4 SIMDs; 8 waves a block.
  facts.registers = 40;
  const Ran ran = play("errors", described("gfx1100", 11, 32), facts);
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_THAT(
      text::lines(text::trim(ran.out)),
      ElementsAre("devices 0: 2", "unknown function 98", "block of 2048 threads 1",
                  "60 KiB shared 0", "allowed 0", "last error 1, then 0",
                  "wait within a capture 900", "launch behind it 901", "its end 901, graph none",
                  "wait for the device within one 900, its end 901",
                  "update by the same shape 0, by another 910", "memory 3840 of 4096 MiB",
                  "all of it 0, a byte more 2, freed 0, again 0, freed twice 1",
                  "with 1 GiB mapped 2816, without 3840 MiB", "blocks of 256 threads 8, of 2048 0",
                  "managed memory freed 0, 18446744073709551615 bytes 2"));
}

// As ROCm's clr has them.
TEST_F(HipLibraries, NameErrorsAsHipDoes) {
  const Ran ran = play("texts");
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_THAT(text::lines(text::trim(ran.out)),
              ElementsAre("devices 0: 2", "2 hipErrorOutOfMemory: out of memory",
                          "100 hipErrorNoDevice: no ROCm-capable device is detected",
                          "209 hipErrorNoBinaryForGpu: no kernel image is available for execution "
                          "on the device",
                          "400 hipErrorInvalidHandle: invalid resource handle",
                          "500 hipErrorNotFound: named symbol not found"));
}

TEST_F(HipLibraries, TellMemoryOfTheDevice) {
  EXPECT_THAT(play("addresses").out,
              HasSubstr("memory of the device 0, type 2, of the program 1\n"));
}

// The program has code for gfx90a:xnack- and gfx1100.
TEST_F(HipLibraries, LoadTheCodeOfTheirTargetAlone) {
  struct Case {
    const char* target;
    int error;
  };
  for (const auto& [target, error] :
       {Case{"gfx1100", 0}, Case{"gfx90a", 0}, Case{"gfx90a:sramecc+:xnack-", 0},
        Case{"gfx90a:sramecc+:xnack+", 209}, Case{"gfx1101", 209}, Case{"gfx110", 209}}) {
    const Ran ran = play("launch", described(target, 11, 32));
    EXPECT_THAT(ran.out, HasSubstr(fmt::format("launch {}\n", error))) << target;
    const std::string message = fmt::format(
        "weir: the HIP twin is {}: no kernel image is available, the engine has code for "
        "gfx90a:xnack-, gfx1100\n",
        target);
    EXPECT_EQ(ran.err, error == 0 ? "" : message);
  }
}

// By clr's formula (hip_platform.cpp): SIMDs of a processor × waves of a SIMD, in blocks of 256.
TEST_F(HipLibraries, HoldAsManyBlocksAsTheRuntimeSays) {
  struct Case {
    const char* target;
    int major, wave;
    std::uint32_t registers, scalar_registers, shared_bytes;
    int blocks;
  };
  for (const Case& row : {Case{"gfx1100", 11, 32, 40, 0, 0, 8},    // 16 waves of 32, 4 SIMDs
                          Case{"gfx1100", 11, 32, 256, 0, 0, 2},   // 1536 / 264: 5 waves
                          Case{"gfx90a", 9, 64, 40, 0, 0, 8},      // 8 waves of 64
                          Case{"gfx90a", 9, 64, 128, 0, 0, 4},     // 512 / 128
                          Case{"gfx90a", 9, 64, 40, 104, 0, 7},    // 800 / 112 scalar registers
                          Case{"gfx90a", 9, 64, 40, 0, 20480, 3},  // 64 KiB / 20 KiB
                          Case{"gfx90a", 9, 64, 513, 0, 0, 0}}) {
    weir_runtime_kernel facts{};
    facts.registers = row.registers;
    facts.scalar_registers = row.scalar_registers;
    facts.shared_bytes = row.shared_bytes;
    EXPECT_THAT(play("errors", described(row.target, row.major, row.wave), facts).out,
                HasSubstr(fmt::format("blocks of 256 threads {}, of 2048 0\n", row.blocks)))
        << row.target << " " << row.registers;
  }
}

TEST_F(HipLibraries, KeepWhatCopiesWroteAfterAKernel) {
  const Ran ran = play("values");
  EXPECT_THAT(ran.out, HasSubstr("written after it 7 0x1010101 7\n")) << ran.err;
}

TEST_F(HipLibraries, ServeManyThreadsAndOlderEngines) {
  EXPECT_EQ(play("threads").status, 0);
  EXPECT_EQ(play("reuse").status, 0);
  EXPECT_EQ(play("variants").status, 0);
}

TEST_F(HipLibraries, AreBuiltForOldSystems) {
  expect_loads_on_old_systems(WEIR_BINARY_DIR "/lib/weir/probes/libweir_twin_hip.so",
                              k_libc_and_libdl);
}

}  // namespace hip_twin_test
}  // namespace weir::probes
