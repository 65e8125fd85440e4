// The format of --help: 80 columns, with readable types and defaults.
#pragma once

#include <CLI/CLI.hpp>

namespace weir::app {

// Returns a formatter that wraps the texts of options and adds defaults: "Rows of each table
// (default: 20)". Limits of values, and options that exclude each other, are left to the texts and
// to errors.
[[nodiscard]] std::shared_ptr<CLI::Formatter> help_formatter();

}  // namespace weir::app
