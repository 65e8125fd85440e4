// The service's part of a store, on a Database.
#include <array>

#include "gate/history/sql_store.hpp"
#include "gate/history/store.hpp"

namespace weir::history {
namespace {

class SqlServiceStore final : public ServiceStore {
 public:
  explicit SqlServiceStore(std::unique_ptr<SqlStore> store) : store_(std::move(store)) {}

  Store& history() override { return *store_; }
  Result<void> add_token(const StoredToken& token) override;
  Result<std::vector<StoredToken>> tokens() override;
  Result<bool> revoke_token(const std::string& id, double at) override;
  Result<std::vector<UploadOutcome>> add_uploads(std::span<const Upload> uploads) override;
  Result<std::vector<StoredVerdict>> newest_verdicts(const VerdictsWanted& wanted) override;
  Result<std::string> revision() override;

 private:
  [[nodiscard]] Database& database() { return store_->database(); }
  [[nodiscard]] Result<UploadOutcome> add_upload(const Upload& upload);
  [[nodiscard]] Result<std::optional<UploadOutcome>> known_upload(const UploadKey& key);

  std::unique_ptr<SqlStore> store_;
};

Result<void> SqlServiceStore::add_token(const StoredToken& token) {
  Transaction transaction(database());
  WEIR_CHECK(transaction.begin(Database::Access::write));
  const std::array<Param, 8> values{token.id,   token.hash,    token.project,    token.scopes,
                                    token.name, token.made_at, token.expires_at, token.revoked_at};
  WEIR_TRY(const std::int64_t fresh,
           database().change("INSERT INTO weir_token (id, hash, project, scopes, name, made_at, "
                             "expires_at, revoked_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8) "
                             "ON CONFLICT DO NOTHING",
                             values));
  if (fresh == 0) return fail(Code::data, "there is a token {} already", token.id);
  return transaction.commit();
}

Result<std::vector<StoredToken>> SqlServiceStore::tokens() {
  std::vector<StoredToken> all;
  WEIR_CHECK(database().read(
      "SELECT id, hash, project, scopes, name, made_at, expires_at, revoked_at FROM weir_token "
      "ORDER BY made_at, id",
      {}, [&](const Row& row) {
        all.push_back({std::string(row.text(0)), std::string(row.text(1)), std::string(row.text(2)),
                       std::string(row.text(3)), std::string(row.text(4)), row.real(5),
                       row.optional_real(6), row.optional_real(7)});
        return Result<void>{};
      }));
  return all;
}

Result<bool> SqlServiceStore::revoke_token(const std::string& id, double at) {
  Transaction transaction(database());
  WEIR_CHECK(transaction.begin(Database::Access::write));
  const std::array<Param, 2> values{at, id};
  WEIR_TRY(
      const std::int64_t changed,
      database().change("UPDATE weir_token SET revoked_at = COALESCE(revoked_at, $1) WHERE id = $2",
                        values));
  WEIR_CHECK(transaction.commit());
  return changed > 0;
}

// Nothing where the key is new.
Result<std::optional<UploadOutcome>> SqlServiceStore::known_upload(const UploadKey& key) {
  std::optional<UploadOutcome> known;
  const std::array<Param, 2> name{key.project, key.key};
  WEIR_CHECK(database().read(
      "SELECT digest, answer FROM weir_upload WHERE project = $1 AND name = $2", name,
      [&](const Row& row) {
        known = row.text(0) == key.digest
                    ? UploadOutcome{UploadOutcome::Kind::again, std::string(row.text(1)), {}}
                    : UploadOutcome{UploadOutcome::Kind::conflict, {}, {}};
        return Result<void>{};
      }));
  return known;
}

Result<UploadOutcome> SqlServiceStore::add_upload(const Upload& upload) {
  if (upload.key) {
    WEIR_TRY(auto known, known_upload(*upload.key));
    if (known) return *std::move(known);
  }
  UploadOutcome outcome;
  const auto counted = [&](const Batch& part) -> Result<Added> {
    Added added;
    WEIR_CHECK(store_->add_all(part, added));
    Added& all = outcome.done.added;
    all.runs += added.runs;
    all.runs_known += added.runs_known;
    all.points += added.points;
    all.points_known += added.points_known;
    all.points_differ += added.points_differ;
    all.verdicts += added.verdicts;
    all.acknowledgements += added.acknowledgements;
    all.looks += added.looks;
    all.differences.insert(all.differences.end(), added.differences.begin(),
                           added.differences.end());
    return added;
  };
  Batch part;
  part.runs.resize(1);
  for (const Run& run : upload.batch.runs) {
    part.runs.front() = run;
    WEIR_TRY(const Added added, counted(part));
    outcome.done.runs.push_back(
        {run.facts.project, run.facts.id, added.points, added.runs_known > 0});
  }
  part = {{}, upload.batch.verdicts, upload.batch.acknowledgements, upload.batch.looks};
  WEIR_CHECK(counted(part));
  if (upload.answer) outcome.text = upload.answer(outcome.done);
  if (!upload.key) return outcome;
  const std::array<Param, 5> values{upload.key->project, upload.key->key, upload.key->digest,
                                    outcome.text, upload.at};
  WEIR_CHECK(database().change(
      "INSERT INTO weir_upload (project, name, digest, answer, at) VALUES ($1, $2, $3, $4, $5)",
      values));
  return outcome;
}

Result<std::vector<UploadOutcome>> SqlServiceStore::add_uploads(std::span<const Upload> uploads) {
  for (const Upload& upload : uploads) WEIR_CHECK(check(upload.batch));
  if (uploads.empty()) return std::vector<UploadOutcome>{};
  const auto all = [&]() -> Result<std::vector<UploadOutcome>> {
    std::vector<UploadOutcome> outcomes;
    const std::array<Param, 1> oldest{uploads.back().at - k_keep_keys_seconds};
    WEIR_CHECK(database().change("DELETE FROM weir_upload WHERE at < $1", oldest));
    for (const Upload& upload : uploads) {
      WEIR_TRY(UploadOutcome outcome, add_upload(upload));
      outcomes.push_back(std::move(outcome));
    }
    return outcomes;
  };
  Transaction transaction(database());
  WEIR_CHECK(transaction.begin(Database::Access::write));
  auto outcomes = all();
  Result<void> done = outcomes ? transaction.commit() : tl::unexpected(outcomes.error());
  if (!done) {
    store_->forget();
    return tl::unexpected(std::move(done).error());
  }
  return outcomes;
}

Result<std::vector<StoredVerdict>> SqlServiceStore::newest_verdicts(const VerdictsWanted& wanted) {
  constexpr double k_any_time = 1e300;  // later than any
  std::vector<StoredVerdict> found;
  const VerdictPlace behind = wanted.behind.value_or(VerdictPlace{k_any_time, 0, "", ""});
  const std::string branch = wanted.branch.value_or("");  // Params look at texts
  const std::array<Param, 11> values{wanted.project,
                                     wanted.since.value_or(-k_any_time),
                                     wanted.until.value_or(k_any_time),
                                     std::int64_t{wanted.branch ? 1 : 0},
                                     branch,
                                     behind.time,
                                     behind.kept_at,
                                     behind.id,
                                     behind.run,
                                     static_cast<std::int64_t>(wanted.most),
                                     std::int64_t{wanted.texts ? 1 : 0}};
  WEIR_CHECK(database().read(
      "SELECT v.name, v.run, v.commit_name, v.branch, v.time, v.kept_at, v.outcome, "
      "CASE WHEN $11 = 1 THEN v.content ELSE '' END "
      "FROM weir_verdict v JOIN weir_project p ON p.id = v.project "
      "WHERE p.name = $1 AND v.time >= $2 AND v.time <= $3 AND ($4 = 0 OR v.branch = $5) "
      "AND (v.time, v.kept_at, v.name, v.run) < ($6, $7, $8, $9) "
      "ORDER BY v.time DESC, v.kept_at DESC, v.name DESC, v.run DESC LIMIT $10",
      values, [&](const Row& row) {
        found.push_back({wanted.project, std::string(row.text(0)), std::string(row.text(1)),
                         row.optional_text(2), row.optional_text(3), row.real(4), row.real(5),
                         std::string(row.text(6)), std::string(row.text(7))});
        return Result<void>{};
      }));
  return found;
}

Result<std::string> SqlServiceStore::revision() {
  std::string revision;
  WEIR_CHECK(database().read(
      "SELECT (SELECT COALESCE(MAX(id), 0) FROM weir_run), "
      "(SELECT COALESCE(MAX(id), 0) FROM weir_verdict), "
      "(SELECT COALESCE(MAX(id), 0) FROM weir_acknowledgement)",
      {}, [&](const Row& row) {
        revision = fmt::format("{}-{}-{}", row.integer(0), row.integer(1), row.integer(2));
        return Result<void>{};
      }));
  return revision;
}

}  // namespace

Result<std::unique_ptr<ServiceStore>> open_service_store(const StoreAddress& address,
                                                         const OpenOptions& options) {
  WEIR_TRY(auto store, open_sql_store(address, options));
  return std::make_unique<SqlServiceStore>(std::move(store));
}

}  // namespace weir::history
