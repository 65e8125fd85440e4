// `weir profile` on the unmodified llama.cpp, on an OpenCL program, and on what cannot be profiled.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>
#include <sstream>

#include <gmock/gmock.h>

#include "tests/e2e/weir_process.hpp"

namespace weir::e2e {
namespace profile_verb_test {

using testing::HasSubstr;

const std::string k_root = WEIR_SOURCE_DIR;
const std::string k_engine = k_root + "/engines/llama.cpp/llama-bench";

std::vector<std::string> split_at_blanks(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

class ProfileOfLlama : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(fs::exists(k_engine)) << "run ci/prepare test first"; }

  Ended profile(std::vector<std::string> options, const std::string& model,
                const std::vector<std::string>& work) {
    std::vector<std::string> words{"profile", "--json", "-"};
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), {"--", k_engine, "-m", k_root + "/models/" + model, "-t", "1", "-r",
                               "1", "-o", "json"});
    words.insert(words.end(), work.begin(), work.end());
    return weir(scratch_, words, {{"GGML_VK_VISIBLE_DEVICES", "0"}, {"LP_NUM_THREADS", "1"}});
  }

  Scratch scratch_;
};

// Probes see a program that a launcher starts, although the launcher's own files do not show it.
TEST_F(ProfileOfLlama, SeesWhatAShellOrEnvStarts) {
  const std::string run =
      k_engine + " -m " + k_root + "/models/tiny-llama.gguf -ngl 99 -p 0 -n 2 -r 1";
  std::vector<std::string> by_env{"profile", "--json", "-", "--", "env", "SOME=1"};
  for (std::string& word : split_at_blanks(run)) by_env.push_back(std::move(word));
  for (const auto& words :
       {std::vector<std::string>{"profile", "--json", "-", "--", "sh", "-c", run + "; true"},
        by_env}) {
    const Ended ended = weir(scratch_, words, {{"GGML_VK_VISIBLE_DEVICES", "0"}});
    ASSERT_EQ(ended.exit_code, 0) << ended.err;
    EXPECT_THAT(ended.err, HasSubstr("vulkan"));
    EXPECT_THAT(ended.out, HasSubstr("flash_attn_f32_f16_aligned"));
    EXPECT_EQ(json_of(ended)["alignment"]["graphs"], 3);
  }
}

// 65 dispatches and 81 ops a token in tiny-llama, 125 and 174 in tiny-gemma3
// (docs/explanation/counting.md); a warm-up and 4 tokens, and one more graph for each prefill.
TEST_F(ProfileOfLlama, FindsTheOpOfEveryDispatch) {
  const struct {
    const char* model;
    std::vector<std::string> work;
    int graphs;
    int dispatches, nodes;  // 0: not the same in all of its graphs
  } cases[] = {
      {"tiny-llama.gguf", {"-ngl", "99", "-p", "0", "-n", "4"}, 5, 5 * 65, 5 * 81},
      {"tiny-gemma3.gguf", {"-ngl", "99", "-p", "0", "-n", "4"}, 5, 5 * 125, 5 * 174},
      {"tiny-llama.gguf", {"-ngl", "99", "-p", "9", "-n", "0"}, 2, 0, 0},
      // Two layers stay on the CPU: those nodes have no dispatch to look for.
      {"tiny-llama.gguf", {"-ngl", "2", "-p", "0", "-n", "4"}, 5, 0, 0},
  };
  for (const auto& c : cases) {
    const Ended ended = profile({}, c.model, c.work);
    ASSERT_EQ(ended.exit_code, 0) << ended.err;
    const Json json = json_of(ended);
    EXPECT_EQ(json["schema"], "weir.timeline/1");
    const Json& alignment = json["alignment"];
    ASSERT_TRUE(alignment.is_object()) << ended.out;
    EXPECT_EQ(alignment["graphs"], c.graphs) << c.model;
    EXPECT_EQ(alignment["dispatches_left"], 0) << alignment.dump(1);
    EXPECT_EQ(alignment["nodes_left"], 0) << alignment.dump(1);
    if (c.dispatches == 0) continue;
    EXPECT_EQ(alignment["dispatches"], c.dispatches) << c.model;
    EXPECT_EQ(alignment["nodes"], c.nodes) << c.model;
  }
}

