// `weir device matrix` as people read it.
#include "gate/report/device_matrix.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gate/base/text.hpp"

#include "tests/report/support.hpp"

namespace weir::report {
namespace {

using support::expect_golden;
using testing::HasSubstr;
using testing::Not;

profile::Profile on(const std::string& device, std::int64_t barriers,
                    std::map<std::string, Rational> kernels) {
  profile::Profile out;
  out.cell = {.engine = "llama.cpp",
              .variant = "default",
              .model = "tiny",
              .backend = device,
              .prompt = "decode",
              .depth = std::nullopt,
              .concurrency = std::nullopt};
  const auto add = [&](const char* base, std::int64_t value) {
    profile::Measurement measured;
    measured.metric = unit::count_metric(base, unit::Scope::per_token);
    measured.exact = Rational(value);
    out.metrics[measured.metric.name] = measured;
  };
  add("dispatches", 65);
  add("barriers", barriers);
  out.kernels.emplace();
  out.kernels->counts = std::move(kernels);
  return out;
}

std::vector<profile::Profile> three_kinds() {
  return {on("amd-rx-580", 46, {{"flash_attn", 4}, {"mul_mat_vec", 29}}),
          on("amd-rx-6900-xt", 46, {{"flash_attn", 4}, {"mul_mat_vec", 29}}),
          on("amd-rx-7900-xtx", 46, {{"flash_attn_cm1", 4}, {"mul_mat_vec", 29}}),
          on("intel-arc-b580", 54, {{"flash_attn", 4}, {"mul_mat_vec", 29}})};
}

TEST(DeviceMatrix, PutsDevicesThatDoTheSameInOneColumn) {
  auto profiles = three_kinds();
  profiles.push_back(on("broken", 0, {}));
  profiles.back().errors = {"counted: crashed\n::error::here"};
  expect_golden("device-matrix.txt", device_matrix_text(profiles, false, 80));
  expect_golden("device-matrix-all.txt", device_matrix_text(profiles, true, 80));
}

TEST(DeviceMatrix, KeepsHostileNamesInert) {
  auto profiles = three_kinds();
  profiles[0].kernels->counts["\x1b[31m<script>alert(1)</script>\n::error::x"] = 1;
  const std::string text = device_matrix_text(profiles, true, 80);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_THAT(text, Not(HasSubstr("\n::")));
  const std::string page = device_matrix_html(profiles);
  EXPECT_THAT(page, Not(HasSubstr("<script")));
  EXPECT_THAT(page, HasSubstr("&lt;script"));
  EXPECT_THAT(page, HasSubstr("amd-rx-7900-xtx"));
}

}  // namespace
}  // namespace weir::report
