// A store in a database of PostgreSQL, by libpqxx. Its exceptions end in here.
#include "gate/history/database.hpp"
#ifdef WEIR_POSTGRES
#include <algorithm>
#include <unordered_map>

#include <pqxx/pqxx>

#include "gate/base/text.hpp"

namespace weir::history {
namespace {

constexpr std::size_t k_rows_at_once = 10'000;
constexpr std::size_t k_first_fetch = 32, k_fetched_bytes = 512 << 10;
constexpr std::size_t k_shortest_password = 3;  // shorter ones are in every text
// Writers that do nothing for so long are considered gone: others must not wait for them.
constexpr std::string_view k_longest_idle = "60000";  // ms

class PostgresRow final : public Row {
 public:
  explicit PostgresRow(const pqxx::row& row) : row_(row) {}
  [[nodiscard]] bool null(int column) const override { return at(column).is_null(); }
  [[nodiscard]] std::int64_t integer(int column) const override {
    return text::to_int(text(column)).value_or(0);
  }
  [[nodiscard]] double real(int column) const override {
    return text::to_double(text(column)).value_or(0);
  }
  [[nodiscard]] std::string_view text(int column) const override {
    const pqxx::field field = at(column);
    return {field.c_str(), field.size()};
  }

 private:
  [[nodiscard]] pqxx::field at(int column) const {
    return row_[static_cast<pqxx::row::size_type>(column)];
  }
  const pqxx::row& row_;
};

// Returns the text of a query's parameter; nullopt for NULL.
std::optional<std::string> param_text(const Param& param) {
  switch (param.kind) {
    case Param::Kind::null:
      return std::nullopt;
    case Param::Kind::integer:
      return fmt::format("{}", param.integer);
    case Param::Kind::real:
      return fmt::format("{}", param.real);  // the shortest text that is this number
    case Param::Kind::text:
      return std::string(param.text);
  }
  return std::nullopt;
}

// The texts of parameters, and pointers to them; null is NULL.
struct ParamTexts {
  explicit ParamTexts(Params params) {
    texts.reserve(params.size());
    for (const Param& param : params) {
      texts.push_back(param_text(param));
      pointers.push_back(texts.back() ? texts.back()->c_str() : nullptr);
    }
  }
  std::vector<std::optional<std::string>> texts;
  std::vector<const char*> pointers;
};

// Appends an element to the text of a PostgreSQL array ("{1,2"), quoted if it is text. The caller
// adds the last brace.
void add_element(std::string& array, const Param& param) {
  array += array.empty() ? '{' : ',';
  if (param.kind == Param::Kind::null) {
    array += "NULL";
  } else if (param.kind == Param::Kind::text) {
    array += '"';
    for (const char c : param.text) {
      if (c == '"' || c == '\\') array += '\\';
      array += c;
    }
    array += '"';
  } else {
    array += *param_text(param);
  }
}

// Hides passwords and the store's address in a message of libpq, which may hold parts of the URL.
std::string without_passwords(const StoreAddress& address, const std::string& message) {
  Masker masker;
  masker.add(address.target);
  for (const Secret& password : address.passwords) {
    const std::string& hidden = password.reveal();
    if (hidden.size() >= k_shortest_password && message.find(hidden) != std::string::npos) {
      return "no connection; libpq's message contains the password, so weir does not show it";
    }
  }
  const std::string shown = text::printable(message);
  return masker.mask(text::trim(shown));
}

class Postgres final : public Database {
 public:
  Postgres(const StoreAddress& address, const OpenOptions& options) : address_(address) {
    connection_ = std::make_unique<pqxx::connection>(address.target.reveal());
    quiet_ = std::make_unique<pqxx::quiet_errorhandler>(*connection_);
    // A transaction ends with its connection: never reconnect without being asked to.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // newer versions never reconnect
    connection_->inhibit_reactivation(true);
#pragma GCC diagnostic pop
    connection_->set_client_encoding("UTF8");
    work_ = std::make_unique<pqxx::nontransaction>(*connection_);
    work_->exec_params("SELECT set_config('lock_timeout', $1, false)",
                       fmt::format("{}", static_cast<std::int64_t>(options.wait_seconds * 1000)));
  }

  // Begins a transaction. A writer takes a lock, so that there is one at a time.
  Result<void> begin(Access access) override {
    if (access == Access::read) {
      return execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
    }
    return translate_errors([&]() -> Result<void> {
      work_->exec("BEGIN");
      try {
        work_->exec_params("SELECT set_config('idle_in_transaction_session_timeout', $1, true)",
                           std::string(k_longest_idle));
        // One writer at a time, whatever it writes: "weir" in ASCII.
        work_->exec("SELECT pg_advisory_xact_lock(2003134834)");
      } catch (...) {
        rollback();
        throw;
      }
      return {};
    });
  }

  Result<void> commit() override { return execute("COMMIT"); }
  void rollback() override { (void)execute("ROLLBACK"); }

  Result<void> script(Statement statements) override {
    // Texts are compared by bytes, as everywhere else: a server's language changes no order.
    return execute(
        expand_types(statements, {"BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY",
                                  "TEXT COLLATE \"C\"", "DOUBLE PRECISION", "BIGINT", ""}));
  }

  Result<std::int64_t> change(Statement statement, Params params) override {
    return translate_errors([&]() -> Result<std::int64_t> {
      return static_cast<std::int64_t>(execute(statement, params).affected_rows());
    });
  }

