// One connection to a database, with only what the store needs. Used by this module alone.
//
// A Statement's text is a constant of the program, which is checked when weir is compiled. So
// nothing from outside ever becomes a part of one. All values are bound. Placeholders are $1, $2 …
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>

#include "gate/base/result.hpp"
#include "gate/history/store.hpp"

namespace weir::history {

struct Statement {
  consteval Statement(const char* constant) : text(constant) {}  // NOLINT: meant to be implicit
  const char* text;
};

// A value for a placeholder. Texts are referred to, not copied: they must outlive the call. -0 is
// 0: databases do not keep the difference.
class Param {
 public:
  enum class Kind { null, integer, real, text };
  Param() = default;
  Param(std::int64_t value) : kind(Kind::integer), integer(value) {}             // NOLINT
  Param(std::same_as<bool> auto value) : kind(Kind::integer), integer(value) {}  // NOLINT
  Param(double value) : kind(Kind::real), real(value + 0.0) {}                   // NOLINT
  Param(std::string_view value) : kind(Kind::text), text(value) {}               // NOLINT
  Param(const std::string& value) : Param(std::string_view(value)) {}            // NOLINT
  Param(Source value) : Param(to_string(value)) {}                               // NOLINT
  Param(profile::Nature value) : Param(static_cast<std::int64_t>(value)) {}      // NOLINT
  template <class Value>
  Param(const std::optional<Value>& value) : Param(value ? Param(*value) : Param()) {}  // NOLINT
  // A part of a metric that is not known is "".
  template <class Word>
  requires std::is_enum_v<Word> Param(const std::optional<Word>& word)  // NOLINT
      : Param(word ? unit::to_string(*word) : std::string_view()) {}

  Kind kind = Kind::null;
  std::int64_t integer = 0;
  double real = 0;
  std::string_view text;  // empty unless it is one
};
// Values for all placeholders. Valid as long as the call that they are written in.
struct Params : std::span<const Param> {
  using span::span;
  Params(std::span<const Param> values) : span(values) {}  // NOLINT
  Params(std::initializer_list<Param> values) : span(values.begin(), values.size()) {}
};

// One row of an answer, valid until the next. Columns count from 0.
class Row {
 public:
  virtual ~Row() = default;
  [[nodiscard]] virtual bool null(int column) const = 0;
  [[nodiscard]] virtual std::int64_t integer(int column) const = 0;
  [[nodiscard]] virtual double real(int column) const = 0;
  [[nodiscard]] virtual std::string_view text(int column) const = 0;

  // Copies the columns from `column` on into the variables that a tuple refers to.
  template <class... Values>
  void into(const std::tuple<Values&...>& values, int column = 0) const {
    std::apply([&](Values&... value) { (get(column++, value), ...); }, values);
  }
  void get(int column, std::string& value) const { value = text(column); }
  void get(int column, std::int64_t& value) const { value = integer(column); }
  void get(int column, double& value) const { value = real(column); }
  void get(int column, bool& value) const { value = integer(column) != 0; }
  void get(int column, Source& value) const {
    value = parse_source(text(column)).value_or(Source::run);
  }
  void get(int column, std::optional<unit::Kind>& value) const {
    value = unit::parse_kind(text(column));
  }
  void get(int column, std::optional<unit::Unit>& value) const {
    value = unit::parse_unit(text(column));
  }
  void get(int column, std::optional<unit::Better>& value) const {
    value = unit::parse_better(text(column));
  }
  template <class Value>
  void get(int column, std::optional<Value>& value) const {
    value.reset();
    if (!null(column)) get(column, value.emplace());
  }
};
using RowHandler = std::function<Result<void>(const Row&)>;

class Database {
 public:
  virtual ~Database() = default;

  // Writers of a store wait for each other; readers see it as it is at one moment.
  enum class Access { read, write };
  [[nodiscard]] virtual Result<void> begin(Access access) = 0;
  [[nodiscard]] virtual Result<void> commit() = 0;
  virtual void rollback() = 0;  // fine when nothing was begun

