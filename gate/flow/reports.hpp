// Writes verdicts to every place that reads them: the terminal, files, CI systems.
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

// Returns the commands of this build that reports may suggest.
[[nodiscard]] const report::Verbs& report_hints();

// The file of each report, in the order of report::report_formats().
struct ReportFiles {
  std::vector<std::optional<std::string>> files =
      std::vector<std::optional<std::string>>(report::report_formats().size());
  [[nodiscard]] const std::optional<std::string>& markdown() const { return files[0]; }
};
// Returns all files that the reports write, to check them before anything is measured. Code::usage
// if the folder of one is missing; run::preflight checks if they can be written.
[[nodiscard]] Result<std::vector<std::string>> report_places(const Job& job,
                                                             const ReportFiles& wanted = {});

// Writes a verdict with private names hidden: to the terminal, --json, the report files, the run's
// verdict.json, and on GitHub to annotations and the job summary. The answer has the exit code
// alone.
[[nodiscard]] Result<Answer> publish_verdict(const Job& job, const ReportFiles& wanted,
                                             verdict::GateVerdict judged,
                                             const config::Redactor& redactor);
// Writes a verdict, whose private names are hidden, to its run's verdict.json, if it is of a run.
[[nodiscard]] Result<void> store_verdict(const Job& job, const verdict::GateVerdict& verdict,
                                         const std::string& json);
// Returns the terminal's text of a verdict, which may suggest the commands `verbs`.
[[nodiscard]] std::string verdict_text(const Job& job, const verdict::GateVerdict& shown,
                                       const report::Verbs& verbs = {});

}  // namespace weir::flow
