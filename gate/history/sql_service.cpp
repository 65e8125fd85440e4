// Stores tokens, uploads and quotas of the service, on a Database.
#include <algorithm>
#include <map>
#include <set>

#include "gate/history/database.hpp"
#include "gate/history/documents.hpp"

namespace weir::history {
namespace {

constexpr std::int64_t k_other_row = 320;  // bytes of a row beyond its texts, as in sql_add.cpp
constexpr std::size_t k_spare_bytes = 64;  // behind a text that is appended

}  // namespace

// A ServiceStore on top of a Store.
class SqlServiceStore final : public ServiceStore {
 public:
  explicit SqlServiceStore(std::unique_ptr<Store> store) : store_(std::move(store)) {}

  Store& history() override { return *store_; }

  Result<void> add_token(const StoredToken& token) override {
    return store_->write([&]() -> Result<void> {
      WEIR_TRY(const std::int64_t inserted,
               database().change(
                   "INSERT INTO weir_token (id, hash, project, scopes, name, made_at, expires_at, "
                   "revoked_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT DO NOTHING",
                   make_params(token)));
      if (inserted == 0) return fail(Code::data, "there is a token {} already", token.id);
      return {};
    });
  }

  Result<std::vector<StoredToken>> tokens() override {
    std::vector<StoredToken> all;
    WEIR_CHECK(database().read(
        "SELECT id, hash, project, scopes, name, made_at, expires_at, revoked_at FROM weir_token "
        "ORDER BY made_at, id",
        {}, [&](const Row& row) { row.into(columns(all.emplace_back())); }));
    return all;
  }

  Result<bool> revoke_token(const std::string& id, double at) override {
    const auto changed = store_->write([&] {
      return database().change(
          "UPDATE weir_token SET revoked_at = COALESCE(revoked_at, $1) WHERE id = $2", {at, id});
    });
    return changed.map([](std::int64_t rows) { return rows > 0; });
  }

  // Adds all uploads in one transaction, and forgets old keys and old counts of use.
  Result<std::vector<UploadOutcome>> add_uploads(std::span<const Upload> uploads) override {
    for (const Upload& upload : uploads) WEIR_CHECK(check(upload.batch));
    std::vector<UploadOutcome> outcomes;
    if (uploads.empty()) return outcomes;
    compared_ids_.clear();  // an id that was not committed may be given again
    return store_->write([&]() -> Result<std::vector<UploadOutcome>> {
      WEIR_CHECK(database().change("DELETE FROM weir_upload WHERE at < $1",
                                   {uploads.back().received_at - k_keep_keys_seconds}));
      WEIR_CHECK(database().change("DELETE FROM weir_use WHERE day > 0 AND day < $1",
                                   {day_number(uploads.back().received_at) - 1}));
      for (const Upload& upload : uploads) {
        WEIR_TRY(UploadOutcome outcome, add_upload(upload));
        outcomes.push_back(std::move(outcome));
      }
      return std::move(outcomes);
    });
  }

  // The newest verdicts of a project that match, from `behind` on.
  Result<std::vector<StoredVerdict>> newest_verdicts(const VerdictQuery& wanted) override {
    std::vector<StoredVerdict> verdicts;
    const VerdictPlace behind = wanted.behind.value_or(VerdictPlace{k_any_time, 0, "", ""});
    const std::string branch = wanted.branch.value_or("");  // Params refer to texts
    WEIR_CHECK(database().read(
        "SELECT v.name, v.run, v.commit_name, v.branch, v.time, v.kept_at, v.outcome, '' "
        "FROM weir_verdict v JOIN weir_project p ON p.id = v.project "
        "WHERE p.name = $1 AND v.time >= $2 AND v.time <= $3 AND ($4 = 0 OR v.branch = $5) "
        "AND (v.time, v.kept_at, v.name, v.run) < ($6, $7, $8, $9) "
        "ORDER BY v.time DESC, v.kept_at DESC, v.name DESC, v.run DESC LIMIT $10",
        {wanted.project, wanted.since.value_or(-k_any_time), wanted.until.value_or(k_any_time),
         wanted.branch.has_value(), branch, behind.time, behind.kept_at, behind.id, behind.run,
         static_cast<std::int64_t>(wanted.max_verdicts)},
        [&](const Row& row) {
          row.into(columns(verdicts.emplace_back()));
          verdicts.back().project = wanted.project;
        }));
    return verdicts;
  }

