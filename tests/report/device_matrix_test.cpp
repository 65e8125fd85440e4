// Tests the text of `weir device matrix`.
#include "gate/report/device_matrix.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gate/base/text.hpp"

#include "tests/report/support.hpp"

namespace weir::report {
namespace device_matrix_test {

using support::expect_golden;
using testing::HasSubstr;
using testing::Not;

profile::Profile make_profile(const std::string& device, std::int64_t barriers,
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
  return {make_profile("amd-rx-580", 46, {{"flash_attn", 4}, {"mul_mat_vec", 29}}),
          make_profile("amd-rx-6900-xt", 46, {{"flash_attn", 4}, {"mul_mat_vec", 29}}),
          make_profile("amd-rx-7900-xtx", 46, {{"flash_attn_cm1", 4}, {"mul_mat_vec", 29}}),
          make_profile("intel-arc-b580", 54, {{"flash_attn", 4}, {"mul_mat_vec", 29}})};
}

TEST(DeviceMatrix, PutsDevicesThatDoTheSameInOneColumn) {
  auto profiles = three_kinds();
  profiles.push_back(make_profile("broken", 0, {}));
  profiles.back().errors = {"counted: crashed\n::error::here"};
  expect_golden("device-matrix.txt", device_matrix_text(profiles, false, 80));
  expect_golden("device-matrix-all.txt", device_matrix_text(profiles, true, 80));
}

TEST(DeviceMatrix, StaysWithinItsWidthWithManyDevicesAndLongNames) {
  std::vector<profile::Profile> profiles;
  for (int i = 0; i < 40; ++i) {
    const std::string kernel(static_cast<std::size_t>(20 + i), 'k');
    profiles.push_back(make_profile(fmt::format("device-{}", i), 46 + i, {{kernel, 1000000 + i}}));
  }
  for (const int width : {40, 80, 120}) {
    const std::string text = device_matrix_text(profiles, true, width);
    for (const std::string& line : text::lines(text)) {
      EXPECT_LE(text::columns(line), static_cast<std::size_t>(width)) << line;
    }
    // The text has every number once, with some letter.
    EXPECT_THAT(text, HasSubstr("1000000"));
    EXPECT_THAT(text, HasSubstr("1000039"));
  }
}

TEST(DeviceMatrix, SaysWhereTheWorkDidNotRunOnTheDevice) {
  auto profiles = three_kinds();
  profiles[3].placement.state = profile::Placement::State::ran_elsewhere;
  profiles[3].placement.reason = "all 82 ops ran on the CPU";
  EXPECT_THAT(device_matrix_text(profiles, false, 80),
              HasSubstr("  intel-arc-b580: all 82 ops ran on the CPU\n"));
  EXPECT_THAT(device_matrix_html(profiles), HasSubstr("intel-arc-b580: all 82 ops ran on the CPU"));
}

TEST(DeviceMatrix, MarksOnThePageWhatMostDevicesDoNotHave) {
  // Three devices in two columns have 46 barriers, one has 54.
  const std::string page = device_matrix_html(three_kinds());
  EXPECT_THAT(page, HasSubstr("<th scope=\"row\">barriers/token</th><td class=\"n\">46</td>"
                              "<td class=\"n\">46</td><td class=\"n other\">54</td>"));
  EXPECT_THAT(page, HasSubstr("<tr class=\"same\"><th scope=\"row\">dispatches/token</th>"));
}

TEST(DeviceMatrix, KeepsHostileNamesInert) {
  auto profiles = three_kinds();
  profiles[1].cell.backend = "\" onmouseover=\"alert(1)";
  profiles[0].kernels->counts["\x1b[31m<script>alert(1)</script>\n::error::x"] = 1;
  const std::string text = device_matrix_text(profiles, true, 80);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_THAT(text, Not(HasSubstr("\n::")));
  const std::string page = device_matrix_html(profiles);
  EXPECT_THAT(page, Not(HasSubstr("<script")));
  EXPECT_THAT(page, HasSubstr("&lt;script"));
  EXPECT_THAT(page, Not(HasSubstr("\" onmouseover")));
  EXPECT_THAT(page, HasSubstr("amd-rx-7900-xtx"));
}

}  // namespace device_matrix_test
}  // namespace weir::report
