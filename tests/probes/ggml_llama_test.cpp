// The ggml probe in the real engine: llama.cpp as ci/setup gets it, on lavapipe, on a twin of it
// and on the CPU.
#include <algorithm>
#include <cstdio>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gate/base/text.hpp"
#include "gate/probes/read/timeline.hpp"
#include "gate/sys/files.hpp"

#include "tests/probes/ggml_support.hpp"
#include "tests/probes/twin_of_lavapipe.hpp"

namespace weir::probes {
namespace ggml_llama_test {

using testing::Contains;
using testing::IsEmpty;
using Ops = std::map<std::string, std::int64_t>;  // "Vulkan0 MUL_MAT" -> how many

Probed bench(const std::string& model, int tokens, std::vector<std::string> arguments,
             Environment env = {}, const Environment& device = twin("lavapipe")) {
  const std::string engine = WEIR_SOURCE_DIR "/engines/llama.cpp/llama-bench";
  const std::string path = WEIR_SOURCE_DIR "/models/" + model;
  EXPECT_TRUE(std::filesystem::exists(engine)) << engine << " is missing: run ci/setup test";
  EXPECT_TRUE(std::filesystem::exists(path)) << path << " is missing: run ci/setup test";
  arguments.insert(arguments.begin(), {engine, "-m", path, "-p", "0", "-n", std::to_string(tokens),
                                       "-r", "1", "-o", "json"});
  env.insert(device.begin(), device.end());
  env["GGML_VK_VISIBLE_DEVICES"] = "0";  // a device of type CPU, which it leaves out by itself
  Probed out(arguments, env);
  EXPECT_EQ(out.ran.status, 0) << out.ran.err;
  EXPECT_THAT(out.counts.warnings, IsEmpty());
  return out;
}

// Returns the ops of the graph of one token, from one run.
Ops of_a_token(const profile::ProbeCounts& counts) {
  Ops out;
  for (const profile::OpCount& op : counts.ops) {
    const profile::GraphCount& graph = counts.graphs.at(static_cast<std::size_t>(op.graph));
    if (graph.rows == 1) out[op.backend + " " + op.op] += op.count / graph.computed;
  }
  return out;
}

// MiB of all lines of llama.cpp's log that end in "WHAT buffer size = 6.26 MiB", and how many.
struct Logged {
  double mebibytes = 0;
  int lines = 0;
};
Logged logged(const std::string& log, const std::string& what) {
  Logged out;
  const std::string mark = what + " buffer size =";
  for (std::size_t at = log.find(mark); at != std::string::npos; at = log.find(mark, at + 1)) {
    const std::string_view rest = text::trim(std::string_view(log).substr(at + mark.size(), 20));
    out.mebibytes += text::to_double(rest.substr(0, rest.find(' '))).value_or(-1e9);
    ++out.lines;
  }
  return out;
}

// Five settings: llama.cpp's own log has two decimals of a MiB a line.
TEST(GgmlInLlama, TellsBuffersByTheirUseAsTheEnginesLogDoes) {
  struct Case {
    const char* model;
    std::vector<std::string> arguments;
    std::int64_t kv_cache;  // layers x 2 x KV heads x head size x context x bytes; 0: not by hand
  };
  const Case cases[] = {
      {"tiny-llama.gguf", {"-ngl", "99", "-d", "120"}, 4 * 2 * 2 * 64 * 256 * 2},
      {"tiny-llama.gguf", {"-ngl", "99", "-d", "504"}, 4 * 2 * 2 * 64 * 512 * 2},
      // Keys in blocks of 32 numbers in 34 bytes.
      {"tiny-llama.gguf",
       {"-ngl", "99", "-d", "120", "-ctk", "q8_0"},
       4 * 2 * 64 * 256 * 2 + 4 * 2 * 64 * 256 / 32 * 34},
      {"tiny-llama.gguf", {"-ngl", "2", "-d", "120"}, 4 * 2 * 2 * 64 * 256 * 2},
      {"tiny-gemma3.gguf", {"-ngl", "99", "-d", "120"}, 0},
  };
  for (const Case& c : cases) {
    std::vector<std::string> arguments = c.arguments;
    arguments.emplace_back("-v");
    const Probed first = bench(c.model, 8, arguments);
    const std::string what = fmt::format("{} {}", c.model, fmt::join(c.arguments, " "));
    for (const auto& [name, mark] :
         {std::pair{"weights_bytes", "model"}, std::pair{"kv_cache_bytes", "KV"},
          std::pair{"compute_bytes", "compute"}}) {
      const Logged log = logged(first.ran.err, mark);
      ASSERT_GT(log.lines, 0) << what << ": no line of " << mark;
      EXPECT_NEAR(static_cast<double>(first.counts.counts.at(name)) / (1 << 20), log.mebibytes,
                  0.0051 * log.lines)
          << what << " " << name;
    }
    if (c.kv_cache != 0) {
      EXPECT_EQ(first.counts.counts.at("kv_cache_bytes"), c.kv_cache) << what;
    }
  }
}

Ops all(const profile::ProbeCounts& counts) {
  Ops out;
  for (const profile::OpCount& op : counts.ops) out[op.backend + " " + op.op] += op.count;
  return out;
}

// One token of tiny-llama, counted in llama.cpp's graph. Each of four layers: 2 RMS_NORM with MUL,
// 7 MUL_MAT, 2 ROPE, 2 SET_ROWS (keys and values), FLASH_ATTN_EXT, SWIGLU, 2 ADD. The output:
// RMS_NORM, MUL, MUL_MAT. GET_ROWS: rows of the last layer that have outputs (2), the embedding (1,
// on the CPU).
const Ops k_offloaded = {
    {"CPU GET_ROWS", 1},     {"Vulkan0 ADD", 8},      {"Vulkan0 FLASH_ATTN_EXT", 4},
    {"Vulkan0 GET_ROWS", 2}, {"Vulkan0 MUL_MAT", 29}, {"Vulkan0 MUL", 9},
    {"Vulkan0 RMS_NORM", 9}, {"Vulkan0 ROPE", 8},     {"Vulkan0 SET_ROWS", 8},
    {"Vulkan0 SWIGLU", 4},
};

TEST(GgmlInLlama, TellsTheReferenceOpsOfATokenFromOneRunAndFromTheSlope) {
  const Probed few = bench("tiny-llama.gguf", 4, {"-ngl", "99"}, {}, driver(k_lavapipe));
  const Probed more = bench("tiny-llama.gguf", 12, {"-ngl", "99"});
  EXPECT_EQ(of_a_token(few.counts), k_offloaded);
  Ops slope = all(more.counts);
  for (const auto& [op, count] : all(few.counts)) slope[op] -= count;
  for (auto& [op, count] : slope) {
    EXPECT_EQ(count % 8, 0) << op;
    count /= 8;
  }
  EXPECT_EQ(slope, k_offloaded);
  for (const auto& [name, each] :
       {std::pair{"graphs", 1}, std::pair{"cpu_ops", 1}, std::pair{"splits", 2},
        std::pair{"tensor_copies", 5}, std::pair{"tensor_sets", 7}}) {
    EXPECT_EQ(more.counts.counts.at(name) - few.counts.counts.at(name), 8 * each) << name;
  }
}

TEST(GgmlInLlama, CountsTheSameOpsOnTheCpu) {
  Ops expected;
  for (const auto& [op, count] : k_offloaded) {
    expected["CPU" + op.substr(op.find(' '))] += count;
  }
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"-ngl", "0", "-nkvo", "1"}, {"-dev", "none"}}) {
    const Probed ran = bench("tiny-llama.gguf", 4, arguments);
    EXPECT_EQ(of_a_token(ran.counts), expected) << arguments[0];
    EXPECT_EQ(ran.counts.counts.at("cpu_ops"), ran.counts.counts.at("ops")) << arguments[0];
    EXPECT_EQ(ran.counts.counts.at("tensor_copies"), 0) << arguments[0];
  }
}