  // Runs several statements without values. $id, $text, $real, $integer and $clustered stand for
  // this database's words: an identity column, these types, and a table that is stored in the order
  // of its primary key.
  [[nodiscard]] virtual Result<void> script(Statement statements) = 0;
  // Returns how many rows changed.
  [[nodiscard]] virtual Result<std::int64_t> change(Statement statement, Params params) = 0;
  // Hands each row of the result to `take`.
  [[nodiscard]] virtual Result<void> each(Statement statement, Params params,
                                          const RowHandler& take) = 0;
  // each() for any number of rows, few of which are in memory at once. Within a transaction.
  [[nodiscard]] virtual Result<void> scan(Statement statement, Params params,
                                          const RowHandler& take) = 0;
  // each() for a function that may return nothing, too.
  template <class Take>
  [[nodiscard]] Result<void> read(Statement statement, Params params, const Take& take) {
    return each(statement, params, [&](const Row& row) -> Result<void> {
      if constexpr (std::is_void_v<decltype(take(row))>) {
        take(row);
        return {};
      } else {
        return take(row);
      }
    });
  }
  // Runs `single` for each row of `columns` values in `values`. `many` does the same with arrays,
  // one a column, in a database that has these.
  [[nodiscard]] virtual Result<void> change_rows(Statement single, Statement many,
                                                 std::size_t columns, Params values) = 0;

  // Returns true if the store's first table is there. Code::config if the database holds other
  // ones.
  [[nodiscard]] virtual Result<bool> has_store() = 0;
  // Fails with Code::config unless the tables are exactly those that the script makes. In a file of
  // others a view, trigger or computed column takes the place of a table, and never ends.
  [[nodiscard]] virtual Result<void> check_tables(Statement /*tables*/) { return {}; }
};

inline constexpr double k_any_time = 1e300;  // later than any

// Replaces the words $id, $text, $real, $integer, $clustered of a script by a database's own.
[[nodiscard]] std::string expand_types(Statement script,
                                       const std::array<std::string_view, 5>& meanings);

// A transaction that is rolled back unless it was committed.
class Transaction {
 public:
  explicit Transaction(Database& database) : database_(database) {}
  ~Transaction() {
    if (begun_) database_.rollback();
  }
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  [[nodiscard]] Result<void> begin(Database::Access access) {
    auto result = database_.begin(access);
    begun_ = result.has_value();
    return result;
  }
  [[nodiscard]] Result<void> commit() {
    WEIR_CHECK(database_.commit());
    begun_ = false;
    return {};
  }

 private:
  Database& database_;
  bool begun_ = false;
};

[[nodiscard]] Result<std::unique_ptr<Database>> open_sqlite(const std::string& path,
                                                            const OpenOptions& options);
[[nodiscard]] Result<std::unique_ptr<Database>> open_postgres(const StoreAddress& address,
                                                              const OpenOptions& options);

// The stored columns of each type, in their order, to be bound and to be read into. They come after
// the ids of its project and the like.
template <class T, class Type>
concept IsType = std::same_as<std::remove_const_t<T>, Type>;
auto columns(IsType<std::string> auto& name) { return std::tie(name); }
auto columns(IsType<Metric> auto& metric) {
  return std::tie(metric.name, metric.kind, metric.unit, metric.better);
}
auto columns(IsType<Place> auto& place) {
  return std::tie(place.device_class, place.device_name, place.machine_class, place.machine_name,
                  place.engine_build);
}
auto columns(IsType<RunFacts> auto& run) {
  return std::tie(run.id, run.source, run.commit, run.branch, run.commit_time, run.dirty, run.time,
                  run.machine, run.weir_version);
}
auto columns(IsType<StoredVerdict> auto& verdict) {
  return std::tie(verdict.id, verdict.run, verdict.commit, verdict.branch, verdict.time,
                  verdict.kept_at, verdict.outcome, verdict.text);
}
auto columns(IsType<Acknowledgement> auto& entry) {
  return std::tie(entry.cell, entry.metric, entry.machine, entry.kind, entry.commit, entry.time,
                  entry.reason, entry.who, entry.acknowledged_at);
}
auto columns(IsType<StoredToken> auto& token) {
  return std::tie(token.id, token.hash, token.project, token.scopes, token.name, token.made_at,
                  token.expires_at, token.revoked_at);
}
// Values for a statement: `first`, then the columns of `entry`.
template <class... First>
std::vector<Param> make_params(const auto& entry, const First&... first) {
  return std::apply(
      [&](const auto&... rest) {
        return std::vector<Param>{first..., rest...};
      },
      columns(entry));
}
template <class Work>
auto Store::write(Work work) -> decltype(work()) {
  Transaction transaction(*database_);
  WEIR_CHECK(transaction.begin(Database::Access::write));
  auto answer = work();
  const Result<void> committed = answer ? transaction.commit() : tl::unexpected(answer.error());
  if (committed) return answer;
  forget_ids();
  return tl::unexpected(committed.error());
}

}  // namespace weir::history
