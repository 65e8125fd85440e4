// The unmodified llama-server on the CPU, through the example config.
#include "tests/e2e/weir_process.hpp"

namespace weir::e2e {
namespace {

const std::string k_root = WEIR_SOURCE_DIR;
const std::string k_engine = k_root + "/engines/llama.cpp/llama-server";
constexpr const char* k_alone = "llama-server/tiny-llama/cpu/hello@c1";
constexpr const char* k_together = "llama-server/tiny-llama/cpu/hello@c4";

class LlamaServer : public testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(k_engine)) GTEST_SKIP() << "no llama-server under engines/";
    ASSERT_TRUE(fs::exists(k_root + "/models/tiny-llama.gguf")) << "run ci/models first";
    write_config("");
  }

  // The example config; llama-server behind a wrapper that adds arguments.
  void write_config(const std::string& more) {
    spill_program(scratch_ / "server", "#!/bin/sh\nexec " + k_engine + " \"$@\" " + more + "\n");
    std::string text = slurp(k_root + "/configs/llama-server.yaml");
    const auto replace = [&](const std::string& from, const std::string& to) {
      const auto at = text.find("[" + from);
      const auto place = at == std::string::npos ? text.find(from) : at + 1;
      ASSERT_NE(place, std::string::npos) << from;
      text.replace(place, from.size(), to);
    };
    replace("../engines/llama.cpp/llama-server", "./server");
    replace("../models/tiny-llama.gguf", k_root + "/models/tiny-llama.gguf");
    spill(scratch_ / "weir.yaml", text);
  }

  Json gate(int exit_code, const std::vector<std::string>& more = {}) {
    std::vector<std::string> words{"gate", "--counts-only", "--json", "-"};
    words.insert(words.end(), more.begin(), more.end());
    const Ended ended = weir(scratch_, words);
    EXPECT_EQ(ended.exit_code, exit_code) << ended.err;
    EXPECT_EQ(processes_with(scratch_.path().filename()), std::vector<std::string>{});
    return json_of(ended);
  }

  Scratch scratch_;
};

TEST_F(LlamaServer, PassesAgainstItsOwnCountsAndFailsWhenRequestsNoLongerShareBatches) {
  const Ended accepted = weir(scratch_, {"baseline", "accept", "--counts-only"});
  ASSERT_EQ(accepted.exit_code, 0) << accepted.err;
  const Json same = gate(0);
  // A request alone: one graph a token.
  EXPECT_EQ(metric_of(cell_of(same, k_alone), "graphs_per_token")["current"], 1);
  EXPECT_EQ(metric_of(cell_of(same, k_alone), "graphs_per_token")["nature"], "exact");
  EXPECT_EQ(cell_of(same, k_alone)["verdict"], "pass");
  const Json together = metric_of(cell_of(same, k_together), "graphs_per_token");
  EXPECT_EQ(together["nature"], "nearly exact");
  EXPECT_LT(together.value("current", 1.0), 0.5) << "four requests share most graphs";

  // One slot: requests wait for each other, and every token is a graph of its own again.
  write_config("-np 1");
  const Json apart = gate(1, {"--cell", "*@c4"});
  const Json graphs = metric_of(cell_of(apart, k_together), "graphs_per_token");
  EXPECT_EQ(graphs["verdict"], "fail");
  EXPECT_GE(graphs.value("current", 0.0), 1);
}

}  // namespace
}  // namespace weir::e2e
