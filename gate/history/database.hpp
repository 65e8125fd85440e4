// One connection to a database, as little of it as the store needs. Used by this module alone.
//
// A Statement's text is a constant of the program: that is checked when weir is compiled, so that
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

// A value for a placeholder. Texts are looked at, not copied: they outlive the call. -0 is 0:
// databases do not keep the difference.
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
  // Of a metric what is not known is "".
  template <class Word>
  requires std::is_enum_v<Word> Param(const std::optional<Word>& word)  // NOLINT
      : Param(word ? unit::to_string(*word) : std::string_view()) {}

  Kind kind = Kind::null;
  std::int64_t integer = 0;
  double real = 0;
  std::string_view text;
};
// As long as the call that they are written in.
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

  // Puts the columns from `column` on into what a tuple refers to.
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
using TakeRow = std::function<Result<void>(const Row&)>;

class Database {
 public:
  virtual ~Database() = default;

  // Writers of a store wait for each other; readers see one moment.
  enum class Access { read, write };
  [[nodiscard]] virtual Result<void> begin(Access access) = 0;
  [[nodiscard]] virtual Result<void> commit() = 0;
  virtual void rollback() = 0;  // fine when nothing was begun

  // Several statements without values. $id, $text, $real, $integer and $clustered stand for what
  // this database calls an identity column, these types, and a table that is kept in the order of
  // its primary key.
  [[nodiscard]] virtual Result<void> script(Statement statements) = 0;
  // Answers how many rows changed.
  [[nodiscard]] virtual Result<std::int64_t> change(Statement statement, Params params) = 0;
  [[nodiscard]] virtual Result<void> each(Statement statement, Params params,
                                          const TakeRow& take) = 0;
  // each(), for what takes a row and cannot fail, too.
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
  // `one` for each row of `columns` values in `values`. `many` is the same with all of them as
  // arrays, one a column, where the database takes these.
  [[nodiscard]] virtual Result<void> change_all(Statement one, Statement many, std::size_t columns,
                                                Params values) = 0;

  // Is the store's first table there? Without it, Code::config where it holds something else.
  [[nodiscard]] virtual Result<bool> has_store() = 0;
};

inline constexpr double k_any_time = 1e300;  // later than any

// A script with what its words stand for: $id, $text, $real, $integer, $clustered.
[[nodiscard]] std::string spelled(Statement script,
                                  const std::array<std::string_view, 5>& meanings);

// Begins, and takes back what was not committed.
class Transaction {
 public:
  explicit Transaction(Database& database) : database_(database) {}
  ~Transaction() {
    if (begun_) database_.rollback();
  }
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  [[nodiscard]] Result<void> begin(Database::Access access) {
    auto done = database_.begin(access);
    begun_ = done.has_value();
    return done;
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

// What is kept of each, in the order of its columns, behind the numbers that stand for its project
// and the like: to be bound and to be read into.
template <class T, class Kept>
concept Of = std::same_as<std::remove_const_t<T>, Kept>;
auto columns(Of<std::string> auto& name) { return std::tie(name); }
auto columns(Of<Metric> auto& one) { return std::tie(one.name, one.kind, one.unit, one.better); }
auto columns(Of<Place> auto& one) {
  return std::tie(one.device_class, one.device_name, one.machine_class, one.machine_name,
                  one.engine_build);
}
auto columns(Of<RunFacts> auto& one) {
  return std::tie(one.id, one.source, one.commit, one.branch, one.commit_time, one.dirty, one.time,
                  one.machine, one.weir_version);
}
auto columns(Of<StoredVerdict> auto& one) {
  return std::tie(one.id, one.run, one.commit, one.branch, one.time, one.kept_at, one.outcome,
                  one.text);
}
auto columns(Of<Acknowledgement> auto& one) {
  return std::tie(one.cell, one.metric, one.machine, one.kind, one.commit, one.time, one.reason,
                  one.who, one.at);
}
auto columns(Of<StoredToken> auto& one) {
  return std::tie(one.id, one.hash, one.project, one.scopes, one.name, one.made_at, one.expires_at,
                  one.revoked_at);
}
// `first`, then the columns of `one`.
template <class... First>
std::vector<Param> bound(const auto& one, const First&... first) {
  return std::apply(
      [&](const auto&... rest) {
        return std::vector<Param>{first..., rest...};
      },
      columns(one));
}

template <class Work>
auto Store::write(Work work) -> decltype(work()) {
  Transaction transaction(*database_);
  WEIR_CHECK(transaction.begin(Database::Access::write));
  auto answer = work();
  const Result<void> done = answer ? transaction.commit() : tl::unexpected(answer.error());
  if (done) return answer;
  for (Numbered* known : {&projects_, &cells_, &metrics_, &places_}) known->clear();
  return tl::unexpected(done.error());
}

}  // namespace weir::history
