// How --help looks: 80 columns, types and defaults in the words of a reader.
#pragma once

#include <CLI/CLI.hpp>

namespace weir::app {

// Wraps what options are for, and writes defaults into it: "Rows of each table (default: 20)".
// What a type must be, and which options go together, is left to the text and to errors.
class HelpFormatter : public CLI::Formatter {
 public:
  HelpFormatter() { column_width(k_column); }
  std::string make_description(const CLI::App* app) const override;
  std::string make_option_opts(const CLI::Option* option) const override;
  std::string make_option_desc(const CLI::Option* option) const override;
  std::string make_subcommand(const CLI::App* below) const override;

 private:
  static constexpr std::size_t k_column = 29, k_width = 80;
};

}  // namespace weir::app