// The weights of half of each feed-forward part lie on the CPU: as the gate says it of cells.
TEST_F(ProfileOfLlama, IsComparedWithAnotherByTheOpsThatMovedToTheCpu) {
  const std::vector<std::string> decode{"-ngl", "99", "-p", "0", "-n", "4"};
  std::vector<std::string> moved = decode;
  moved.insert(moved.end(), {"-ot", "ffn_down=CPU"});
  spill(scratch_ / "a.json", profile({}, "tiny-llama.gguf", decode).out);
  spill(scratch_ / "b.json", profile({}, "tiny-llama.gguf", moved).out);
  const Ended ended = weir(scratch_, {"compare", "a.json", "b.json"});
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("Decoding, a token (of 5 and 5)"));
  EXPECT_THAT(ended.out, HasSubstr("1  Work moved to the CPU: MUL_MAT"));
  EXPECT_THAT(ended.out, Not(HasSubstr("does not report its tokens")));
}

// The program may lose its processor between two timestamps of a buffer, which then looks like time
// in no part: other work on the machine only adds to that, so one quiet run of several shows it.
TEST_F(ProfileOfLlama, GivesEveryCommandBufferATimeThatItsPartsExplain) {
  constexpr int k_max_tries = 8;
  for (const char* timing : {"batched", "serialized"}) {
    double least = 1;
    for (int tries = 0; tries < k_max_tries && least >= 0.1; ++tries) {
      const Ended ended =
          profile({"--timing", timing}, "tiny-llama.gguf", {"-ngl", "99", "-p", "0", "-n", "4"});
      ASSERT_EQ(ended.exit_code, 0) << ended.err;
      const Json json = json_of(ended);
      EXPECT_EQ(json["command_buffers_timed"], json["command_buffers"]) << timing;
      EXPECT_EQ(json["warnings"], Json::array()) << timing;
      for (const Json& row : json["kernels"]) EXPECT_EQ(row["timed"], row["calls"]) << row;
      least = std::min(least, std::abs(json["time_not_in_parts"].get<double>()));
    }
    EXPECT_LT(least, 0.1) << timing;
  }
}

TEST_F(ProfileOfLlama, WritesATraceWithTracksOfCpuQueueAndCopies) {
  const Ended ended = profile({"--trace", (scratch_ / "trace.json").string()}, "tiny-llama.gguf",
                              {"-ngl", "99", "-p", "0", "-n", "2"});
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  const Json trace = Json::parse(slurp(scratch_ / "trace.json"));
  std::map<std::string, int> slices;
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] == "X") ++slices[event["cat"].get<std::string>()];
  }
  for (const char* category : {"graph", "submit", "wait", "transfer", "device", "copy"}) {
    EXPECT_GT(slices[category], 0) << category;
  }
}

// Two of four layers on the device: its kernels by the layer, fused as they are, the CPU's ops one
// by one, and what is copied from the one to the other.
TEST_F(ProfileOfLlama, PutsBothBackendsAndTheCopiesBetweenOnOneTimeline) {
  const std::string trace_file = (scratch_ / "trace.json").string();
  const std::string page_file = (scratch_ / "page.html").string();
  const Ended ended = profile(
      {"--timing", "serialized", "--trace", trace_file, "--html", page_file, "--by", "layer"},
      "tiny-llama.gguf", {"-ngl", "2", "-p", "0", "-n", "4"});
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  const Json json = json_of(ended);
  EXPECT_EQ(json["warnings"], Json::array());
  // A warm-up and four tokens: every second one is left whole.
  EXPECT_EQ(json["by_node"]["graphs"], 3);
  EXPECT_EQ(json["by_node"]["whole"], 2);
  std::map<std::string, std::set<std::int64_t>> layers;
  std::map<std::string, std::int64_t> matrices;
  for (const Json& row : json["work"]["ops"]) {
    const std::string backend = row.value("backend", "");
    if (row.contains("layer")) layers[backend].insert(row["layer"].get<std::int64_t>());
    if (!row.value("op", "").starts_with("MUL_MAT")) continue;
    matrices[backend] += row["calls"].get<std::int64_t>();
    EXPECT_GT(row["flops"], 0) << row;
    EXPECT_TRUE(row.contains("seconds")) << row;
  }
  // 21 and 8 a token (ggml_llama_test.cpp), of the three that ran node by node.
  EXPECT_EQ(matrices, (std::map<std::string, std::int64_t>{{"CPU", 3 * 21}, {"Vulkan0", 3 * 8}}));
  EXPECT_EQ(layers["CPU"], (std::set<std::int64_t>{0, 1, 2}));
  EXPECT_TRUE(layers["Vulkan0"].contains(3));
  std::set<std::string> categories;
  const Json trace = Json::parse(slurp(trace_file));
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    const std::string category = event["cat"];
    categories.insert(category == "transfer" ? event["name"].get<std::string>() : category);
    if (category == "op") {
      EXPECT_EQ(event["args"]["backend"], "CPU");
    }
  }
  for (const char* wanted : {"op", "device", "copy Vulkan_Host \u2192 Vulkan0"}) {
    EXPECT_TRUE(categories.contains(wanted)) << wanted;
  }
  const std::string page = slurp(page_file);
  EXPECT_THAT(page, HasSubstr("ops on CPU"));
  EXPECT_THAT(page, HasSubstr("3 of 5 graphs; one of 1 row is "));
  EXPECT_THAT(page, HasSubstr("layer 3"));
}

