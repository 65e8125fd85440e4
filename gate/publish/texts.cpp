#include <algorithm>
#include <array>

#include "gate/base/text.hpp"
#include "gate/publish/post.hpp"
#include "gate/report/escape.hpp"
#include "gate/report/layout.hpp"
#include "gate/verdict/allowance.hpp"

namespace weir::publish {
namespace {

// How a workflow run ended, as GitHub names it, and what a run that ended so says without a
// verdict.
struct Ended {
  std::string_view conclusion, check, words;
};
constexpr std::array<Ended, 9> k_ended{{
    {"success", "failure", "the run ended well and left no verdict"},
    {"failure", "failure", "the run failed before there was a verdict"},
    {"timed_out", "failure", "the run took too long"},
    {"startup_failure", "failure", "the run could not be started"},
    {"cancelled", "cancelled", "the run was cancelled"},
    {"skipped", "neutral", "the run was skipped"},
    {"neutral", "neutral", "the run left no verdict"},
    {"action_required", "neutral", "the run waits for an approval"},
    {"stale", "neutral", "the run never came to an end"},
}};

Ended ended_as(const std::optional<std::string>& conclusion) {
  if (!conclusion) return {"", "failure", "there is no verdict"};
  for (const Ended& one : k_ended) {
    if (one.conclusion == *conclusion) return one;
  }
  return {"", "neutral", "the run has not ended"};
}

// Under a limit that leaves room for the marker before it and notes of ours.
report::MarkdownStyle for_comment(report::MarkdownStyle style) {
  style.limit = std::min(style.limit, report::k_comment_limit - 1000);
  return style;
}

// The run itself failed or was stopped.
bool unsound(const std::optional<std::string>& conclusion) {
  return conclusion && *conclusion != "success";
}

}  // namespace

Texts texts_of(const verdict::GateVerdict& gate, const report::MarkdownStyle& style,
               const std::optional<std::string>& conclusion) {
  Texts texts;
  texts.comment = report::markdown(gate, for_comment(style));
  report::MarkdownStyle for_check = style;
  for_check.limit = report::k_check_summary_limit - 1000;
  texts.check = report::check_text(gate, for_check);
  texts.status = report::status_text(gate);
  if (!unsound(conclusion)) {
    texts.check.text =
        verdict::allowable_text(verdict::would_take(gate), report::k_check_summary_limit - 1000);
  }
  const bool empty = gate.cells.empty();
  const bool green = texts.check.conclusion == "success" || texts.status.state == "success";
  if (!empty && !(green && unsound(conclusion))) return texts;
  const std::string note =
      empty ? "**Not measured:** this run has no cells, so nothing was judged."
            : fmt::format(
                  "**Not counted as a pass:** the workflow run that measured this ended as "
                  "{}, and what is below may not be all of it.",
                  report::markdown_code(conclusion->empty() ? "not ended" : *conclusion));
  texts.comment = note + "\n\n" + texts.comment;
  texts.check.summary = note + "\n\n" + texts.check.summary;
  texts.check.title = report::one_line(
      (empty ? "Not measured: no cells. " : "Not counted as a pass: the run did not end well. ") +
          texts.check.title,
      250);
  if (texts.check.conclusion == "success") texts.check.conclusion = "neutral";
  texts.status = {"error", report::one_line(texts.check.title, 140)};
  return texts;
}

Texts not_measured(const NotMeasured& what, const report::MarkdownStyle& style) {
  const Ended ended = ended_as(what.conclusion);
  const std::string why = what.why.empty() ? std::string(ended.words) : what.why;
  const std::string plain = text::disarm(report::one_line("Not measured: " + why, 200));
  const bool red = ended.check == "failure";
  std::string body =
      fmt::format("### {} weir: not measured\n\n{}\n", red ? "❌" : "⚪", report::markdown_text(why));
  body += "\nNo count and no time was judged, so this says nothing about the change.";
  if (red) body += " The run's log says what went wrong.";
  std::vector<std::string> small;
  if (!what.sha.empty()) small.push_back(what.sha.substr(0, 7));
  const bool plain_url =
      style.run_url && style.run_url->find_first_of("()<>[]\"'") == std::string::npos;
  if (plain_url) small.push_back(fmt::format("[run]({})", *style.run_url));
  if (!small.empty()) body += fmt::format("\n\n<sub>{}</sub>", text::join(small, " · "));
  body += "\n";
  Texts texts;
  texts.comment = body;
  texts.check = {std::string(ended.check), plain, body, {}};
  texts.status = {"error", report::one_line(plain, 140)};
  // A run that was skipped or waits is no news; an earlier verdict of another commit is.
  texts.only_edit_comment = !red;
  return texts;
}

}  // namespace weir::publish
