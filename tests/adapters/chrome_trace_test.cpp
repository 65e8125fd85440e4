// Tests of the reader of Chrome traces.
#include <cstdlib>
#include <random>

#include <gmock/gmock.h>

#include "gate/adapters/chrome_trace_reader.hpp"
#include "gate/base/json.hpp"
#include "gate/observed/totals.hpp"

#include "tests/adapters/read_data.hpp"
#include "tests/adapters/samples.hpp"
#include "tests/support/rounds.hpp"

namespace weir::adapters {
namespace chrome_trace_test {

using testing::Contains;
using testing::HasSubstr;

observed::Observed read(std::string_view text, ChromeTraceLimits limits = {},
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

observed::ObservedOp row(const observed::Observed& observed, std::string_view name) {
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
  EXPECT_NEAR(*kernel.min_seconds, 19.5e-6, 1e-12);
  EXPECT_NEAR(*kernel.max_seconds, 20.5e-6, 1e-12);
  EXPECT_EQ(kernel.category, "kernel");
  const auto op = row(observed, "aten::mm");
  EXPECT_NEAR(*op.seconds, 50e-6, 1e-12);
  EXPECT_NEAR(*op.seconds_without_nested, 40e-6, 1e-12);  // cudaLaunchKernel took 10 of it
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

TEST(ChromeTrace, CountsThePyTorchProfilersOwnSpanAsNoWork) {
  const auto observed = read(read_data("torch-trace.json"));
  EXPECT_TRUE(row(observed, "PyTorch Profiler (0)").includes_other_rows);
  EXPECT_FALSE(row(observed, "aten::addmm").includes_other_rows);
}

TEST(ChromeTrace, TellsWhenItsSpansTookPlaceWhereItIsAsked) {
  observed::ObservedMoments moments;
  ChromeTraceReader reader({}, &moments);
  reader.feed(R"([
      {"ph": "X", "name": "inner", "pid": 1, "tid": 2, "ts": 1000003, "dur": 4, "cat": "kernel"},
      {"ph": "X", "name": "outer", "pid": 1, "tid": 2, "ts": 1000000, "dur": 10},
      {"ph": "B", "name": "step", "pid": 1, "tid": 3, "ts": 1000001},
      {"ph": "E", "pid": 1, "tid": 3, "ts": 1000006},
      {"ph": "b", "name": "request", "id": 7, "cat": "r", "pid": 1, "tid": 3, "ts": 1000002},
      {"ph": "e", "name": "request", "id": 7, "cat": "r", "pid": 1, "tid": 3, "ts": 1000009},
      {"ph": "B", "name": "never ended", "pid": 1, "tid": 3, "ts": 1000007},
      {"ph": "M", "name": "thread_name", "pid": 1, "tid": 3, "args": {"name": "worker"}}])");
  ASSERT_TRUE(reader.finish());
  std::vector<std::string> spans;
  for (const auto& span : moments.spans) {
    spans.push_back(fmt::format("{} {} {:.6f}+{:.6f}{}", moments.tracks.at(span.track).name,
                                moments.rows.at(span.row).name, span.at, span.length,
                                span.async ? " async" : ""));
  }
  EXPECT_THAT(
      spans, testing::UnorderedElementsAre("2 inner 1.000003+0.000004", "2 outer 1.000000+0.000010",
                                           "worker step 1.000001+0.000005",
                                           "worker request 1.000002+0.000007 async"));
  EXPECT_EQ(moments.rows.at(0).category, "kernel");
}

TEST(ChromeTrace, KeepsShortTimesOfAClockThatCountsFrom1970) {
  // A double of 1.7e15 us holds quarters of one: 0.1 us would be none, 1.1 us would be 1.
  for (const double length : {0.1, 1.1}) {
    std::string text = "[";
    for (int i = 0; i < 1000; ++i) {
      // Each begins where the one before ends, in tenths of a microsecond.
      const auto tenths = static_cast<int>(length * 10 + 0.5) * i;
      text +=
          fmt::format(R"({}{{"ph":"X","name":"k","pid":1,"tid":1,"ts":{}.{},"dur":{}}})",
                      i == 0 ? "" : ",", 1'700'000'000'000'000 + tenths / 10, tenths % 10, length);
    }
    text += R"(,{"ph":"C","name":"c","ts":1700000000000000,"args":{"n":1}}])";
    observed::ObservedMoments moments;
    ChromeTraceReader reader({}, &moments);
    reader.feed(text);
    const auto observed = reader.finish();
    ASSERT_TRUE(observed);
    EXPECT_NEAR(*row(*observed, "k").seconds_without_nested, length * 1e-3, length * 1e-7);
    ASSERT_EQ(moments.spans.size(), 1000U);
    EXPECT_EQ(moments.origin, 1.7e9);
    for (const auto& span : moments.spans) EXPECT_NEAR(span.length, length / 1e6, 1e-12);
    EXPECT_NEAR(moments.spans.back().at, 999 * length / 1e6, 1e-12);
    EXPECT_EQ(observed->counters.at(0).points.at(0).at, 1.7e9) << "on the document's own clock";
  }
}

TEST(ChromeTrace, TakesBytesAsTrafficOnlyOfWhatMovesThem) {
  // ggml's bytes of an op are those of its result: 9216 of a product that reads a whole matrix.
  const auto observed = read(read_data("constructed-ggml-profile-chrome-trace.json"));
  std::size_t copies = 0;
  for (const auto& op : observed.ops) {
    EXPECT_EQ(op.bytes.has_value(), op.category == "copy") << op.op;
    copies += op.category == "copy" ? 1 : 0;
  }
  EXPECT_GT(copies, 0U);
}

TEST(ChromeTrace, HasTheBackendsThatGgmlCallsProcesses) {
  const auto observed = read(read_data("constructed-ggml-profile-chrome-trace.json"));
  EXPECT_EQ(row(observed, "GET_ROWS").backend, "CPU");
  EXPECT_EQ(row(observed, "RMS_NORM").backend, "Vulkan0");
  EXPECT_EQ(row(read(read_data("constructed-pytorch-trace.json")), "aten::mm").backend, "");
}

TEST(ChromeTrace, ReadsTextsAndNumbersOfEveryLength) {
  // They are looked at eight bytes at a time: ends at every place of those, and beyond them.
  for (std::size_t length = 1; length <= 40; ++length) {
    const std::string name(length, 'n'), digits(std::min<std::size_t>(length, 15), '1');
    const auto observed =
        read(fmt::format(R"([{{"ph":"X","name":"{0}","pid":1,"tid":1,"ts":{1},"dur":0.{1}}},
                             {{"ph":"X","name":"{0}\u00e9","pid":1,"tid":1,"ts":{1},"dur":2e0}}])",
                         name, digits));
    EXPECT_NEAR(*row(observed, name).seconds, std::stod("0." + digits) / 1e6, 1e-20) << length;
    EXPECT_NEAR(*row(observed, name + "\u00e9").seconds, 2e-6, 1e-20) << length;
    EXPECT_TRUE(observed.warnings.empty()) << length;
  }
}

TEST(ChromeTrace, AddsUpToTheTimeOfItsTracks) {
  // 10 us of decode hold 6 of layer, which hold 4 of mul: 10 us passed, not 20.
  const auto observed = read(R"({"traceEvents": [
      {"ph": "X", "name": "decode", "pid": 1, "tid": 1, "ts": 0, "dur": 10},
      {"ph": "X", "name": "layer", "pid": 1, "tid": 1, "ts": 2, "dur": 6},
      {"ph": "X", "name": "mul", "pid": 1, "tid": 1, "ts": 3, "dur": 4}]})");
  double sum = 0;
  for (const auto& total : observed::op_totals(observed, observed::GroupBy::op)) {
    sum += *total.seconds;
  }
  EXPECT_NEAR(sum, 10e-6, 1e-12);
  EXPECT_NEAR(*row(observed, "decode").seconds, 10e-6, 1e-12) << "the row says its whole time";
}

