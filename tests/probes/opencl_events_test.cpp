// Tests of the OpenCL layer with events and times, on PoCL.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gate/base/text.hpp"
#include "gate/probes/read/timeline.hpp"

#include "tests/probes/support.hpp"

namespace weir::probes {
namespace opencl_events_test {

using observed::Command;
using observed::LoneCommand;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using Environment = std::map<std::string, std::string>;

const std::string k_layer = WEIR_BINARY_DIR "/lib/weir/probes/libweir_opencl.so";

// PoCL does not tie its clock, which is told in every profile of it.
const char* const k_untied = "as early as its submission allows";

Environment environment(const std::string& folder, const std::string& timing) {
  Environment out{{"OCL_ICD_VENDORS", "/etc/OpenCL/vendors/pocl.icd"},
                  {"POCL_CACHE_DIR", WEIR_BINARY_DIR "/pocl-cache"},
                  {"WEIR_PROBE_DIR", folder},
                  {"OPENCL_LAYERS", k_layer}};
  if (timing == "none") return out;
  out["WEIR_PROBE_EVENTS"] = "16";
  if (timing != "off") out["WEIR_PROBE_TIMING"] = timing;
  return out;
}

struct Played {
  Ran ran;
  std::vector<ProbeFile> files;
  profile::ProbeCounts counts;
  observed::Timeline timeline;

