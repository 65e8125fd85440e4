// The journal of a bisection, also one that was cut off or written by others.
#include "gate/flow/bisect_journal.hpp"

#include <gmock/gmock.h>

#include "tests/support/memory_files.hpp"

namespace weir::flow {
namespace bisect_journal_test {

using ::testing::HasSubstr;

BisectRequest example_request() {
  BisectRequest request;
  request.good = std::string(40, 'a');
  request.bad = std::string(40, 'b');
  request.cells = {"*/decode"};
  request.judges_by_times = true;
  request.config_hash = "1234";
  return request;
}

TEST(BisectJournals, KeepWhatWasTriedAlsoWithTheirEndTornOff) {
  sys::MemoryFiles files;
  ASSERT_TRUE(files.make_dirs("/b"));
  BisectStep step{
      std::string(40, 'c'), "a \"subject\"", source::TrialOutcome::bad, "why", true, 1.5, "/b/run"};
  {
    auto journal = begin_bisect(files, "/b", example_request());
    ASSERT_TRUE(journal) << journal.error().message;
    ASSERT_TRUE((*journal)->append(dump_json(write_fields(step))));
    step.outcome = source::TrialOutcome::skipped;
    ASSERT_TRUE((*journal)->append(dump_json(write_fields(step))));
  }
  const std::string text = files.read("/b/bisect.jsonl", 1 << 20).value();
  // Cut anywhere in its last line, that line is lost and nothing else.
  const std::size_t last = text.rfind('\n', text.size() - 2) + 1;
  for (const std::size_t end : {last, last + 1, text.size() - 1}) {
    const auto state = parse_bisect(std::string_view(text).substr(0, end));
    ASSERT_TRUE(state) << state.error().message;
    ASSERT_EQ(state->steps.size(), 1U);
    EXPECT_EQ(state->steps[0].outcome, source::TrialOutcome::bad);
    EXPECT_EQ(state->steps[0].subject, "a \"subject\"");
    EXPECT_EQ(state->whole_bytes, last);
  }
  const auto state = parse_bisect(text);
  ASSERT_TRUE(state);
  ASSERT_EQ(state->steps.size(), 1U) << "of a commit that was tried again, the last one";
  EXPECT_EQ(state->steps[0].outcome, source::TrialOutcome::skipped);
  EXPECT_EQ(state->request.cells, example_request().cells);
  EXPECT_TRUE(state->request.judges_by_times);
}

TEST(BisectJournals, NameTheLineThatIsNone) {
  sys::MemoryFiles files;
  ASSERT_TRUE(files.make_dirs("/b"));
  { ASSERT_TRUE(begin_bisect(files, "/b", example_request())); }
  const std::string head = files.read("/b/bisect.jsonl", 1 << 20).value();
  for (const auto& [text, says] :
       {std::pair{std::string(), "nothing was asked for"},
        {std::string("{}\n"), "line 1"},
        {std::string("[]\n"), "line 1"},
        {head + "no json\n", "line 2"},
        {head + "{\"commit\": \"c\", \"tried\": \"maybe\"}\n", "line 2"}}) {
    const auto state = parse_bisect(text);
    ASSERT_FALSE(state) << text;
    EXPECT_EQ(state.error().code, Code::data);
    EXPECT_THAT(state.error().message, HasSubstr(says));
  }
}

}  // namespace bisect_journal_test
}  // namespace weir::flow
