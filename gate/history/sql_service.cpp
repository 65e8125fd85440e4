// Stores tokens, uploads and quotas of the service, on a Database.
#include <set>

#include "gate/history/database.hpp"
#include "gate/history/documents.hpp"

namespace weir::history {
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
    last_verdict_ = 0;  // an id that was not committed may be given again
    return store_->write([&]() -> Result<std::vector<UploadOutcome>> {
      WEIR_CHECK(database().change("DELETE FROM weir_upload WHERE at < $1",
                                   {uploads.back().at - k_keep_keys_seconds}));
      WEIR_CHECK(database().change("DELETE FROM weir_use WHERE day > 0 AND day < $1",
                                   {day_number(uploads.back().at) - 1}));
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
        "SELECT v.name, v.run, v.commit_name, v.branch, v.time, v.kept_at, v.outcome, "
        "CASE WHEN $11 = 1 THEN v.content ELSE '' END "
        "FROM weir_verdict v JOIN weir_project p ON p.id = v.project "
        "WHERE p.name = $1 AND v.time >= $2 AND v.time <= $3 AND ($4 = 0 OR v.branch = $5) "
        "AND (v.time, v.kept_at, v.name, v.run) < ($6, $7, $8, $9) "
        "ORDER BY v.time DESC, v.kept_at DESC, v.name DESC, v.run DESC LIMIT $10",
        {wanted.project, wanted.since.value_or(-k_any_time), wanted.until.value_or(k_any_time),
         wanted.branch.has_value(), branch, behind.time, behind.kept_at, behind.id, behind.run,
         static_cast<std::int64_t>(wanted.most), wanted.texts},
        [&](const Row& row) {
          row.into(columns(verdicts.emplace_back()));
          verdicts.back().project = wanted.project;
        }));
    return verdicts;
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

  // Adds one upload: answers it from its key if it came before, else checks its quota, removes a
  // run, and stores the rest.
  Result<UploadOutcome> add_upload(const Upload& upload) {
    UploadOutcome outcome;
    UploadResult& done = outcome.done;
    if (upload.key) {
      WEIR_TRY(auto before, find_upload(*upload.key));
      if (before) outcome = *std::move(before);
      if (before && outcome.kind == UploadOutcome::Kind::again) {
        WEIR_TRY(const bool forgotten, forget_if_run_removed(upload));
        if (forgotten) outcome = {};
      }
    }
    if (outcome.kind == UploadOutcome::Kind::conflict) return outcome;
    const bool is_new = outcome.kind == UploadOutcome::Kind::kept;
    if (is_new && upload.quota) {
      WEIR_TRY(auto too_much, count_use(upload));
      if (too_much) return *std::move(too_much);
    }
    if (is_new && upload.removes) {
      WEIR_TRY(done.removed, remove_run(*upload.removes, upload.at));
    }
    if (is_new) WEIR_CHECK(add_runs(upload, done));
    for (const StoredVerdict& sent : upload.batch.verdicts) {
      StoredVerdict& verdict = done.verdicts.emplace_back(sent);
      verdict.judged_here = upload.judged_here;
      if (!upload.removes) WEIR_CHECK(compare_with_last(verdict, done));
      if (is_new) WEIR_CHECK(store_->add_all({{}, {verdict}, {}}, done.added));
    }
    if (!is_new) return outcome;
    WEIR_CHECK(store_->add_all({{}, {}, upload.batch.acknowledgements}, done.added));
    WEIR_CHECK(count_kept(upload, done));
    if (upload.answer) outcome.text = upload.answer(done);
    if (!upload.key) return outcome;
    WEIR_CHECK(database().change(
        "INSERT INTO weir_upload (project, name, digest, answer, at) VALUES ($1, $2, $3, $4, $5)",
        {upload.key->project, upload.key->key, upload.key->digest, outcome.text, upload.at}));
    return outcome;
  }

  // Adds the runs one by one, so that the result of each is known.

  Result<void> add_runs(const Upload& upload, UploadResult& done) {
    Added& added = done.added;
    Batch part;
    part.runs.resize(1);
    for (const Run& run : upload.batch.runs) {
      part.runs.front() = run;
      const std::size_t points_before = added.points, known_before = added.runs_known;
      WEIR_CHECK(store_->add_all(part, added));
      done.runs.push_back({run.facts.project, run.facts.id, added.points - points_before,
                           added.runs_known > known_before});
    }
    return {};
  }