TEST(ChromeTrace, TakesEventsWhoseKeysNeedEscapes) {
  const auto observed = read(R"({"traceEvents": [
      {"ph": "X", "name": "k", "ts": 0, "dur": 10, "args": {"C:\\x": 1, "say \"a\"": "b"}},
      {"ph": "X", "name": "j", "ts": 20, "dur": 10}]})");
  EXPECT_EQ(row(observed, "k").calls, 1);
  EXPECT_EQ(row(observed, "j").calls, 1);
}

TEST(ChromeTrace, StacksBeginsAndEndsAndLetsTheLastBracketBeMissing) {
  const auto observed = read(read_data("constructed-begin-end-trace.json"));
  const auto decode = row(observed, "decode");
  EXPECT_NEAR(*decode.seconds, 100e-6, 1e-12);
  EXPECT_NEAR(*decode.seconds_without_nested, 50e-6, 1e-12);  // layers of 30 and 20
  const auto layer = row(observed, "layer");
  EXPECT_EQ(layer.calls, 2);
  EXPECT_NEAR(*layer.seconds, 50e-6, 1e-12);
  const auto request = row(observed, "request");  // 300 and 200 us, over each other
  EXPECT_EQ(request.calls, 2);
  EXPECT_NEAR(*request.seconds, 500e-6, 1e-12);
  EXPECT_TRUE(request.includes_other_rows);
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
  const Json in_order = write_fields(read(text()));
  EXPECT_NEAR(*row(read(text()), "outer").seconds_without_nested, 200 * 5e-6, 1e-9);
  EXPECT_EQ(write_fields(read(text(), {}, 7)), in_order);
  std::mt19937 random(1);
  std::shuffle(events.begin(), events.end(), random);
  const auto shuffled = read(text());
  EXPECT_NEAR(*row(shuffled, "outer").seconds_without_nested, 200 * 5e-6, 1e-9);
  EXPECT_TRUE(shuffled.warnings.empty());
  // Beyond the window it says so; sums of whole spans are right all the same.
  const auto beyond = read(text(), {10, 10'000, 10'000, 2048});
  EXPECT_THAT(beyond.warnings, Contains(HasSubstr("too far out of order")));
  EXPECT_NEAR(*row(beyond, "outer").seconds, 200 * 8e-6, 1e-9);
}

