// The store: one schema, in a file of SQLite or a database of PostgreSQL.
//
// Every add() is one transaction, on the disk when it returns: a process that is killed, or a
// machine that loses power, keeps all of it or none. Any number of processes may use a store at
// once; those that write wait for each other, at most OpenOptions::wait_seconds. What is there
// already stays as it is, so that importing again changes nothing.
//
// Errors: Code::config if it is no store or cannot be reached, Code::data if its contents or an
// argument are wrong, Code::io if the database refused, Code::unavailable if others kept it busy or
// this build has no PostgreSQL. No message holds a password. A Store is used by one thread at a
// time; several may be open.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "gate/base/result.hpp"
#include "gate/base/secret.hpp"
#include "gate/history/history.hpp"

namespace weir::history {

// Selects entries that match every part that is given.
struct Filter {
  std::optional<std::string> project;  // exactly
  // Globs ('*' crosses '/'); none: all.
  std::vector<std::string> cells, metrics, machines;
  std::vector<std::string> exact_cells;  // in place of `cells`: their whole names
  std::optional<std::string> branch;     // exactly
  std::optional<double> since, until;    // RunFacts::time, both included
  bool samples = true;                   // false: leaves the samples of points out
  // Memory for what is read, about. A read that needs more ends with Code::usage.
  std::size_t max_bytes = SIZE_MAX;
};

struct Batch {
  std::vector<Run> runs;
  std::vector<StoredVerdict> verdicts;
  std::vector<Acknowledgement> acknowledgements;
};

// Checks everything in the batch (history.hpp). Code::data says why it cannot be stored; a batch
// that passes is never refused by a store for its contents.
[[nodiscard]] Result<void> check(const Batch& batch);

struct Added {
  std::size_t runs = 0, runs_known = 0;
  std::size_t points = 0, points_known = 0;
  // Points that are there already with another number: the stored one stays.
  std::size_t points_differ = 0;
  std::size_t verdicts = 0, acknowledgements = 0;  // new ones
  // The first few that differ: "CELL METRIC: 66 is kept, 65 was given".
  std::vector<std::string> differences;
  // Bytes that the new rows take in a database, about and never too few: of rows that go with their
  // run, and of names, which stay.
  std::int64_t bytes = 0, name_bytes = 0;
};

// One line of `weir trend list`: a series, counted.
struct SeriesSummary {
  std::string project, cell;
  Metric metric;
  std::string machine;
  std::int64_t points = 0;
  double first = 0, last = 0;  // RunFacts::time
};

// Some of the cells' names, sorted.
struct CellPage {
  std::vector<std::string> names;
  std::optional<std::string> next_name;  // first name that was not looked at
};

// The newest runs and verdicts of each project that fit into some memory.
struct NewestHistory {
  History history;
  std::vector<StoredVerdict> verdicts;  // as Store::verdicts() sorts them
  std::size_t runs_left_out = 0, verdicts_left_out = 0;
};

class Database;
class Param;
struct Params;
struct Statement;

class Store {
 public:
  Store(std::unique_ptr<Database> database, std::string name);
  ~Store();

  // Adds all of it, or none. Everything is checked first (history.hpp).
  [[nodiscard]] Result<Added> add(const Batch& batch);

  // Points in the order of time: see put_in_order().
  [[nodiscard]] Result<History> history(const Filter& filter);
  // Names from `from` on that match, sorted, at most `most`. They may have no points that match.
  // Looks at a bounded number of names.
  [[nodiscard]] Result<CellPage> cells(const Filter& filter, const std::string& from,
                                       std::size_t page_size);
  // By project, cell, metric, machine. Looks at all points, or at those of the filter's cells.
  [[nodiscard]] Result<std::vector<SeriesSummary>> summaries(const Filter& filter);
  // The same one by one, cell by cell, so that a store of any size fits into memory.
  [[nodiscard]] Result<void> each_summary(const Filter& filter,
                                          const std::function<Result<void>(SeriesSummary)>& take);
  // Shares the memory out among the projects, so that none pushes another's runs out.
  [[nodiscard]] Result<NewestHistory> newest(std::size_t max_bytes, std::size_t max_verdict_bytes);
  // By project, time, kept_at, id. Only the project, branch and times of the filter count.
  [[nodiscard]] Result<std::vector<StoredVerdict>> verdicts(const Filter& filter);
  // By project, cell, metric, machine, at. Times of the filter do not count.
  [[nodiscard]] Result<std::vector<Acknowledgement>> acknowledgements(const Filter& filter);
  // Hands out runs (by project, time, id; those without a matching point are left out), then
  // verdicts, then acknowledgements, all as they were at one moment. One at a time, so that a store
  // of any size fits into memory.
  [[nodiscard]] Result<void> all(const Filter& filter, const EntryHandlers& take);

