// The libraries of a CUDA twin and the probe in front of them: what a program is answered, and
// counts known by hand.
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gate/base/text.hpp"
#include "gate/probes/hash.h"
#include "gate/probes/read/cuda_images.hpp"
#include "gate/probes/read/kernel_names.hpp"
#include "gate/probes/read/program_file.hpp"
#include "gate/probes/read/runtime_kernels.hpp"
#include "gate/probes/read/runtime_twin.hpp"
#include "gate/probes/twin/blob.h"
#include "gate/probes/twin/runtime/blob.h"

#include "tests/probes/old_systems.hpp"
#include "tests/probes/support.hpp"

namespace weir::probes {
namespace cuda_twin_test {

using testing::ElementsAre;
using testing::HasSubstr;

Twin described(const std::string& capability) {
  const auto twin = read_twin(fmt::format(
      R"({{"weir": {{"schema": "weir.device/1", "name": "mine", "title": "Mine", "cuda": {{
          "name": "GPU 8.9", "compute_capability": "{}", "multiprocessors": 2,
          "memory_bytes": 4294967296, "used_bytes": 268435456,
          "attributes": {{"L2_CACHE_SIZE": 4096}}}}}}}})",
      capability));
  EXPECT_TRUE(twin);
  return twin.value_or(Twin());
}

// The program keeps nothing of what it is given, as engines do at their end.
const std::pair<const std::string, std::string> k_leaks{"ASAN_OPTIONS",
                                                        "detect_leaks=0:intercept_tls_get_addr=0"};

class CudaLibraries : public testing::Test {
 protected:
  // `kernels`: facts for its one function, "_Z5scalePf".
  Ran play(const std::string& scene, const std::string& capability = "8.9",
           std::optional<weir_runtime_kernel> kernel = std::nullopt) {
    const auto twin = compile_runtime_twin(described(capability), "cuda", 2);
    EXPECT_TRUE(twin);
    const weir_runtime_kernels head{WEIR_RUNTIME_KERNELS_MAGIC, kernel ? 1U : 0U,
                                    sizeof(weir_runtime_kernel)};
    std::string table(reinterpret_cast<const char*>(&head), sizeof head);
    if (kernel) {
      const std::string_view name = "_Z5scalePf";
      kernel->key = weir_probe::hash_bytes(weir_probe::k_hash_seed, name.data(), name.size());
      table.append(reinterpret_cast<const char*>(&*kernel), sizeof *kernel);
    }
    sys::RealFiles files;
    EXPECT_TRUE(files.write_atomic(place_.path() + "/twin", twin->blob));
    EXPECT_TRUE(files.write_atomic(place_.path() + "/kernels", table));
    std::map<std::string, std::string> env{
        {"WEIR_PROBE_DIR", counts_.path()},
        {"LD_PRELOAD", WEIR_CUDA_PROBE},
        k_leaks,
        {WEIR_RUNTIME_TWIN_VARIABLE, place_.path() + "/twin"},
        {WEIR_RUNTIME_KERNELS_VARIABLE, place_.path() + "/kernels"}};
    env.insert(more_.begin(), more_.end());
    return run({WEIR_RUNTIME_TWIN_PROGRAM, "cuda", library(), scene}, env);
  }
  // Under the name by which engines load it.
  std::string library() {
    const std::string name = place_.path() + "/libcudart.so.13";
    std::filesystem::remove(name);
    std::filesystem::create_symlink(WEIR_CUDA_TWIN_LIBRARY, name);
    return name;
  }
  profile::ProbeCounts counted() { return merge("cuda", probe_files(counts_.path())); }

  Folder place_, counts_;
  std::map<std::string, std::string> more_;
};

