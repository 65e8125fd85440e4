// Compares the line that the unmodified llama.cpp prints for each device that comes with weir with
// one from public logs, of the real device or of one of its generation (the description's source
// names them).
#include <cstdio>

#include "tests/e2e/weir_process.hpp"

namespace weir::e2e {
namespace device_lines_test {

// The line in the log of llama-bench on the twin that `environment` names; "" where there is none.
std::string read_device_line(const std::string& environment, const std::string& engine_folder) {
  const std::string command = "env -u GGML_VK_VISIBLE_DEVICES " + environment + " " +
                              engine_folder + "/engines/llama.cpp/llama-bench -v -m " +
                              engine_folder +
                              "/models/tiny-llama.gguf -p 0 -n 1 -r 1 -ngl 99 -o json 2>&1";
  std::FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return "";
  std::string text;
  char bytes[4096];
  while (const std::size_t got = std::fread(bytes, 1, sizeof bytes, pipe)) text.append(bytes, got);
  EXPECT_EQ(pclose(pipe), 0) << text;
  const std::string start = "ggml_vulkan: 0 = ";
  const std::size_t at = text.find(start);
  if (at == std::string::npos) return "";
  return text.substr(at + start.size(), text.find('\n', at) - at - start.size());
}

TEST(DeviceLines, AreThoseThatTheEnginePrintsOfTheRealDevices) {
  const std::string root = WEIR_SOURCE_DIR;
  ASSERT_TRUE(fs::exists(root + "/engines/llama.cpp/llama-bench")) << "run ci/prepare test first";
  const std::pair<const char*, const char*> cases[] = {
      // Word for word in a log: ggml-org/llama.cpp#27952.
      {"amd-rx-7900-xtx",
       "AMD Radeon RX 7900 XTX (RADV NAVI31) (radv) | uma: 0 | fp16: 1 | bf16: 0 | fp4: 0 | warp "
       "size: 64 | shared memory: 65536 | int dot: 1 | matrix cores: KHR_coopmat"},
      // By the engine's conditions for its generation, as in the logs of its neighbours.
      {"amd-rx-6900-xt",
       "AMD Radeon RX 6900 XT (RADV NAVI21) (radv) | uma: 0 | fp16: 1 | bf16: 0 | fp4: 0 | warp "
       "size: 32 | shared memory: 65536 | int dot: 1 | matrix cores: none"},
      {"amd-rx-580",
       "AMD Radeon RX 580 Series (RADV POLARIS10) (radv) | uma: 0 | fp16: 0 | bf16: 0 | fp4: 0 | "
       "warp size: 64 | shared memory: 65536 | int dot: 0 | matrix cores: none"},
      // Logs of before the version that prints bf16 and int dot: ggml-org/llama.cpp#11595.
      {"intel-arc-a770",
       "Intel(R) Arc(tm) A770 Graphics (DG2) (Intel open-source Mesa driver) | uma: 0 | fp16: 1 | "
       "bf16: 0 | fp4: 0 | warp size: 32 | shared memory: 65536 | int dot: 1 | matrix cores: none"},
      // As the Arc Pro B50 but for the name: ggml-org/llama.cpp#25380.
      {"intel-arc-b580",
       "Intel(R) Arc(tm) B580 Graphics (BMG G21) (Intel open-source Mesa driver) | uma: 0 | fp16: "
       "1 | bf16: 1 | fp4: 0 | warp size: 32 | shared memory: 49152 | int dot: 1 | matrix cores: "
       "KHR_coopmat"},
      // As the RTX 2070: ggml-org/llama.cpp#14982.
      {"nvidia-rtx-2080",
       "NVIDIA GeForce RTX 2080 (NVIDIA) | uma: 0 | fp16: 1 | bf16: 0 | fp4: 0 | warp size: 32 | "
       "shared memory: 49152 | int dot: 1 | matrix cores: NV_coopmat2"},
      {"nvidia-rtx-3090",
       "NVIDIA GeForce RTX 3090 (NVIDIA) | uma: 0 | fp16: 1 | bf16: 1 | fp4: 0 | warp size: 32 | "
       "shared memory: 49152 | int dot: 1 | matrix cores: NV_coopmat2"},
      // As the RTX 4070: ggml-org/llama.cpp#14903.
      {"nvidia-rtx-4090",
       "NVIDIA GeForce RTX 4090 (NVIDIA) | uma: 0 | fp16: 1 | bf16: 1 | fp4: 0 | warp size: 32 | "
       "shared memory: 49152 | int dot: 1 | matrix cores: NV_coopmat2"},
      // ggml-org/llama.cpp#19376.
      {"nvidia-rtx-5090",
       "NVIDIA GeForce RTX 5090 (NVIDIA) | uma: 0 | fp16: 1 | bf16: 1 | fp4: 0 | warp size: 32 | "
       "shared memory: 49152 | int dot: 1 | matrix cores: NV_coopmat2"},
      // As the M4 Max: ggml-org/llama.cpp#14316.
      {"apple-m2-moltenvk",
       "Apple M2 (MoltenVK) | uma: 1 | fp16: 1 | bf16: 0 | fp4: 0 | warp size: 32 | shared memory: "
       "32768 | int dot: 0 | matrix cores: none"},
      // ggml-org/ggml#1287.
      {"qualcomm-adreno-750",
       "Turnip Adreno (TM) 750 (turnip Mesa driver) | uma: 1 | fp16: 1 | bf16: 0 | fp4: 0 | warp "
       "size: 128 | shared memory: 32768 | int dot: 0 | matrix cores: none"},
      // ggml-org/llama.cpp#17783.
      {"arm-mali-g720",
       "Mali-G720-Immortalis (Mali-G720-Immortalis) | uma: 1 | fp16: 1 | bf16: 0 | fp4: 0 | warp "
       "size: 16 | shared memory: 32768 | int dot: 0 | matrix cores: none"},
  };
  const Scratch scratch;
  for (const auto& [name, line] : cases) {
    const Ended compiled = weir(scratch, {"device", "compile", name, "--output", "device.twin"});
    ASSERT_EQ(compiled.exit_code, 0) << compiled.err;
    std::string environment = compiled.out;
    std::replace(environment.begin(), environment.end(), '\n', ' ');
    EXPECT_EQ(read_device_line(environment, root), line) << name;
  }
}

}  // namespace device_lines_test
}  // namespace weir::e2e
