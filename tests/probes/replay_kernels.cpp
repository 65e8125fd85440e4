// Kernels recorded by the Vulkan probe and run again alone: the real llama.cpp and weir-engine on
// lavapipe, and programs that bind in rarer ways.
#include <cstring>
#include <random>
#include <set>
#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gate/base/json.hpp"
#include "gate/base/text.hpp"
#include "gate/probes/read/code_facts.hpp"
#include "gate/probes/read/read_kernels.hpp"
#include "gate/report/replayed_kernels.hpp"

#include "tests/probes/support.hpp"

namespace weir::probes {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::map<std::string, std::string> k_no_probe = {{"VK_LOADER_DRIVERS_SELECT", "*lvp*"}};

std::map<std::string, std::string> recording(const Folder& folder, const char* mib = "64") {
  return {{"WEIR_PROBE_DIR", folder.path()},
          {"WEIR_PROBE_KERNELS", mib},
          {"VK_LAYER_PATH", WEIR_BINARY_DIR "/lib/weir/probes"},
          {"VK_INSTANCE_LAYERS", "VK_LAYER_WEIR_probe"},
          {"GGML_VK_VISIBLE_DEVICES", "0"},
          {"GGML_VK_DEBUG_MARKERS", "1"},
          {"VK_LOADER_DRIVERS_SELECT", "*lvp*"}};
}

// Four tokens after a warm-up of one, which is what llama-bench does.
std::vector<std::string> llama(const std::string& model = "tiny-llama.gguf") {
  return text::split(WEIR_SOURCE_DIR "/engines/llama.cpp/llama-bench -m " WEIR_SOURCE_DIR
                                     "/models/" +
                         model + " -p 0 -n 4 -r 1 -ngl 99 -o json",
                     ' ');
}
std::vector<std::string> engine() {
  return text::split(WEIR_BINARY_DIR
                     "/weir-engine -m " WEIR_SOURCE_DIR
                     "/models/tiny-llama.gguf -p 0 -n 4 -r 1 --backend vulkan --json",
                     ' ');
}

std::vector<std::string> recorded_files(const std::string& folder) {
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == WEIR_KERNELS_SUFFIX) out.push_back(entry.path().string());
  }
  return out;
}

// Records one run of a program, and checks the records against the counts of the layer.
RecordedKernels record(const Folder& folder, const std::vector<std::string>& argv) {
  const Ran ran = run(argv, recording(folder));
  EXPECT_EQ(ran.status, 0) << ran.err;
  const auto files = recorded_files(folder.path());
  if (files.size() != 1) {
    ADD_FAILURE() << files.size() << " recordings: " << ran.err;
    return {};
  }
  auto read = read_recorded_kernels(slurp(files.front()));
  EXPECT_TRUE(read) << read.error().message;
  if (!read) return {};
  const auto counted = merge("vulkan", probe_files(folder.path()));
  std::map<std::string, std::int64_t> kernels;
  std::int64_t all = 0;
  for (const RecordedWork& work : read->works) {
    kernels[work.name] += static_cast<std::int64_t>(work.count);
    all += static_cast<std::int64_t>(work.count);
  }
  for (const std::uint64_t dispatches : read->left_out)
    all += static_cast<std::int64_t>(dispatches);
  EXPECT_EQ(all, counted.counts.at("dispatches"));
  if (read->left_out == std::array<std::uint64_t, WEIR_LEFT_REASONS>{}) {
    EXPECT_EQ(kernels, counted.kernels);
  }
  return std::move(*read);
}

std::uint32_t pushed(const RecordedWork& work, std::size_t at) {
  std::uint32_t out = 0;
  if (work.push.size() >= (at + 1) * 4) std::memcpy(&out, work.push.data() + at * 4, 4);
  return out;
}

// Returns the constants of a pipeline: number -> value.
std::map<std::uint32_t, std::uint32_t> constants(const RecordedKernels& all,
                                                 const RecordedWork& work) {
  const RecordedPipeline& pipeline = all.pipelines[work.pipeline];
  std::map<std::uint32_t, std::uint32_t> out;
  for (const auto& constant : pipeline.constants) {
    std::memcpy(&out[constant.id], pipeline.data.data() + constant.offset,
                std::min(constant.size, 4U));
  }
  return out;
}

