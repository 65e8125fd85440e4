// The keys of weir.yaml as a list: for its JSON Schema, its reference and comparisons of files key
// by key. Each key is declared once, with its form and meaning, by the function that parses it
// (Fields in parse.hpp). The list is collected from these functions. Pure.
#pragma once

#include "gate/config/settings.hpp"

namespace weir::config {

// The form of a value.
struct Form {
  std::string type;      // for people: "integer", "docker, podman, srun"
  std::string schema;    // members of its JSON Schema; k_keys_here stands for those of keys within
  std::string within{};  // path from the value to the mapping of these keys: "", ".*" or "[]"
  std::string sample{};  // a name that may stand for the "*"
};
inline constexpr std::string_view k_keys_here = "$keys";

// A mapping of the keys that its parser declares; `more` is added to the schema (", …").
[[nodiscard]] Form mapping(std::string_view more = "");
// A mapping of names that match `pattern` to values.
inline constexpr std::string_view k_name_pattern = "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$";
[[nodiscard]] Form named(const Form& value, std::string_view pattern, const char* sample = "NAME");
[[nodiscard]] Form list_form(const Form& item, std::string_view more = "");
// One form or the other.
[[nodiscard]] Form operator|(const Form& first, const Form& second);
[[nodiscard]] Form nothing();
// One of these texts; `open`: editors take others too, of weirs that know more.
[[nodiscard]] Form choice_form(std::span<const std::string> texts, bool open);

struct KeyInfo {
  std::string owner;  // path of the mapping that it stands in: "", "gate", "engines.*", "limits[]"
  std::string name;   // "share_start"
  Form form;
  std::string meaning;        // a sentence or two
  std::string example;        // as YAML; "": none
  std::string shown_default;  // default; "": none
  bool is_value = false;      // `shown_default` is a value that could stand there, not words
  bool needed = false;

  // "engines.*.share_start", "limits[].max"; "*" is a name of the user's own.
  [[nodiscard]] std::string path() const { return owner.empty() ? name : owner + "." + name; }
};

// All keys, by path. Names that forms list (formats, probes, APIs) are those of `known`.
[[nodiscard]] std::vector<KeyInfo> list_keys(const Supported& supported);
// JSON Schema (draft 7) of weir.yaml, one key a line.
[[nodiscard]] std::string json_schema(const std::vector<KeyInfo>& keys);

}  // namespace weir::config
