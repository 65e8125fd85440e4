// What tells weir's own posts apart: of which gate they are, and which run of the workflow they
// show, so that a later poster finds them and an older one leaves them alone. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weir::publish {

// A workflow run and its attempt, both counted from 1 by GitHub, ids rising with time. {}: unknown,
// as when a person posts from a desk.
struct RunNumber {
  std::int64_t id = 0, attempt = 0;

  [[nodiscard]] bool known() const { return id > 0; }
  friend bool operator==(const RunNumber&, const RunNumber&) = default;
  friend bool operator<(const RunNumber& a, const RunNumber& b) {
    return a.id != b.id ? a.id < b.id : a.attempt < b.attempt;
  }
};
// Whether what `there` left must not be overwritten by `ours`. A run that is not known was asked
// for by somebody just now: it may overwrite all, and be overwritten by all.
[[nodiscard]] bool newer(const RunNumber& there, const RunNumber& ours);

inline constexpr std::string_view k_default_gate = "gate";

// A gate's name as posts bear it: [A-Za-z0-9][A-Za-z0-9._-]{0,63} without "--". A name that is not
// like that already gets its other characters as '-' and a hash behind it, so that two names never
// become one. "" is k_default_gate.
[[nodiscard]] std::string gate_name(std::string_view wanted);

struct Marker {
  std::string gate;  // from gate_name()
  RunNumber run;

  // "weir:gate=NAME run=12 attempt=1"
  [[nodiscard]] std::string text() const;
  // The same as a line that Markdown does not show: "<!-- weir:gate=NAME run=12 attempt=1 -->".
  [[nodiscard]] std::string hidden() const;
};
// From text(), nothing else before or behind it.
[[nodiscard]] std::optional<Marker> parse_marker(std::string_view text);
// From the first line of a comment, which must be hidden() and nothing else: what a comment quotes
// is none.
[[nodiscard]] std::optional<Marker> marker_of(std::string_view body);

}  // namespace weir::publish