  [[nodiscard]] std::vector<LoneCommand> commands() const {
    return timeline.processes.empty() ? std::vector<LoneCommand>{} : timeline.processes[0].commands;
  }
};

Played play(const std::vector<std::string>& argv, const std::string& timing,
            const Environment& more = {}) {
  const Folder folder;
  Environment env = environment(folder.path(), timing);
  for (const auto& [name, value] : more) env[name] = value;
  Played out;
  out.ran = run(argv, env);
  out.files = probe_files(folder.path());
  out.counts = merge("opencl", out.files);
  const sys::RealFiles files;
  auto timeline = collect_timeline(files, folder.path());
  EXPECT_TRUE(timeline) << timeline.error().message;
  out.timeline = std::move(*timeline);
  return out;
}

Played scene(const std::string& name, const std::string& timing, const Environment& more = {}) {
  return play({WEIR_OPENCL_SCENES, name}, timing, more);
}

// With a driver that is PoCL and something else: see opencl_below.cpp.
Environment below(const std::string& what) {
  return {{"OPENCL_BELOW", what}, {"OPENCL_LAYERS", WEIR_OPENCL_BELOW ":" + k_layer}};
}

std::map<std::string, std::int64_t> count_kernels(const std::vector<LoneCommand>& commands) {
  std::map<std::string, std::int64_t> out;
  for (const LoneCommand& entry : commands) {
    if (entry.command.kind == Command::Kind::dispatch) ++out[entry.command.name];
  }
  return out;
}

std::int64_t timed(const std::vector<LoneCommand>& commands) {
  return std::count_if(commands.begin(), commands.end(),
                       [](const LoneCommand& entry) { return entry.device.has_value(); });
}

TEST(OpenClEvents, ChangeNoCount) {
  // The counts of each scene are in opencl_layer_test.cpp.
  for (const char* name : {"all", "churn", "killed", "idle", "threads", "copies", "held up"}) {
    Played plain = scene(name, "none");
    plain.counts.counts.erase("polls");  // as many as it takes
    for (const char* timing : {"off", "batched", "serialized"}) {
      Played played = scene(name, timing);
      EXPECT_EQ(played.ran.status, plain.ran.status) << name << ": " << played.ran.err;
      EXPECT_EQ(played.ran.err, "") << name;
      played.counts.counts.erase("polls");
      EXPECT_EQ(played.counts.counts, plain.counts.counts) << name << ", timing " << timing;
      EXPECT_EQ(played.counts.kernels, plain.counts.kernels) << name << ", timing " << timing;
      EXPECT_EQ(played.counts.devices, plain.counts.devices) << name << ", timing " << timing;
    }
  }
}

TEST(OpenClEvents, TellAsManyCommandsAndSyncsAsWereCounted) {
  for (const char* name : {"all", "churn", "killed", "threads", "copies", "held up"}) {
    for (const char* timing : {"off", "batched"}) {
      const Played played = scene(name, timing);
      const auto commands = played.commands();
      EXPECT_EQ(count_kernels(commands), played.counts.kernels) << name;
      std::int64_t bytes = 0, copies = 0, syncs = 0;
      for (const LoneCommand& entry : commands) {
        copies += entry.command.kind == Command::Kind::copy ? 1 : 0;
        bytes += static_cast<std::int64_t>(entry.command.bytes);
      }
      for (const observed::Wait& wait : played.timeline.processes.at(0).waits) {
        syncs += wait.sync ? 1 : 0;
      }
      EXPECT_EQ(copies, played.counts.counts.at("copies")) << name;
      EXPECT_EQ(bytes, played.counts.counts.at("device_copied_bytes")) << name;
      EXPECT_EQ(syncs, played.counts.counts.at("syncs")) << name;
      EXPECT_FALSE(played.timeline.dispatches_serialized);
    }
  }
}

// 9 launches, then write, fill, copy, 2 reads and a map, and a launch on the second queue.
TEST(OpenClEvents, TimeEveryCommandThatTheProgramWaitedFor) {
  for (const char* name : {"all", "churn", "killed", "threads", "copies"}) {
    for (const char* timing : {"batched", "serialized"}) {
      const Played played = scene(name, timing);
      const auto commands = played.commands();
      EXPECT_EQ(timed(commands), static_cast<std::int64_t>(commands.size())) << name;
      EXPECT_THAT(played.timeline.warnings, ElementsAre(HasSubstr(k_untied))) << name;
    }
  }
  const auto without = scene("all", "off");
  EXPECT_EQ(timed(without.commands()), 0);
  EXPECT_THAT(without.timeline.warnings, IsEmpty());
}

TEST(OpenClEvents, PlaceDeviceTimesBetweenTheCallAndTheWait) {
  // PoCL's own clock, and one that the driver ties to the CPU's.
  for (const Environment& more : {Environment{}, below("timer")}) {
    const Played played = scene("all", "batched", more);
    ASSERT_EQ(played.ran.status, 0) << played.ran.err;
    const auto commands = played.commands();
    ASSERT_THAT(commands, SizeIs(16));
    const std::vector<observed::Wait>& waits = played.timeline.processes[0].waits;
    constexpr double k_slack = 1e-4;  // seconds between two readings of one clock on a busy machine
    double before = 0;
    for (const LoneCommand& entry : commands) {
      ASSERT_TRUE(entry.device);
      EXPECT_GE(entry.device->begin, entry.enqueued - k_slack) << entry.command.name;
      EXPECT_GE(entry.device->end, entry.device->begin);
      if (entry.queue == 0) {  // in order
        EXPECT_GE(entry.device->begin, before - k_slack);
        before = entry.device->end;
      }
      // Some later wait saw it done.
      const bool waited = std::any_of(waits.begin(), waits.end(), [&](const observed::Wait& wait) {
        return wait.sync && wait.queue == entry.queue && wait.call.end >= entry.enqueued &&
               wait.call.end >= entry.device->end - k_slack;
      });
      EXPECT_TRUE(waited) << entry.command.name;
    }
  }
}

TEST(OpenClEvents, TieTheClocksByTheDriversTimersOnlyWhereTheyAreTheCpus) {
  EXPECT_THAT(scene("all", "batched", below("timer")).timeline.warnings, IsEmpty());
  EXPECT_THAT(scene("all", "batched", below("foreign timer")).timeline.warnings,
              ElementsAre(HasSubstr(k_untied)));
}

// Named by the direction; of a 4 x 4 image with 4 bytes a pixel 64 bytes, of 8 x 2 x 2 bytes 32.
TEST(OpenClEvents, TellTheKindAndTheBytesOfEachCopy) {
  const Played played = scene("copies", "batched");
  ASSERT_EQ(played.ran.status, 0) << played.ran.err;
  std::vector<std::string> lines;
  for (const LoneCommand& entry : played.commands()) {
    lines.push_back(fmt::format("{} {}", entry.command.name, entry.command.bytes));
  }
  ASSERT_THAT(lines, SizeIs(2 * 15));
  const std::vector<std::string> expected = {"copy to device 200",
                                             "copy to host 100",
                                             "copy to device 32",
                                             "copy to host 32",
                                             "copy buffer 128",
                                             "copy buffer 32",
                                             "fill 64",
                                             "fill 64",
                                             "copy image 64",
                                             "copy image 64",
                                             "copy image 64",
                                             "copy to device 64",
                                             "copy to host 64",
                                             "copy to device 32" /* a map to write */,
                                             "copy buffer 0" /* migration */};
  EXPECT_EQ(std::vector(lines.begin(), lines.begin() + 15), expected);
  EXPECT_EQ(std::vector(lines.begin() + 15, lines.end()), expected);
}

TEST(OpenClEvents, TellHowTheProgramWaited) {
  const Played played = scene("all", "batched");
  std::map<std::string, std::pair<int, int>> waits;  // all, syncs
  for (const observed::Wait& wait : played.timeline.processes.at(0).waits) {
    ++waits[wait.kind].first;
    waits[wait.kind].second += wait.sync ? 1 : 0;
    EXPECT_TRUE(wait.queue);
  }
  const std::map<std::string, std::pair<int, int>> expected = {
      {"wait for queue", {4, 1}},
      {"wait for event", {3, 2}},  // 2 calls, the second for two queues
      {"poll until done", {1, 1}},
      {"blocking call", {3, 3}},
  };
  EXPECT_EQ(waits, expected);
  // OpenCL has no numbers for queues: in the order they were made.
  const auto& queues = played.timeline.processes[0].queues;
  ASSERT_THAT(queues, SizeIs(2));
  EXPECT_EQ(queues[0].name, "opencl queue 0.0");
  EXPECT_EQ(queues[1].name, "opencl queue 0.1");
}

TEST(OpenClEvents, LoseNothingToEightThreadsOnOneQueue) {
  const Played played = scene("shared", "batched");
  ASSERT_EQ(played.ran.status, 0) << played.ran.err;
  EXPECT_EQ(played.counts.kernels.at("nothing"), 800);
  EXPECT_THAT(played.commands(), SizeIs(800));
  EXPECT_EQ(timed(played.commands()), 800);
}

// 44 launches out of order; 10 on a queue that the program lets go while they are held up.
TEST(OpenClEvents, KeepNothingOfTheProgramsAlive) {
  EXPECT_EQ(scene("held up", "none").ran.out, "0\n");
  const Played played = scene("held up", "batched");
  EXPECT_EQ(played.ran.out, "0\n");  // references of the context beyond those at the start
  EXPECT_EQ(played.ran.err, "");
  EXPECT_THAT(played.commands(), SizeIs(54));
  EXPECT_EQ(timed(played.commands()), 44);
  EXPECT_THAT(played.timeline.warnings, Contains(HasSubstr("could not be timed")));
}

// 16384 at most are kept, 2048 of them let go at a time.
TEST(OpenClEvents, LetTheOldestGoWhereTooManyAreHeldUp) {
  const Played played = scene("flood", "batched");
  EXPECT_EQ(played.ran.status, 0);
  EXPECT_THAT(text::lines(text::trim(played.ran.err)),
              ElementsAre(HasSubstr("too many commands are not known to be done")));
  EXPECT_EQ(played.counts.kernels.at("nothing"), 20000);
  EXPECT_THAT(played.commands(), SizeIs(20000));
  EXPECT_EQ(timed(played.commands()), 20000 - 2 * 2048);
}

TEST(OpenClEvents, TellCommandsThatFailedOrThatNobodyWaitedForWithoutTimes) {
  const Played failing = scene("failing", "batched");
  EXPECT_EQ(failing.ran.status, 0) << failing.ran.err;
  EXPECT_EQ(failing.ran.err, "");
  EXPECT_THAT(failing.commands(), SizeIs(3));
  EXPECT_EQ(timed(failing.commands()), 2);
  const Played exits = scene("exits", "batched");
  EXPECT_EQ(exits.ran.status, 0) << exits.ran.err;
  EXPECT_EQ(exits.ran.err, "");
  EXPECT_THAT(exits.commands(), SizeIs(8));
  EXPECT_EQ(timed(exits.commands()), 5);
}

TEST(OpenClEvents, GoOnWithoutTimesWhereQueuesHaveNoProfiling) {
  const Played played = scene("all", "batched", below("refuses"));
  EXPECT_EQ(played.ran.status, 0) << played.ran.err;
  EXPECT_THAT(text::lines(text::trim(played.ran.err)),
              ElementsAre(HasSubstr("a queue is without profiling")));
  EXPECT_EQ(count_kernels(played.commands()), played.counts.kernels);
  EXPECT_THAT(played.commands(), SizeIs(16));
  EXPECT_EQ(timed(played.commands()), 0);
  EXPECT_EQ(played.counts.counts.at("syncs"), 7);
}

// The property that the layer adds is not the program's.
TEST(OpenClEvents, LeaveTheFlagsOfAQueueInTheFileAsTheProgramAskedForThem) {
  const auto flags = [](const std::string& timing) {
    std::vector<std::uint32_t> out;
    const Played played = scene("copies", timing);
    for (const ProbeFile& file : played.files) {
      for (const ProbeQueue& queue : file.queues) out.push_back(queue.flags);
    }
    return out;
  };
  EXPECT_THAT(flags("none"), ElementsAre(0U, 2U));  // 2: CL_QUEUE_PROFILING_ENABLE
  EXPECT_THAT(flags("batched"), ElementsAre(0U, 2U));
}

TEST(OpenClEvents, KeepWhatWasToldWhenTheProcessIsKilled) {
  const Played played = scene("killed", "batched");
  EXPECT_EQ(played.ran.status, 128 + SIGKILL);
  EXPECT_THAT(played.commands(), SizeIs(10));
  EXPECT_EQ(timed(played.commands()), 10);
}

TEST(OpenClEvents, AreTheParentsAloneAfterAFork) {
  const Played played = scene("forking", "batched");
  EXPECT_EQ(played.ran.status, 0) << played.ran.err;
  EXPECT_EQ(played.ran.err, "");
  ASSERT_THAT(played.timeline.processes, SizeIs(1));
  EXPECT_EQ(timed(played.commands()), 4 + 3);
}

TEST(OpenClEvents, EndWithOneLineWhereTheFileCannotGrow) {
  // 20 000 commands of 56 bytes take more than one MiB.
  const Played full = scene("flood", "off", {{"WEIR_PROBE_EVENTS", "1"}});
  EXPECT_EQ(full.ran.status, 0);
  EXPECT_THAT(text::lines(text::trim(full.ran.err)),
              ElementsAre(HasSubstr("records no more events")));
  EXPECT_EQ(full.counts.kernels.at("nothing"), 20000);
  EXPECT_THAT(full.timeline.warnings, Contains(HasSubstr("the timeline ends early")));
  const Folder folder;
  const Ran lost =
      run({WEIR_OPENCL_SCENES, "all"}, environment(folder.path() + "/no/such", "batched"));
  EXPECT_EQ(lost.status, 0);
  EXPECT_THAT(text::lines(text::trim(lost.err)), SizeIs(1)) << lost.err;
}

// Debian's clpeak, unmodified: see opencl_layer_test.cpp.
TEST(OpenClEvents, TimeEveryLaunchOfAProgramThatNobodyHereWrote) {
  const Played played = play({"clpeak", "--kernel-latency"}, "batched");
  ASSERT_EQ(played.ran.status, 0) << played.ran.err;
  EXPECT_THAT(played.commands(), SizeIs(20002));
  EXPECT_EQ(timed(played.commands()), 20002);
  EXPECT_THAT(played.timeline.processes.at(0).waits, SizeIs(20001));
  EXPECT_EQ(played.counts.counts.at("syncs"), 20001);
}

}  // namespace opencl_events_test
}  // namespace weir::probes
