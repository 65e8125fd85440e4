// The store on a Database, the same for both. Used by this module alone.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "gate/history/database.hpp"
#include "gate/history/store.hpp"

namespace weir::history {

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
auto columns(Of<Look> auto& one) { return std::tie(one.cell, one.metric, one.machine, one.points); }
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

class SqlStore final : public Store {
 public:
  SqlStore(std::unique_ptr<Database> database, std::string name)
      : database_(std::move(database)), name_(std::move(name)) {}

  [[nodiscard]] Result<Added> add(const Batch& batch) override;
  [[nodiscard]] Result<History> history(const Filter& filter) override;
  [[nodiscard]] Result<std::vector<std::string>> cells(const Filter& filter) override;
  [[nodiscard]] Result<std::vector<SeriesSummary>> summaries(const Filter& filter) override;
  [[nodiscard]] Result<std::vector<StoredVerdict>> verdicts(const Filter& filter) override;
  [[nodiscard]] Result<std::vector<Acknowledgement>> acknowledgements(
      const Filter& filter) override;
  [[nodiscard]] Result<void> all(const Filter& filter, const Takes& take) override;
  [[nodiscard]] Result<std::vector<Look>> looks(const Filter& filter) override;
  [[nodiscard]] const std::string& name() const override { return name_; }

  // For the service's part of a store (sql_service.cpp).
  [[nodiscard]] Database& database() { return *database_; }
  // Within write().
  [[nodiscard]] Result<void> add_all(const Batch& batch, Added& added);
  // What `work` does in one transaction: all of it, or nothing.
  template <class Work>
  auto write(Work work) -> decltype(work()) {
    Transaction transaction(*database_);
    WEIR_CHECK(transaction.begin(Database::Access::write));
    auto answer = work();
    const Result<void> done = answer ? transaction.commit() : tl::unexpected(answer.error());
    if (done) return answer;
    for (Numbered* known : {&projects_, &cells_, &metrics_, &places_}) known->clear();
    return tl::unexpected(done.error());
  }

 private:
  // Things that are named once and numbered by the store. Rows are never removed, so what was
  // committed is known for good; what was not is forgotten.
  using Numbered = std::unordered_map<std::string, std::int64_t>;

  // Of sql_add.cpp; within one transaction.
  [[nodiscard]] Result<void> add_run(const Run& run, Added& added);
  [[nodiscard]] Result<void> leave_known(std::int64_t id, const Run& run, std::vector<Param>& rows,
                                         Added& added);
  // Adds 1 to `added` where it was not there.
  [[nodiscard]] Result<void> add_row(Statement insert, Params values, std::size_t& added);
  [[nodiscard]] Result<std::int64_t> number(Numbered& known, const std::string& key,
                                            Statement select, Params wanted, Statement insert,
                                            Params values);
  [[nodiscard]] Result<std::int64_t> project_number(const std::string& name);
  [[nodiscard]] Result<std::int64_t> cell_number(const std::string& name);
  [[nodiscard]] Result<std::int64_t> metric_number(const Metric& metric);
  [[nodiscard]] Result<std::int64_t> place_number(const Place& place);

  std::unique_ptr<Database> database_;
  std::string name_;
  Numbered projects_, cells_, metrics_, places_;
  std::size_t most_differences_ = 0;  // that are named, of what is being added
};

[[nodiscard]] Result<std::unique_ptr<SqlStore>> open_sql_store(const StoreAddress& address,
                                                               const OpenOptions& options);

}  // namespace weir::history