// The rows of a run are those of a file: the same word groups both.
TEST_F(ProfileOfLlama, GroupsARunAsItGroupsAFile) {
  const Ended ended = profile({"--timing", "serialized", "--keep"}, "tiny-llama.gguf",
                              {"-ngl", "0", "-nkvo", "1", "-p", "0", "-n", "4"});
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  Json rows = json_of(ended)["work"];
  rows.erase("counts");  // which stand above the table of a file
  spill(scratch_ / "rows.json", rows.dump());
  fs::path folder;
  for (const auto& entry : fs::directory_iterator(scratch_ / "weir-out" / "profiles")) {
    if (fs::exists(entry.path() / "probes")) folder = entry.path() / "probes";
  }
  for (const char* by : {"op", "op-shape", "backend", "layer", "phase", "token", "step"}) {
    const std::string run = weir(scratch_, {"profile", "--by", by, folder.string()}).out;
    const std::string file = weir(scratch_, {"profile", "--by", by, "rows.json"}).out;
    // The table lies between the first blank line and the next one, or the words about the graphs.
    const auto table = [](const std::string& text) {
      const std::size_t begin = text.find("\n\n") + 2;
      return text.substr(
          begin, std::min(text.find("\n\n", begin), text.find("\n  3 of 5", begin)) - begin);
    };
    EXPECT_EQ(table(run), table(file)) << by;
    EXPECT_GT(table(run).size(), 60U) << by << run;
  }
  EXPECT_THAT(weir(scratch_, {"profile", "--by", "layer", "rows.json"}).out, HasSubstr("layer 3"));
}

TEST_F(ProfileOfLlama, SaysHowOpsOfTheCpuGetTimes) {
  const Ended plain =
      weir(scratch_, {"profile", "--", k_engine, "-m", k_root + "/models/tiny-llama.gguf", "-ngl",
                      "0", "-nkvo", "1", "-p", "0", "-n", "2", "-r", "1", "-t", "1"});
  EXPECT_EQ(plain.exit_code, 0) << plain.err;
  EXPECT_THAT(plain.out, HasSubstr("have no times: --timing serialized"));
}

// The cost of probes on a real engine: pairs of the timed command, with them and without.
TEST_F(ProfileOfLlama, GatesSayWhatProbesCostWhereItIsAsked) {
  for (const bool with_cost : {true, false}) {
    std::vector<std::string> words{"run",
                                   "-c",
                                   k_root + "/configs/llama.cpp.yaml",
                                   "--cell",
                                   "llama.cpp/tiny-llama/cpu/decode",
                                   "--counts-only",
                                   "--json",
                                   "-"};
    if (with_cost) words.insert(words.end(), {"--profiling-cost", "5"});
    const Ended ended = weir(scratch_, words);
    ASSERT_EQ(ended.exit_code, 0) << ended.err;
    const Json all = json_of(ended);
    const Json& profile = all["profiles"][0];
    // On a machine that is too busy to show it, that is said.
    const bool noisy =
        profile.value("warnings", Json()).dump().find("profiling cost") != std::string::npos;
    EXPECT_EQ(profile["profiling_cost"].is_number() || noisy, with_cost)
        << profile["profiling_cost"];
    if (profile["profiling_cost"].is_number()) {
      EXPECT_LT(profile["profiling_cost"], 1);
    }
  }
}

