#include <algorithm>
#include <array>

#include "gate/base/text.hpp"
#include "gate/publish/allow.hpp"
#include "gate/publish/post.hpp"
#include "gate/report/escape.hpp"
#include "gate/report/layout.hpp"
#include "gate/verdict/allowance.hpp"

namespace weir::publish {
namespace {

// How a workflow run ended, as GitHub names it, and what a run that ended so says without a
// verdict. Nobody waits for news of a `quiet` one.
struct Ended {
  std::string_view conclusion, words;
  bool quiet = false;
};
constexpr std::array<Ended, 9> k_ended{{
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

Ended ended_as(const std::optional<std::string>& conclusion) {
  if (!conclusion) return {"", "there is no verdict"};
  for (const Ended& one : k_ended) {
    if (one.conclusion == *conclusion) return one;
  }
  return {"", "the run has not ended", true};
}

// Why these are not the base's rules; "" where they are, or where there is no base.
std::string why_not_by_base(const verdict::GateVerdict& gate, const MeasuredBy& run,
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

// Why a green of this run counts for nothing; "" where it counts.
std::string why_not_counted(const verdict::GateVerdict& gate, const MeasuredBy& run,
                            const Target& target) {
  if (run.conclusion.value_or("success") != "success") {  // it failed or was stopped
    return fmt::format("the workflow run that measured this ended as {}",
                       run.conclusion->empty() ? "not ended" : *run.conclusion);
  }
  return why_not_by_base(gate, run, target);
}

void limit_reach(Texts& texts, verdict::Comment comment, bool needs_a_reader) {
  if (comment == verdict::Comment::never) {
    texts.reach = Texts::Reach::nothing;
    texts.reach_reason = "comment: never";
  } else if (comment == verdict::Comment::changed && !needs_a_reader) {
    texts.reach = Texts::Reach::edit;
    texts.reach_reason = "a pass, and there is no comment that says otherwise";
  }
}

// What `/weir accept` could take of it, as it stands in the check run, and the line to copy.
struct Offer {
  std::string text, line;
};
Offer offer_of(const verdict::GateVerdict& gate, const Target& target, const std::string& name) {
  Offer offer;
  if (!target.pull_request || target.sha.empty() || target.base.empty()) return offer;
  offer.text =
      verdict::allowable_text(verdict::would_take(gate), report::k_check_summary_limit - 1000);
  const auto take = verdict::parse_allowable_text(offer.text);
  if (!take || take->changes.empty()) return offer;
  offer.line =
      fmt::format("\n\nTo accept exactly these changes at {} for {}, comment:\n\n```\n{}\n```\n",
                  target.sha.substr(0, 7), report::markdown_text(target.base, 100),
                  acceptance_line(acceptance_code(target, name, *take)));
  return offer;
}

Texts verdict_texts(const verdict::GateVerdict& gate, const report::MarkdownStyle& style,
                    const MeasuredBy& run, const Target& target, const std::string& gate_name) {
  Texts texts;
  // Under limits that leave room for the marker before them and notes of ours.
  report::MarkdownStyle shorter = style;
  shorter.limit = std::min(style.limit, report::k_comment_limit - 1000);
  texts.comment = report::markdown(gate, shorter);
  shorter.limit = report::k_check_summary_limit - 1000;
  texts.check = report::check_text(gate, shorter);
  texts.status = report::status_text(gate);
  const std::string why = why_not_counted(gate, run, target);
  // A red verdict ends the run that measured it red as well: what was judged here can be accepted.
  MeasuredBy records = run;
  if (run.judged_here) records.conclusion.reset();
  if (why_not_counted(gate, records, target).empty()) {
    const Offer offer = offer_of(gate, target, gate_name);
    texts.check.text = offer.text;
    texts.comment += offer.line;
    texts.check.summary += offer.line;
  }
  const bool green = texts.status.state == "success";
  if (!green && !(run.fork && run.judged_here)) return texts;
  std::string note;
  if (run.fork && run.judged_here) {
    note = fmt::format(
        "**Judged here by the rules of {}, from the records of a fork's run.** The counts were "
        "written on a machine that ran the fork's code: nobody can vouch for them.\n\n",
        report::markdown_text(target.base.empty() ? "no base" : target.base, 100));
  }
  if (green && !why.empty()) {
    note += fmt::format("**Not judged:** {}. The report below is not counted as a pass.\n\n",
                        report::markdown_text(why));
  }
  texts.comment = note + texts.comment;
  texts.check.summary = note + texts.check.summary;
  if (!green || why.empty()) return texts;
  texts.check.title = text::disarm(report::one_line(
      fmt::format("{}{} \u00b7 {}", report::k_not_judged, why, texts.check.title), 250));
  texts.check.conclusion = "failure";
  texts.status = {"error", report::one_line(texts.check.title, 140)};
  return texts;
}

}  // namespace

Texts texts_of(const verdict::GateVerdict& gate, const report::MarkdownStyle& style,
               const MeasuredBy& run, const Target& target, const std::string& gate_name) {
  Texts texts = verdict_texts(gate, style, run, target, gate_name);
  // A verdict that anybody may have written, or by a pull request's own rules, silences nothing.
  const bool by_base = why_not_by_base(gate, run, target).empty();
  const verdict::Comment rule = by_base ? gate.comment : verdict::Comment::changed;
  const bool needs_a_reader = gate.verdict != verdict::Outcome::pass ||
                              texts.check.conclusion != "success" || !gate.proposals.empty();
  limit_reach(texts, run.comment.value_or(rule), needs_a_reader);
  return texts;
}

Texts not_measured(const NotMeasured& what, const report::MarkdownStyle& style) {
  const Ended ended = ended_as(what.conclusion);
  const std::string why = what.why.empty() ? std::string(ended.words) : what.why;
  const std::string plain =
      text::disarm(report::one_line(std::string(report::k_not_judged) + why, 200));
  std::string body = fmt::format("### {} weir: not judged\n\n{}\n", ended.quiet ? "⚪" : "❌",
                                 report::markdown_text(why));
  body += "\nNo count and no time was judged, so this says nothing about the change.";
  if (!ended.quiet) body += " The run's log says what went wrong.";
  std::vector<std::string> small;
  if (!what.sha.empty()) small.push_back(what.sha.substr(0, 7));
  const bool plain_url =
      style.run_url && style.run_url->find_first_of("()<>[]\"'") == std::string::npos;
  if (plain_url) small.push_back(fmt::format("[run]({})", *style.run_url));
  if (!small.empty()) body += fmt::format("\n\n<sub>{}</sub>", text::join(small, " · "));
  body += "\n";
  Texts texts;
  texts.comment = body;
  // A required check is content with "neutral" and "skipped".
  texts.check = {ended.conclusion == "cancelled" ? "cancelled" : "failure", plain, body, {}};
  texts.status = {"error", report::one_line(plain, 140)};
  // A run that was skipped or waits is no news; an earlier verdict of another commit is.
  if (ended.quiet) {
    texts.reach = Texts::Reach::edit;
    texts.reach_reason = "nothing was measured, and there is no comment that says otherwise";
  }
  limit_reach(texts, what.comment.value_or(verdict::Comment::changed), true);
  return texts;
}

}  // namespace weir::publish