TEST(RecordedKernels, OfTheRealLlamaAreItsMatricesAtTheirSizes) {
  const Folder folder;
  const RecordedKernels all = record(folder, llama());
  // ggml's mul_mat_vec takes the columns first in its push constants, and computes as many rows a
  // group as its constant 1 says: 2 here. The model: width 256, 2 of 4 heads' keys of 64, feed
  // forward 768, vocabulary 512, 4 layers; five tokens with the warm-up. Two kinds of inputs give
  // the same shape twice, so counts are added up.
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> products;
  std::uint64_t dispatches = 0;
  for (const RecordedWork& work : all.works) {
    dispatches += work.count;
    if (work.name != "mul_mat_vec_f16_f32_f32") continue;
    EXPECT_EQ(constants(all, work)[1], 2U);
    products[{work.groups[0] * 2, pushed(work, 0)}] += work.count;
    EXPECT_EQ(work.groups[1], 1U);
    // The matrix in F16 is the first that it binds, alone in its buffer.
    ASSERT_FALSE(work.descriptors.empty());
    EXPECT_EQ(work.descriptors[0].range, std::uint64_t{work.groups[0]} * 2 * pushed(work, 0) * 2);
    EXPECT_EQ(all.pipelines[work.pipeline].head.subgroup_size, 8U) << "lavapipe's";
  }
  const std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> expected = {
      {{256, 256}, 2 * 4 * 5},  // queries, output of the attention
      {{128, 256}, 2 * 4 * 5},  // keys, values
      {{768, 256}, 2 * 4 * 5},  // gate, up
      {{256, 768}, 4 * 5},      // down
      {{512, 256}, 5},          // words
  };
  EXPECT_EQ(products, expected);
  EXPECT_EQ(dispatches, 65U * 5) << "65 a token, docs/explanation/counting.md";
  EXPECT_EQ(all.works.size(), 27U) << "four layers are one work: offsets are from what is bound";
  ASSERT_EQ(all.devices.size(), 1U);
  EXPECT_FALSE(all.devices[0].features.empty());
}

TEST(RecordedKernels, OfWeirEngineAreWhatItsShadersTake) {
  const Folder folder;
  const RecordedKernels all = record(folder, engine());
  // multiply.comp: columns, then rows of up to three matrices, a group a row (tools/engine).
  std::map<std::array<std::uint32_t, 5>, std::uint64_t> products;
  std::set<std::uint32_t> positions;
  std::uint64_t tokens = 0;
  for (const RecordedWork& work : all.works) {
    if (work.name == "multiply_f16") {
      products[{work.groups[0], pushed(work, 0), pushed(work, 1), pushed(work, 2),
                pushed(work, 3)}] += work.count;
    }
    if (work.name == "rotate") positions.insert(pushed(work, 3));
    if (work.name == "choose") tokens += work.count;
  }
  EXPECT_EQ(tokens, 4U);
  const std::map<std::array<std::uint32_t, 5>, std::uint64_t> expected = {
      {{512, 256, 256, 128, 128}, 4 * tokens},  // queries, keys, values of a layer at once
      {{256, 256, 256, 0, 0}, 4 * tokens},     {{1536, 256, 768, 768, 0}, 4 * tokens},
      {{256, 768, 256, 0, 0}, 4 * tokens},     {{512, 256, 512, 0, 0}, tokens},
  };
  EXPECT_EQ(products, expected);
  EXPECT_EQ(positions, (std::set<std::uint32_t>{0, 1, 2, 3})) << "one work for each token";
}

// Runs the program as weir does; the lines that are its own, by their kind.
struct Replayed {
  std::map<std::size_t, std::vector<double>> seconds;
  std::map<std::size_t, std::string> left_out;
  std::vector<std::string> others;
};
Replayed replay(const std::string& file, std::map<std::string, std::string> env = k_no_probe) {
  const Ran ran =
      run({WEIR_BINARY_DIR "/libexec/weir/weir-replay-vulkan", file, "--runs", "3"}, env);
  EXPECT_EQ(ran.status, 0) << ran.err;
  Replayed out;
  for (const std::string& line : text::lines(ran.out)) {
    const auto json = parse_json(line);
    if (!json) {
      out.others.push_back(line);
    } else if (json->contains("seconds")) {
      out.seconds[(*json)["work"]] = (*json)["seconds"].get<std::vector<double>>();
    } else if (json->contains("left_out")) {
      out.left_out[(*json)["work"]] = (*json)["left_out"];
    }
  }
  for (const std::string& line : text::lines(ran.err)) out.others.push_back(line);
  return out;
}

