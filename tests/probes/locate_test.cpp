// Tests of finding the probe libraries.
#include "gate/probes/read/locate.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/probes/support.hpp"

namespace weir::probes {
namespace locate_test {

using testing::HasSubstr;

void put(const std::filesystem::path& path, bool program = false) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path) << "x";
  if (program) std::filesystem::permissions(path, std::filesystem::perms::all);
}

std::optional<std::string> no_variable(std::string_view) { return std::nullopt; }

TEST(Locate, FindsProbesBesideABuildAndBelowAnInstallation) {
  const sys::RealFiles files;
  const Folder folder;
  put(folder.path() + "/lib/weir/probes/VK_LAYER_WEIR_probe.json");
  put(folder.path() + "/libexec/weir/weir-devices", true);
  for (const char* program : {"/weir", "/bin/weir", "/tests/probes_test"}) {
    const auto places = locate(files, folder.path() + program, std::nullopt);
    ASSERT_TRUE(places) << program << ": " << places.error().message;
    EXPECT_EQ(places->probes, folder.path() + "/lib/weir/probes") << program;
    EXPECT_EQ(places->devices_program, folder.path() + "/libexec/weir/weir-devices") << program;
  }
}

TEST(Locate, TakesTheFolderNamedByTheVariableInstead) {
  const sys::RealFiles files;
  const Folder folder;
  put(folder.path() + "/mine/weir-devices", true);
  const auto places = locate(files, "/nowhere/weir", folder.path() + "/mine");
  ASSERT_TRUE(places) << places.error().message;
  EXPECT_EQ(places->probes, folder.path() + "/mine");
  EXPECT_EQ(places->devices_program, folder.path() + "/mine/weir-devices");
  const auto missing = locate(files, "/nowhere/weir", folder.path() + "/none");
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message, HasSubstr("WEIR_PROBES"));
}

TEST(Locate, SaysWhereItLooked) {
  const sys::RealFiles files;
  const auto places = locate(files, "/nowhere/bin/weir", std::nullopt);
  ASSERT_FALSE(places);
  EXPECT_EQ(places.error().code, Code::unavailable);
  EXPECT_THAT(places.error().message, HasSubstr("/nowhere/lib/weir/probes"));
}

TEST(Locate, FindsTheProbesOfThisBuildAndTheyAreAttachedByTheEnvironmentItNames) {
  const sys::RealFiles files;
  const auto places = locate(files);
  ASSERT_TRUE(places) << places.error().message;
  EXPECT_TRUE(files.executable(places->devices_program));
  const Folder folder;
  const auto env = environment_for("vulkan", *places, folder.path(), files,
                                   [](std::string_view) { return std::nullopt; });
  ASSERT_TRUE(env) << env.error().message;
  EXPECT_EQ(run({WEIR_SCENES, "many"}, *env).status, 0);
  EXPECT_EQ(merge("vulkan", probe_files(folder.path())).counts.at("dispatches"), 16);
}

TEST(EnvironmentFor, HidesNoOtherLayerFromTheLoader) {
  const sys::RealFiles files;
  const Folder folder;
  put(folder.path() + "/VK_LAYER_WEIR_probe.json");
  const Places places{folder.path(), ""};
  const auto path = [&](std::map<std::string, std::string> has) {
    const auto env = environment_for("vulkan", places, "/out", files, [&](std::string_view name) {
      const auto match = has.find(std::string(name));
      return match == has.end() ? std::optional<std::string>() : match->second;
    });
    EXPECT_TRUE(env);
    EXPECT_EQ(env->at("WEIR_PROBE_DIR"), "/out");
    EXPECT_EQ(env->at("VK_INSTANCE_LAYERS"), "VK_LAYER_WEIR_probe");
    return env->at("VK_LAYER_PATH");
  };
  // Set already: the loader looks nowhere else anyway, and weir keeps what is there.
  EXPECT_EQ(path({{"VK_LAYER_PATH", "/theirs"}}), folder.path());
  // Not set: the loader's own places stay, in its order.
  EXPECT_EQ(path({{"HOME", "/home/me"}}),
            folder.path() +
                ":/home/me/.config/vulkan/explicit_layer.d:/etc/xdg/vulkan/explicit_layer.d"
                ":/usr/local/etc/vulkan/explicit_layer.d:/etc/vulkan/explicit_layer.d"
                ":/home/me/.local/share/vulkan/explicit_layer.d"
                ":/usr/local/share/vulkan/explicit_layer.d:/usr/share/vulkan/explicit_layer.d");
  // VK_ADD_LAYER_PATH is ignored by the loader once VK_LAYER_PATH is set.
  EXPECT_THAT(path({{"VK_ADD_LAYER_PATH", "/added"}}),
              testing::StartsWith(folder.path() + ":/added:"));
}

