// A gate's verdict as GitHub Markdown: pull-request comment and job summary.
//
// Names and reasons from outside are inert, on GitHub and on GitLab. They make no link, mention,
// reference, image, emoji, formula, table cell, HTML, heading or list, and no order to a robot
// ("/merge"). They never hold "<!--", by which weir finds its own comment.
//
// The text fits into `limit` bytes; a note counts what was left out. A text that begins with causes
// takes at most `k_brief_limit` bytes, unless `limit` is a job summary's. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "gate/report/document.hpp"
#include "gate/report/hints.hpp"

namespace weir::report {

// GitHub takes 65 536 characters in a comment and 1 MiB in a job summary.
inline constexpr std::size_t k_comment_limit = 65'000;
inline constexpr std::size_t k_summary_limit = 1'000'000;
inline constexpr std::size_t k_brief_limit = 6'000;

struct MarkdownStyle {
  std::size_t limit = k_comment_limit;  // bytes, at least 2000
  Verbs verbs{};                        // commands this build has; no other is named
  std::optional<std::string> run_url;   // https://…: linked in the last line
  std::string gate{};  // its name, of several in one repository; shown in the first
                       // line unless "" or "default"
};

[[nodiscard]] std::string markdown(const Document& document, const MarkdownStyle& style);

}  // namespace weir::report