TEST(ReplayedKernels, RunAllWithoutAWordOfTheValidationLayers) {
  auto validated = k_no_probe;
  validated["VK_INSTANCE_LAYERS"] = "VK_LAYER_KHRONOS_validation";
  validated["VK_LOADER_DEBUG"] = "all";  // says that the layer is really there
  for (const auto& argv : {llama(), llama("tiny-gemma3.gguf"), engine(),
                           std::vector<std::string>{WEIR_KERNEL_SCENES}}) {
    const Folder folder;
    const RecordedKernels all = record(folder, argv);
    const auto files = recorded_files(folder.path());
    ASSERT_EQ(files.size(), 1U);
    const Replayed replayed = replay(files.front(), validated);
    EXPECT_THAT(replayed.others, testing::Contains(HasSubstr("libVkLayer_khronos_validation.so")));
    for (const std::string& line : replayed.others) {
      EXPECT_EQ(line.find("Validation "), std::string::npos) << argv[0] << ": " << line;
      EXPECT_EQ(line.find("VUID"), std::string::npos) << argv[0] << ": " << line;
    }
    EXPECT_TRUE(replayed.left_out.empty());
    EXPECT_EQ(replayed.seconds.size(), all.works.size());
    for (const auto& [work, seconds] : replayed.seconds) {
      EXPECT_EQ(seconds.size(), 3U);
      for (const double duration : seconds) EXPECT_GT(duration, 0) << all.works[work].name;
    }
  }
}

// kernel_scenes.cpp says what is bound how.
TEST(RecordedKernels, AreSeenHoweverTheyAreBound) {
  const Folder folder;
  const RecordedKernels all = record(folder, {WEIR_KERNEL_SCENES});
  std::map<std::string, const RecordedWork*> by_name;
  for (const RecordedWork& work : all.works) by_name[work.name] = &work;
  const struct {
    const char* how;
    std::uint64_t count;
    std::uint64_t input, output;  // offsets of what is bound at 0 and 1
    std::uint64_t spans;          // bytes of all buffers together
  } cases[] = {
      {"written", 3, 0, 0, 1024 + 2048},
      {"dynamic", 1, 0, 0, 1024 + 2048},  // 256 into the first, which is where its span begins
      {"copied", 1, 0, 0, 1024 + 2048},
      {"template", 1, 0, 0, 1024 + 2048},
      {"pushed", 1, 0, 0, 1024 + 2048},
      {"pushed template", 1, 0, 0, 1024 + 2048},
      {"shared", 1, 0, 4096, 4096 + 2048},  // both in one buffer
      {"secondary", 2, 0, 0, 1024 + 2048},  // executed twice
  };
  for (const auto& c : cases) {
    const auto match = by_name.find(c.how);
    if (match == by_name.end()) {
      ADD_FAILURE() << c.how << " is not there";
      continue;
    }
    const RecordedWork& work = *match->second;
    EXPECT_EQ(work.count, c.count) << c.how;
    ASSERT_EQ(work.descriptors.size(), 2U) << c.how << ": binding 7 is not the shader's";
    EXPECT_EQ(work.descriptors[0].offset, c.input) << c.how;
    EXPECT_EQ(work.descriptors[1].offset, c.output) << c.how;
    EXPECT_EQ(work.descriptors[0].range, 1024U) << c.how;
    EXPECT_EQ(work.descriptors[1].range, 2048U) << c.how;
    std::uint64_t spans = 0;
    for (const auto& buffer : work.buffers) spans += buffer.span;
    EXPECT_EQ(spans, c.spans) << c.how;
    EXPECT_THAT(work.groups, ElementsAre(2, 1, 1)) << c.how;
    EXPECT_EQ(pushed(work, 0), 5U) << c.how;
    EXPECT_EQ(constants(all, work), (std::map<std::uint32_t, std::uint32_t>{{3, 64}})) << c.how;
  }
  EXPECT_EQ(by_name.size(), std::size(cases));
  EXPECT_EQ(all.left_out[WEIR_LEFT_INDIRECT], 1U);
  EXPECT_EQ(all.left_out[WEIR_LEFT_BASE], 1U);
  EXPECT_EQ(all.left_out[WEIR_LEFT_UNBOUND], 1U);
}

TEST(RecordedKernels, AreWrittenOnlyWhereAskedFor) {
  for (const char* value : {"", "0", "many"}) {
    const Folder folder;
    const Ran ran = run({WEIR_KERNEL_SCENES}, recording(folder, value));
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_TRUE(recorded_files(folder.path()).empty()) << value;
    EXPECT_EQ(merge("vulkan", probe_files(folder.path())).counts.at("dispatches"), 14) << value;
  }
}

