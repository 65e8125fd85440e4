// Tests kill -9 of `weir trend import` at many moments. Every run that it reported as stored is
// stored, none is stored partly or twice.
#include <fstream>
#include <random>
#include <set>
#include <sstream>
#include <thread>

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gate/history/csv.hpp"

#include "tests/history/store/stores.hpp"
#include "tests/support/eventually.hpp"

namespace weir::history {
namespace {

constexpr int k_kills = 200, k_runs = 200, k_cells = 5;

// Returns a table of runs, one per time and commit, with five cells each.
std::string series_csv() {
  std::string text = "cell,metric,commit,time,value,machine\n";
  for (int run = 0; run < k_runs; ++run) {
    for (int cell = 0; cell < k_cells; ++cell) {
      text += fmt::format("cell{},load_seconds,{:040x},{},{},box\n", cell, run, 1795000000 + run,
                          run * 10 + cell);
    }
  }
  return text;
}

class Import {
 public:
  Import(const std::string& csv, const std::string& where, const std::string& out) : out_(out) {
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    std::vector<std::string> words{WEIR_PROGRAM, "trend", "import", "--csv",   csv,
                                   "--db",       where,   "--each", "--batch", "3"};
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    if (posix_spawn(&pid_, WEIR_PROGRAM, &actions, nullptr, argv.data(), environ) != 0) pid_ = -1;
    posix_spawn_file_actions_destroy(&actions);
  }
  void kill_now() const { kill(pid_, SIGKILL); }
  [[nodiscard]] bool running() const {
    siginfo_t ended{};
    return waitid(P_PID, static_cast<id_t>(pid_), &ended, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           ended.si_pid == 0;
  }
  // Returns 0 if the process ended by itself without an error.
  [[nodiscard]] int wait() const {
    int status = -1;
    waitpid(pid_, &status, 0);
    return status;
  }
  // Returns the ids that it reported as stored. A line that was cut off does not count.
  [[nodiscard]] std::set<std::string> stored_ids() const {
    std::ifstream file(out_);
    std::ostringstream text;
    text << file.rdbuf();
    std::set<std::string> ids;
    std::string rest = text.str();
    for (std::size_t end = rest.find('\n'); end != std::string::npos; end = rest.find('\n')) {
      if (rest.starts_with("kept ")) ids.insert(rest.substr(5, end - 5));
      rest.erase(0, end + 1);
    }
    return ids;
  }

 private:
  std::string out_;
  pid_t pid_ = -1;
};

class Killed : public OnBoth {
 protected:
  // Begins with an empty store. Emptying a database is faster than making a new one.
  void begin_again(std::string& where) {
    if (GetParam() == Kind::sqlite) {
      where = fresh();
    } else {
      (void)PostgresServer::get().ask(where, "DROP SCHEMA public CASCADE");
      (void)PostgresServer::get().ask(where, "CREATE SCHEMA public");
    }
  }
};

TEST_P(Killed, ImportersLoseNothingThatTheySaidIsKept) {
  const std::string csv = folder_ / "series.csv";
  std::ofstream(csv) << series_csv();
  std::map<std::string, history::Run> expected;
  {
    const CsvTable table = value_of(CsvTable::parse(series_csv(), "default"));
    for (std::size_t i = 0; i < table.runs(); ++i) {
      const history::Run run = table.run(i);
      expected[run.facts.id] = run;
    }
  }
  std::mt19937 random(3);
  std::string where = fresh();
  std::set<std::string> reported;
  int kills = 0, stores = 1;
  std::size_t amid = 0;  // kills after something new was stored, before all was
  const auto check_store = [&] {
    const auto store = open_store(parse_address(where), {.create = false});
    if (!store) {  // killed before it created the store
      EXPECT_TRUE(reported.empty()) << store.error().message;
      return;
    }
    std::set<std::string> there;
    for (const history::Run& run : content_of(**store).runs) {
      EXPECT_TRUE(there.insert(run.facts.id).second);
      EXPECT_EQ(run, expected.at(run.facts.id));  // complete, or not there
    }
    for (const std::string& id : reported) EXPECT_TRUE(there.contains(id)) << id;
  };
  while (kills < k_kills) {
    const Import import(csv, where, folder_ / "out.txt");
    // Kills it when it has reported this many runs, or a moment later.
    const std::size_t wanted = random() % expected.size();
    EXPECT_TRUE(tests::eventually(
        [&] { return import.stored_ids().size() >= wanted || !import.running(); }));
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 20'000));
    import.kill_now();
    const bool killed = WIFSIGNALED(import.wait());
    const std::size_t before = reported.size();
    for (const std::string& id : import.stored_ids()) reported.insert(id);
    if (killed) ++kills;
    if (killed && reported.size() > before && reported.size() < expected.size()) ++amid;
    check_store();
    if (!killed || reported.size() == expected.size()) {  // nothing is left: begin a new one
      begin_again(where);
      reported.clear();
      ++stores;
    }
    if (HasFailure()) FAIL() << "after " << kills << " kills";
  }
  // A run that is not disturbed imports the rest.
  const Import last(csv, where, folder_ / "out.txt");
  EXPECT_EQ(last.wait(), 0);
  EXPECT_EQ(content_of(*open(where)).runs.size(), expected.size());
  EXPECT_GT(amid, 0U);
  std::printf("%d kills, %zu of them amid new runs, over %d stores\n", kills, amid, stores);
}

INSTANTIATE_TEST_SUITE_P(Both, Killed, testing::Values(Kind::sqlite, Kind::postgres), name_of);

}  // namespace
}  // namespace weir::history
