// Which faults can be injected where, and what is said of the others.
#include "tools/engine/faults.hpp"

#include <gmock/gmock.h>

namespace weir::engine {
namespace faults_test {

using testing::AllOf;
using testing::HasSubstr;

std::string refusal(const char* name, const Target& target) {
  const auto fault = parse_fault(name);
  EXPECT_TRUE(fault) << name;
  if (!fault) return "";
  const auto checked = check_faults({&*fault, 1}, target);
  return checked ? "" : checked.error().message;
}

Target vulkan() { return {true, 1, {}}; }
Target cpu() { return {false, 2, {}}; }

TEST(Faults, AreRefusedWhereTheyWouldChangeNothing) {
  Target fused = vulkan(), unbatched = cpu(), fused_cpu = cpu(), single = cpu();
  fused.switches.fused_ffn = fused_cpu.switches.fused_ffn = true;
  unbatched.switches.batch = false;
  single.threads = 1;
  const struct {
    const char* name;
    Target target;
    const char* says;  // "": it is injected
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
  for (const auto& entry : cases) {
    const std::string message = refusal(entry.name, entry.target);
    EXPECT_EQ(message.empty(), *entry.says == '\0') << entry.name << ": " << message;
    EXPECT_THAT(message, HasSubstr(entry.says)) << entry.name;
  }
}

TEST(Faults, SayWhichOfThemTheCpuKnows) {
  const std::string message = refusal("cpu-split", cpu());
  EXPECT_THAT(message, AllOf(HasSubstr("unbatched-qkv"), HasSubstr("slow-kernel"),
                             testing::Not(HasSubstr("extra-copy"))));
}

TEST(Faults, ThatNobodyKnowsAreAnsweredWithThoseThatAreKnown) {
  const auto unknown = parse_fault("cpu_split");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, Code::usage);
  EXPECT_THAT(unknown.error().message, AllOf(HasSubstr("cpu_split"), HasSubstr("cpu-split")));
}

TEST(Faults, HaveALineEachOfHelp) {
  const std::string text = list_faults();
  for (const char* name : {"cpu-split", "op-on-cpu", "unbatched-qkv", "lost-fusion",
                           "extra-barriers", "extra-copy", "slow-kernel"}) {
    EXPECT_THAT(text, HasSubstr(std::string("\n  ") + name + " ")) << text;
  }
}

}  // namespace faults_test
}  // namespace weir::engine
