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

profile::ProbeCounts count(const std::string& python, int steps, bool lines = false) {
  const Folder folder;
  std::ofstream(folder.path() + "/script.py") << k_script;
  std::map<std::string, std::string> env = {{"WEIR_PROBE_DIR", folder.path()},
                                            {"LD_PRELOAD", k_probe}};
  if (lines) env["WEIR_PROBE_PYTHON_LINES"] = "1";
  const Ran ran = run({python, folder.path() + "/script.py", std::to_string(steps)}, env);
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(ran.err, "");
  const auto counts = collect_python(sys::RealFiles(), folder.path(), {});
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
    EXPECT_EQ(many.functions.at("call of time.sleep"), 8);
    EXPECT_EQ(many.functions.at("call of len"), few.functions.at("call of len") + 4);
    EXPECT_FALSE(many.counts.contains("python_lines"));
    EXPECT_THAT(many.functions, Not(Contains(Key(testing::HasSubstr("json")))));
    const bool has_classes = python.find("3.10") == std::string::npos;
    const std::string name = has_classes ? "call of __main__.Base.step" : "call of __main__.step";
    EXPECT_EQ(many.functions.at(name), 8);
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
}

TEST(Python, AnEngineWithoutPythonIsAnError) {
  const Folder folder;
  const auto counts = collect_python(sys::RealFiles(), folder.path(), {});
  ASSERT_FALSE(counts);
  EXPECT_EQ(counts.error().code, Code::unavailable);
}

TEST(Python, TheProbeNeedsLibcAndLibdlAlone) {
  EXPECT_THAT(expect_loads_on_old_systems(k_probe, k_libc_and_libdl),
              testing::ElementsAre("closedir"));
}

}  // namespace python_test
}  // namespace weir::probes
