#include "gate/flow/reports.hpp"

#include "gate/flow/kernel_code.hpp"
#include "gate/flow/program.hpp"
#include "gate/flow/redacted.hpp"
#include "gate/report/annotations.hpp"
#include "gate/report/terminal.hpp"
#include "gate/run/journal.hpp"
#include "gate/site/site.hpp"
#include "gate/sys/paths.hpp"
#include "gate/sys/process.hpp"

namespace weir::flow {
namespace {

// Where this run is shown, when it is one of GitHub's.
std::optional<std::string> run_url(const Job& job) {
  const auto server = job.world.environment("GITHUB_SERVER_URL");
  const auto repository = job.world.environment("GITHUB_REPOSITORY");
  const auto run = job.world.environment("GITHUB_RUN_ID");
  if (!server || !repository || !run) return std::nullopt;
  return fmt::format("{}/{}/actions/runs/{}", *server, *repository, *run);
}

Result<void> tell_github(const Job& job, const verdict::GateVerdict& verdict) {
  if (job.variable("GITHUB_ACTIONS") != "true") return {};
  // Workflow commands are read from both streams: keep the one that is not a machine's.
  job.command(report::annotations(verdict));
  const std::string summary = job.variable("GITHUB_STEP_SUMMARY");
  if (summary.empty()) return {};
  return append_text(summary, report::markdown(verdict, {.limit = report::k_summary_limit,
                                                         .verbs = report_hints(),
                                                         .run_url = run_url(job)}));
}

// Without what the command line said, what stands in each report and what a number says itself.
verdict::GateVerdict on_one_screen(verdict::GateVerdict shown) {
  shown.base_source.clear();
  shown.decision_rule.clear();
  for (verdict::CellVerdict& cell : shown.cells) {
    for (verdict::Judgement& metric : cell.metrics()) {
      if (metric.verdict == verdict::Outcome::improved) metric.reason.clear();
    }
  }
  return shown;
}

}  // namespace

const report::Verbs& report_hints() {
  static const report::Verbs k_hints{"baseline accept",
                                     "baseline accept --reason",
                                     "gate --counts-only",
                                     "gate --resume",
                                     "doctor",
                                     "explain",
                                     "profile"};
  return k_hints;
}

Result<std::vector<std::string>> places_of(const Job& job, const ReportFiles& wanted) {
  std::vector<std::string> places;
  const auto add = [&](const char* option, const std::optional<std::string>& file) -> Result<void> {
    if (!file || *file == "-") return {};
    places.push_back(*file);
    return check_place(option, *file, job.files());
  };
  WEIR_CHECK(add("--json", job.shown.json));
  for (std::size_t i = 0; i < wanted.files.size(); ++i) {
    WEIR_CHECK(add(report::report_formats()[i].option, wanted.files[i]));
  }
  return places;
}

std::string verdict_text(const Job& job, const verdict::GateVerdict& shown,
                         const report::Verbs& verbs) {
  return report::terminal(
      shown, {.color = job.colored(), .width = job.width(), .verbose = false, .verbs = verbs});
}

Result<Answer> publish_verdict(const Job& job, const ReportFiles& wanted,
                               const verdict::GateVerdict& judged,
                               const config::Redactor& redactor) {
  verdict::GateVerdict with_code = judged;
  std::string figures;
  for (std::size_t i = 0; i < wanted.files.size(); ++i) {
    if (!wanted.files[i] || !report::report_formats()[i].is_page) continue;
    add_machine_code(with_code, job.world);
    // Where the pages are not installed, words and tables have to do.
    figures = site::read_page(job.files(), sys::own_program(), "report.html").value_or("");
  }
  const verdict::GateVerdict verdict = redacted(std::move(with_code), redactor);
  // Without a file nothing is run again, or looked at, by naming one.
  const report::Verbs hints = job.asked.config_text ? report::Verbs{"explain"} : report_hints();
  const std::string json = document(write_fields(verdict));
  if (verdict.run && job.files().kind(*verdict.run) == sys::Kind::folder) {
    WEIR_CHECK(job.files().write_atomic(sys::join_path(*verdict.run, run::k_verdict_name), json));
  }
  job.answer(verdict_text(job, job.asked.config_text ? on_one_screen(verdict) : verdict, hints));
  WEIR_CHECK(write_json(job, json));
  const report::ReportAround around{hints, run_url(job), figures};
  for (std::size_t i = 0; i < wanted.files.size(); ++i) {
    if (!wanted.files[i]) continue;
    const std::string text = report::report_formats()[i].render(verdict, around);
    WEIR_CHECK(job.files().write_atomic(*wanted.files[i], text));
  }
  WEIR_CHECK(tell_github(job, verdict));
  return Answer{.code = verdict.exit_code};
}

}  // namespace weir::flow
