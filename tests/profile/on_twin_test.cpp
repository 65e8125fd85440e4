// Tests which counts of a device twin are valid for the device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gate/base/json.hpp"
#include "gate/profile/assemble.hpp"

namespace weir::profile {
namespace on_twin_test {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* k_cell = "llama.cpp/tiny/rx7900/decode";

CellFacts facts() {
  CellFacts out;
  out.cell = *CellKey::parse(k_cell);
  out.device = "vulkan";
  out.twin = "amd-rx-7900-xtx";
  out.device_present = "AMD Radeon RX 7900 XTX";
  out.provenance.device_class = "twin-amd-rx-7900-xtx";
  out.engine_source = "llama-bench";
  return out;
}

// 65 dispatches a token and 10 at the start, counted by the probe above the twin's driver.
RunRecord counted(std::int64_t order, std::int64_t tokens, std::int64_t fill = 0) {
  RunRecord record;
  record.cell = k_cell;
  record.pass = Pass::counted;
  record.order = order;
  record.parameters.tokens = tokens;
  record.twin_fill = fill;
  record.report.emplace();
  record.report->generated_tokens = tokens;
  record.report->output_digest = "made up";
  ProbeCounts probe;
  probe.probe = "vulkan";
  probe.devices = {{"vulkan", "AMD Radeon RX 7900 XTX", "discrete", "vulkan-1002-744c-3-1-0a"}};
  probe.counts = {{"dispatches", 10 + 65 * tokens}, {"syncs", tokens}, {"polls", order * 1000}};
  probe.kernels = {{"mul", 10 + 65 * tokens}};
  probe.kernels_named = true;
  record.probes.push_back(probe);
  return record;
}

std::vector<RunRecord> a_pass() {
  return {counted(0, 4), counted(1, 8), counted(2, 12), counted(3, 4, 0xa5)};
}

// Returns a change of a record: its process ended by this signal.
auto signaled(int signal) {
  return [signal](RunRecord& record) {
    record.ended = Ended::signaled;
    record.signal = signal;
  };
}

TEST(OnTwin, CountsAsTheDeviceAndLeavesOutWhatItMakesUp) {
  const Profile profile = assemble(facts(), a_pass());
  EXPECT_THAT(profile.errors, IsEmpty());
  EXPECT_EQ(profile.metrics.at("dispatches_per_token").exact, Rational(65));
  EXPECT_EQ(profile.counted_runs, 3);
  EXPECT_EQ(profile.provenance.device_class, "twin-amd-rx-7900-xtx");
  EXPECT_FALSE(profile.work.output_digest);
  EXPECT_THAT(profile.warnings, testing::Contains(HasSubstr("what a twin computes")));
}

TEST(OnTwin, RefusesAnEngineThatLooksAtWhatTheDeviceComputes) {
  auto records = a_pass();
  records[3].probes[0].counts["dispatches"] += 7;
  const Profile profile = assemble(facts(), records);
  EXPECT_THAT(profile.errors,
              ElementsAre(HasSubstr("dispatches went from 270 to 277 when the device's results "
                                    "were other bytes")));
  EXPECT_EQ(profile.metrics.count("dispatches_per_token"), 0U);

  // The same number of different kernels is noticed, too.
  records = a_pass();
  records[3].probes[0].kernels = {{"mul", 100}, {"other", 170}};
  EXPECT_THAT(assemble(facts(), records).errors, ElementsAre(HasSubstr("kernel mul")));
}

TEST(OnTwin, RefusesCountsOfAnotherDevice) {
  auto records = a_pass();
  for (RunRecord& record : records) record.probes[0].devices[0].name = "llvmpipe";
  EXPECT_THAT(assemble(facts(), records).errors,
              ElementsAre(HasSubstr("asked for the twin amd-rx-7900-xtx, but the work ran on "
                                    "llvmpipe")));
}

TEST(OnTwin, ATwinWithTooLittleMemoryIsTheErrorAndANumber) {
  auto records = a_pass();
  for (RunRecord& record : records) record.probes[0].counts["out_of_memory"] = 1;
  EXPECT_FALSE(assemble(facts(), records).metrics.contains("fits")) << "the engine went on without";
  for (RunRecord& record : records) record.error = "exit 1";
  const Profile profile = assemble(facts(), records);
  EXPECT_EQ(profile.metrics.at("fits").exact, Rational(0));
  EXPECT_THAT(profile.errors, ElementsAre("counted: all 4 runs: exit 1"));
  // A time-out, a crash and a process that was not refused are other errors.
  const auto fits_after = [&](auto change) {
    auto others = records;
    change(others[1]);
    return assemble(facts(), others).metrics.contains("fits");
  };
  EXPECT_TRUE(fits_after(signaled(6)));
  EXPECT_FALSE(fits_after(signaled(11)));
  EXPECT_FALSE(fits_after([](RunRecord& record) { record.ended = Ended::timed_out; }));
  EXPECT_FALSE(fits_after([](RunRecord& record) { record.probes[0].counts["out_of_memory"] = 0; }));
  EXPECT_FALSE(fits_after([](RunRecord& record) { record.error.reset(); }));
  for (RunRecord& record : records) record.probes[0].counts["out_of_memory"] = 0;
  EXPECT_TRUE(assemble(facts(), records).metrics.empty()) << "it ended for another reason";
}

TEST(OnTwin, NamesTheTwinAsAPossibleCauseOfACrashAlone) {
  const auto error_after = [](auto change) {
    auto records = a_pass();
    for (RunRecord& record : records) {
      record.error = "it ended";
      change(record);
    }
    const Profile profile = assemble(facts(), records);
    EXPECT_THAT(profile.errors, testing::SizeIs(1));
    return profile.errors.at(0);
  };
  constexpr int k_abort = 6, k_segv = 11, k_kill = 9;
  const auto blames_twin = HasSubstr("it ended; the device twin may be why");
  EXPECT_THAT(error_after(signaled(k_abort)), blames_twin);
  EXPECT_THAT(error_after(signaled(k_segv)), blames_twin);
  EXPECT_THAT(error_after([](RunRecord& record) { record.exit_code = 128 + k_segv; }), blames_twin);
  EXPECT_THAT(error_after(signaled(k_kill)), testing::Not(blames_twin));
  EXPECT_THAT(error_after([](RunRecord& record) { record.exit_code = 1; }),
              testing::Not(blames_twin));
  EXPECT_THAT(error_after([&](RunRecord& record) {
                signaled(k_abort)(record);
                record.probes[0].counts["out_of_memory"] = 1;
              }),
              testing::Not(blames_twin))
      << "the twin says itself that it has too little memory";
}

TEST(OnTwin, KeepsTheFillOfARecord) {
  const RunRecord record = counted(3, 4, 0xa5);
  const auto again = read_fields<RunRecord>(write_fields(record), "record");
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(*again, record);
}

}  // namespace on_twin_test
}  // namespace weir::profile
