// Tests the counts of each token in a timeline.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gate/observed/timeline.hpp"

namespace weir::observed {
namespace token_counts_test {

using testing::ElementsAre;

Command command(Command::Kind kind) {
  Command out;
  out.kind = kind;
  return out;
}

// Builds a prompt and three tokens. Each has two dispatches, a barrier and a copy in one
// submission, and waits after its graph. The second token waits twice.
Process three_tokens() {
  Process process;
  process.queues = {{"GPU", "vulkan queue 0.0"}};
  process.graphs = {{{}, 16}, {{}, 1}};
  for (int i = 0; i < 4; ++i) {
    const double at = 10.0 * i;
    process.graph_runs.push_back({i == 0 ? 0U : 1U, 1, {at, at + 2}});
    Submission sent;
    sent.thread = 1;
    sent.call = {at + 1, at + 1.5};
    sent.buffers = {{{command(Command::Kind::dispatch), command(Command::Kind::barrier),
                      command(Command::Kind::dispatch), command(Command::Kind::copy)},
                     {},
                     {}}};
    process.submissions.push_back(sent);
    process.waits.push_back({0, 1, "wait for fence", {at + 3, at + 4}, true});
    process.waits.push_back({0, 1, "poll", {at + 4, at + 5}, false});
  }
  process.waits.push_back({std::nullopt, 1, "device idle", {26, 27}, true});
  return process;
}

std::string counts_text(const Process& process) {
  Timeline timeline;
  timeline.processes = {process};
  std::string out;
  for (const ObservedCount& count : token_counts(timeline)) {
    out += fmt::format("{} {}\n", count.metric.name, fmt::join(count.values, " "));
  }
  return out;
}

// The end of the last token is unknown, so nothing is reported about it.
TEST(TokenCounts, AreOfWhatIsDoneUntilTheNextGraphBegins) {
  EXPECT_EQ(counts_text(three_tokens()),
            "dispatches_per_token 2 2\nbarriers_per_token 1 1\ncopies_per_token 1 1\n"
            "submits_per_token 1 1\nsyncs_per_token 1 2\n");
}

TEST(TokenCounts, AreOfTheDevicesProbeWhereMarksTellTheSame) {
  Process process = three_tokens();
  process.queues.push_back({"GPU", "marks", true});
  for (Submission marks : std::vector(process.submissions)) {
    marks.queue = 1;
    marks.buffers[0].device = Interval{0, 1};  // timed, but not by the device
    marks.buffers[0].commands.resize(1);
    process.submissions.push_back(marks);
  }
  EXPECT_EQ(counts_text(process), counts_text(three_tokens()));
}

TEST(TokenCounts, AreAbsentWhereNobodyKnows) {
  Process node_by_node = three_tokens(), threads = three_tokens(), prompts = three_tokens(),
          together = three_tokens();
  for (GraphRun& run : node_by_node.graph_runs) run.node_by_node = true;
  threads.graph_runs[2].thread = 2;
  prompts.graphs[1].rows = 16;
  EXPECT_EQ(counts_text(node_by_node), "");
  EXPECT_EQ(counts_text(threads), "");
  EXPECT_EQ(counts_text(prompts), "");
  together.graphs[1] = {{}, 4, 1, true};
  EXPECT_EQ(counts_text(together), "") << "what one of four tokens takes is not known";
  Process no_barriers = three_tokens();
  for (Submission& submission : no_barriers.submissions) {
    std::erase_if(submission.buffers[0].commands,
                  [](const Command& it) { return it.kind == Command::Kind::barrier; });
  }
  EXPECT_THAT(counts_text(no_barriers), testing::Not(testing::HasSubstr("barriers")));
  // The prompt has the only one, so tokens have none.
  no_barriers.submissions[0].buffers[0].commands.push_back(command(Command::Kind::barrier));
  EXPECT_THAT(counts_text(no_barriers), testing::HasSubstr("barriers_per_token 0 0"));
}

TEST(TokenCounts, AreInAProfileThatIsSaved) {
  Timeline timeline;
  timeline.processes = {three_tokens()};
  const Observed observed = to_observed(timeline);
  ASSERT_EQ(observed.counts.size(), 5U);
  EXPECT_EQ(observed.counts[0].metric.name, "dispatches_per_token");
  EXPECT_THAT(observed.counts[0].values, ElementsAre(2, 2));
}

}  // namespace token_counts_test
}  // namespace weir::observed