TEST_F(CudaLibraries, CountsLaunchesGraphsCopiesAndWaits) {
  const Ran ran = play("counts");
  ASSERT_EQ(ran.status, 0) << ran.out << ran.err;
  EXPECT_EQ(ran.err, "");
  EXPECT_THAT(ran.out, HasSubstr("devices 0: 2\nread back 1\n"));
  const profile::ProbeCounts counts = counted();
  const std::map<std::string, std::int64_t> expected = {
      {"dispatches", 15},  // 2, 4 graphs of 3, 1 of cuBLAS
      {"barriers", 1},
      {"copies", 6},   // a fill in each graph, and 2
      {"submits", 9},  // 2 + 4 + 2 + 1
      {"syncs", 3},
      {"waits", 4},
      {"polls", 0},
      {"markers", 1},
      {"command_buffers", 4},
      {"indirect_dispatches", 0},
      {"graph_launches", 4},
      {"graph_instantiations", 1},
      {"programmatic_launches", 0},
      {"small_read_backs", 1},
      {"cublas_calls", 1},
      {"device_memory_bytes", 512},  // 48 in a block of 512
      {"device_memory_peak_bytes", 512},
      {"device_memory_steady_bytes", 512},
      {"allocations", 1},
      {"out_of_memory", 0},
  };
  EXPECT_EQ(counts.counts, expected);
  EXPECT_EQ(counts.kernels, (std::map<std::string, std::int64_t>{
                                {"scale", 2}, {"add<int>", 12}, {"cublasGemmEx", 1}}));
  EXPECT_THAT(counts.transfers,
              ElementsAre(profile::TransferCount{"get", "device", "program", 1, 48},
                          profile::TransferCount{"set", "program", "device", 1, 48}));
  ASSERT_EQ(counts.devices.size(), 1U);
  EXPECT_EQ(counts.devices[0].name, "GPU 8.9");
}

TEST_F(CudaLibraries, RefusesWhatADriverRefuses) {
  weir_runtime_kernel facts{};
  facts.registers = 40;  // 1280 a warp: 48 warps of 65536 registers, 6 blocks of 8 warps
  const Ran ran = play("errors", "8.9", facts);
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_THAT(
      text::lines(text::trim(ran.out)),
      ElementsAre("devices 0: 2", "unknown function 98", "block of 2048 threads 9",
                  "60 KiB shared 1", "allowed 0", "last error 1, then 0",
                  "wait within a capture 900", "launch behind it 901", "its end 901, graph none",
                  "wait for the device within one 900, its end 901",
                  "update by the same shape 0, by another 910", "memory 3840 of 4096 MiB",
                  "all of it 0, a byte more 2, freed 0, again 0, freed twice 1",
                  "with 1 GiB mapped 2816, without 3840 MiB", "blocks of 256 threads 6, of 2048 0",
                  "managed memory freed 0, 18446744073709551615 bytes 2"));
  const auto counts = counted().counts;
  EXPECT_EQ(counts.at("device_memory_bytes"), std::int64_t{3840} << 20);
  EXPECT_EQ(counts.at("out_of_memory"), 2) << "a byte more than there is, all there are";
}

TEST_F(CudaLibraries, TakesTheCodeThatItsDriverWouldTake) {
  const std::map<std::string, int> expected = {
      {"8.9", 0},                                // its machine code
      {"9.0", 0},                                // PTX of 9.0
      {"12.0", 0},                               // the same, which newer GPUs compile
      {"8.6", 209}, {"7.5", 209}, {"6.1", 209},  // machine code of 8.9 is too new, PTX of 9.0 too
  };
  for (const auto& [capability, error] : expected) {
    EXPECT_THAT(play("launch", capability).out, HasSubstr(fmt::format("launch {}\n", error)))
        << capability;
  }
}

TEST_F(CudaLibraries, CountsSixtyFourStreamsAtOnce) {
  const Ran ran = play("threads");
  ASSERT_EQ(ran.status, 0) << ran.out << ran.err;
  const profile::ProbeCounts counts = counted();
  EXPECT_EQ(counts.counts.at("dispatches"), 64 * 20 * 3);
  EXPECT_EQ(counts.counts.at("graph_launches"), 64 * 20);
  EXPECT_EQ(counts.counts.at("syncs"), 64 * 20);
}

TEST_F(CudaLibraries, ForgetsWhatEndsBeforeAnotherThreadIsGivenItsHandle) {
  more_ = {{"GLIBC_TUNABLES", "glibc.malloc.tcache_count=0:glibc.malloc.arena_max=1"}};
  for (int round = 0; round < 3; ++round) {
    const Ran ran = play("reuse");
    ASSERT_EQ(ran.status, 0) << ran.out << ran.err;
  }
  const profile::ProbeCounts counts = counted();
  EXPECT_EQ(counts.kernels.at("add<int>"), 3 * 16 * 200 * 3);
  EXPECT_EQ(counts.counts.at("copies"), 3 * 16 * 200);
  EXPECT_GE(counts.counts.at("device_memory_bytes"), 3 * (std::int64_t{65} << 20));
  EXPECT_LE(counts.counts.at("device_memory_bytes"), 3 * (std::int64_t{80} << 20));
  EXPECT_TRUE(counts.warnings.empty());
}

