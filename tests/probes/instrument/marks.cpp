// Tests that an engine's marks come out as counts; those of the sample engine (engine.c) are known.
#include <regex>

#include <sys/stat.h>

#include "gate/base/text.hpp"
#include "gate/probes/read/timeline.hpp"

#include "tests/probes/instrument/support.hpp"
#include "tests/probes/old_systems.hpp"

namespace weir::probes {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Pair;
using testing::SizeIs;
using testing::UnorderedElementsAre;

// The library inside the program, and beside it, where every mark goes through the ABI.
class Marks : public testing::TestWithParam<const char*> {
 protected:
  Ran engine(const std::vector<std::string>& arguments,
             const std::map<std::string, std::string>& env, std::uint64_t limit = 0) const {
    std::vector<std::string> argv{GetParam()};
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    return run(argv, env, limit);
  }
  profile::ProbeCounts counted(const std::vector<std::string>& arguments,
                               const std::map<std::string, std::string>& env = {}) const {
    const Folder folder;
    const Ran ran = engine(arguments, counting(folder.path(), env));
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_EQ(ran.err, "");
    return counts_in(folder.path());
  }
};
INSTANTIATE_TEST_SUITE_P(Linked, Marks,
                         testing::Values(WEIR_INSTRUMENT_ENGINE, WEIR_INSTRUMENT_ENGINE_SHARED),
                         [](const auto& which) {
                           return std::string(which.index == 0 ? "Statically" : "Dynamically");
                         });

TEST_P(Marks, AreNothingWhileNobodyAsks) {
  const Folder folder;
  // A folder alone asks for nothing: other probes may count into it.
  const Ran ran = engine({"tokens", "3"}, {{"WEIR_PROBE_DIR", folder.path()}});
  EXPECT_EQ(ran.status, 0);
  EXPECT_EQ(ran.out, "generated 3 tokens (100.0 tok/s)\n");
  EXPECT_EQ(ran.err, "");
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST_P(Marks, AreCountedByDeviceKernelAndToken) {
  // 1 start, 1 prefill, 3 tokens; by token 6 dispatches, 2 barriers, 1 copy, submit and sync.
  const auto counts = counted({"tokens", "3"});
  EXPECT_THAT(counts.counts,
              UnorderedElementsAre(Pair("dispatches", 4 * 6), Pair("barriers", 4 * 2),
                                   Pair("copies", 2 + 4), Pair("submits", 1 + 4),
                                   Pair("command_buffers", 1 + 4), Pair("syncs", 1 + 4),
                                   Pair("waits", 1 + 4 * 2), Pair("graphs", 4), Pair("ops", 4 * 7),
                                   Pair("cpu_ops", 4)));
  EXPECT_THAT(counts.kernels, ElementsAre(Pair("mul_mat", 4 * 4), Pair("rms_norm", 4 * 2)));
  EXPECT_TRUE(counts.kernels_named);
  EXPECT_THAT(counts.warnings, IsEmpty());
  ASSERT_THAT(counts.devices, SizeIs(2));
  EXPECT_EQ(counts.devices[0].api, "cpu");
  EXPECT_EQ(counts.devices[1],
            (profile::ProbedDevice{"metal", "Sample GPU", "discrete", "sample-1002-0-0-1-0"}));
}

TEST_P(Marks, TellFromOneRunWhatATokenCosts) {
  const auto counts = counted({"tokens", "3"});
  ASSERT_THAT(counts.graphs, SizeIs(2));  // by rows: the token's, the prefill's
  EXPECT_EQ(counts.graphs[0].rows, 1);
  EXPECT_EQ(counts.graphs[0].computed, 3);
  EXPECT_EQ(counts.graphs[0].ops, 7);
  EXPECT_EQ(counts.graphs[0].cpu_ops, 1);
  EXPECT_EQ(counts.graphs[1].rows, 8);
  EXPECT_EQ(counts.graphs[1].computed, 1);
  std::vector<std::string> token;
  for (const profile::OpCount& op : counts.ops) {
    if (op.graph != 0) continue;
    token.push_back(fmt::format("{} {} {} {}{} {}", op.count, op.op, op.type, op.shape,
                                op.on_cpu ? " cpu" : "", op.backend));
  }
  EXPECT_THAT(token, UnorderedElementsAre("3 GET_ROWS f32->f32 64->32 cpu this processor",
                                          "12 MUL_MAT q4_0,f32->f32 64x32,64->32 Sample GPU",
                                          "6 RMS_NORM f32->f32 64->32 Sample GPU"));
}

TEST_P(Marks, AreThoseOfTheProcessorWhereTheEngineSaysSo) {
  const auto counts = counted({"tokens", "1", "cpu"});
  ASSERT_THAT(counts.devices, SizeIs(1));
  EXPECT_EQ(counts.devices[0].api, "cpu");
  EXPECT_EQ(counts.counts.at("cpu_ops"), 2 * 7);
}

// lavapipe is a Vulkan device of type "cpu": work on it has not fallen back.
TEST_P(Marks, OfADeviceMadeOfTheProcessorAreTheDevices) {
  const auto counts = counted({"tokens", "1", "vulkan"}, {{"SAMPLE_DEVICE_TYPE", "cpu"}});
  ASSERT_THAT(counts.devices, SizeIs(2));
  EXPECT_EQ(counts.devices[1].type, "cpu");
  EXPECT_EQ(counts.counts.at("cpu_ops"), 2);  // GET_ROWS, of the prefill and of a token
  for (const profile::OpCount& op : counts.ops) EXPECT_EQ(op.on_cpu, op.op == "GET_ROWS") << op.op;
}

TEST_P(Marks, OfManyThreadsAreAllThere) {
  const auto counts = counted({"threads"});
  EXPECT_EQ(counts.counts.at("dispatches"), 16 * 10000);
  EXPECT_EQ(counts.counts.at("ops"), 16 * 10000);
  EXPECT_THAT(counts.kernels, ElementsAre(Pair("shared", 16 * 10000)));
  ASSERT_THAT(counts.ops, SizeIs(1));
  EXPECT_EQ(counts.ops[0].count, 16 * 10000);
}

TEST_P(Marks, OfAForkedChildGoIntoItsOwnFile) {
  const Folder folder;
  const Ran ran = engine({"fork"}, counting(folder.path()));
  ASSERT_EQ(ran.status, 0) << ran.err;
  std::map<bool, std::uint64_t> ops, dispatches;
  const auto files = probe_files(folder.path());
  ASSERT_THAT(files, SizeIs(2));
  for (const ProbeFile& file : files) {
    const bool child = (file.flags & WEIR_PROBE_FORKED) != 0;
    ops[child] = file.counters.at("ops");
    for (const ProbeKernel& kernel : file.kernels) dispatches[child] += kernel.dispatches;
  }
  // The parent: a prefill, a token, one more after the child; the child: two tokens.
  EXPECT_EQ(ops[false], 3 * 7);
  EXPECT_EQ(dispatches[false], 3 * 6);
  EXPECT_EQ(ops[true], 2 * 7);
  EXPECT_EQ(dispatches[true], 2 * 6);
}

TEST_P(Marks, SurviveTheProcessThatIsKilled) {
  const Folder folder;
  EXPECT_EQ(engine({"killed"}, counting(folder.path())).status, 128 + 9);
  const auto counts = counts_in(folder.path());
  EXPECT_EQ(counts.counts.at("dispatches"), 3 * 6 + 1);
  EXPECT_EQ(counts.counts.at("graphs"), 3);
}

TEST_P(Marks, BeyondTheRoomAreCountedAndSaidSo) {
  const Folder folder;
  const Ran ran = engine({"overflow"}, counting(folder.path()));
  ASSERT_EQ(ran.status, 0) << ran.err;
  const auto counts = counts_in(folder.path());
  EXPECT_EQ(counts.counts.at("dispatches"), 5000);
  EXPECT_EQ(counts.counts.at("ops"), 5000 + 32);  // 32 of 40 nested scopes are kept
  std::int64_t by_kernel = 0;
  for (const auto& [name, count] : counts.kernels) by_kernel += count;
  EXPECT_EQ(by_kernel, 5000);
  EXPECT_GT(counts.kernels.at("(other)"), 0);
  const std::string warnings = text::join(counts.warnings);
  EXPECT_THAT(warnings, HasSubstr("more devices than it can keep apart"));
  EXPECT_THAT(warnings, HasSubstr("kernel table overflowed"));
  EXPECT_THAT(warnings, HasSubstr("more kinds of ops"));
  EXPECT_THAT(warnings, HasSubstr("more kinds of graphs"));
}

TEST_P(Marks, NeverBreakTheEngine) {
  const Folder folder;
  const std::string file = folder.path() + "/file";
  std::ofstream(file) << "no folder";
  struct Case {
    const char* what;
    std::string place;
    std::uint64_t limit;
    const char* says;
  };
  const Case cases[] = {
      {"no such folder", folder.path() + "/none", 0, "cannot create"},
      {"a file", file, 0, "cannot create"},
      {"a place where nobody may write", "/proc", 0, "cannot create"},
      {"a limit on file sizes", folder.path(), 65536, "the limit on file sizes is too low"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.what);
    const Ran ran = engine({"tokens", "2"}, counting(c.place), c.limit);
    EXPECT_EQ(ran.status, 0);
    EXPECT_EQ(ran.out, "generated 2 tokens (100.0 tok/s)\n");
    EXPECT_THAT(ran.err, HasSubstr(c.says));
    EXPECT_THAT(text::lines(ran.err), SizeIs(1));
  }
  for (const char* words : {"counts", "ops", "cb", "counts,ops,cb,dispatch", "no,such", ",,,"}) {
    SCOPED_TRACE(words);
    EXPECT_EQ(engine({"nonsense"}, {{"WEIR_PROFILE", words}}).status, 0);
    EXPECT_EQ(engine({"overflow"}, {{"WEIR_PROFILE", words}}).status, 0);
  }
}

TEST_P(Marks, WarnOnceOfWhatMakesNoSense) {
  const Ran ran = engine({"nonsense"}, {{"WEIR_PROFILE", "counts,ops"}});
  std::map<std::string, int> times;
  for (const std::string& line : text::lines(ran.err)) ++times[line];
  EXPECT_EQ(times["weir: said once"], 1);
  EXPECT_EQ(times["weir: a mark names a queue that was not declared: it counts for the last one"],
            1);
}

// By the numbers of engine.c: ticks from 500 at 1 s; a second pair 100 ns later tells nothing, one
// 40 ms and a million ticks later that a tick is 40 ns; then a device whose tick is 10 ns.
TEST_P(Marks, ConvertTicksByPairsOrOneToOne) {
  const Ran ran = engine({"clock"}, {{"WEIR_PROFILE", "cb"}});
  EXPECT_EQ(ran.out, "12345 1000000100 1000000100 1040004000 1000000000 5030 4970\n");
}

TEST_P(Marks, ArePrintedSortedByTotalWhereNobodyReadsThem) {
  const Ran ran = engine({"tokens", "3"}, {{"WEIR_PROFILE", "counts,ops,cb,dispatch"}});
  EXPECT_EQ(ran.status, 0);
  EXPECT_EQ(ran.out, "generated 3 tokens (100.0 tok/s)\n");
  for (const std::string& line : text::lines(ran.err)) EXPECT_LE(line.size(), 80U) << line;
  EXPECT_THAT(ran.err, testing::ContainsRegex("Sample GPU 0 +24 +8 +6 +5 +5\n"));
  EXPECT_THAT(ran.err, testing::ContainsRegex("mul_mat +16\nrms_norm +8\n"));
  EXPECT_THAT(ran.err, HasSubstr("4 evaluations"));
  // 4 buffers of 60 ticks and no clock pair: 0.06 us each; dispatches in their order. The first is
  // of a prefill, of 8 tokens.
  EXPECT_THAT(ran.err, testing::ContainsRegex("token +3 +0\\.000 +0\\.06 +0\\.06  75\\.0%"));
  EXPECT_THAT(ran.err,
              testing::ContainsRegex("token, prefill +1 +0\\.000 +0\\.06 +0\\.06  25\\.0%"));
  EXPECT_THAT(ran.err,
              testing::ContainsRegex("nr   token .*\n  0 +rms_norm +3 .*\n  1 +mul_mat +3"));
  EXPECT_THAT(ran.err, testing::ContainsRegex(
                           "nr   token, prefill .*\n  0 +rms_norm +1 .*\n  1 +mul_mat +1"));
  EXPECT_THAT(ran.err, HasSubstr("a GPU tick is taken for 1 ns"));
}

// The counter that a scope reads has another unit than what is printed: 30 ms of sleep, and not a
// minute on the slowest of machines.
TEST_P(Marks, ArePrintedInMillisecondsWhateverClockTheyRead) {
  const Ran ran = engine({"sleep"}, {});
  EXPECT_EQ(ran.status, 0) << ran.err;
  std::smatch match;
  ASSERT_TRUE(std::regex_search(ran.out, match, std::regex("SLEEP +1 +([0-9.]+) "))) << ran.out;
  EXPECT_GE(std::stod(match[1]), 29.9);
  EXPECT_LE(std::stod(match[1]), 60'000);
}

TEST_P(Marks, CanBeSwitchedResetAndDumpedByTheEngine) {
  const Ran ran = engine({"enabled"}, {});
  EXPECT_EQ(ran.status, 0);
  // One token between reset and dump; nothing before, nothing when it was off again.
  EXPECT_THAT(ran.out, testing::ContainsRegex("Sample GPU 0 +6 +2 +1 +1 +1\n"));
  EXPECT_THAT(ran.out, HasSubstr("\n1 evaluation\n"));
  EXPECT_THAT(ran.out, testing::ContainsRegex("by the engine +1 +1\\.000"));
  EXPECT_THAT(ran.err, Not(HasSubstr("profile of process")));
}

TEST_P(Marks, MakeATimelineOfScopesBuffersAndDispatches) {
  const Folder folder;
  auto env = counting(folder.path(), {{"WEIR_PROBE_EVENTS", "4"}});
  env["WEIR_PROFILE"] = "counts,ops,cb,dispatch";
  ASSERT_EQ(engine({"tokens", "2"}, env).status, 0);
  const sys::RealFiles files;
  const auto timeline = collect_timeline(files, folder.path());
  ASSERT_TRUE(timeline) << timeline.error().message;
  ASSERT_THAT(timeline->processes, SizeIs(1));
  const observed::Process& process = timeline->processes[0];
  EXPECT_THAT(process.op_scopes, SizeIs(3 * 7));
  EXPECT_EQ(process.op_scopes[0].op, "GET_ROWS");
  EXPECT_EQ(process.op_scopes[0].layer, std::nullopt);
  EXPECT_EQ(process.op_scopes[6].op, "MUL_MAT");
  EXPECT_EQ(process.op_scopes[6].layer, 1);
  EXPECT_EQ(process.op_scopes[6].token, 0U);
  EXPECT_EQ(process.op_scopes[7].token, 1U);
  // Operands, of eight rows and then of one.
  for (const auto& [scope, shape] : {std::pair(6, "64x32,64x8->32x8"), {13, "64x32,64->32"}}) {
    const auto kind = process.op_scopes[static_cast<std::size_t>(scope)].kind;
    ASSERT_TRUE(kind) << scope;
    EXPECT_EQ(process.op_kinds.at(*kind).op, "MUL_MAT");
    EXPECT_EQ(process.op_kinds.at(*kind).type, "q4_0,f32->f32");
    EXPECT_EQ(process.op_kinds.at(*kind).shape, shape);
  }
  EXPECT_THAT(process.graph_runs, SizeIs(3));
  EXPECT_THAT(process.waits, SizeIs(1 + 3 * 2));
  ASSERT_THAT(process.submissions, SizeIs(1 + 3));  // the first without a buffer
  const observed::Submission& token = process.submissions[1];
  ASSERT_THAT(token.buffers, SizeIs(1));
  const observed::BufferWork& buffer = token.buffers[0];
  EXPECT_EQ(buffer.label, "token");
  std::vector<std::string> names;
  for (const observed::Command& command : buffer.commands) names.push_back(command.name);
  EXPECT_THAT(names, ElementsAre("copy to device", "rms_norm", "execution barrier", "mul_mat",
                                 "mul_mat", "rms_norm", "execution barrier", "mul_mat", "mul_mat"));
  EXPECT_EQ(buffer.commands[3].groups, (std::array<std::uint32_t, 3>{4, 8, 1}));
  ASSERT_TRUE(buffer.device);
  EXPECT_NEAR(buffer.device->length(), 60e-9, 1e-12);
  ASSERT_THAT(buffer.groups, SizeIs(6));
  EXPECT_NEAR(buffer.groups[5].begin - buffer.device->begin, 50e-9, 1e-9);
  EXPECT_EQ(buffer.commands[0].scope, std::nullopt);
  const std::pair<std::size_t, std::size_t> scopes[] = {{1, 1}, {4, 3}, {5, 4}, {8, 6}};
  for (const auto& [command, scope] : scopes) EXPECT_EQ(buffer.commands[command].scope, scope);
}

TEST(InstrumentLibrary, LoadsOnOldSystemsAndExportsItsAbiAlone) {
  const auto exported = expect_loads_on_old_systems(WEIR_INSTRUMENT_LIBRARY, k_libc_alone);
  EXPECT_THAT(exported, Not(IsEmpty()));
  EXPECT_THAT(exported, testing::Each(testing::StartsWith("weir_")));
}

}  // namespace
}  // namespace weir::probes
