// weir device: the descriptions that come with it, this machine's, and files of others.
#include "tests/e2e/weir_process.hpp"

namespace weir::e2e {
namespace device_test {

TEST(Device, ListsWhatComesWithWeirAndWhatLiesBesideTheConfig) {
  const Scratch scratch;
  spill(scratch / "configs/devices/mine.json",
        slurp(WEIR_SOURCE_DIR "/configs/devices/apple-m2-moltenvk.json"));
  const Ended ended = weir(scratch, {"device", "list", "--json"});
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  const Json json = json_of(ended);
  EXPECT_EQ(json.value("schema", ""), "weir.device-list/1");
  std::map<std::string, std::string> titles;
  for (const Json& device : json["devices"]) {
    titles[device.value("name", "")] = device.value("title", "");
    EXPECT_EQ(device.value("error", ""), "");
  }
  EXPECT_GE(titles.size(), 13U);
  EXPECT_EQ(titles["mine"], "Apple M2 (MoltenVK)");
  EXPECT_EQ(titles.count("amd-rx-7900-xtx"), 1U);
}

TEST(Device, ShowsOneAndTwoWhereItIsUnknown) {
  const Scratch scratch;
  const Ended shown = weir(scratch, {"device", "show", "amd-rx-6900-xt"});
  EXPECT_EQ(shown.exit_code, 0) << shown.err;
  EXPECT_NE(shown.out.find("80 compute units"), std::string::npos) << shown.out;
  EXPECT_NE(shown.out.find("from public data"), std::string::npos) << shown.out;
  EXPECT_EQ(shown.out.find("Doubt"), std::string::npos) << shown.out;
  const Ended unknown = weir(scratch, {"device", "show", "amd-rx-6900xt"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_NE(unknown.err.find("did you mean \"amd-rx-6900-xt\"?"), std::string::npos) << unknown.err;
}

TEST(Device, RecordsThisMachineWithoutSerialNumbersAndCompilesIt) {
  const Scratch scratch;
  const Ended recorded = weir(
      scratch, {"device", "record", "--output", "configs/devices/here.json", "--title", "Here"});
  ASSERT_EQ(recorded.exit_code, 0) << recorded.err;
  const std::string text = slurp(scratch / "configs/devices/here.json");
  EXPECT_EQ(text.find("UUID"), std::string::npos);
  const Json json = Json::parse(text);
  EXPECT_EQ(json["weir"]["source"], "recorded");
  EXPECT_EQ(json["weir"]["title"], "Here");
  const Ended compiled = weir(scratch, {"device", "compile", "here", "--output", "here.twin"});
  ASSERT_EQ(compiled.exit_code, 0) << compiled.err;
  EXPECT_NE(compiled.out.find("WEIR_TWIN="), std::string::npos);
  EXPECT_EQ(slurp(scratch / "here.twin").rfind("WEIRTWN", 0), 0U);
  EXPECT_EQ(weir(scratch, {"device", "record", "--index", "60"}).exit_code, 2);
}

TEST(Device, ImportsWhatOthersWrite) {
  const Scratch scratch;
  Json document = Json::parse(slurp(WEIR_SOURCE_DIR "/configs/devices/nvidia-rtx-2080.json"));
  document.erase("weir");
  spill(scratch / "VP_VULKANINFO.json", document.dump());
  const Ended imported =
      weir(scratch, {"device", "import", "VP_VULKANINFO.json", "--name", "turing"});
  ASSERT_EQ(imported.exit_code, 0) << imported.err;
  EXPECT_NE(imported.err.find("memory: not described"), std::string::npos) << imported.err;
  const Json json = Json::parse(imported.out);
  EXPECT_EQ(json["weir"]["name"], "turing");
  EXPECT_EQ(json["weir"]["title"], "NVIDIA GeForce RTX 2080");
  EXPECT_EQ(weir(scratch, {"device", "import", "VP_VULKANINFO.json", "--name", "A B"}).exit_code,
            2);
  EXPECT_EQ(weir(scratch, {"device", "import", "absent.json"}).exit_code, 3);
}

}  // namespace device_test
}  // namespace weir::e2e