  // Compares a verdict, whose run is stored, with the last one that lacked nothing. That is the
  // last one of the same machine and branch, else of that machine, else of any, the default
  // branch's first: no name that an uploader chooses hides what is missing. A verdict that is older
  // than all others is compared with the oldest. One that the service judged is never compared with
  // one that an uploader may have written.
  Result<void> compare_with_last(StoredVerdict& verdict, UploadResult& done) {
    const std::string branch = verdict.branch.value_or("");
    const double until = verdict.judged_here ? k_any_time : verdict.time;
    std::int64_t project = 0, id = 0;
    std::string machine;
    WEIR_TRY(project, store_->project_id(verdict.project));
    WEIR_CHECK(database().read("SELECT machine FROM weir_run WHERE project = $1 AND name = $2",
                               {project, verdict.run},
                               [&](const Row& row) { machine = row.text(0); }));
    const auto take = [&](const Row& row) { id = row.integer(0); };
    WEIR_CHECK(database().read(
        "SELECT id FROM weir_verdict WHERE project = $1 AND partial = 0 AND machine = $2 AND "
        "COALESCE(branch, '') = $3 AND time <= $4 AND judged_here >= $5 "
        "ORDER BY time DESC, id DESC LIMIT 1",
        {project, machine, branch, until, verdict.judged_here}, take));
    if (id == 0) {
      // "+time", so that SQLite reads weir_verdict_last alone, not the rows with their long texts.
      WEIR_CHECK(database().read(
          "SELECT id FROM weir_verdict WHERE project = $1 AND partial = 0 AND judged_here >= $4 "
          "ORDER BY CASE WHEN +time <= $3 THEN 0 ELSE 1 END, "
          "CASE WHEN machine = $2 THEN 0 ELSE 1 END, "
          "CASE WHEN branch IN ('main', 'master') THEN 0 ELSE 1 END, "
          "CASE WHEN +time <= $3 THEN -time ELSE time END, id DESC LIMIT 1",
          {project, machine, until, verdict.judged_here}, take));
    }
    if (id == 0) return {};
    if (id != last_verdict_) {
      StoredVerdict last;
      WEIR_CHECK(database().read("SELECT content FROM weir_verdict WHERE id = $1", {id},
                                 [&](const Row& row) { last.text = row.text(0); }));
      last_verdict_parts_ = judged_parts(last);
      last_verdict_ = id;
    }
    if (auto missing = note_missing_parts(last_verdict_parts_, verdict)) {
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
    last_verdict_ = 0;
    WEIR_CHECK(database().change("DELETE FROM weir_point WHERE run = $1", {id}));
    WEIR_CHECK(database().change("DELETE FROM weir_verdict WHERE project = $1 AND run = $2",
                                 {project, removal.run}));
    WEIR_CHECK(database().change("DELETE FROM weir_run WHERE id = $1", {id}));
    WEIR_CHECK(add_use("project " + removal.project, 0, -bytes, 0));
    WEIR_CHECK(database().change(
        "INSERT INTO weir_removed (project, name, who, at) VALUES ($1, $2, $3, $4)",
        {removal.project, removal.run, removal.who, at}));
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

  // Counts the upload as of today, unless that exceeds a quota: then returns the refusal.
  Result<std::optional<UploadOutcome>> count_use(const Upload& upload) {
    const std::int64_t today = day_number(upload.at);
    const Quota& quota = *upload.quota;
    const auto runs = static_cast<std::int64_t>(
        std::max({upload.batch.runs.size(), upload.batch.verdicts.size(), std::size_t{1}}));
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
      UploadOutcome too_much{.kind = UploadOutcome::Kind::too_much};
      if (stored_bytes + upload.bytes > quota.bytes) {
        too_much.text = fmt::format("{} holds {} of {} bytes: remove runs first", name,
                                    stored_bytes, quota.bytes);
        return too_much;
      }
      const bool fits_day =
          day_bytes + upload.bytes <= quota.day_bytes && day_runs + runs <= quota.day_runs;
      if (fits_day) continue;
      too_much.text = fmt::format("{} sent {} of {} bytes and {} of {} runs today", name, day_bytes,
                                  quota.day_bytes, day_runs, quota.day_runs);
      too_much.until = static_cast<double>(today + 1) * 86'400;
      return too_much;
    }
    for (const std::string& name : names) WEIR_CHECK(add_use(name, today, upload.bytes, runs));
    return std::nullopt;
  }

  // Counts the bytes of an upload that stored something new, on its runs: removing a run gives its
  // bytes back.
  Result<void> count_kept(const Upload& upload, const UploadResult& done) {
    const Added& added = done.added;
    if (added.runs + added.points + added.verdicts + added.acknowledgements == 0) return {};
    if (done.runs.empty()) {
      for (const std::string& project : project_names(upload.batch)) {
        WEIR_CHECK(add_use("project " + project, 0, upload.bytes, 0));
      }
    }
    const auto count = static_cast<std::int64_t>(done.runs.size());
    for (const UploadedRun& run : done.runs) {
      WEIR_CHECK(add_use("project " + run.project, 0, upload.bytes / count, 0));
      WEIR_CHECK(
          database().change("UPDATE weir_run SET bytes = bytes + $1 WHERE name = $2 AND project = "
                            "(SELECT id FROM weir_project WHERE name = $3)",
                            {upload.bytes / count, run.id, run.project}));
    }
    return {};
  }

  static std::set<std::string> project_names(const Batch& batch) {
    std::set<std::string> names;
    for (const Run& run : batch.runs) names.insert(run.facts.project);
    for (const StoredVerdict& verdict : batch.verdicts) names.insert(verdict.project);
    for (const Acknowledgement& entry : batch.acknowledgements) names.insert(entry.project);
    return names;
  }

  std::unique_ptr<Store> store_;
  std::int64_t last_verdict_ = 0;             // id of the verdict last compared with
  std::set<std::string> last_verdict_parts_;  // the parts that it judged
};

Result<std::unique_ptr<ServiceStore>> open_service_store(const StoreAddress& address,
                                                         const OpenOptions& options) {
  WEIR_TRY(auto store, open_store(address, options));
  return std::make_unique<SqlServiceStore>(std::move(store));
}

}  // namespace weir::history
