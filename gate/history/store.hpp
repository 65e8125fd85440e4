// The store: one schema, in a file of SQLite or a database of PostgreSQL.
//
// Every add() is one transaction, on the disk when it returns: a process that is killed, or a
// machine that loses power, keeps all of it or none. Any number of processes may use a store at
// once; those that write wait for each other, at most OpenOptions::wait_seconds. What is there
// already stays as it is, so that importing again changes nothing.
//
// Errors: Code::config where it is no store or cannot be reached, Code::data where what it holds
// or is given is wrong, Code::io where the database refused, Code::unavailable where others kept
// it busy or this build has no PostgreSQL. No message holds a password. A Store is used by one
// thread at a time; several may be open.
#pragma once

#include <cstdint>
#include <functional>
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

// What is read: all that fits every part that is given.
struct Filter {
  std::optional<std::string> project;  // exactly
  // Globs ('*' crosses '/'); none: all.
  std::vector<std::string> cells, metrics, machines;
  std::optional<std::string> branch;   // exactly
  std::optional<double> since, until;  // RunFacts::time, both included
};

struct Batch {
  std::vector<Run> runs;
  std::vector<StoredVerdict> verdicts;
  std::vector<Acknowledgement> acknowledgements;
};

// Everything in it (history.hpp). Code::data says what is not fit to be kept; after it a store has
// nothing against the batch itself.
[[nodiscard]] Result<void> check(const Batch& batch);

struct Added {
  std::size_t runs = 0, runs_known = 0;
  std::size_t points = 0, points_known = 0;
  // There already, with another number: the one that was there stays.
  std::size_t points_differ = 0;
  std::size_t verdicts = 0, acknowledgements = 0;  // that were not there
  // The first few of those that differ: "CELL METRIC: 66 is kept, 65 was given".
  std::vector<std::string> differences;
};

// One line of `weir trend list`: a series, counted.
struct SeriesSummary {
  std::string project, cell;
  Metric metric;
  std::string machine;
  std::int64_t points = 0;
  double first = 0, last = 0;  // RunFacts::time
};

class Database;
class Param;
struct Params;
struct Statement;

class Store {
 public:
  Store(std::unique_ptr<Database> database, std::string name);
  ~Store();

  // All of it, or none. Everything is checked first (history.hpp).
  [[nodiscard]] Result<Added> add(const Batch& batch);

  // Points in the order of time: see put_in_order().
  [[nodiscard]] Result<History> history(const Filter& filter);
  // Names that fit, sorted, whether or not they have points that do; cheap.
  [[nodiscard]] Result<std::vector<std::string>> cells(const Filter& filter);
  // By project, cell, metric, machine. Looks at all points, or at those of the cells where the
  // filter names few.
  [[nodiscard]] Result<std::vector<SeriesSummary>> summaries(const Filter& filter);
  // By project, time, kept_at, id. Of a filter the project, branch and times count.
  [[nodiscard]] Result<std::vector<StoredVerdict>> verdicts(const Filter& filter);
  // By project, cell, metric, machine, at. Times of the filter do not count.
  [[nodiscard]] Result<std::vector<Acknowledgement>> acknowledgements(const Filter& filter);
  // Runs (by project, time, id; those without a point that fits are left out), then verdicts, then
  // acknowledgements, all as they were at one moment. One at a time, so that a store of any size
  // fits into memory.
  [[nodiscard]] Result<void> all(const Filter& filter, const Takes& take);

  // What it is called in messages, without a password.
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  friend class SqlServiceStore;  // the service's part of a store (sql_service.cpp)

  // Within write().
  [[nodiscard]] Result<void> add_all(const Batch& batch, Added& added);
  // What `work` does in one transaction: all of it, or nothing.
  template <class Work>
  auto write(Work work) -> decltype(work());

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

struct OpenOptions {
  bool create = true;  // a file that is not there is made, with its folder
  double wait_seconds = 30;
};

// Where a store is: a file, or a URL "postgres://…" or "postgresql://…". Of a URL the password is
// taken out for `shown`.
struct StoreAddress {
  bool postgres = false;
  Secret target;
  std::string shown;
  std::vector<Secret> passwords;  // that stand in it, as they are written there

