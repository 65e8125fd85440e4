// A store in one file: SQLite with a write-ahead log, so that readers do not wait for the writer.
#include <algorithm>
#include <cmath>
#include <unordered_map>

#include <sqlite3.h>

#include "gate/base/text.hpp"
#include "gate/history/database.hpp"
#include "gate/sys/clock.hpp"
#include "gate/sys/files.hpp"
#include "gate/sys/paths.hpp"

namespace weir::history {
namespace {

constexpr int k_longest_value = 64 << 20;  // bytes; a verdict is the largest

// Memory of all connections together. Caches shrink at the first, statements fail at the second.
constexpr sqlite3_int64 k_soft_heap = sqlite3_int64{128} << 20;
constexpr sqlite3_int64 k_hard_heap = sqlite3_int64{192} << 20;

// Bounds the work of one statement by the size of the file. In a file that somebody made, all
// branches of a tree can lead to one page: a few kilobytes are rows without end.
class Budget {
 public:
  explicit Budget(std::string file) : file_(std::move(file)) {}

  void attach(sqlite3* handle) {
    sqlite3_progress_handler(handle, static_cast<int>(k_each), &Budget::count, this);
  }
  // A statement within another's rows adds to its work.
  void begin() {
    if (running_++ == 0) steps_ = bytes_ = 0;
  }
  void end() { --running_; }
  // Counts the texts of a row. Returns false if they are more than the file can hold.
  [[nodiscard]] bool allows(sqlite3_stmt* statement) {
    for (int i = 0; i < sqlite3_column_count(statement); ++i) {
      const int type = sqlite3_column_type(statement, i);
      if (type != SQLITE_TEXT && type != SQLITE_BLOB) continue;
      bytes_ += static_cast<std::uint64_t>(sqlite3_column_bytes(statement, i));
    }
    return bytes_ <= k_free_bytes || bytes_ <= k_free_bytes + k_bytes_per_byte * file_bytes();
  }

 private:
  static constexpr std::uint64_t k_each = 1'000'000;  // steps of SQLite's machine between two looks
  // Reading a row takes some 20 steps, and it has as many bytes. Joins repeat names.
  static constexpr std::uint64_t k_free_steps = 20 * k_each, k_steps_per_byte = 64;
  static constexpr std::uint64_t k_free_bytes = std::uint64_t{64} << 20, k_bytes_per_byte = 8;

  static int count(void* budget) {
    auto& self = *static_cast<Budget*>(budget);
    self.steps_ += k_each;
    if (self.steps_ <= k_free_steps) return 0;
    return self.steps_ > k_free_steps + k_steps_per_byte * self.file_bytes() ? 1 : 0;
  }
  [[nodiscard]] std::uint64_t file_bytes() const {
    const sys::RealFiles files;
    return files.size(file_).value_or(0) + files.size(file_ + "-wal").value_or(0);
  }

  std::string file_;
  std::uint64_t steps_ = 0, bytes_ = 0;
  int running_ = 0;  // statements, one within the rows of another
};

// A table or index as sqlite_master lists it: its name, and the statement that made it.
using Schema = std::map<std::string, std::string>;

class SqliteRow final : public Row {
 public:
  explicit SqliteRow(sqlite3_stmt* statement) : statement_(statement) {}
  [[nodiscard]] bool null(int column) const override {
    return sqlite3_column_type(statement_, column) == SQLITE_NULL;
  }
  [[nodiscard]] std::int64_t integer(int column) const override {
    return sqlite3_column_int64(statement_, column);
  }
  [[nodiscard]] double real(int column) const override {
    return sqlite3_column_double(statement_, column);
  }
  [[nodiscard]] std::string_view text(int column) const override {
    const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
    return {bytes == nullptr ? "" : bytes,
            static_cast<std::size_t>(sqlite3_column_bytes(statement_, column))};
  }

 private:
  sqlite3_stmt* statement_;
};

class Sqlite final : public Database {
 public:
  Sqlite(sqlite3* handle, std::string path, const std::string& file)
      : handle_(handle), path_(std::move(path)), budget_(file) {
    if (handle_ != nullptr) budget_.attach(handle_);
  }
  ~Sqlite() override {
    for (const auto& [text, statement] : statements_) sqlite3_finalize(statement);
    sqlite3_close(handle_);
  }

  Result<void> begin(Access access) override {
    return access == Access::write ? each("BEGIN IMMEDIATE", {}, {}) : each("BEGIN", {}, {});
  }

  Result<void> commit() override { return each("COMMIT", {}, {}); }

  void rollback() override {
    // Some errors have rolled it back already.
    if (sqlite3_get_autocommit(handle_) == 0) (void)each("ROLLBACK", {}, {});
  }

