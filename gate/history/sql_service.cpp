// The service's part of a store, on a Database.
#include "gate/history/database.hpp"

namespace weir::history {
class SqlServiceStore final : public ServiceStore {
 public:
  explicit SqlServiceStore(std::unique_ptr<Store> store) : store_(std::move(store)) {}

  Store& history() override { return *store_; }

  Result<void> add_token(const StoredToken& token) override {
    return store_->write([&]() -> Result<void> {
      WEIR_TRY(const std::int64_t fresh,
               database().change(
                   "INSERT INTO weir_token (id, hash, project, scopes, name, made_at, expires_at, "
                   "revoked_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT DO NOTHING",
                   bound(token)));
      if (fresh == 0) return fail(Code::data, "there is a token {} already", token.id);
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

  Result<std::vector<UploadOutcome>> add_uploads(std::span<const Upload> uploads) override {
    for (const Upload& upload : uploads) WEIR_CHECK(check(upload.batch));
    std::vector<UploadOutcome> outcomes;
    if (uploads.empty()) return outcomes;
    return store_->write([&]() -> Result<std::vector<UploadOutcome>> {
      WEIR_CHECK(database().change("DELETE FROM weir_upload WHERE at < $1",
                                   {uploads.back().at - k_keep_keys_seconds}));
      for (const Upload& upload : uploads) {
        WEIR_TRY(UploadOutcome outcome, add_upload(upload));
        outcomes.push_back(std::move(outcome));
      }
      return std::move(outcomes);
    });
  }

  Result<std::vector<StoredVerdict>> newest_verdicts(const VerdictsWanted& wanted) override {
    std::vector<StoredVerdict> found;
    const VerdictPlace behind = wanted.behind.value_or(VerdictPlace{k_any_time, 0, "", ""});
    const std::string branch = wanted.branch.value_or("");  // Params look at texts
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
          row.into(columns(found.emplace_back()));
          found.back().project = wanted.project;
        }));
    return found;
  }

  Result<std::string> revision() override {
    std::string revision;
    WEIR_CHECK(database().read(
        "SELECT (SELECT COALESCE(MAX(id), 0) FROM weir_run), "
        "(SELECT COALESCE(MAX(id), 0) FROM weir_verdict), "
        "(SELECT COALESCE(MAX(id), 0) FROM weir_acknowledgement)",
        {}, [&](const Row& row) {
          revision = fmt::format("{}-{}-{}", row.integer(0), row.integer(1), row.integer(2));
        }));
    return revision;
  }

 private:
  [[nodiscard]] Database& database() { return *store_->database_; }

  // Nothing where the key is new.
  Result<std::optional<UploadOutcome>> known_upload(const UploadKey& key) {
    std::optional<UploadOutcome> known;
    WEIR_CHECK(database().read(
        "SELECT digest, answer FROM weir_upload WHERE project = $1 AND name = $2",
        {key.project, key.key}, [&](const Row& row) {
          const bool same = row.text(0) == key.digest;
          known.emplace().kind = same ? UploadOutcome::Kind::again : UploadOutcome::Kind::conflict;
          if (same) known->text = row.text(1);
        }));
    return known;
  }

  Result<UploadOutcome> add_upload(const Upload& upload) {
    if (upload.key) {
      WEIR_TRY(auto known, known_upload(*upload.key));
      if (known) return *std::move(known);
    }
    UploadOutcome outcome;
    Added& added = outcome.done.added;
    Batch part;
    part.runs.resize(1);
    for (const Run& run : upload.batch.runs) {
      part.runs.front() = run;
      const std::size_t points = added.points, known = added.runs_known;
      WEIR_CHECK(store_->add_all(part, added));
      outcome.done.runs.push_back(
          {run.facts.project, run.facts.id, added.points - points, added.runs_known > known});
    }
    part = {{}, upload.batch.verdicts, upload.batch.acknowledgements};
    WEIR_CHECK(store_->add_all(part, added));
    if (upload.answer) outcome.text = upload.answer(outcome.done);
    if (!upload.key) return outcome;
    WEIR_CHECK(database().change(
        "INSERT INTO weir_upload (project, name, digest, answer, at) VALUES ($1, $2, $3, $4, $5)",
        {upload.key->project, upload.key->key, upload.key->digest, outcome.text, upload.at}));
    return outcome;
  }

  std::unique_ptr<Store> store_;
};

Result<std::unique_ptr<ServiceStore>> open_service_store(const StoreAddress& address,
                                                         const OpenOptions& options) {
  WEIR_TRY(auto store, open_store(address, options));
  return std::make_unique<SqlServiceStore>(std::move(store));
}

}  // namespace weir::history