// tests/browser/profile_test.mjs looks at such a page.
TEST_F(ProfileOfLlama, WritesAPageWithoutPlacesOrPrompts) {
  const fs::path file = scratch_ / "page.html";
  const Ended ended =
      profile({"--html", file.string()}, "tiny-llama.gguf", {"-ngl", "99", "-p", "0", "-n", "2"});
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  const std::string page = slurp(file);
  const std::string begin = "id=\"weir-profile\">";
  const std::size_t at = page.find(begin) + begin.size();
  const Json head = Json::parse(page.substr(at, page.find("</script>", at) - at));
  std::map<std::string, int> events;
  for (const Json& track : head["tracks"]) {
    events[track["kind"].get<std::string>()] += track["events"].get<int>();
  }
  for (const char* kind : {"cpu", "device", "copy"}) EXPECT_GT(events[kind], 0) << kind;
  EXPECT_GT(head["arrows"], 0);
  EXPECT_EQ(head["facts"][0][1],
            "llama-bench -m tiny-llama.gguf -t 1 -r 1 -o json -ngl 99 -p 0 -n 2");
  EXPECT_EQ(page.find(k_root), std::string::npos);
}

TEST_F(ProfileOfLlama, ProfilesACellOfTheConfig) {
  const Ended ended = weir(scratch_, {"profile", "-c", k_root + "/configs/llama.cpp.yaml",
                                      "llama.cpp/tiny-llama/vulkan/decode"});
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("mul_mat_vec_f16_f32_f32"));
  // A CPU cell has no device, but graphs.
  const Ended cpu = weir(scratch_, {"profile", "-c", k_root + "/configs/llama.cpp.yaml",
                                    "llama.cpp/tiny-llama/cpu/decode"});
  EXPECT_EQ(cpu.exit_code, 0) << cpu.err;
  EXPECT_THAT(cpu.out, HasSubstr("compute a graph of 8"));
}

TEST_F(ProfileOfLlama, ShowsKeptProbeFilesAgain) {
  const Ended first = profile({"--keep"}, "tiny-llama.gguf", {"-ngl", "99", "-p", "0", "-n", "2"});
  ASSERT_EQ(first.exit_code, 0) << first.err;
  fs::path probe_folder;
  for (const auto& entry : fs::directory_iterator(scratch_ / "weir-out" / "profiles")) {
    probe_folder = entry.path() / "probes";
  }
  const Ended again = weir(scratch_, {"profile", "--json", "-", probe_folder.string()});
  ASSERT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(json_of(again), json_of(first));
}

// Debian's clpeak on PoCL: 20 002 launches of one kernel, 20 001 waits (opencl_layer_test.cpp).
TEST(Profile, TimesEveryLaunchOfAnOpenClProgram) {
  Scratch scratch;
  const std::map<std::string, std::string> env = {
      {"OCL_ICD_VENDORS", "/etc/OpenCL/vendors/pocl.icd"},
      {"POCL_CACHE_DIR", WEIR_BINARY_DIR "/pocl-cache"}};
  const std::string file = (scratch / "trace.json").string();
  const Ended ended =
      weir(scratch, {"profile", "--json", "-", "--trace", file, "--", "clpeak", "--kernel-latency"},
           env);
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  const Json json = json_of(ended);
  ASSERT_EQ(json["kernels"].size(), 1U) << ended.out;
  EXPECT_EQ(json["kernels"][0]["calls"], 20002);
  EXPECT_EQ(json["kernels"][0]["timed"], 20002);
  EXPECT_EQ(json["cpu_calls"][0]["name"], "wait for queue");
  EXPECT_EQ(json["cpu_calls"][0]["syncs"], 20001);
  EXPECT_FALSE(json["serialized"].get<bool>());
  std::map<std::string, int> slices;
  bool queue = false;
  const Json trace = Json::parse(slurp(file));
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] == "X") ++slices[event["cat"].get<std::string>()];
    queue = queue || (event["name"] == "thread_name" &&
                      event["args"]["name"].get<std::string>().starts_with("opencl queue"));
  }
  EXPECT_EQ(slices["device"], 20002);
  EXPECT_EQ(slices["wait"], 20001);
  EXPECT_TRUE(queue);
}

