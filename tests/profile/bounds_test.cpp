// Tests that what is said of a cell stays as short as somebody reads it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gate/base/json.hpp"
#include "gate/profile/assemble.hpp"
#include "gate/profile/paired.hpp"

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

TEST(Bounds, NumbersOfPairsAreBoundedByMetricsTimesPairs) {
  std::vector<RunRecord> records;
  const auto add = [&](std::int64_t pair, int metrics) {
    for (const Side side : {Side::base, Side::candidate}) {
      RunRecord& record = records.emplace_back(record_with({}, {}));
      record.pass = Pass::timed;
      record.side = side;
      record.order = std::ssize(records);
      record.pair = pair;
      for (int i = 0; i < metrics; ++i) {
        record.report->times.push_back({*unit::find_metric("op:" + std::to_string(i)), {1.0}});
      }
    }
  };
  add(0, 5000);
  for (std::int64_t pair = 1; pair <= 20; ++pair) add(pair, 1);
  CellFacts facts;
  facts.cell = *CellKey::parse(k_cell);
  const PairedRuns most = paired_runs(facts, records);
  EXPECT_EQ(most.error, std::nullopt);
  EXPECT_EQ(most.metrics.size(), 5000U);
  add(21, 1);
  const PairedRuns more = paired_runs(facts, records);
  EXPECT_EQ(more.error, "timed: 5000 metrics in 21 pairs are more than 100000 numbers");
  EXPECT_TRUE(more.metrics.empty());
}

TEST(Bounds, ManyMetricsOfTimeAreAllThereAndNoneBesides) {
  RunRecord record = record_with({}, {});
  record.pass = Pass::timed;
  for (int i = 0; i < 300; ++i) {
    record.report->times.push_back({*unit::find_metric("op:" + std::to_string(i)), {1.0}});
  }
  CellFacts facts;
  facts.cell = *CellKey::parse(k_cell);
  const Profile profile = assemble(facts, std::span(&record, 1));
  EXPECT_EQ(profile.metrics.size(), 300U);
}

TEST(Bounds, DifferentErrorsOfACellAreListedUpToANumber) {
  std::vector<RunRecord> records;
  for (int i = 0; i < 3000; ++i) {
    RunRecord& record = records.emplace_back(record_with({}, {}));
    record.order = i;
    record.error = "exit " + std::to_string(i);
  }
  CellFacts facts;
  facts.cell = *CellKey::parse(k_cell);
  const Profile profile = assemble(facts, records);
  EXPECT_EQ(profile.errors.size(), 201U);
  EXPECT_EQ(profile.errors.front(), "counted: 1 of 3000 runs: exit 0");
}

TEST(Bounds, TextsThatEachMeasurementCopiesMustBeShort) {
  RunRecord record = record_with({}, {});
  record.probes.resize(1);
  const auto problem = [&] {
    const auto read = read_fields<RunRecord>(write_fields(record), "record");
    return read ? std::string() : read.error().message;
  };
  record.probes[0].probe = std::string(256, 'p');
  EXPECT_EQ(problem(), "");
  record.probes[0].probe += "p";
  EXPECT_THAT(problem(), HasSubstr("has a text of more than 256 bytes"));
  record.probes[0].probe = "vulkan";
  record.report->engine_build = std::string(2001, 'b');
  EXPECT_THAT(problem(), HasSubstr("has a text of more than 2000 bytes"));
  record.report->engine_build = "b1";
  for (int i = 0; i < 129; ++i) {
    record.probes[0].code_facts["00"].options["constant " + std::to_string(i)] = "1";
  }
  EXPECT_THAT(problem(), HasSubstr("has too many options"));

  CellFacts facts;
  facts.cell = *CellKey::parse(k_cell);
  const auto problem_of_facts = [&] {
    const auto read = read_fields<CellFacts>(write_fields(facts), "cell");
    return read ? std::string() : read.error().message;
  };
  EXPECT_EQ(problem_of_facts(), "");
  facts.engine_source = std::string(257, 's');
  EXPECT_THAT(problem_of_facts(), HasSubstr("has a text of more than 256 bytes"));
  facts.engine_source = "llama-bench";
  facts.cpu_ops_when["ADD"] = std::vector<std::string>(65, "ne0 < 128");
  EXPECT_THAT(problem_of_facts(), HasSubstr("has too many conditions of one op"));
  facts.cpu_ops_when.clear();
  for (int i = 0; i < 257; ++i) {
    facts.provenance.fingerprint_parts["part " + std::to_string(i)] = "00";
  }
  EXPECT_THAT(problem_of_facts(), HasSubstr("has a fingerprint of too many parts"));
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