  Result<void> append_text(const StoredVerdict& verdict, std::string& to) override {
    return database().read(
        "SELECT v.content FROM weir_verdict v JOIN weir_project p ON p.id = v.project "
        "WHERE p.name = $1 AND v.name = $2 AND v.run = $3",
        {verdict.project, verdict.id, verdict.run}, [&](const Row& row) {
          const std::string_view text = row.text(0);
          to.reserve(to.size() + text.size() + k_spare_bytes);
          to += text;
        });
  }

  // A text that changes when a run, verdict or acknowledgement is added or removed.
  Result<std::string> revision() override {
    std::string revision;
    WEIR_CHECK(
        database().read("SELECT (SELECT COALESCE(MAX(id), 0) FROM weir_run), "
                        "(SELECT COALESCE(MAX(id), 0) FROM weir_verdict), "
                        "(SELECT COALESCE(MAX(id), 0) FROM weir_acknowledgement), "
                        "(SELECT COUNT(*) FROM weir_removed)",
                        {}, [&](const Row& row) {
                          revision = fmt::format("{}-{}-{}-{}", row.integer(0), row.integer(1),
                                                 row.integer(2), row.integer(3));
                        }));
    return revision;
  }

 private:
  [[nodiscard]] Database& database() { return *store_->database_; }

  // The outcome of an upload with this key before; nothing if the key is new.
  Result<std::optional<UploadOutcome>> find_upload(const UploadKey& key) {
    std::optional<UploadOutcome> outcome;
    WEIR_CHECK(
        database().read("SELECT digest, answer FROM weir_upload WHERE project = $1 AND name = $2",
                        {key.project, key.key}, [&](const Row& row) {
                          const bool same = row.text(0) == key.digest;
                          outcome.emplace().kind =
                              same ? UploadOutcome::Kind::again : UploadOutcome::Kind::conflict;
                          if (same) outcome->text = row.text(1);
                        }));
    return outcome;
  }

  // Forgets the key of an upload whose run was removed since: its stored answer would be wrong.
  Result<bool> forget_if_run_removed(const Upload& upload) {
    bool any_missing = false;
    for (const Run& run : upload.batch.runs) {
      bool is_stored = false;
      WEIR_CHECK(database().read(
          "SELECT r.id FROM weir_run r JOIN weir_project p ON p.id = r.project "
          "WHERE p.name = $1 AND r.name = $2",
          {run.facts.project, run.facts.id}, [&](const Row&) { is_stored = true; }));
      any_missing = any_missing || !is_stored;
    }
    if (!any_missing) return false;
    return database()
        .change("DELETE FROM weir_upload WHERE project = $1 AND name = $2",
                {upload.key->project, upload.key->key})
        .map([](std::int64_t) { return true; });
  }

  // Adds one upload: answers it from its key if it came before, else adds it unless it exceeds a
  // quota.
  Result<UploadOutcome> add_upload(const Upload& upload) {
    UploadOutcome outcome;
    if (upload.key) {
      WEIR_TRY(auto before, find_upload(*upload.key));
      if (before) outcome = *std::move(before);
      if (before && outcome.kind == UploadOutcome::Kind::again) {
        WEIR_TRY(const bool forgotten, forget_if_run_removed(upload));
        if (forgotten) outcome = {};
      }
    }
    if (outcome.kind == UploadOutcome::Kind::conflict) return outcome;
    if (outcome.kind == UploadOutcome::Kind::again) {
      for (const StoredVerdict& sent : upload.batch.verdicts) {
        WEIR_CHECK(compare_verdict(upload, sent, outcome.done));
      }
      return outcome;
    }
    WEIR_CHECK(database().script("SAVEPOINT upload"));
    WEIR_TRY(auto too_much, add_new_upload(upload, outcome));
    if (too_much) {
      WEIR_CHECK(database().script("ROLLBACK TO SAVEPOINT upload"));
      store_->forget_ids();
      compared_ids_.clear();
    }
    WEIR_CHECK(database().script("RELEASE SAVEPOINT upload"));
    return too_much ? *std::move(too_much) : std::move(outcome);
  }