// In chunks of one byte every event goes the long way, through a parser; in one chunk none does.
TEST(ChromeTrace, SaysTheSameOfEverySampleInChunksOfEverySize) {
  std::size_t traces = 0;
  for (const SampleFile& sample : samples()) {
    if (std::string_view(sample.format) != "chrome-trace") continue;
    ++traces;
    const std::string text = read_data(sample.out);
    const Json unchunked = write_fields(read(text));
    for (std::size_t chunk = 1; chunk <= text.size(); chunk += tests::k_one_of) {
      ASSERT_EQ(write_fields(read(text, {}, chunk)), unchunked) << sample.name << " by " << chunk;
    }
  }
  EXPECT_EQ(traces, 4U);  // in the table of samples.hpp
}

TEST(ChromeTrace, SaysTheSameOfOddEventsEitherWay) {
  const std::string deep = std::string(70, '[') + std::string(70, ']');
  const std::string allowed = std::string(60, '[') + std::string(60, ']');
  const std::string events[] = {
      R"({"ph":"X","name":"a\u0062\"c","cat":"k\\","pid":"1","tid":null,"ts":"1.5","dur":2})",
      "{\"ph\":\"X\",\"name\":\"\xC2\xB5s\",\"pid\":1,\"tid\":1.50,\"ts\":1e1,\"dur\":2E-1}",
      "{\"ph\":\"X\",\"name\":\"\xB5s\",\"ts\":1,\"dur\":2}",     // no UTF-8
      "{\"ph\":\"X\",\"name\":\"a\tb\",\"ts\":1,\"dur\":2}",      // a tab in a text: no JSON
      R"({"ph":"X","name":"a\qb","ts":1,"dur":2})",               // no escape
      R"({"\u0070h":"X","name":"hidden key","ts":1,"dur":2})",    //
      R"({"ph":"\u0058","name":"hidden phase","ts":1,"dur":2})",  //
      R"({"ph":"X","name":"first","name":"last","ts":9,"ts":1,"dur":2})",
      R"({"ph":"X","name":"args twice","ts":1,"dur":2,"args":{"bytes":1},"args":7})",
      R"({"ph":"X","name":"big","cat":"gpu_memcpy","ts":1,"dur":2,"args":{"n":1e300,"m":-0.0,"bytes":"64"}})",
      R"({"ph":"X","name":"too big","ts":1,"dur":2,"args":{"n":1e400}})",
      R"({"ph":"X","name":"leading zero","ts":01,"dur":2})",
      R"({"ph":"X","name":"none","ts":1,"dur":NaN})",
      R"({"ph":"X","name":"no word","ts":1,"dur":2,"args":{"n":oh}})",
      R"({"ph":"X","name":"no brackets","ts":1,"dur":2,"args":{"n":[1}]})",
      R"({"ph":"X","name":7,"ts":1,"dur":2,"pid":123456789012345678901234,"tid":-4})",
      R"({ "ph" : "X" , "name" : "blanks" , "ts" : 1 , "dur" : 2 , "args" : { } })",
      R"({"ph":"X","name":"deep","ts":1,"dur":2,"args":{"n":)" + allowed + "}}",
      R"({"ph":"X","name":"too deep","ts":1,"dur":2,"args":{"n":)" + deep + "}}",
      R"({"ph":"C","name":"c","pid":1,"ts":1,"args":{"\u0061":1,"b":"2","c":3}})",
      R"({"ph":"b","name":"r","id":{"y":1,"x":[2.0]},"ts":1})",
      R"({"ph":"e","name":"r","id":{ "x": [2.0], "y": 1 },"ts":4})",
      R"({"ph":"M","name":"process_name","pid":1,"args":{"name":"\u0041"}})",
      R"({"ph":7,"ts":1})",
      "7",
      "[1]",
      "\"text\"",
      "{}",
  };
  // Each alone, behind one that is whole.
  for (const std::string& event : events) {
    const std::string text =
        R"([{"ph":"X","name":"whole","pid":1,"tid":1,"ts":1,"dur":1},)" + event + "]\n";
    const auto quick = read(text);
    for (const std::size_t chunk : {std::size_t{1}, std::size_t{5}, text.size() - 3}) {
      EXPECT_EQ(write_fields(read(text, {}, chunk)), write_fields(quick)) << event;
    }
    EXPECT_EQ(row(quick, "whole").calls, 1) << event;
  }
  const auto read_event = [](std::string_view event) { return read(fmt::format("[{}]\n", event)); };
  EXPECT_EQ(row(read_event(events[0]), "ab\"c").category, "k\\");
  EXPECT_NEAR(*row(read_event(events[1]), "\xC2\xB5s").seconds, 0.2e-6, 1e-15);
  EXPECT_EQ(row(read_event(events[5]), "hidden key").calls, 1);
  EXPECT_NEAR(*row(read_event(events[7]), "last").seconds, 2e-6, 1e-15);
  EXPECT_EQ(row(read_event(events[9]), "big").bytes, 64);
}