// A gate asks for this: enough to compile each kernel, and nothing for a dispatch.
TEST(RecordedKernels, AreTheCodeAloneWhereOnlyThatIsAskedFor) {
  const Folder folder;
  auto environment = recording(folder, "0");
  environment["WEIR_PROBE_CODE"] = "64";
  const Ran ran = run(llama(), environment);
  ASSERT_EQ(ran.status, 0) << ran.err;
  const RecordedKernels recorded =
      read_recorded_kernels(slurp(recorded_files(folder.path()).front())).value();
  EXPECT_TRUE(recorded.works.empty());
  // By the identity that the probe file counts by, each with what specializes it.
  const auto counts = collect(sys::RealFiles(), folder.path(), "vulkan").value();
  ASSERT_FALSE(counts.codes.empty());
  for (const auto& [key, dispatches] : counts.codes) {
    EXPECT_TRUE(counts.code_facts.contains(profile::hash_of_code(key))) << key;
  }
  EXPECT_EQ(counts.code_facts, code_facts(recorded));
  // A piece alone is a recording, too.
  for (std::size_t i = 0; i < recorded.pipelines.size(); ++i) {
    const auto piece = read_recorded_kernels(single_pipeline_recording(recorded, i));
    ASSERT_TRUE(piece) << piece.error().message;
    const std::string identity = pipeline_hash(recorded.pipelines[i]);
    EXPECT_EQ(pipeline_hash(piece->pipelines.at(0)), identity);
    EXPECT_EQ(code_facts(*piece).at(identity), counts.code_facts.at(identity));
    EXPECT_EQ(piece->codes.at(0).words, recorded.codes[recorded.pipelines[i].head.code].words);
    EXPECT_EQ(piece->devices.at(0).extensions, recorded.devices.at(0).extensions);
  }
}

// A file cut anywhere, and one with any word changed: an error, or something that fits together.
TEST(RecordedKernels, AreHostileUntilRead) {
  const Folder folder;
  (void)record(folder, {WEIR_KERNEL_SCENES});
  const std::string good = slurp(recorded_files(folder.path()).front());
  const auto fits = [](const std::string& bytes) {
    const auto read = read_recorded_kernels(bytes);
    if (!read) return;
    for (const RecordedWork& work : read->works) {
      ASSERT_LT(work.pipeline, read->pipelines.size());
      ASSERT_LT(read->pipelines[work.pipeline].head.code, read->codes.size());
      for (const auto& descriptor : work.descriptors) {
        if (descriptor.buffer == UINT32_MAX) continue;
        ASSERT_LT(descriptor.buffer, work.buffers.size());
        ASSERT_LE(descriptor.offset, work.buffers[descriptor.buffer].span);
        ASSERT_LE(descriptor.range, work.buffers[descriptor.buffer].span - descriptor.offset);
      }
    }
  };
  const std::size_t records = WEIR_KERNELS_HEADER_SIZE + WEIR_KERNELS_WORKS * 8;
  for (std::size_t cut = 0; cut < good.size(); cut += cut < records ? 8191 : 61) {
    EXPECT_FALSE(read_recorded_kernels(good.substr(0, cut))) << cut;
  }
  std::mt19937 random(1);
  for (int i = 0; i < 4000; ++i) {
    std::string bytes = good;
    const std::size_t at =
        i % 4 == 0 ? random() % 256 : records + random() % (good.size() - records - 4);
    const auto value = static_cast<std::uint32_t>(i % 2 == 0 ? random() : random() % 8);
    std::memcpy(bytes.data() + at, &value, sizeof value);
    fits(bytes);
  }
}