TEST_F(CudaLibraries, CountsGraphsThatAreCapturedInPartsOrWithinOthers) {
  const Ran ran = play("variants");
  ASSERT_EQ(ran.status, 0) << ran.out << ran.err;
  EXPECT_EQ(counted().kernels,
            (std::map<std::string, std::int64_t>{{"scale", 1}, {"add<int>", 1 + 2}}));
  EXPECT_EQ(counted().counts.at("copies"), 1);
}

TEST_F(CudaLibraries, AnswersWhatOlderProgramsAskOfAGraph) {
  const Ran ran = play("nodes");
  ASSERT_EQ(ran.status, 0) << ran.out << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("node of type 0, its kernel 0\nnode of type 2, its kernel 1\n"
                                 "the one that was launched: 1, changed 0\n"
                                 "copy 0: abcd hijk\nof an array 1\n"));
  EXPECT_EQ(counted().counts.at("copies"), 1);
  EXPECT_THAT(counted().transfers,
              ElementsAre(profile::TransferCount{"copy", "device", "device", 1, 8}));
}

TEST_F(CudaLibraries, TakesAttributesOfALaunchForPartOfItsCode) {
  weir_runtime_kernel facts{};
  facts.code = 0x1234;
  facts.registers = 40;
  const Ran ran = play("attributes", "8.9", facts);
  ASSERT_EQ(ran.status, 0) << ran.out << ran.err;
  const profile::ProbeCounts counts = counted();
  EXPECT_EQ(counts.codes.at("scale@0000000000001234"), 1 + 2 + 4) << "plain launches";
  std::vector<std::int64_t> dispatches;
  for (const auto& [key, count] : counts.codes) dispatches.push_back(count);
  EXPECT_THAT(dispatches, testing::UnorderedElementsAre(7, 8 + 256, 16, 32, 64 + 128));
  EXPECT_EQ(counts.code_facts.size(), 5U);
  EXPECT_EQ(counts.counts.at("programmatic_launches"), 8 + 64 + 128 + 256);
}

TEST_F(CudaLibraries, TellsWhatCodeCostsAndTheFewestWarpsOfAllItsLaunches) {
  weir_runtime_kernel facts{};
  facts.code = 0x1234;
  facts.registers = 40;
  facts.local_bytes = 16;
  facts.shared_bytes = 512;
  facts.code_bytes = 4096;
  const Ran ran = play("costs", "8.9", facts);
  ASSERT_EQ(ran.status, 0) << ran.out << ran.err;
  const profile::ProbeCounts counts = counted();
  EXPECT_EQ(counts.compiler, "machine code");
  // 100 KiB of shared memory hold two blocks of 40 KiB, 512 bytes and the system's 1 KiB: 2 × 2
  // warps. The others: 6 × 8, 24 × 1 (blocks are 24 at most), 12 × 4.
  EXPECT_EQ(counts.code_facts,
            (std::map<std::string, profile::CodeFacts>{{"0000000000001234",
                                                        {.options = {{"architecture", "sm_89"}},
                                                         .costs = {{"registers", 40},
                                                                   {"scratch_bytes", 16},
                                                                   {"shared_memory_bytes", 512},
                                                                   {"code_bytes", 4096},
                                                                   {"occupancy", 4}}}}}));
  const auto files = probe_files(counts_.path());
  ASSERT_EQ(files.size(), 1U);
  ASSERT_EQ(files[0].codes.size(), 2U);
  EXPECT_EQ(files[0].codes[1].costs.group_threads, 64U);
}

TEST_F(CudaLibraries, TellsNoCostsOfCodeThatTheDriverIsToCompile) {
  weir_runtime_kernel facts{};
  facts.code = 0x1234;
  facts.registers = 40;
  facts.flags = WEIR_RUNTIME_KERNEL_NOT_COMPILED;
  const Ran ran = play("costs", "9.0", facts);
  ASSERT_EQ(ran.status, 0) << ran.out << ran.err;
  const profile::ProbeCounts counts = counted();
  EXPECT_EQ(counts.compiler, "");
  ASSERT_EQ(counts.code_facts.size(), 1U);
  EXPECT_TRUE(counts.code_facts.begin()->second.costs.empty());
  EXPECT_THAT(counts.code_facts.begin()->second.not_compiled, HasSubstr("only PTX fits"));
}

