// Runs the build commands of a base in its checkout.
#pragma once

#include <string>
#include <vector>

#include "gate/config/settings.hpp"
#include "gate/source/effects.hpp"

namespace weir::source {

struct Build {
  std::string engine;         // whose command it is: for messages
  config::Arguments command;  // argv; argv[0] with a '/' is counted from the folder it runs in
};

// A command as it can be pasted into a shell; hostile characters are shown as they would be typed.
[[nodiscard]] std::string shell_line(const std::vector<std::string>& argv);

// Runs them one after another in `folder`, without a shell and without git's variables. What they
// print goes to the file `log` (its beginning and end where it is long). A command that fails is
// Code::unavailable with the end of what it printed and how to run it again; one whose program is
// not there too. Code::interrupted on a stop.
[[nodiscard]] Result<void> run_builds(const std::vector<Build>& builds, const std::string& folder,
                                      const std::string& log, double timeout_seconds,
                                      const Effects& effects);

}  // namespace weir::source
