// Writes the texts of a post: comment, check run and status, with a verdict or without.
#include <algorithm>
#include <array>

#include "gate/base/text.hpp"
#include "gate/publish/post.hpp"
#include "gate/publish/waive.hpp"
#include "gate/report/escape.hpp"
#include "gate/report/layout.hpp"
#include "gate/verdict/waiver.hpp"

namespace weir::publish {
namespace {

// How a workflow run ended, as GitHub names it, and the text if it left no verdict. A `quiet` end
// needs no new comment.
struct RunEnd {
  std::string_view conclusion, text;
  bool quiet = false;
};
constexpr std::array<RunEnd, 9> k_run_ends{{
    {"success", "the run ended well and left no verdict"},
    {"failure", "the run failed before there was a verdict"},
    {"timed_out", "the run took too long"},
    {"startup_failure", "the run could not be started"},
    {"cancelled", "the run was cancelled", true},
    {"skipped", "the run was skipped", true},
    {"neutral", "the run left no verdict", true},
    {"action_required", "the run waits for an approval", true},
    {"stale", "the run never came to an end", true},
}};

RunEnd find_run_end(const std::optional<std::string>& conclusion) {
  if (!conclusion) return {"", "there is no verdict"};
  for (const RunEnd& ending : k_run_ends) {
    if (ending.conclusion == *conclusion) return ending;
  }
  return {"", "the run has not ended", true};
}

// Returns why the verdict was not reached by the base's rules; "" if it was, or if there is no
// base.
std::string why_not_by_base(const verdict::GateVerdict& gate, const MeasuringRun& run,
                            const Target& target) {
  if (run.fork && !run.judged_here) {
    return "a fork's own run measured and judged this, and it was not judged again";
  }
  if (run.of_pull_request && !(target.pull_request && !target.base.empty())) {
    return "the pull request of this run, and so its base, is not certain";
  }
  if (!run.of_pull_request && target.base.empty()) return "";
  if (!gate.rules) {
    return "judged by the pull request's own rules, not by the base's (weir gate --rules-from)";
  }
  return run.wrong_rules;
}

// Returns why a pass of this run doesn't count; "" if it does.
std::string counter_problem(const verdict::GateVerdict& gate, const MeasuringRun& run,
                            const Target& target) {
  if (run.conclusion.value_or("success") != "success") {
    return fmt::format("the workflow run that measured this ended as {}",
                       run.conclusion->empty() ? "not ended" : *run.conclusion);
  }
  return why_not_by_base(gate, run, target);
}

// Limits the comment as the `comment` rule asks: never, or only an edit of one that is there.
void limit_reach(Texts& texts, verdict::Comment comment, bool needs_a_reader) {
  if (comment == verdict::Comment::never) {
    texts.reach = Texts::Reach::nothing;
    texts.reach_reason = "comment: never";
  } else if (comment == verdict::Comment::changed && !needs_a_reader) {
    texts.reach = Texts::Reach::edit;
    texts.reach_reason = "a pass, and there is no comment that says otherwise";
  }
}

// The changes that `/weir waive` could waive.
struct Offer {
  std::string text;  // for the check run, which `/weir waive` reads back
  std::string line;  // the command to copy, with its introduction
};
// Returns the changes that a comment could waive, and the comment to write for it. Empty if nothing
// can be waived.
Offer make_offer(const verdict::GateVerdict& gate, const Target& target, const std::string& name) {
  Offer offer;
  if (!target.pull_request || target.sha.empty() || target.base.empty()) return offer;
  offer.text =
      verdict::waivable_text(verdict::needed_waivers(gate), report::k_check_summary_limit - 1000);
  const auto waivable = verdict::parse_waivable_text(offer.text);
  if (!waivable || waivable->changes.empty()) return offer;
  offer.line =
      fmt::format("\n\nTo waive exactly these changes at {} for {}, comment:\n\n```\n{}\n```\n",
                  text::short_commit(target.sha), report::markdown_text(target.base, 100),
                  waiver_line(waiver_code(target, name, *waivable)));
  return offer;
}

// Returns the comment, check and status of a verdict. A pass that doesn't count (see
// counter_problem()) is shown as not judged.
Texts verdict_texts(const verdict::GateVerdict& gate, const report::MarkdownStyle& style,
                    const MeasuringRun& run, const Target& target, const std::string& gate_name) {
  Texts texts;
  // Leave room for the marker and for notes before the text.
  report::MarkdownStyle shorter = style;
  shorter.limit = std::min(style.limit, report::k_comment_limit - 1000);
  texts.comment = report::markdown(gate, shorter);
  shorter.limit = report::k_check_summary_limit - 1000;
  texts.check = report::check_text(gate, shorter);
  texts.status = report::status_text(gate);
  const std::string why = counter_problem(gate, run, target);
  // A failed verdict makes its run fail too, so ignore how the run ended: the changes
  // of a verdict judged here can be waived.
  MeasuringRun waivable_run = run;
  if (run.judged_here) waivable_run.conclusion.reset();
  if (counter_problem(gate, waivable_run, target).empty()) {
    const Offer offer = make_offer(gate, target, gate_name);
    texts.check.text = offer.text;
    texts.comment += offer.line;
    texts.check.summary += offer.line;
  }
  const bool is_green = texts.status.state == "success";
  if (!is_green && !(run.fork && run.judged_here)) return texts;
  std::string note;
  if (run.fork && run.judged_here) {
    note = fmt::format(
        "**Judged here by the rules of {}, from the records of a fork's run.** The counts were "
        "written on a machine that ran the fork's code: nobody can vouch for them.\n\n",
        report::markdown_text(target.base.empty() ? "no base" : target.base, 100));
  }
  if (is_green && !why.empty()) {
    note += fmt::format("**Not judged:** {}. The report below is not counted as a pass.\n\n",
                        report::markdown_text(why));
  }
  texts.comment = note + texts.comment;
  texts.check.summary = note + texts.check.summary;
  if (!is_green || why.empty()) return texts;
  texts.check.title = text::neutralize_ci_commands(report::printable_line(
      fmt::format("{}{} \u00b7 {}", report::k_not_judged, why, texts.check.title), 250));
  texts.check.conclusion = "failure";
  texts.status = {"error", report::printable_line(texts.check.title, 140)};
  return texts;
}

}  // namespace

// Returns a verdict's comment, check and status, and decides if a comment is written at all.
Texts texts_of(const verdict::GateVerdict& gate, const report::MarkdownStyle& style,
               const MeasuringRun& run, const Target& target, const std::string& gate_name) {
  Texts texts = verdict_texts(gate, style, run, target, gate_name);
  // A verdict by a pull request's own rules, or one that anybody may have written, silences no
  // comment.
  const bool is_by_base = why_not_by_base(gate, run, target).empty();
  const verdict::Comment comment_rule = is_by_base ? gate.comment : verdict::Comment::changed;
  const bool needs_a_reader = gate.verdict != verdict::Outcome::pass ||
                              texts.check.conclusion != "success" || !gate.proposals.empty();
  limit_reach(texts, run.comment.value_or(comment_rule), needs_a_reader);
  return texts;
}

// Returns the texts for a run that left no verdict: "not judged", never a success. A run that was
// skipped or waits makes no new comment.
Texts missing_verdict_texts(const MissingVerdict& missing, const report::MarkdownStyle& style) {
  const RunEnd run_end = find_run_end(missing.conclusion);
  const std::string why = missing.why.empty() ? std::string(run_end.text) : missing.why;
  const std::string title = text::neutralize_ci_commands(
      report::printable_line(std::string(report::k_not_judged) + why, 200));
  std::string body = fmt::format("### {} weir: not judged\n\n{}\n", run_end.quiet ? "⚪" : "❌",
                                 report::markdown_text(why));
  body += "\nNo count and no time was judged, so this says nothing about the change.";
  if (!run_end.quiet) body += " The run's log says what went wrong.";
  std::vector<std::string> footer;
  if (!missing.sha.empty()) footer.push_back(text::short_commit(missing.sha));
  const bool plain_url =
      style.run_url && style.run_url->find_first_of("()<>[]\"'") == std::string::npos;
  if (plain_url) footer.push_back(fmt::format("[run]({})", *style.run_url));
  if (!footer.empty()) body += fmt::format("\n\n<sub>{}</sub>", text::join(footer, " · "));
  body += "\n";
  Texts texts;
  texts.comment = body;
  // Not "neutral" or "skipped": a required check would accept these.
  texts.check = {run_end.conclusion == "cancelled" ? "cancelled" : "failure", title, body, {}};
  texts.status = {"error", report::printable_line(title, 140)};
  // A run that was skipped or waits makes no comment, but an earlier verdict has to be replaced.
  if (run_end.quiet) {
    texts.reach = Texts::Reach::edit;
    texts.reach_reason = "nothing was measured, and there is no comment that says otherwise";
  }
  limit_reach(texts, missing.comment.value_or(verdict::Comment::changed), true);
  return texts;
}

}  // namespace weir::publish
