// Tests the counting of Python's calls in scripts: by name, of each interpreter that is here.
#include "gate/probes/read/python.hpp"

#include <filesystem>

#include <gmock/gmock.h>

#include "gate/sys/files.hpp"
#include "gate/sys/process.hpp"

#include "tests/probes/old_systems.hpp"
#include "tests/probes/support.hpp"

namespace weir::probes {
namespace python_test {

using testing::Contains;
using testing::Key;
using testing::Not;

const std::string k_probe = WEIR_BINARY_DIR "/lib/weir/probes/libweir_python.so";

// Interpreters on this machine. The system's has any of the versions.
std::vector<std::string> interpreters() {
  std::vector<std::string> paths;
  const std::string home = sys::environment_value("HOME").value_or("");
  for (const std::string& path :
       {std::string("/usr"), home + "/.pyenv/versions/3.10.13", home + "/.pyenv/versions/3.12.1",
        home + "/.pyenv/versions/3.13.0"}) {
    if (std::filesystem::exists(path + "/bin/python3")) paths.push_back(path + "/bin/python3");
  }
  return paths;
}

// A script whose steps call functions and methods, of Python and in C, also in a thread.
constexpr const char* k_script = R"(
import sys, threading, time

class Base:
    def step(self):
        return self.inner()

class Engine(Base):
    def inner(self):
        return len(list(self.squares()))
    def squares(self):
        for i in range(3):
            yield i

def in_thread(steps):
    for _ in range(steps):
        abs(-1)

def main(steps):
    engine = Engine()
    for _ in range(steps):
        engine.step()
        time.sleep(0)
    thread = threading.Thread(target=in_thread, args=(steps,))
    thread.start()
    thread.join()
    for _ in range(steps):
        import json  # once, and what it does is not counted

main(int(sys.argv[1]))
)";

// Runs a script with the probe.
Result<profile::ProbeCounts> try_count(const std::string& python, int steps, const char* script,
                                       std::map<std::string, std::string> more = {}) {
  const Folder folder;
  std::ofstream(folder.path() + "/script.py") << script;
  more.insert({{"WEIR_PROBE_DIR", folder.path()}, {"LD_PRELOAD", k_probe}});
  const Ran ran = run({python, folder.path() + "/script.py", std::to_string(steps)}, more);
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(ran.err, "");
  return collect_python(sys::RealFiles(), folder.path(), {});
}

profile::ProbeCounts count(const std::string& python, int steps, bool lines = false,
                           const char* script = k_script) {
  std::map<std::string, std::string> more;
  if (lines) more["WEIR_PROBE_PYTHON_LINES"] = "1";
  const auto counts = try_count(python, steps, script, std::move(more));
  EXPECT_TRUE(counts) << (counts ? "" : counts.error().message);
  return counts.value_or(profile::ProbeCounts());
}

TEST(Python, CallsAreCountedByNameInEachVersion) {
  if (interpreters().empty()) GTEST_SKIP() << "no Python here";
  for (const std::string& python : interpreters()) {
    SCOPED_TRACE(python);
    const profile::ProbeCounts few = count(python, 4), many = count(python, 8);
    const auto slope = [&](const std::string& base) {
      return (many.counts.at(base) - few.counts.at(base)) / 4;
    };
    EXPECT_EQ(slope("python_calls"), 6);  // step, inner, squares once and 3 times more
    EXPECT_EQ(slope("c_calls"), 2);       // len, sleep
    EXPECT_EQ(slope("costly_calls"), 1);
    EXPECT_EQ(slope("python_thread_calls"), 1);
    EXPECT_EQ(slope("host_calls"), 6 + 2 + 1);
    EXPECT_EQ(slope("import_calls"), 0);
    EXPECT_EQ(many.counts.at("unseen_threads"), 0);
    EXPECT_EQ(many.functions.at("call in a thread of abs"), 8);
    EXPECT_EQ(many.functions.at("call of time.sleep"), 8);
    EXPECT_EQ(many.functions.at("call of len"), few.functions.at("call of len") + 4);
    EXPECT_FALSE(many.counts.contains("python_lines"));
    EXPECT_THAT(many.functions, Not(Contains(Key(testing::HasSubstr("json")))));
    const bool has_classes = python.find("3.10") == std::string::npos;
    const std::string name = has_classes ? "call of __main__.Base.step" : "call of __main__.step";
    EXPECT_EQ(many.functions.at(name), 8);
  }
}

// Work that leaves the main thread, in ways that threading does not see.
TEST(Python, CallsOfAllThreadsAndOfImportsAreCounted) {
  constexpr const char* k_elsewhere = R"(
import _thread, ctypes, sys, time

def step():
    pass

def work(steps):
    for _ in range(steps):
        step()
        time.sleep(0)

def in_raw_thread(steps, done):
    work(steps)
    done.release()

def main(steps):
    done = _thread.allocate_lock()
    done.acquire()
    _thread.start_new_thread(in_raw_thread, (steps, done))
    done.acquire()
    sys.modules["work"] = sys.modules["__main__"]
    sys.path.insert(0, sys.argv[0].rpartition("/")[0])
    sys.steps = steps
    with open(sys.path[0] + "/at_import.py", "w") as module:
        module.write("import sys, work\nwork.work(sys.steps)\n")
    import at_import

if __name__ == "__main__":
    main(int(sys.argv[1]))
)";
  for (const std::string& python : interpreters()) {
    SCOPED_TRACE(python);
    const profile::ProbeCounts few = count(python, 4, false, k_elsewhere),
                               many = count(python, 8, false, k_elsewhere);
    const auto slope = [&](const std::string& base) {
      return (many.counts.at(base) - few.counts.at(base)) / 4;
    };
    EXPECT_EQ(slope("python_thread_calls"), 2);  // step, sleep
    EXPECT_EQ(slope("costly_thread_calls"), 1);
    EXPECT_EQ(slope("import_calls"), 2);
    EXPECT_EQ(slope("host_calls"), 2);
    EXPECT_EQ(slope("python_calls"), 0);
  }
}

