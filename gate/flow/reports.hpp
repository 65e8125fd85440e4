// Every place that reads a verdict: the terminal, files, CI systems.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gate/config/redactor.hpp"
#include "gate/flow/job.hpp"
#include "gate/report/formats.hpp"
#include "gate/report/hints.hpp"
#include "gate/report/markdown.hpp"

namespace weir::flow {

// Commands of this build that a report may tell its reader to type.
[[nodiscard]] const report::Verbs& report_hints();

// Where each goes, in the order of report::report_formats().
struct ReportFiles {
  std::vector<std::optional<std::string>> files =
      std::vector<std::optional<std::string>>(report::report_formats().size());
  [[nodiscard]] const std::optional<std::string>& markdown() const { return files[0]; }
};
// All files that answering writes, to be checked before anything is measured: the folder of each is
// there, else Code::usage. Whether they can be written is for run::preflight to say.
[[nodiscard]] Result<std::vector<std::string>> places_of(const Job& job,
                                                         const ReportFiles& wanted = {});

// Says all of it with `redactor` over private names: the terminal's text, --json, the files that
// were asked for, the run's own verdict.json, and, on GitHub, annotations and the job summary. The
// answer has the verdict's exit code alone.
[[nodiscard]] Result<Answer> publish_verdict(const Job& job, const ReportFiles& wanted,
                                             const verdict::GateVerdict& judged,
                                             const config::Redactor& redactor);
// A verdict as the terminal shows it, which names the commands `verbs`.
[[nodiscard]] std::string verdict_text(const Job& job, const verdict::GateVerdict& shown,
                                       const report::Verbs& verbs = {});

}  // namespace weir::flow
