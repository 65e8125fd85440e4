// Measures the cost of marks that are off, in instructions by callgrind. Counts are exact, so this
// can be a test.
#include "gate/base/text.hpp"

#include "tests/probes/instrument/support.hpp"

namespace weir::probes {
namespace {

constexpr long k_engine_marks = 100;  // marks of each kind (off.c)

// Function -> instructions in it and in what it calls.
std::map<std::string, long> instructions(const char* program) {
  const Folder folder;
  const std::string out = folder.path() + "/callgrind";
  const Ran counted = run({"valgrind", "--tool=callgrind", "--callgrind-out-file=" + out, program},
                          {{"LD_BIND_NOW", "1"}});
  EXPECT_EQ(counted.status, 0) << counted.err;
  const Ran annotated = run({"callgrind_annotate", "--inclusive=yes", "--threshold=100", out}, {});
  EXPECT_EQ(annotated.status, 0) << annotated.err;
  std::map<std::string, long> counts;
  for (std::string line : text::lines(annotated.out)) {
    const std::size_t at = line.find(":off_");
    if (at == std::string::npos) continue;
    const std::string name = line.substr(at + 5, line.find(' ', at) - at - 5);
    std::erase(line, ',');
    counts[name] = std::atol(line.c_str());
  }
  return counts;
}

struct Cost {
  const char* mark;
  long most;
};

void expect_costs(const char* program, const std::vector<Cost>& costs) {
  const auto counts = instructions(program);
  ASSERT_TRUE(counts.contains("nothing"));
  for (const Cost& cost : costs) {
    ASSERT_TRUE(counts.contains(cost.mark)) << cost.mark;
    const long taken = counts.at(cost.mark) - counts.at("nothing");
    EXPECT_GE(taken, k_engine_marks) << cost.mark << " was not measured";
    // The part that the hundred share (the function's frame) is less than one instruction for each.
    EXPECT_LE(taken / k_engine_marks, cost.most) << cost.mark;
  }
}

#ifdef __x86_64__
TEST(InstrumentOff, CostsTwoInstructionsInLine) {
  // A test of memory and a jump that is not taken.
  expect_costs(WEIR_INSTRUMENT_OFF, {{"op_begin", 2},
                                     {"op_end", 2},
                                     {"wait_begin", 2},
                                     {"dispatch", 2},
                                     {"barrier", 2},
                                     {"submit", 2},
                                     {"sync", 2},
                                     {"token", 2}});
}

TEST(InstrumentOff, CostsSevenInstructionsThroughTheAbi) {
  // Call, the linker's jump, the landing pad of releases, address of the flag, test, jump, return;
  // and one for each argument.
  expect_costs(WEIR_INSTRUMENT_OFF_SHARED, {{"op_end", 7},
                                            {"wait_begin", 7},
                                            {"barrier", 7 + 1},
                                            {"sync", 7 + 1},
                                            {"token", 7 + 1},
                                            {"dispatch", 7 + 2},
                                            {"submit", 7 + 2},
                                            {"op_begin", 7 + 3}});
}
#endif

}  // namespace
}  // namespace weir::probes
