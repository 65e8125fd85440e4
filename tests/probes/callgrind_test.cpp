// Tests of reading callgrind's files.
#include <cstdlib>
#include <random>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gate/probes/read/host.hpp"
#include "gate/probes/read/instructions.hpp"
#include "gate/sys/paths.hpp"
#include "gate/sys/process.hpp"

#include "tests/support/memory_files.hpp"

namespace weir::probes {
namespace callgrind_test {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

// Names given once and meant by number, positions relative to the line before, a cost left out at
// the end of a line, calls with what they took, a jump, functions without a symbol.
constexpr std::string_view k_file = R"(# callgrind format
version: 1
creator: callgrind-3.19.0
pid: 17
cmd:  ./engine -n 4 a=b
part: 1


desc: Trigger: Program termination

positions: line
events: Dr Ir
summary: 9 1120

ob=(1) /opt/engine
fl=(1) engine.c
fn=(1) main
16 2 100
+1 1
cob=(2) /opt/lib/libggml-cpu.so
cfi=(2) ops.c
cfn=(2) ggml_vec_dot(int, float*)
calls=3 +20
* 5 900
-2 0 20

ob=(2)
fl=(2)
fn=(2)
20 5 900
jump=2/3 +4
* 0
fi=(3) inlined.h
7 1
fe=(2)

fn=(3) 0x000000000001f4a0
0 0 60
fn=(4) ???
0x10 0 40
totals: 9 1120
)";

std::string with(const std::string& from, const std::string& to) {
  std::string text(k_file);
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(Callgrind, GivesEachFunctionWhatItTookItself) {
  const auto read = read_callgrind(k_file);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->total, 1120U);
  EXPECT_THAT(read->self, ElementsAre(Pair("(no symbol) in libggml-cpu.so", 100U),
                                      Pair("ggml_vec_dot(int, float*)", 900U), Pair("main", 120U)));
}

TEST(Callgrind, AddsUpThePartsOfAFile) {
  const std::string twice = std::string(k_file) +
                            "\npart: 2\npositions: instr line\nevents: Ir\nfn=(1)\n0x4 1 10\n"
                            "fn=(1) other\n* +1 1\ntotals: 11\n";
  const auto read = read_callgrind(twice);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->total, 1131U);
  EXPECT_EQ(read->self.at("main"), 130U);
  EXPECT_EQ(read->self.at("other"), 1U);
}

TEST(Callgrind, NamesTheSourceFilesThatRanAndWhatHasNoDebugInformation) {
  const auto read = read_callgrind(k_file);
  ASSERT_TRUE(read) << read.error().message;
  // inlined.h is named by a line whose cost in instructions is none.
  EXPECT_THAT(read->executed.files,
              ElementsAre(Pair("engine.c", ElementsAre("main")),
                          Pair("ops.c", ElementsAre("ggml_vec_dot(int, float*)"))));
  EXPECT_THAT(read->executed.without_debug_info, testing::IsEmpty());

  const auto inlined = read_callgrind(with("7 1\nfe=(2)", "7 1 0\nfe=(2)"));
  ASSERT_TRUE(inlined);
  EXPECT_EQ(inlined->executed.files.size(), 2U) << "nothing ran there";
  std::string ran = with("7 1\nfe=(2)", "7 1 5\nfe=(2)");
  ran.replace(ran.find("totals: 9 1120"), 14, "totals: 9 1125");
  const auto with_inlined = read_callgrind(ran);
  ASSERT_TRUE(with_inlined) << with_inlined.error().message;
  EXPECT_THAT(with_inlined->executed.files.at("inlined.h"),
              ElementsAre("ggml_vec_dot(int, float*)"));

  std::string bare = with("fl=(2)\n", "fl=(7) ???\n");
  bare.replace(bare.find("fe=(2)"), 6, "fe=(7)");
  const auto without = read_callgrind(bare);
  ASSERT_TRUE(without) << without.error().message;
  EXPECT_THAT(without->executed.without_debug_info, ElementsAre("/opt/lib/libggml-cpu.so"));
}