TEST_F(CudaLibraries, CountsAForkedProcessApartAndOneThatWasKilled) {
  EXPECT_THAT(play("forked").out, HasSubstr("child 0\n"));
  EXPECT_EQ(counted().kernels,
            (std::map<std::string, std::int64_t>{{"scale", 1}, {"add<int>", 1}}));
  EXPECT_EQ(play("killed").status, 128 + 9);
  EXPECT_EQ(counted().kernels.at("scale"), 1 + 7);
}

TEST_F(CudaLibraries, HasNoDeviceWithoutADescription) {
  const Ran ran = run({WEIR_RUNTIME_TWIN_PROGRAM, "cuda", library(), "launch"}, {k_leaks});
  EXPECT_THAT(ran.out, HasSubstr("devices 100: 0\nlaunch 100\n"));
  EXPECT_THAT(ran.err, HasSubstr("no description of a GPU"));
}

TEST_F(CudaLibraries, KeepsWhatCopiesWroteAndAnswersWhatKernelsWouldHaveByRules) {
  more_ = {{WEIR_TWIN_READS_VARIABLE, "other:5:0;scale:3:2"}};
  const Ran ran = play("values");
  ASSERT_EQ(ran.status, 0) << ran.out << ran.err;
  EXPECT_THAT(text::lines(text::trim(ran.out)),
              ElementsAre("devices 0: 2", "fresh 0", "copied 7, within 7, filled 0x1010101",
                          "after it was freed 0", "reserved apart 1, freed 0", "of a kernel 0 3 0",
                          "written after it 7 0x1010101 7", "after another 0, beside it 0",
                          "on a stream without kernels 0", "types 2 1 0"));
  const profile::ProbeCounts counts = counted();
  EXPECT_EQ(counts.counts.at("small_read_backs"), 14);
  EXPECT_EQ(counts.functions,
            (std::map<std::string, std::int64_t>{{"read back 4 bytes of scale", 6},
                                                 {"read back 4 bytes that no kernel wrote", 8}}));
  more_ = {{WEIR_TWIN_READS_VARIABLE, "scale:5:0"}};
  EXPECT_THAT(play("values").out, HasSubstr("written after it 7 0x1010101 7\n"
                                            "after another 5, beside it 5\n"
                                            "on a stream without kernels 5\n"));
  more_ = {{WEIR_TWIN_FILL_VARIABLE, "1"}};
  EXPECT_THAT(play("values").out, HasSubstr("fresh 16843009\n")) << "0x01010101";
}

TEST_F(CudaLibraries, EndsALoopThatWaitsForWhatAKernelShouldHaveWritten) {
  const Ran ran = play("waits for a value");
  EXPECT_NE(ran.status, 0);
  EXPECT_THAT(ran.err, HasSubstr("the program read 5000 times 4 bytes"));
  EXPECT_THAT(ran.err, HasSubstr("scale"));
}

TEST_F(CudaLibraries, CountsKernelsOfModulesThatAreLookedUp) {
  const Ran ran = play("modules");
  ASSERT_EQ(ran.status, 0) << ran.out << ran.err;
  EXPECT_THAT(text::lines(text::trim(ran.out)),
              ElementsAre("devices 0: 2", "loaded 0, found 0, another 500",
                          "registers 40, shared 1024", "launched 0", "launched 0", "launched 0",
                          "launched 0", ".version 9.0: 0 cudaSuccess",
                          ".version 9.1: 222 cudaErrorUnsupportedPtxVersion", "what it lacks 801"))
      << "the description's driver is that of CUDA 13.0";
  EXPECT_THAT(ran.err, HasSubstr("PTX 9.1 is newer than the driver of the CUDA twin takes, 9.0"));
  EXPECT_EQ(counted().kernels,
            (std::map<std::string, std::int64_t>{{"triton_add", 4}, {std::string(300, 'k'), 1}}));
}