TEST(Profile, WritesAPageOfWhatOthersWrote) {
  Scratch scratch;
  const struct {
    const char* file;
    bool tracks;
  } cases[] = {{"constructed-pytorch-trace.json", true}, {"agave-profile.stderr.txt", false}};
  for (const auto& c : cases) {
    const Ended ended = weir(
        scratch, {"profile", "--html", "page.html", k_root + "/tests/adapters/data/" + c.file});
    ASSERT_EQ(ended.exit_code, 0) << ended.err;
    EXPECT_THAT(ended.out, HasSubstr("page page.html (open it in a browser)"));
    const std::string page = slurp(scratch / "page.html");
    const std::string begin = "id=\"weir-profile\">";
    const std::size_t at = page.find(begin) + begin.size();
    const Json head = Json::parse(page.substr(at, page.find("</script>", at) - at));
    EXPECT_EQ(head["title"], c.file);
    EXPECT_EQ(!head["tracks"].empty(), c.tracks) << c.file;
    EXPECT_THAT(head["tables"].dump(), HasSubstr("\"title\":\"Ops\""));
    EXPECT_EQ(page.find("/home/someone"), std::string::npos);
  }
}

// As Agave prints its counts and a token's time. An engine of which no probe can see anything.
TEST(Profile, IsWhatAProgramPrintsWhereProbesSeeNothing) {
  Scratch scratch;
  spill_program(scratch / "engine",
                "#!/bin/sh\necho 'Metal: 690 dispatches, 690 barriers, 1 sync' >&2\n"
                "echo 'Token time: 60ms (16.7 tok/s)' >&2\nexit ${STATUS:-0}\n");
  const std::vector<std::string> words{"profile", "--probes", "vulkan", "--", "./engine"};
  const Ended printed = weir(scratch, words);
  EXPECT_EQ(printed.exit_code, 0) << printed.err;
  EXPECT_THAT(printed.out, HasSubstr("690"));
  EXPECT_THAT(printed.out, HasSubstr("warning: the probes saw nothing: this is what the program"));
  const Ended failed = weir(scratch, words, {{"STATUS", "7"}});
  EXPECT_EQ(failed.exit_code, 3) << "what it printed before it failed is no profile";
}

TEST(Profile, SaysWhatItCannotDo) {
  Scratch scratch;
  spill(scratch / "junk.json", "{\"schema\": \"other\"}");
  spill_program(scratch / "fails", "#!/bin/sh\necho went wrong >&2\nexit 7\n");
  const struct {
    std::vector<std::string> words;
    int exit_code;
    const char* message;
  } cases[] = {
      {{"profile"}, 2, "takes a FILE, a CELL, or a program after --"},
      {{"profile", "--", "./no-such-program"}, 2, "no such program: ./no-such-program"},
      {{"profile", "junk.json"}, 3, "weir does not know this format"},
      {{"profile", "--probes", "vulkan", "--", "./fails"}, 3, "went wrong"},
      {{"profile", "--probes", "nonsense", "--", "./fails"}, 2, "unknown probe \"nonsense\""},
      {{"profile", "--timing", "sometimes", "--", "./fails"}, 2, "sometimes"},
      {{"profile", "--probes", "vulkan", "--", "/bin/true"}, 3, "the probes saw nothing"},
      {{"profile", "--probes", "instructions", "--", "/bin/true"}, 2, "not profiled"},
      {{"profile", "--trace", "no/such/t.json", "--", "/bin/true"}, 2, "no folder that can be"},
      {{"profile", "--html", "no/such/p.html", "--", "/bin/true"}, 2, "no folder that can be"},
      {{"profile", "--show-private", "--", "/bin/true"}, 2, "is for a page: --html FILE"},
      {{"profile", "--events", "4097", "--", "/bin/true"}, 2, "4097"},
      {{"profile", "--keep", "junk.json"}, 2, "--keep does not apply"},
      {{"profile", "--trace", "t.json", k_root + "/tests/adapters/data/agave-profile.stderr.txt"},
       2,
       "holds totals, no moments"},
      {{"profile", "--trace", "t.json",
        k_root + "/tests/adapters/data/constructed-pytorch-trace.json"},
       2,
       "is a Chrome trace already"},
      {{"profile", "."}, 3, "No probe saw a device"},
      {{"gate", "--", "./fails"}, 2, "are the base's command: --against -- COMMAND"},
      {{"run", "--", "./fails"}, 2, "this command takes no program after \"--\""},
  };
  for (const auto& c : cases) {
    const Ended ended = weir(scratch, c.words);
    EXPECT_EQ(ended.exit_code, c.exit_code) << c.message << ": " << ended.err;
    EXPECT_THAT(ended.out + ended.err, HasSubstr(c.message));
  }
}

}  // namespace profile_verb_test
}  // namespace weir::e2e
