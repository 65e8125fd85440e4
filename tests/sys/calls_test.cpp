// Tests the counting of system calls of real processes.
#include "gate/sys/calls.hpp"

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#ifdef __linux__
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#endif
#include <sys/wait.h>
#include <unistd.h>

#include "gate/sys/process.hpp"

namespace weir::sys {
namespace calls_test {

Finished traced(std::vector<std::string> argv) {
  RealProcesses processes;
  ProcessSpec spec;
  spec.argv = std::move(argv);
  spec.count_calls = true;
  spec.timeout_seconds = 60;
  const Interrupts interrupts;
  auto finished = processes.run(spec, interrupts.stop());
  if (!finished) throw std::runtime_error(finished.error().message);
  return std::move(*finished);
}

Finished shell(const std::string& script) { return traced({"/bin/sh", "-c", script}); }

std::int64_t writes(const Finished& finished) {
  return finished.calls ? finished.calls->by_name.at("write") : -1;
}

// Skips the tests if the machine forbids ptrace (kernel.yama.ptrace_scope, a container's profile).
class SystemCalls : public testing::Test {
 protected:
  void SetUp() override {
    const Finished finished = shell("echo");
    if (finished.ended == HowEnded::not_started) GTEST_SKIP() << finished.start_error;
  }
};

TEST_F(SystemCalls, AreCountedOneByOneFromOutside) {
  EXPECT_EQ(writes(shell("echo a")), 1);
  EXPECT_EQ(writes(shell("echo a; echo b; echo c")), 3);
  EXPECT_EQ(shell("echo a; echo b").out, "a\nb\n");
}

TEST_F(SystemCalls, AreTheSameInEveryRun) {
  const auto first = shell("for i in 1 2 3 4 5 6 7 8; do echo $i; done").calls;
  ASSERT_TRUE(first);
  EXPECT_GT(first->by_name.at("mmap"), 0);
  for (int run = 0; run < 10; ++run) {
    auto again = shell("for i in 1 2 3 4 5 6 7 8; do echo $i; done").calls;
    ASSERT_TRUE(again);
    again->peak = first->peak;  // the system counts pages roughly
    EXPECT_EQ(again, first);
  }
}

TEST_F(SystemCalls, AreTheSameHoweverDeepAFolderLies) {
  const auto resolve = [](const std::string& folder) {
    auto calls = shell("cd " + folder + " && readlink -f . && ls -l . && stat -c %s .").calls;
    return calls ? calls->by_name : std::map<std::string, std::int64_t>();
  };
  char pattern[] = "/tmp/weir-depth-XXXXXX";
  const std::string folder = mkdtemp(pattern);
  RealFiles files;
  ASSERT_TRUE(files.make_dirs(folder + "/a/b/c/d"));
  const auto deep = resolve(folder + "/a/b/c/d");
  EXPECT_GT(deep.at("write"), 0);
  ASSERT_TRUE(files.make_dirs(folder + "/e"));
  EXPECT_EQ(resolve(folder + "/e"), deep);
  EXPECT_FALSE(deep.contains("readlink"));
  (void)files.remove_tree(folder);
}

// Node looks for package.json in each folder above its script; so does this one.
TEST_F(SystemCalls, AreTheSameHoweverFarUpAScriptLooksForAFile) {
  const auto look_upwards = [](const std::string& folder) {
    const std::string script = "cd " + folder +
                               " && at=$PWD; while [ \"$at\" ]; do { read line < $at/package.json; "
                               "} 2>&-; at=${at%/*}; done";
    auto calls = shell(script).calls;
    return calls ? calls->by_name : std::map<std::string, std::int64_t>();
  };
  char pattern[] = "/tmp/weir-depth-XXXXXX";
  const std::string folder = mkdtemp(pattern);
  RealFiles files;
  ASSERT_TRUE(files.make_dirs(folder + "/a/b/c/d"));
  const auto shallow = look_upwards(folder), deep = look_upwards(folder + "/a/b/c/d");
  ASSERT_TRUE(shallow.contains("openat"));
  EXPECT_EQ(shallow.at("openat"), deep.at("openat"));
  (void)files.remove_tree(folder);
}

TEST_F(SystemCalls, OfWhatAnEngineStartsAreItsOwn) {
  const Finished finished = shell("(echo a); (echo b); /bin/echo c");
  EXPECT_EQ(finished.out, "a\nb\nc\n");
  EXPECT_EQ(writes(finished), 3);
  EXPECT_EQ(finished.left_behind, 0);
}

// 0x00800000 is CLONE_UNTRACED, and 17 SIGCHLD.
TEST_F(SystemCalls, AreUnknownOfAProcessThatMayNotBeTraced) {
  const struct {
    std::string clone;
    bool is_hidden;
  } cases[] = {{fmt::format("syscall({}, 0x00800011, 0, 0, 0, 0)", SYS_clone), true},
               {fmt::format("syscall({}, 17, 0, 0, 0, 0)", SYS_clone), false},
               {fmt::format("syscall({}, $flags, 88)", SYS_clone3), true},
               {"fork", false}};
  for (const auto& [clone, is_hidden] : cases) {
    const std::string script = fmt::format(
        "my $flags = pack('Q11', 0x00800000, 0, 0, 0, 17);"
        "my $child = {}; syscall({}, 0) if $child == 0; wait",
        clone, SYS_exit_group);
    const Finished finished = traced({"/usr/bin/perl", "-e", script});
    ASSERT_TRUE(finished.calls) << clone;
    EXPECT_EQ(finished.calls->has_hidden_process, is_hidden) << clone;
  }
}

// Each process stops at its end and waits until its tracer lets it go on.
TEST_F(SystemCalls, OfAnEngineThatLeavesAProcessEndWithIt) {
  const Finished finished = shell("sleep 600 >/dev/null 2>&1 & echo a");
  EXPECT_EQ(finished.out, "a\n");
  EXPECT_EQ(finished.left_behind, 1);
}

TEST_F(SystemCalls, TellWhatWasReadOfFiles) {
  const auto none = shell(":").calls;
  const auto some = shell("read line < /proc/version; : < /dev/null; : < /nonexistent").calls;
  ASSERT_TRUE(none && some);
  EXPECT_EQ(some->files.opened - none->files.opened, 2) << "one of the three is not there";
  std::string version;
  std::getline(std::ifstream("/proc/version"), version);
  EXPECT_EQ(some->files.read_bytes - none->files.read_bytes, version.size() + 1);
  EXPECT_GT(none->files.mapped_bytes, 1 << 20) << "the C library is mapped";
  EXPECT_EQ(none->files.mapped_bytes, some->files.mapped_bytes);
}

TEST_F(SystemCalls, TellWhatMemoryAProcessHadAtItsPeak) {
  constexpr std::int64_t k_mebi = 1 << 20;
  // The engine holds 32 MiB once, and frees them before it ends.
  const auto calls = traced({"/usr/bin/perl", "-e", "my $x = 'x' x (32 << 20); undef $x;"}).calls;
  ASSERT_TRUE(calls);
  EXPECT_GT(calls->peak.anonymous, 32 * k_mebi);
  EXPECT_LT(calls->peak.anonymous, 80 * k_mebi);
  EXPECT_GT(calls->peak.of_files, k_mebi);
  EXPECT_EQ(calls->peak.shared, 0);
}

TEST_F(SystemCalls, TellWhatAThreadWasAllowed) {
  const auto all = shell(":").calls;
  const auto pinned = traced({"/usr/bin/taskset", "-c", "0", "/bin/true"}).calls;
  ASSERT_TRUE(all && pinned);
  EXPECT_EQ(all->min_cpus, std::thread::hardware_concurrency());
  EXPECT_EQ(pinned->min_cpus, 1);
}

TEST_F(SystemCalls, TellHowManyThreadsWereAliveAtOnce) {
  EXPECT_EQ(shell("echo").calls->max_threads, 1);
  EXPECT_EQ(shell("(echo a; :); (echo b; :); echo c").calls->max_threads, 2);
}

TEST_F(SystemCalls, LeaveTheEndOfAnEngineAsItWas) {
  EXPECT_EQ(shell("exit 7").exit_code, 7);
  const Finished killed = shell("kill -SEGV $$");
  EXPECT_EQ(killed.ended, HowEnded::signaled);
  EXPECT_EQ(killed.signal, SIGSEGV);
  EXPECT_TRUE(killed.calls);
  // The engine gets a signal that it handles.
  EXPECT_EQ(shell("trap 'echo caught' USR1; kill -USR1 $$; echo on").out, "caught\non\n");
}

TEST_F(SystemCalls, OfAnEngineThatHangsEndWithItsTimeOut) {
  RealProcesses processes;
  ProcessSpec spec;
  spec.argv = {"/bin/sh", "-c", "(sleep 1000) & sleep 1000"};
  spec.count_calls = true;
  spec.timeout_seconds = 0.3;
  spec.kill_grace_seconds = 0.2;
  const Interrupts interrupts;
  const auto finished = processes.run(spec, interrupts.stop());
  ASSERT_TRUE(finished);
  EXPECT_EQ(finished->ended, HowEnded::timed_out);
}

TEST_F(SystemCalls, OfAProgramThatIsNotThereAreNone) {
  const Finished finished = traced({"/nonexistent/engine"});
  EXPECT_EQ(finished.ended, HowEnded::not_started);
  EXPECT_THAT(finished.start_error, testing::HasSubstr("No such file"));
  EXPECT_FALSE(finished.calls);
}

TEST(SystemCallsOfNobody, AreLeftAloneWhenNobodyAsks) {
  RealProcesses processes;
  ProcessSpec spec;
  spec.argv = {"/bin/true"};
  const Interrupts interrupts;
  const auto finished = processes.run(spec, interrupts.stop());
  ASSERT_TRUE(finished);
  EXPECT_FALSE(finished->calls);
  ASSERT_TRUE(finished->usage);
  EXPECT_GT(finished->usage->minor_faults, 0);
}

// A folder of files, and a link that leads into it.
class WatchedFiles : public SystemCalls {
 protected:
  void SetUp() override {
    SystemCalls::SetUp();
    char pattern[] = "/tmp/weir-watched-XXXXXX";
    top_ = mkdtemp(pattern);
    for (const char* folder : {"/tree/bin", "/tree/kept", "/treetop"})
      std::filesystem::create_directories(top_ + folder);
    for (const char* file : {"/tree/a", "/tree/b", "/tree/kept/c", "/treetop/d"})
      std::ofstream(top_ + file) << "text";
    std::filesystem::copy_file("/bin/true", top_ + "/tree/bin/true");
    std::ofstream(top_ + "/tree/bin/script") << "#!/bin/sh\n:\n";
    std::filesystem::permissions(top_ + "/tree/bin/script", std::filesystem::perms::all);
    std::filesystem::create_symlink(top_ + "/tree", top_ + "/link");
  }
  void TearDown() override { std::filesystem::remove_all(top_); }

