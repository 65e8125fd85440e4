// Starts and stops the PostgreSQL server of the store's tests.
#include "tests/history/store/postgres_server.hpp"

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <pqxx/pqxx>
#include <pwd.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace weir::history {
namespace {

namespace fs = std::filesystem;

// Finds a program of PostgreSQL. Debian keeps them out of PATH.
fs::path program(const std::string& name) {
  fs::path newest;
  std::error_code none;
  for (const auto& version : fs::directory_iterator("/usr/lib/postgresql", none)) {
    const fs::path candidate = version.path() / "bin" / name;
    if (fs::exists(candidate) && candidate > newest) newest = candidate;
  }
  if (!newest.empty()) return newest;
  std::string path = std::getenv("PATH") == nullptr ? "" : std::getenv("PATH");
  for (std::size_t from = 0; from <= path.size();) {
    const std::size_t to = std::min(path.find(':', from), path.size());
    const fs::path candidate = fs::path(path.substr(from, to - from)) / name;
    if (fs::exists(candidate)) return candidate;
    from = to + 1;
  }
  throw std::runtime_error("PostgreSQL is not installed (no " + name + "): ci/setup test does it");
}

const passwd* unprivileged_user() {
  if (geteuid() != 0) return nullptr;
  for (const char* name : {"postgres", "nobody"}) {
    if (const passwd* user = getpwnam(name)) return user;
  }
  throw std::runtime_error("no user but root, which PostgreSQL refuses to run as");
}

// Starts a program as `user` (null: the current user) with its output in `log`. It ends with the
// tests.
pid_t start(std::vector<std::string> words, const passwd* user, const fs::path& log) {
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const pid_t tests = getpid();
  const pid_t child = fork();
  if (child != 0) return child;
  const int out = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
  dup2(out, 1);
  dup2(out, 2);
  if (user != nullptr && (setgid(user->pw_gid) != 0 || setuid(user->pw_uid) != 0)) _exit(126);
  if (chdir("/") != 0) _exit(126);
  prctl(PR_SET_PDEATHSIG, SIGQUIT);
  if (getppid() != tests) _exit(125);
  unsetenv("PGDATA");
  setenv("LC_ALL", "C", 1);
  execv(argv[0], argv.data());
  _exit(127);
}

std::string read_text(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

PostgresServer& PostgresServer::get() {
  static PostgresServer server;
  return server;
}

PostgresServer::PostgresServer() {
  std::string pattern = (fs::temp_directory_path() / "weir-postgres-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary folder");
  folder_ = pattern;
  fs::permissions(folder_, fs::perms::all);  // the other user creates its files there
  const passwd* user = unprivileged_user();
  const std::string data = (folder_ / "data").string();
  int status = -1;
  const pid_t child = start({program("initdb"), "-D", data, "-U", "weir", "-A", "trust", "-E",
                             "UTF8", "--locale=C", "--no-sync"},
                            user, folder_ / "initdb.log");
  if (waitpid(child, &status, 0) != child || status != 0) {
    throw std::runtime_error("initdb failed: " + read_text(folder_ / "initdb.log"));
  }
  // Tests kill weir, not the database, so the database may delay its writes.
  server_ = start({program("postgres"), "-D", data, "-k", folder_.string(), "-c",
                   "listen_addresses=", "-c", "fsync=off", "-c", "max_connections=60"},
                  user, folder_ / "postgres.log");
  for (int tries = 0;; ++tries) {
    try {
      const pqxx::connection ready("host=" + folder_.string() + " user=weir dbname=postgres");
      return;
    } catch (const std::exception& error) {
      if (tries == 600 || waitpid(server_, &status, WNOHANG) == server_) {
        throw std::runtime_error(std::string("PostgreSQL does not start: ") + error.what() +
                                 read_text(folder_ / "postgres.log"));
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  }
}

PostgresServer::~PostgresServer() {
  if (server_ > 0) {
    kill(server_, SIGQUIT);
    waitpid(server_, nullptr, 0);
  }
  std::error_code none;
  fs::remove_all(folder_, none);
}

std::string PostgresServer::fresh_database() {
  const std::string name = "test" + std::to_string(++databases_);
  pqxx::connection connection("host=" + folder_.string() + " user=weir dbname=postgres");
  pqxx::nontransaction(connection).exec("CREATE DATABASE " + name);
  return "postgresql:///" + name + "?host=" + folder_.string() + "&user=weir";
}

std::string PostgresServer::ask(const std::string& url, const std::string& sql) const {
  pqxx::connection connection(url);
  pqxx::nontransaction work(connection);
  const pqxx::result rows = work.exec(sql);
  return rows.empty() ? "" : rows[0][0].as<std::string>("");
}

}  // namespace weir::history
