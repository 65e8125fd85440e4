// Compiles kernels that the real llama.cpp runs on a Radeon's device twin with Mesa's RADV, and
// kernels that its compiler never finishes. A test is skipped without the Mesa that it is about
// (ci/setup has 22.3, ci/mesa gets 25.0).
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gate/base/find.hpp"
#include "gate/base/json.hpp"
#include "gate/base/text.hpp"
#include "gate/probes/read/code_facts.hpp"
#include "gate/run/code_cache.hpp"
#include "gate/run/kernel_compiler.hpp"
#include "gate/source/base.hpp"
#include "gate/sys/paths.hpp"
#include "gate/unit/kernel_cost.hpp"

#include "tests/probes/support.hpp"
#include "tools/replay/vulkan/vulkan.hpp"

namespace weir::run {
namespace {

using probes::Folder;
using probes::RecordedKernels;
using testing::HasSubstr;
using testing::IsEmpty;

const std::string k_pinned = source::default_cache_folder().value_or("") + "/mesa/25.0.7";
constexpr const char* k_system = "/usr/share/vulkan";

// Decode and prefill of the real llama.cpp as on an RX 7900 XTX, recorded once.
class Llama {
 public:
  Llama() {
    const std::string weir = WEIR_BINARY_DIR "/weir";
    const auto twin = probes::run(
        {weir, "device", "compile", "amd-rx-7900-xtx", "--output", folder_.path() + "/card.twin"},
        {});
    std::map<std::string, std::string> env;
    for (const std::string& line : text::lines(twin.out)) {
      const auto equals = line.find('=');
      if (equals != std::string::npos) env[line.substr(0, equals)] = line.substr(equals + 1);
    }
    const std::string engine = WEIR_SOURCE_DIR "/engines/llama.cpp/llama-bench";
    const auto ran = probes::run(
        {weir, "replay", "--kernels", "--record", folder_.path(), "--", engine, "-m",
         WEIR_SOURCE_DIR "/models/tiny-llama.gguf", "-p", "64", "-n", "4", "-r", "1", "-ngl", "99"},
        env);
    EXPECT_EQ(ran.status, 0) << twin.err << ran.err;
    const sys::RealFiles files;
    const auto recorded = probes::recorded_kernel_files(files, folder_.path());
    if (!recorded) return;
    files_ = *recorded;
    auto read = probes::read_recorded_kernels(probes::slurp(files_.front()));
    if (read) kernels_ = std::move(*read);
  }
  [[nodiscard]] const std::vector<std::string>& files() const { return files_; }
  [[nodiscard]] const RecordedKernels& kernels() const { return kernels_; }
  [[nodiscard]] std::set<std::string> names_of(const std::string& identity) const {
    std::set<std::string> out;
    for (const auto& work : kernels_.works) {
      if (probes::pipeline_hash(kernels_.pipelines[work.pipeline]) == identity) {
        out.insert(work.name);
      }
    }
    return out;
  }
  [[nodiscard]] const std::vector<std::uint32_t>& spirv_of(const std::string& identity) const {
    const auto* pipeline = find_first(kernels_.pipelines, [&](const auto& candidate) {
      return probes::pipeline_hash(candidate) == identity;
    });
    return kernels_.codes[pipeline->head.code].words;
  }

 private:
  Folder folder_;
  std::vector<std::string> files_;
  RecordedKernels kernels_;
};
const Llama& llama() {
  static const Llama k_llama;
  return k_llama;
}

// The driver in `mesa`; nothing where there is none. `cache`: "" keeps nothing.
std::optional<CompilerPlaces> find_places(const std::string& mesa, const std::string& cache = "") {
  const sys::RealFiles files;
  const auto probes = probes::locate(files, WEIR_BINARY_DIR "/weir", {});
  auto places = find_compiler(files, *probes, "/nowhere", [&](std::string_view name) {
    return name == "WEIR_MESA" ? std::optional(mesa) : std::nullopt;
  });
  if (!places) return {};
  places->cache = cache;
  return std::move(*places);
}

struct Compiled {
  Result<CompiledCode> result;
  explicit Compiled(const CompilerPlaces& places, const std::string& target = "radv-navi31",
                    const std::vector<std::string>& files = llama().files())
      : result(compile(places, target, files)) {}
  const CompiledCode* operator->() const { return &*result; }

