// Makes a repository of real git in a temporary folder, with everything that a base needs.
#pragma once

#include <cstdlib>
#include <fstream>
#include <mutex>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "gate/base/text.hpp"
#include "gate/source/base.hpp"
#include "gate/source/git.hpp"
#include "gate/sys/paths.hpp"

namespace weir::source {

// Sets an environment variable while the object lives.
class Variable {
 public:
  Variable(std::string name, const std::string& value) : name_(std::move(name)) {
    const char* old = std::getenv(name_.c_str());
    if (old != nullptr) old_ = old;
    setenv(name_.c_str(), value.c_str(), 1);
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
  ~Variable() {
    if (old_) {
      setenv(name_.c_str(), old_->c_str(), 1);
    } else {
      unsetenv(name_.c_str());
    }
  }

 private:
  std::string name_;
  std::optional<std::string> old_;
};

class Scene : public testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/weir-source-XXXXXX";
    root_ = mkdtemp(pattern);
    // The caller's git and the CI system that runs these tests must have no influence.
    for (const char* name : {"GITHUB_REF", "GITHUB_SHA", "GITHUB_BASE_REF", "GITHUB_EVENT_PATH"}) {
      unsetenv(name);
    }
    for (const std::string& name : git_variables()) unsetenv(name.c_str());
    setenv("HOME", root_.c_str(), 1);
    setenv("GIT_CONFIG_NOSYSTEM", "1", 1);
    setenv("GIT_CONFIG_GLOBAL", "/dev/null", 1);
    for (const char* who : {"AUTHOR", "COMMITTER"}) {
      setenv(("GIT_" + std::string(who) + "_NAME").c_str(), "A", 1);
      setenv(("GIT_" + std::string(who) + "_EMAIL").c_str(), "a@example.org", 1);
      setenv(("GIT_" + std::string(who) + "_DATE").c_str(), "2026-01-01T00:00:00Z", 1);
    }
    repository_ = at("repository");
    make(repository_);
  }
  void TearDown() override { (void)files_.remove_tree(root_); }

  [[nodiscard]] std::string at(const std::string& name) const { return root_ + "/" + name; }
  [[nodiscard]] std::string in(const std::string& name) const { return repository_ + "/" + name; }

  void make(const std::string& folder) {
    ASSERT_TRUE(files_.make_dirs(folder).has_value());
    git({"init", "--quiet", "--initial-branch=main"}, folder);
  }

  // Returns git's output without its last newline.
  std::string git(std::vector<std::string> arguments, const std::string& folder = "") {
    sys::ProcessSpec spec;
    spec.argv = std::move(arguments);
    spec.argv.insert(spec.argv.begin(), "/usr/bin/git");
    spec.folder = folder.empty() ? repository_ : folder;
    spec.passed_variables = {"GIT_CONFIG_*"};
    const auto finished = processes_.run(spec, never_);
    EXPECT_TRUE(finished && finished->ended == sys::HowEnded::exited && finished->exit_code == 0)
        << text::join(spec.argv, " ") << ": " << (finished ? finished->err : "");
    return finished ? std::string(text::trim(finished->out)) : "";
  }
  void write(const std::string& path, const std::string& text) {
    ASSERT_TRUE(files_.make_dirs(sys::folder_of(path)).has_value());
    ASSERT_TRUE(files_.write_atomic(path, text).has_value()) << path;
  }
  void write_program(const std::string& path, const std::string& lines) {
    write(path, "#!/bin/sh\n" + lines);
    chmod(path.c_str(), 0755);
  }
  // Commits all files and returns the commit.
  std::string commit(const std::string& subject, const std::string& folder = "") {
    git({"add", "--all"}, folder);
    git({"commit", "--quiet", "--allow-empty", "-m", subject}, folder);
    return git({"rev-parse", "HEAD"}, folder);
  }

  // Calls prepare_base() for `spec` from the top of `folder` (default: the repository).
  Result<BaseTree> prepare(const std::string& spec, std::vector<config::Arguments> builds = {},
                           const std::string& folder = "") {
    BaseWanted wanted;
    wanted.spec = spec;
    wanted.config_folder = folder.empty() ? repository_ : folder;
    wanted.cache_folder = at("cache");
    wanted.build_timeout_seconds = build_timeout_;
    for (auto& command : builds) wanted.builds.push_back({"engine", std::move(command)});
    return prepare_base(wanted, effects());
  }
  Effects effects() {
    const auto say = [this](const std::string& line) {
      const std::lock_guard hold(mutex_);
      log_ += line + "\n";
    };
    return {processes_, files_, clock_, locks_, say, stop_};
  }
  // Returns the commit of the base, or the error's message.
  std::string base_text(const std::string& spec, const std::string& folder = "") {
    const auto base = prepare(spec, {}, folder);
    return base ? base->commit.value_or("none") : "error: " + base.error().message;
  }
  [[nodiscard]] std::size_t lines_in(const std::string& path) const {
    const auto text = files_.read(path, 1 << 20);
    return text ? text::lines(*text).size() : 0;
  }

  std::string root_, repository_;
  sys::RealFiles files_;
  sys::RealProcesses processes_;
  sys::RealClock clock_;
  // New for each test, so that concurrent tests never wait for each other.
  struct Locks final : sys::Locks {
    explicit Locks(const std::string& root) : root_(root) {}
    Result<std::unique_ptr<sys::Held>> acquire(
        std::vector<sys::LockWanted> wanted, const sys::Stop& stop,
        const std::function<void(const std::string&)>& waiting) override {
      return sys::HostLocks(root_ + "/locks", pause_).acquire(std::move(wanted), stop, waiting);
    }
    const std::string& root_;
    sys::RealPause pause_;
  } locks_{root_};
  sys::Stop stop_;
  const sys::Stop never_;
  double build_timeout_ = 60;
  std::mutex mutex_;
  std::string log_;
};

// Checks that `text` contains `part`; a failure prints the text.
inline void expect_holds(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << part << "\nis not in:\n" << text;
}

}  // namespace weir::source
