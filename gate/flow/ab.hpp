// weir ab: two programs, or one with two environments, compared without a configuration.
#pragma once

#include "gate/config/typed_command.hpp"
#include "gate/flow/gate.hpp"

namespace weir::flow {

struct AbOptions {
  std::vector<std::string> programs;            // base and candidate, or one for both
  std::vector<std::string> trailing_arguments;  // the arguments of both
  std::string base_args{}, candidate_args{};    // more arguments of one side, with blanks between
  std::vector<std::string> env;                 // "NAME=VALUE", of the candidate alone
  std::vector<std::string> metrics;             // "NAME=REGEX", read from what both print
  std::string preset, device;                   // "": chosen by ab()
  std::vector<std::string> probes{};            // in place of those that count something
  std::string twin{};                           // a simulated GPU for both; "": none
  bool has_token_flags = false;                 // as in config::TypedCommand, like `tokens`
  std::string tokens{};
  double timeout = 120;  // seconds for the one run of an unknown program
  std::string budget = "2m";
  std::string write;  // a file to keep the configuration in
  ReportFiles files;
};
// Returns the configuration of one cell for the command line. A program that weir does not know is
// started once, to see what it does. `env` is the candidate's alone.
[[nodiscard]] Result<config::TypedConfig> config_for_command(const Job& job,
                                                             const AbOptions& options,
                                                             const config::Environment& env);
// Makes a configuration of one cell from the command line, and gates it against the base's command.
[[nodiscard]] Result<Answer> ab(const Job& job, const AbOptions& options);

}  // namespace weir::flow