 private:
  static Result<CompiledCode> compile(const CompilerPlaces& places, const std::string& target,
                                      const std::vector<std::string>& files) {
    sys::RealFiles real;
    sys::RealProcesses processes;
    const sys::Stop stop;
    return KernelCompiler(real, processes, places).compile(target, files, stop);
  }
};

class BothMesas : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(CompiledKernels, BothMesas, testing::Values(k_pinned, k_system),
                         [](const auto& test) { return test.index == 0 ? "25_0" : "22_3"; });

TEST_P(BothMesas, MakeTheSameOfEachKernelEveryTime) {
  const auto places = find_places(GetParam());
  if (!places) GTEST_SKIP() << "no RADV in " << GetParam();
  const Compiled first(*places);
  ASSERT_TRUE(first.result) << first.result.error().message;
  EXPECT_EQ(first->codes.size(), llama().kernels().pipelines.size());
  EXPECT_THAT(first->warnings, IsEmpty());
  std::set<std::string> figures;
  for (const auto& [identity, facts] : first->codes) {
    EXPECT_NE(facts.costs.empty(), facts.not_compiled.empty()) << identity;
    for (const auto& [figure, value] : facts.costs) {
      figures.insert(figure);
      EXPECT_GE(value, 0) << figure;
    }
  }
  std::set<std::string> names;
  for (const auto& cost : unit::kernel_costs()) names.emplace(cost.name);
  EXPECT_EQ(figures, names);
  for (int repeat = 1; repeat < 20; ++repeat) {
    const Compiled again(*places);
    ASSERT_TRUE(again.result) << again.result.error().message;
    ASSERT_EQ(again->codes, first->codes);
    ASSERT_EQ(again->compiler, first->compiler);
  }
}

TEST_P(BothMesas, CompileForEachFamilyByOneName) {
  const auto places = find_places(GetParam());
  if (!places) GTEST_SKIP() << "no RADV in " << GetParam();
  std::set<std::string> compilers;
  for (const std::string target : {"radv-navi31", "radv-navi21", "radv-polaris10"}) {
    const Compiled all(*places, target);
    ASSERT_TRUE(all.result) << all.result.error().message;
    EXPECT_THAT(all->compiler, HasSubstr(target + ", Mesa 2"));
    compilers.insert(all->compiler);
  }
  EXPECT_EQ(compilers.size(), 3);
}

TEST_P(BothMesas, SayWhichTargetTheyDoNotKnow) {
  const auto places = find_places(GetParam());
  if (!places) GTEST_SKIP() << "no RADV in " << GetParam();
  const Compiled unknown(*places, "radv-navi99");
  ASSERT_FALSE(unknown.result);
  EXPECT_EQ(unknown.result.error().code, Code::unavailable);
  EXPECT_THAT(unknown.result.error().message, HasSubstr("does not compile for radv-navi99"));
  const Compiled none(*places, "navi31; rm");
  ASSERT_FALSE(none.result);
  EXPECT_EQ(none.result.error().code, Code::config);
}

TEST(CompiledKernels, OfCooperativeMatricesNeedAMesaThatHasThem) {
  const std::string need = "needs VK_KHR_cooperative_matrix";
  const auto older = find_places(k_system), newer = find_places(k_pinned);
  if (!older || !newer) GTEST_SKIP() << "needs both Mesas: ci/setup test and ci/mesa";
  const Compiled old(*older), recent(*newer);
  ASSERT_TRUE(old.result && recent.result);
  EXPECT_NE(old->compiler, recent->compiler);
  std::set<std::string> without;
  for (const auto& [identity, facts] : old->codes) {
    if (facts.not_compiled == need) without.merge(llama().names_of(identity));
    EXPECT_EQ(recent->codes.at(identity).not_compiled, "") << identity;
  }
  // ggml's names of what takes them: docs/reference/devices.md has the card's line, "matrix cores:
  // KHR_coopmat".
  EXPECT_TRUE(without.contains("flash_attn_f32_f16_aligned_cm1"))
      << text::join(std::vector<std::string>(without.begin(), without.end()));
  EXPECT_FALSE(without.contains("rms_norm_mul_f32"));
}

TEST(CompiledKernels, AreKeptForTheNextTime) {
  auto places = find_places(k_pinned);
  if (!places) places = find_places(k_system);
  if (!places) GTEST_SKIP() << "no RADV";
  const Folder cache;
  places->cache = cache.path() + "/kernels";
  const Compiled cold(*places);
  ASSERT_TRUE(cold.result) << cold.result.error().message;
  // Answers come from the cache: other figures in its file are returned.
  const std::string path = places->cache + "/codes-1.json";
  std::string text = probes::slurp(path);
  const auto at = text.find("\"registers\":");
  ASSERT_NE(at, std::string::npos);
  text.insert(at + 12, "77");
  std::ofstream(path) << text;
  const Compiled edited(*places);
  ASSERT_TRUE(edited.result);
  EXPECT_NE(edited->codes, cold->codes);
  // One that cannot be read is as if there were none.
  std::ofstream(path) << "{\"compilers\": [";
  const Compiled again(*places);
  ASSERT_TRUE(again.result);
  EXPECT_EQ(again->codes, cold->codes);
  EXPECT_EQ(probes::slurp(path).substr(0, 13), "{\"compilers\":");
}

TEST(CompiledKernels, ShowTheirMachineCode) {
  const auto places = find_places(k_pinned);
  if (!places) GTEST_SKIP() << "no Mesa 25.0.7: ci/mesa";
  sys::RealFiles files;
  sys::RealProcesses processes;
  const sys::Stop stop;
  KernelCompiler compiler(files, processes, *places);
  const auto& recorded = llama().kernels();
  const std::string identity = probes::pipeline_hash(recorded.pipelines.front());
  const auto code = compiler.assembly("radv-navi31", llama().files().front(), identity, stop);
  ASSERT_TRUE(code) << code.error().message;
  EXPECT_THAT(*code, HasSubstr("s_endpgm"));  // each program of a Radeon ends in it
  const auto missing = compiler.assembly("radv-navi31", llama().files().front(), "0", stop);
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message, HasSubstr("no code 0"));
}

TEST(CompiledKernels, LoseTheirFiguresAloneWhereTheCompilerGoesWrong) {
  auto places = find_places(k_pinned);
  if (!places) places = find_places(k_system);
  if (!places) GTEST_SKIP() << "no RADV";
  const Compiled intact(*places);
  ASSERT_TRUE(intact.result) << intact.result.error().message;
  // A driver in front of that one.
  const Folder folder;
  const Json manifest = parse_json(probes::slurp(places->driver)).value();
  const std::string library = manifest["ICD"]["library_path"];
  setenv("BROKEN_COMPILER_BEFORE", sys::join_path(sys::folder_of(places->driver), library).c_str(),
         1);
  Json broken = manifest;
  broken["ICD"]["library_path"] = WEIR_BROKEN_COMPILER;
  std::ofstream(folder.path() + "/icd.json") << broken;
  places->driver = folder.path() + "/icd.json";
  places->seconds = 3;
  places->memory_mib = 256;
  places->cache = folder.path() + "/kernels";
  // Four kernels whose SPIR-V is of a length of its own.
  std::map<std::size_t, std::vector<std::string>> by_size;
  for (const auto& [identity, facts] : intact->codes) {
    if (facts.not_compiled.empty())
      by_size[llama().spirv_of(identity).size() * 4].push_back(identity);
  }
  std::erase_if(by_size, [](const auto& entry) { return entry.second.size() != 1; });
  const std::vector<std::pair<std::string, std::string>> ways = {
      {"crash", "the compiler crashed (signal 11)"},
      {"hang", "took longer than 3 s"},
#ifndef __SANITIZE_ADDRESS__  // which ends a program that asks for as much as that
      {"grab", "took more than 0.25 GiB"},
#endif
      {"eat", "took more than 0.25 GiB"}};
  ASSERT_GE(by_size.size(), ways.size());
  std::map<std::string, std::string> expected;
  std::string wrong;
  auto next = by_size.begin();
  for (const auto& [how, words] : ways) {
    wrong += how + ":" + std::to_string(next->first) + ",";
    expected[next->second.front()] = words;
    ++next;
  }
  setenv("BROKEN_COMPILER", wrong.c_str(), 1);
  const auto check = [&](const CompiledCode& part, const char* when) {
    ASSERT_EQ(part.codes.size(), intact->codes.size()) << when;
    for (const auto& [identity, facts] : part.codes) {
      const std::string* words = look_up(expected, identity);
      if (words == nullptr) {
        EXPECT_EQ(facts, intact->codes.at(identity)) << when << identity;
      } else {
        EXPECT_EQ(facts.not_compiled, *words) << when;
        EXPECT_THAT(facts.costs, IsEmpty()) << when;
      }
    }
  };
  const Compiled part(*places);
  ASSERT_TRUE(part.result) << part.result.error().message;
  check(*part.result, "first ");
  // A crash is kept, what took too long is tried again.
  setenv("BROKEN_COMPILER", "", 1);
  for (auto entry = expected.begin(); entry != expected.end();) {
    entry = entry->second == "took longer than 3 s" ? expected.erase(entry) : std::next(entry);
  }
  const Compiled later(*places);
  ASSERT_TRUE(later.result) << later.result.error().message;
  check(*later.result, "later ");
}

TEST(CodeCache, IsSharedByRunsAndForgetsWhatWasNotAskedFor) {
  sys::RealFiles files;
  const Folder folder;
  const auto cache = [&](const std::string& compiler = "radv-navi31, Mesa 1") {
    return CodeCache(files, folder.path(), compiler);
  };
  const auto fill = [&](const std::string& prefix, int codes) {
    CodeCache some = cache();
    for (int i = 0; i < codes; ++i) some.put(prefix + std::to_string(i), {.costs = {{"waves", i}}});
    ASSERT_TRUE(some.save());
  };
  // Two that began before either had written.
  CodeCache first = cache(), second = cache("radv-navi21, Mesa 1");
  first.put("first", {.costs = {{"registers", 84}}});
  second.put("first", {.not_compiled = "the compiler crashed (signal 11)"});
  ASSERT_TRUE(first.save() && second.save());
  ASSERT_NE(cache().find("first"), nullptr);
  EXPECT_EQ(cache().find("first")->costs.at("registers"), 84);
  ASSERT_NE(cache("radv-navi21, Mesa 1").find("first"), nullptr);
  EXPECT_EQ(cache("radv-navi21, Mesa 2").find("first"), nullptr);
  // 20 000 codes are all that there is room for.
  fill("a", 15'000);
  CodeCache full = cache();
  ASSERT_NE(full.find("a7"), nullptr);
  for (int i = 0; i < 6000; ++i) full.put("b" + std::to_string(i), {.costs = {{"waves", i}}});
  ASSERT_TRUE(full.save());
  EXPECT_NE(cache().find("b7"), nullptr);
  EXPECT_NE(cache().find("a7"), nullptr) << "asked for since";
  EXPECT_EQ(cache().find("a8"), nullptr);
  EXPECT_EQ(cache().find("first"), nullptr);
}

// SPIR-V spelled as words: a header, and instructions of {operation, operands…}.
std::vector<std::uint32_t> assemble_module(
    const std::vector<std::vector<std::uint32_t>>& instructions) {
  std::vector<std::uint32_t> out = {0x07230203, 0x00010600, 0, 100, 0};
  for (const auto& instruction : instructions) {
    out.push_back(static_cast<std::uint32_t>(instruction.size()) << 16 | instruction.front());
    out.insert(out.end(), instruction.begin() + 1, instruction.end());
  }
  return out;
}

TEST(SpirvOfKernels, NeedsWhatItsCapabilitiesStandFor) {
  // 17 OpCapability: 1 Shader, 9 Float16, 6022 CooperativeMatrixKHR.
  replay::Device device;
  const auto check = [&](const std::vector<std::vector<std::uint32_t>>& capabilities) {
    const auto fits = replay::check_capabilities(device, assemble_module(capabilities));
    return fits ? "" : fits.error().message;
  };
  EXPECT_EQ(check({{17, 1}, {17, 9}}), "");
  EXPECT_EQ(check({{17, 1}, {17, 6022}, {17, 9}}), "needs VK_KHR_cooperative_matrix");
  device.extensions = {"VK_KHR_cooperative_matrix"};
  device.lacks = {"shaderFloat16"};
  EXPECT_EQ(check({{17, 1}, {17, 6022}, {17, 9}}), "needs shaderFloat16");
}

TEST(CompilerPlaces, SayWhatToDoWhereThereIsNone) {
  const sys::RealFiles files;
  probes::Places probes;
  probes.probes = "/opt/weir/probes";
  const auto mesa = [](const std::string& folder) {
    return [folder](std::string_view) { return std::optional(folder); };
  };
  const auto no_program = find_compiler(files, probes, "/nowhere", mesa("/nowhere"));
  ASSERT_FALSE(no_program);
  EXPECT_THAT(no_program.error().message, HasSubstr("weir-compile-vulkan is missing"));
  probes.compile_vulkan_program = "/opt/weir/weir-compile-vulkan";
  const auto no_driver = find_compiler(files, probes, "/nowhere", mesa("/nowhere"));
  ASSERT_FALSE(no_driver);
  EXPECT_EQ(no_driver.error().code, Code::unavailable);
  EXPECT_THAT(no_driver.error().message, HasSubstr("WEIR_MESA: /nowhere"));
}

}  // namespace
}  // namespace weir::run
