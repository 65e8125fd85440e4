// A command line as it may be shown to others: no places, no prompts, no secrets. Pure.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gate/observed/observed.hpp"

namespace weir::report {

enum class Private { hidden, shown };

// Words as a shell takes them, on one line. Of a path its last part stays; the value of an option
// for prompts or system prompts, and any word with white space in it or longer than 80 bytes, reads
// "<N bytes>". `shown` leaves all that as it is. What an option for keys, tokens or passwords is
// given is never shown, nor what stands behind "?" in an address.
[[nodiscard]] std::string shown_command(const std::vector<std::string>& words, Private how);

// Of a command line as somebody else wrote it down: words as a shell takes them (quotes are kept
// together; nothing is expanded). What an option for prompts is given goes on to the next option,
// as whoever wrote the line may have left its quotes out.
[[nodiscard]] std::string shown_command_line(std::string_view line, Private how);

enum class Paths { all, certain };

// The same for what was said: of absolute paths ("/a/b/c", "~/b/c", "C:\a\b", "\\host\a") the
// last part stays. `certain`: only those of drives, of hosts, of top folders that systems have, and
// of files with a suffix that begins with a letter: "/model/layers.0/MatMul" is a name.
[[nodiscard]] std::string without_places(std::string_view text, Paths which = Paths::all);

// Takes what is private out of what an engine or a profiler wrote: before it becomes a page, or the
// JSON that goes to others. Pure.

class Hiding {
 public:
  // `places`: texts that are to appear nowhere, but for the last part of a path.
  Hiding(std::vector<std::string> places, Private privacy);

  // Of ops, kernels and shapes, which have slashes of their own: paths stay where they may be part
  // of a name ("/model/layers.0/MatMul"), unless a profiler's category says that it is a place in
  // a source.
  [[nodiscard]] std::string name(std::string_view text, std::string_view category = "") const;
  // Of anything that was said, threads and counters among it.
  [[nodiscard]] std::string words(std::string_view text, Paths which = Paths::all) const;
  // Of a process, which may be called by its command line. Secrets are hidden always.
  [[nodiscard]] std::string process(std::string_view text) const;
  [[nodiscard]] std::string command(std::string_view line) const;
  // Of facts under the document's own names. Secrets are hidden always.
  [[nodiscard]] bool fact_is_private(std::string_view fact, std::string_view value) const;

 private:
  Private privacy_;
  std::vector<std::pair<std::string, std::string>> places_;  // and what stands there instead
};

// All of it without what is private; without context.places. Shown: without secrets alone.
[[nodiscard]] observed::Observed without_private(observed::Observed observed, Private privacy);

}  // namespace weir::report