  // Returns the files that a shell script opens, counted from the folder's parent.
  std::optional<std::vector<std::string>> opened(const std::string& script) const {
    ProcessSpec spec;
    spec.argv = {"/bin/sh", "-c", script};
    spec.folder = top_;
    spec.timeout_seconds = 60;
    spec.watched = {top_ + "/tree", {top_ + "/tree/kept"}};
    auto finished = RealProcesses().run(spec, Stop());
    if (!finished || !finished->opened) return std::nullopt;
    EXPECT_FALSE(finished->calls);
    for (std::string& path : *finished->opened) path.erase(0, top_.size() + 1);
    return finished->opened;
  }

  std::string top_;
};

TEST_F(WatchedFiles, AreToldOnceHoweverTheyAreReached) {
  using Paths = std::vector<std::string>;
  const std::pair<const char*, Paths> cases[] = {
      {":", {}},
      {"cat treetop/d tree/kept/c", {}},
      {"cat tree/a tree/a; (read x < tree/b); cat nothing; ls tree >/dev/null",
       {"tree/a", "tree/b", "tree"}},
      {"cat link/a", {"tree/a"}},
      {"link/bin/true", {"tree/bin/true"}},
      {"PATH=$PWD/link/bin:$PATH; script", {"tree/bin/script"}},
      {"(tree/bin/true & wait) | cat", {"tree/bin/true"}},
      {"exec tree/bin/true", {"tree/bin/true"}},
  };
  for (const auto& [script, files] : cases) EXPECT_EQ(opened(script), files) << script;
}

// Work on a GPU by a process that lost the variables of the probes is in no count.
TEST_F(WatchedFiles, NameAGpusLibraryThatIsOpenedWithoutTheNeededVariables) {
  for (const char* file : {"/libvulkan.so.1", "/libcuda.so.1", "/libm.so.6"})
    std::ofstream(top_ + file) << "text";
  const std::pair<const char*, const char*> cases[] = {
      {":", ""},
      {"cat libvulkan.so.1 libm.so.6", ""},
      {"NEEDED=/a:/b:/c cat libvulkan.so.1", ""},
      {"env -u NEEDED cat libm.so.6", ""},
      {"env -u NEEDED cat libvulkan.so.1; cat libcuda.so.1", "libvulkan.so.1"},
      {"(NEEDED=/a exec cat libcuda.so.1) | cat; cat libm.so.6", "libcuda.so.1"},
      {"env -i OTHER=/b /bin/cat libcuda.so.1 & wait", "libcuda.so.1"},
  };
  for (const auto& [script, library] : cases) {
    ProcessSpec spec;
    spec.argv = {"/bin/sh", "-c", script};
    spec.folder = top_;
    spec.env = {{"NEEDED", "/b"}, {"ALSO", "1"}};
    spec.needed_with_gpu = spec.env;
    const auto finished = RealProcesses().run(spec, Stop());
    ASSERT_TRUE(finished);
    EXPECT_EQ(finished->gpu_library, library) << script;
    EXPECT_FALSE(finished->opened) << "no folder is watched";
  }
}

TEST_F(WatchedFiles, ShowThatPythonRunsWithoutTheNeededVariables) {
  std::filesystem::create_directories(top_ + "/python3.11/encodings/__pycache__");
  const std::string module = "python3.11/encodings/__pycache__/__init__.cpython-311.pyc";
  for (const std::string& file : {module, std::string("libvulkan.so.1")})
    std::ofstream(top_ + "/" + file) << "text";
  const std::pair<std::string, bool> cases[] = {
      {"cat " + module, false},
      {"env -u NEEDED cat libvulkan.so.1 python3.11/encodings", false},
      {"env -u NEEDED cat " + module, true},
      {"(env -i /bin/cat " + module + ") | cat", true},
  };
  for (const auto& [script, is_unprobed] : cases) {
    ProcessSpec spec;
    spec.argv = {"/bin/sh", "-c", script};
    spec.folder = top_;
    spec.env = {{"NEEDED", "/b"}};
    spec.needed_with_python = spec.env;
    const auto finished = RealProcesses().run(spec, Stop());
    ASSERT_TRUE(finished);
    EXPECT_EQ(finished->has_unprobed_python, is_unprobed) << script;
    EXPECT_EQ(finished->gpu_library, "") << script;
  }
}

#ifdef __linux__
// As a container's profile may do it.
void forbid_tracing() {
  sock_filter program[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                           BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ptrace, 0, 1),
                           BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
                           BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog filter{std::size(program), program};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}

TEST_F(WatchedFiles, AreUnknownWhereNothingMayBeTraced) {
  const pid_t child = fork();
  if (child == 0) {
    forbid_tracing();
    ProcessSpec spec;
    spec.argv = {"/bin/cat", top_ + "/tree/a"};
    spec.watched = {top_ + "/tree"};
    const auto finished = RealProcesses().run(spec, Stop());
    const bool has_run = finished && finished->ended == HowEnded::exited && finished->out == "text";
    _exit(has_run && !finished->opened ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}
#endif

}  // namespace calls_test
}  // namespace weir::sys
