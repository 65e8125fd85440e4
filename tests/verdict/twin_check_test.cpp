// Tests the comparison of device twins with the device itself.
#include <gmock/gmock.h>

#include "gate/base/json.hpp"
#include "gate/verdict/verdict.hpp"

#include "tests/verdict/build.hpp"

namespace weir::verdict::test {
namespace twin_check_test {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Vendor, device, driver id, driver version and features of a RADV device.
constexpr const char* k_radv = "vulkan-1002-744c-3-5803006-00000000000000aa";

profile::Profile on_the_card(const std::string& device_class = k_radv) {
  profile::Profile real = reference();
  real.provenance.device_class = device_class;
  real.provenance.probed_device_class = device_class;
  real.provenance.probed_device_name = "AMD Radeon RX 7900 XTX (RADV NAVI31)";
  return real;
}

profile::Profile on_the_twin() {
  profile::Profile twin = on_the_card();
  twin.cell.backend = "rx7900";
  twin.provenance.device_class = "twin-amd-rx-7900-xtx";
  twin.provenance.fingerprint_parts["device description"] = "d1";
  return twin;
}

struct Checked {
  std::vector<CellVerdict> cells;
  std::vector<std::string> notes;
};

Checked check(const std::vector<profile::Profile>& profiles) {
  Checked checked;
  for (const profile::Profile& profile : profiles) checked.cells.push_back(judge(profile, {}));
  checked.notes = check_twins(profiles, checked.cells);
  return checked;
}

TEST(TwinCheck, TellsOnceWhenATwinCountsAsTheRealDeviceDoes) {
  profile::Profile prefill_twin = on_the_twin(), prefill = on_the_card();
  prefill.cell.prompt = prefill_twin.cell.prompt = "prefill";
  const Checked checked = check({on_the_card(), on_the_twin(), prefill, prefill_twin});
  // Four counts each, from reference().
  EXPECT_THAT(checked.notes,
              ElementsAre("twin amd-rx-7900-xtx against the real AMD Radeon RX 7900 XTX (RADV "
                          "NAVI31): 8 counts of 2 cells equal, and their kernels"));
  EXPECT_FALSE(checked.cells[0].twin_check);
  ASSERT_TRUE(checked.cells[1].twin_check);
  EXPECT_TRUE(checked.cells[1].twin_check->equal());
  EXPECT_EQ(checked.cells[1].twin_check->compared, 4);
  EXPECT_EQ(checked.cells[1].twin_check->against.str(), "llama.cpp/tiny-llama/vulkan/decode");
  EXPECT_THAT(checked.cells[1].twin_check->about, IsEmpty());
  EXPECT_THAT(checked.cells[1].warnings, IsEmpty());
}

TEST(TwinCheck, NamesEveryDifferenceOfCountsAndKernelsAndFailsNothing) {
  profile::Profile real = on_the_card("vulkan-1002-744c-3-5c00000-00000000000000bb");
  add_count(real, "dispatches_per_token", 85);
  add_count(real, "copies_per_token", 2);
  real.kernels->counts = {{"mul_mat", 53}, {"rms_norm", 12}, {"mul", 20}};
  real.provenance.fingerprint_parts["arguments"] = "a2";
  const Outcome alone = check({on_the_twin()}).cells[0].verdict;
  const Checked checked = check({on_the_twin(), real});
  EXPECT_EQ(checked.cells[0].verdict, alone);
  EXPECT_THAT(checked.notes, ElementsAre(HasSubstr("1 of 1 cell differs")));
  ASSERT_EQ(checked.cells[0].warnings.size(), 1U);
  EXPECT_EQ(checked.cells[0].warnings[0],
            "the twin amd-rx-7900-xtx does not count as the real device does: dispatches/token 65 "
            "(85 on the device), copies/token not counted (2 on the device); kernels rms_norm_mul "
            "12 (0 on the device), mul 0 (20 on the device), rms_norm 0 (12 on the device). Known "
            "besides: driver version 0x5803006 described, 0x5c00000 here; features, limits or "
            "extensions described are not those here; the two cells differ in their arguments. "
            "weir device record describes the device as it is here.");
  const TwinCheck& twin_check = *checked.cells[0].twin_check;
  EXPECT_FALSE(twin_check.equal());
  EXPECT_EQ(twin_check.differences.size(), 2U);
  EXPECT_EQ(twin_check.kernels.size(), 3U);
}

TEST(TwinCheck, ComparesOnlyWithTheDeviceThatIsDescribed) {
  struct Case {
    const char* what;
    profile::Profile real;
    std::size_t checks;
    std::string note;
  };
  profile::Profile lavapipe = on_the_card("vulkan-10005-0000-d-1-0a");
  lavapipe.provenance.probed_device_name = "llvmpipe";
  profile::Profile named_alike = on_the_card("vulkan-1002-0000-3-1-0a");  // database without ids
  profile::Profile amdvlk = on_the_card("vulkan-1002-744c-2-5803006-00000000000000aa");
  profile::Profile other_prompt = on_the_card(), other_model = on_the_card(),
                   other_variant = on_the_card(), failed = on_the_card(), unseen = on_the_card(""),
                   second_twin = on_the_twin();
  other_prompt.cell.prompt = "prefill";
  other_model.cell.model = "tiny-gemma3";
  other_variant.cell.variant = "fused";
  failed.errors = {"counted: exit 1"};
  second_twin.cell.backend = "rx7900b";
  const std::vector<Case> cases{
      {"another device", lavapipe, 0, ""},
      {"the same name under other ids", named_alike, 1, "counts of 1 cell equal"},
      {"another driver", amdvlk, 0, "is here with another driver"},
      {"another prompt", other_prompt, 0, ""},
      {"another model", other_model, 0, ""},
      {"another variant", other_variant, 0, ""},
      {"could not be measured", failed, 0, ""},
      {"no probe saw the device", unseen, 0, ""},
      {"a twin itself", second_twin, 0, ""},
  };
  for (const Case& test_case : cases) {
    SCOPED_TRACE(test_case.what);
    const Checked checked = check({test_case.real, on_the_twin()});
    EXPECT_EQ(checked.cells[1].twin_check.has_value(), test_case.checks == 1);
    ASSERT_EQ(checked.notes.size(), test_case.note.empty() ? 0U : 1U);
    if (!checked.notes.empty()) {
      EXPECT_THAT(checked.notes[0], HasSubstr(test_case.note));
    }
  }
}

TEST(TwinCheck, TakesTheCellThatWasRunMostAlike) {
  profile::Profile quiet = on_the_card();
  quiet.cell.backend = "quiet";
  quiet.provenance.fingerprint_parts["arguments"] = "a2";
  add_count(quiet, "dispatches_per_token", 1);
  const Checked checked = check({quiet, on_the_card(), on_the_twin()});
  ASSERT_TRUE(checked.cells[2].twin_check);
  EXPECT_EQ(checked.cells[2].twin_check->against.backend, "vulkan");
}

TEST(TwinCheck, LeavesOutWhatVariesAndWhatTheProcessorDid) {
  profile::Profile real = on_the_card(), twin = on_the_twin();
  add_nearly(real, "syncs_per_token", {1, 2, 3});
  add_nearly(real, "instructions_per_token", {100, 101, 102});
  real.kernels->runs_disagree = true;
  const Checked checked = check({real, twin});
  ASSERT_TRUE(checked.cells[1].twin_check);
  EXPECT_TRUE(checked.cells[1].twin_check->equal());
  EXPECT_EQ(checked.cells[1].twin_check->compared, 3);
  EXPECT_FALSE(checked.cells[1].twin_check->kernels_compared);
  EXPECT_THAT(checked.notes, ElementsAre(HasSubstr("not all kernels could be compared")));
}

TEST(TwinCheck, NumbersThatManyTwinsAreComparedWithHaveABound) {
  profile::Profile real = on_the_card();
  for (int i = 0; i < 5'000; ++i) add_count(real, fmt::format("kernel_calls:k{}", i), i);
  std::vector<profile::Profile> profiles{real};
  for (int i = 0; i < 30; ++i) {
    profiles.push_back(on_the_twin());
    profiles.back().cell.backend = fmt::format("rx{}", i);
  }
  const Checked checked = check(profiles);
  const auto is_compared = [](const CellVerdict& cell) { return cell.twin_check.has_value(); };
  EXPECT_EQ(std::ranges::count_if(checked.cells, is_compared), 19) << "of 5000 numbers and a few";
  EXPECT_THAT(checked.notes, ElementsAre(HasSubstr("11 of 30 cells not compared")));
}

TEST(TwinCheck, ManyBackendsWithTheDeviceOfATwinAreNotAllLookedAt) {
  std::vector<profile::Profile> profiles;
  for (int i = 0; i < 100; ++i) {
    profiles.push_back(on_the_card());
    profiles.back().cell.backend = fmt::format("b{}", i);
    profiles.back().provenance.fingerprint_parts["arguments"] = i == 99 ? "" : "a2";
  }
  profiles.push_back(on_the_twin());
  const Checked checked = check(profiles);
  ASSERT_TRUE(checked.cells.back().twin_check);
  EXPECT_EQ(checked.cells.back().twin_check->against.backend, "b0");
}

TEST(TwinCheck, IsTheSameAfterBeingWrittenAndReadAgain) {
  profile::Profile real = on_the_card();
  add_count(real, "dispatches_per_token", *Rational::parse("171/2"));
  real.kernels->counts = {{"mul_mat", 53}};
  Checked checked = check({on_the_twin(), real});
  const Json written = write_fields(judge_gate(std::move(checked.cells), {}));
  EXPECT_EQ(written["cells"][1]["twin_check"], Json());
  const Json& twin = written["cells"][0]["twin_check"];
  EXPECT_EQ(twin["equal"], false);
  EXPECT_EQ(twin["differences"][0]["real"], "171/2");
  const auto read = read_fields<GateVerdict>(written, "verdict");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(write_fields(*read), written);
}

}  // namespace twin_check_test
}  // namespace weir::verdict::test