  // The store's name in messages, without a password.
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  friend class SqlServiceStore;  // the service's part of a store (sql_service.cpp)

  // Runs `work` in one transaction: all of it, or nothing.
  template <class Work>
  auto write(Work work) -> decltype(work());

  // Some names that the store has given an id. Rows are never removed, so an id that was committed
  // stays valid; others are forgotten.
  using IdsByName = std::unordered_map<std::string, std::int64_t>;

  // Digests of a run's points, by cell and metric.
  using PointDigests = std::map<std::pair<std::int64_t, std::int64_t>, std::size_t>;

  // Defined in sql_add.cpp; called within one transaction.
  [[nodiscard]] Result<void> add_run(const Run& run, Added& added);
  [[nodiscard]] Result<void> add_points(std::int64_t id, std::span<const Point> points,
                                        const PointDigests& stored, Added& added);
  [[nodiscard]] Result<PointDigests> read_digests(std::int64_t run);
  // Takes rows of these points out that are stored already.
  [[nodiscard]] Result<void> remove_stored_rows(const PointDigests& stored,
                                                std::span<const Point> points,
                                                std::vector<Param>& rows, Added& added);
  [[nodiscard]] Result<void> add_verdict(const StoredVerdict& verdict, Added& added);
  [[nodiscard]] Result<void> add_acknowledgement(const Acknowledgement& entry, Added& added);
  // Adds 1 to `count`, and `bytes` to `added`, if the row was not there.
  [[nodiscard]] Result<void> add_row(Statement insert, Params values, std::int64_t bytes,
                                     std::size_t& count, Added& added);
  void forget_ids();
  // The id of a name, which is added if it is new.
  [[nodiscard]] Result<std::int64_t> find_or_add_id(IdsByName& ids, const std::string& key,
                                                    Statement select, Params wanted,
                                                    Statement insert, Params values, Added& added);
  [[nodiscard]] Result<std::int64_t> project_id(const std::string& name, Added& added);
  [[nodiscard]] Result<std::int64_t> cell_id(const std::string& name, Added& added);
  [[nodiscard]] Result<std::int64_t> metric_id(const Metric& metric, Added& added);
  [[nodiscard]] Result<std::int64_t> place_id(const Place& place, Added& added);

  std::unique_ptr<Database> database_;
  std::string name_;
  IdsByName projects_, cells_, metrics_, places_;
};

struct OpenOptions {
  bool create = true;  // creates a file that is not there, with its folder
  double wait_seconds = 30;
  std::int64_t cache_bytes = std::int64_t{64} << 20;  // of SQLite's pages in memory
};

// The place of a store: a file, or a URL "postgres://…" or "postgresql://…". `shown` is the URL
// without its password.
struct StoreAddress {
  bool postgres = false;
  Secret target;
  std::string shown;
  std::vector<Secret> passwords;  // passwords in it, as they are written there

  [[nodiscard]] bool has_password() const { return !passwords.empty(); }
};
[[nodiscard]] StoreAddress parse_address(const std::string& text);

// An empty store gets its tables, by one process at a time. One of another schema is Code::config.
[[nodiscard]] Result<std::unique_ptr<Store>> open_store(const StoreAddress& address,
                                                        const OpenOptions& options = {});
// Returns true if this weir was built with PostgreSQL.
[[nodiscard]] bool has_postgres();

// The service's own data beside a history, in the same store: tokens, answers to uploads, and a few
// frequent queries. The contract of Store (store.hpp) holds here too: one transaction a call, on
// the disk when it returns, one thread at a time.

// An access token. The token itself is stored nowhere: `hash` proves that somebody has it.
struct StoredToken {
  std::string id;       // 12 hexadecimal digits, a part of the token
  std::string hash;     // SHA-256 of the whole token, 64 hexadecimal digits
  std::string project;  // a glob of projects: '*' stands for any run of characters
  std::string scopes;   // "read upload": words with spaces between
  std::string name;     // for people
  double made_at = 0;   // seconds since the epoch, as all here
  std::optional<double> expires_at, revoked_at;

