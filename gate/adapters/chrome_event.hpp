// Inside of the reader of Chrome traces: an event's text. Not for others. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::adapters {

// One event of a Chrome trace out of its text, without a tree of it: what makes traces of gigabytes
// quick.
//
// Strict on purpose: what is taken is JSON beyond doubt. Whatever is not (or not whole, nested
// deeply, has numbers of unusual size) is left to a parser, whose tree written out again is then
// scanned: both ways give the same event. A library is not taken, as what is looked for is the end
// of each event in a text that comes in chunks, and Debian has none that finds it and can be linked
// into a program.
//
// Views into the event's text: values as JSON, a text with its quotes. Empty: absent, or not of the
// type that it should be. Of members that occur twice the last one.
struct ChromeEvent {
  struct Number {
    std::string_view key, value;  // the key with its quotes
  };
  std::string_view phase, name, category;  // texts
  std::string_view at, length;             // numbers or texts
  std::string_view pid, tid, id, id2;      // anything
  // Of "args", where that is an object:
  bool has_args = false;
  std::size_t args = 0;               // how many
  std::vector<Number> numbers;        // those that are numbers, the first 1000
  std::string_view args_name, shape;  // texts
  std::string_view bytes;             // a number or a text
  bool empty = true;                  // no member at all

  void clear();
};

// The event that `text` begins with: the length of its text, or 0 where a parser should look.
// `written`: it is what that parser's tree was written out as.
[[nodiscard]] std::size_t scan_chrome_event(std::string_view text, ChromeEvent& event,
                                            bool written = false);

// What a value says, of those above. Texts are shown_text; nothing where it is absent.
[[nodiscard]] std::optional<std::string> event_text(std::string_view value);
// Finite; also one that is written as a text (rocprof).
[[nodiscard]] std::optional<double> event_number(std::string_view value);
// Ids of processes, threads and spans are numbers or texts; "" where there is none.
[[nodiscard]] std::string event_id(std::string_view value);

}  // namespace weir::adapters
