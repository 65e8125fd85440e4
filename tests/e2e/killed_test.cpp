// weir killed with -9 at random moments loses nothing that was finished and leaves nothing half
// done.
#include <chrono>
#include <random>
#include <thread>

#include "tests/e2e/weir_process.hpp"

namespace weir::e2e {
namespace killed_test {

constexpr int k_moments = 200;
const std::string k_fake = WEIR_BINARY_DIR "/tests/fake_engines/fake_engine";

class Killed : public testing::Test {
 protected:
  void SetUp() override {
    spill(scratch_ / "model.bin", "no model at all");
    std::string cells;
    for (int i = 0; i < 8; ++i) cells += "m" + std::to_string(i) + ": model.bin, ";
    spill(scratch_ / "weir.yaml",
          "version: 1\nengines:\n  fake: {command: [" + k_fake +
              ", ok, -m, '{model}', -p, '{prompt_tokens}', -n, '{tokens}', -r, '{repeats}'], "
              "output: llama-bench}\n"
              "models: {" +
              cells +
              "}\nbackends: {cpu: {}}\n"
              "prompts: {decode: {prompt_tokens: 0, tokens: 8}}\ngate: {runs: 50}\n");
  }

  // As soon as it has come so far, or a moment later; at the latest when it has ended.
  template <class SoFar>
  void kill_when(Weir& weir, const SoFar& so_far) {
    EXPECT_TRUE(eventually([&] { return so_far() || !weir.running(); }));
    std::this_thread::sleep_for(std::chrono::microseconds(random_() % 20'000));
    weir.kill(SIGKILL);
    weir.wait();
  }
  static std::size_t lines_in(const fs::path& path) {
    const std::string text = slurp(path);
    return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  }
  [[nodiscard]] std::size_t baselines() const {
    std::size_t files = 0;
    std::error_code gone;  // a file that was there a moment ago
    for (fs::recursive_directory_iterator at(scratch_ / "baselines", gone), end; !gone && at != end;
         at.increment(gone)) {
      files += at->path().extension() == ".json" ? 1 : 0;
    }
    return files;
  }

  // Records in the journal; every line but the last must be whole.
  static std::size_t count_records(const fs::path& journal) {
    const std::string text = slurp(journal);
    std::size_t records = 0;
    std::size_t from = 0;
    for (std::size_t to; (to = text.find('\n', from)) != std::string::npos; from = to + 1) {
      EXPECT_TRUE(parse_json(std::string_view(text).substr(from, to - from))) << journal;
      ++records;
    }
    return records == 0 ? 0 : records - 1;  // the first line is the header
  }

  Scratch scratch_;
  std::mt19937 random_{20261120};
};

TEST_F(Killed, WhileMeasuringItKeepsEveryFinishedRecordAndGoesOnFromThere) {
  std::size_t resumed = 0;
  for (int moment = 0; moment < k_moments; ++moment) {
    // A log for each moment: an engine of the moment before may still be on its way to its end.
    const fs::path starts = scratch_ / ("starts-" + std::to_string(moment));
    const std::map<std::string, std::string> env{{"FAKE_ENGINE_LOG", starts.string()}};
    const bool begun = fs::exists(scratch_ / "out") && !fs::is_empty(scratch_ / "out");
    fs::path run;
    std::size_t before = 0;
    if (begun) {
      run = fs::directory_iterator(scratch_ / "out")->path();
      if (!fs::exists(run / "run.jsonl") || count_records(run / "run.jsonl") == 0) {
        fs::remove_all(scratch_ / "out");  // killed before anything was finished
        run.clear();
      } else {
        before = count_records(run / "run.jsonl");
        ++resumed;
      }
    }
    std::vector<std::string> arguments{"run", "--out", "out"};
    if (!run.empty()) arguments.emplace_back("--resume");
    Weir weir(scratch_, arguments, env);
    const std::size_t wanted = random_() % 16;
    kill_when(weir, [&] { return lines_in(starts) >= wanted; });
    if (run.empty() && fs::exists(scratch_ / "out") && !fs::is_empty(scratch_ / "out")) {
      run = fs::directory_iterator(scratch_ / "out")->path();
    }
    if (run.empty() || !fs::exists(run / "run.jsonl")) continue;
    const std::size_t after = count_records(run / "run.jsonl");
    const std::size_t started = lines_in(starts);
    EXPECT_GE(after, before);
    // Timed processes run one by one, and a record is on the disk before the next one starts.
    EXPECT_GE(after + 1, before + started) << "moment " << moment;
    if (after >= 400) fs::remove_all(scratch_ / "out");  // all done: begin again
  }
  EXPECT_GT(resumed, static_cast<std::size_t>(k_moments) / 4)
      << "most kills should meet a run in progress";
  fs::remove_all(scratch_ / "out");
  const fs::path starts = scratch_ / "starts-last";
  Weir last(scratch_, {"run", "--out", "out"}, {{"FAKE_ENGINE_LOG", starts.string()}});
  kill_when(last, [&] { return lines_in(starts) >= 3; });
  const auto nothing_runs = [&] {
    return processes_with(scratch_.path().string()).empty() && !has_process_in(scratch_.path());
  };
  EXPECT_TRUE(eventually(nothing_runs)) << "an engine outlived a killed weir";
}

TEST_F(Killed, WhileAcceptingItLeavesNoHalfWrittenBaseline) {
  const Ended first = weir(scratch_, {"run", "--runs", "2"});
  ASSERT_EQ(first.exit_code, 0) << first.err;
  std::size_t complete = 0;
  for (int moment = 0; moment < k_moments; ++moment) {
    // Every other time there are those of before, which it looks at.
    if (moment % 2 == 0) fs::remove_all(scratch_ / "baselines");
    const std::size_t wanted = moment % 2 == 0 ? random_() % 9 : 0;
    Weir weir(scratch_, {"baseline", "accept"});
    kill_when(weir, [&] { return baselines() >= wanted; });
    if (!fs::exists(scratch_ / "baselines")) continue;
    for (const auto& entry : fs::recursive_directory_iterator(scratch_ / "baselines")) {
      if (entry.path().extension() != ".json") continue;
      const auto json = parse_json(slurp(entry.path()));
      ASSERT_TRUE(json) << entry.path();
      EXPECT_EQ(json->value("schema", ""), "weir.baseline/1");
      ++complete;
    }
  }
  EXPECT_GT(complete, 0U) << "no kill saw a baseline";
  const Ended listed = weir(scratch_, {"baseline", "accept"});
  EXPECT_EQ(listed.exit_code, 0) << listed.err;
}

}  // namespace killed_test
}  // namespace weir::e2e