// Compared two by two, the first X, the B and the second X of one time went round in a circle.
TEST(ChromeTrace, OrdersEventsOfOneTime) {
  const auto observed = read(R"([
    {"ph":"X","name":"short","pid":1,"tid":1,"ts":5,"dur":2},
    {"ph":"X","name":"long","pid":1,"tid":1,"ts":5,"dur":10},
    {"ph":"X","name":"of another","pid":1,"tid":2,"ts":5,"dur":4},
    {"ph":"B","name":"span","pid":1,"tid":1,"ts":5},
    {"ph":"X","name":"within","pid":1,"tid":1,"ts":5,"dur":1},
    {"ph":"E","pid":1,"tid":1,"ts":6},
    {"ph":"B","name":"nothing","pid":1,"tid":1,"ts":20},
    {"ph":"E","pid":1,"tid":1,"ts":20}])");
  EXPECT_TRUE(observed.warnings.empty());
  EXPECT_NEAR(*row(observed, "long").seconds_without_nested, 8e-6,
              1e-15);  // 10, of which 2 are of "short"
  EXPECT_NEAR(*row(observed, "short").seconds_without_nested, 1e-6,
              1e-15);  // 2, of which 1 is of "span"
  EXPECT_NEAR(*row(observed, "span").seconds_without_nested, 0, 1e-15);  // all of it "within"
  EXPECT_NEAR(*row(observed, "nothing").seconds, 0, 1e-15);
}