  // Removes a run, adds the upload and its answer, and counts all of it. Returns the refusal if
  // that exceeds a quota: then the caller takes it back.
  Result<std::optional<UploadOutcome>> add_new_upload(const Upload& upload,
                                                      UploadOutcome& outcome) {
    UploadResult& done = outcome.done;
    WEIR_TRY(auto too_much, count_day(upload, upload.bytes));
    if (too_much) return too_much;
    if (upload.removes) {
      WEIR_TRY(done.removed, remove_run(*upload.removes, upload.received_at));
    }
    UseByProject use;
    WEIR_CHECK(add_runs(upload, done, use));
    for (const StoredVerdict& sent : upload.batch.verdicts) {
      const std::int64_t bytes_before = done.added.bytes;
      WEIR_CHECK(compare_verdict(upload, sent, done));
      WEIR_CHECK(store_->add_verdict(done.verdicts.back(), done.added));
      if (!upload.judged_here) done.verdicts.back().text = {};
      use[sent.project].run_bytes[sent.run] += done.added.bytes - bytes_before;
    }
    for (const Acknowledgement& entry : upload.batch.acknowledgements) {
      const std::int64_t bytes_before = done.added.bytes;
      WEIR_CHECK(store_->add_acknowledgement(entry, done.added));
      use[entry.project].other_bytes += done.added.bytes - bytes_before;
    }
    if (upload.answer) outcome.text = upload.answer(done);
    std::int64_t stored_bytes = done.added.bytes + done.added.name_bytes;
    if (upload.key) {
      const UploadKey& key = *upload.key;
      WEIR_CHECK(
          database().change("INSERT INTO weir_upload (project, name, digest, answer, at) "
                            "VALUES ($1, $2, $3, $4, $5)",
                            {key.project, key.key, key.digest, outcome.text, upload.received_at}));
      stored_bytes += k_other_row + static_cast<std::int64_t>(key.key.size() + outcome.text.size());
    }
    WEIR_TRY(too_much, count_stored(upload, use));
    if (too_much) return too_much;
    return count_day(upload, std::max<std::int64_t>(stored_bytes - upload.bytes, 0), /*runs=*/0);
  }

  // Bytes that an upload added to a project: by run, which gives them back when it is removed, and
  // others.
  struct Use {
    std::map<std::string, std::int64_t> run_bytes;
    std::int64_t other_bytes = 0;
  };
  using UseByProject = std::map<std::string, Use>;

  // Adds the runs one by one, so that the result of each is known.
  Result<void> add_runs(const Upload& upload, UploadResult& done, UseByProject& use) {
    Added& added = done.added;
    for (const Run& run : upload.batch.runs) {
      const Added before = added;
      WEIR_CHECK(store_->add_run(run, added));
      done.runs.push_back({run.facts.project, run.facts.id, added.points - before.points,
                           added.runs_known > before.runs_known});
      Use& project = use[run.facts.project];
      project.run_bytes[run.facts.id] += added.bytes - before.bytes;
      project.other_bytes += added.name_bytes - before.name_bytes;
    }
    return {};
  }

  // Appends a verdict as it is to be stored to `done`.
  Result<void> compare_verdict(const Upload& upload, const StoredVerdict& sent,
                               UploadResult& done) {
    StoredVerdict& verdict = done.verdicts.emplace_back(sent);
    verdict.judged_here = upload.judged_here;
    if (upload.removes) return {};
    return compare_with_last(verdict, done);
  }

