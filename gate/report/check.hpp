// A gate's verdict as GitHub's check run and commit status, within GitHub's limits.
//
// Text from outside is as inert as in markdown.hpp; annotations and titles are plain text there.
// Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gate/report/document.hpp"
#include "gate/report/markdown.hpp"

namespace weir::report {

// The beginning of a check's title and of a status if nothing was judged.
inline constexpr std::string_view k_not_judged = "not judged: ";
// GitHub takes 65 535 bytes of a check's summary, 50 annotations a request, 255 characters of an
// annotation's title, 64 KiB of its message, 140 characters of a status' description.
inline constexpr std::size_t k_check_summary_limit = 65'535;
inline constexpr std::size_t k_annotations_in_request = 50;

struct CheckAnnotation {
  std::string path;  // the configuration, relative to the repository's root
  std::int64_t line = 1;
  std::string level;  // "failure", "warning", "notice"
  std::string title, message;
};

struct CheckText {
  std::string conclusion;                    // "success", "failure", "neutral", "cancelled"
  std::string title;                         // the verdict's first line, plain
  std::string summary;                       // Markdown
  std::vector<CheckAnnotation> annotations;  // worst first; at most `max_annotations`
  // Below the summary: what `/weir waive` reads back (verdict/waiver.hpp). "": nothing.
  std::string text{};
};
[[nodiscard]] CheckText check_text(const Document& document, const MarkdownStyle& style,
                                   std::size_t max_annotations = 200);

struct StatusText {
  std::string state;        // "success", "failure", "error"
  std::string description;  // at most 140 characters
};
[[nodiscard]] StatusText status_text(const Document& document);

}  // namespace weir::report