TEST_F(CudaLibraries, CountsWhatIsAskedOfTheDriverAsIfItWereTheRuntime) {
  const Ran ran = play("driver");
  ASSERT_EQ(ran.status, 0) << ran.out << ran.err;
  EXPECT_THAT(text::lines(text::trim(ran.out)),
              ElementsAre("devices 0: 2", "context 0, of 8.9", "taken 0", "waited 0",
                          "copied 7, happened 0, freed 0"));
  const profile::ProbeCounts counts = counted();
  EXPECT_EQ(counts.counts.at("copies"), 2);
  EXPECT_EQ(counts.counts.at("syncs"), 2) << "the context's, and the copy to the host";
  EXPECT_EQ(counts.counts.at("allocations"), 1);
}

TEST_F(CudaLibraries, SharesMemoryWithAnotherProcess) {
  const Ran ran = play("shared");
  ASSERT_EQ(ran.status, 0) << ran.out << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("in another process 1\nclosed 0, again 1\nno handle 1\n"));
  EXPECT_THAT(ran.out, HasSubstr("back 2\n"));
}

TEST_F(CudaLibraries, CountsCollectivesByWhatARankSends) {
  const Ran ran = play("collectives");
  ASSERT_EQ(ran.status, 0) << ran.out << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("refused 4, made 0: 1 of 2\ngathered 0\n"));
  EXPECT_EQ(counted().kernels,
            (std::map<std::string, std::int64_t>{{"ncclAllReduce(256 bf16, 2 ranks)", 2},
                                                 {"ncclAllReduce(512 bf16, 2 ranks)", 1},
                                                 {"ncclAllGather(64 values, 2 ranks)", 1}}));
}

TEST_F(CudaLibraries, IsBuiltForOldSystems) {
  const auto exported = expect_loads_on_old_systems(
      WEIR_BINARY_DIR "/lib/weir/probes/libweir_twin_cuda.so", k_libc_and_libdl);
  EXPECT_GT(exported.size(), 90U);
  expect_loads_on_old_systems(WEIR_BINARY_DIR "/lib/weir/probes/libweir_cuda.so", k_libc_and_libdl);
}

TEST(CudaDescriptions, RecordedThroughTheDriverOfATwinAreThatTwin) {
  const sys::RealFiles files;
  int tried = 0;
  const auto names = files.list(WEIR_SOURCE_DIR "/configs/devices").value();
  for (const std::string& name : names) {
    const auto text = files.read(WEIR_SOURCE_DIR "/configs/devices/" + name, 1 << 24);
    const auto twin = read_twin(text.value_or(""));
    if (!twin || !twin->cuda.is_object()) continue;
    ++tried;
    const Folder folder;
    const auto compiled = compile_runtime_twin(*twin, "cuda", 2);
    ASSERT_TRUE(compiled) << name;
    ASSERT_TRUE(sys::RealFiles().write_atomic(folder.path() + "/twin", compiled->blob));
    std::filesystem::create_symlink(WEIR_CUDA_TWIN_LIBRARY, folder.path() + "/libcuda.so.1");
    const Ran ran = run({WEIR_BINARY_DIR "/libexec/weir/weir-devices", "--describe"},
                        {{"LD_LIBRARY_PATH", folder.path()},
                         {WEIR_RUNTIME_TWIN_VARIABLE, folder.path() + "/twin"},
                         {"VK_DRIVER_FILES", "/none"},
                         {"VK_ICD_FILENAMES", "/none"}});
    ASSERT_EQ(ran.status, 0) << ran.err;
    const Json described = Json::parse(ran.out);
    ASSERT_EQ(described["descriptions"].size(), 2U) << ran.out;
    const auto again = read_twin(dump_json(described["descriptions"][0]));
    ASSERT_TRUE(again) << name;
    const auto remade = compile_runtime_twin(*again, "cuda", 2);
    ASSERT_TRUE(remade) << name << ": " << remade.error().message;
    EXPECT_TRUE(remade->blob == compiled->blob) << name << ": " << again->cuda.dump();
  }
  EXPECT_GE(tried, 10);
}

