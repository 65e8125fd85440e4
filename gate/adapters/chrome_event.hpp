// Inside of the reader of Chrome traces: scans an event's text. Not for other modules. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::adapters {

// One event of a Chrome trace, read from its text without building a tree. This makes reading
// traces of gigabytes quick.
//
// Strict on purpose: only undoubted JSON is taken. Everything else (incomplete, nested deeply,
// numbers of unusual size) is left to a parser, whose tree is written out and scanned again, so
// that both ways give the same event. We use no library, as we need the end of each event in a text
// that comes in chunks. Debian has no linkable library that finds it.
//
// Members are views into the event's text: values as JSON, a text with its quotes. Empty: absent,
// or of another type than listed. The last one counts of members that occur twice.
struct ChromeEvent {
  struct Number {
    std::string_view key, value;  // the key with its quotes
  };
  std::string_view phase, name, category;  // texts
  std::string_view at, length;             // numbers or texts
  std::string_view pid, tid, id, id2;      // anything
  // Members of "args", if that is an object:
  bool has_args = false;
  std::size_t args = 0;               // their number
  std::vector<Number> numbers;        // the first 1000 numbers among them
  std::string_view args_name, shape;  // texts
  std::string_view bytes;             // a number or a text
  bool empty = true;                  // no member at all

  void clear();
};

// Scans the event that `text` begins with. Returns the length of its text, or 0 if a parser should
// read it. `written`: the text was written out from a parser's tree.
[[nodiscard]] std::size_t scan_chrome_event(std::string_view text, ChromeEvent& event,
                                            bool written = false);

// The content of a member above as display_text; nothing if it is absent.
[[nodiscard]] std::optional<std::string> event_text(std::string_view value);
// A finite number, also one that is written as a text (rocprof).
[[nodiscard]] std::optional<double> event_number(std::string_view value);
// Ids of processes, threads and spans are numbers or texts; "" if there is none.
[[nodiscard]] std::string event_id(std::string_view value);

}  // namespace weir::adapters
