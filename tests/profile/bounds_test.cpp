// Tests that what is said of a cell stays as short as somebody reads it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gate/base/json.hpp"
#include "gate/profile/assemble.hpp"

namespace weir::profile {
namespace bounds_test {

using testing::HasSubstr;

constexpr const char* k_cell = "e/m/vulkan/p";

RunRecord record_with(std::vector<std::string> warnings, std::vector<std::string> of_engine) {
  RunRecord record;
  record.cell = k_cell;
  record.pass = Pass::counted;
  record.parameters.tokens = 4;
  record.warnings = std::move(warnings);
  record.report.emplace();
  record.report->warnings = std::move(of_engine);
  return record;
}

TEST(Bounds, WarningsOfACellAreListedUpToANumber) {
  std::vector<std::string> lines;
  for (int i = 0; i < 100'000; ++i)
    lines.push_back("line " + std::string(static_cast<std::size_t>(1 + i % 1000), 'x') +
                    std::to_string(i));
  CellFacts facts;
  facts.cell = *CellKey::parse(k_cell);
  facts.device = "vulkan";
  const RunRecord record = record_with(lines, lines);
  const Profile profile = assemble(facts, std::span(&record, 1));
  EXPECT_LE(profile.warnings.size(), 202);
  EXPECT_THAT(profile.warnings, testing::Contains("more lines like these are left out"));
}

TEST(Bounds, ARecordOfMoreProbesThanThereAreIsRefused) {
  RunRecord record = record_with({}, {});
  record.probes.resize(256);
  for (std::size_t i = 0; i < record.probes.size(); ++i) record.probes[i].probe = std::to_string(i);
  EXPECT_TRUE(read_fields<RunRecord>(write_fields(record), "record").has_value());
  record.probes.push_back(record.probes.front());
  const auto read = read_fields<RunRecord>(write_fields(record), "record");
  ASSERT_FALSE(read.has_value());
  EXPECT_THAT(read.error().message, HasSubstr("has too many probes"));
}

}  // namespace bounds_test
}  // namespace weir::profile
