// Hides what is private before a command line or a profile is shown: paths, prompts, secrets. Pure.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gate/observed/observed.hpp"

namespace weir::report {

enum class PrivateWords { hidden, shown };

// Returns the words as a shell takes them, on one line. A path is cut to its last part. Prompts,
// and words with white space or more than 80 bytes, become "<N bytes>". `shown` leaves all that as
// it is. Keys, tokens, passwords and the query of an address are never shown.
[[nodiscard]] std::string shown_command(const std::vector<std::string>& words,
                                        PrivateWords private_words);

// The same for a command line that an engine or a profiler recorded. It is split as a shell does,
// with quotes but without expansions. A prompt reaches to the next option, as its quotes may be
// lost.
[[nodiscard]] std::string shown_command_line(std::string_view line, PrivateWords private_words);

enum class Paths { all, certain };

// Cuts absolute paths in a text to their last part: "/a/b/c", "~/b/c", "C:\a\b", "\\host\a".
// `certain` cuts only paths that are surely none of a name such as "/model/layers.0/MatMul": those
// of drives, hosts, folders that systems have, and files with a suffix that begins with a letter.
[[nodiscard]] std::string without_places(std::string_view text, Paths which = Paths::all);

// Hides what is private in texts that an engine or a profiler wrote, before they become a page or
// JSON for others. Pure.
class Hiding {
 public:
  // `places`: texts that are to appear nowhere, but for the last part of a path.
  Hiding(std::vector<std::string> places, PrivateWords privacy);

  // Hides paths in names of ops, kernels and shapes. Those may have slashes of their own
  // ("/model/layers.0/MatMul"), so only certain paths are cut, unless the profiler's category says
  // that the name is a place in a source.
  [[nodiscard]] std::string name(std::string_view text, std::string_view category = "") const;
  // Hides places in any other text, such as names of threads and counters.
  [[nodiscard]] std::string words(std::string_view text, Paths which = Paths::all) const;
  // Hides places in the name of a process, which may be its command line. Secrets are always
  // hidden.
  [[nodiscard]] std::string process(std::string_view text) const;
  [[nodiscard]] std::string command(std::string_view line) const;
  // Returns true if a fact of the document has to be left out. Secrets always have to.
  [[nodiscard]] bool fact_is_private(std::string_view fact, std::string_view value) const;

 private:
  PrivateWords privacy_;
  std::vector<std::pair<std::string, std::string>> places_;  // each with its replacement
};

// Returns the document without what is private and without context.places. With `shown`, only
// secrets are left out.
[[nodiscard]] observed::Observed without_private(observed::Observed observed, PrivateWords privacy);

}  // namespace weir::report
