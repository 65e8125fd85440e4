// Tests that a file somebody made cannot keep weir reading.
#include <gmock/gmock.h>

#include "gate/history/database.hpp"

#include "tests/history/store/stores.hpp"

namespace weir::history {
namespace {

using testing::HasSubstr;

// Makes a history and changes its tables by `script`. Returns the error of opening it again.
Error error_after(Statement script) {
  const Folder folder;
  const std::string file = folder / "history.db";
  value_of(open_store(parse_address(file)));
  {
    const auto database = value_of(open_sqlite(file, {}));
    value_of(database->script(script));
  }
  const auto store = open_store(parse_address(file), {.create = false});
  return store ? Error{} : store.error();
}

TEST(ForeignSqliteFile, WithAViewTriggerOrComputedColumnInPlaceOfATableIsRefused) {
  for (const Statement& script :
       {Statement("DROP TABLE weir_run; CREATE VIEW weir_run AS WITH RECURSIVE n (i) AS "
                  "(SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS id FROM n"),
        Statement("DROP TABLE weir_use; CREATE TABLE weir_use (name TEXT NOT NULL, "
                  "day INTEGER NOT NULL, bytes INTEGER NOT NULL, "
                  "runs INTEGER AS (length(hex(zeroblob(60000000)))))"),
        Statement("CREATE TRIGGER more AFTER INSERT ON weir_run BEGIN "
                  "DELETE FROM weir_run; END"),
        Statement("CREATE INDEX other ON weir_run (length(hex(name)))")}) {
    const Error error = error_after(script);
    EXPECT_EQ(error.code, Code::config) << script.text;
    EXPECT_THAT(error.message, HasSubstr("its tables are not those of a history"));
  }
}

TEST(ForeignSqliteFile, WithNothingButAViewIsRefused) {
  const Folder folder;
  {
    const auto database = value_of(open_sqlite(folder / "other.db", {}));
    value_of(database->script(
        "CREATE TABLE a (b $integer); CREATE VIEW weir_schema AS SELECT 1 AS number"));
  }
  const auto store = open_store(parse_address(folder / "other.db"));
  ASSERT_FALSE(store.has_value());
  EXPECT_THAT(store.error().message, HasSubstr("not a history of weir's"));
}

TEST(ForeignSqliteFile, IsReadNoLongerThanItsSizeAllows) {
  const Folder folder;
  const auto database = value_of(open_sqlite(folder / "history.db", {}));
  constexpr std::int64_t k_far_too_many = 50'000'000;
  std::int64_t rows = 0;
  const auto read = database->read(
      "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n", {},
      [&](const Row&) -> Result<void> {
        if (++rows > k_far_too_many) return fail(Code::io, "without end");
        return {};
      });
  ASSERT_FALSE(read.has_value());
  EXPECT_EQ(read.error().code, Code::data);
  EXPECT_THAT(read.error().message, HasSubstr("more than a history of its size can"));
  // The next statement has a budget of its own.
  EXPECT_TRUE(database->read("SELECT 1", {}, [](const Row&) {}).has_value());
}

TEST(ForeignSqliteFile, HandsOutNoMoreTextThanItsSizeAllows) {
  const Folder folder;
  const auto database = value_of(open_sqlite(folder / "history.db", {}));
  std::size_t bytes = 0;
  const auto read = database->read(
      "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100) "
      "SELECT hex(zeroblob(1000000 + i)) FROM n",
      {}, [&](const Row& row) { bytes += row.text(0).size(); });
  ASSERT_FALSE(read.has_value());
  EXPECT_EQ(read.error().code, Code::data);
  EXPECT_LE(bytes, std::size_t{80} << 20);
}

}  // namespace
}  // namespace weir::history
