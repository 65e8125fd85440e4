// Regressions planted in the history of an engine's repository, found by weir bisect. What a build
// makes of a commit is the reference engine with the faults that the commit's sources have.
#include <gmock/gmock.h>

#include "tests/e2e/planted_scene.hpp"

namespace weir::e2e {
namespace planted_bisect_test {

constexpr int k_commits = 12;
constexpr int k_broken = 6;  // this one does not build

struct Hidden {
  const char* plant;
  int commit;  // the commit that introduces it; later ones have it too
  const char *cell, *kind;
};
void PrintTo(const Hidden& hidden, std::ostream* out) { *out << hidden.plant; }

class PlantedHistory : public testing::TestWithParam<Hidden> {
 protected:
  void SetUp() override {
    make_tiny_model(scratch_, "tiny.gguf");
    spill(repo() / "weir.yaml",
          planted_config(planted_engine("mine", "./engine", "vulkan, instrument",
                                        "    build: [./build.sh]\n")));
    fs::copy_file(scratch_ / "tiny.gguf", repo() / "tiny.gguf");
    spill(repo() / ".gitignore", "tiny.gguf\nweir.yaml\nengine\n");
    spill_program(repo() / "build.sh",
                  "#!/bin/sh\ncd \"$(dirname \"$0\")\" && ! grep -q broken sources || exit 1\n"
                  "printf '#!/bin/sh\\nWEIR_ENGINE_PLANT=%s exec " WEIR_BINARY_DIR
                  "/weir-engine \"$@\"\\n' \"$(sed -n 's/^fault: //p' sources)\" > engine\n"
                  "chmod +x engine\n");
    git("init -q -b main");
    for (int i = 0; i <= k_commits; ++i) commit(i);
  }

  void commit(int number) {
    const Hidden& hidden = GetParam();
    spill(repo() / "sources", "change " + std::to_string(number) + "\n" +
                                  (number >= hidden.commit ? "fault: " : "fine: ") + hidden.plant +
                                  "\n" + (number == k_broken ? "broken\n" : ""));
    git("add -A");
    git("commit -q -m 'change " + std::to_string(number) + "'");
    git("rev-parse HEAD > '" + (scratch_ / "sha").string() + "'");
    std::string sha = slurp(scratch_ / "sha");
    sha.pop_back();
    shas_.push_back(sha);
  }

  void git(const std::string& arguments) const {
    const std::string line = "cd '" + repo().string() +
                             "' && env -u GIT_DIR HOME=/nonexistent git -c user.name=A -c "
                             "user.email=a@example.org -c commit.gpgsign=false " +
                             arguments;
    ASSERT_EQ(std::system(line.c_str()), 0) << line;
  }
  [[nodiscard]] fs::path repo() const { return scratch_ / "repo"; }

  Scratch scratch_;
  std::vector<std::string> shas_;
};

TEST_P(PlantedHistory, IsSearchedForTheCommitThatBroughtItIn) {
  const Hidden& hidden = GetParam();
  const Ended ended = weir(scratch_,
                           {"bisect", "-c", "repo/weir.yaml", "--out", "out", "--json", "-",
                            "--cell", hidden.cell, shas_.front(), "main"},
                           {{"WEIR_CACHE", (scratch_ / "cache").string()}});
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  const Json json = json_of(ended);
  EXPECT_EQ(json["first_bad"], shas_.at(static_cast<std::size_t>(hidden.commit))) << ended.err;
  const Json findings = cell_of(json["verdict"], hidden.cell).value("findings", Json::array());
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings[0].value("kind", ""), hidden.kind) << findings.dump(1);
}

INSTANTIATE_TEST_SUITE_P(
    Engine, PlantedHistory,
    testing::Values(Hidden{"cpu-split", 9, "mine/tiny/vulkan/decode", "sync_per_layer"},
                    Hidden{"slow-kernel", 2, "mine/tiny/vulkan/decode", "variant_changed"},
                    Hidden{"unbatched-qkv", 5, "mine/tiny/cpu/decode", "batching_lost"}),
    [](const auto& test) {
      std::string name = test.param.plant;
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

}  // namespace planted_bisect_test
}  // namespace weir::e2e
