// Tests the store, each test on SQLite and on a real PostgreSQL.
#include <fstream>
#include <limits>

#include <gmock/gmock.h>

#include "gate/history/database.hpp"
#include "gate/history/json_lines.hpp"

#include "tests/history/store/stores.hpp"

namespace weir::history {
namespace {

class StoreTest : public OnBoth {};

history::Run full_run() {
  history::Run run = run_at("0a1b", 1795000000.25,
                            {count_point("a/m/b/p", *Rational::make(133, 2)),
                             time_point("a/m/b/p", 0.1, {0.1, 0.3, 0.1}), time_point("b/m/b/p", 7)},
                            std::string(40, 'a'));
  run.facts.branch = "main";
  run.facts.commit_time = 1794999999;
  run.facts.dirty = true;
  run.facts.weir_version = "0.1.0";
  run.facts.source = Source::csv;
  run.points[0].place = {"vulkan-1", "Device", "mc", "Machine", "b1"};
  run.points[1].place = {"vulkan-1", "Device", "mc", "Machine", "b2"};
  run.points[2].metric = {"mine", unit::Kind::quality, unit::Unit::ratio, unit::Better::higher};
  run.points[2].nature = profile::Nature::nearly_exact;
  // Sorts points as a store returns them: by cell and metric.
  std::sort(run.points.begin(), run.points.end(), [](const Point& a, const Point& b) {
    return std::tie(a.cell, a.metric) < std::tie(b.cell, b.metric);
  });
  return run;
}

TEST_P(StoreTest, GivesBackWhatItWasGiven) {
  const auto store = open(fresh());
  const Batch batch{{full_run()}, {verdict_at("0a1b", 5, "fail")}, {acknowledged("a", "known")}};
  const Added added = value_of(store->add(batch));
  EXPECT_EQ(added.runs, 1U);
  EXPECT_EQ(added.points, 3U);
  EXPECT_EQ(added.verdicts, 1U);
  EXPECT_EQ(added.acknowledgements, 1U);
  const Content content = content_of(*store);
  EXPECT_EQ(content.runs, batch.runs);
  EXPECT_EQ(content.verdicts, batch.verdicts);
  EXPECT_EQ(content.acknowledgements, batch.acknowledgements);
  EXPECT_EQ(value_of(store->verdicts({})), batch.verdicts);
  EXPECT_EQ(value_of(store->acknowledgements({})), batch.acknowledgements);
}

TEST_P(StoreTest, IsThereAgainWhenItIsOpenedAgain) {
  const std::string where = fresh();
  value_of(open(where)->add({{full_run()}, {}, {}}));
  EXPECT_EQ(content_of(*open(where, {.create = false})).runs,
            std::vector<history::Run>{full_run()});
}

TEST_P(StoreTest, IsNotChangedByTheSameAgain) {
  const auto store = open(fresh());
  const Batch batch{{full_run()}, {verdict_at("0a1b", 5, "fail")}, {acknowledged("a", "known")}};
  value_of(store->add(batch));
  const Added again = value_of(store->add(batch));
  EXPECT_EQ(again.runs, 0U);
  EXPECT_EQ(again.runs_known, 1U);
  EXPECT_EQ(again.points, 0U);
  EXPECT_EQ(again.points_known, 3U);
  EXPECT_EQ(again.points_differ, 0U);
  EXPECT_EQ(again.verdicts, 0U);
  EXPECT_EQ(again.acknowledgements, 0U);
  EXPECT_EQ(content_of(*store).runs, batch.runs);
}

TEST_P(StoreTest, KeepsTheFirstNumberAndSaysThatAnotherWasGiven) {
  const auto store = open(fresh());
  value_of(store->add({{run_at("r", 1, {count_point("c", 65)})}, {}, {}}));
  const Added added =
      value_of(store->add({{run_at("r", 1, {count_point("c", 66), count_point("d", 1)})}, {}, {}}));
  EXPECT_EQ(added.points, 1U);  // the point of the new cell
  EXPECT_EQ(added.points_differ, 1U);
  EXPECT_THAT(added.differences,
              testing::ElementsAre("c dispatches_per_token: 65 is kept, 66 was given"));
  EXPECT_EQ(content_of(*store).runs.at(0).points.at(0).exact, Rational(65));
}

TEST_P(StoreTest, TakesNothingWhereOnePartIsWrong) {
  const auto store = open(fresh());
  history::Run wrong = run_at("wrong", 1, {time_point("c", 1)});
  wrong.points[0].value = std::numeric_limits<double>::infinity();
  const auto added = store->add({{run_at("good", 1, {time_point("c", 1)}), wrong}, {}, {}});
  ASSERT_FALSE(added.has_value());
  EXPECT_THAT(added.error().message, testing::HasSubstr("wrong"));
  EXPECT_TRUE(content_of(*store).runs.empty());
  // The store still works afterwards.
  value_of(store->add({{run_at("good", 1, {time_point("c", 1)})}, {}, {}}));
  EXPECT_EQ(content_of(*store).runs.size(), 1U);
}

TEST_P(StoreTest, KeepsNumbersToTheLastBit) {
  const auto store = open(fresh());
  const std::vector<double> odd{0.1,
                                1.0 / 3,
                                5e-324,
                                std::numeric_limits<double>::max(),
                                -1e-300,
                                1e22,
                                65,
                                9007199254740993.0,
                                0,
                                -0.0,
                                123456.789012345678};
  std::vector<Point> points{time_point("samples", 0.5, odd),
                            count_point("big", *Rational::make(INT64_MAX, 2)),
                            count_point("small", Rational(INT64_MIN + 1))};
  for (std::size_t i = 0; i < odd.size(); ++i) {
    points.push_back(time_point("value" + std::to_string(i), odd[i]));
  }
  value_of(store->add({{run_at("r", 0.1 + 0.2, points)}, {}, {}}));
  const history::Run stored = content_of(*store).runs.at(0);
  EXPECT_EQ(stored.facts.time, 0.1 + 0.2);
  for (const Point& given : points) {
    const auto match =
        std::find_if(stored.points.begin(), stored.points.end(),
                     [&](const Point& candidate) { return candidate.cell == given.cell; });
    ASSERT_NE(match, stored.points.end());
    EXPECT_EQ(*match, given) << given.cell;  // -0 equals 0
  }
}

TEST_P(StoreTest, TakesNoNameForAnythingButAName) {
  const auto store = open(fresh());
  const std::vector<std::string> names{"'; DROP TABLE weir_run; --",
                                       "\"quoted\" and \\back\\slashed",
                                       "{a,b,NULL}",
                                       "NULL",
                                       "%s$1?1:name@x",
                                       "größe 漢字 🙂",
                                       stored_name("\x80\xFF\x01"),
                                       stored_name(std::string("a\0b", 3)),
                                       "../../etc/passwd",
                                       "*",
                                       std::string(k_longest_name, 'n')};
  std::vector<history::Run> runs;
  for (const std::string& name : names) {
    history::Run run = run_at(name, 1, {time_point(name, 1, {1, 2})}, name);
    run.facts.project = run.facts.machine = name;
    run.facts.branch = name;
    run.points[0].metric = {name, std::nullopt, std::nullopt, std::nullopt};
    run.points[0].source = name;
    run.points[0].place = {name, name, name, name, name};
    runs.push_back(std::move(run));
  }
  Acknowledgement acknowledgement = acknowledged(names[0], names[1] + "\n" + names[2]);
  acknowledgement.metric = acknowledgement.machine = acknowledgement.kind = acknowledgement.who =
      names[0];
  value_of(store->add({runs, {}, {acknowledgement}}));
  std::sort(runs.begin(), runs.end(), [](const history::Run& a, const history::Run& b) {
    return a.facts.project < b.facts.project;
  });
  EXPECT_EQ(content_of(*store).runs, runs);
  EXPECT_EQ(content_of(*store).acknowledgements, std::vector<Acknowledgement>{acknowledgement});
  for (const history::Run& run : runs) {
    Filter filter;
    filter.project = run.facts.project;
    EXPECT_EQ(content_of(*store, filter).runs, std::vector<history::Run>{run});
  }
}

class Filters : public StoreTest {
 protected:
  void SetUp() override {
    store_ = open(fresh());
    history::Run first =
        run_at("1", 10, {time_point("a/m/cpu/p", 1), count_point("a/m/vulkan/p", 65)});
    first.facts.branch = "main";
    history::Run second = run_at("2", 20, {time_point("a/m/cpu/p", 2)});
    second.facts.branch = "topic";
    history::Run third = run_at("3", 30, {time_point("a/m/cpu/p", 3)});
    third.facts.machine = "other";
    history::Run fourth = run_at("4", 40, {time_point("a/m/cpu/p", 4)});
    fourth.facts.project = "second";
    value_of(store_->add({{fourth, third, second, first}, {verdict_at("1", 10, "pass")}, {}}));
  }
  // Returns "cell@machine:values" of each series.
  std::vector<std::string> matching_series(const Filter& filter) {
    std::vector<std::string> result;
    for (const Series& series : value_of(store_->history(filter)).series) {
      std::string text = series.project + " " + series.cell + "@" + series.machine + ":";
      for (const SeriesPoint& point : series.points) text += fmt::format(" {}", point.value);
      result.push_back(text);
    }
    std::vector<std::string> counted;
    for (const SeriesSummary& summary : value_of(store_->summaries(filter))) {
      counted.push_back(summary.project + " " + summary.cell + "@" + summary.machine);
    }
    EXPECT_EQ(counted.size(), result.size());
    return result;
  }
  std::unique_ptr<Store> store_;
};

TEST_P(Filters, ChooseWhatIsRead) {
  using testing::ElementsAre;
  EXPECT_THAT(matching_series({}),
              ElementsAre("default a/m/cpu/p@m: 1 2", "default a/m/cpu/p@other: 3",
                          "default a/m/vulkan/p@m: 65", "second a/m/cpu/p@m: 4"));
  Filter filter;
  filter.project = "second";
  EXPECT_THAT(matching_series(filter), ElementsAre("second a/m/cpu/p@m: 4"));
  filter = {};
  filter.cells = {"*/vulkan/*", "none"};
  EXPECT_THAT(matching_series(filter), ElementsAre("default a/m/vulkan/p@m: 65"));
  filter = {};
  filter.metrics = {"decode*"};
  filter.machines = {"o*"};
  EXPECT_THAT(matching_series(filter), ElementsAre("default a/m/cpu/p@other: 3"));
  filter = {};
  filter.branch = "topic";
  EXPECT_THAT(matching_series(filter), ElementsAre("default a/m/cpu/p@m: 2"));
  filter = {};
  filter.since = 20;
  filter.until = 30;
  EXPECT_THAT(matching_series(filter),
              ElementsAre("default a/m/cpu/p@m: 2", "default a/m/cpu/p@other: 3"));
  filter.cells = {"nothing"};
  EXPECT_TRUE(matching_series(filter).empty());
}

INSTANTIATE_TEST_SUITE_P(Both, Filters, testing::Values(Kind::sqlite, Kind::postgres), name_of);

TEST_P(StoreTest, GivesSeriesTheirMetricsRunsAndPlaces) {
  const auto store = open(fresh());
  value_of(store->add({{full_run()}, {}, {}}));
  const History history = value_of(store->history({}));
  ASSERT_EQ(history.series.size(), 3U);
  const Series& first = history.series.front();
  EXPECT_EQ(first.metric, metric_named("decode_tokens_per_second"));
  EXPECT_EQ(first.points.at(0).samples, (std::vector<double>{0.1, 0.3, 0.1}));
  EXPECT_EQ(history.run_of(first.points[0]), full_run().facts);
  EXPECT_EQ(history.place_of(first.points[0]).engine_build, "b2");
  EXPECT_EQ(history.series[1].points.at(0).exact, Rational::make(133, 2));
}

TEST_P(StoreTest, ReadsOneMomentWhileOthersWrite) {
  const std::string where = fresh();
  const auto reader = open(where), writer = open(where);
  value_of(reader->add(
      {{run_at("1", 1, {time_point("c", 1)}), run_at("2", 2, {time_point("c", 2)})}, {}, {}}));
  std::vector<std::string> ids;
  value_of(reader->all(
      {}, {[&](const history::Run& run) {
             ids.push_back(run.facts.id);
             // The writer does not wait for the reader.
             value_of(writer->add({{run_at(run.facts.id + "x", 9, {time_point("c", 3)})},
                                   {verdict_at("1", 1, "pass")},
                                   {}}));
             return Result<void>{};
           },
           [&](const StoredVerdict&) {
             ids.emplace_back("verdict");
             return Result<void>{};
           },
           {}}));
  EXPECT_THAT(ids, testing::ElementsAre("1", "2"));
  EXPECT_EQ(content_of(*reader).runs.size(), 4U);
}

TEST_P(StoreTest, SaysThatOthersKeptItBusy) {
  const std::string where = fresh();
  const auto store = open(where, {.wait_seconds = 0.2});
  const auto rival = open(where);
  const StoreAddress address = parse_address(where);
  const auto holder =
      value_of(address.postgres ? open_postgres(address, {}) : open_sqlite(where, {}));
  value_of(holder->begin(Database::Access::write));
  const auto added = store->add({{full_run()}, {}, {}});
  ASSERT_FALSE(added.has_value());
  EXPECT_EQ(added.error().code, Code::unavailable) << added.error().message;
  holder->rollback();
  value_of(store->add({{full_run()}, {}, {}}));  // still works
}

TEST_P(StoreTest, OfAnotherSchemaIsRefused) {
  const std::string where = fresh();
  open(where);
  const StoreAddress address = parse_address(where);
  {
    const auto database =
        value_of(address.postgres ? open_postgres(address, {}) : open_sqlite(where, {}));
    value_of(database->change("INSERT INTO weir_schema (number) VALUES (1000)", {}));
  }
  const auto store = open_store(address);
  ASSERT_FALSE(store.has_value());
  EXPECT_EQ(store.error().code, Code::config);
  EXPECT_THAT(store.error().message,
              testing::HasSubstr("schema 1000 is not known: made by another version of weir"));
}

TEST_P(StoreTest, GetsItsTablesWhereTheDatabaseIsEmptyAndKeepsThem) {
  const std::string where = fresh();
  const StoreAddress address = parse_address(where);
  {
    const auto database =
        value_of(address.postgres ? open_postgres(address, {}) : open_sqlite(where, {}));
    EXPECT_FALSE(value_of(database->has_store()));
  }
  value_of(open(where)->add({{full_run()}, {}, {}}));
  EXPECT_EQ(value_of(open(where)->add({{full_run()}, {}, {}})).runs, 0U);
}

INSTANTIATE_TEST_SUITE_P(Both, StoreTest, testing::Values(Kind::sqlite, Kind::postgres), name_of);

// ---- exports

std::string exported(Store& store) {
  std::string text = first_line() + "\n";
  const auto add = [&](const auto& item) {
    text += line_of(item) + "\n";
    return Result<void>{};
  };
  value_of(store.all({}, {add, add, add}));
  return text;
}

void import_text(Store& store, const std::string& text) {
  value_of(read_lines(text, {[&](history::Run run) -> Result<void> {
                               WEIR_CHECK(store.add({{std::move(run)}, {}, {}}));
                               return {};
                             },
                             [&](StoredVerdict verdict) -> Result<void> {
                               WEIR_CHECK(store.add({{}, {std::move(verdict)}, {}}));
                               return {};
                             },
                             [&](Acknowledgement acknowledgement) -> Result<void> {
                               WEIR_CHECK(store.add({{}, {}, {std::move(acknowledgement)}}));
                               return {};
                             }}));
}

class Export : public OnBoth {};

TEST_P(Export, ComesBackByteForByteFromEitherDatabase) {
  const auto store = open(fresh());
  std::vector<history::Run> runs;
  for (int i = 0; i < 200; ++i) {
    history::Run run = full_run();
    run.facts.id = hash_hex(std::to_string(i));
    run.facts.time = 1795000000 + (i * 7919 % 101) / 3.0;  // many runs at one time
    run.facts.project = i % 3 == 0 ? "größe" : "B";
    run.points[0].value = 1.0 / (i + 1);
    run.points[0].samples = {};
    run.points[1].cell = stored_name(std::string(1, static_cast<char>(i)));
    runs.push_back(std::move(run));
  }
  value_of(store->add({runs,
                       {verdict_at("r", 5, "fail"), verdict_at("", 5, "pass")},
                       {acknowledged("a", "known"), acknowledged("b", "größer")}}));
  const std::string text = exported(*store);
  for (const Kind kind : {Kind::sqlite, Kind::postgres}) {
    const auto copy = open(fresh(kind));
    import_text(*copy, text);
    EXPECT_TRUE(exported(*copy) == text) << exported(*copy).size() << " and " << text.size();
    import_text(*copy, text);  // the second import changes nothing
    EXPECT_TRUE(exported(*copy) == text);
  }
}

INSTANTIATE_TEST_SUITE_P(Both, Export, testing::Values(Kind::sqlite, Kind::postgres), name_of);

// ---- files that are no store

TEST(SqliteFile, ThatIsNoDatabaseIsRefused) {
  const Folder folder;
  std::ofstream(folder / "notes.txt") << std::string(5'000, 'x');
  const auto store = open_store(parse_address(folder / "notes.txt"));
  ASSERT_FALSE(store.has_value());
  EXPECT_EQ(store.error().code, Code::config) << store.error().message;
}

TEST(SqliteFile, OfSomebodyElseIsRefused) {
  const Folder folder;
  {
    const auto database = value_of(open_sqlite(folder / "other.db", {}));
    value_of(database->script("CREATE TABLE theirs (a $integer)"));
  }
  const auto store = open_store(parse_address(folder / "other.db"));
  ASSERT_FALSE(store.has_value());
  EXPECT_EQ(store.error().code, Code::config);
  EXPECT_THAT(store.error().message, testing::HasSubstr("not a history of weir's"));
}

TEST(SqliteFile, IsNotMadeWhereItIsOnlyRead) {
  const Folder folder;
  const auto store = open_store(parse_address(folder / "none/history.db"), {.create = false});
  ASSERT_FALSE(store.has_value());
  EXPECT_FALSE(std::filesystem::exists(folder / "none"));
}

TEST(SqliteFile, ThatIsCutOffIsAnErrorAndNotACrash) {
  const Folder folder;
  const std::string where = folder / "history.db";
  value_of(value_of(open_store(parse_address(where)))->add({{full_run()}, {}, {}}));
  const auto full_size = std::filesystem::file_size(where);
  for (std::uintmax_t bytes = 100; bytes < full_size; bytes += 4'001) {
    std::filesystem::copy_file(where, folder / "cut.db",
                               std::filesystem::copy_options::overwrite_existing);
    std::filesystem::resize_file(folder / "cut.db", bytes);
    const auto store = open_store(parse_address(folder / "cut.db"));
    if (store) (void)(*store)->history({});
  }
}

TEST(Postgres, OfAnotherTablesOwnerIsUsedBesideThem) {
  const std::string url = PostgresServer::get().fresh_database();
  (void)PostgresServer::get().ask(url, "CREATE TABLE run (theirs integer)");
  value_of(value_of(open_store(parse_address(url)))->add({{full_run()}, {}, {}}));
  EXPECT_EQ(PostgresServer::get().ask(url, "SELECT count(*) FROM run"), "0");
}

TEST(Postgres, ThatCanNotBeReachedIsNamedWithoutThePassword) {
  const auto store =
      open_store(parse_address("postgres://weir:very-secret@127.0.0.1:1/weir?connect_timeout=2"));
  ASSERT_FALSE(store.has_value());
  EXPECT_EQ(store.error().code, Code::config);
  EXPECT_THAT(store.error().message, testing::HasSubstr("postgres://weir@127.0.0.1:1/weir"));
  EXPECT_THAT(store.error().message, testing::Not(testing::HasSubstr("very-secret")));
}

TEST(Postgres, OfAUrlThatIsNoneIsNamedWithoutThePassword) {
  for (const char* url :
       {"postgres://weir:very%zzsecret@h/d", "postgres://weir:very%zzsecret@[::1/d",
        "postgres://weir@h/d?password=very%zzsecret", "postgres://weir:very%zzsecret@h/d?x=y"}) {
    const auto store = open_store(parse_address(url));
    ASSERT_FALSE(store.has_value());
    EXPECT_THAT(store.error().message, testing::Not(testing::HasSubstr("zzsecret"))) << url;
  }
}

}  // namespace
}  // namespace weir::history
