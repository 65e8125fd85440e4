#include <gmock/gmock.h>

#include "gate/config/starter.hpp"

namespace weir::config {
namespace {

using testing::HasSubstr;
using testing::Not;

StarterCi plain() { return {.version = "1.2.3", .folder = ".", .file = "weir.yaml"}; }

TEST(StarterCi, SaysNothingThatTheActionTakesByItself) {
  const std::string text = starter_github(plain());
  EXPECT_THAT(text, Not(HasSubstr("working-directory")));
  EXPECT_THAT(text, Not(HasSubstr("config:")));
  EXPECT_THAT(text, HasSubstr("timeout-minutes: 30\n"));
}

TEST(StarterCi, HoldsToTheBaseOnlyWhereItsProgramCanBeBuilt) {
  StarterCi found = plain();
  EXPECT_THAT(starter_github(found), HasSubstr("against: none"));
  found.builds = true;
  EXPECT_THAT(starter_github(found), Not(HasSubstr("against: none")));
}

TEST(StarterCi, InstallsAVulkanLoaderWhereACellAsksForIt) {
  StarterCi found = plain();
  EXPECT_THAT(starter_github(found), Not(HasSubstr("libvulkan1")));
  EXPECT_THAT(starter_gitlab(found), Not(HasSubstr("libvulkan1")));
  found.vulkan = true;
  EXPECT_THAT(starter_github(found), HasSubstr("libvulkan1"));
  EXPECT_THAT(starter_gitlab(found), HasSubstr("libvulkan1"));
}

TEST(StarterCi, EndsRedUntilTheEngineIsBuilt) {
  EXPECT_THAT(starter_github(plain()), HasSubstr("exit 1\n"));
  EXPECT_THAT(starter_gitlab(plain()), HasSubstr("&& exit 1\n"));
}

TEST(StarterCi, KeepsHostileNamesText) {
  StarterCi found = plain();
  found.folder = "a b/${{ github.token }}\"\n  - run: x";
  found.file = "it's $(x).yaml";
  const std::string github = starter_github(found);
  EXPECT_THAT(github,
              HasSubstr("working-directory: \"a b/${{ '${{' }} github.token }}\\\"  - run: x\"\n"));
  const std::string gitlab = starter_gitlab(found);
  EXPECT_THAT(gitlab, HasSubstr("--config 'it'\\\\''s $(x).yaml'\"\n"));
  EXPECT_THAT(gitlab, Not(HasSubstr("\n  - run")));
}

}  // namespace
}  // namespace weir::config