  // Compares a verdict, whose run is stored, with complete ones: no name and no time that an
  // uploader chooses hides what is missing. Those are the last one of the same machine and branch,
  // and the last one of that machine on the default branch. A machine or branch without any is
  // compared with the last one before it in time and with the newest: of that machine, else of the
  // default branch, else of any. One that the service judged is never compared with one that an
  // uploader may have written.
  Result<void> compare_with_last(StoredVerdict& verdict, UploadResult& done) {
    const std::string branch = verdict.branch.value_or("");
    const double until = verdict.judged_here ? k_any_time : verdict.time;
    std::int64_t project = 0;
    std::string machine;
    WEIR_TRY(project, store_->project_id(verdict.project, done.added));
    WEIR_CHECK(database().read("SELECT machine FROM weir_run WHERE project = $1 AND name = $2",
                               {project, verdict.run},
                               [&](const Row& row) { machine = row.text(0); }));
    std::set<std::int64_t> ids;
    const auto take = [&](const Row& row) { ids.insert(row.integer(0)); };
    const auto last_of = [&](const std::string& wanted_branch) {
      return database().read(
          "SELECT id FROM weir_verdict WHERE project = $1 AND partial = 0 AND machine = $2 AND "
          "COALESCE(branch, '') = $3 AND time <= $4 AND judged_here >= $5 "
          "ORDER BY time DESC, id DESC LIMIT 1",
          {project, machine, wanted_branch, until, verdict.judged_here}, take);
    };
    WEIR_CHECK(last_of(branch));
    if (!ids.empty()) {
      for (const char* name : {"main", "master"}) {
        if (branch != name) WEIR_CHECK(last_of(name));
      }
    } else {
      for (const double latest : {until, k_any_time}) {
        // "+time", so that SQLite reads weir_verdict_last alone, not the rows with their long
        // texts.
        WEIR_CHECK(database().read(
            "SELECT id FROM weir_verdict WHERE project = $1 AND partial = 0 AND judged_here >= $4 "
            "ORDER BY CASE WHEN +time <= $3 THEN 0 ELSE 1 END, "
            "CASE WHEN machine = $2 THEN 0 ELSE 1 END, "
            "CASE WHEN branch IN ('main', 'master') THEN 0 ELSE 1 END, "
            "CASE WHEN +time <= $3 THEN -time ELSE time END, id DESC LIMIT 1",
            {project, machine, latest, verdict.judged_here}, take));
      }
    }
    if (ids.empty()) return {};
    if (ids != compared_ids_) {
      compared_parts_.clear();
      for (const std::int64_t id : ids) {
        StoredVerdict last;
        WEIR_CHECK(database().read("SELECT content FROM weir_verdict WHERE id = $1", {id},
                                   [&](const Row& row) { last.text = row.text(0); }));
        compared_parts_.merge(judged_parts(last));
      }
      compared_ids_ = ids;
    }
    if (auto missing = note_missing_parts(compared_parts_, verdict)) {
      done.lacking.push_back(*std::move(missing));
    }
    return {};
  }

  // False if it is not there: removing it again changes nothing.
  Result<bool> remove_run(const Removal& removal, double at) {
    std::int64_t id = 0, project = 0, bytes = 0;
    WEIR_CHECK(
        database().read("SELECT r.id, r.project, r.bytes FROM weir_run r JOIN weir_project p "
                        "ON p.id = r.project WHERE p.name = $1 AND r.name = $2",
                        {removal.project, removal.run},
                        [&](const Row& row) { row.into(std::tie(id, project, bytes)); }));
    if (id == 0) return false;
    compared_ids_.clear();
    WEIR_CHECK(database().change("DELETE FROM weir_point WHERE run = $1", {id}));
    WEIR_CHECK(database().change("DELETE FROM weir_verdict WHERE project = $1 AND run = $2",
                                 {project, removal.run}));
    WEIR_CHECK(database().change("DELETE FROM weir_run WHERE id = $1", {id}));
    WEIR_CHECK(database().change(
        "INSERT INTO weir_removed (project, name, who, at) VALUES ($1, $2, $3, $4)",
        {removal.project, removal.run, removal.who, at}));
    const std::size_t texts = removal.project.size() + removal.run.size() + removal.who.size();
    WEIR_CHECK(add_use("project " + removal.project, 0,
                       k_other_row + static_cast<std::int64_t>(texts) - bytes, 0));
    return true;
  }

  // Use is counted by the names of projects and tokens. Day 0 holds what is stored in all.

