// The published llama.cpp on CUDA twins: what its kernels cost, compared with what a reader of its
// own finds in the machine code.
#include <cstring>
#include <filesystem>

#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zstd.h>

#include "gate/probes/hash.h"
#include "gate/probes/read/runtime_kernels.hpp"
#include "gate/probes/read/runtime_twin.hpp"
#include "gate/probes/twin/runtime/blob.h"

#include "tests/probes/support.hpp"

namespace weir::probes {
namespace cuda_llama_test {

using testing::HasSubstr;

const std::string k_engine = WEIR_SOURCE_DIR "/engines/llama.cpp-cuda13";

// --- the reader: machine code of one GPU in a fat binary, as nvdisasm and `readelf -x .nv.info`
// show it. It shares nothing with weir's but the hash.

template <class T>
T at(const std::string& bytes, std::size_t offset) {
  T out{};
  EXPECT_LE(offset + sizeof out, bytes.size());
  if (offset + sizeof out <= bytes.size()) std::memcpy(&out, bytes.data() + offset, sizeof out);
  return out;
}

struct Cost {
  std::uint32_t registers = 0, frame = 0;
  std::size_t code_bytes = 0;

  friend auto operator<=>(const Cost&, const Cost&) = default;
};

// By the hash of their code, of kernels whose code is there once or costs the same each time.
void add_kernels(const std::string& cubin, std::map<std::uint64_t, std::set<Cost>>* out) {
  const auto head = at<Elf64_Ehdr>(cubin, 0);
  std::vector<Elf64_Shdr> sections;
  for (int i = 0; i < head.e_shnum; ++i) {
    sections.push_back(at<Elf64_Shdr>(cubin, head.e_shoff + i * sizeof(Elf64_Shdr)));
  }
  const auto text_at = [&](const Elf64_Shdr& strings, std::size_t offset) {
    return std::string(cubin.c_str() + strings.sh_offset + offset);
  };
  std::map<std::string, Cost> costs;
  std::map<std::string, std::uint64_t> hashes;
  const Elf64_Shdr *info = nullptr, *symbols = nullptr;
  for (const Elf64_Shdr& section : sections) {
    const std::string name = text_at(sections[head.e_shstrndx], section.sh_name);
    if (name == ".nv.info") info = &section;
    if (section.sh_type == SHT_SYMTAB) symbols = &section;
    if (!name.starts_with(".text.")) continue;
    costs[name.substr(6)].code_bytes = section.sh_size;
    hashes[name.substr(6)] = weir_probe::hash_bytes(
        weir_probe::k_hash_seed, cubin.data() + section.sh_offset, section.sh_size);
  }
  if (info == nullptr || symbols == nullptr) return;
  struct Entry {
    std::uint8_t form, attribute;
    std::uint16_t size;
    std::uint32_t symbol, value;
  };
  for (std::size_t offset = 0; offset + 4 <= info->sh_size;) {
    const auto entry = at<Entry>(cubin, info->sh_offset + offset);
    offset += 4 + (entry.form == 4 ? entry.size : 0);
    if (entry.form != 4 || entry.size != 8) continue;
    const auto symbol = at<Elf64_Sym>(cubin, symbols->sh_offset + entry.symbol * sizeof(Elf64_Sym));
    const auto cost = costs.find(text_at(sections[symbols->sh_link], symbol.st_name));
    if (cost == costs.end()) continue;
    if (entry.attribute == 0x2f) cost->second.registers = entry.value;
    if (entry.attribute == 0x11) cost->second.frame = entry.value;
  }
  for (const auto& [name, cost] : costs) (*out)[hashes[name]].insert(cost);
}

std::map<std::uint64_t, std::set<Cost>> kernels_for(const std::string& library, int arch) {
  const std::string bytes = slurp(library);
  std::map<std::uint64_t, std::set<Cost>> out;
  // Entries of containers begin with: kind 2 (machine code), version 0x101, 64 bytes or more of
  // header.
  const std::string mark("\x02\x00\x01\x01", 4);
  for (std::size_t i = bytes.find(mark); i != std::string::npos; i = bytes.find(mark, i + 4)) {
    if (i + 64 > bytes.size() || at<std::uint32_t>(bytes, i + 28) != std::uint32_t(arch)) continue;
    const auto header = at<std::uint32_t>(bytes, i + 4), packed = at<std::uint32_t>(bytes, i + 16);
    const auto unpacked_size = at<std::uint64_t>(bytes, i + 56);
    if (packed == 0 || unpacked_size == 0 || unpacked_size > (1U << 28)) continue;
    std::string cubin(unpacked_size, '\0');
    const std::size_t got =
        ZSTD_decompress(cubin.data(), cubin.size(), bytes.data() + i + header, packed);
    if (ZSTD_isError(got) == 0 && got == unpacked_size) add_kernels(cubin, &out);
  }
  return out;
}

// One token of the tiny model on a twin of `gpu`.
class CudaLlama : public testing::Test {
 protected:
  profile::ProbeCounts decode(const std::string& gpu) {
    const std::string library = k_engine + "/libggml-cuda.so";
    if (!std::filesystem::exists(library)) {
      ADD_FAILURE() << library << " is missing: run ci/setup test";
      return {};
    }
    const auto twin = read_twin(slurp(WEIR_SOURCE_DIR "/configs/devices/" + gpu + ".json"));
    const auto compiled =
        twin ? compile_runtime_twin(*twin, "cuda", 1) : tl::unexpected(twin.error());
    if (!compiled) {
      ADD_FAILURE() << compiled.error().message;
      return {};
    }
    const std::string bytes = slurp(library);
    const std::string_view elf = bytes;
    const auto kernels = read_cuda_kernels({&elf, 1}, compiled->major, compiled->minor);
    const Folder place, counted;
    std::ofstream(place.path() + "/twin") << compiled->blob;
    std::ofstream(place.path() + "/kernels") << kernels.value_or(RuntimeKernels()).table;
    for (const char* name :
         {"libcudart.so.13", "libcublas.so.13", "libcuda.so.1", "libnccl.so.2"}) {
      std::filesystem::create_symlink(WEIR_BINARY_DIR "/lib/weir/probes/libweir_twin_cuda.so",
                                      place.path() + "/" + name);
    }
    const Ran ran = run({k_engine + "/llama-bench", "-m", WEIR_SOURCE_DIR "/models/tiny-llama.gguf",
                         "-p", "0", "-n", "4", "-r", "1", "-ngl", "99", "-o", "json"},
                        {{"WEIR_PROBE_DIR", counted.path()},
                         {"LD_PRELOAD", WEIR_BINARY_DIR "/lib/weir/probes/libweir_cuda.so"},
                         {"LD_LIBRARY_PATH", place.path()},
                         {WEIR_RUNTIME_TWIN_VARIABLE, place.path() + "/twin"},
                         {WEIR_RUNTIME_KERNELS_VARIABLE, place.path() + "/kernels"}});
    EXPECT_EQ(ran.status, 0) << ran.err;
    return merge("cuda", probe_files(counted.path()));
  }
};

TEST_F(CudaLlama, SaysWhatItsKernelsCostAsTheMachineCodeHasIt) {
  const profile::ProbeCounts counts = decode("nvidia-rtx-4090");
  EXPECT_EQ(counts.compiler, "machine code");
  const auto truth = kernels_for(k_engine + "/libggml-cuda.so", 89);
  EXPECT_GT(truth.size(), 1000U);
  ASSERT_GE(counts.codes.size(), 10U);
  for (const auto& [key, dispatches] : counts.codes) {
    const std::string hash = key.substr(key.rfind('@') + 1);
    ASSERT_TRUE(counts.code_facts.contains(hash)) << key;
    const profile::CodeFacts& facts = counts.code_facts.at(hash);
    EXPECT_EQ(facts.not_compiled, "") << key;
    const Cost cost{static_cast<std::uint32_t>(facts.costs.at("registers")),
                    static_cast<std::uint32_t>(facts.costs.at("scratch_bytes")),
                    static_cast<std::size_t>(facts.costs.at("code_bytes"))};
    const auto match = truth.find(std::stoull(hash, nullptr, 16));
    ASSERT_NE(match, truth.end()) << key;
    EXPECT_TRUE(match->second.contains(cost)) << key << ": " << cost.registers << " registers";
    // A multiprocessor of compute capability 8.9 holds 48 warps.
    EXPECT_GE(facts.costs.at("occupancy"), 1) << key;
    EXPECT_LE(facts.costs.at("occupancy"), 48) << key;
  }
  for (int i = 0; i < 2; ++i) {
    const profile::ProbeCounts again = decode("nvidia-rtx-4090");
    EXPECT_EQ(again.code_facts, counts.code_facts);
    EXPECT_EQ(again.code_groups, counts.code_groups);
  }
}

TEST_F(CudaLlama, SaysThatTheDriverIsStillToCompileWhereOnlyPtxFits) {
  const profile::ProbeCounts counts = decode("nvidia-h100");
  EXPECT_EQ(counts.compiler, "");
  ASSERT_FALSE(counts.code_facts.empty());
  for (const auto& [hash, facts] : counts.code_facts) {
    EXPECT_TRUE(facts.costs.empty()) << hash;
    EXPECT_THAT(facts.not_compiled, HasSubstr("only PTX fits this GPU"));
  }
}

}  // namespace cuda_llama_test
}  // namespace weir::probes
