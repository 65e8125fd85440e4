// Shared by the tests of the probes: a folder that goes away, a program run with an environment.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gate/probes/read/read.hpp"

namespace weir::probes {

class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "weir-probes-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

inline std::string slurp(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

struct Ran {
  int status = 0;  // exit code, or 128 + signal
  std::string out, err;
};

inline Ran run(const std::vector<std::string>& argv, const std::map<std::string, std::string>& env,
               std::uint64_t file_size_limit = 0) {
  const Folder folder;
  const std::string out = folder.path() + "/out";
  const std::string err = folder.path() + "/err";
  const pid_t pid = fork();
  if (pid == 0) {
    if (freopen(out.c_str(), "w", stdout) == nullptr) _exit(126);
    if (freopen(err.c_str(), "w", stderr) == nullptr) _exit(126);
    for (const auto& [name, value] : env) setenv(name.c_str(), value.c_str(), 1);
    if (file_size_limit != 0) {
      const rlimit limit{file_size_limit, file_size_limit};
      setrlimit(RLIMIT_FSIZE, &limit);
    }
    std::vector<char*> pointers;
    for (const std::string& argument : argv) pointers.push_back(const_cast<char*>(argument.data()));
    pointers.push_back(nullptr);
    execvp(pointers[0], pointers.data());
    _exit(127);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), slurp(out), slurp(err)};
}

// The probe files of a folder, in order of process id.
inline std::vector<ProbeFile> probe_files(const std::string& folder) {
  std::vector<ProbeFile> out;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    auto file = read_probe_file(slurp(entry.path()));
    if (file) out.push_back(std::move(*file));
  }
  return out;
}

}  // namespace weir::probes
