// A PostgreSQL of the tests' own: a new one in a temporary folder, on a socket there and nowhere
// else, gone with the process that started it. PostgreSQL refuses to run as root: then it runs as
// the user postgres, or nobody. Where none is installed the tests fail.
#pragma once

#include <filesystem>
#include <string>

#include <sys/types.h>

namespace weir::history {

class PostgresServer {
 public:
  // Started when it is first asked for; throws std::runtime_error with the log where it does not.
  static PostgresServer& get();
  ~PostgresServer();
  PostgresServer(const PostgresServer&) = delete;
  PostgresServer& operator=(const PostgresServer&) = delete;

  // The URL of a new, empty database.
  [[nodiscard]] std::string fresh_database();
  // What `psql` says to a command in it, for looking behind weir's back.
  [[nodiscard]] std::string ask(const std::string& url, const std::string& sql) const;

 private:
  PostgresServer();
  std::filesystem::path folder_;
  pid_t server_ = -1;
  int databases_ = 0;
};

}  // namespace weir::history
