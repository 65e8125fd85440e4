// Tests of splitting streams into events.
#include "gate/adapters/event_stream.hpp"

#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace weir::adapters {
namespace event_stream_test {

using Events = std::vector<std::pair<std::string, std::string>>;  // type, data

struct Read {
  Events events;
  std::string error;
  bool complete = true;  // finish()
  friend bool operator==(const Read&, const Read&) = default;
};

Read read(Framing framing, std::string_view bytes, std::size_t step, EventLimits limits = {}) {
  EventReader reader(framing, limits);
  Read got;
  const auto take = [&](std::string_view type, std::string_view data) {
    got.events.emplace_back(type, data);
  };
  for (std::size_t at = 0; at < bytes.size() && got.error.empty(); at += step) {
    const auto fed = reader.feed(bytes.substr(at, step), take);
    if (!fed) got.error = fed.error().message;
  }
  got.complete = reader.finish(take);
  return got;
}

// The examples of the standard (9.2.6, "Parsing an event stream", and 9.2.7 "Interpreting") among
// them. Where weir differs, the case says so.
const struct {
  const char* what;
  std::string bytes;
  Events events;
  bool complete = true;
} k_streams[] = {
    {"nothing", "", {}},
    {"three lines of data", "data: YHOO\ndata: +2\ndata: 10\n\n", {{"", "YHOO\n+2\n10"}}},
    {"a comment, two events, and one that lacks its blank line",
     ": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n",
     {{"", "first event"}, {"", "second event"}},
     false},
    {"one blank behind the colon goes, others stay",
     "data:a\n\ndata: a\n\ndata:  a\n\n",
     {{"", "a"}, {"", "a"}, {"", " a"}}},
    {"empty data is no event (in the standard it is one)", "data\n\ndata:\n\n", {}},
    {"two lines of empty data are one of a line's end", "data\ndata\n\n", {{"", "\n"}}},
    {"CR, LF, CRLF in one stream",
     "data: a\r\rdata: b\n\ndata: c\r\n\r\n",
     {{"", "a"}, {"", "b"}, {"", "c"}}},
    {"CRLF is one end of a line", "data: a\r\ndata: b\r\n\r\n", {{"", "a\nb"}}},
    {"a type, for its event alone",
     "event: error\ndata: a\n\ndata: b\n\n",
     {{"error", "a"}, {"", "b"}}},
    {"an event of a type and no data", "event: ping\n\ndata: a\n\n", {{"", "a"}}},
    {"fields that mean nothing", "retry: 10\nid: 4\nfoo: bar\nbar\ndata: a\n\n", {{"", "a"}}},
    {"a colon first is a comment", ":data: a\n\n:\n\n", {}},
    {"a byte order mark, only at the start",
     "\xEF\xBB\xBF"
     "data: a\n\n\xEF\xBB\xBF"
     "data: b\n\n",
     {{"", "a"}}},
    {"NUL is a byte as any", std::string("data: a\0b\n\n", 11), {{"", std::string("a\0b", 3)}}},
    {"the end in a field's name", "data: a\n\nda", {{"", "a"}}, false},
};

TEST(ServerSentEvents, AreReadAsTheStandardSaysInWhateverChunks) {
  for (const auto& c : k_streams) {
    const Read wanted{c.events, "", c.complete};
    for (std::size_t step = 1; step <= c.bytes.size() + 1; ++step) {
      EXPECT_EQ(read(Framing::server_sent, c.bytes, step), wanted) << c.what << ", by " << step;
    }
  }
}

TEST(JsonLines, AreReadInWhateverChunksTheLastOneAlsoWithoutItsEnd) {
  const struct {
    const char* what;
    std::string bytes;
    Events events;
  } cases[] = {
      {"lines", "{\"a\":1}\n{}\n", {{"", "{\"a\":1}"}, {"", "{}"}}},
      {"CRLF", "{}\r\n{}\r\n", {{"", "{}\r"}, {"", "{}\r"}}},
      {"blank lines", "\n{}\n  \n\r\n{}\n", {{"", "{}"}, {"", "{}"}}},
      {"no end", "{}\n{\"b\":2}", {{"", "{}"}, {"", "{\"b\":2}"}}},
  };
  for (const auto& c : cases) {
    for (std::size_t step = 1; step <= c.bytes.size() + 1; ++step) {
      EXPECT_EQ(read(Framing::json_lines, c.bytes, step), (Read{c.events, "", true})) << c.what;
    }
  }
}

TEST(EventReader, TakesLinesAndEventsUpToTheirLimitsAndNothingBehind) {
  const EventLimits limits{.line_bytes = 10, .event_bytes = 8};
  const struct {
    const char* what;
    Framing framing;
    std::string bytes;
    std::size_t events;
    const char* error;
  } cases[] = {
      {"a line of 10", Framing::server_sent, "data: 1234\n\n", 1, ""},
      {"a line of 11", Framing::server_sent, "data: a\n\ndata: 12345\n\ndata: b\n\n", 1,
       "a line of more than 10 bytes"},
      {"a comment of 11", Framing::server_sent, ":1234567890\n\n", 0,
       "a line of more than 10 bytes"},
      {"an event of 8", Framing::server_sent, "data:1234\ndata:12\n\n", 1, ""},
      {"an event of 9", Framing::server_sent, "data:1234\ndata:1234\n\n", 0,
       "an event of more than 8 bytes"},
      {"a line of JSON of 11", Framing::json_lines, "{}\n12345678901\n{}\n", 1,
       "a line of more than 10 bytes"},
  };
  for (const auto& c : cases) {
    for (std::size_t step = 1; step <= c.bytes.size() + 1; ++step) {
      const Read got = read(c.framing, c.bytes, step, limits);
      EXPECT_EQ(got.events.size(), c.events) << c.what << ", by " << step;
      EXPECT_EQ(got.error, c.error) << c.what << ", by " << step;
    }
  }
}

TEST(EventReader, TakesNothingAfterItWentWrong) {
  EventReader reader(Framing::server_sent, {.line_bytes = 10, .event_bytes = 10});
  int events = 0;
  const auto take = [&](std::string_view, std::string_view) { ++events; };
  EXPECT_FALSE(reader.feed(std::string(11, 'x'), take));
  EXPECT_FALSE(reader.feed("\ndata: a\n\n", take));
  EXPECT_FALSE(reader.finish(take));
  EXPECT_EQ(events, 0);
}

}  // namespace event_stream_test
}  // namespace weir::adapters