// A thread may be ahead of the one that starts it, which then waits by other calls.
TEST(Python, HowAThreadAndItsStarterMeetIsNotCounted) {
  constexpr const char* k_starts = R"(
import sys, threading
for _ in range(int(sys.argv[1])):
    thread = threading.Thread(target=abs, args=(1,))
    thread.start()
    thread.join()
)";
  for (const std::string& python : interpreters()) {
    SCOPED_TRACE(python);
    const auto functions = count(python, 8, false, k_starts).functions;
    const bool has_classes = python.find("3.10") == std::string::npos;
    EXPECT_EQ(
        functions.at(has_classes ? "call of threading.Thread.start" : "call of threading.start"),
        8);
    EXPECT_EQ(functions.at("call in a thread of abs"), 8);
    for (const auto& [name, calls] : functions)
      EXPECT_FALSE(name.ends_with(".notify_all") || name.ends_with("Event.wait")) << name;
  }
}

// A thread that the system starts takes a number of Python's for each call back. The script calls
// nothing of Python's while one runs: the probe would find it, too late for its call.
TEST(Python, ThreadsOfCThatRunPythonAreCounted) {
  constexpr const char* k_threads = R"(
import ctypes, sys
libc = ctypes.CDLL(None)
create, join = libc.pthread_create, libc.pthread_join
back = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(lambda _: None)
for _ in range(int(sys.argv[1])):
    thread = ctypes.c_ulong()
    create(ctypes.byref(thread), None, back, None)
    join(thread, None)
)";
  for (const std::string& python : interpreters())
    EXPECT_EQ(count(python, 5, false, k_threads).counts.at("unseen_threads"), 5) << python;
}