TEST(CudaDescriptions, AreRefusedWithWhatIsWrongInThem) {
  const auto problem = [](const std::string& cuda) {
    const auto twin = read_twin(R"({"weir": {"schema": "weir.device/1", "cuda": )" + cuda + "}}");
    EXPECT_TRUE(twin) << cuda;
    const auto compiled = compile_runtime_twin(twin.value_or(Twin()), "cuda", 1);
    return compiled ? "made" : compiled.error().message;
  };
  EXPECT_THAT(problem(R"({"name": "x"})"), HasSubstr("memory_bytes"));
  EXPECT_THAT(problem(R"({"name": "x", "memory_bytes": 1, "multiprocessors": 1,
                          "compute_capability": "4.4"})"),
              HasSubstr("\"4.4\"; known here: 5.0"));
  EXPECT_THAT(problem(R"({"name": "x", "memory_bytes": 1, "multiprocessors": 1,
                          "compute_capability": "8.9", "attributes": {"L3": 1}})"),
              HasSubstr("\"L3\""));
  EXPECT_FALSE(compile_runtime_twin(Twin(), "cuda", 1));
}

TEST(CudaSymbols, BecomeTheNamesThatPeopleKnow) {
  const std::map<std::string, std::string> cases = {
      {"_Z12rms_norm_f32ILi256ELb1ELb0EEvPKfPfi", "rms_norm_f32<256, true, false>"},
      {"_Z26flash_attn_combine_resultsILi64EEvPKfPK6float2Pfi", "flash_attn_combine_results<64>"},
      {"_ZN19_INTERNAL_0123abcd_3addIiEEvPT_", "add<int>"},
      {"_Z11k_bin_bcastIXadL_ZN42_INTERNAL_f9fd7c1e_11_binbcast_cu_6840010b6op_"
       "addEffEEfffJPKfEEvPKT0_"
       "PKT1_PT2_jjj5uint3SB_SB_SB_SB_jjjjjjjjjjjDpT3_",
       "k_bin_bcast<&op_add, float, float, float, float const*>"},
      {"_ZN2ns1aIlE4workEv", "ns::a<long>::work"},
      {"_Znot", "_Znot"},
      {"DawnDbg=1;Dawn_ShaderModule_scale_by_2", "scale_by_2"},
      {"DawnDbg=1;Dawn_ShaderModule", "Dawn_ShaderModule"},
      {"DawnDbg=1", "DawnDbg=1"},
      {"Dawn_", "Dawn_"},
      {"Dawn_x_", "Dawn_x_"},
      {"mul_mat_vec_q4_k", "mul_mat_vec_q4_k"},
      {"", ""},
  };
  for (const auto& [symbol, name] : cases) EXPECT_EQ(readable_kernel_name(symbol), name);
}

// A library with one container: machine code of two GPUs, whose kernel `k` takes 30 and 50
// registers.
std::string number(std::uint64_t value, std::size_t size) {
  std::string out;
  for (std::size_t i = 0; i < size; ++i) out += static_cast<char>(value >> (8 * i) & 0xff);
  return out;
}
std::string elf_with(const std::vector<std::pair<std::string, std::string>>& sections) {
  std::string names("\0", 1), bytes(64, '\0'), table(64, '\0');
  const auto add = [&](const std::string& name, const std::string& content) {
    table += number(names.size(), 4) + number(1, 4) + std::string(16, '\0') +
             number(bytes.size(), 8) + number(content.size(), 8) + std::string(24, '\0');
    names += name + '\0';
    bytes += content;
  };
  for (const auto& [name, content] : sections) add(name, content);
  const std::uint64_t shown = names.size();
  names += std::string(".names") + '\0';
  table += number(shown, 4) + number(3, 4) + std::string(16, '\0') + number(bytes.size(), 8) +
           number(names.size(), 8) + std::string(24, '\0');
  bytes += names;
  bytes.replace(0, 6, "\x7F\x45LF\x02\x01");
  bytes.replace(40, 8, number(bytes.size(), 8));
  bytes.replace(60, 4, number(sections.size() + 2, 2) + number(sections.size() + 1, 2));
  return bytes + table;
}
std::string cubin(std::uint64_t registers) {
  const std::string symbol = number(1, 4) + std::string(20, '\0');
  return elf_with(
      {{".text.k", "code"},
       {".symtab", std::string(24, '\0') + symbol},
       {".strtab", std::string("\0k\0", 3)},
       {".nv.info", "\x04\x2f" + number(8, 2) + number(1, 4) + number(registers, 4)},
       {".nv.info.k", "\x04\x05" + number(12, 2) + number(128, 4) + number(2, 4) + number(1, 4)},
       {".nv.shared.k", std::string(100, 'x')}});
}
std::string image(std::uint64_t kind, std::uint64_t arch, const std::string& bytes) {
  return number(kind, 2) + number(0x101, 2) + number(64, 4) + number(bytes.size(), 8) +
         std::string(12, '\0') + number(arch, 4) + std::string(8, '\0') + number(0x11, 8) +
         std::string(16, '\0') + bytes;
}
std::string library() {
  const std::string images =
      image(2, 86, cubin(30)) + image(2, 120, cubin(50)) + image(1, 90, "ptx");
  return elf_with({{".nv_fatbin", number(0xba55ed50, 4) + number(1, 2) + number(16, 2) +
                                      number(images.size(), 8) + images}});
}

