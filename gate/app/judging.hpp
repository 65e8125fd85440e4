// From measured profiles to a verdict, and from a verdict to every place that reads it.
#pragma once

#include <string>

#include "gate/app/command_line.hpp"
#include "gate/app/session.hpp"
#include "gate/app/stored_baselines.hpp"
#include "gate/report/document.hpp"
#include "gate/verdict/verdict.hpp"

namespace weir::app {

// Against stored baselines; what `pairs` (of some of its cells, beside a base program) say of times
// that fail there goes before.
[[nodiscard]] Result<verdict::GateVerdict> judge_stored(const Measured& measured,
                                                        const StoredBaselines& stored,
                                                        const verdict::Policy& policy,
                                                        const Measured* pairs = nullptr);
// Beside the base program of --against (measured.beside is there); what could not be counted of it
// is held to `stored`.
[[nodiscard]] Result<verdict::GateVerdict> judge_beside(const Measured& measured,
                                                        const StoredBaselines& stored,
                                                        const verdict::Policy& policy);
// Against another run: each cell with the cell of the same name.
[[nodiscard]] verdict::GateVerdict judge_against(const Measured& measured, const Measured& base,
                                                 const verdict::Policy& policy);
[[nodiscard]] verdict::Policy policy_of(const Measured& measured, bool require_baseline);

// Commands of this build that a report may tell its reader to type.
[[nodiscard]] const report::Verbs& report_hints();

struct ReportFiles {
  std::optional<std::string> markdown, junit, html, open_metrics;
};
void add_report_files(CLI::App& verb, ReportFiles& files);

// Says all of it with `veil` over private names: the terminal's text, --json, the files that were
// asked for, the run's own verdict.json, and, on GitHub, annotations and the job summary. Answers
// the verdict's exit code.
[[nodiscard]] Result<ExitCode> publish(const CommonOptions& options, const ReportFiles& wanted,
                                       const verdict::GateVerdict& judged, const config::Veil& veil,
                                       sys::Files& files);

}  // namespace weir::app
