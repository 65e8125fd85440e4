// A script in plain Python that prints tokens: its calls a token, and regressions that were planted
// in it, each red with its name first.
#include <gmock/gmock.h>

#include "tests/e2e/weir_process.hpp"

namespace weir::e2e {
namespace python_calls_test {

using testing::HasSubstr;

constexpr const char* k_script = R"(import sys

class Scheduler:
    def __init__(self):
        self.requests = [{"id": i, "tokens": []} for i in range(4)]
    def make_request_data(self):
        return [self.describe(request) for request in self.requests]
    def describe(self, request):
        return (request["id"], len(request["tokens"]))

class Engine:
    def __init__(self):
        self.scheduler = Scheduler()
    def step(self):
        data = self.scheduler.make_request_data()
        for request in self.scheduler.requests:
            request["tokens"].append(len(data))

tokens = int(sys.argv[1])
engine = Engine()
for _ in range(tokens):
    engine.step()
    pass
print(f"{tokens} tokens, 41.5 tokens/s")
)";

class PythonCalls : public testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists("/usr/bin/python3")) GTEST_SKIP() << "no Python here";
    spill(scratch_ / "weir.yaml", R"(version: 1
engines:
  mine:
    command: [/usr/bin/python3, engine.py, "{tokens}"]
    output: generic
    facts: {generated_tokens: {regex: '^(\d+) tokens'}}
    metrics: {decode_tokens_per_second: {regex: '([\d.]+) tokens/s'}}
    probes: [python]
    python_lines: true
backends: {cpu: {}}
prompts: {decode: {prompt_tokens: 0, tokens: 32}}
)");
    spill(scratch_ / "engine.py", k_script);
    accepted_ = weir(scratch_, {"baseline", "accept", "--counts-only"});
  }
  // Puts a line, or several, behind each step.
  Ended gate_with(const std::string& line) {
    std::string script = k_script;
    spill(scratch_ / "engine.py", script.replace(script.find("pass\n"), 4, line));
    return weir(scratch_, {"gate", "--counts-only"});
  }

  Scratch scratch_;
  Ended accepted_;
};

TEST_F(PythonCalls, AreRedWithTheNameOfWhatIsCalledMore) {
  ASSERT_EQ(accepted_.exit_code, 0) << accepted_.out << accepted_.err;
  const Ended same = gate_with("pass");
  EXPECT_EQ(same.exit_code, 0) << same.out << same.err;
  struct Change {
    std::string line, why;
  };
  const std::vector<Change> changes = {
      {"engine.scheduler.make_request_data()",
       "The host calls `describe` 8 times a token; it was 4."},
      {"import time; time.sleep(0.001)", "The host now calls `sleep`, once a token."},
      {"import copy; copy.deepcopy(engine.scheduler.requests[0]['id'])",
       "The host now calls `deepcopy`, once a token."},
      {"import logging; logging.getLogger('engine').warning('step')",
       "The host now calls `_log`, once a token."},
      {"import threading; lock = globals().setdefault('lock', threading.Lock())\n"
       "    lock.acquire(); lock.release()",
       "The host now calls `acquire`, once a token."},
      {"x = 0\n    while x < 20000: x += 1", "The host runs 2000"},
  };
  for (const Change& change : changes) {
    const Ended ended = gate_with(change.line);
    EXPECT_EQ(ended.exit_code, 1) << change.line << ended.out << ended.err;
    EXPECT_THAT(ended.out, HasSubstr("why: " + change.why)) << change.line;
  }
}

constexpr const char* k_slow_script = R"(#!/usr/bin/python3
import sys
def scale(x):
    return 2 * x
for token in range(int(sys.argv[1])):
    for i in range(100): scale(i)
print(f"{sys.argv[1]} tokens, 20.5 tokens/s")
)";

TEST_F(PythonCalls, AreCountedByTheCommandThatASlowerCandidateOfAnAbEndsWith) {
  spill_program(scratch_ / "old.py", "#!/usr/bin/python3\nprint('24 tokens, 41.5 tokens/s')\n");
  spill_program(scratch_ / "new.py", k_slow_script);
  const Ended slower =
      weir(scratch_, {"ab", "./old.py", "./new.py", "--budget", "20s", "--", "24"});
  EXPECT_EQ(slower.exit_code, 1) << slower.out << slower.err;
  const std::string command = "weir ab ./old.py ./new.py --probes python --counts-only -- 24";
  EXPECT_THAT(slower.out, testing::EndsWith("calls of Python's functions of both, by name:\n  " +
                                            command + "\n"));
  const Ended counted = weir(
      scratch_, {"ab", "./old.py", "./new.py", "--probes", "python", "--counts-only", "--", "24"});
  EXPECT_EQ(counted.exit_code, 1) << counted.out << counted.err;
  EXPECT_THAT(counted.out, HasSubstr("why: The host now calls `scale`, 2400 times a run."));
}

}  // namespace python_calls_test
}  // namespace weir::e2e
