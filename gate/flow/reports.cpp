#include "gate/flow/reports.hpp"

#include "gate/flow/program.hpp"
#include "gate/flow/veiled.hpp"
#include "gate/report/formats.hpp"
#include "gate/sys/paths.hpp"

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

std::string markdown(const verdict::GateVerdict& verdict, const Job& job, std::size_t limit) {
  return report::markdown(verdict,
                          {.limit = limit, .verbs = report_hints(), .run_url = run_url(job)});
}

constexpr std::array<ReportOutput, k_report_outputs> k_outputs{{
    {"--markdown", "Write the report as Markdown",
     [](const verdict::GateVerdict& verdict, const Job& job) {
       return markdown(verdict, job, report::k_comment_limit);
     }},
    {"--junit", "Write the report as JUnit XML",
     [](const verdict::GateVerdict& verdict, const Job&) { return report::junit(verdict); }},
    {"--html", "Write the report as one HTML page",
     [](const verdict::GateVerdict& verdict, const Job&) { return report::html(verdict); }},
    {"--openmetrics", "Write the numbers as OpenMetrics text",
     [](const verdict::GateVerdict& verdict, const Job&) { return report::open_metrics(verdict); }},
}};

Result<void> tell_github(const Job& job, const verdict::GateVerdict& verdict) {
  if (job.variable("GITHUB_ACTIONS") != "true") return {};
  // Workflow commands are read from both streams: keep the one that is not a machine's.
  job.command(report::annotations(verdict));
  const std::string summary = job.variable("GITHUB_STEP_SUMMARY");
  if (summary.empty()) return {};
  return append_text(summary, markdown(verdict, job, report::k_summary_limit));
}

}  // namespace

const report::Verbs& report_hints() {
  static const report::Verbs k_hints{
      "baseline accept", "gate --counts-only", "gate --resume", "doctor", "explain", "profile"};
  return k_hints;
}

const std::array<ReportOutput, k_report_outputs>& report_outputs() { return k_outputs; }

Result<std::vector<std::string>> places_of(const Job& job, const ReportFiles& wanted) {
  std::vector<std::string> places;
  const auto add = [&](const char* option, const std::optional<std::string>& file) -> Result<void> {
    if (!file || *file == "-") return {};
    places.push_back(*file);
    return check_place(option, *file, job.files());
  };
  WEIR_CHECK(add("--json", job.shown.json));
  for (std::size_t i = 0; i < k_report_outputs; ++i) {
    WEIR_CHECK(add(k_outputs[i].option, wanted.files[i]));
  }
  return places;
}

std::string verdict_text(const Job& job, const verdict::GateVerdict& shown,
                         const report::Verbs& verbs) {
  return report::terminal(
      shown, {.color = job.colored(), .width = job.width(), .verbose = false, .verbs = verbs});
}

Result<Answer> publish_verdict(const Job& job, const ReportFiles& wanted,
                               const verdict::GateVerdict& judged, const config::Veil& veil) {
  const verdict::GateVerdict verdict = veiled(judged, veil);
  const std::string json = document(verdict::to_json(verdict));
  if (verdict.run && job.files().kind(*verdict.run) == sys::Kind::folder) {
    WEIR_CHECK(job.files().write_atomic(sys::join_path(*verdict.run, "verdict.json"), json));
  }
  job.answer(verdict_text(job, verdict, report_hints()));
  WEIR_CHECK(write_json(job, json));
  for (std::size_t i = 0; i < k_report_outputs; ++i) {
    const auto& file = wanted.files[i];
    if (file) WEIR_CHECK(job.files().write_atomic(*file, k_outputs[i].render(verdict, job)));
  }
  WEIR_CHECK(tell_github(job, verdict));
  return Answer{.code = verdict.exit_code};
}

}  // namespace weir::flow