TEST(GgmlInLlama, NamesTheOpsThatPartialOffloadMovesToTheCpu) {
  const Probed ran = bench("tiny-llama.gguf", 4, {"-ngl", "2"});
  const Ops ops = of_a_token(ran.counts);
  Ops together;
  for (const auto& [op, count] : ops) together[op.substr(op.find(' ') + 1)] += count;
  Ops expected;
  for (const auto& [op, count] : k_offloaded) expected[op.substr(op.find(' ') + 1)] += count;
  EXPECT_EQ(together, expected);  // nothing is lost or done twice
  // -ngl 2 keeps the last layer and the output on the device: three of four layers moved.
  EXPECT_EQ(ops.at("CPU FLASH_ATTN_EXT"), 3);
  EXPECT_EQ(ops.at("CPU SWIGLU"), 3);
  EXPECT_EQ(ops.at("CPU MUL_MAT"), 21);  // 7 a layer
  EXPECT_EQ(ops.at("Vulkan0 MUL_MAT"), 8);
  profile::OpCount moved{.op = "MUL_MAT",
                         .type = "f16,f32->f32",
                         .shape = "768x256,768->256",
                         .backend = "CPU",
                         .on_cpu = true,
                         .graph = 0,
                         .count = 3 * 5};  // the last product of three layers; 4 tokens, 1 warm-up
  EXPECT_THAT(ran.counts.ops, Contains(moved));
}

