// Paths that the words of a cell may mean: as the program, an interpreter or a shell reads them.
// Pure.
//
// What a shell fills in ("$HOME", "*.bin", "$(pwd)") stands for any text. A path may count from
// every folder that the command names, since a shell, `env -C` or `make -C` may start there. So
// more paths are found than are read: weir looks only at those that a pull request edits.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "gate/config/matrix.hpp"
#include "gate/sys/paths.hpp"

namespace weir::flow {

// Wildcards in a path.
inline constexpr char k_digits = '\1';     // a placeholder's digits
inline constexpr char k_name_part = '\2';  // any text without a '/', also none
inline constexpr char k_anything = '\3';   // any text, also none
inline constexpr std::string_view k_wildcards = "\1\2\3";

// Returns true if the whole `path` is one that `pattern`, which may have wildcards, stands for.
[[nodiscard]] bool matches_pattern(std::string_view pattern, std::string_view path);
[[nodiscard]] bool has_wildcard(std::string_view pattern);

// A word of a cell, or a part of one.
struct NamedWord {
  std::string text{};           // may have wildcards
  bool is_program = false;      // the command's first word, if that is a path
  bool may_be_built = false;    // written like the path of a program, which a build may make
  bool is_in_command = false;   // not in an environment
  bool holds_code = false;      // of a variable like PYTHONPATH: in its folders lies the program
  bool is_whole_input = false;  // a model, a prompt or a simulated GPU: never the program
};
// Lists the words of a cell in their order, each before its parts.
[[nodiscard]] std::vector<NamedWord> named_parts(const config::Cell& cell);
// Returns all words of a cell and the values of its environment as lines, without quotes.
[[nodiscard]] std::string named_text(const config::Cell& cell);

// Turns words into paths from the top of the repository.
class NamedPlaces {
 public:
  // `place`: the configuration's folder from the top, `roots` all names of the top.
  NamedPlaces(std::string place, std::vector<std::string> roots)
      : place_(std::move(place)), roots_(std::move(roots)), starts_{place_} {}

  // Later words may count from this folder as well.
  void add_start(const std::string& folder);
  // Returns the paths that a word may mean; none for one that cannot be a path of the repository.
  [[nodiscard]] std::vector<std::string> paths_of(const NamedWord& word) const;
  // Returns true for the configuration's folder and those above it.
  [[nodiscard]] bool is_home(const std::string& path) const { return sys::is_within(place_, path); }

 private:
  std::string place_;
  std::vector<std::string> roots_;
  std::vector<std::string> starts_;
};

}  // namespace weir::flow
