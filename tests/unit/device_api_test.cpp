// Tests the table of device APIs.
#include "gate/unit/device_api.hpp"

#include <gtest/gtest.h>

namespace weir::unit {
namespace device_api_test {

TEST(DeviceApis, AreToldByTheNamesOfTheirGgmlBackends) {
  const struct {
    const char *backend, *api;
  } cases[] = {
      {"Vulkan0", "vulkan"}, {"CUDA1", "cuda"}, {"ROCm0", "hip"},     {"MTL0", "metal"},
      {"Metal", "metal"},    {"CPU", ""},       {"OpenCL", "opencl"}, {"RPC0", ""},
      {"BLAS", ""},          {"", ""},
  };
  for (const auto& [backend, api] : cases) EXPECT_EQ(find_api_of_ggml_backend(backend), api);
}

}  // namespace device_api_test
}  // namespace weir::unit
