// The ggml probe on stand-ins: graphs known by hand.
#include <algorithm>
#include <cstdlib>
#include <iterator>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gate/base/text.hpp"
#include "gate/probes/read/timeline.hpp"
#include "gate/sys/files.hpp"

#include "tests/probes/ggml_support.hpp"
#include "tests/probes/old_systems.hpp"

namespace weir::probes {
namespace ggml_test {

using profile::GraphCount;
using profile::OpCount;
using profile::TransferCount;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::UnorderedElementsAre;
using Counts = std::map<std::string, std::int64_t>;

std::string library(const std::string& which) {
  return WEIR_GGML_LIBRARIES "/libggml_scenes" + which + ".so";
}

// Counts of the scene "tokens": 2 graphs of 7 rows, 10 of 1 row, and one of those again without a
// scheduler. A scheduled graph has 4 ops that work (1 on the CPU), 2 splits, 1 copy, which is done
// as a set, and 1 wait in its middle; computed synchronously 2 more at its end. The scene also has
// 1 + 10 sets, one of them asynchronous with a wait, and 10 gets.
const Counts k_tokens = {
    {"graphs", 13},         // 2 + 10 + 1
    {"ops", 52},            // 13 x 4
    {"cpu_ops", 16},        // 12 x 1 + 4
    {"splits", 25},         // 12 x 2 + 1
    {"tensor_copies", 12},  // one a scheduled graph
    {"tensor_sets", 23},    // 1 + 10 + 12
    {"tensor_gets", 10},
    {"copied_bytes", 24576},  // f32: 10 x 256 + 2 x 256 x 7 elements
    {"backend_syncs", 34},    // 1 + 2 x 1 + 10 x 3 + 1
    {"event_syncs", 0},
    // The weights, and each copy from the CPU: not what is set in its memory.
    {"uploaded_bytes", 100000 + 24576},
    // The stand-in's buffers have no use.
    {"weights_bytes", 0},
    {"kv_cache_bytes", 0},
    {"compute_bytes", 0},
};

TEST(GgmlProbe, CountsGraphsOpsAndTransfersOfAProgramOnce) {
  const Probed played({WEIR_GGML_SCENES, "tokens"});
  ASSERT_EQ(played.ran.status, 0) << played.ran.err;
  EXPECT_EQ(played.ran.err, "");
  EXPECT_EQ(played.counts.counts, k_tokens);
  EXPECT_THAT(played.counts.warnings, IsEmpty());
  using Rows = std::map<std::string, std::int64_t>;  // no op takes the result of the one before
  EXPECT_THAT(
      played.counts.graphs,
      ElementsAre(GraphCount{.rows = 1,
                             .computed = 10,
                             .ops = 4,
                             .cpu_ops = 1,
                             .splits = 2,
                             .sums = {{"tensor_copies", 10},
                                      {"tensor_sets", 20},
                                      {"tensor_gets", 9},  // the tenth is read before the next
                                      {"copied_bytes", 10240},
                                      {"backend_syncs", 30}},
                             .fusible = Rows{}},
                  GraphCount{.rows = 1,
                             .computed = 1,
                             .ops = 4,
                             .cpu_ops = 4,
                             .splits = 1,
                             .sums = {{"tensor_copies", 0},
                                      {"tensor_sets", 0},
                                      {"tensor_gets", 1},
                                      {"copied_bytes", 0},
                                      {"backend_syncs", 1}},
                             .fusible = Rows{}},
                  GraphCount{.rows = 7,
                             .computed = 2,
                             .ops = 4,
                             .cpu_ops = 1,
                             .splits = 2,
                             .sums = {{"tensor_copies", 2},
                                      {"tensor_sets", 3},
                                      {"tensor_gets", 0},
                                      {"copied_bytes", 14336},
                                      {"backend_syncs", 3}},
                             .fusible = Rows{}}));
  std::vector<OpCount> of_a_token;
  for (const OpCount& op : played.counts.ops) {
    if (op.graph == 0) of_a_token.push_back(op);
  }
  EXPECT_THAT(
      of_a_token,
      ElementsAre(OpCount{"ADD", "f32,f32->f32", "256,256->768", "GPU0", false, 0, 10},
                  OpCount{"GET_ROWS", "f16,i32->f32", "256x512,1->256", "CPU", true, 0, 10},
                  OpCount{"MUL_MAT", "q4_0,f32->f32", "256x768,256->768", "GPU0", false, 0, 10},
                  OpCount{"SWIGLU", "f32,f32->f32", "256,256->768", "GPU0", false, 0, 10}));
  EXPECT_THAT(played.counts.transfers,
              UnorderedElementsAre(TransferCount{"copy", "CPU", "GPU0", 12, 24576},
                                   TransferCount{"set", "program", "GPU0", 1, 100000},
                                   TransferCount{"set", "program", "CPU", 10, 40},
                                   TransferCount{"get", "GPU0", "program", 10, 20480}));
  ASSERT_THAT(played.counts.devices, SizeIs(2));
  EXPECT_EQ(played.counts.devices[0].type, "cpu");
  EXPECT_EQ(played.counts.devices[1].name, "GPU0");
}

// A device twin computes nothing, and ggml looks up what it reads as an index.
TEST(GgmlProbe, MakesIndicesValidThatTheHostReadsFromATwin) {
  const std::string garbage =
      "sorted ? ? ? ? ? ? ? ? ? ? ? ? ? ? ? ? ? ? ? ? ? ? ? ?\n"
      "from 5 on ? ? ? ? ? ?\ntop ? ? ? ? ? ? ? ? ? ? ? ? ? ? ? ? ? ?\nsecond row of top ? ?\n"
      "largest ?\ngiven ? ? ? ?\non host ? ? ? ? ? ? ? ?\nfractions ? ?\n"
      "in rows ? ? -1 ? ? -1 ? ? -1\nlate ? ? ? ?\nwaited twice -1 -1 -1 -1\n";
  const std::string valid =
      "sorted 0 1 2 3 4 5 6 7 0 1 2 3 4 5 6 7 0 1 2 3 4 5 6 7\n"
      "from 5 on 5 6 7 0 1 2\ntop 0 1 2 3 4 5 6 7 0 1 2 3 4 5 6 7 0 1\nsecond row of top 0 1\n"
      "largest 0\ngiven ? ? ? ?\non host ? ? ? ? ? ? ? ?\nfractions ? ?\n"
      "in rows 1 2 -1 1 2 -1 1 2 -1\nlate 0 1 2 3\nwaited twice -1 -1 -1 -1\n";
  const Probed real({WEIR_GGML_SCENES, "indices"});
  EXPECT_EQ(real.ran.out, garbage) << real.ran.err;
  EXPECT_THAT(real.counts.warnings, IsEmpty());
  for (const char* variable : {"WEIR_TWIN", "WEIR_RUNTIME_TWIN"}) {
    const Probed twin({WEIR_GGML_SCENES, "indices"}, {{variable, "a description"}});
    EXPECT_EQ(twin.ran.out, valid) << variable << twin.ran.err;
    EXPECT_THAT(twin.counts.warnings, ElementsAre(HasSubstr("a device twin computes no values")));
  }
}

TEST(GgmlProbe, PassesEveryCallOn) {
  for (const char* scene : {"tokens", "failing", "threads"}) {
    const Ran bare = run({WEIR_GGML_SCENES, scene}, {});
    const Probed played({WEIR_GGML_SCENES, scene});
    ASSERT_EQ(bare.status, 0) << scene << bare.err;
    EXPECT_EQ(played.ran.status, 0) << scene << played.ran.err;
    EXPECT_EQ(played.ran.out, bare.out) << scene;
  }
}

// Every second graph of a kind: 5 of the 10 of a token, 1 of 2 of seven rows, and the one that no
// scheduler computes. Each has 4 ops that work, 3 of a scheduled one on the device.
TEST(GgmlProbe, TimesOpsOneByOneAndCountsTheSame) {
  const struct {
    const char* elsewhere;  // backends that another probe times
    std::vector<std::string> program;
    std::map<std::string, std::size_t> timed;  // by backend
  } cases[] = {
      {"", {WEIR_GGML_SCENES, "tokens"}, {{"CPU", 5 + 1 + 4}, {"GPU0", 3 * (5 + 1)}}},
      {"Vulkan,GPU", {WEIR_GGML_SCENES, "tokens"}, {{"CPU", 5 + 1 + 4}}},
      {"CPU,GPU", {WEIR_GGML_SCENES, "tokens"}, {}},
      // From a library that was opened privately.
      {"", {WEIR_GGML_HOST, "tokens", library("")}, {{"CPU", 5 + 1 + 4}, {"GPU0", 3 * (5 + 1)}}},
      // Without the callback; its ops cannot be listed either.
      {"", {WEIR_GGML_HOST, "tokens", library("_old")}, {}},
  };
  for (const auto& c : cases) {
    const Folder folder;
    const Ran ran = run(c.program, {{"WEIR_PROBE_DIR", folder.path()},
                                    {"WEIR_PROBE_EVENTS", "1"},
                                    {"WEIR_PROBE_TIMING", "serialized"},
                                    {"WEIR_PROBE_TIMED", c.elsewhere},
                                    {"LD_PRELOAD", k_ggml_probe}});
    ASSERT_EQ(ran.status, 0) << ran.err;
    const auto timeline = collect_timeline(sys::RealFiles(), folder.path());
    ASSERT_TRUE(timeline && timeline->processes.size() == 1) << c.elsewhere;
    EXPECT_THAT(timeline->warnings, IsEmpty());
    const observed::Process& process = timeline->processes[0];
    std::map<std::string, std::size_t> timed;
    for (const observed::OpScope& scope : process.op_scopes) {
      ++timed[scope.backend];
      EXPECT_LE(scope.call.begin, scope.call.end);
      const auto within = [&](const observed::GraphRun& run) {
        return run.node_by_node && run.call.begin <= scope.call.begin &&
               scope.call.end <= run.call.end;
      };
      EXPECT_EQ(std::ranges::count_if(process.graph_runs, within), 1) << scope.op;
    }
    EXPECT_EQ(timed, c.timed) << c.elsewhere;
    if (c.program.back().ends_with("_old.so")) continue;
    EXPECT_EQ(merge("ggml", probe_files(folder.path())).counts, k_tokens) << c.elsewhere;
  }
}

// Scene "batches": three rows of one sequence, three sequences with a row each, and once more.
TEST(GgmlProbe, TellsRowsOfSeveralSequencesByTheMaskWhereEventsAreRecorded) {
  const Folder folder;
  const Ran ran = run({WEIR_GGML_SCENES, "batches"}, {{"WEIR_PROBE_DIR", folder.path()},
                                                      {"WEIR_PROBE_EVENTS", "1"},
                                                      {"LD_PRELOAD", k_ggml_probe}});
  ASSERT_EQ(ran.status, 0) << ran.err;
  const auto timeline = collect_timeline(sys::RealFiles(), folder.path());
  ASSERT_TRUE(timeline && timeline->processes.size() == 1);
  const observed::Process& process = timeline->processes[0];
  std::vector<bool> rows_apart;
  for (const observed::GraphRun& run : process.graph_runs) {
    EXPECT_EQ(process.graphs.at(run.graph).rows, 3U);
    rows_apart.push_back(process.graphs[run.graph].rows_apart);
  }
  EXPECT_THAT(rows_apart, ElementsAre(false, true, true));
  EXPECT_GT(timeline->recording, 0) << "each graph and each fresh block add to it";
  // Counts need no masks.
  const Probed counted({WEIR_GGML_SCENES, "batches"});
  ASSERT_THAT(counted.counts.graphs, SizeIs(1));
  EXPECT_EQ(counted.counts.graphs[0].computed, 3);
}

TEST(GgmlProbe, LeavesAProgramsOwnEvaluationCallbackAsItIs) {
  const Ran bare = run({WEIR_GGML_SCENES, "watched"}, {});
  const Probed played({WEIR_GGML_SCENES, "watched"},
                      {{"WEIR_PROBE_EVENTS", "1"}, {"WEIR_PROBE_TIMING", "serialized"}});
  EXPECT_EQ(played.ran.out, bare.out);
  // 7 nodes a token; the fourth ends behind its second one.
  EXPECT_EQ(bare.out, "asked 37 told 6\n");
}

TEST(GgmlProbe, KeepsTwoPrivateCopiesOfGgmlApart) {
  const Probed played({WEIR_GGML_HOST, "tokens", library(""), library("_second")});
  ASSERT_EQ(played.ran.status, 0) << played.ran.err;
  const Ran bare = run({WEIR_GGML_HOST, "tokens", library(""), library("_second")}, {});
  EXPECT_EQ(played.ran.out, bare.out);
  for (const auto& [name, count] : k_tokens) {
    EXPECT_EQ(played.counts.counts.at(name), 2 * count) << name;
  }
}

TEST(GgmlProbe, LeavesOutShapesWhereTensorsLookOtherwise) {
  const Probed played({WEIR_GGML_HOST, "tokens", library("_other_layout")});
  ASSERT_EQ(played.ran.status, 0) << played.ran.err;
  EXPECT_THAT(text::lines(text::trim(played.ran.err)), ElementsAre(HasSubstr("shapes")));
  EXPECT_THAT(played.counts.warnings, ElementsAre(HasSubstr("no shapes")));
  // The branch not taken cannot be told from the others then: 5 ops a graph.
  EXPECT_EQ(played.counts.counts.at("ops"), 13 * 5);
  EXPECT_EQ(played.counts.counts.at("cpu_ops"), 12 * 1 + 5);
  EXPECT_EQ(played.counts.counts.at("copied_bytes"), 24576);
  for (const OpCount& op : played.counts.ops) EXPECT_EQ(op.type + op.shape, "") << op.op;
}

// Wheels of cyllama-rocm are built with GGML_MAX_NAME=160.
TEST(GgmlProbe, SeesShapesWhereTensorsHaveLongerNames) {
  const Probed played({WEIR_GGML_HOST, "tokens", library("_long_names")});
  ASSERT_EQ(played.ran.status, 0) << played.ran.err;
  EXPECT_THAT(played.counts.warnings, testing::IsEmpty());
  for (const auto& [name, count] : k_tokens)
    EXPECT_EQ(played.counts.counts.at(name), count) << name;
}

TEST(GgmlProbe, GivesNoNumberForOpsThatItCannotSee) {
  const Probed played({WEIR_GGML_HOST, "tokens", library("_old")});
  ASSERT_EQ(played.ran.status, 0) << played.ran.err;
  EXPECT_EQ(played.counts.counts.at("graphs"), 13);
  EXPECT_EQ(played.counts.counts.at("backend_syncs"), 34);
  for (const char* unseen : {"ops", "cpu_ops", "splits"}) {
    EXPECT_FALSE(played.counts.counts.contains(unseen)) << unseen;
  }
  EXPECT_THAT(played.counts.warnings, testing::Contains(HasSubstr("not counted")));
}

TEST(GgmlProbe, CountsNoGraphThatFailed) {
  const Probed played({WEIR_GGML_SCENES, "failing"});
  ASSERT_EQ(played.ran.status, 0) << played.ran.err;
  EXPECT_EQ(played.counts.counts.at("graphs"), 1);
  EXPECT_EQ(played.counts.counts.at("ops"), 4);
}

TEST(GgmlProbe, KeepsTheCountsOfAProcessThatIsKilled) {
  const Probed played({WEIR_GGML_SCENES, "killed"});
  EXPECT_EQ(played.ran.status, 128 + SIGKILL);
  EXPECT_EQ(played.counts.counts.at("graphs"), 10);
  EXPECT_EQ(played.counts.counts.at("tensor_sets"), 20);
}

TEST(GgmlProbe, GivesAForkedProcessCountsOfItsOwn) {
  const Probed played({WEIR_GGML_SCENES, "forking"});
  ASSERT_EQ(played.ran.status, 0) << played.ran.err;
  std::map<bool, std::uint64_t> graphs;  // by: was it forked
  for (const ProbeFile& file : played.files) {
    graphs[(file.flags & WEIR_PROBE_FORKED) != 0] = file.counters.at("graphs");
  }
  EXPECT_THAT(graphs, ElementsAre(testing::Pair(false, 4U), testing::Pair(true, 3U)));
  // Both computed the same kind of graph: one in the end.
  ASSERT_THAT(played.counts.graphs, SizeIs(1));
  EXPECT_EQ(played.counts.graphs[0].computed, 7);
  EXPECT_EQ(played.counts.graphs[0].sums.at("tensor_copies"), 7);
}

TEST(GgmlProbe, LosesNothingToSixteenThreads) {
  const Probed played({WEIR_GGML_SCENES, "threads"});
  ASSERT_EQ(played.ran.status, 0) << played.ran.err;
  constexpr std::int64_t k_tokens_computed = 16 * 500;
  EXPECT_EQ(played.counts.counts.at("graphs"), k_tokens_computed);
  EXPECT_EQ(played.counts.counts.at("ops"), 4 * k_tokens_computed);
  EXPECT_EQ(played.counts.counts.at("tensor_sets"), 2 * k_tokens_computed);
  EXPECT_EQ(played.counts.counts.at("backend_syncs"), 3 * k_tokens_computed);
  EXPECT_EQ(played.counts.graphs.at(0).sums.at("tensor_copies"), k_tokens_computed);
}

TEST(GgmlProbe, LetsTheProgramRunWhereItCannotCount) {
  const Folder folder;
  const struct {
    const char* what;
    std::string dir;
    std::uint64_t file_size_limit;
    const char* says;
  } cases[] = {
      {"missing folder", folder.path() + "/no/such", 0, "No such file or directory"},
      {"no folder named", "", 0, "no folder in WEIR_PROBE_DIR"},
      {"a file size limit", folder.path(), 4096, "limit on file sizes"},
  };
  const Ran bare = run({WEIR_GGML_SCENES, "tokens"}, {});
  for (const auto& c : cases) {
    const Ran ran =
        run({WEIR_GGML_SCENES, "tokens"}, {{"WEIR_PROBE_DIR", c.dir}, {"LD_PRELOAD", k_ggml_probe}},
            c.file_size_limit);
    EXPECT_EQ(ran.status, 0) << c.what << ": " << ran.err;
    EXPECT_EQ(ran.out, bare.out) << c.what;
    EXPECT_THAT(text::lines(text::trim(ran.err)), ElementsAre(HasSubstr(c.says))) << c.what;
  }
  // A program without ggml is left alone altogether.
  const Probed none({"/bin/true"});
  EXPECT_EQ(none.ran.status, 0);
  EXPECT_THAT(none.files, IsEmpty());
  EXPECT_THAT(none.counts.counts, IsEmpty());
}

TEST(GgmlProbe, NeedsLibcAndLibdlAloneAndExportsOnlyWhatItStandsInFrontOf) {
  const auto exported = expect_loads_on_old_systems(k_ggml_probe, k_libc_and_libdl);
  const auto of_ggml = [](const std::string& name) { return name.starts_with("ggml_backend_"); };
  std::vector<std::string> others;
  std::ranges::remove_copy_if(exported, std::back_inserter(others), of_ggml);
  // The calls that a twin intercepts so that no file is read ahead (inject/ggml/mapped.cpp).
  EXPECT_THAT(others, testing::UnorderedElementsAre("mmap", "mmap64", "posix_madvise"));
  EXPECT_EQ(exported.size(), 23U + 3U);
}

}  // namespace ggml_test
}  // namespace weir::probes