TEST(ReplayKernels, TellsTheTimeOfEachAndWhatIsLeftOut) {
  const Folder folder;
  auto env = k_no_probe;
  const std::string to = folder.path() + "/kernels";
  const Ran recorded = run(
      {WEIR_BINARY_DIR "/weir", "replay", "--kernels", "--record", to, "--", WEIR_KERNEL_SCENES},
      env);
  EXPECT_EQ(recorded.status, 0) << recorded.err;
  EXPECT_THAT(recorded.out, HasSubstr("8 kernels and 11 dispatches recorded, 3 left out"));
  const Ran again = run(
      {WEIR_BINARY_DIR "/weir", "replay", "--kernels", "--record", to, "--", WEIR_KERNEL_SCENES},
      env);
  EXPECT_EQ(again.status, 2) << "what is there is not mixed with what comes";

  const std::string json_file = folder.path() + "/kernels.json";
  const Ran ran = run(
      {WEIR_BINARY_DIR "/weir", "replay", to, "--runs", "3", "--tokens", "2", "--json", json_file},
      env);
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("11 of 14 dispatches replayed"));
  EXPECT_THAT(ran.out, HasSubstr("1 dispatch: its groups are not counted from 0"));
  const auto json = parse_json(slurp(json_file));
  ASSERT_TRUE(json);
  EXPECT_EQ((*json)["schema"], "weir.observed/1");
  EXPECT_EQ((*json)["profiled_tokens"], 2);
  const auto observed = read_fields<observed::Observed>(*json, "observed");
  ASSERT_TRUE(observed) << observed.error().message;
  std::int64_t calls = 0;
  for (const auto& op : observed->ops) calls += op.calls.value_or(0);
  EXPECT_EQ(calls, 11);
  EXPECT_EQ(observed->cases.size(), 8U);
  const Ran shown = run({WEIR_BINARY_DIR "/weir", "profile", json_file}, env);
  EXPECT_EQ(shown.status, 0) << shown.err;
  EXPECT_THAT(shown.out, HasSubstr("pushed template"));
}

// A program in the replayer's place that dies at the second kernel and goes on behind it.
TEST(ReplayKernels, GoesOnBehindAKernelThatEndsTheDriver) {
  const Folder folder;
  const std::string to = folder.path() + "/kernels";
  const auto recorded = run(
      {WEIR_BINARY_DIR "/weir", "replay", "--kernels", "--record", to, "--", WEIR_KERNEL_SCENES},
      k_no_probe);
  ASSERT_EQ(recorded.status, 0) << recorded.err;
  const std::string probes = folder.path() + "/probes";
  std::filesystem::create_directory(probes);
  const std::string program = probes + "/weir-replay-vulkan";
  std::ofstream(program)
      << "#!/bin/sh\n"
         "echo '{\"device\":\"made up\"}'\n"
         "if [ \"$3\" = 0 ]; then\n"
         "  echo '{\"begins\":0}'; echo '{\"work\":0,\"seconds\":[0.25]}'\n"
         "  echo '{\"begins\":1}'; kill -SEGV $$\n"
         "fi\n"
         "for i in 2 3 4 5 6 7; do echo \"{\\\"work\\\":$i,\\\"left_out\\\":\\\"no\\\"}\"; done\n"
         "echo '{\"ends\":8}'\n";
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  auto env = k_no_probe;
  env["WEIR_PROBES"] = probes;
  const Ran ran = run({WEIR_BINARY_DIR "/weir", "replay", to}, env);
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("kernels alone on made up"));
  EXPECT_THAT(ran.out, HasSubstr("it ended the driver by signal 11"));
  EXPECT_THAT(ran.out, HasSubstr("250.00 ms"));
}

// The page's own weir.yaml, on weir-engine: 4 tokens of 4 layers, each with 4 products, and one of
// the words.
TEST(ReplayKernels, CanBeGated) {
  const Folder folder;
  const std::string weir = WEIR_BINARY_DIR "/weir";
  std::vector<std::string> argv = {
      weir, "replay", "--kernels", "--record", folder.path() + "/kernels", "--"};
  for (const std::string& word : engine()) argv.push_back(word);
  ASSERT_EQ(run(argv, k_no_probe).status, 0);
  const std::string page = slurp(WEIR_SOURCE_DIR "/docs/how-to/replay-kernels.md");
  const auto begin = page.find("```yaml\n") + 8;
  std::string config = page.substr(begin, page.find("```", begin) - begin);
  const std::string installed = "/usr/bin/weir";
  ASSERT_NE(config.find(installed), std::string::npos);
  config.replace(config.find(installed), installed.size(), weir);
  config += "gate: {runs: 2, repeats: 1}\n";
  const std::string file = folder.path() + "/weir.yaml";
  std::ofstream(file) << config;
  const std::string baselines = folder.path() + "/baselines";
  const Ran ran = run({weir, "baseline", "accept", "-c", file, "--baselines", baselines, "--out",
                       folder.path() + "/out"},
                      k_no_probe);
  EXPECT_EQ(ran.status, 0) << ran.out << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("6 counts"));
  std::string stored;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(baselines)) {
    if (entry.is_regular_file()) stored += slurp(entry.path());
  }
  EXPECT_THAT(stored, HasSubstr("\"kernel:multiply_f16\""));
  EXPECT_THAT(stored, HasSubstr("\"kernel_calls:multiply_f16\": 17"));
}

}  // namespace
}  // namespace weir::probes
