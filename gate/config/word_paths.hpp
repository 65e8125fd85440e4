// The parts of a command line's words that may be paths: "models/x.gguf" in
// "--model=models/x.gguf". Pure.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::config {

// Returns the parts of a text between any of the separators; empty ones too.
[[nodiscard]] std::vector<std::string> split_at_any(std::string_view text,
                                                    std::string_view separators);

// Returns a path in place of a part of a word; nothing to leave the part.
using ReplacePath = std::function<std::optional<std::string>(const std::string& part)>;

// Calls `replace` for the word itself, then for its parts: those between characters that options,
// lists and shells put between names, and the rest of "-Ifolder". Parts of a replaced part are
// left. Parts may hold placeholders, and most parts are no paths.
[[nodiscard]] std::string replace_paths(const std::string& word, const ReplacePath& replace);

}  // namespace weir::config
