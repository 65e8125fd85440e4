// Writes a verdict to every place that reads it: terminal, JSON, report files, GitHub.
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

// Returns the link to this run on GitHub Actions; nothing elsewhere.
std::optional<std::string> run_url(const Job& job) {
  const auto server = job.world.environment("GITHUB_SERVER_URL");
  const auto repository = job.world.environment("GITHUB_REPOSITORY");
  const auto run = job.world.environment("GITHUB_RUN_ID");
  if (!server || !repository || !run) return std::nullopt;
  return fmt::format("{}/{}/actions/runs/{}", *server, *repository, *run);
}

// On GitHub Actions, prints annotations and appends the verdict to the job's summary.
Result<void> write_for_github(const Job& job, const verdict::GateVerdict& verdict) {
  if (job.variable("GITHUB_ACTIONS") != "true") return {};
  // GitHub reads commands from both streams, so use the one that carries no JSON.
  job.command(report::annotations(verdict));
  const std::string summary = job.variable("GITHUB_STEP_SUMMARY");
  if (summary.empty()) return {};
  return append_text(summary, report::markdown(verdict, {.limit = report::k_summary_limit,
                                                         .verbs = report_hints(),
                                                         .run_url = run_url(job)}));
}

// Removes from the verdict of `weir ab` what its command line says already.
verdict::GateVerdict shorten_for_ab(verdict::GateVerdict shown) {
  shown.base_origin.clear();
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
  static const report::Verbs k_hints{"baseline accept", "baseline accept --reason",
                                     "compare",         "gate --counts-only",
                                     "gate --from",     "gate --resume",
                                     "doctor",          "explain",
                                     "profile"};
  return k_hints;
}

// Returns the files that the reports write. Fails with Code::usage if the folder of one is missing.
Result<std::vector<std::string>> report_places(const Job& job, const ReportFiles& wanted) {
  std::vector<std::string> places;
  const auto add_place = [&](const char* option,
                             const std::optional<std::string>& file) -> Result<void> {
    if (!file || *file == "-") return {};
    places.push_back(*file);
    return check_place(option, *file, job.files());
  };
  WEIR_CHECK(add_place("--json", job.output.json));
  for (std::size_t i = 0; i < wanted.files.size(); ++i) {
    WEIR_CHECK(add_place(report::report_formats()[i].option, wanted.files[i]));
  }
  return places;
}

std::string verdict_text(const Job& job, const verdict::GateVerdict& shown,
                         const report::Verbs& verbs) {
  return report::terminal(
      shown, {.color = job.colored(), .width = job.width(), .verbose = false, .verbs = verbs});
}

// Returns true if the verdict in the file has cells that `verdict` lacks.
static bool holds_more_cells(const sys::Files& files, const std::string& path,
                             const verdict::GateVerdict& verdict) {
  constexpr std::uint64_t k_max_bytes = std::uint64_t{256} << 20;
  const auto text = files.read(path, k_max_bytes);
  const auto stored =
      text ? parse_json(*text, {.bytes = k_max_bytes, .depth = 64}) : Result<Json>(Json::object());
  return stored && member_or_null(*stored, "cells").size() > verdict.cells.size();
}

Result<void> store_verdict(const Job& job, const verdict::GateVerdict& verdict,
                           const std::string& json) {
  if (!verdict.run || job.files().kind(*verdict.run) != sys::Kind::folder) return {};
  const std::string path = sys::join_path(*verdict.run, run::k_verdict_name);
  // A verdict on some of a run's cells does not replace the one on all.
  if (!job.selection.cells.empty() && holds_more_cells(job.files(), path, verdict)) return {};
  return job.files().write_atomic(path, json);
}

// Hides private names in a verdict, then writes it to the run, the terminal, --json, the report
// files and GitHub.
Result<Answer> publish_verdict(const Job& job, const ReportFiles& wanted,
                               verdict::GateVerdict judged, const config::Redactor& redactor) {
  std::string page_template;
  for (std::size_t i = 0; i < wanted.files.size(); ++i) {
    if (!wanted.files[i] || !report::report_formats()[i].is_page) continue;
    add_machine_code(judged, job);
    // Without the installed pages the report has words and tables alone.
    page_template =
        site::read_page(job.files(), sys::own_program_path(), "report.html").value_or("");
  }
  verdict::GateVerdict verdict = redacted(std::move(judged), redactor);
  // Without a configuration file the other commands would not find this run again.
  const report::Verbs hints = job.selection.config_text ? report::Verbs{"explain"} : report_hints();
  std::string json = verdict::to_text(verdict);
  WEIR_CHECK(store_verdict(job, verdict, json));
  job.answer(
      verdict_text(job, job.selection.config_text ? shorten_for_ab(verdict) : verdict, hints));
  WEIR_CHECK(write_json(job, json));
  json = {};  // as large as all that follows
  const report::ReportContext context{hints, run_url(job), page_template};
  for (std::size_t i = 0; i < wanted.files.size(); ++i) {
    if (!wanted.files[i]) continue;
    const std::string text = report::report_formats()[i].render(verdict, context);
    WEIR_CHECK(job.files().write_atomic(*wanted.files[i], text));
  }
  WEIR_CHECK(write_for_github(job, verdict));
  return Answer{.code = verdict.exit_code};
}

}  // namespace weir::flow
