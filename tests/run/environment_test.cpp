// Tests which environment variables an engine is started with.
#include "gate/run/environment.hpp"

#include <map>

#include <gtest/gtest.h>

namespace weir::run {
namespace environment_test {

std::map<std::string, std::string> merged(const sys::EnvironmentList& inherited,
                                          const config::Environment& config,
                                          const config::Environment& probes = {}) {
  const auto list = merge_environment(inherited, config, probes);
  return {list.begin(), list.end()};
}

using Map = std::map<std::string, std::string>;

TEST(Environment, AddsToLoaderListsAndNeverReplacesThem) {
  struct Case {
    const char* name;
    const char* inherited;
    const char* config;
    const char* probe;
    const char* want;
  };
  const Case cases[] = {
      // Folders: those of the configuration come first.
      {"VK_LAYER_PATH", "/user", "/config", "/probe", "/probe:/config:/user"},
      {"LD_LIBRARY_PATH", "/a:/b", "/c", "", "/c:/a:/b"},
      {"VK_ADD_LAYER_PATH", "", "", "/probe", "/probe"},
      // Layers and preloads: the probe comes next to the driver.
      {"VK_INSTANCE_LAYERS", "VK_LAYER_user", "VK_LAYER_config", "VK_LAYER_weir",
       "VK_LAYER_user:VK_LAYER_config:VK_LAYER_weir"},
      {"LD_PRELOAD", "a.so b.so", "", "probe.so", "a.so:b.so:probe.so"},
      {"OPENCL_LAYERS", "x.so", "", "y.so", "x.so:y.so"},
      // Preloads by a bare name, as a twin's, come behind the probe.
      {"LD_PRELOAD", "/user/a.so b.so", "libcudart.so.13:stubs.so", "/probe.so",
       "/user/a.so:/probe.so:b.so:libcudart.so.13:stubs.so"},
      // An entry that is there already is not repeated, also if a probe returns the whole list.
      {"VK_INSTANCE_LAYERS", "VK_LAYER_user", "", "VK_LAYER_user:VK_LAYER_weir",
       "VK_LAYER_user:VK_LAYER_weir"},
      {"LD_LIBRARY_PATH", "/a::/b:", "/b", "", "/b:/a"},
  };
  for (const Case& c : cases) {
    config::Environment config, probes;
    if (*c.config != 0) config[c.name] = c.config;
    if (*c.probe != 0) probes[c.name] = c.probe;
    EXPECT_EQ(merged({{c.name, c.inherited}}, config, probes), (Map{{c.name, c.want}}));
  }
}

TEST(Environment, ReplacesEverythingElse) {
  EXPECT_EQ(merged({{"A", "old"}, {"B", "kept by whoever inherits it"}}, {{"A", "new"}},
                   {{"WEIR_PROBE_DIR", "/x"}}),
            (Map{{"A", "new"}, {"WEIR_PROBE_DIR", "/x"}}));
  // A chosen driver must stay the only one.
  EXPECT_EQ(merged({{"VK_DRIVER_FILES", "/all"}}, {{"VK_DRIVER_FILES", "/one"}}),
            (Map{{"VK_DRIVER_FILES", "/one"}}));
}

// The loader finds the twin's libraries, and those of functions that it lacks, by their names.
TEST(Environment, OfATwinPreloadsWhatStandsInForAPrograms) {
  const probes::RuntimeApi api{};
  DeviceTwin twin;
  twin.driver = "/twins/cuda";
  twin.runtime = &api;
  EXPECT_FALSE(twin_environment(twin, 0).contains("LD_PRELOAD"));
  twin.files.preloads = {"libcudart.so.13", "libcudnn.so.9"};
  twin.files.stubs = "/out/twins/stubs-1.so";
  const config::Environment variables = twin_environment(twin, 0);
  EXPECT_EQ(variables.at("LD_PRELOAD"), "libcudart.so.13:libcudnn.so.9:stubs-1.so");
  EXPECT_EQ(variables.at("LD_LIBRARY_PATH"), "/twins/cuda:/out/twins");
}

TEST(Environment, OfProbesIsNotTakenOver) {
  EXPECT_EQ(probes_own({{"PATH", "/bin"},
                        {"WEIR_PROFILE", "ops"},
                        {"WEIR_PROBE_DIR", "/tmp/x"},
                        {"WEIR_PROBE_EVENTS", "1"},
                        {"WEIR_PROBES", "/opt/probes"}}),
            (std::vector<std::string>{"WEIR_PROFILE", "WEIR_PROBE_DIR", "WEIR_PROBE_EVENTS"}));
}

}  // namespace environment_test
}  // namespace weir::run