TEST(CudaKernels, AreReadFromTheMachineCodeOfTheGpu) {
  struct Case {
    int major, minor;
    std::uint32_t registers, flags;
  };
  const std::string elf = library();
  const std::string_view image = elf;
  const PartialFile file{elf.size(), bytes_of(elf)};
  EXPECT_EQ(has_section(file, k_cuda_code_section), true);
  EXPECT_EQ(has_section(file, ".hip_fatbin"), false);
  for (const Case& c : {Case{8, 6, 30, 0}, Case{8, 9, 30, 0}, Case{12, 0, 50, 0},
                        // PTX alone fits: those of the nearest, said to be a guess
                        Case{9, 0, 30, WEIR_RUNTIME_KERNEL_NOT_COMPILED},
                        Case{8, 0, 30, WEIR_RUNTIME_KERNEL_NOT_COMPILED}}) {
    const auto kernels = read_cuda_kernels({&image, 1}, c.major, c.minor);
    ASSERT_TRUE(kernels);
    ASSERT_EQ(kernels->kernels, 1U);
    weir_runtime_kernel kernel;
    std::memcpy(&kernel, kernels->table.data() + sizeof(weir_runtime_kernels), sizeof kernel);
    EXPECT_EQ(kernel.registers, c.registers) << c.major;
    EXPECT_EQ(kernel.flags, c.flags) << c.major;
    // On 12.0 the hundred bytes belong to the system.
    EXPECT_EQ(kernel.shared_bytes, c.major == 12 ? 0U : 100U);
    EXPECT_EQ(kernel.max_threads, 256U);
    EXPECT_EQ(kernel.code_bytes, 4U) << "of \"code\"";
  }
}

// An image by LZ4: literals, a copy that reaches into itself, and literals at the end.
TEST(CudaImages, AreUnpackedByLz4) {
  const auto unpacked = [](const std::string& packed, std::uint64_t bytes) {
    CudaImage image{true, 86, 0x2000, bytes, packed};
    return unpack(image).value_or("nothing");
  };
  const std::string block = std::string("\x32") + "abc" + number(2, 2) + std::string("\x20") + "xy";
  EXPECT_EQ(unpacked(block, 11), "abcbcbcbcxy");
  EXPECT_EQ(unpacked(std::string("\xf0\x02", 2) + std::string(17, 'z'), 17), std::string(17, 'z'));
  EXPECT_EQ(unpacked(block, 10), "nothing");
  EXPECT_EQ(unpacked(block, 12), "nothing");
  EXPECT_EQ(unpacked(block.substr(0, 5), 11), "nothing");
  EXPECT_EQ(unpacked(std::string("\x32") + "abc" + number(4, 2), 9), "nothing")
      << "before the begin";
  EXPECT_EQ(unpacked(std::string("\x32") + "abc" + number(0, 2), 9), "nothing");
}

TEST(CudaKernels, SurviveDamageAndShortFiles) {
  const std::string intact = library();
  for (std::size_t size = 0; size < intact.size(); ++size) {
    const std::string_view part = std::string_view(intact).substr(0, size);
    static_cast<void>(read_cuda_kernels({&part, 1}, 8, 6));
  }
  for (std::size_t at = 0; at < intact.size(); ++at) {
    std::string damaged = intact;
    damaged[at] = static_cast<char>(0xff);
    const std::string_view image = damaged;
    static_cast<void>(read_cuda_kernels({&image, 1}, 8, 6));
  }
}

}  // namespace cuda_twin_test
}  // namespace weir::probes
