// Lists the formats of report files.
#include "gate/report/formats.hpp"

#include "gate/report/html.hpp"
#include "gate/report/junit.hpp"
#include "gate/report/markdown.hpp"
#include "gate/report/open_metrics.hpp"

namespace weir::report {
namespace {

template <std::string (*Render)(const Document&)>
std::string of_verdict(const Document& document, const ReportContext& /*around*/) {
  return Render(document);
}

std::string markdown_report(const Document& document, const ReportContext& context) {
  return markdown(document, {k_comment_limit, context.verbs, context.run_url});
}

std::string html_report(const Document& document, const ReportContext& context) {
  return html(document, context.figures);
}

constexpr ReportFormat k_formats[] = {
    {"--markdown", "Write the report as Markdown", markdown_report},
    {"--junit", "Write the report as JUnit XML", of_verdict<junit>},
    {"--html", "Write the report as one HTML page", html_report, true},
    {"--openmetrics", "Write the numbers as OpenMetrics text", of_verdict<open_metrics>},
};

}  // namespace

std::span<const ReportFormat> report_formats() { return k_formats; }

}  // namespace weir::report