TEST(ChromeTrace, PutsInOrderWhatIsLateByAsMuchAsTheWindow) {
  // 9 of 10 are inner; each outer comes 900 events after those within it.
  std::string text = "[";
  std::string late;
  for (int i = 0; i < 3000; ++i) {
    text += fmt::format(R"({{"ph":"X","name":"inner","pid":1,"tid":1,"ts":{},"dur":1}},)", i * 2);
    if (i % 9 == 0) {
      late += fmt::format(R"({{"ph":"X","name":"outer","pid":1,"tid":1,"ts":{},"dur":17.5}},)",
                          i * 2 - 0.25);
    }
    if (i % 810 == 809) text += std::exchange(late, "");  // with 90 of them: 900 events
  }
  text += late + "{}]";
  const auto within = read(text, {1000, 10'000, 10'000, 2048});
  EXPECT_TRUE(within.warnings.empty());
  // 334 outer ones of 17.5 us; 9 inner ones of 1 us are in each but the last, which has 3000 % 9
  // = 3.
  EXPECT_NEAR(*row(within, "outer").seconds_without_nested, (333 * 8.5 + 14.5) * 1e-6, 1e-12);
  const auto beyond = read(text, {100, 10'000, 10'000, 2048});
  EXPECT_THAT(beyond.warnings, Contains(HasSubstr("too far out of order")));
  EXPECT_NEAR(*row(beyond, "outer").seconds, 334 * 17.5e-6, 1e-12) << "sums are right all the same";
}

// Expected: what strtod makes of the same text.
TEST(ChromeTrace, TakesTimesToTheLastDigit) {
  for (const char* text :
       {"0", "7", "0.1", "123.456", "999999999.999", "0.123456789012345", "9007199254740992",
        "9007199254740993", "12345678901.23456789", "1e-3", "1.5e2", "1234567890123456"}) {
    const auto observed =
        read(fmt::format(R"([{{"ph":"X","name":"n","pid":1,"tid":1,"ts":1,"dur":{}}}])", text));
    EXPECT_EQ(*row(observed, "n").seconds, std::strtod(text, nullptr) / 1e6) << text;
  }
}

// A name is known by its text, however long that is and however it is written.
TEST(ChromeTrace, AddsUpANameHoweverItIsWritten) {
  const std::string name(190, 'k'),
      event = R"({{"ph":"X","name":"{}{}","pid":1,"tid":1,"ts":{},"dur":2}})";
  std::string text = "[";
  for (int i = 0; i < 3; ++i) {
    text += fmt::format(fmt::runtime(event + ","), name, "ä", i);
    text += fmt::format(fmt::runtime(event + ","), name, "\\u00e4", i);
  }
  const auto observed = read(text + "{}]");
  ASSERT_EQ(observed.ops.size(), 1U);
  EXPECT_EQ(observed.ops[0].calls, 6);
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
  EXPECT_THAT(observed.warnings, Contains(HasSubstr("3 begins and ends do not match")));
  EXPECT_THAT(observed.warnings, Contains(HasSubstr("1 events have no duration")));
  EXPECT_THAT(observed.warnings, Contains(HasSubstr("1 events have no phase")));
  ChromeTraceReader nothing;
  nothing.feed("{\"traceEvents\": []}");
  EXPECT_FALSE(nothing.finish());
}

}  // namespace chrome_trace_test
}  // namespace weir::adapters