  [[nodiscard]] bool has_password() const { return !passwords.empty(); }
};
[[nodiscard]] StoreAddress parse_address(const std::string& text);

// An empty store gets its tables, by one process at a time. One of another schema is Code::config.
[[nodiscard]] Result<std::unique_ptr<Store>> open_store(const StoreAddress& address,
                                                        const OpenOptions& options = {});
// Was this weir built with PostgreSQL?
[[nodiscard]] bool has_postgres();

// What the service keeps beside a history, in the same store: tokens, what it answered to uploads,
// and a few questions that it asks often. The contract of Store (store.hpp) holds here too: one
// transaction a call, on the disk when it returns, one thread at a time.

// Who may do what. The token itself is kept nowhere: `hash` tells whether somebody has it.
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

// "The same upload again" is told by a key that the uploader chose, within a project.
struct UploadKey {
  std::string project, key;
  std::string digest;  // of the body and all that was said with it
};

// What became of one run of an upload.
struct UploadedRun {
  std::string project, id;
  std::size_t points = 0;  // that are new
  bool known = false;      // it was there before
};
struct UploadDone {
  std::vector<UploadedRun> runs;
  Added added;           // of all of it
  bool removed = false;  // Upload::removes was there
  // As they are kept: one that lacks what the verdict before it judged is "not judged", and says so
  // in a line of `lacking`.
  std::vector<StoredVerdict> verdicts;
  std::vector<std::string> lacking;
};

// How much may be kept. A day is one of UTC.
struct Quota {
  std::int64_t bytes = std::int64_t{20} << 30;     // of a project
  std::int64_t day_bytes = std::int64_t{1} << 30;  // of a project, and of a token
  std::int64_t day_runs = 10'000;
};

// A run that goes, with its verdicts.
struct Removal {
  std::string project, run;
  std::string who;  // the token's id
};

struct Upload {
  Batch batch;
  std::optional<UploadKey> key{};
  double at = 0;  // when it came
  // Its verdict is given now, whatever time its run names, and is announced elsewhere.
  bool judged_here = false;
  // What goes before the rest comes. What that run had is missed by nobody: a verdict that comes in
  // its place is compared with none before it.
  std::optional<Removal> removes{};
  // Counted in Quota, where they are given: bytes of its body, for its projects and this token.
  std::int64_t bytes = 0;
  std::string who{};
  std::optional<Quota> quota{};
  // The answer that is kept with the key, and given again to the same upload.
  std::function<std::string(const UploadDone&)> answer;
};

struct UploadOutcome {
  enum class Kind {
    kept,      // `text` is the answer
    again,     // the key is known with the same digest: `text` is the first answer
    conflict,  // the key is known with another digest
    too_much,  // of a quota: `text` says of which, `until` when a day's begins anew
  };
  Kind kind = Kind::kept;
  std::string text{};
  UploadDone done{};  // of `kept`; its verdicts, of `again` too
  std::optional<double> until{};
};

inline constexpr double k_keep_keys_seconds = 7 * 86'400.0;

// Where a list of verdicts goes on: behind this one.
struct VerdictPlace {
  double time = 0, kept_at = 0;
  std::string id, run;
};
struct VerdictsWanted {
  std::string project;  // exactly
  std::optional<std::string> branch;
  std::optional<double> since, until;  // of the run's time, both included
  std::optional<VerdictPlace> behind;
  std::size_t most = 100;
  bool texts = false;  // else StoredVerdict::text stays empty: it is large
};

class ServiceStore {
 public:
  virtual ~ServiceStore() = default;
  [[nodiscard]] virtual Store& history() = 0;

  // Code::data where its id is taken.
  [[nodiscard]] virtual Result<void> add_token(const StoredToken& token) = 0;
  // By made_at and id, with those that are expired or revoked.
  [[nodiscard]] virtual Result<std::vector<StoredToken>> tokens() = 0;
  // False where there is no such token; of one that is revoked the first time stays.
  [[nodiscard]] virtual Result<bool> revoke_token(const std::string& id, double at) = 0;

  // All uploads in one transaction, or none of them: an Error says nothing of which one was wrong.
  // By upload. Keys older than k_keep_keys_seconds are forgotten.
  [[nodiscard]] virtual Result<std::vector<UploadOutcome>> add_uploads(
      std::span<const Upload> uploads) = 0;

  // The newest first: by time, kept_at, id and run, falling.
  [[nodiscard]] virtual Result<std::vector<StoredVerdict>> newest_verdicts(
      const VerdictsWanted& wanted) = 0;
  // Is another text once a run, verdict or acknowledgement has come or gone; cheap. Points that
  // were added to a run that is known do not show.
  [[nodiscard]] virtual Result<std::string> revision() = 0;
};

[[nodiscard]] Result<std::unique_ptr<ServiceStore>> open_service_store(
    const StoreAddress& address, const OpenOptions& options = {});

}  // namespace weir::history
