// One verdict to the places of a commit and a pull request: a sticky comment, a check run, a
// commit status. Each edits what an earlier post of the same gate, pull request and base left
// there; posters that race converge on one comment; a post of an older run leaves a newer one's
// alone.
//
// Who posts never learns that it was alone, so after creating something it looks again a few times,
// `settle` seconds in all (GitHub's lists lag behind). docs/how-to/post.md has the rules.
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

// Ready to send: nothing in them is secret or private.
struct Texts {
  std::string comment;  // Markdown, at most report::k_comment_limit bytes
  report::CheckText check;
  report::StatusText status;
  // How far the comment may go, and why no further; "": it may.
  enum class Reach { create, edit, nothing };
  Reach reach = Reach::create;
  std::string reach_reason{};
};

struct PostOptions {
  std::string gate = std::string(k_default_gate);  // from gate_name()
  bool comment = true, check = true, status = true;
  double settle_seconds = 7;
  std::string app = "github-actions";  // that posts, where the token may not say whose it is
};

struct Part {
  enum class Outcome { created, edited, unchanged, superseded, left_out, failed };
  std::string name;  // "comment", "check run", "commit status"
  Outcome outcome = Outcome::left_out;
  std::int64_t id = 0;                // as GitHub counts it; 0: none
  std::string url;                    // to look at; "": none
  std::string reason;                 // of superseded, left_out and failed
  std::vector<std::string> warnings;  // of what was posted and is not quite as it should be
};
// "created", "edited", "unchanged", "superseded", "left out", "failed".
[[nodiscard]] std::string_view to_string(Part::Outcome outcome);

// "weir (BASE)", "weir: NAME (BASE)"; "weir/NAME (BASE #7)". Without a base "weir", "weir: NAME".
// What GitHub takes for either is not in its description; these have at most 150 characters.
[[nodiscard]] std::string check_name(const Marker& marker);
[[nodiscard]] std::string status_context(const Marker& marker);

using Wait = std::function<void(double seconds)>;

// All three, in this order. A part that fails keeps none from being posted.
[[nodiscard]] std::vector<Part> post(Api& api, const Target& target, const Texts& texts,
                                     const PostOptions& options, const Wait& wait);

// What is posted of a verdict, and of none: silence is not green. Pure.
// The workflow run that a verdict is of, and what it is for.
struct MeasuredBy {
  std::optional<std::string> conclusion{};  // how it ended, where that is known
  bool fork = false;         // it ran a fork's code, and may have written any verdict
  bool judged_here = false;  // of a fork's records, by the base's rules, where no code of it ran
  bool of_pull_request = false;
  std::string wrong_rules{};                  // why_not_rules_of_base()
  std::optional<verdict::Comment> comment{};  // asked for by who posts, in place of the rules'
};
// A verdict's comment, check and status. Whether a comment is made is decided here for all who
// post: by gate.comment of the rules, where they are the base's, else as by its default. No verdict
// is shown as a success of a run that did not end well, of a fork's that was not judged again, or,
// where it is for a base, by any other rules than the base's. What else `/weir accept` could take
// is offered with its code.
[[nodiscard]] Texts texts_of(const verdict::GateVerdict& gate, const report::MarkdownStyle& style,
                             const MeasuredBy& run, const Target& target = {},
                             const std::string& gate_name = std::string(k_default_gate));

struct NotMeasured {
  std::string why;                        // hostile text; "": told from the conclusion
  std::optional<std::string> conclusion;  // of the workflow run that should have measured
  std::string sha;
  std::optional<verdict::Comment> comment{};  // asked for by who posts
};
// Of a run that left no verdict: "not measured", never a success.
[[nodiscard]] Texts not_measured(const NotMeasured& what, const report::MarkdownStyle& style);

}  // namespace weir::publish
