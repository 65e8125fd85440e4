// A model that is bigger than the memory there is, on the twin of a card that it fits on.
#include <optional>

#include <sys/stat.h>

#include "gate/model/make.hpp"

#include "tests/e2e/llama_bench.hpp"

namespace weir::e2e {
namespace twin_memory_test {

constexpr std::int64_t k_limit = std::int64_t{1} << 30;  // limit of memory, in bytes

// A control group of its own, of version 1 or 2, that may use k_limit.
class SmallMemory {
 public:
  SmallMemory() {
    for (const auto& [root, limit] : {std::pair{"/sys/fs/cgroup/memory", "memory.limit_in_bytes"},
                                      std::pair{"/sys/fs/cgroup", "memory.max"}}) {
      if (!fs::exists(fs::path(root) / "cgroup.procs")) continue;
      const fs::path group = fs::path(root) / ("weir-test-" + std::to_string(getpid()));
      std::error_code failed;
      if (!fs::create_directory(group, failed)) continue;
      std::ofstream(group / limit) << k_limit << std::flush;
      std::int64_t holds = 0;
      std::ifstream(group / limit) >> holds;
      if (holds == k_limit) {
        group_ = group;
        return;
      }
      fs::remove(group, failed);
    }
  }
  ~SmallMemory() {
    std::error_code ignored;
    if (!group_.empty()) fs::remove(group_, ignored);
  }
  SmallMemory(const SmallMemory&) = delete;
  SmallMemory& operator=(const SmallMemory&) = delete;

  // False where there are no such groups, or none may be made.
  [[nodiscard]] bool there() const { return !group_.empty(); }
  // The most it used so far, with cached files; 0 where the system does not say.
  [[nodiscard]] std::int64_t peak() const {
    for (const char* name : {"memory.max_usage_in_bytes", "memory.peak"}) {
      std::int64_t bytes = 0;
      if (std::ifstream(group_ / name) >> bytes) return bytes;
    }
    return 0;
  }
  // Before a command line: starts it as a member.
  [[nodiscard]] std::vector<std::string> starter() const {
    return {"/bin/sh", "-c", "echo $$ > \"$0\"/cgroup.procs && exec \"$@\"", group_};
  }

 private:
  fs::path group_;
};

// Writes the header of a llama of about 12 GB and makes the file as long as its tensors are: they
// read as zeros and take no place. Nothing where the file system has no such files; why is in
// `why`.
std::optional<std::int64_t> sparse_model(const fs::path& path, std::string& why) {
  auto options = model::default_model("llama");
  options->layers = 52;
  options->embedding = 4096;
  options->feed_forward = 14336;
  options->heads = 32;
  options->kv_heads = 8;
  options->head_dim = 128;
  options->quantization = *model::parse_quantization("q8_0");
  auto header = model::make_model(*options);
  EXPECT_TRUE(header);
  const auto bytes = model::encode_gguf_header(*header);
  EXPECT_TRUE(bytes);
  spill(path, *bytes);
  const auto size = static_cast<std::int64_t>(*model::gguf_file_bytes(*header));
  std::error_code failed;
  fs::resize_file(path, static_cast<std::uintmax_t>(size), failed);
  struct stat file_status {};
  if (failed || stat(path.c_str(), &file_status) != 0) {
    why = "a file of that length cannot be made: " + failed.message();
    return std::nullopt;
  }
  if (file_status.st_blocks * 512 > (std::int64_t{64} << 20)) {
    why = "this file system keeps zeros";
    return std::nullopt;
  }
  return size;
}

TEST(TwinMemory, LoadsAModelThatIsBiggerThanTheMemoryThereIs) {
  const Scratch scratch;
  const std::string model = scratch / "big.gguf";
  std::string why;
  const auto size = sparse_model(model, why);
  if (!size) GTEST_SKIP() << why;
  ASSERT_GT(*size, 12'000'000'000);
  const SmallMemory memory;
  if (!memory.there()) {
    GTEST_SKIP() << "no control group that limits memory can be made here (it takes root)";
  }
  for (const char* mode : {"none", "mmap"}) {
    Bench what{model, {"-p", "0", "-n", "1", "-lm", mode}, on_twin(scratch, "intel-arc-a770")};
    what.starter = memory.starter();
    what.timeout_seconds = 600;
    const Benched ran = bench(what, scratch / mode);
    ASSERT_TRUE(ran.well) << mode;
    const Counted counted = counted_in(scratch / mode);
    // Each weight went to the device, but for the look-up table of tokens.
    std::int64_t brought = 0;
    for (const auto& transfer : counted.ggml.transfers) {
      if (transfer.kind == "set" && transfer.to == "Vulkan0") brought += transfer.bytes;
    }
    EXPECT_GT(brought, *size * 99 / 100) << mode;
    EXPECT_GT(counted.vulkan.counts.at("dispatches"), 0) << mode;
    // More it could not have used. (Resident sizes tell nothing here: they count a page as often
    // as it is mapped, and a twin maps the same few again and again.)
    EXPECT_LE(memory.peak(), k_limit) << mode;
    std::printf("load mode %s: at most %lld MiB of memory and cache\n", mode,
                static_cast<long long>(memory.peak() >> 20));
  }
}

}  // namespace twin_memory_test
}  // namespace weir::e2e