  Result<void> script(Statement statements) override {
    const Running running(budget_);
    const std::string text = expand_types(statements, k_types);
    if (const int code = sqlite3_exec(handle_, text.c_str(), nullptr, nullptr, nullptr);
        code != SQLITE_OK) {
      return make_error(code);
    }
    return {};
  }

  Result<std::int64_t> change(Statement statement, Params params) override {
    WEIR_CHECK(each(statement, params, {}));
    return std::int64_t{sqlite3_changes(handle_)};
  }

  Result<void> each(Statement statement, Params params, const RowHandler& take) override {
    WEIR_TRY(sqlite3_stmt * prepared, prepare(statement));
    const Reset reset{prepared};
    WEIR_CHECK(bind_all(prepared, params));
    const Running running(budget_);
    const SqliteRow row(prepared);
    for (int code = sqlite3_step(prepared); code != SQLITE_DONE; code = sqlite3_step(prepared)) {
      if (code != SQLITE_ROW) return make_error(code);
      if (!budget_.allows(prepared)) return make_error(SQLITE_INTERRUPT);
      if (take) WEIR_CHECK(take(row));
    }
    return {};
  }

  Result<void> scan(Statement statement, Params params, const RowHandler& take) override {
    return each(statement, params, take);
  }

  Result<void> change_rows(Statement single, Statement /*many*/, std::size_t columns,
                           Params values) override {
    WEIR_TRY(sqlite3_stmt * prepared, prepare(single));
    const Reset reset{prepared};
    for (std::size_t at = 0; at < values.size(); at += columns) {
      WEIR_CHECK(bind_all(prepared, values.subspan(at, columns)));
      const Running running(budget_);
      if (const int code = sqlite3_step(prepared); code != SQLITE_DONE) return make_error(code);
      sqlite3_reset(prepared);
    }
    return {};
  }

  // Returns true if the file is a store. An empty file is none yet; any other database is an error.
  Result<bool> has_store() override {
    bool store = false, other = false;
    WEIR_CHECK(read("SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0", {},
                    [&](const Row& row) {
                      if (row.text(0) == "weir_schema") {
                        store = true;
                      } else {
                        other = true;
                      }
                    }));
    if (!store && other) {
      return fail(Code::config, "{}: a database, but not a history of weir's", path_);
    }
    return store;
  }

  Result<void> check_tables(Statement tables) override {
    sqlite3* memory = nullptr;
    const int code = sqlite3_open_v2(":memory:", &memory, SQLITE_OPEN_READWRITE, nullptr);
    Sqlite expected(memory, path_, "");
    if (code != SQLITE_OK) return fail(Code::io, "{}: no memory", path_);
    WEIR_CHECK(expected.script(tables));
    WEIR_TRY(const Schema expected_schema, expected.read_schema());
    WEIR_TRY(const Schema schema, read_schema());
    if (schema == expected_schema) return {};
    return fail(Code::config, "{}: its tables are not those of a history: somebody changed them",
                path_);
  }

