#include <random>

#include <gmock/gmock.h>

#include "gate/adapters/chrome_trace_reader.hpp"
#include "gate/profile/observed_totals.hpp"

#include "tests/adapters/read_data.hpp"

namespace weir::adapters {
namespace {

using testing::Contains;
using testing::HasSubstr;

profile::Observed read(std::string_view text, ChromeTraceLimits limits = {},
                       std::size_t chunk = std::string_view::npos) {
  ChromeTraceReader reader(limits);
  while (!text.empty()) {
    reader.feed(text.substr(0, chunk));
    text.remove_prefix(std::min(chunk, text.size()));
  }
  auto result = reader.finish();
  if (result) return std::move(*result);
  ADD_FAILURE() << result.error().message;
  return {};
}

profile::ObservedOp row(const profile::Observed& observed, std::string_view name) {
  for (const auto& op : observed.ops) {
    if (op.op == name) return op;
  }
  ADD_FAILURE() << "no row " << name;
  return {};
}

TEST(ChromeTrace, AddsUpByNameWithWhatIsNestedTakenOut) {
  const auto observed = read(read_data("constructed-pytorch-trace.json"));
  const auto kernel = row(observed, "gemv<float>");
  EXPECT_EQ(kernel.calls, 2);
  EXPECT_NEAR(*kernel.seconds, 40e-6, 1e-12);  // 20.5 + 19.5 us
  EXPECT_NEAR(*kernel.least, 19.5e-6, 1e-12);
  EXPECT_NEAR(*kernel.most, 20.5e-6, 1e-12);
  EXPECT_EQ(kernel.category, "kernel");
  const auto op = row(observed, "aten::mm");
  EXPECT_NEAR(*op.seconds, 50e-6, 1e-12);
  EXPECT_NEAR(*op.own_seconds, 40e-6, 1e-12);  // cudaLaunchKernel took 10 of it
  EXPECT_EQ(row(observed, "Memcpy HtoD (Pageable -> Device)").bytes, 4096);
  EXPECT_EQ(observed.context.device, "NVIDIA H200");
  EXPECT_THAT(observed.context.places, Contains("/home/someone/trace.json"));
  ASSERT_EQ(observed.counters.size(), 1U);
  EXPECT_EQ(observed.counters[0].points.size(), 2U);
  bool stream = false;
  for (const auto& track : observed.tracks) {
    if (track.name != "stream 7") continue;
    stream = true;
    EXPECT_EQ(track.events, 3);
    EXPECT_NEAR(track.seconds, 42e-6, 1e-12);
  }
  EXPECT_TRUE(stream);
}

TEST(ChromeTrace, AddsUpToTheTimeOfItsTracks) {
  // 10 us of decode hold 6 of layer, which hold 4 of mul: 10 us passed, not 20.
  const auto observed = read(R"({"traceEvents": [
      {"ph": "X", "name": "decode", "pid": 1, "tid": 1, "ts": 0, "dur": 10},
      {"ph": "X", "name": "layer", "pid": 1, "tid": 1, "ts": 2, "dur": 6},
      {"ph": "X", "name": "mul", "pid": 1, "tid": 1, "ts": 3, "dur": 4}]})");
  double sum = 0;
  for (const auto& total : profile::op_totals(observed, profile::GroupBy::op)) {
    sum += *total.seconds;
  }
  EXPECT_NEAR(sum, 10e-6, 1e-12);
  EXPECT_NEAR(*row(observed, "decode").seconds, 10e-6, 1e-12) << "the row says its whole time";
}

