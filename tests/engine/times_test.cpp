// Times that the device took for command buffers and for each dispatch in them, as the engine tells
// them through weir/instrument.h.
#include <regex>

#include <gmock/gmock.h>

#include "tests/engine/engine_run.hpp"

namespace weir::engine {
namespace times_test {

struct Sums {
  double buffers = 0, dispatches = 0;  // milliseconds of the device, of buffers of tokens
  int buffer_count = 0, dispatch_count = 0;
};

// Out of the table that the library prints where nobody reads its file.
Sums timed(const std::string& model, const char* profile) {
  const probes::Ran ran =
      run_engine(model, {"--backend", "vulkan", "-n", "16"}, {{"WEIR_PROFILE", profile}});
  EXPECT_EQ(ran.status, 0) << ran.err;
  const std::size_t from = ran.err.find("\ncommand buffers ");
  EXPECT_NE(from, std::string::npos) << ran.err;
  if (from == std::string::npos) return {};
  const std::string text = ran.err.substr(from);
  Sums sums;
  std::smatch match;
  const std::regex buffers(R"(\ntokens +(\d+) +([\d.]+) )");
  if (std::regex_search(text, match, buffers)) {
    sums.buffer_count = std::stoi(match[1]);
    sums.buffers = std::stod(match[2]);
  }
  const std::regex dispatches(R"(\n +\d+ +\w+ +(\d+) +([\d.]+) )");
  for (std::sregex_iterator at(text.begin(), text.end(), dispatches), end; at != end; ++at) {
    sums.dispatch_count += std::stoi((*at)[1]);
    sums.dispatches += std::stod((*at)[2]);
  }
  return sums;
}

// Three layers of 9 dispatches, and 3 behind them. What a buffer takes beside its dispatches are
// barriers, a copy of a row, and whatever else the processor does, for here it is the device: the
// best of some runs tells the two apart.
TEST(RealTimes, OfDispatchesAddUpToThoseOfTheirCommandBuffers) {
  const probes::Folder folder;
  const std::string path = write_model(folder, "f32", of_type(second_model(), "f32"));
  double closest = 1;
  for (int round = 0; round < 10 && closest > 0.1; ++round) {
    const Sums sums = timed(path, "cb,dispatch");
    ASSERT_EQ(sums.buffer_count, 16);
    ASSERT_EQ(sums.dispatch_count, 16 * (3 * 9 + 3));
    ASSERT_GT(sums.buffers, 0);
    EXPECT_LE(sums.dispatches, sums.buffers * 1.0001) << "they are within";
    closest = std::min(closest, 1 - sums.dispatches / sums.buffers);
  }
  EXPECT_LE(closest, 0.1);
}

TEST(RealTimes, OfBuffersAloneHaveNoDispatches) {
  const probes::Folder folder;
  const std::string path = write_model(folder, "f32", of_type(second_model(), "f32"));
  const Sums sums = timed(path, "cb");
  EXPECT_EQ(sums.buffer_count, 16);
  EXPECT_EQ(sums.dispatch_count, 0);
}

// A prompt of 4 tokens at once, then two of the three tokens: the prefill gives the first.
TEST(RealTimes, OfAPrefillAreApartFromThoseOfTokens) {
  const probes::Folder folder;
  const std::string path = write_model(folder, "f32", of_type(second_model(), "f32"));
  const probes::Ran ran = run_engine(path, {"--backend", "vulkan", "-p", "4", "-n", "3"},
                                     {{"WEIR_PROFILE", "cb,dispatch"}});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_THAT(ran.err, testing::ContainsRegex("\ntokens +2 "));
  EXPECT_THAT(ran.err, testing::ContainsRegex("\ntokens, prefill +1 "));
}

// On the CPU nothing reaches a device, and ops are timed only where they are asked for.
TEST(RealTimes, OfNoDeviceAreSaidOnceToBeMissing) {
  const probes::Folder folder;
  const std::string path = write_model(folder, "f32", of_type(second_model(), "f32"));
  const std::string missing = ": no work of a device was marked";
  const struct {
    const char* profile;
    std::string says;  // at its end
  } cases[] = {
      {"cb,dispatch",
       "weir: WEIR_PROFILE=cb,dispatch" + missing + "; WEIR_PROFILE=ops times ops on the CPU\n"},
      {"ops,cb", "weir: WEIR_PROFILE=ops,cb" + missing + "\n"},
      {"ops", " evaluations\n"},
  };
  for (const auto& entry : cases) {
    const probes::Ran ran =
        run_engine(path, {"--backend", "cpu", "-n", "4"}, {{"WEIR_PROFILE", entry.profile}});
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_THAT(ran.err, testing::EndsWith(entry.says));
    const bool tables = ran.err.find("weir: profile of process") != std::string::npos;
    EXPECT_EQ(tables, std::string(entry.profile).starts_with("ops")) << ran.err;
  }
}

}  // namespace times_test
}  // namespace weir::engine