TEST(GgmlInLlama, CountsTheSameTwentyTimes) {
  const Probed first = bench("tiny-llama.gguf", 4, {"-ngl", "99"});
  for (int i = 1; i < 20; ++i) {
    const Probed again = bench("tiny-llama.gguf", 4, {"-ngl", "99"});
    ASSERT_EQ(again.counts, first.counts) << "run " << i;
  }
}

// The graphs that llama.cpp prints: for each its ops and where they run (names are cut to 10 and 5
// characters there), and its number of splits.
struct Printed {
  int splits = 0;
  Ops ops;
  std::vector<std::string> nodes{};  // "MUL_MAT Qcur-0 Vulka", in order; names have 20 characters
  friend bool operator==(const Printed&, const Printed&) = default;
};

std::vector<Printed> printed_graphs(const std::string& log) {
  std::vector<Printed> out;
  for (const std::string& line : text::lines(log)) {
    const std::size_t split = line.find("## SPLIT #");
    if (split != std::string::npos) {
      if (line.compare(split, 11, "## SPLIT #0") == 0 && line[split + 11] == ':')
        out.emplace_back();
      if (!out.empty()) ++out.back().splits;
    }
    const std::size_t open = line.find("):");
    const std::size_t backend = line.find("[");
    if (line.rfind("node #", 0) != 0 || open == std::string::npos || out.empty() ||
        backend == std::string::npos || line.find("c=1:") == std::string::npos) {
      continue;
    }
    const std::string op(text::trim(line.substr(open - 10, 10)));
    const std::string where(text::trim(line.substr(backend + 1, 5)));
    ++out.back().ops[where + " " + op];
    const std::string name(text::trim(line.substr(open + 3, 20)));
    out.back().nodes.push_back(op + " " + name + " " + where);
  }
  return out;
}

TEST(GgmlInLlama, AgreesWithTheGraphsThatTheSchedulerPrints) {
  for (const char* model : {"tiny-llama.gguf", "tiny-gemma3.gguf"}) {
    for (const char* layers : {"99", "2", "0"}) {
      const Probed ran =
          bench(model, 2, {"-ngl", layers, "-v", "-p", "40"}, {{"GGML_SCHED_DEBUG", "2"}});
      std::vector<Printed> printed = printed_graphs(ran.ran.err);
      for (Printed& graph : printed) graph.nodes.clear();  // the counts have no order
      ASSERT_FALSE(ran.counts.graphs.empty()) << model;
      std::vector<Printed> counted(ran.counts.graphs.size());
      for (const profile::OpCount& op : ran.counts.ops) {
        const auto at = static_cast<std::size_t>(op.graph);
        const profile::GraphCount& graph = ran.counts.graphs[at];
        counted[at].splits = static_cast<int>(graph.splits);
        counted[at].ops[op.backend.substr(0, 5) + " " + op.op.substr(0, 10)] +=
            op.count / graph.computed;
      }
      for (const Printed& graph : counted) {
        EXPECT_THAT(printed, Contains(graph)) << model << " -ngl " << layers;
      }
    }
  }
}

// Node by node, from the events. After it has printed a graph the scheduler lets the backend put
// its nodes in another order, and that is the one computed: switched off here.
TEST(GgmlInLlama, TellsEachNodeInTheOrderAndOnTheBackendThatTheSchedulerPrints) {
  for (const char* model : {"tiny-llama.gguf", "tiny-gemma3.gguf"}) {
    for (const char* layers : {"99", "2", "0"}) {
      const Folder folder;
      Environment env = twin("lavapipe");
      env.insert({{"WEIR_PROBE_DIR", folder.path()},
                  {"WEIR_PROBE_EVENTS", "16"},
                  {"LD_PRELOAD", k_ggml_probe},
                  {"GGML_SCHED_DEBUG", "2"},
                  {"GGML_VK_DISABLE_GRAPH_OPTIMIZE", "1"},
                  {"GGML_VK_VISIBLE_DEVICES", "0"}});
      const Ran ran = run({WEIR_SOURCE_DIR "/engines/llama.cpp/llama-bench", "-m",
                           WEIR_SOURCE_DIR "/models/" + std::string(model), "-p", "40", "-n", "2",
                           "-r", "1", "-ngl", layers, "-v", "-o", "json"},
                          env);
      ASSERT_EQ(ran.status, 0) << ran.err;
      std::vector<std::vector<std::string>> printed;
      for (const Printed& graph : printed_graphs(ran.err)) printed.push_back(graph.nodes);
      const auto timeline = collect_timeline(sys::RealFiles(), folder.path());
      ASSERT_TRUE(timeline) << timeline.error().message;
      int graphs = 0;
      for (const observed::Process& process : timeline->processes) {
        for (const observed::Graph& graph : process.graphs) {
          if (graph.nodes.empty()) continue;
          ++graphs;
          std::vector<std::string> nodes;
          for (const observed::Node& node : graph.nodes) {
            nodes.push_back(node.op.substr(0, 10) + " " +
                            std::string(text::trim(node.name.substr(0, 20))) + " " +
                            node.backend.substr(0, 5));
          }
          EXPECT_THAT(printed, Contains(nodes)) << model << " -ngl " << layers;
        }
      }
      EXPECT_GE(graphs, 2) << model << " -ngl " << layers;  // one of a prompt and one of a token
    }
  }
}