  friend bool operator==(const StoredToken&, const StoredToken&) = default;
};

// Identifies a repeated upload by a key that the uploader chose, within a project.
struct UploadKey {
  std::string project, key;
  std::string digest;  // SHA-256 of the body and its parameters
};

// The result for one run of an upload.
struct UploadedRun {
  std::string project, id;
  std::size_t points = 0;   // new ones
  bool was_stored = false;  // it was there before
};
struct UploadResult {
  std::vector<UploadedRun> runs;
  Added added;           // for the whole upload
  bool removed = false;  // Upload::removes was there
  // As they are stored: a verdict that lacks parts which the one before it judged is "not judged".
  // A line of `lacking` says so. Only verdicts that were judged here have their texts.
  std::vector<StoredVerdict> verdicts;
  std::vector<std::string> lacking;
};

// Limits on stored and sent data. A day is one of UTC.
struct Quota {
  std::int64_t bytes = std::int64_t{20} << 30;  // most that a project takes in the database
  // Bytes that a project and a token send a day, or store if that is more.
  std::int64_t day_bytes = std::int64_t{1} << 30;
  std::int64_t day_runs = 10'000;
};

// A run to remove, with its verdicts.
struct Removal {
  std::string project, run;
  std::string who;  // the token's id
};

struct Upload {
  Batch batch;
  std::optional<UploadKey> key{};
  double received_at = 0;  // when it came
  // Its verdict was given now, whatever time its run names, and is announced elsewhere.
  bool judged_here = false;
  // Removed before the rest is added. A verdict that replaces one of that run is compared with none
  // before it.
  std::optional<Removal> removes{};
  // Counted against Quota if that is given: bytes of its body or, if they are more, those that it
  // takes in the database, for its projects and this token.
  std::int64_t bytes = 0;
  std::string who{};
  std::optional<Quota> quota{};
  // Makes the answer that is stored with the key, and given again to the same upload.
  std::function<std::string(const UploadResult&)> answer;
};

struct UploadOutcome {
  enum class Kind {
    kept,      // `text` is the answer
    again,     // the key is known with the same digest: `text` is the first answer
    conflict,  // the key is known with another digest
    too_much,  // over a quota: `text` says which, `until` when a day's begins anew
  };
  Kind kind = Kind::kept;
  std::string text{};
  UploadResult done{};  // for `kept`; its verdicts, for `again` too
  std::optional<double> until{};
};

inline constexpr double k_keep_keys_seconds = 7 * 86'400.0;

// A position in a list of verdicts.
struct VerdictPlace {
  double time = 0, kept_at = 0;
  std::string id, run;
};
struct VerdictQuery {
  std::string project;  // exactly
  std::optional<std::string> branch;
  std::optional<double> since, until;  // the run's time, both included
  std::optional<VerdictPlace> behind;
  std::size_t max_verdicts = 100;
};

class ServiceStore {
 public:
  virtual ~ServiceStore() = default;
  [[nodiscard]] virtual Store& history() = 0;

  // Code::data if its id is in use.
  [[nodiscard]] virtual Result<void> add_token(const StoredToken& token) = 0;
  // By made_at and id, with those that are expired or revoked.
  [[nodiscard]] virtual Result<std::vector<StoredToken>> tokens() = 0;
  // False if there is no such token; a token that is revoked keeps its first time.
  [[nodiscard]] virtual Result<bool> revoke_token(const std::string& id, double at) = 0;

  // Adds all uploads in one transaction, or none of them: an Error does not say which one was
  // wrong. Returns an outcome for each. Keys older than k_keep_keys_seconds are forgotten.
  [[nodiscard]] virtual Result<std::vector<UploadOutcome>> add_uploads(
      std::span<const Upload> uploads) = 0;

  // The newest first: by time, kept_at, id and run, falling. Their texts stay empty, for they are
  // large.
  [[nodiscard]] virtual Result<std::vector<StoredVerdict>> newest_verdicts(
      const VerdictQuery& wanted) = 0;
  // Appends the text of a stored verdict (by project, run and id); nothing if it is gone.
  [[nodiscard]] virtual Result<void> append_text(const StoredVerdict& verdict, std::string& to) = 0;
  // Returns another text once a run, verdict or acknowledgement was added or removed; cheap. Points
  // that were added to a stored run do not change it.
  [[nodiscard]] virtual Result<std::string> revision() = 0;
};

[[nodiscard]] Result<std::unique_ptr<ServiceStore>> open_service_store(
    const StoreAddress& address, const OpenOptions& options = {});

}  // namespace weir::history
