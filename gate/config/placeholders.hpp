// Placeholders in arguments and environment values: "{model}", "{tokens}". Pure.
//
// A brace, a word ([A-Za-z][A-Za-z0-9_-]*) and a brace is a placeholder, and has to be a known one.
// Doubled, "{{tokens}}" stands for the text "{tokens}". Every other brace is itself, so JSON in an
// argument needs no care.
#pragma once

#include <functional>

#include "gate/config/settings.hpp"

namespace weir::config {

// "args", "depth", "model", …: sorted.
[[nodiscard]] const std::vector<std::string>& placeholder_names();

// The words that stand as placeholders in `text`, known or not, in order.
[[nodiscard]] std::vector<std::string> placeholders_in(std::string_view text);

// Returns `text` with each placeholder replaced by value(word), and "{{word}}" by "{word}". Values
// are not searched again.
[[nodiscard]] std::string substitute(std::string_view text,
                                     const std::function<std::string(std::string_view)>& value);

// True when any argument or environment value holds the placeholder.
[[nodiscard]] bool uses(const Arguments& arguments, const Environment& environment,
                        std::string_view placeholder);

}  // namespace weir::config
