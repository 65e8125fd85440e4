// What the service keeps beside a history, in the same store: tokens, what it answered to uploads,
// and a few questions that it asks often. The contract of Store (store.hpp) holds here too: one
// transaction a call, on the disk when it returns, one thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gate/history/store.hpp"

namespace weir::history {

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
  Added added;  // of all of it
};

struct Upload {
  Batch batch;
  std::optional<UploadKey> key{};
  double at = 0;  // when it came
  // The answer that is kept with the key, and given again to the same upload.
  std::function<std::string(const UploadDone&)> answer;
};

struct UploadOutcome {
  enum class Kind {
    kept,      // `text` is the answer
    again,     // the key is known with the same digest: `text` is the first answer
    conflict,  // the key is known with another digest
  };
  Kind kind = Kind::kept;
  std::string text{};
  UploadDone done{};  // of `kept`
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
  // Is another text once a run, verdict or acknowledgement has come; cheap. Points that were added
  // to a run that is known do not show.
  [[nodiscard]] virtual Result<std::string> revision() = 0;
};

[[nodiscard]] Result<std::unique_ptr<ServiceStore>> open_service_store(
    const StoreAddress& address, const OpenOptions& options = {});

}  // namespace weir::history
