// Measures importing into a history in SQLite, and the least that this could cost: a loop of one
// prepared statement that puts the same rows into the same table.
#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>
#include <sqlite3.h>
#include <stdlib.h>

#include "gate/history/csv.hpp"
#include "gate/history/store.hpp"

namespace {

using namespace weir;
namespace fs = std::filesystem;

// A thousand series (100 cells x 10 metrics) of 100 commits.
constexpr int k_runs = 100, k_cells = 100, k_metrics = 10;
constexpr int k_points = k_runs * k_cells * k_metrics;
constexpr std::size_t k_batch_runs = 20;  // runs per transaction, in both cases

// Returns the CSV text that is imported: k_points lines.
const std::string& series_csv() {
  static const std::string k_text = [] {
    std::string text = "cell,metric,commit,time,value,machine\n";
    for (int run = 0; run < k_runs; ++run) {
      for (int cell = 0; cell < k_cells; ++cell) {
        for (int metric = 0; metric < k_metrics; ++metric) {
          text += fmt::format("llama.cpp/model{}/vulkan/decode,metric{},{:040x},{},{},machine\n",
                              cell, metric, run, 1795000000 + 60 * run,
                              20 + (run * 7919 + cell * 104729 + metric) % 1000 / 997.0);
        }
      }
    }
    return text;
  }();
  return k_text;
}

// A new folder for each measurement, among the temporary files; removed at the end.
class BenchFolder {
 public:
  BenchFolder() {
    std::string pattern = (fs::temp_directory_path() / "weir-bench-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~BenchFolder() { fs::remove_all(path_); }
  BenchFolder(const BenchFolder&) = delete;
  BenchFolder& operator=(const BenchFolder&) = delete;
  [[nodiscard]] std::string file() const { return (path_ / "history.db").string(); }

 private:
  fs::path path_;
};

void check(benchmark::State& state, int code, int expected = SQLITE_OK) {
  if (code != expected) state.SkipWithError("SQLite refused");
}

// Measures inserting with the transactions, settings and tables of gate/history/store.cpp, but with
// ids that need no look-up.
void insert_bare(benchmark::State& state) {
  for (auto _ : state) {
    state.PauseTiming();
    const BenchFolder folder;
    (void)history::open_store(history::parse_address(folder.file()));  // makes the tables
    sqlite3* database = nullptr;
    check(state, sqlite3_open(folder.file().c_str(), &database));
    check(state, sqlite3_exec(database,
                              "PRAGMA synchronous = FULL; PRAGMA cache_size = -65536; "
                              "PRAGMA temp_store = MEMORY",
                              nullptr, nullptr, nullptr));
    state.ResumeTiming();
    sqlite3_stmt* statement = nullptr;
    check(state, sqlite3_prepare_v2(database,
                                    "INSERT INTO weir_point (cell, metric, run, place, nature, "
                                    "source, value, exact, samples) "
                                    "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
                                    -1, &statement, nullptr));
    for (int run = 0; run < k_runs; ++run) {
      if (run % 20 == 0)
        check(state, sqlite3_exec(database, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr));
      for (int cell = 0; cell < k_cells; ++cell) {
        for (int metric = 0; metric < k_metrics; ++metric) {
          sqlite3_bind_int64(statement, 1, cell);
          sqlite3_bind_int64(statement, 2, metric);
          sqlite3_bind_int64(statement, 3, run);
          sqlite3_bind_int64(statement, 4, 1);
          sqlite3_bind_int64(statement, 5, 2);
          sqlite3_bind_text(statement, 6, "", 0, SQLITE_STATIC);
          sqlite3_bind_double(statement, 7, run * 0.1 + cell);
          sqlite3_bind_null(statement, 8);
          sqlite3_bind_null(statement, 9);
          check(state, sqlite3_step(statement), SQLITE_DONE);
          sqlite3_reset(statement);
        }
      }
      if (run % 20 == 19) check(state, sqlite3_exec(database, "COMMIT", nullptr, nullptr, nullptr));
    }
    sqlite3_finalize(statement);
    sqlite3_close(database);
  }
  state.SetItemsProcessed(state.iterations() * k_points);
}
BENCHMARK(insert_bare)->Unit(benchmark::kMillisecond)->Iterations(1)->UseRealTime();

// Measures importing CSV completely: reads the text, looks up names, checks and stores.
void import_csv(benchmark::State& state) {
  (void)series_csv();
  for (auto _ : state) {
    state.PauseTiming();
    const BenchFolder folder;
    auto store = history::open_store(history::parse_address(folder.file()));
    state.ResumeTiming();
    const auto table = history::CsvTable::parse(series_csv(), "default");
    std::size_t points = 0;
    for (std::size_t begin = 0; begin < table->runs(); begin += k_batch_runs) {
      const std::size_t end = std::min(begin + k_batch_runs, table->runs());
      history::Batch batch;
      for (std::size_t i = begin; i < end; ++i) batch.runs.push_back(table->run(i));
      const auto added = (*store)->add(batch);
      if (added) points += added->points;
    }
    if (points != k_points) state.SkipWithError("not all points were kept");
    store->reset();
  }
  state.SetItemsProcessed(state.iterations() * k_points);
}
BENCHMARK(import_csv)->Unit(benchmark::kMillisecond)->Iterations(1)->UseRealTime();

}  // namespace
