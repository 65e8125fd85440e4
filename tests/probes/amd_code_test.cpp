// Kernels of AMD code objects, alone, in bundles and in libraries, and of compilers where they are.
#include "gate/probes/read/amd_code.hpp"

#include <cstdlib>
#include <fstream>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#ifdef WEIR_ZSTD
#include <zstd.h>
#endif
#ifdef WEIR_ZLIB
#include <zlib.h>
#endif

#include "gate/probes/read/amd_occupancy.hpp"
#include "gate/probes/read/gpu_code.hpp"
#include "gate/sys/files.hpp"

#include "tests/probes/amd_bytes.hpp"
#include "tests/probes/support.hpp"
#include "tests/support/mutated.hpp"

namespace weir::probes {
namespace amd_code_test {

using profile::GpuBuild;
using profile::GpuKernel;

std::string words(std::initializer_list<std::uint32_t> all) {
  std::string code;
  for (const std::uint32_t word : all) code += little_endian(word, 4);
  return code;
}

// Code of 80 bytes that loads a table from its place: s_getpc_b64 s[4:5], s_add_u32, s_addc_u32.
std::string code_with_table(std::uint32_t low, std::uint32_t high, std::uint32_t last = 0) {
  std::string code = words({0xbe841c00, 0x8004ff04, low, 0x8205ff05, high});
  for (int i = 0; i < 14; ++i) code += words({0x7e000280});
  return code + words({last});
}

AmdKernelBytes attention(const std::string& code = code_with_table(1, 2)) {
  return {"attention",
          code,
          {{".vgpr_count", 128},
           {".agpr_count", 0},
           {".sgpr_count", 100},
           {".vgpr_spill_count", 51},
           {".sgpr_spill_count", 3},
           {".private_segment_fixed_size", 180},
           {".group_segment_fixed_size", 1024},
           {".max_flat_workgroup_size", 256},
           {".wavefront_size", 64}}};
}

Result<GpuBuild> read_bytes(const std::string& bytes,
                            const std::vector<std::string>& targets = {}) {
  GpuBuild build;
  const PartialFile file{bytes.size(), [&](std::uint64_t offset, std::uint64_t size) {
                           return Result<std::string>(
                               bytes.substr(std::min<std::uint64_t>(offset, bytes.size()), size));
                         }};
  WEIR_CHECK(read_gpu_code(file, targets, build));
  return build;
}

TEST(AmdCode, HasWhatItsMetadataSays) {
  const auto kernels = read_amd_object(AmdObjectBytes{.kernels = {attention()}}.str());
  ASSERT_TRUE(kernels) << kernels.error().message;
  ASSERT_EQ(kernels->size(), 1U);
  const GpuKernel& kernel = kernels->front();
  EXPECT_EQ(kernel.target, "gfx942");
  EXPECT_EQ(kernel.symbol, "attention");
  EXPECT_FALSE(kernel.is_stub());
  const profile::KernelFigures expected{.registers = 128,
                                        .accumulation_registers = 0,
                                        .scalar_registers = 100,
                                        .spilled_vgprs = 51,
                                        .spilled_sgprs = 3,
                                        .scratch_bytes = 180,
                                        .occupancy = 4,
                                        .shared_memory_bytes = 1024,
                                        .group_threads = 256,
                                        .code_bytes = 80};
  EXPECT_EQ(kernel.figures, expected);
}

TEST(AmdCode, TakesTheTargetFromTheHeaderWhereMetadataHasNone) {
  const auto kernels =
      read_amd_object(AmdObjectBytes{.target = "", .kernels = {attention()}}.str());
  ASSERT_TRUE(kernels);
  EXPECT_EQ(kernels->front().target, "gfx942");
}

TEST(AmdCode, HasTheSameDigestWhereverItLies) {
  const auto digest = [](const std::string& code, const std::string& before = "",
                         const std::string& target = "gfx942") {
    const auto kernels = read_amd_object(
        AmdObjectBytes{.target = target, .kernels = {attention(code)}, .before_code = before}
            .str());
    return kernels && !kernels->empty() ? kernels->front().digest : 0;
  };
  const std::uint64_t here = digest(code_with_table(1, 2));
  EXPECT_NE(here, 0U);
  EXPECT_EQ(digest(code_with_table(1, 2), std::string(64, 'x')), here);
  EXPECT_EQ(digest(code_with_table(7, 8)), here) << "literals are relative to the place";
  EXPECT_NE(digest(code_with_table(1, 2, 3)), here) << "other literals count";
  EXPECT_NE(digest(code_with_table(7, 8), "", "gfx1100"),
            digest(code_with_table(1, 2), "", "gfx1100"))
      << "another instruction there";
  // As Triton's LLVM writes a call: s_get_pc_i64 s[18:19], s_add_nc_u64 with 64 bits.
  const auto call = [&](std::uint32_t low, std::uint32_t high, const std::string& target) {
    return digest(words({0xbe924700, 0xa992fe12, low, high}) + std::string(80, 'c'), "", target);
  };
  EXPECT_EQ(call(0xfffffda8, 0xffffffff, "gfx1250"), call(0x20, 0, "gfx1250"));
  EXPECT_NE(call(0xfffffda8, 0xffffffff, "gfx1201"), call(0x20, 0, "gfx1201"));
}

TEST(AmdCode, WithoutMoreThanSixtyFourBytesIsAStub) {
  const auto kernels = read_amd_object(
      AmdObjectBytes{.kernels = {{"a", std::string(64, 'x')}, {"b", std::string(68, 'x')}}}.str());
  ASSERT_TRUE(kernels);
  EXPECT_TRUE((*kernels)[0].is_stub());
  EXPECT_FALSE((*kernels)[1].is_stub());
}

TEST(AmdCode, IsReadFromBundlesForTheWantedTargets) {
  const std::string first = AmdObjectBytes{.target = "gfx942", .kernels = {attention()}}.str();
  const std::string second =
      AmdObjectBytes{.target = "gfx90a:xnack-", .kernels = {attention()}}.str();
  const std::string bundles = bundle_bytes({{"gfx942", first}, {"gfx90a:xnack-", second}}) +
                              bundle_bytes({{"gfx942", first}});
  const auto count = [&](const std::vector<std::string>& targets) {
    const auto build = read_bytes(bundles, targets);
    EXPECT_TRUE(build) << build.error().message;
    return build ? build->kernels.size() : 0;
  };
  EXPECT_EQ(count({}), 3U);
  EXPECT_EQ(count({"gfx942"}), 2U);
  EXPECT_EQ(count({"gfx90a"}), 1U);
  EXPECT_EQ(count({"gfx9*"}), 3U);
  EXPECT_EQ(count({"gfx1100"}), 0U);
}

// Puts clang's header before a compressed bundle. `method`: 0 is zlib, 1 zstd.
std::string packed_bundle(std::uint64_t version, std::uint64_t method, std::size_t plain_bytes,
                          const std::string& packed) {
  const std::size_t width = version == 3 ? 8 : 4;
  const std::size_t header = 8 + (version == 1 ? 0 : width) + width + 8;
  std::string head = "CCOB" + little_endian(version, 2) + little_endian(method, 2);
  if (version > 1) head += little_endian(header + packed.size(), width);
  return head + little_endian(plain_bytes, width) + std::string(8, 'h') + packed;
}

// Compresses a bundle by each method that this weir reads.
std::vector<std::string> packed_bundles(std::uint64_t version, const std::string& plain) {
  std::vector<std::string> bundles;
#ifdef WEIR_ZSTD
  std::string zstd(ZSTD_compressBound(plain.size()), '\0');
  zstd.resize(ZSTD_compress(zstd.data(), zstd.size(), plain.data(), plain.size(), 3));
  bundles.push_back(packed_bundle(version, 1, plain.size(), zstd));
#endif
#ifdef WEIR_ZLIB
  uLongf size = compressBound(plain.size());
  std::string zlib(size, '\0');
  compress(reinterpret_cast<Bytef*>(zlib.data()), &size,
           reinterpret_cast<const Bytef*>(plain.data()), plain.size());
  zlib.resize(size);
  bundles.push_back(packed_bundle(version, 0, plain.size(), zlib));
#endif
  return bundles;
}

TEST(AmdCode, IsUnpackedFromCompressedBundles) {
  const std::string plain =
      bundle_bytes({{"gfx942", AmdObjectBytes{.kernels = {attention()}}.str()}});
  for (const std::uint64_t version : {1U, 2U, 3U}) {
    for (const std::string& packed : packed_bundles(version, plain)) {
      const auto build = read_bytes(packed + std::string(100, '\0') + packed);
      ASSERT_TRUE(build) << version << ": " << build.error().message;
      EXPECT_EQ(build->kernels.size(), 2U) << version;
      EXPECT_EQ(build->unread, 0U);
    }
  }
  const auto other_method = read_bytes(packed_bundle(2, 7, plain.size(), plain));
  ASSERT_TRUE(other_method);
  EXPECT_EQ(other_method->unread, 1U);
}

// A header that promises more than its bytes can hold asks for no memory.
TEST(AmdCode, OfABundleThatPromisesTooMuchIsRefused) {
  for (const std::uint64_t method : {0U, 1U}) {
    const auto build = read_bytes(packed_bundle(2, method, std::size_t{256} << 20, "x"));
    if (build) {
      EXPECT_EQ(build->unread, 1U) << "built without it";
    } else {
      EXPECT_THAT(build.error().message, testing::HasSubstr("broken"));
    }
  }
}

// Appends a member as `ar` lays it out.
std::string archive_member(const std::string& name, const std::string& content) {
  std::string head = name + std::string(48 - name.size(), ' ') + std::to_string(content.size());
  head.resize(58, ' ');
  return head + "`\n" + content + (content.size() % 2 == 0 ? "" : "\n");
}

TEST(AmdCode, IsReadFromStaticLibraries) {
  const std::string object = AmdObjectBytes{.kernels = {attention()}}.str();
  const std::string library = library_bytes(
      {{".hip_fatbin", 1, 0, bundle_bytes({{"gfx942", object}, {"gfx90a", object}})}}, 62);
  const std::string archive =
      "!<arch>\n" + archive_member("/", "odd") + archive_member("first.o/", library) +
      archive_member("other.o/", "no code") + archive_member("second.o/", library);
  const auto build = read_bytes(archive);
  ASSERT_TRUE(build) << build.error().message;
  EXPECT_EQ(build->kernels.size(), 4U);
  EXPECT_EQ(build->files, 2U);
  for (const std::string& cut : {archive.substr(0, archive.size() - 2), archive + "x"}) {
    const auto broken = read_bytes(cut);
    ASSERT_FALSE(broken);
    EXPECT_THAT(broken.error().message, testing::HasSubstr("a broken member at byte"));
  }
}

TEST(AmdCode, ThatContradictsItselfIsRefused) {
  const auto problem = [](const std::string& bytes) {
    const auto build = read_bytes(bytes);
    return build ? std::string() : build.error().message;
  };
  AmdObjectBytes object{.kernels = {attention()}};
  const std::string intact = object.str();
  object.note_type = 10;
  EXPECT_THAT(problem(object.str()), testing::HasSubstr("version 2"));
  object.note_type = 32;
  object.metadata = std::string(100'000, '\x91');  // lists in lists
  EXPECT_THAT(problem(object.str()), testing::HasSubstr("levels deep"));
  object.metadata = "\xc1";
  EXPECT_THAT(problem(object.str()), testing::HasSubstr("broken at byte"));
  object.note_type = 1;
  EXPECT_THAT(problem(object.str()), testing::HasSubstr("without metadata"));
  std::string bundle = bundle_bytes({{"gfx942", intact}, {"gfx90a", intact}});
  EXPECT_EQ(problem(bundle), "");
  EXPECT_THAT(problem(bundle.substr(0, bundle.size() - 4096)), testing::HasSubstr("outside"));
  EXPECT_THAT(problem(bundle + "x"), testing::HasSubstr("neither a bundle nor zeros"));
  bundle.replace(24, 8, little_endian(257, 8));
  EXPECT_THAT(problem(bundle), testing::HasSubstr("257 entries"));
}

// The kernels of ten thousand damaged files are read, or refused, whatever is wrong with them.
TEST(AmdCode, SurvivesTenThousandDamagedFiles) {
  constexpr std::string_view k_pieces[] = {"\x7F\x45LF\x02\x01",
                                           "__CLANG_OFFLOAD_BUNDLE__",
                                           "CCOB",
                                           "amdhsa.kernels",
                                           ".symbol",
                                           "\xdf\xff"};
  const std::string object = AmdObjectBytes{.kernels = {attention()}}.str();
  const std::string bundle = bundle_bytes({{"gfx942", object}});
  std::vector<std::string> intact = packed_bundles(3, bundle);
  intact.insert(intact.end(), {object, bundle, "!<arch>\n" + archive_member("a.o/", object)});
  std::mt19937 random(1);  // NOLINT: the same files each time
  std::size_t refused = 0;
  for (std::size_t i = 0; i < 10'000; ++i) {
    const std::string damaged = tests::mutated(intact[i % intact.size()], k_pieces, 4, random);
    const auto build = read_bytes(damaged);
    refused += build ? 0 : 1;
    if (build) {
      EXPECT_LT(build->kernels.size(), 10U);
    }
  }
  EXPECT_GT(refused, 100U);
}

TEST(AmdOccupancy, IsWhatRegistersAllow) {
  struct Case {
    const char* target;
    std::uint32_t registers, scalars, shared, threads, waves;
  };
  // VGPRs of kernels of llama.cpp, and the waves that LLVM's functions give for them.
  const std::vector<Case> cases = {
      {"gfx942", 185, 0, 0, 64, 2},
      {"gfx942", 128, 0, 0, 64, 4},
      {"gfx942", 168, 0, 0, 64, 3},
      {"gfx942", 512, 0, 0, 64, 1},
      {"gfx90a:xnack-", 8, 0, 0, 64, 8},
      {"gfx908", 40, 0, 0, 64, 6},
      {"gfx900", 24, 90, 0, 64, 8},
      {"gfx900", 24, 80, 0, 64, 10},
      {"gfx1030", 40, 106, 0, 32, 16},
      {"gfx1030", 256, 0, 0, 32, 4},
      {"gfx1100", 141, 0, 0, 32, 10},
      {"gfx1100", 256, 0, 0, 32, 5},
      {"gfx1102", 256, 0, 0, 32, 4},
      {"gfx1010", 40, 0, 0, 32, 20},
      // A group of 256 threads: two fit by shared memory, on four SIMDs.
      {"gfx942", 8, 0, 32 << 10, 64, 2},
      {"gfx950", 8, 0, 32 << 10, 64, 5},
      // As LLVM reports it of kernels that Triton 3.9.0 compiles.
      {"gfx1250", 29, 0, 0, 32, 16},
      {"gfx1250", 70, 0, 0, 32, 12},
      {"gfx1250", 148, 0, 0, 32, 6},
      {"gfx1250", 205, 0, 0, 32, 4},
      {"gfx1250", 370, 0, 0, 32, 2},
      {"gfx1250", 594, 0, 0, 32, 1},
      {"gfx1201", 162, 0, 0, 32, 9},
      // A group of 8 waves: two fit by shared memory, on four SIMDs.
      {"gfx1250", 8, 0, 160 << 10, 32, 4},
  };
  for (const Case& c : cases) {
    profile::KernelFigures figures;
    figures.registers = c.registers;
    figures.scalar_registers = c.scalars;
    figures.shared_memory_bytes = c.shared;
    figures.group_threads = 256;
    EXPECT_EQ(amd_occupancy(c.target, figures, {c.threads, false}), c.waves)
        << c.target << ", " << c.registers << " registers";
  }
  EXPECT_FALSE(amd_occupancy("gfx1310", {.registers = 8}, {}));
}

// --- code of LLVM's own compiler

constexpr const char* k_llc = "/usr/bin/llc-14";

// Returns the code object that LLVM makes of a kernel that holds 64 registers, of which it may have
// as many as `registers` ("" for any number).
std::string compile(const std::string& gpu, const std::string& registers) {
  const sys::RealFiles files;
  const Folder folder;
  const std::string source = folder.path() + "/k.ll", object = folder.path() + "/k.o";
  const std::string limit = registers.empty() ? "" : "\"amdgpu-num-vgpr\"=\"" + registers + "\"";
  std::ofstream(source) << R"(target triple = "amdgcn-amd-amdhsa"
declare i32 @llvm.amdgcn.workitem.id.x()
define amdgpu_kernel void @adds(<32 x float> addrspace(1)* %p) #0 {
  %t = call i32 @llvm.amdgcn.workitem.id.x()
  %g = getelementptr <32 x float>, <32 x float> addrspace(1)* %p, i32 %t
  %a = load volatile <32 x float>, <32 x float> addrspace(1)* %g
  %b = load volatile <32 x float>, <32 x float> addrspace(1)* %g
  %c = fadd <32 x float> %a, %b
  store volatile <32 x float> %a, <32 x float> addrspace(1)* %g
  store volatile <32 x float> %c, <32 x float> addrspace(1)* %g
  store volatile <32 x float> %b, <32 x float> addrspace(1)* %g
  ret void
}
attributes #0 = { "amdgpu-flat-work-group-size"="1,256" )"
                        << limit << " }\n";
  const Ran ran = run(
      {k_llc, "-mtriple=amdgcn-amd-amdhsa", "-mcpu=" + gpu, "-filetype=obj", source, "-o", object},
      {});
  EXPECT_EQ(ran.status, 0) << ran.err;
  return files.read(object, 1 << 20).value_or("");
}

TEST(AmdCode, OfACompilerHasTheSpillsThatWereAskedFor) {
  if (!std::filesystem::exists(k_llc)) GTEST_SKIP() << "llc-14 is not here (Debian's llvm-14)";
  struct Case {
    const char* gpu;
    const char* registers;
    std::uint32_t spilled, scratch, waves;
  };
  // What llc-14 writes into its assembly: .vgpr_spill_count, ScratchSize, Occupancy.
  for (const Case& c : {Case{"gfx1030", "", 0, 0, 12}, Case{"gfx1030", "40", 40, 164, 16},
                        Case{"gfx900", "40", 40, 164, 6}, Case{"gfx908", "40", 0, 0, 6},
                        Case{"gfx90a", "40", 0, 0, 7}}) {
    const auto kernels = read_amd_object(compile(c.gpu, c.registers));
    ASSERT_TRUE(kernels) << c.gpu << ": " << kernels.error().message;
    ASSERT_EQ(kernels->size(), 1U);
    const GpuKernel& kernel = kernels->front();
    EXPECT_EQ(kernel.symbol, "adds");
    EXPECT_EQ(kernel.target, c.gpu);
    EXPECT_EQ(kernel.figures.spilled_vgprs, c.spilled) << c.gpu;
    EXPECT_EQ(kernel.figures.scratch_bytes, c.scratch) << c.gpu;
    EXPECT_EQ(kernel.figures.occupancy, c.waves) << c.gpu;
    EXPECT_EQ(kernel.figures.group_threads, 256U);
  }
}

TEST(AmdCode, OfTritonIsReadFromItsHsaco) {
  struct Case {
    const char* target;
    std::uint32_t registers, scalar_registers, threads;
  };
  // What Triton 3.9.0 writes into its assembly for tests/probes/triton/compile.py.
  for (const Case& c : {Case{"gfx942", 20, 21, 256}, Case{"gfx1100", 57, 22, 128}}) {
    const std::string name =
        fmt::format(WEIR_SOURCE_DIR "/tests/probes/triton/softmax-{}.hsaco", c.target);
    const auto kernels = read_amd_object(sys::RealFiles().read(name, 1 << 20).value_or(""));
    ASSERT_TRUE(kernels) << kernels.error().message;
    ASSERT_EQ(kernels->size(), 1U);
    const GpuKernel& kernel = kernels->front();
    EXPECT_EQ(kernel.symbol, "softmax");
    EXPECT_EQ(kernel.target, c.target);
    EXPECT_EQ(kernel.figures.registers, c.registers);
    EXPECT_EQ(kernel.figures.scalar_registers, c.scalar_registers);
    EXPECT_EQ(kernel.figures.group_threads, c.threads);
    EXPECT_EQ(kernel.figures.spilled_vgprs, 0U);
  }
}

}  // namespace amd_code_test
}  // namespace weir::probes