  static std::int64_t day_number(double at) { return static_cast<std::int64_t>(at / 86'400); }

  Result<void> add_use(const std::string& name, std::int64_t day, std::int64_t bytes,
                       std::int64_t runs) {
    return database()
        .change(
            "INSERT INTO weir_use (name, day, bytes, runs) VALUES ($1, $2, $3, $4) "
            "ON CONFLICT (name, day) DO UPDATE SET bytes = weir_use.bytes + excluded.bytes, "
            "runs = weir_use.runs + excluded.runs",
            {name, day, bytes, runs})
        .map([](std::int64_t) {});
  }

  // Counts bytes and runs of an upload as of today, unless that exceeds a quota: then returns the
  // refusal. Without a number of runs it counts the upload's, and refuses projects that are full.
  Result<std::optional<UploadOutcome>> count_day(const Upload& upload, std::int64_t bytes,
                                                 std::optional<std::int64_t> known_runs = {}) {
    if (!upload.quota || (bytes == 0 && known_runs == 0)) return std::nullopt;
    const std::int64_t today = day_number(upload.received_at);
    const Quota& quota = *upload.quota;
    const std::int64_t runs = known_runs.value_or(static_cast<std::int64_t>(
        std::max({upload.batch.runs.size(), upload.batch.verdicts.size(), std::size_t{1}})));
    std::set<std::string> names{"token " + upload.who};
    for (const std::string& project : project_names(upload.batch))
      names.insert("project " + project);
    for (const std::string& name : names) {
      std::int64_t stored_bytes = 0, day_bytes = 0, day_runs = 0;
      const auto take = [&](const Row& row) {
        row.into(std::tie(stored_bytes, day_bytes, day_runs));
      };
      WEIR_CHECK(
          database().read("SELECT COALESCE(SUM(CASE WHEN day = 0 THEN bytes ELSE 0 END), 0), "
                          "COALESCE(SUM(CASE WHEN day = 0 THEN 0 ELSE bytes END), 0), "
                          "COALESCE(SUM(CASE WHEN day = 0 THEN 0 ELSE runs END), 0) "
                          "FROM weir_use WHERE name = $1 AND (day = 0 OR day = $2)",
                          {name, today}, take));
      if (!known_runs && stored_bytes >= quota.bytes) return full(name, stored_bytes, quota);
      const bool fits_day =
          day_bytes + bytes <= quota.day_bytes && day_runs + runs <= quota.day_runs;
      if (fits_day) continue;
      UploadOutcome too_much{.kind = UploadOutcome::Kind::too_much};
      too_much.text = fmt::format("{} sent {} of {} bytes and {} of {} runs today", name, day_bytes,
                                  quota.day_bytes, day_runs, quota.day_runs);
      too_much.until = static_cast<double>(today + 1) * 86'400;
      return too_much;
    }
    for (const std::string& name : names) WEIR_CHECK(add_use(name, today, bytes, runs));
    return std::nullopt;
  }

  static UploadOutcome full(const std::string& name, std::int64_t stored_bytes,
                            const Quota& quota) {
    return {.kind = UploadOutcome::Kind::too_much,
            .text = fmt::format("{} takes {} of {} bytes in the store: remove runs first", name,
                                stored_bytes, quota.bytes)};
  }

  // Counts the bytes that an upload added to the store, on its runs: removing a run gives its bytes
  // back. Returns the refusal if a project takes more than it may.
  Result<std::optional<UploadOutcome>> count_stored(const Upload& upload,
                                                    const UseByProject& use_by_project) {
    for (const auto& [project, use] : use_by_project) {
      std::int64_t bytes = use.other_bytes;
      for (const auto& [run, run_bytes] : use.run_bytes) {
        bytes += run_bytes;
        if (run_bytes == 0 || run.empty()) continue;
        WEIR_CHECK(database().change(
            "UPDATE weir_run SET bytes = bytes + $1 WHERE name = $2 AND project = "
            "(SELECT id FROM weir_project WHERE name = $3)",
            {run_bytes, run, project}));
      }
      if (bytes == 0) continue;
      const std::string name = "project " + project;
      WEIR_CHECK(add_use(name, 0, bytes, 0));
      if (!upload.quota) continue;
      std::int64_t stored_bytes = 0;
      WEIR_CHECK(database().read("SELECT bytes FROM weir_use WHERE name = $1 AND day = 0", {name},
                                 [&](const Row& row) { stored_bytes = row.integer(0); }));
      if (stored_bytes > upload.quota->bytes) {
        return full(name, stored_bytes - bytes, *upload.quota);
      }
    }
    return std::nullopt;
  }

  static std::set<std::string> project_names(const Batch& batch) {
    std::set<std::string> names;
    for (const Run& run : batch.runs) names.insert(run.facts.project);
    for (const StoredVerdict& verdict : batch.verdicts) names.insert(verdict.project);
    for (const Acknowledgement& entry : batch.acknowledgements) names.insert(entry.project);
    return names;
  }

  std::unique_ptr<Store> store_;
  std::set<std::int64_t> compared_ids_;   // of the verdicts last compared with
  std::set<std::string> compared_parts_;  // the parts that they judged
};

Result<std::unique_ptr<ServiceStore>> open_service_store(const StoreAddress& address,
                                                         const OpenOptions& options) {
  WEIR_TRY(auto store, open_store(address, options));
  return std::make_unique<SqlServiceStore>(std::move(store));
}

}  // namespace weir::history
