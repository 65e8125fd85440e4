// Tests of reading the files of probes.
#include "gate/probes/read/read.hpp"

#include <cstring>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/probes/support.hpp"

namespace weir::probes {
namespace read_test {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;

// A file written as docs/reference/probe-format.md says, without the writer that the probes use.
struct Image {
  weir_probe_header header{};
  std::vector<weir_probe_device> devices;
  std::vector<weir_probe_queue> queues;
  std::vector<weir_probe_kernel> kernels;
  std::vector<weir_probe_named_counter> counters;
  std::vector<weir_probe_op> ops;
  std::vector<weir_probe_graph> graphs;
  std::vector<weir_probe_transfer> transfers;
  std::vector<weir_probe_launch> launches;
  std::vector<weir_probe_step> steps;
  std::vector<weir_probe_command> commands;

  Image() {
    std::memcpy(header.magic, WEIR_PROBE_MAGIC, 8);
    header.version = WEIR_PROBE_VERSION;
    header.header_size = sizeof header;
    header.pid = 42;
    std::strcpy(header.probe, "vulkan");
    std::strcpy(header.process, "engine");
  }
  weir_probe_device& device(const char* device_class, const char* name = "GPU") {
    weir_probe_device& entry = devices.emplace_back();
    std::strcpy(entry.api, "vulkan");
    std::strcpy(entry.type, "discrete");
    std::strcpy(entry.device_class, device_class);
    std::strcpy(entry.name, name);
    return entry;
  }
  weir_probe_queue& queue(std::uint32_t of, std::uint64_t dispatches) {
    weir_probe_queue& entry = queues.emplace_back();
    entry.device = of;
    entry.counters[WEIR_COUNT_DISPATCHES] = dispatches;
    entry.counters[WEIR_COUNT_SUBMISSIONS] = dispatches == 0 ? 0 : 1;
    return entry;
  }
  weir_probe_kernel& kernel(const char* name, std::uint64_t dispatches, bool named = true) {
    weir_probe_kernel& entry = kernels.emplace_back();
    std::strcpy(entry.name, name);
    entry.dispatches = dispatches;
    entry.flags = named ? WEIR_KERNEL_NAMED : 0;
    return entry;
  }
  void counter(const char* name, std::uint64_t value) {
    std::strcpy(counters.emplace_back().name, name);
    counters.back().value = value;
  }
  weir_probe_graph& graph(std::uint64_t rows, std::uint64_t computed) {
    weir_probe_graph& entry = graphs.emplace_back();
    entry.rows = rows;
    entry.computed = computed;
    return entry;
  }
  weir_probe_op& op(std::uint32_t of, const char* name, std::uint64_t count) {
    weir_probe_op& entry = ops.emplace_back();
    std::strcpy(entry.op, name);
    entry.graph = of;
    entry.count = count;
    entry.flags = WEIR_OP_SHAPED;
    entry.sources = 2;
    entry.source[0] = {"q4_0", {256, 768, 1, 1}};
    entry.source[1] = {"f32", {256, 1, 1, 1}};
    entry.result = {"f32", {768, 1, 1, 1}};
    return entry;
  }
  [[nodiscard]] std::string bytes() const {
    weir_probe_header copy = header;
    std::string body;
    const auto put = [&](std::uint32_t kind, const auto& entries) {
      weir_probe_section& section = copy.sections[copy.section_count++];
      section.kind = kind;
      section.entry_size = sizeof entries[0];
      section.offset = sizeof copy + body.size();
      section.capacity = section.used = static_cast<std::uint32_t>(entries.size());
      body.append(reinterpret_cast<const char*>(entries.data()),
                  entries.size() * sizeof entries[0]);
    };
    put(WEIR_SECTION_DEVICES, devices);
    put(WEIR_SECTION_QUEUES, queues);
    put(WEIR_SECTION_KERNELS, kernels);
    put(WEIR_SECTION_COUNTERS, counters);
    put(WEIR_SECTION_OPS, ops);
    put(WEIR_SECTION_GRAPHS, graphs);
    put(WEIR_SECTION_TRANSFERS, transfers);
    put(WEIR_SECTION_LAUNCHES, launches);
    put(WEIR_SECTION_STEPS, steps);
    put(WEIR_SECTION_COMMANDS, commands);
    copy.file_size = sizeof copy + body.size();
    return std::string(reinterpret_cast<const char*>(&copy), sizeof copy) + body;
  }
  [[nodiscard]] ProbeFile file() const {
    auto read = read_probe_file(bytes());
    EXPECT_TRUE(read) << (read ? "" : read.error().message);
    return read.value_or(ProbeFile{});
  }
};

Image sample() {
  Image image;
  image.device("vulkan-1002-744c-3-8000-00ff").counters[WEIR_COUNT_WAITS] = 7;
  image.queue(0, 65);
  image.queue(0, 0);
  image.kernel("(other)", 0, false);
  image.kernel("mul_mat", 60);
  image.kernel("add", 5);
  return image;
}

// The file of a probe that sees ops: one graph, computed five times.
Image work() {
  Image image;
  std::strcpy(image.header.probe, "ggml");
  std::strcpy(image.device("ggml-Vulkan0", "Vulkan0").api, "ggml");
  weir_probe_device& cpu = image.device("ggml-CPU", "CPU");
  std::strcpy(cpu.api, "ggml");
  std::strcpy(cpu.type, "cpu");
  image.counter("graphs", 5);
  image.counter("cpu_ops", 5);
  image.graph(0, 0);
  weir_probe_graph& token = image.graph(1, 5);
  token.ops = 2;
  token.cpu_ops = 1;
  token.splits = 2;
  token.sums[WEIR_GRAPH_TENSOR_COPIES] = 25;
  image.op(1, "MUL_MAT", 5);
  weir_probe_op& unshaped = image.op(1, "GET_ROWS", 5);
  unshaped.device = 1;
  unshaped.flags = 0;
  image.transfers.push_back({25, 2680, WEIR_TRANSFER_COPY, 0, "CPU", "Vulkan0"});
  image.kernel("(other)", 0, false);
  image.launches.push_back({5, 0, 2, {256, 3, 1}, {16, 1, 1}, 1024});
  return image;
}

TEST(ReadProbeFile, ReadsWhatStandsInTheDocument) {
  const ProbeFile file = sample().file();
  EXPECT_EQ(file.probe, "vulkan");
  EXPECT_EQ(file.process, "engine");
  EXPECT_EQ(file.pid, 42U);
  ASSERT_THAT(file.devices, SizeIs(1));
  EXPECT_EQ(file.devices[0].device_class, "vulkan-1002-744c-3-8000-00ff");
  EXPECT_EQ(file.devices[0].counters[WEIR_COUNT_WAITS], 7U);
  ASSERT_THAT(file.queues, SizeIs(2));
  EXPECT_EQ(file.queues[0].counters[WEIR_COUNT_DISPATCHES], 65U);
  ASSERT_THAT(file.kernels, SizeIs(3));
  EXPECT_EQ(file.kernels[1].name, "mul_mat");
  EXPECT_TRUE(file.kernels[1].named);
}

TEST(ReadProbeFile, TakesLongerEntriesAndUnknownSectionsOfALaterProbe) {
  std::string bytes = sample().bytes();
  weir_probe_header header;
  std::memcpy(&header, bytes.data(), sizeof header);
  // The one device moves to the end, 32 bytes longer; a section of a kind not known yet is added.
  const weir_probe_section old = header.sections[0];
  const std::string entry = bytes.substr(old.offset, old.entry_size);
  header.sections[0].offset = bytes.size();
  header.sections[0].entry_size += 32;
  header.sections[header.section_count++] = {99, 8, bytes.size(), 1, 1};
  bytes += entry + std::string(32, '\x7f');
  std::memcpy(bytes.data(), &header, sizeof header);
  const auto file = read_probe_file(bytes);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->devices[0].counters[WEIR_COUNT_WAITS], 7U);
}

TEST(ReadProbeFile, TakesCodeOfAnEarlierProbeWithoutItsCosts) {
  std::string bytes = sample().bytes();
  weir_probe_header header;
  std::memcpy(&header, bytes.data(), sizeof header);
  weir_probe_code code{};
  code.hash = 0xc0ffee;
  code.dispatches = 60;
  code.kernel = 1;
  code.flags = WEIR_CODE_EXAMINED;
  code.costs.registers = 40;
  for (const std::uint32_t size : {31U, 32U, 36U, 64U}) {
    weir_probe_header with = header;
    with.sections[with.section_count++] = {WEIR_SECTION_CODES, size, bytes.size(), 1, 1};
    std::string longer = bytes + std::string(reinterpret_cast<const char*>(&code), size);
    std::memcpy(longer.data(), &with, sizeof with);
    const auto file = read_probe_file(longer);
    ASSERT_EQ(file.has_value(), size >= 32) << size;
    if (!file) continue;
    EXPECT_EQ(file->codes[0].hash, 0xc0ffeeU);
    EXPECT_EQ(file->codes[0].costs.registers, size == 32 ? 0U : 40U) << size;
    const auto facts = merge("vulkan", {&*file, 1}).code_facts;
    EXPECT_EQ(facts.empty() || facts.begin()->second.costs.empty(), size == 32) << size;
  }
}

TEST(ReadProbeFile, RefusesWhatIsNotWhole) {
  const std::string good = sample().bytes();
  const auto changed = [&](auto change) {
    std::string bytes = good;
    weir_probe_header header;
    std::memcpy(&header, bytes.data(), sizeof header);
    change(&header);
    std::memcpy(bytes.data(), &header, sizeof header);
    return bytes;
  };
  const auto damaged = [](auto change) {
    Image image = work();
    change(&image);
    return image.bytes();
  };
  const struct {
    const char* what;
    std::string bytes;
    const char* says;
  } cases[] = {
      {"nothing", "", "too few"},
      {"less than a header", good.substr(0, 100), "too few"},
      {"no magic: killed while it was made", std::string(good.size(), '\0'), "not one"},
      {"a cut end", good.substr(0, good.size() - 1), "does not lie within"},
      {"a later version", changed([](auto* h) { h->version = 2; }), "version 2"},
      {"too many sections", changed([](auto* h) { h->section_count = 17; }), "17 sections"},
      {"an offset beyond the end", changed([](auto* h) { h->sections[1].offset = ~0ULL; }),
       "does not lie within"},
      {"entries that overflow", changed([](auto* h) { h->sections[2].entry_size = ~0U; }),
       "does not lie within"},
      {"short entries", changed([](auto* h) { h->sections[0].entry_size = 8; }), "at least"},
      {"more used than there are", changed([](auto* h) { h->sections[0].used = 2; }), "2 of 1"},
      {"a queue of no device", changed([](auto* h) { h->sections[0].used = 0; }), "device 0 of 0"},
      {"an op of no device", damaged([](Image* i) { i->ops[0].device = 2; }), "device 2 of 2"},
      {"an op of no graph", damaged([](Image* i) { i->ops[1].graph = 9; }), "graph 9 of 2"},
      {"too many sources", damaged([](Image* i) { i->ops[0].sources = 11; }), "11 sources"},
      {"an op counted too often", damaged([](Image* i) { i->ops[0].count = ~0ULL; }), "counted"},
      {"a counter that is no name", damaged([](Image* i) { i->counters[0].name[0] = '/'; }),
       "a name that is none"},
      {"an impossible counter", damaged([](Image* i) { i->counters[0].value = ~0ULL; }),
       "impossible"},
      {"an impossible graph",
       damaged([](Image* i) { i->graphs[1].sums[WEIR_GRAPH_SUMS - 1] = ~0ULL; }), "impossible"},
      {"a launch of no kernel", damaged([](Image* i) { i->launches[0].kernel = 1; }),
       "kernel 1 of 1"},
      {"a launch in four dimensions", damaged([](Image* i) { i->launches[0].dimensions = 4; }),
       "4 dimensions"},
      {"an impossible launch", damaged([](Image* i) { i->launches[0].count = ~0ULL; }), "counted"},
      {"a step of no op", damaged([](Image* i) {
         i->steps.push_back({2, 0});
       }),
       "op 2 of 2"},
      {"an impossible transfer", damaged([](Image* i) { i->transfers[0].bytes = ~0ULL; }),
       "impossible"},
  };
  for (const auto& c : cases) {
    const auto file = read_probe_file(c.bytes);
    ASSERT_FALSE(file) << c.what;
    EXPECT_EQ(file.error().code, Code::data) << c.what;
    EXPECT_THAT(file.error().message, HasSubstr(c.says)) << c.what;
  }
}

TEST(ReadProbeFile, SurvivesTenThousandDamagedFilesOfEachKind) {
  for (const std::string& good : {sample().bytes(), work().bytes()}) {
    std::mt19937_64 random(1);  // fixed: a failure comes back
    int read = 0;
    for (int i = 0; i < 10000; ++i) {
      std::string bytes = good;
      if (i % 4 == 0) bytes.resize(random() % (bytes.size() + 1));
      // Mostly in the header and the section table, where it decides what is read.
      const std::size_t reach =
          i % 3 == 0 ? bytes.size() : std::min<std::size_t>(bytes.size(), 360);
      for (std::uint64_t n = random() % 8; n > 0 && reach > 16; --n) {
        bytes[8 + random() % (reach - 8)] = static_cast<char>(random());
      }
      const auto file = read_probe_file(bytes);
      if (!file) continue;
      ++read;
      const profile::ProbeCounts counts = merge(file->probe, std::vector{*file, *file});
      for (const auto& [name, count] : counts.counts) ASSERT_GE(count, 0) << name;
      for (const profile::OpCount& op : counts.ops) {
        ASSERT_GT(op.count, 0);
        ASSERT_LT(static_cast<std::size_t>(op.graph), counts.graphs.size());
      }
    }
    EXPECT_GT(read, 500);  // the damage leaves enough of them readable to reach what follows
  }
}

TEST(ReadProbeFile, CleansWhatAHostileProgramCallsItself) {
  Image image;
  image.device("../../etc/passwd\n", "G\x1b[31mPU");
  image.queue(0, 1);
  image.kernel("bad\xff\x1b]0;name", 1);
  const ProbeFile file = image.file();
  EXPECT_EQ(file.devices[0].device_class.find('/'), std::string::npos);
  EXPECT_NE(file.devices[0].device_class.front(), '.');
  EXPECT_EQ(file.devices[0].name.find('\x1b'), std::string::npos);
  EXPECT_EQ(file.kernels[0].name.find('\x1b'), std::string::npos);
}

TEST(ReadProbeFile, TakesAProcessorForNoOtherTypeWhateverItWasDeclaredAs) {
  const struct {
    const char *api, *type, *want;
    bool cpu;
  } cases[] = {
      {"cpu", "integrated", "cpu", true},
      {"cpu", "cpu", "cpu", true},
      {"vulkan", "cpu", "cpu", false},
      {"metal", "integrated", "integrated", false},
  };
  for (const auto& entry : cases) {
    Image image;
    weir_probe_device& device = image.device("a-class");
    std::strcpy(device.api, entry.api);
    std::strcpy(device.type, entry.type);
    image.queue(0, 1);
    const ProbeFile file = image.file();
    EXPECT_EQ(file.devices[0].type, entry.want) << entry.api;
    EXPECT_EQ(is_cpu_backend(file.devices[0]), entry.cpu) << entry.api;
  }
}

TEST(MergeProbeFiles, AddsUpProcessesThatDidSomething) {
  Image first = sample();
  Image second = sample();
  second.queues[0].counters[WEIR_COUNT_DISPATCHES] = 10;
  second.kernels[1].dispatches = 10;
  second.kernels[2].dispatches = 0;
  Image idle;  // made a device of another class and waited, but submitted nothing
  idle.device("vulkan-8086-56a0-1-1-22").counters[WEIR_COUNT_WAITS] = 100;
  idle.queue(0, 0);
  Image opencl = sample();
  std::strcpy(opencl.header.probe, "opencl");
  const std::vector<ProbeFile> files{first.file(), second.file(), idle.file(), opencl.file()};
  const profile::ProbeCounts counts = merge("vulkan", files);
  EXPECT_EQ(counts.probe, "vulkan");
  EXPECT_EQ(counts.counts.at("dispatches"), 75);
  EXPECT_EQ(counts.counts.at("waits"), 14);
  EXPECT_THAT(counts.kernels, ElementsAre(Pair("add", 5), Pair("mul_mat", 70)));
  EXPECT_TRUE(counts.kernels_named);
  ASSERT_THAT(counts.devices, SizeIs(1));
  EXPECT_EQ(counts.devices[0].device_class, "vulkan-1002-744c-3-8000-00ff");
}

TEST(MergeProbeFiles, TellsAnIdleDeviceFromNone) {
  Image idle;
  idle.device("vulkan-8086-56a0-1-1-22");
  idle.queue(0, 0);
  const profile::ProbeCounts counts = merge("vulkan", std::vector{idle.file()});
  ASSERT_THAT(counts.devices, SizeIs(1));
  EXPECT_EQ(counts.counts.at("dispatches"), 0);
  EXPECT_FALSE(counts.kernels_named);
  const profile::ProbeCounts none = merge("vulkan", std::vector{Image().file()});
  EXPECT_THAT(none.devices, IsEmpty());
  EXPECT_THAT(none.counts, IsEmpty());
}

TEST(MergeProbeFiles, SaysWhatCouldNotBeToldApart) {
  Image image = sample();
  image.header.flags = WEIR_PROBE_KERNELS_OVERFLOWED;
  image.kernels[0].dispatches = 3;
  const profile::ProbeCounts counts = merge("vulkan", std::vector{image.file()});
  EXPECT_THAT(counts.warnings, ElementsAre(HasSubstr("kernel table overflowed")));
  EXPECT_EQ(counts.kernels.at("(other)"), 3);
  EXPECT_FALSE(counts.kernels_named);
}

TEST(MergeProbeFiles, FindsRowsOfOpsThatCouldBeOneKernelInAGraphsOrder) {
  const auto merged = [](std::vector<weir_probe_step> steps, std::uint32_t device = 0) {
    Image image = work();
    image.graphs[1].ops = 3;
    image.op(1, "RMS_NORM", 5).device = device;
    image.op(1, "MUL", 5).device = device;
    image.steps = std::move(steps);
    return merge("ggml", std::vector{image.file()}).graphs.at(0).fusible;
  };
  using Rows = std::map<std::string, std::int64_t>;
  EXPECT_EQ(merged({{2, 0}, {3, WEIR_STEP_FOLLOWS}, {0, 0}}), (Rows{{"RMS_NORM+MUL", 1}}));
  EXPECT_EQ(merged({{2, 0}, {3, 0}, {0, 0}}), Rows{}) << "of another's result";
  EXPECT_EQ(merged({{2, 0}, {3, WEIR_STEP_FOLLOWS}, {0, 0}}, 1), Rows{}) << "on the CPU";
  EXPECT_EQ(merged({{2, 0}, {3, WEIR_STEP_FOLLOWS}}), std::nullopt) << "a step is missing";
  EXPECT_EQ(merged({}), std::nullopt);
}

TEST(MergeProbeFiles, MakesOneOfGraphsThatSeveralProcessesComputed) {
  Image idle = work();  // was loaded, moved weights, computed nothing
  idle.counters[0].value = 0;
  idle.graphs[1].computed = 0;
  const profile::ProbeCounts counts =
      merge("ggml", std::vector{work().file(), work().file(), idle.file()});
  EXPECT_THAT(counts.counts, ElementsAre(Pair("cpu_ops", 10), Pair("graphs", 10)));
  ASSERT_THAT(counts.graphs, SizeIs(1));
  EXPECT_EQ(counts.graphs[0].computed, 10);
  EXPECT_EQ(counts.graphs[0].splits, 2);
  EXPECT_EQ(counts.graphs[0].sums.at("tensor_copies"), 50);
  EXPECT_THAT(counts.ops,
              ElementsAre(profile::OpCount{"GET_ROWS", "", "", "CPU", true, 0, 10},
                          profile::OpCount{"MUL_MAT", "q4_0,f32->f32", "256x768,256->768",
                                           "Vulkan0", false, 0, 10, "vulkan"}));
  EXPECT_THAT(counts.transfers,
              ElementsAre(profile::TransferCount{"copy", "CPU", "Vulkan0", 50, 5360}));
  EXPECT_THAT(counts.devices, SizeIs(2));
}

TEST(MergeProbeFiles, GivesNoNumberForOpsThatOneProcessCouldNotSee) {
  Image blind = work();
  blind.header.flags = WEIR_PROBE_OPS_UNSEEN;
  const profile::ProbeCounts counts = merge("ggml", std::vector{work().file(), blind.file()});
  EXPECT_THAT(counts.counts, ElementsAre(Pair("graphs", 10)));
  EXPECT_THAT(counts.warnings, ElementsAre(HasSubstr("are not counted")));
}

TEST(MergeProbeFiles, WarnsThatIndicesReadFromATwinWereNotComputed) {
  Image image = work();
  image.header.flags = WEIR_PROBE_INDICES_GIVEN;
  EXPECT_THAT(merge("ggml", std::vector{image.file()}).warnings,
              ElementsAre(HasSubstr("a device twin computes no values")));
}

TEST(MergeProbeFiles, TellsAnOpOfVeryManyShapesAsOne) {
  Image image = work();
  for (std::int64_t n = 0; n < 65; ++n) image.op(1, "SOFT_MAX", 2).source[0].ne[0] = n;
  const profile::ProbeCounts counts = merge("ggml", std::vector{image.file()});
  EXPECT_THAT(counts.ops, SizeIs(3));
  EXPECT_EQ(counts.ops.back(), (profile::OpCount{"SOFT_MAX", "q4_0,f32->f32", "*", "Vulkan0", false,
                                                 0, 130, "vulkan"}));
}

TEST(MergeProbeFiles, CountsEachRoleApartAndEqualProcessesOfARoleOnce) {
  const auto process = [](const char* command, std::uint64_t calls) {
    Image image = sample();
    std::strcpy(image.commands.emplace_back().text, command);
    image.kernel("all_reduce", calls);
    return image.file();
  };
  std::vector files = {process("VLLM::Worker_TP10", 4), process("VLLM::Worker_TP2", 5),
                       process("VLLM::EngineCore", 9), process("ptxas -O3 a.ptx", 7)};
  const std::vector<config::ProcessRole> roles = {{"rank", "VLLM::Worker_TP*"},
                                                  {"engine", "EngineCore"}};
  const auto counts = merge_by_role("vulkan", files, roles);
  ASSERT_THAT(counts, SizeIs(2));
  EXPECT_EQ(counts[0].probe, "vulkan");
  EXPECT_EQ(counts[0].counts.at("dispatches"), 65);
  EXPECT_EQ(counts[0].kernels.at("all_reduce"), 5);  // of TP2, which comes before TP10
  EXPECT_EQ(counts[0].counts.at("rank_differences"), 1);
  EXPECT_EQ(counts[0].counts.at("processes"), 2);
  EXPECT_THAT(counts[0].functions,
              ElementsAre(Pair("rank difference of VLLM::Worker_TP2 and VLLM::Worker_TP10: "
                               "all_reduce",
                               1)));
  EXPECT_THAT(counts[0].warnings,
              ElementsAre("VLLM::Worker_TP10 differs from VLLM::Worker_TP2 in all_reduce"));
  EXPECT_EQ(counts[1].probe, "vulkan@engine");
  EXPECT_EQ(counts[1].kernels.at("all_reduce"), 9);
  EXPECT_EQ(counts[1].counts.at("processes"), 1);
  EXPECT_FALSE(counts[1].counts.contains("rank_differences"));

  files.erase(files.begin(), files.begin() + 3);
  const auto none = merge_by_role("vulkan", files, roles);
  ASSERT_THAT(none, SizeIs(1));
  EXPECT_THAT(none[0].kernels, testing::IsEmpty());
  EXPECT_THAT(none[0].warnings, ElementsAre(HasSubstr("is not counted: ptxas")));
}

TEST(CollectProbeFiles, ReadsOneFolderAndWarnsOfWhatItCannotRead) {
  const Folder folder;
  const auto put = [&](const char* name, const std::string& bytes) {
    std::ofstream(folder.path() + "/" + name, std::ios::binary) << bytes;
  };
  put("vulkan-1-aa.weirprobe", sample().bytes());
  put("vulkan-2-bb.weirprobe", "torn");
  put("opencl-3-cc.weirprobe", sample().bytes());
  put("vulkan-notes.txt", "not ours");
  const sys::RealFiles files;
  const auto counts = collect(files, folder.path(), "vulkan");
  ASSERT_TRUE(counts) << counts.error().message;
  EXPECT_EQ(counts->counts.at("dispatches"), 65);
  EXPECT_THAT(counts->warnings, ElementsAre(HasSubstr("vulkan-2-bb.weirprobe")));
  EXPECT_FALSE(collect(files, folder.path() + "/none", "vulkan"));
}

}  // namespace read_test
}  // namespace weir::probes