TEST(Callgrind, SaysWhatIsWrongWithAFile) {
  struct Case {
    std::string text;
    const char* says;
  };
  for (const Case& entry : std::vector<Case>{
           {"", "ends before its totals"},
           {with("totals: 9 1120\n", ""), "ends before its totals"},
           {with("totals: 9 1120", "totals: 9 1121"), "add up to 1120, its totals to 1121"},
           {with("totals: 9 1120", "totals: 9 x"), "line 41: totals without"},
           {with("events: Dr Ir", "events: Dr Dw"), "not among its events"},
           {with("events: Dr Ir\n", ""), "a cost before its events are named"},
           {with("fn=(2)\n20", "fn=(9)\n20"), "a name that was never given"},
           {with("16 2 100", "16 2 1e2"), "line 18: no cost"},
           {with("16 2 100", "16 2 18446744073709551615\n16 2 100"), "too many instructions"},
           {with("fn=(1) main\n", ""), "a cost of no function"},
           {with("part: 1", "part"), "neither a cost nor a name"},
           {with("positions: line", "positions:"), "no positions"},
           {with("part: 1", std::string((1 << 20) + 1, 'x')), "more than 1 MiB"}}) {
    const auto read = read_callgrind(entry.text);
    ASSERT_FALSE(read) << entry.says;
    EXPECT_THAT(read.error().message, HasSubstr(entry.says));
  }
}

TEST(Callgrind, MakesHostileNamesInert) {
  const auto read =
      read_callgrind(with("(1) main", "(1) \x1b[31mred\xff" + std::string(5000, 'a')));
  ASSERT_TRUE(read) << read.error().message;
  for (const auto& [name, cost] : read->self) {
    EXPECT_LE(name.size(), 200U);
    EXPECT_EQ(name.find('\x1b'), std::string::npos);
  }
}

TEST(Callgrind, SurvivesAnything) {
  std::mt19937 random(20261120);
  for (int round = 0; round < 10'000; ++round) {
    std::string text(k_file);
    for (int change = 0; change < 4; ++change) {
      const std::size_t at = random() % text.size();
      switch (random() % 3) {
        case 0:
          text[at] = static_cast<char>(random());
          break;
        case 1:
          text.erase(at, random() % 8);
          break;
        default:
          text.insert(at, text.substr(random() % text.size(), random() % 24));
      }
    }
    if (const auto read = read_callgrind(text)) {
      std::uint64_t sum = 0;
      for (const auto& [name, cost] : read->self) sum += cost;
      ASSERT_EQ(sum, read->total) << text;
    }
  }
}

TEST(Instructions, UnderValgrindArePlainArgumentsAndNothingOfTheUsers) {
  EXPECT_THAT(under_valgrind("/usr/bin/valgrind", "/run/50%/probes", {"./engine", "-n", "4"}),
              ElementsAre("/usr/bin/valgrind", "--command-line-only=yes", "--tool=callgrind",
                          "--trace-children=yes", "--vgdb=no", "--child-silent-after-fork=yes",
                          "--callgrind-out-file=/run/50%%/probes/callgrind.%p",
                          "--log-file=/run/50%%/probes/valgrind.%p", "./engine", "-n", "4"));
}

TEST(Instructions, OfAllProcessesAreAddedAndTheSmallestFunctionsPutTogether) {
  sys::MemoryFiles files;
  const auto file = [](const std::string& functions, std::uint64_t total) {
    return "positions: line\nevents: Ir\n" + functions + "totals: " + std::to_string(total) + "\n";
  };
  files.put("/probes/callgrind.1", file("fn=big\n0 900000\nfn=tiny\n0 7\n", 900007));
  files.put("/probes/callgrind.2", file("fn=big\n0 50\nfn=other\n0 100000\n", 100050));
  files.put("/probes/valgrind.1", "==1== words of valgrind's\n");
  files.put("/probes/valgrind.2", "");
  const auto counts = collect_valgrind(files, "/probes");
  ASSERT_TRUE(counts) << counts.error().message;
  EXPECT_EQ(counts->probe, "valgrind");
  EXPECT_THAT(counts->warnings, testing::IsEmpty());
  EXPECT_THAT(counts->counts, ElementsAre(Pair("instructions", 1000057)));
  EXPECT_THAT(counts->functions,
              ElementsAre(Pair("(other)", 7), Pair("big", 900050), Pair("other", 100000)));
  EXPECT_THAT(valgrind_log(files, "/probes"), HasSubstr("words of valgrind's"));

  files.put("/probes/callgrind.3", "positions: line\n");
  EXPECT_THAT(collect_valgrind(files, "/probes").error().message,
              HasSubstr("callgrind.3: not what callgrind writes"));
  files.put("/empty/x", "");
  EXPECT_EQ(collect_valgrind(files, "/empty").error().message, "valgrind wrote nothing");
}

