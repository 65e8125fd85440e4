// Which faults can be planted where, and what is said of the others.
#include "tools/engine/plants.hpp"

#include <gmock/gmock.h>

namespace weir::engine {
namespace plants_test {

using testing::AllOf;
using testing::HasSubstr;

std::string refusal(const char* name, const Ground& ground) {
  const auto plant = parse_plant(name);
  EXPECT_TRUE(plant) << name;
  if (!plant) return "";
  const auto checked = check_plants({&*plant, 1}, ground);
  return checked ? "" : checked.error().message;
}

Ground vulkan() { return {true, 1, {}}; }
Ground cpu() { return {false, 2, {}}; }

TEST(Plants, AreRefusedWhereTheyWouldChangeNothing) {
  Ground fused = vulkan(), unbatched = cpu(), fused_cpu = cpu(), single = cpu();
  fused.switches.fused_ffn = fused_cpu.switches.fused_ffn = true;
  unbatched.switches.batch = false;
  single.threads = 1;
  const struct {
    const char* name;
    Ground ground;
    const char* says;  // "": it is planted
  } cases[] = {
      {"cpu-split", vulkan(), ""},
      {"cpu-split", fused, ""},
      {"cpu-split", cpu(), "--backend vulkan"},
      {"op-on-cpu", vulkan(), ""},
      {"op-on-cpu", fused, "--fused-ffn leaves no op SWIGLU"},
      {"op-on-cpu", cpu(), "--backend vulkan"},
      {"unbatched-qkv", vulkan(), ""},
      {"unbatched-qkv", cpu(), ""},
      {"unbatched-qkv", unbatched, "--no-batch does that already"},
      {"lost-fusion", fused, ""},
      {"lost-fusion", fused_cpu, ""},
      {"lost-fusion", vulkan(), "without --fused-ffn"},
      {"lost-fusion", cpu(), "without --fused-ffn"},
      {"extra-barriers", vulkan(), ""},
      {"extra-barriers", cpu(), ""},
      {"extra-barriers", single, "-t 2"},
      {"extra-copy", vulkan(), ""},
      {"extra-copy", cpu(), "--backend vulkan"},
      {"slow-kernel", vulkan(), ""},
      {"slow-kernel", cpu(), ""},
  };
  for (const auto& one : cases) {
    const std::string said = refusal(one.name, one.ground);
    EXPECT_EQ(said.empty(), *one.says == '\0') << one.name << ": " << said;
    EXPECT_THAT(said, HasSubstr(one.says)) << one.name;
  }
}

TEST(Plants, SayWhichOfThemTheCpuKnows) {
  const std::string said = refusal("cpu-split", cpu());
  EXPECT_THAT(said, AllOf(HasSubstr("unbatched-qkv"), HasSubstr("slow-kernel"),
                          testing::Not(HasSubstr("extra-copy"))));
}

TEST(Plants, ThatNobodyKnowsAreAnsweredWithThoseThatAreKnown) {
  const auto unknown = parse_plant("cpu_split");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, Code::usage);
  EXPECT_THAT(unknown.error().message, AllOf(HasSubstr("cpu_split"), HasSubstr("cpu-split")));
}

TEST(Plants, HaveALineEachOfHelp) {
  const std::string text = plants_text();
  for (const char* name : {"cpu-split", "op-on-cpu", "unbatched-qkv", "lost-fusion",
                           "extra-barriers", "extra-copy", "slow-kernel"}) {
    EXPECT_THAT(text, HasSubstr(std::string("\n  ") + name + " ")) << text;
  }
}

}  // namespace plants_test
}  // namespace weir::engine
