// Starts the built weir as a user would, and looks at what it printed and left behind.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gate/base/json.hpp"

#include "tests/support/eventually.hpp"

namespace weir::e2e {

namespace fs = std::filesystem;

using tests::eventually;

// Reads as much of a file as possible: a process may end while its file in /proc is read.
inline std::string slurp(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();  // unlike an iterator, does not throw
  return text.str();
}

inline void spill(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

inline void spill_program(const fs::path& path, const std::string& text) {
  spill(path, text);
  fs::permissions(path, fs::perms::owner_all);
}

// A folder of its own for each test, removed when it passed.
class Scratch {
 public:
  Scratch() {
    std::string pattern = (fs::temp_directory_path() / "weir-e2e-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~Scratch() {
    if (!testing::Test::HasFailure()) fs::remove_all(path_);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  [[nodiscard]] const fs::path& path() const { return path_; }
  [[nodiscard]] fs::path operator/(const std::string& name) const { return path_ / name; }

 private:
  fs::path path_;
};

struct Ended {
  int exit_code = -1;  // -1: by a signal
  int signal = 0;
  long peak_kib = 0;  // peak memory of weir itself
  std::string out, err;
};

// One process, of weir unless another `program` is named; its streams go to files so that nothing
// has to be read while it runs.
class Weir {
 public:
  Weir(const Scratch& scratch, std::vector<std::string> arguments,
       const std::map<std::string, std::string>& env = {},
       const std::string& program = WEIR_BINARY_DIR "/weir")
      : scratch_(scratch) {
    static int count = 0;
    const std::string name = "weir-" + std::to_string(++count);
    out_ = scratch / (name + ".out");
    err_ = scratch / (name + ".err");
    arguments.insert(arguments.begin(), program);
    std::vector<std::string> variables;
    for (char** at = environ; *at != nullptr; ++at) {
      const std::string variable = *at;
      const std::string key = variable.substr(0, variable.find('='));
      // The system that runs these tests must not decide what the cache may be used for.
      if (key != "GITHUB_ACTIONS" && key != "CI" && key != "GITLAB_CI" && key != "SLURM_JOB_ID" &&
          !env.contains(key))
        variables.push_back(variable);
    }
    for (const auto& [key, value] : env) variables.push_back(key + "=" + value);
    variables.push_back("WEIR_LOCK_DIR=" + (scratch / "locks").string());
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, out_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    posix_spawn_file_actions_addopen(&actions, 2, err_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    posix_spawn_file_actions_addchdir_np(&actions, scratch.path().c_str());
    std::vector<char*> argv, envp;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    for (std::string& variable : variables) envp.push_back(variable.data());
    argv.push_back(nullptr);
    envp.push_back(nullptr);
    EXPECT_EQ(posix_spawn(&pid_, argv[0], &actions, nullptr, argv.data(), envp.data()), 0);
    posix_spawn_file_actions_destroy(&actions);
  }
  ~Weir() {
    if (pid_ > 0) {
      kill(SIGKILL);
      (void)wait();
    }
  }
  Weir(const Weir&) = delete;
  Weir& operator=(const Weir&) = delete;

  void kill(int signal) const { ::kill(pid_, signal); }
  // Its peak memory so far; 0 after its end.
  [[nodiscard]] long peak_kib() const {
    const std::string status = slurp("/proc/" + std::to_string(pid_) + "/status");
    const std::size_t at = status.find("VmHWM:");
    return at == std::string::npos ? 0 : std::atol(status.c_str() + at + 6);
  }
  [[nodiscard]] bool running() const {
    siginfo_t ended{};
    return waitid(P_PID, static_cast<id_t>(pid_), &ended, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           ended.si_pid == 0;
  }
  // While it runs.
  [[nodiscard]] std::string err_so_far() const { return slurp(err_); }

  Ended wait() {
    int status = 0;
    rusage usage{};
    wait4(pid_, &status, 0, &usage);
    pid_ = -1;
    Ended ended;
    if (WIFEXITED(status)) ended.exit_code = WEXITSTATUS(status);
    if (WIFSIGNALED(status)) ended.signal = WTERMSIG(status);
    ended.peak_kib = usage.ru_maxrss;
    ended.out = slurp(out_);
    ended.err = slurp(err_);
    return ended;
  }

 private:
  const Scratch& scratch_;
  fs::path out_, err_;
  pid_t pid_ = -1;
};

inline Ended weir(const Scratch& scratch, const std::vector<std::string>& arguments,
                  const std::map<std::string, std::string>& env = {}) {
  return Weir(scratch, arguments, env).wait();
}

// Standard output as the JSON it must be.
inline Json json_of(const Ended& ended) {
  const auto parsed = parse_json(ended.out);
  EXPECT_TRUE(parsed) << ended.out.substr(0, 500) << "\n" << ended.err;
  return parsed ? *parsed : Json::object();
}

inline Json cell_of(const Json& verdict, const std::string& name) {
  for (const Json& cell : verdict.value("cells", Json::array())) {
    if (cell.value("cell", "") == name) return cell;
  }
  ADD_FAILURE() << "no cell " << name << " in " << verdict.dump(1).substr(0, 2000);
  return Json::object();
}

// In a verdict's cell the judgement of a metric, "kernels", "kernel_code" or "placement"; in a
// profile the metric.
inline Json metric_of(const Json& cell, const std::string& name) {
  for (const auto& [list, key] : {std::pair{"judgements", "subject"}, {"metrics", "metric"}}) {
    for (const Json& entry : cell.value(list, Json::array())) {
      if (entry.value(key, "") == name) return entry;
    }
  }
  ADD_FAILURE() << "no " << name << " in " << cell.value("cell", "?");
  return Json::object();
}

// Processes whose command line holds `mark`: orphans, when weir is gone.
inline std::vector<std::string> processes_with(const std::string& mark) {
  std::vector<std::string> matches;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string pid = entry.path().filename();
    if (pid.find_first_not_of("0123456789") != std::string::npos) continue;
    const std::string line = slurp(entry.path() / "cmdline");
    if (line.find(mark) != std::string::npos && std::stoi(pid) != getpid())
      matches.push_back(pid + ": " + line);
  }
  return matches;
}

// Returns true if a process works in the folder or below it: one may be about to start an engine,
// whose command line does not show that yet.
inline bool has_process_in(const fs::path& folder) {
  const std::string beginning = folder.string() + "/";
  for (const auto& entry : fs::directory_iterator("/proc")) {
    std::error_code gone;  // processes end, and others are not ours to look at
    const std::string working = fs::read_symlink(entry.path() / "cwd", gone).string() + "/";
    if (!gone && working.starts_with(beginning)) return true;
  }
  return false;
}

inline std::string relative_files(const fs::path& root) {
  std::string list;
  std::vector<fs::path> paths;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    if (entry.is_regular_file()) paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  for (const auto& path : paths) list += fs::relative(path, root).string() + "\n" + slurp(path);
  return list;
}

}  // namespace weir::e2e