// Node by node, on the CPU and on both backends: what is computed is what it was, and all of a
// token has a time. Ops add up to their graph, but for what a busy machine takes in between: one
// quiet run of several shows it.
TEST(GgmlInLlama, TimesEveryOpOfATokenWhereverItRuns) {
  for (const char* layers : {"0", "2", "99"}) {
    double best = 0;
    for (int tries = 0; tries < 8 && best < 0.9; ++tries) {
      const Folder folder;
      std::map<std::string, std::string> env = {{"WEIR_PROBE_DIR", folder.path()},
                                                {"WEIR_PROBE_EVENTS", "16"},
                                                {"WEIR_PROBE_TIMING", "serialized"},
                                                {"LD_PRELOAD", k_ggml_probe},
                                                {"LP_NUM_THREADS", "1"},
                                                {"GGML_VK_VISIBLE_DEVICES", "0"},
                                                {"VK_LOADER_DRIVERS_SELECT", "*lvp*"}};
      const std::vector<std::string> words = {WEIR_SOURCE_DIR "/engines/llama.cpp/llama-greedy",
                                              WEIR_SOURCE_DIR "/models/tiny-llama.gguf", layers,
                                              "1,5,9", "8"};
      const Ran ran = run(words, env);
      ASSERT_EQ(ran.status, 0) << ran.err;
      const auto counted = merge("ggml", probe_files(folder.path())).counts;
      for (const char* probe : {"WEIR_PROBE_EVENTS", "WEIR_PROBE_DIR", "LD_PRELOAD"}) {
        env.erase(probe);
      }
      if (tries == 0) {
        EXPECT_EQ(ran.out, run(words, env).out) << layers;
        EXPECT_EQ(counted, Probed(words, env).counts.counts) << layers;
      }
      const auto timeline = collect_timeline(sys::RealFiles(), folder.path());
      ASSERT_TRUE(timeline && !timeline->processes.empty());
      EXPECT_THAT(timeline->warnings, IsEmpty());
      const observed::Process& process = timeline->processes[0];
      std::size_t wanted = 0;
      for (const observed::GraphRun& run : process.graph_runs) {
        if (run.node_by_node) wanted += process.graphs.at(run.graph).nodes.size();
      }
      EXPECT_EQ(process.op_scopes.size(), wanted);
      std::set<std::string> backends;
      for (const observed::OpScope& scope : process.op_scopes) backends.insert(scope.backend);
      EXPECT_EQ(backends.size(), layers == std::string("0") ? 1U : 2U);
      const auto all = observed::node_by_node(*timeline);
      ASSERT_TRUE(all);
      best = std::max(best, all->ops + all->transfers);
      EXPECT_LE(all->ops + all->transfers, 1.001);
    }
    EXPECT_GE(best, 0.9) << layers;
  }
}

TEST(GgmlInLlama, ChangesNoCountOfTheVulkanLayerBesideIt) {
  const auto vulkan = [](const std::string& preload) {
    const Folder folder;
    const Ran ran = run({WEIR_SOURCE_DIR "/engines/llama.cpp/llama-bench", "-m",
                         WEIR_SOURCE_DIR "/models/tiny-llama.gguf", "-p", "0", "-n", "4", "-r", "1",
                         "-ngl", "99", "-o", "json"},
                        {{"WEIR_PROBE_DIR", folder.path()},
                         {"LD_PRELOAD", preload},
                         {"VK_LAYER_PATH", WEIR_BINARY_DIR "/lib/weir/probes"},
                         {"VK_INSTANCE_LAYERS", "VK_LAYER_WEIR_probe"},
                         {"GGML_VK_VISIBLE_DEVICES", "0"},
                         {"VK_LOADER_DRIVERS_SELECT", "*lvp*"}});
    EXPECT_EQ(ran.status, 0) << ran.err;
    const auto files = probe_files(folder.path());
    EXPECT_EQ(merge("ggml", files).counts.contains("graphs"), !preload.empty());
    return merge("vulkan", files).counts;
  };
  const auto alone = vulkan("");
  ASSERT_GT(alone.at("dispatches"), 0);
  auto beside = vulkan(k_ggml_probe);
  // How often a fence is asked before it is done is time, not work.
  beside["polls"] = alone.at("polls");
  EXPECT_EQ(beside, alone);
}

}  // namespace ggml_llama_test
}  // namespace weir::probes
