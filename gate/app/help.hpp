// How --help looks: 80 columns, types and defaults in the words of a reader.
#pragma once

#include <CLI/CLI.hpp>

namespace weir::app {

// Wraps what options are for, and writes defaults into it: "Rows of each table (default: 20)".
// What a type must be, and which options go together, is left to the text and to errors.
[[nodiscard]] std::shared_ptr<CLI::Formatter> help_formatter();

}  // namespace weir::app
