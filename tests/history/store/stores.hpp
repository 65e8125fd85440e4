// Opens the two databases that every test of the store runs on.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include <gtest/gtest.h>
#include <stdlib.h>

#include "gate/history/store.hpp"

#include "tests/history/store/postgres_server.hpp"
#include "tests/history/support.hpp"

namespace weir::history {

// A temporary folder, removed when the test passes.
class Folder {
 public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "weir-history-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~Folder() {
    if (!testing::Test::HasFailure()) std::filesystem::remove_all(path_);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  [[nodiscard]] std::string operator/(const std::string& name) const {
    return (path_ / name).string();
  }

 private:
  std::filesystem::path path_;
};

enum class Kind { sqlite, postgres };

inline std::string name_of(const testing::TestParamInfo<Kind>& info) {
  return info.param == Kind::sqlite ? "Sqlite" : "Postgres";
}

class OnBoth : public testing::TestWithParam<Kind> {
 protected:
  // Returns the place of a new, empty store.
  std::string fresh(Kind kind) {
    if (kind == Kind::postgres) return PostgresServer::get().fresh_database();
    return folder_ / ("history" + std::to_string(++files_) + ".db");
  }
  std::string fresh() { return fresh(GetParam()); }

  static std::unique_ptr<Store> open(const std::string& where, const OpenOptions& options = {}) {
    auto store = open_store(parse_address(where), options);
    if (!store) throw std::runtime_error(store.error().message);
    return *std::move(store);
  }

  Folder folder_;

 private:
  int files_ = 0;
};

// Returns the value, or fails the test with the error's message.
template <class Value>
Value value_of(Result<Value> result) {
  if (!result) throw std::runtime_error(result.error().message);
  if constexpr (!std::is_void_v<Value>) return *std::move(result);
}

struct Content {
  std::vector<Run> runs;
  std::vector<StoredVerdict> verdicts;
  std::vector<Acknowledgement> acknowledgements;
};

inline Content content_of(Store& store, const Filter& filter = {}) {
  Content content;
  value_of(store.all(filter, {[&](const Run& run) {
                                content.runs.push_back(run);
                                return Result<void>{};
                              },
                              [&](const StoredVerdict& verdict) {
                                content.verdicts.push_back(verdict);
                                return Result<void>{};
                              },
                              [&](const Acknowledgement& acknowledgement) {
                                content.acknowledgements.push_back(acknowledgement);
                                return Result<void>{};
                              }}));
  return content;
}

}  // namespace weir::history
