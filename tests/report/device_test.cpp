// Tests the text that lists descriptions of devices.
#include <gtest/gtest.h>

#include "gate/base/json.hpp"
#include "gate/report/device_text.hpp"

#include "tests/report/support.hpp"

namespace weir::report {
namespace device_test {

using support::expect_golden;

std::vector<DeviceLine> lines() {
  return {{"amd-rx-7900-xtx",
           "AMD Radeon RX 7900 XTX (RDNA 3, RADV)",
           "from public data: device line in an issue; PCI ids",
           "",
           {"vulkan", "hip"}},
          {"broken", "", "", "configs/devices/broken.json: not valid JSON at byte 1 of 2"},
          {"mine", "llvmpipe", "recorded", "", {"vulkan", "cuda"}},
          {"plain", "A card\n::error::from a \x1b[31mhostile\x1b[0m file", "", ""}};
}

TEST(DeviceText, ListsDescriptionsAndWhereTheirValuesComeFrom) {
  expect_golden("device-list.txt", device_list_text(lines(), 80));
  EXPECT_NE(device_list_text({}, 80).find("weir device record"), std::string::npos);
}

TEST(DeviceText, ListsThemForProgramsToo) {
  const auto json = parse_json(device_list_json(lines()));
  ASSERT_TRUE(json);
  EXPECT_EQ((*json)["schema"], "weir.device-list/1");
  EXPECT_EQ((*json)["devices"][0]["name"], "amd-rx-7900-xtx");
  EXPECT_EQ((*json)["devices"][2]["source"], "recorded");
  EXPECT_TRUE((*json)["devices"][1].contains("error"));
}

TEST(DeviceText, ShowsWhatEnginesDecideByWithItsSourceAndItsDoubts) {
  const DeviceSheet sheet{
      "amd-rx-7900-xtx",
      "AMD Radeon RX 7900 XTX (RDNA 3, RADV)",
      "from public data: device line in an issue; PCI ids",
      {"queue families and memory types are those usual for its driver, with all of the memory "
       "visible to the host"},
      {"VkNoSuch: unknown"},
      {{"device", "AMD Radeon RX 7900 XTX (RADV NAVI31) (discrete-gpu)"},
       {"subgroup size", "64, from 32 to 64 on request"},
       {"memory", "16 GiB: host-visible host-coherent; host-visible host-coherent host-cached"},
       {"", "23.98 GiB: device-local; device-local host-visible host-coherent"}}};
  expect_golden("device-show.txt", device_text(sheet, 80));
}

}  // namespace device_test
}  // namespace weir::report