TEST(EnvironmentFor, PreloadsTheGgmlProbeForEveryDevice) {
  const sys::RealFiles files;
  const Folder folder;
  put(folder.path() + "/libweir_ggml.so");
  put(folder.path() + "/a b/libweir_ggml.so");
  const auto env = environment_for("ggml", {folder.path(), ""}, "/out", files, no_variable);
  ASSERT_TRUE(env) << env.error().message;
  EXPECT_EQ(env->at("WEIR_PROBE_DIR"), "/out");
  EXPECT_EQ(env->at("LD_PRELOAD"), folder.path() + "/libweir_ggml.so");
  // The loader would look for two libraries.
  const auto blank =
      environment_for("ggml", {folder.path() + "/a b", ""}, "/out", files, no_variable);
  ASSERT_FALSE(blank);
  EXPECT_EQ(blank.error().code, Code::unavailable);
  const auto& devices = probe_devices().at("ggml");
  for (const char* device : {"cpu", "vulkan", "opencl", "cuda", "hip", "metal"}) {
    EXPECT_THAT(devices, testing::Contains(device));
  }
}

TEST(EnvironmentFor, SwitchesOnTheMarksOfAnEngineThatLoadsNothing) {
  const sys::RealFiles files;
  const auto env = environment_for("instrument", {"/nowhere", ""}, "/out", files, no_variable);
  ASSERT_TRUE(env) << env.error().message;
  EXPECT_THAT(*env, testing::UnorderedElementsAre(testing::Pair("WEIR_PROBE_DIR", "/out"),
                                                  testing::Pair("WEIR_PROFILE", "counts,ops")));
  EXPECT_THAT(probe_devices_here().at("instrument"), testing::Contains("metal"));
}

TEST(EnvironmentFor, LetsTheDriverLoadASecondCudaProbeWhereItIsBuiltAndNobodyElseIsNamed) {
  const sys::RealFiles files;
  const Folder folder;
  put(folder.path() + "/libweir_cuda.so");
  std::map<std::string, std::string> set;
  const auto cuda_environment = [&] {
    return environment_for("cuda", {folder.path(), ""}, "/out", files,
                           [&](std::string_view name) -> std::optional<std::string> {
                             const auto match = set.find(std::string(name));
                             return match == set.end() ? std::nullopt
                                                       : std::optional(match->second);
                           })
        .value_or(std::map<std::string, std::string>());
  };
  const std::map<std::string, std::string> alone{
      {"WEIR_PROBE_DIR", "/out"}, {"LD_PRELOAD", folder.path() + "/libweir_cuda.so"}};
  EXPECT_EQ(cuda_environment(), alone);
  put(folder.path() + "/libweir_cupti.so");
  EXPECT_EQ(cuda_environment()["CUDA_INJECTION64_PATH"], folder.path() + "/libweir_cupti.so");
  set["CUDA_INJECTION64_PATH"] = "/a/profiler.so";
  EXPECT_EQ(cuda_environment(), alone);
}

TEST(EnvironmentFor, RefusesWhatItDoesNotHave) {
  const sys::RealFiles files;
  const Folder folder;
  const auto unknown = environment_for("tracing", {folder.path(), ""}, "/out", files, no_variable);
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, Code::config);
  for (const char* probe : {"vulkan", "ggml", "opencl", "cuda", "hip", "metal"}) {
    const auto missing = environment_for(probe, {folder.path(), ""}, "/out", files, no_variable);
    ASSERT_FALSE(missing) << probe;
    EXPECT_EQ(missing.error().code, Code::unavailable) << probe;
  }
}

}  // namespace locate_test
}  // namespace weir::probes
