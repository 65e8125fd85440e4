// The store on a Database, the same for both. Used by this module alone.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "gate/history/database.hpp"
#include "gate/history/store.hpp"

namespace weir::history {

// What the store numbers, read under a filter: shared by what reads a store. Used by this module
// alone.

template <class Value>
using ById = std::unordered_map<std::int64_t, Value>;

[[nodiscard]] bool fits(const std::vector<std::string>& globs, std::string_view name);
[[nodiscard]] bool fits(const Filter& filter, const std::string& project,
                        const std::optional<std::string>& branch, double time);

// As far as a filter wants it.
struct Named {
  ById<std::string> projects, cells;
  ById<Metric> metrics;
  ById<Place> places;
};
[[nodiscard]] Result<Named> read_names(Database& database, const Filter& filter);

struct NumberedRun {
  std::int64_t id = 0;
  RunFacts facts;
};
// By project, time, id.
[[nodiscard]] Result<std::vector<NumberedRun>> read_runs(Database& database, const Filter& filter,
                                                         const Named& named);

// Things that are named once and numbered by the store. Rows are never removed, so what was
// committed is known for good; what was not is forgotten.
class Numbered {
 public:
  [[nodiscard]] std::optional<std::int64_t> find(const std::string& key) const {
    const auto found = numbers_.find(key);
    return found == numbers_.end() ? std::nullopt : std::optional(found->second);
  }
  void note(const std::string& key, std::int64_t number) { numbers_.emplace(key, number); }
  void forget() { numbers_.clear(); }

 private:
  std::unordered_map<std::string, std::int64_t> numbers_;
};

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
  // Within a transaction that the caller began; after one that was taken back, forget().
  [[nodiscard]] Result<void> add_all(const Batch& batch, Added& added);
  void forget() {
    for (Numbered* known : {&projects_, &cells_, &metrics_, &places_}) known->forget();
  }

 private:
  // Of sql_add.cpp; within one transaction.
  [[nodiscard]] Result<void> add_run(const Run& run, Added& added);
  [[nodiscard]] Result<void> leave_known(std::int64_t id, const Run& run, std::vector<Param>& rows,
                                         Added& added);
  [[nodiscard]] Result<void> add_verdict(const StoredVerdict& verdict, Added& added);
  [[nodiscard]] Result<void> add_acknowledgement(const Acknowledgement& one, Added& added);
  [[nodiscard]] Result<void> add_looks(const std::vector<Look>& looks, Added& added);
  [[nodiscard]] Result<std::int64_t> number(Numbered& known, const std::string& key,
                                            Statement select, Statement insert, Params params);
  [[nodiscard]] Result<std::int64_t> project_number(const std::string& name);
  [[nodiscard]] Result<std::int64_t> cell_number(const std::string& name);
  [[nodiscard]] Result<std::int64_t> metric_number(const Metric& metric);
  [[nodiscard]] Result<std::int64_t> place_number(const Place& place);

  std::unique_ptr<Database> database_;
  std::string name_;
  Numbered projects_, cells_, metrics_, places_;
};

[[nodiscard]] Result<std::unique_ptr<SqlStore>> open_sql_store(const StoreAddress& address,
                                                               const OpenOptions& options);

// Fit to be kept, all of it (history.hpp)?

// A list of numbers as one text: the shortest that are these numbers, with spaces between.
[[nodiscard]] std::string samples_text(const std::vector<double>& samples);
[[nodiscard]] Result<std::vector<double>> samples_of(std::string_view text);

}  // namespace weir::history