// Calls that give up the processor, by name or by what they do; those by ctypes are no calls of
// Python's.
TEST(Python, CallsThatWaitAreCostlyOrSeenToWait) {
  constexpr const char* k_waits = R"(
import ctypes, os, select, signal, sys, time
system, named = ctypes.CDLL(None), ctypes.CDLL("libc.so.6")
reading, writing = os.pipe()
poll = select.poll()
poll.register(reading)
timeout = ctypes.c_longlong * 2
def main(steps):
    for _ in range(steps):
        system.usleep(100)
        named.usleep(100)
        system.abs(-1)
        poll.poll(1)
        signal.sigtimedwait([signal.SIGUSR1], 0.001)
        select.epoll(1).close()
        system.thrd_sleep(ctypes.byref(timeout(0, 100000)), None)
main(int(sys.argv[1]))
)";
  for (const std::string& python : interpreters()) {
    SCOPED_TRACE(python);
    const profile::ProbeCounts few = count(python, 4, false, k_waits),
                               many = count(python, 8, false, k_waits);
    // usleep twice, poll and sigtimedwait
    EXPECT_EQ(many.counts.at("costly_calls") - few.counts.at("costly_calls"), 4 * 4);
    EXPECT_EQ(many.functions.at("call of ctypes.abs"), 8);
    EXPECT_EQ(many.functions.at("wait in ctypes.thrd_sleep"), 8);
    for (const auto& [name, calls] : many.functions) {
      if (name.starts_with("wait in ")) EXPECT_EQ(name, "wait in ctypes.thrd_sleep");
    }
  }
}

TEST(Python, AProgramThatTakesTheProbesPlaceIsAnError) {
  const std::tuple<const char*, bool, const char*> cases[] = {
      {"import sys\nsys.setprofile(None)", false, "sys.setprofile"},
      {"import threading\nthreading.setprofile(print)\nthread = threading.Thread()\n"
       "thread.start()\nthread.join()",
       false, "sys.setprofile"},
      {"import sys\nsys.settrace(None)", true, "sys.settrace"},
      {"import sys\nsys.settrace(lambda *_: None)\nabs(1)", false, ""},  // a debugger
      {"try: import _xxsubinterpreters as s\nexcept ImportError: import _interpreters as s\n"
       "s.destroy(s.create())",
       false, "a further interpreter"},
  };
  for (const std::string& python : interpreters()) {
    for (const auto& [script, lines, error] : cases) {
      std::map<std::string, std::string> more;
      if (lines) more["WEIR_PROBE_PYTHON_LINES"] = "1";
      const auto counts = try_count(python, 1, script, std::move(more));
      EXPECT_EQ(counts.has_value(), std::string(error).empty()) << python << script;
      if (!counts) EXPECT_THAT(counts.error().message, testing::HasSubstr(error)) << script;
    }
  }
}

TEST(Python, LinesAreCountedWhereTheyAreAskedFor) {
  for (const std::string& python : interpreters()) {
    SCOPED_TRACE(python);
    const std::int64_t few = count(python, 4, true).counts.at("python_lines"),
                       many = count(python, 8, true).counts.at("python_lines");
    EXPECT_GT(many, few + 4 * 8);
    EXPECT_EQ((many - few) % 4, 0);
  }
}

TEST(Python, CountsAreTheSameInEachProcess) {
  for (const std::string& python : interpreters()) {
    EXPECT_EQ(count(python, 5), count(python, 5)) << python;
  }
}

ProbeFile process(std::uint32_t pid, std::uint64_t calls) {
  ProbeFile file;
  file.probe = "python";
  file.pid = pid;
  file.functions = {{"(other)"}, {"engine.step", 0, calls}, {"time.sleep", WEIR_FUNCTION_IN_C, 2}};
  return file;
}

TEST(Python, ProcessesThatUseADeviceAreCountedAlone) {
  const std::vector<ProbeFile> files = {process(1, 10), process(2, 20)};
  EXPECT_EQ(python_counts(files, {2}).counts.at("python_calls"), 20);
  EXPECT_EQ(python_counts(files, {}).counts.at("python_calls"), 30);
  EXPECT_EQ(python_counts(files, {3}).counts.at("costly_calls"), 4);
  EXPECT_EQ(python_counts(files, {2}).counts.at("host_calls"), 34) << "of all processes";
}

TEST(Python, AnEngineWithoutPythonIsAnError) {
  const Folder folder;
  const auto counts = collect_python(sys::RealFiles(), folder.path(), {});
  ASSERT_FALSE(counts);
  EXPECT_EQ(counts.error().code, Code::unavailable);
}

TEST(Python, TheProbeNeedsLibcAndLibdlAlone) {
  EXPECT_THAT(expect_loads_on_old_systems(k_probe, k_libc_and_libdl),
              testing::UnorderedElementsAre("closedir", "ffi_call"));
}

}  // namespace python_test
}  // namespace weir::probes