  Result<void> each(Statement statement, Params params, const RowHandler& take) override {
    return translate_errors([&]() -> Result<void> {
      const pqxx::result rows = execute(statement, params);
      for (const pqxx::row& row : rows) WEIR_CHECK(take(PostgresRow(row)));
      return {};
    });
  }

  // Hands out rows of a cursor. It fetches so many at a time that these are about a megabyte.
  Result<void> scan(Statement statement, Params params, const RowHandler& take) override {
    return translate_errors([&]() -> Result<void> {
      const std::string cursor = fmt::format("weir_rows_{}", ++cursors_);
      const ParamTexts texts(params);
      work_->exec_params("DECLARE " + cursor + " NO SCROLL CURSOR FOR " + statement.text,
                         pqxx::prepare::make_dynamic_params(texts.pointers));
      for (std::size_t step = k_first_fetch;;) {
        const pqxx::result rows = work_->exec(fmt::format("FETCH {} FROM {}", step, cursor));
        std::size_t bytes = 0;
        for (const pqxx::row& row : rows) {
          for (const pqxx::field& field : row) bytes += field.size();
          WEIR_CHECK(take(PostgresRow(row)));
        }
        if (static_cast<std::size_t>(rows.size()) < step) break;
        if (bytes < k_fetched_bytes) {
          step = std::min(2 * step, k_rows_at_once);
        } else if (step > 1) {
          step /= 2;
        }
      }
      work_->exec("CLOSE " + cursor);
      return {};
    });
  }

  // Changes many rows at once: sends the values of each column as an array.
  Result<void> change_rows(Statement /*single*/, Statement many, std::size_t columns,
                           Params values) override {
    const std::size_t step = columns * k_rows_at_once;
    for (std::size_t from = 0; from < values.size(); from += step) {
      const Params part = values.subspan(from, std::min(step, values.size() - from));
      std::vector<std::string> arrays(columns);
      for (std::size_t i = 0; i < part.size(); ++i) add_element(arrays[i % columns], part[i]);
      std::vector<Param> params;
      for (std::string& array : arrays) {
        array += '}';
        params.emplace_back(array);
      }
      WEIR_CHECK(change(many, params));
    }
    return {};
  }

  Result<bool> has_store() override {
    // The catalogue is read as a table: a backend's memory of missing names may be older than the
    // lock it holds.
    bool is_there = false;
    WEIR_CHECK(read(
        "SELECT COUNT(*) FROM pg_catalog.pg_class WHERE relname = 'weir_schema' AND relkind = 'r' "
        "AND pg_catalog.pg_table_is_visible(oid)",
        {}, [&](const Row& row) { is_there = row.integer(0) > 0; }));
    return is_there;
  }

 private:
  Result<void> execute(const std::string& text) {
    return translate_errors([&]() -> Result<void> {
      work_->exec(text);
      return {};
    });
  }

  // Runs a statement, which is prepared at its first use.
  pqxx::result execute(Statement statement, Params params) {
    std::string& name = prepared_[statement.text];
    if (name.empty()) {
      name = fmt::format("weir_{}", prepared_.size());
      connection_->prepare(name, statement.text);
    }
    const ParamTexts texts(params);
    return work_->exec_prepared(name, pqxx::prepare::make_dynamic_params(texts.pointers));
  }

  // Runs `function`; exceptions of libpqxx become Errors.
  template <class Function>
  auto translate_errors(Function function) -> decltype(function()) {
    try {
      return function();
    } catch (const pqxx::broken_connection& error) {
      return make_error(Code::io, error);
    } catch (const pqxx::sql_error& error) {
      const std::string state = error.sqlstate();
      const bool busy = state == "55P03" || state == "40P01" || state == "40001";
      if (busy) return make_error(Code::unavailable, error);
      const bool refused = state.starts_with("42") || state.starts_with("25") ||
                           state.starts_with("28") || state.starts_with("3D");
      return make_error(refused ? Code::config : Code::io, error);
    } catch (const std::exception& error) {
      return make_error(Code::io, error);
    }
  }

  [[nodiscard]] tl::unexpected<Error> make_error(Code code, const std::exception& error) const {
    return fail(code, "{}: {}{}", address_.shown,
                code == Code::unavailable ? "others kept it busy: " : "",
                without_passwords(address_, error.what()));
  }

  StoreAddress address_;
  std::unique_ptr<pqxx::connection> connection_;
  std::unique_ptr<pqxx::quiet_errorhandler> quiet_;
  std::unique_ptr<pqxx::nontransaction> work_;
  std::unordered_map<const char*, std::string> prepared_;  // constant text -> its name there
  std::int64_t cursors_ = 0;
};

}  // namespace

bool has_postgres() { return true; }

Result<std::unique_ptr<Database>> open_postgres(const StoreAddress& address,
                                                const OpenOptions& options) {
  try {
    return std::make_unique<Postgres>(address, options);
  } catch (const std::exception& error) {
    return fail(Code::config, "{}: {}", address.shown, without_passwords(address, error.what()));
  }
}

}  // namespace weir::history

#else

namespace weir::history {

bool has_postgres() { return false; }

Result<std::unique_ptr<Database>> open_postgres(const StoreAddress& address,
                                                const OpenOptions& /*options*/) {
  return fail(Code::unavailable,
              "{}: this weir was built without PostgreSQL (WEIR_POSTGRES=OFF, as in the packages): "
              "use a file, or build weir from its sources",
              address.shown);
}

}  // namespace weir::history
#endif
