// Tests the data that the service stores in addition to a history, on SQLite and on a real
// PostgreSQL.
#include <gmock/gmock.h>

#include "gate/history/documents.hpp"
#include "gate/history/store.hpp"

#include "tests/history/store/stores.hpp"

namespace weir::history {
namespace {

class ServiceStoreTest : public OnBoth {
 protected:
  std::unique_ptr<ServiceStore> service(const std::string& where) {
    return value_of(open_service_store(parse_address(where)));
  }
};

StoredToken token(const std::string& id, double created_at) {
  return {id,         std::string(64, 'a'), "engine-*", "read upload", "CI's \"own\" '); DROP",
          created_at, std::nullopt,         {}};
}

std::string points_text(const UploadResult& done) {
  return fmt::format("{} points", done.added.points);
}

Upload upload(const std::string& run, std::optional<std::string> key = {}, double at = 1000,
              const std::string& digest = "d") {
  Upload result;
  result.batch.runs = {run_at(run, 5, {count_point("a/m/b/p", 65), time_point("a/m/b/p", 7)})};
  if (key) result.key = UploadKey{"default", *key, digest};
  result.received_at = at;
  result.answer = points_text;
  return result;
}

TEST_P(ServiceStoreTest, GivesBackTokensByAge) {
  const auto store = service(fresh());
  StoredToken old = token("0b", 1), young = token("0a", 2);
  old.expires_at = 99.5;
  value_of(store->add_token(young));
  value_of(store->add_token(old));
  EXPECT_EQ(value_of(store->tokens()), (std::vector<StoredToken>{old, young}));
}

TEST_P(ServiceStoreTest, KeepsTheFirstTokenOfAnId) {
  const auto store = service(fresh());
  value_of(store->add_token(token("0a", 1)));
  const auto again = store->add_token(token("0a", 2));
  ASSERT_FALSE(again.has_value());
  EXPECT_EQ(again.error().code, Code::data);
  EXPECT_EQ(value_of(store->tokens()), std::vector<StoredToken>{token("0a", 1)});
}

TEST_P(ServiceStoreTest, RevokesATokenOnceAndForAll) {
  const std::string where = fresh();
  const auto store = service(where);
  value_of(store->add_token(token("0a", 1)));
  EXPECT_FALSE(value_of(store->revoke_token("' OR 1=1 --", 5)));
  EXPECT_TRUE(value_of(store->revoke_token("0a", 5)));
  EXPECT_TRUE(value_of(store->revoke_token("0a", 6)));
  EXPECT_EQ(value_of(service(where)->tokens()).at(0).revoked_at, 5);
}

TEST_P(ServiceStoreTest, KeepsUploadsTogetherAndAnswersEach) {
  const auto store = service(fresh());
  const std::vector<Upload> uploads{upload("r1"), upload("r2"), upload("r1")};
  const auto outcomes = value_of(store->add_uploads(uploads));
  ASSERT_EQ(outcomes.size(), 3U);
  EXPECT_EQ(outcomes[0].text, "2 points");
  EXPECT_FALSE(outcomes[0].done.runs.at(0).was_stored);
  EXPECT_EQ(outcomes[1].done.runs.at(0).id, "r2");
  EXPECT_EQ(outcomes[2].text, "0 points");  // the same run as in the first upload
  EXPECT_TRUE(outcomes[2].done.runs.at(0).was_stored);
  EXPECT_EQ(content_of(store->history()).runs.size(), 2U);
}

// Returns an upload of a run with a verdict on these cells.
Upload judged_upload(const std::string& run, const std::vector<std::string>& cells, double time) {
  std::vector<verdict::CellVerdict> verdicts;
  for (const std::string& cell : cells) {
    verdicts.emplace_back().cell = value_of(profile::CellKey::parse(cell));
  }
  verdict::GateVerdict gate = verdict::judge_gate(std::move(verdicts), {});
  gate.commit = run;
  Upload result = upload(run);
  result.batch.runs[0].facts.time = time;
  result.batch.verdicts = {stored_verdict(result.batch.runs[0].facts, run, gate, time)};
  return result;
}

TEST_P(ServiceStoreTest, ComparesAVerdictWithTheLastThatLackedNothing) {
  const auto store = service(fresh());
  const auto outcomes = [&](std::vector<Upload> uploads) {
    std::string words;
    for (const UploadOutcome& outcome : value_of(store->add_uploads(uploads))) {
      words += outcome.done.verdicts.at(0).outcome + " ";
    }
    return words;
  };
  const std::string good = "a/m/b/good", bad = "a/m/b/bad";
  // Verdicts of the same transaction count, too.
  EXPECT_EQ(outcomes({judged_upload("r1", {good, bad}, 10), judged_upload("r2", {good}, 20),
                      judged_upload("r3", {good}, 30), judged_upload("r4", {good, bad}, 40)}),
            "pass error error pass ");
  EXPECT_EQ(outcomes({judged_upload("r2", {good}, 20)}),
            "error ");  // the same answer as the first time
  EXPECT_EQ(outcomes({judged_upload("old", {good}, 5)}), "error ");  // compared with the oldest
  Upload elsewhere = judged_upload("r5", {good}, 50);
  elsewhere.batch.runs[0].facts.machine = "another";
  elsewhere.batch.verdicts[0].branch = "another";
  EXPECT_EQ(outcomes({elsewhere}), "error ");
  Upload instead = judged_upload("r6", {good}, 60);
  instead.removes = Removal{"default", "r5", "t"};
  EXPECT_EQ(outcomes({instead, judged_upload("r7", {good}, 70)}), "pass pass ");
  EXPECT_EQ(outcomes({judged_upload("r8", {}, 80)}), "error ");
}

// Otherwise an uploader could send a verdict with any time, and later runs would be compared with
// it.
TEST_P(ServiceStoreTest, ComparesWhatIsJudgedHereWithNothingThatWasSentAsAVerdict) {
  const auto store = service(fresh());
  const auto outcome = [&](Upload given, bool judged_here) {
    given.judged_here = judged_here;
    return value_of(store->add_uploads(std::vector<Upload>{given}))
        .at(0)
        .done.verdicts.at(0)
        .outcome;
  };
  const std::string good = "a/m/b/good", bad = "a/m/b/bad", more = "a/m/b/more";
  EXPECT_EQ(outcome(judged_upload("sent", {good, bad, more}, 10), false), "pass");
  EXPECT_EQ(outcome(judged_upload("r1", {good, bad}, 20), true), "pass");
  Upload sent = judged_upload("old", {good, bad, more}, 15);
  sent.batch.runs[0].facts.machine = "other";
  EXPECT_EQ(outcome(sent, false), "pass");
  Upload part = judged_upload("r2", {good}, 6);  // any time
  part.batch.runs[0].facts.machine = "other";
  EXPECT_EQ(outcome(part, true), "error");
  EXPECT_EQ(outcome(judged_upload("r3", {good, bad}, 30), true), "pass");
}

TEST_P(ServiceStoreTest, ComparesANewBranchWithTheDefaultOneBeforeAnyOther) {
  const auto store = service(fresh());
  const auto outcome = [&](const std::string& branch, const std::vector<std::string>& cells,
                           double time) {
    Upload sent = judged_upload(branch, cells, time);
    sent.batch.verdicts[0].branch = branch;
    return value_of(store->add_uploads(std::vector<Upload>{sent}))
        .at(0)
        .done.verdicts.at(0)
        .outcome;
  };
  EXPECT_EQ(outcome("main", {"a/m/b/good"}, 10), "pass");
  EXPECT_EQ(outcome("adds-a-cell", {"a/m/b/good", "a/m/b/more"}, 20), "pass");
  EXPECT_EQ(outcome("new", {"a/m/b/good"}, 30), "pass");
  EXPECT_EQ(outcome("lacks", {"a/m/b/other"}, 40), "error");
}

TEST_P(ServiceStoreTest, CountsWhatItTookAlsoWhenItIsOpenedAgain) {
  const std::string where = fresh();
  double at = 86'400;
  Quota quota{.bytes = 1 << 20, .day_bytes = 60'000, .day_runs = 3};
  const auto kind = [&](const std::string& run, std::int64_t bytes, const std::string& who) {
    Upload sent = upload(run, {}, at);
    sent.bytes = bytes;
    sent.who = who;
    sent.quota = quota;
    const std::vector<Upload> uploads{sent};
    const UploadOutcome outcome = value_of(service(where)->add_uploads(uploads)).at(0);
    if (outcome.kind == UploadOutcome::Kind::kept) return std::string("kept");
    EXPECT_EQ(outcome.kind, UploadOutcome::Kind::too_much);
    return outcome.until ? fmt::format("until {}", *outcome.until) : "full";
  };
  EXPECT_EQ(kind("r1", 50'000, "a"), "kept");
  EXPECT_EQ(kind("r2", 11'000, "b"), "until 172800");
  EXPECT_EQ(kind("r2", 9'000, "b"), "kept");
  EXPECT_EQ(kind("r3", 0, "b"), "kept");
  EXPECT_EQ(kind("r4", 0, "b"), "until 172800");  // the project's fourth
  at = 172'800;
  EXPECT_EQ(kind("r4", 0, "b"), "kept");
  quota.bytes = 4'000;  // about what names and four runs take
  EXPECT_EQ(kind("r5", 0, "b"), "full");
  EXPECT_EQ(kind("r5", 0, "b"), "full");
  Upload gone;
  gone.removes = Removal{"default", "r1", "a"};
  const std::vector<Upload> removals{gone, gone};
  const auto outcomes = value_of(service(where)->add_uploads(removals));
  EXPECT_TRUE(outcomes[0].done.removed);
  EXPECT_FALSE(outcomes[1].done.removed);
  EXPECT_EQ(content_of(service(where)->history()).runs.size(), 3U);
}

TEST_P(ServiceStoreTest, TakesNoneWhereOneIsWrongAndGoesOn) {
  const auto store = service(fresh());
  Upload wrong = upload("wrong");
  wrong.batch.runs.front().facts.id = "";  // no name
  EXPECT_FALSE(store->add_uploads(std::vector<Upload>{upload("r1", "k"), wrong}).has_value());
  EXPECT_TRUE(content_of(store->history()).runs.empty());
  const auto alone = value_of(store->add_uploads(std::vector<Upload>{upload("r1", "k")}));
  EXPECT_EQ(alone.at(0).kind, UploadOutcome::Kind::kept);
}

// The key gets the first answer, not one that reports all as stored already.
TEST_P(ServiceStoreTest, AnswersAKeyAgainAsTheFirstTime) {
  const std::string where = fresh();
  value_of(service(where)->add_uploads(std::vector<Upload>{upload("r1", "k'1")}));
  const auto store = service(where);
  const auto again = value_of(store->add_uploads(
      std::vector<Upload>{upload("r1", "k'1"), upload("r1", "k'1", 1000, "other"), upload("r1")}));
  EXPECT_EQ(again.at(0).kind, UploadOutcome::Kind::again);
  EXPECT_EQ(again.at(0).text, "2 points");
  EXPECT_EQ(again.at(1).kind, UploadOutcome::Kind::conflict);
  EXPECT_EQ(again.at(2).text, "0 points");
}

TEST_P(ServiceStoreTest, KeepsARemovedRunAgainWhateverKeyItHad) {
  const auto store = service(fresh());
  const std::vector<Upload> uploads{upload("r1", "k")};
  value_of(store->add_uploads(uploads));
  Upload removal;
  removal.removes = Removal{"default", "r1", "t"};
  removal.answer = points_text;
  value_of(store->add_uploads(std::vector<Upload>{removal}));
  const auto again = value_of(store->add_uploads(uploads)).at(0);
  EXPECT_EQ(again.kind, UploadOutcome::Kind::kept);
  EXPECT_EQ(again.text, "2 points");
  EXPECT_EQ(content_of(store->history()).runs.size(), 1U);
  EXPECT_EQ(value_of(store->add_uploads(uploads)).at(0).kind, UploadOutcome::Kind::again);
}

TEST_P(ServiceStoreTest, KnowsAKeyWithinOneTransaction) {
  const auto store = service(fresh());
  const auto both =
      value_of(store->add_uploads(std::vector<Upload>{upload("r1", "k"), upload("r1", "k")}));
  EXPECT_EQ(both.at(1).kind, UploadOutcome::Kind::again);
}

TEST_P(ServiceStoreTest, ForgetsKeysAfterDays) {
  const auto store = service(fresh());
  value_of(store->add_uploads(std::vector<Upload>{upload("r1", "k", 1000)}));
  const double later = 1000 + k_keep_keys_seconds;
  EXPECT_EQ(value_of(store->add_uploads(std::vector<Upload>{upload("r1", "k", later)})).at(0).kind,
            UploadOutcome::Kind::again);
  const auto gone =
      value_of(store->add_uploads(std::vector<Upload>{upload("r1", "k", later + 1, "other")}));
  EXPECT_EQ(gone.at(0).kind, UploadOutcome::Kind::kept);
}

TEST_P(ServiceStoreTest, PagesThroughVerdictsTheNewestFirst) {
  const auto store = service(fresh());
  Batch batch;
  for (int i = 0; i < 5; ++i) {
    batch.verdicts.push_back(verdict_at("r" + std::to_string(i), i / 2, i == 3 ? "fail" : "pass"));
    batch.verdicts.back().branch = i == 0 ? "other" : "main";
  }
  batch.verdicts.push_back(verdict_at("elsewhere", 9, "pass"));
  batch.verdicts.back().project = "another";
  value_of(store->history().add(batch));
  VerdictQuery wanted{.project = "default", .branch = {}, .since = {}, .until = {}, .behind = {}};
  wanted.max_verdicts = 2;
  wanted.branch = "main";
  std::vector<std::string> runs;
  for (;;) {
    const auto page = value_of(store->newest_verdicts(wanted));
    for (const StoredVerdict& verdict : page) {
      runs.push_back(verdict.run);
      EXPECT_EQ(verdict.text, "");
    }
    if (page.size() < wanted.max_verdicts) break;
    const StoredVerdict& last = page.back();
    wanted.behind = VerdictPlace{last.time, last.kept_at, last.id, last.run};
  }
  // Verdicts of one time are ordered by id. The id is made of the text, so 2 and 3 may be in either
  // order.
  ASSERT_EQ(runs.size(), 4U);
  EXPECT_EQ(runs[0], "r4");
  EXPECT_THAT(std::vector<std::string>(runs.begin() + 1, runs.begin() + 3),
              testing::UnorderedElementsAre("r2", "r3"));
  EXPECT_EQ(runs[3], "r1");
  std::string text = "text: ";
  value_of(store->append_text(batch.verdicts[4], text));
  EXPECT_EQ(text, "text: " + batch.verdicts[4].text);
}

TEST_P(ServiceStoreTest, HasAnotherRevisionOnceSomethingCame) {
  const auto store = service(fresh());
  const std::string empty = value_of(store->revision());
  EXPECT_EQ(value_of(store->revision()), empty);
  value_of(store->add_uploads(std::vector<Upload>{upload("r1")}));
  const std::string first = value_of(store->revision());
  EXPECT_NE(first, empty);
  value_of(store->history().add({{}, {verdict_at("r1", 1, "pass")}, {}}));
  EXPECT_NE(value_of(store->revision()), first);
}

INSTANTIATE_TEST_SUITE_P(Both, ServiceStoreTest, testing::Values(Kind::sqlite, Kind::postgres),
                         name_of);

}  // namespace
}  // namespace weir::history
