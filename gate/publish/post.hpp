// Posts a verdict to a commit and a pull request: a sticky comment, a check run, a commit status.
// Each edits the earlier post of the same gate, pull request and base. Posters that race converge
// on one comment. A poster of an older run leaves a newer one's post alone.
//
// A poster can't know that it is alone. So after it creates something it looks again a few times,
// over `settle_seconds` in all, because GitHub's lists lag. docs/how-to/post.md has the rules.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "gate/publish/api.hpp"
#include "gate/publish/target.hpp"
#include "gate/report/check.hpp"
#include "gate/report/markdown.hpp"

namespace weir::publish {

// Texts ready to send, without secrets.
struct Texts {
  std::string comment;  // Markdown, at most report::k_comment_limit bytes
  report::CheckText check;
  report::StatusText status;
  // The most that may be done about the comment, and why no more; "" if anything may.
  enum class Reach { create, edit, nothing };
  Reach reach = Reach::create;
  std::string reach_reason{};
};

struct PostOptions {
  std::string gate = std::string(k_default_gate);  // from gate_name()
  bool comment = true, check = true, status = true;
  double settle_seconds = 7;
  std::string app = "github-actions";  // the app that posts, if the token may not ask for its login
};

struct Part {
  enum class Outcome { created, edited, unchanged, superseded, left_out, failed };
  std::string name;  // "comment", "check run", "commit status"
  Outcome outcome = Outcome::left_out;
  std::int64_t id = 0;                // GitHub's id; 0: none
  std::string url;                    // page of the post; "": none
  std::string reason;                 // for superseded, left_out and failed
  std::vector<std::string> warnings;  // problems of a post that is there
};
// "created", "edited", "unchanged", "superseded", "left out", "failed".
[[nodiscard]] std::string_view to_string(Part::Outcome outcome);

// Return "weir (BASE)" or "weir: NAME (BASE)", and "weir/NAME (BASE #7)"; without a base "weir" or
// "weir: NAME". GitHub documents no limit; these have at most 150 characters.
[[nodiscard]] std::string check_name(const Marker& marker);
[[nodiscard]] std::string status_context(const Marker& marker);

using Wait = std::function<void(double seconds)>;

// Posts all three, in this order. A part that fails does not stop the others.
[[nodiscard]] std::vector<Part> post(Api& api, const Target& target, const Texts& texts,
                                     const PostOptions& options, const Wait& wait);

// The workflow run that measured a verdict.
struct MeasuringRun {
  std::optional<std::string> conclusion{};  // how it ended, if known
  bool fork = false;  // it ran a fork's code, which may have written any verdict
  bool judged_here =
      false;  // a fork's records were judged here by the base's rules, without its code
  bool of_pull_request = false;
  std::string wrong_rules{};                  // why_not_rules_of_base()
  std::optional<verdict::Comment> comment{};  // option of the poster, in place of the rules'
};
// Returns a verdict's comment, check and status. Pure. gate.comment decides if a comment is made:
// that of the base's rules, else its default.
//
// A verdict is no success if its run did not end well, if it is a fork's and was not judged again,
// or if it is for a base but by other rules. Other verdicts offer the code for `/weir waive`.
[[nodiscard]] Texts texts_of(const verdict::GateVerdict& gate, const report::MarkdownStyle& style,
                             const MeasuringRun& run, const Target& target = {},
                             const std::string& gate_name = std::string(k_default_gate));

struct MissingVerdict {
  std::string why;                        // hostile text; "": inferred from the conclusion
  std::optional<std::string> conclusion;  // how the run that should have measured ended
  std::string sha;
  std::optional<verdict::Comment> comment{};  // option of the poster
};
// Returns the texts for a run that left no verdict: "not judged", never a success.
[[nodiscard]] Texts missing_verdict_texts(const MissingVerdict& what,
                                          const report::MarkdownStyle& style);

}  // namespace weir::publish
