// Branches by name, where somebody who may push has branches and tags of other names.
#include "gate/flow/repository.hpp"

#include "gate/sys/world.hpp"

#include "tests/source/scene.hpp"

namespace weir::flow {
namespace repository_test {

class Branches : public source::Scene {
 protected:
  void SetUp() override {
    Scene::SetUp();
    ours_ = commit("ours");
    hers_ = commit("hers");
  }
  // Returns the commit of the branch `name` in a clone with `refs`, or "none" or "refused".
  std::string find(const std::string& name, const std::map<std::string, std::string>& refs) {
    for (const auto& [ref, commit] : refs) git({"update-ref", ref, commit});
    std::string found = "refused";
    const auto repository = Repository::containing(world_.world(), repository_);
    EXPECT_TRUE(repository) << repository.error().message;
    if (const auto branch = (*repository)->find_branch("--waivers-ref", name))
      found = branch->value_or("none");
    for (const auto& [ref, commit] : refs) git({"update-ref", "-d", ref});
    return found;
  }

  sys::RealWorld world_;
  std::string ours_, hers_;
};

TEST_F(Branches, OfOriginAreNoBranchesWithAnotherName) {
  for (const bool has_remote : {false, true}) {
    if (has_remote) git({"remote", "add", "origin", at("elsewhere")});
    EXPECT_EQ(find("origin/perf", {{"refs/remotes/origin/origin/perf", hers_}}), "none");
    EXPECT_EQ(find("origin/perf", {{"refs/remotes/origin/origin/perf", hers_},
                                   {"refs/remotes/origin/perf", ours_}}),
              ours_);
    EXPECT_NE(find("origin/perf", {{"refs/heads/origin/perf", hers_}}), hers_);
    EXPECT_NE(find("origin/perf", {{"refs/tags/origin/perf", hers_}}), hers_);
    EXPECT_EQ(find("perf", {{"refs/remotes/perf", hers_}}), "none");
    EXPECT_EQ(find("perf", {{"refs/tags/perf", hers_}}), "none");
  }
}

TEST_F(Branches, AreLocalOnesOrThoseOfARemote) {
  git({"remote", "add", "fork", at("elsewhere")});
  EXPECT_EQ(find("perf", {{"refs/heads/perf", ours_}}), ours_);
  EXPECT_EQ(find("perf", {{"refs/remotes/origin/perf", ours_}}), ours_);
  EXPECT_EQ(find("topic/perf", {{"refs/remotes/origin/topic/perf", ours_}}), ours_);
  EXPECT_EQ(find("origin/perf", {{"refs/remotes/origin/perf", ours_}}), ours_);
  EXPECT_EQ(find("fork/perf", {{"refs/remotes/fork/perf", ours_}}), ours_);
  EXPECT_EQ(find("refs/remotes/origin/perf", {{"refs/remotes/origin/perf", ours_}}), ours_);
  EXPECT_EQ(find(ours_, {}), ours_);
  EXPECT_EQ(find("perf", {}), "none");
}

}  // namespace repository_test
}  // namespace weir::flow
