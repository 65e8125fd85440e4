// Runs a PostgreSQL server for the tests: a new one in a temporary folder, reachable only by a
// socket there. It ends with the process that started it. PostgreSQL refuses to run as root; then
// it runs as the user postgres, or nobody. If none is installed, the tests fail.
#pragma once

#include <filesystem>
#include <string>

#include <sys/types.h>

namespace weir::history {

class PostgresServer {
 public:
  // Returns the server and starts it at the first call. Throws std::runtime_error with the log if
  // it does not start.
  static PostgresServer& get();
  ~PostgresServer();
  PostgresServer(const PostgresServer&) = delete;
  PostgresServer& operator=(const PostgresServer&) = delete;

  // Creates an empty database and returns its URL.
  [[nodiscard]] std::string fresh_database();
  // Runs a command in `psql`, not through weir, and returns the output.
  [[nodiscard]] std::string ask(const std::string& url, const std::string& sql) const;

 private:
  PostgresServer();
  std::filesystem::path folder_;
  pid_t server_ = -1;
  int databases_ = 0;
};

}  // namespace weir::history