TEST(Instructions, OfACounterThatOthersHadTooAreNone) {
  EXPECT_EQ(perf_counts({1000, 50, 50})->counts.at("instructions"), 1000);
  EXPECT_EQ(perf_counts({1000, 50, 50})->probe, "perf");
  EXPECT_THAT(perf_counts({1000, 100, 40}).error().message, HasSubstr("40 % of the time"));
  EXPECT_FALSE(perf_counts({0, 50, 50}));
}

TEST(SystemCalls, AreSummedUpByWhatTheyDependOn) {
  const auto counts = system_call_counts({.by_name = {{"read", 5},
                                                      {"futex wait", 3},
                                                      {"futex wake", 4},
                                                      {"mmap", 6},
                                                      {"brk", 1},
                                                      {"sched_yield", 2},
                                                      {"call 999", 1}},
                                          .files = {12, 4096, 8192},
                                          .peak = {1000, 2000, 3000},
                                          .max_threads = 2,
                                          .min_cpus = 4});
  EXPECT_EQ(counts.probe, "host");
  EXPECT_THAT(
      counts.counts,
      ElementsAre(Pair("allowed_cpus", 4), Pair("futex_waits", 3), Pair("futex_wakes", 4),
                  Pair("host_anonymous_peak_bytes", 1000), Pair("host_file_peak_bytes", 2000),
                  Pair("host_shared_peak_bytes", 3000), Pair("mapped_file_bytes", 8192),
                  Pair("memory_calls", 7), Pair("opened_files", 12), Pair("poll_calls", 2),
                  Pair("read_bytes", 4096), Pair("system_calls", 6), Pair("threads_peak", 2)));
  EXPECT_EQ(counts.functions.at("system call call 999"), 1);
  EXPECT_EQ(system_call_counts({}).counts.at("system_calls"), 0) << "none is a number";
}

// The real valgrind: what it writes is read, of a program, what it starts, and a fork of it.
TEST(Instructions, AreReadFromTheRealValgrind) {
  const sys::RealFiles files;
  const auto valgrind = sys::find_program(files, "valgrind", ".", "/usr/bin:/bin");
  if (!valgrind) GTEST_SKIP() << "ci/setup test installs valgrind";
  std::string folder = testing::TempDir() + "weir-callgrind-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const auto count = [&](const std::string& name, const std::string& script) {
    const std::string place = folder + "/" + name;
    sys::RealFiles real;
    EXPECT_TRUE(real.make_dirs(place));
    sys::RealProcesses processes;
    sys::ProcessSpec spec;
    spec.argv = under_valgrind(*valgrind, place, {"/bin/sh", "-c", script});
    const sys::Interrupts interrupts;
    const auto finished = processes.run(spec, interrupts.stop());
    EXPECT_EQ(finished->exit_code, 0) << finished->err;
    EXPECT_EQ(finished->err, "") << "valgrind's words go to a file of their own";
    auto counts = collect_valgrind(files, place);
    EXPECT_TRUE(counts) << counts.error().message;
    return counts.value_or(profile::ProbeCounts{});
  };
  const auto alone = count("alone", "exit 0"), started = count("started", "/bin/true; exit 0");
  const auto forked = count("forked", "(exit 0); exit 0");
  const auto total = [](const profile::ProbeCounts& counts) {
    const auto match = counts.counts.find("instructions");
    return match == counts.counts.end() ? 0 : match->second;
  };
  EXPECT_GT(total(alone), 50'000);
  EXPECT_GT(total(started), total(alone) + 50'000) << "the start of a program takes more";
  EXPECT_THAT(alone.warnings, testing::IsEmpty());
  EXPECT_THAT(started.warnings, testing::IsEmpty());
  EXPECT_THAT(forked.warnings, ElementsAre(HasSubstr("forked itself (1 x)")));
  sys::RealFiles real;
  (void)real.remove_tree(folder);
}

}  // namespace callgrind_test
}  // namespace weir::probes
