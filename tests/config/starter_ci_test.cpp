// Tests of the CI workflows that weir init writes.
#include <gmock/gmock.h>

#include "gate/config/starter.hpp"

namespace weir::config {
namespace starter_ci_test {

using testing::HasSubstr;
using testing::Not;

StarterCi plain() { return {.version = "1.2.3", .folder = ".", .file = "weir.yaml"}; }

TEST(StarterCi, SaysNothingThatTheActionTakesByItself) {
  const std::string text = starter_github(plain());
  EXPECT_THAT(text, Not(HasSubstr("working-directory")));
  EXPECT_THAT(text, Not(HasSubstr("config:")));
  EXPECT_THAT(text, HasSubstr("timeout-minutes: 30\n"));
}

TEST(StarterCi, ComparesWithTheBaseWhereThereIsOneAndRequiresSomethingToCompareWith) {
  StarterCi ci = plain();
  EXPECT_THAT(starter_github(ci), Not(HasSubstr("against: none")));
  EXPECT_THAT(starter_gitlab(ci), HasSubstr("--against"));
  ci.has_base = false;
  EXPECT_THAT(starter_github(ci), HasSubstr("against: none"));
  EXPECT_THAT(starter_gitlab(ci), Not(HasSubstr("--against")));
  EXPECT_THAT(starter_github(ci), HasSubstr("require-baseline: ${{ github.event_name"));
  EXPECT_THAT(starter_gitlab(ci), HasSubstr("--require-baseline"));
}

TEST(StarterCi, ComparesTimesInPairsWhereNothingIsCounted) {
  StarterCi ci = plain();
  ci.folder = "bench";
  ci.has_counts = false;
  const std::string github = starter_github(ci), gitlab = starter_gitlab(ci);
  ci.forks = true;
  for (const std::string& text : {github, gitlab, starter_github(ci), starter_github_post(ci)}) {
    EXPECT_THAT(text, Not(HasSubstr("counts-only")));
    EXPECT_THAT(text, Not(HasSubstr("weir-baselines:")))
        << "those of another runner judge no times";
    EXPECT_THAT(text, Not(HasSubstr("workflow_dispatch:")));
    EXPECT_THAT(text, Not(HasSubstr("\n?")));
    EXPECT_THAT(text, Not(HasSubstr("\n\n\n")));
  }
  EXPECT_THAT(github, HasSubstr("# weir compares the times of every pull request"));
  EXPECT_THAT(github,
              HasSubstr("working-directory: \"bench\"\n          require-baseline: true\n"));
  EXPECT_THAT(gitlab, HasSubstr("--rules-from \\\"$rules\\\" \\\"${words[@]}\\\" --against"));
}

TEST(StarterCi, InstallsAVulkanLoaderWhereACellAsksForIt) {
  StarterCi ci = plain();
  EXPECT_THAT(starter_github(ci), Not(HasSubstr("libvulkan1")));
  EXPECT_THAT(starter_gitlab(ci), Not(HasSubstr("libvulkan1")));
  ci.vulkan = true;
  EXPECT_THAT(starter_github(ci), HasSubstr("libvulkan1"));
  EXPECT_THAT(starter_gitlab(ci), HasSubstr("libvulkan1"));
}

TEST(StarterCi, BuildsAndMakesWhatGitDoesNotHold) {
  StarterCi ci = plain();
  EXPECT_THAT(starter_github(ci), Not(HasSubstr("run: |"))) << "git holds all of it";
  ci.builds = {"cmake --build build"};
  ci.generated_models = {"models/tiny.gguf --arch llama"};
  const std::string github = starter_github(ci), gitlab = starter_gitlab(ci);
  EXPECT_THAT(github, HasSubstr("        run: |\n          cmake --build build\n"));
  EXPECT_THAT(github, HasSubstr("models: |\n            models/tiny.gguf --arch llama\n"));
  EXPECT_THAT(gitlab, HasSubstr("    - \"cmake --build build\"\n"));
  EXPECT_THAT(gitlab, HasSubstr("test -e models/tiny.gguf || weir model make models/tiny.gguf"));
}

TEST(StarterCi, EndsRedAtWhatNobodyKnowsHowToMake) {
  StarterCi ci = plain();
  ci.programs = {"./engine"};
  ci.models = {"models/large.gguf"};
  for (const std::string& text : {starter_github(ci), starter_gitlab(ci)}) {
    EXPECT_THAT(text, HasSubstr("command -v './engine' >/dev/null || { echo '::error"));
    EXPECT_THAT(text, HasSubstr("test -e 'models/large.gguf' || { echo '::error"));
  }
  EXPECT_THAT(starter_github(ci),
              HasSubstr("          # The runner has no ./engine: name the command that "
                        "builds it (build: in weir.yaml), or get it here\n"));
}

TEST(StarterCi, PostsForksFromAnotherWorkflow) {
  StarterCi ci = plain();
  ci.folder = "bench";
  ci.forks = true;
  const std::string measures = starter_github(ci), posts = starter_github_post(ci);
  EXPECT_THAT(measures, Not(HasSubstr("post:")));
  EXPECT_THAT(measures, Not(HasSubstr("\n\n\n")));
  EXPECT_THAT(measures, Not(HasSubstr("\n?")));
  EXPECT_THAT(posts, HasSubstr("working-directory: \"bench\"\n          counts-only: true\n"));
  EXPECT_THAT(posts, Not(HasSubstr("config:")));
}

TEST(StarterCi, MeasuresBesideATokenThatReadsAndPostsFromAnotherJob) {
  const std::string github = starter_github(plain());
  const std::size_t post = github.find("\n  post:\n");
  ASSERT_NE(post, std::string::npos);
  EXPECT_THAT(github.substr(0, post), Not(HasSubstr(": write")));
  EXPECT_THAT(github.substr(post), HasSubstr("uses: OWNER/weir/ci/post@v1"));
  EXPECT_THAT(github, HasSubstr("pull_request: {branches: [main, master]}"));
  const std::string gitlab = starter_gitlab(plain());
  EXPECT_THAT(gitlab, HasSubstr("rules=refs/remotes/target/$target"));
  const std::size_t measure = gitlab.find("\nweir-measure:\n"),
                    merged = gitlab.find("\nweir-merged:\n");
  ASSERT_LT(measure, merged);
  EXPECT_THAT(gitlab.substr(measure, merged - measure), Not(HasSubstr("WEIR_GITLAB_TOKEN")));
  EXPECT_THAT(gitlab, HasSubstr("WEIR_VERSION: \"1.2.3\", WEIR_FOLDER: \".\""));
}

TEST(StarterCi, KeepsHostileNamesText) {
  StarterCi ci = plain();
  ci.folder = "a b/${{ github.token }}\"\n  - run: x";
  ci.file = "it's $(x).yaml";
  const std::string github = starter_github(ci);
  EXPECT_THAT(github,
              HasSubstr("working-directory: \"a b/${{ '${{' }} github.token }}\\\"  - run: x\"\n"));
  const std::string gitlab = starter_gitlab(ci);
  EXPECT_THAT(gitlab, HasSubstr("--config 'it'\\\\''s $(x).yaml' --against"));
  EXPECT_THAT(gitlab, HasSubstr(", WEIR_CONFIG: \"it's $$(x).yaml\", "));
  EXPECT_THAT(gitlab, Not(HasSubstr("\n  - run")));
}

TEST(StarterCi, TakesNothingOutOfACacheThatAnEarlierEngineCouldHaveChanged) {
  StarterCi found = plain();
  found.models = {"large.gguf"};
  EXPECT_THAT(starter_github(found), Not(HasSubstr("actions/cache")));
  EXPECT_THAT(starter_gitlab(found), HasSubstr("\n  cache: []\n"));
  EXPECT_THAT(starter_gitlab(found), Not(HasSubstr("paths: [.cache")));
}

TEST(StarterCi, TakesRunsFromAFolderThatNoCommitCanHold) {
  const std::string gitlab = starter_gitlab(plain());
  EXPECT_THAT(gitlab, HasSubstr("out=$(mktemp -d)"));
  EXPECT_THAT(gitlab, HasSubstr("weir gate --out \\\"$out\\\" "));
  EXPECT_THAT(gitlab, Not(HasSubstr("weir-out/*")));
}

}  // namespace starter_ci_test
}  // namespace weir::config
