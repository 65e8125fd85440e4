// Tests that an upload is charged with what it takes in a database, and that no name and no time
// that it chooses makes a verdict complete.
#include <filesystem>

#include <gmock/gmock.h>
#include <pqxx/pqxx>

#include "gate/history/documents.hpp"
#include "gate/history/store.hpp"

#include "tests/history/store/stores.hpp"

namespace weir::history {
namespace service_quota_tests {

class QuotaTest : public OnBoth {
 protected:
  std::unique_ptr<ServiceStore> service() {
    return value_of(open_service_store(parse_address(where_)));
  }
  // Bytes of the database's tables and indexes. Nothing has it open.
  std::int64_t size() {
    if (GetParam() == Kind::sqlite) {
      return static_cast<std::int64_t>(std::filesystem::file_size(where_));
    }
    pqxx::connection connection(where_);
    pqxx::work work(connection);
    return work
        .exec1(
            "SELECT SUM(pg_total_relation_size(oid)) FROM pg_class "
            "WHERE relname LIKE 'weir\\_%' AND relkind = 'r'")[0]
        .as<std::int64_t>();
  }

  std::string where_ = fresh();
};

Run run_named(const std::string& id, std::vector<Point> points = {}) {
  return run_at(id, 5, std::move(points));
}

std::string long_name(int number) { return fmt::format("{:0400d}", number); }

// Batches that take much more in a database than in an upload, each in another way.
Batch make_shape(const std::string& shape) {
  Batch batch;
  if (shape == "points") {
    for (int run = 0; run < 8; ++run) {
      std::vector<Point> points;
      for (int i = 0; i < 500; ++i) points.push_back(count_point(fmt::format("c{}", i), i));
      batch.runs.push_back(run_named(fmt::format("r{}", run), std::move(points)));
    }
  } else if (shape == "names") {
    std::vector<Point> points;
    for (int i = 0; i < 400; ++i) {
      points.push_back(count_point(long_name(i), 1, long_name(i)));
      points.back().place.device_class = long_name(i);
    }
    batch.runs = {run_named("r", std::move(points))};
  } else if (shape == "samples") {
    std::vector<Point> points;
    for (int i = 0; i < 40; ++i) {
      points.push_back(time_point(fmt::format("c{}", i), 1, std::vector<double>(2000, 1.0 / 3)));
    }
    batch.runs = {run_named("r", std::move(points))};
  } else if (shape == "runs") {
    for (int i = 0; i < 1000; ++i) {
      batch.runs.push_back(run_named(long_name(i)));
      batch.runs.back().facts.branch = long_name(i);
    }
  } else if (shape == "verdicts") {
    for (int i = 0; i < 1000; ++i) {
      batch.verdicts.push_back(verdict_at(long_name(i), i, "pass"));
      batch.verdicts.back().branch = long_name(i);
    }
  } else {
    for (int i = 0; i < 1000; ++i) {
      batch.acknowledgements.push_back(acknowledged(long_name(i), long_name(i)));
    }
  }
  return batch;
}

TEST_P(QuotaTest, ChargesWhatAnUploadTakesInTheDatabase) {
  for (const std::string shape :
       {"points", "names", "samples", "runs", "verdicts", "acknowledgements"}) {
    where_ = fresh();
    service();
    const std::int64_t empty = size();
    Upload upload;
    upload.batch = make_shape(shape);
    upload.quota = Quota{.day_runs = 100'000};
    upload.bytes = 1;
    const auto outcomes = value_of(service()->add_uploads(std::vector<Upload>{upload}));
    ASSERT_EQ(outcomes.at(0).kind, UploadOutcome::Kind::kept) << shape << outcomes.at(0).text;
    const Added& added = outcomes[0].done.added;
    const std::int64_t grown = size() - empty;
    RecordProperty(shape, fmt::format("{} grown, {} charged", grown, added.bytes));
    EXPECT_GE(added.bytes + added.name_bytes, grown) << shape;
    EXPECT_LT(added.bytes + added.name_bytes, 16 * grown) << shape;
  }
}

TEST_P(QuotaTest, RefusesWhatWouldTakeMoreThanItMayAndKeepsNothingOfIt) {
  Upload upload;
  upload.batch = make_shape("points");
  upload.bytes = 1;  // a body of any length
  upload.who = "t";
  upload.quota = Quota{.bytes = 100'000};
  Upload other = upload;
  other.batch.runs = {run_named("other", {count_point("c", 1)})};
  const auto outcomes =
      value_of(service()->add_uploads(std::vector<Upload>{upload, other, upload}));
  EXPECT_EQ(outcomes.at(0).kind, UploadOutcome::Kind::too_much);
  EXPECT_EQ(outcomes.at(0).until, std::nullopt);
  EXPECT_EQ(outcomes.at(1).kind, UploadOutcome::Kind::kept);
  EXPECT_EQ(outcomes.at(2).kind, UploadOutcome::Kind::too_much);
  EXPECT_EQ(content_of(service()->history()).runs.size(), 1U);
  upload.quota = Quota{.day_bytes = 100'000};
  const auto today = value_of(service()->add_uploads(std::vector<Upload>{upload}));
  EXPECT_EQ(today.at(0).kind, UploadOutcome::Kind::too_much);
  EXPECT_NE(today.at(0).until, std::nullopt);
  EXPECT_EQ(content_of(service()->history()).runs.size(), 1U);
}

// Names stay when their run is removed, so their bytes do not come back.
TEST_P(QuotaTest, GivesNoBytesOfNamesBackWithARun) {
  int kept = 0;
  for (int i = 0; i < 40; ++i) {
    std::vector<Point> points;
    for (int j = 0; j < 20; ++j) points.push_back(count_point(long_name(100 * i + j), 1));
    Upload upload;
    upload.batch.runs = {run_named("r", std::move(points))};
    upload.quota = Quota{.bytes = 200'000};
    const auto outcomes = value_of(service()->add_uploads(std::vector<Upload>{upload}));
    if (outcomes.at(0).kind == UploadOutcome::Kind::kept) ++kept;
    Upload removal;
    removal.removes = Removal{"default", "r", "t"};
    value_of(service()->add_uploads(std::vector<Upload>{removal}));
  }
  EXPECT_GT(kept, 1);
  EXPECT_LT(kept, 20);
}

class CompleteTest : public QuotaTest {
 protected:
  // Uploads a verdict on these cells; returns its outcome.
  std::string upload(const std::vector<std::string>& cells, double time,
                     const std::string& branch = "main", const std::string& machine = "m") {
    std::vector<verdict::CellVerdict> judged;
    for (const std::string& cell : cells) {
      judged.emplace_back().cell = value_of(profile::CellKey::parse("a/m/b/" + cell));
    }
    verdict::GateVerdict gate = verdict::judge_gate(std::move(judged), {});
    const std::string run = fmt::format("r{}", ++runs_);
    gate.commit = run;
    Upload one;
    one.batch.runs = {run_at(run, time, {count_point("a/m/b/p", 65)})};
    one.batch.runs[0].facts.machine = machine;
    one.batch.verdicts = {stored_verdict(one.batch.runs[0].facts, run, gate, time)};
    one.batch.verdicts[0].branch = branch;
    return value_of(service()->add_uploads(std::vector<Upload>{one}))
        .at(0)
        .done.verdicts.at(0)
        .outcome;
  }

 private:
  int runs_ = 0;
};

TEST_P(CompleteTest, IsNoVerdictThatStandsJustBehindTheOldest) {
  EXPECT_EQ(upload({"good"}, 10), "pass");
  EXPECT_EQ(upload({"good", "bad"}, 100), "pass");
  // A branch or machine of its own, in the time of the oldest, and then now.
  EXPECT_EQ(upload({"good"}, 11, "evil", "evil"), "error");
  EXPECT_EQ(upload({"good"}, 200, "evil", "evil"), "error");
  EXPECT_EQ(upload({"good"}, 12, "evil"), "error");
  EXPECT_EQ(upload({"good"}, 201, "evil"), "error");
  EXPECT_EQ(upload({"good"}, 13, "main", "evil"), "error");
  EXPECT_EQ(upload({"good", "bad"}, 202, "evil", "evil"), "pass");
}

TEST_P(CompleteTest, IsNoVerdictOfABranchThatTheDefaultOneHasLeftBehind) {
  EXPECT_EQ(upload({"good"}, 10, "main"), "pass");
  EXPECT_EQ(upload({"good"}, 20, "old"), "pass");
  EXPECT_EQ(upload({"good", "bad"}, 30, "main"), "pass");
  EXPECT_EQ(upload({"good"}, 25, "old"), "pass");  // before that, and so never the newest
  EXPECT_EQ(upload({"good"}, 40, "old"), "error");
  EXPECT_EQ(upload({"good", "bad"}, 50, "old"), "pass");
  // A branch that adds a cell takes nothing from the default one.
  EXPECT_EQ(upload({"good", "bad", "more"}, 60, "adds"), "pass");
  EXPECT_EQ(upload({"good", "bad"}, 70, "main"), "pass");
}

INSTANTIATE_TEST_SUITE_P(Both, QuotaTest, testing::Values(Kind::sqlite, Kind::postgres), name_of);
INSTANTIATE_TEST_SUITE_P(Both, CompleteTest, testing::Values(Kind::sqlite, Kind::postgres),
                         name_of);

}  // namespace service_quota_tests
}  // namespace weir::history