  // Sets the limits and modes that every connection starts with.
  Result<void> set_up(const OpenOptions& options) {
    const double wait_seconds = options.wait_seconds;
    sqlite3_busy_timeout(handle_, static_cast<int>(std::ceil(wait_seconds * 1000)));
    sqlite3_extended_result_codes(handle_, 1);
    sqlite3_limit(handle_, SQLITE_LIMIT_LENGTH, k_longest_value);
    sqlite3_limit(handle_, SQLITE_LIMIT_ATTACHED, 0);
    sqlite3_soft_heap_limit64(k_soft_heap);
    sqlite3_hard_heap_limit64(k_hard_heap);
    // The file may be anybody's: run nothing in its schema, and check its pages.
    sqlite3_db_config(handle_, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
    sqlite3_db_config(handle_, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
    WEIR_CHECK(
        script("PRAGMA cell_size_check = ON; PRAGMA synchronous = FULL; "
               "PRAGMA temp_store = MEMORY"));
    WEIR_CHECK(set_cache(options.cache_bytes));
    // The first to come switches the log on; others that do so at the same time wait.
    const sys::Stop never;
    sys::RealPause pause;
    for (double waited = 0;; waited += 0.05) {
      auto result = script("PRAGMA journal_mode = WAL");
      if (result) return {};
      if (result.error().code != Code::unavailable || waited > wait_seconds) return result;
      (void)pause.wait(0.05, never);
    }
  }

  // Limits the pages that SQLite keeps in memory; a pragma takes no parameter.
  Result<void> set_cache(std::int64_t bytes) {
    const std::string pragma = fmt::format("PRAGMA cache_size = -{}", bytes / 1024);
    const int code = sqlite3_exec(handle_, pragma.c_str(), nullptr, nullptr, nullptr);
    if (code != SQLITE_OK) return make_error(code);
    return {};
  }

 private:
  static constexpr std::array<std::string_view, 5> k_types{"INTEGER PRIMARY KEY", "TEXT", "REAL",
                                                           "INTEGER", "WITHOUT ROWID"};

  // Reads what the file says of its tables, without those that SQLite makes by itself.
  Result<Schema> read_schema() {
    Schema schema;
    WEIR_CHECK(
        read("SELECT name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'", {},
             [&](const Row& row) { schema[std::string(row.text(0))] = row.text(1); }));
    return schema;
  }

  // Charges the budget while a statement runs.
  struct Running {
    explicit Running(Budget& budget) : budget_(budget) { budget_.begin(); }
    ~Running() { budget_.end(); }
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;

   private:
    Budget& budget_;
  };

  struct Reset {
    sqlite3_stmt* statement;
    ~Reset() {
      sqlite3_reset(statement);
      sqlite3_clear_bindings(statement);
    }
  };

  // Binds a value to a placeholder; returns SQLite's result code.
  static int bind(sqlite3_stmt* statement, int at, const Param& param) {
    switch (param.kind) {
      case Param::Kind::null:
        return sqlite3_bind_null(statement, at);
      case Param::Kind::integer:
        return sqlite3_bind_int64(statement, at, param.integer);
      case Param::Kind::real:
        return sqlite3_bind_double(statement, at, param.real);
      case Param::Kind::text:
        // A null pointer would be NULL, even with no bytes.
        return sqlite3_bind_text64(statement, at, param.text.empty() ? "" : param.text.data(),
                                   param.text.size(), SQLITE_STATIC, SQLITE_UTF8);
    }
    return SQLITE_MISUSE;
  }

  Result<void> bind_all(sqlite3_stmt* statement, Params params) const {
    int at = 0;
    for (const Param& param : params) {
      if (const int code = bind(statement, ++at, param); code != SQLITE_OK) return make_error(code);
    }
    return {};
  }

  // The prepared statement, made at its first use.
  Result<sqlite3_stmt*> prepare(Statement statement) {
    if (const auto entry = statements_.find(statement.text); entry != statements_.end()) {
      return entry->second;
    }
    sqlite3_stmt* prepared = nullptr;
    std::string text = statement.text;
    std::ranges::replace(text, '$', '?');
    if (const int code = sqlite3_prepare_v3(handle_, text.c_str(), -1, SQLITE_PREPARE_PERSISTENT,
                                            &prepared, nullptr);
        code != SQLITE_OK) {
      return make_error(code);
    }
    statements_.emplace(statement.text, prepared);
    return prepared;
  }

  // Makes an Error of SQLite's code and message.
  [[nodiscard]] tl::unexpected<Error> make_error(int code) const {
    const std::string words = text::printable(sqlite3_errmsg(handle_));
    switch (code & 0xFF) {
      case SQLITE_BUSY:
      case SQLITE_LOCKED:
        return fail(Code::unavailable, "{}: others kept it busy: {}", path_, words);
      case SQLITE_NOTADB:
        return fail(Code::config, "{}: no history of weir's: {}", path_, words);
      case SQLITE_CANTOPEN:
      case SQLITE_READONLY:
      case SQLITE_PERM:
        return fail(Code::config, "{}: {}", path_, words);
      case SQLITE_INTERRUPT:
      case SQLITE_NOMEM:
        return fail(Code::data, "{}: reading takes more than a history of its size can: {}", path_,
                    words);
      case SQLITE_CORRUPT:
      case SQLITE_CONSTRAINT:
      case SQLITE_TOOBIG:
        return fail(Code::data, "{}: {}", path_, words);
      default:
        return fail(Code::io, "{}: {}", path_, words);
    }
  }

  sqlite3* handle_;
  std::string path_;
  Budget budget_;
  std::unordered_map<const char*, sqlite3_stmt*> statements_;
};

}  // namespace

// Opens a SQLite file, creating it and its folder if the options allow that. Fails if it is missing
// or no history.
Result<std::unique_ptr<Database>> open_sqlite(const std::string& path, const OpenOptions& options) {
  sys::RealFiles files;
  // Absolute, so that no name is one of SQLite's own (":memory:", "").
  const std::string file = sys::absolute(path);
  if (options.create) {
    WEIR_CHECK(files.make_dirs(sys::folder_of(file)));
  } else if (!files.exists(file)) {
    return fail(Code::config, "{}: no such history; weir trend import makes one", path);
  }
  sqlite3* handle = nullptr;
  const int flags =
      SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | (options.create ? SQLITE_OPEN_CREATE : 0);
  const int code = sqlite3_open_v2(file.c_str(), &handle, flags, nullptr);
  auto database = std::make_unique<Sqlite>(handle, path, file);
  if (handle == nullptr) return fail(Code::io, "{}: no memory", path);
  if (code != SQLITE_OK) return fail(Code::config, "{}: {}", path, sqlite3_errmsg(handle));
  WEIR_CHECK(database->set_up(options));
  return database;
}

}  // namespace weir::history