TEST(ChromeTrace, StacksBeginsAndEndsAndLetsTheLastBracketBeMissing) {
  const auto observed = read(read_data("constructed-begin-end-trace.json"));
  const auto decode = row(observed, "decode");
  EXPECT_NEAR(*decode.seconds, 100e-6, 1e-12);
  EXPECT_NEAR(*decode.own_seconds, 50e-6, 1e-12);  // layers of 30 and 20
  const auto layer = row(observed, "layer");
  EXPECT_EQ(layer.calls, 2);
  EXPECT_NEAR(*layer.seconds, 50e-6, 1e-12);
  const auto request = row(observed, "request");  // 300 and 200 us, over each other
  EXPECT_EQ(request.calls, 2);
  EXPECT_NEAR(*request.seconds, 500e-6, 1e-12);
  EXPECT_TRUE(request.covers_others);
  EXPECT_EQ(row(observed, "mark").seconds, std::nullopt);
  EXPECT_TRUE(observed.truncated);
}

TEST(ChromeTrace, IsTheSameInAnyOrderAndInChunksOfAnySize) {
  std::vector<std::string> events;
  for (int i = 0; i < 200; ++i) {
    events.push_back(fmt::format(R"({{"ph":"X","name":"outer","pid":1,"tid":{},"ts":{},"dur":8}})",
                                 i % 3, i * 10));
    events.push_back(fmt::format(R"({{"ph":"X","name":"inner","pid":1,"tid":{},"ts":{},"dur":3}})",
                                 i % 3, i * 10 + 2));
  }
  const auto text = [&] {
    return "{\"traceEvents\": [" + fmt::format("{}", fmt::join(events, ",\n")) + "]}";
  };
  const Json in_order = profile::to_json(read(text()));
  EXPECT_NEAR(*row(read(text()), "outer").own_seconds, 200 * 5e-6, 1e-9);
  EXPECT_EQ(profile::to_json(read(text(), {}, 7)), in_order);
  std::mt19937 random(1);
  std::shuffle(events.begin(), events.end(), random);
  const auto shuffled = read(text());
  EXPECT_NEAR(*row(shuffled, "outer").own_seconds, 200 * 5e-6, 1e-9);
  EXPECT_TRUE(shuffled.warnings.empty());
  // Beyond the window it says so; sums of whole spans are right all the same.
  const auto beyond = read(text(), {10, 50'000, 10'000, 2048});
  EXPECT_THAT(beyond.warnings, Contains(HasSubstr("too far out of order")));
  EXPECT_NEAR(*row(beyond, "outer").seconds, 200 * 8e-6, 1e-9);
}

TEST(ChromeTrace, BoundsNamesTracksAndPoints) {
  std::string text = "[";
  for (int i = 0; i < 500; ++i) {
    text += fmt::format(R"({{"ph":"X","name":"n{}","pid":{},"tid":1,"ts":{},"dur":1}},)", i, i, i);
    text += fmt::format(R"({{"ph":"C","name":"c","pid":1,"ts":{},"args":{{"v":{}}}}},)", i, i);
  }
  const auto observed = read(text, {100, 10, 5, 16});
  EXPECT_LE(observed.ops.size(), 11U);
  EXPECT_EQ(row(observed, "(other names)").calls, 490);
  EXPECT_LE(observed.tracks.size(), 5U);
  ASSERT_EQ(observed.counters.size(), 1U);
  EXPECT_LE(observed.counters[0].points.size(), 17U);
  EXPECT_EQ(observed.counters[0].points[0].value, 0);
}

TEST(ChromeTrace, SaysWhatDoesNotGoTogether) {
  const auto observed =
      read(R"([{"ph":"B","name":"a","pid":1,"tid":1,"ts":1},{"ph":"E","pid":1,"tid":2,"ts":2},
    {"ph":"X","name":"b","pid":1,"tid":1,"ts":1},{"name":"c"},{"ph":"e","cat":"x","id":1,"ts":3,"name":"d"},{}])");
  EXPECT_THAT(observed.warnings, Contains(HasSubstr("3 begins and ends do not go together")));
  EXPECT_THAT(observed.warnings, Contains(HasSubstr("1 events have no duration")));
  EXPECT_THAT(observed.warnings, Contains(HasSubstr("1 events have no phase")));
  ChromeTraceReader nothing;
  nothing.feed("{\"traceEvents\": []}");
  EXPECT_FALSE(nothing.finish());
}

}  // namespace
}  // namespace weir::adapters
