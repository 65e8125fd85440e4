// Every form of a gate's verdict: what is written to files, shown in a terminal, sent to GitHub.
//
// All of it is pure, and inert whatever engines, models and configurations call themselves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gate/report/document.hpp"
#include "gate/verdict/verdict.hpp"

namespace weir::report {

// A gate's verdict as people read it in a terminal or a log.
//
// What is wrong comes first and alone; what is fine is one line. No line is wider than `width`
// columns (at least 40), except the words of a command to paste. Text from engines and configs is
// made printable first: no escape sequence but weir's own colours comes out. Pure.

struct TerminalStyle {
  bool color = false;
  int width = 80;
  bool verbose = false;  // every cell with all its metrics, and nothing cut short
  Verbs verbs{};         // commands this build has; no other is named
};

[[nodiscard]] std::string terminal(const Document& document, const TerminalStyle& style);

// A gate's verdict as GitHub Markdown: pull-request comment and job summary.
//
// Names and reasons from outside are inert, on GitHub and on GitLab: they make no link, mention,
// reference, image, emoji, formula, table cell, HTML, heading or list, no order to a robot
// ("/merge"), and never hold "<!--", by which weir finds its own comment. Fits into `limit` bytes;
// what was left out is counted in a note. Pure.

// GitHub takes 65 536 characters in a comment and 1 MiB in a job summary.
inline constexpr std::size_t k_comment_limit = 65'000;
inline constexpr std::size_t k_summary_limit = 1'000'000;

struct MarkdownStyle {
  std::size_t limit = k_comment_limit;  // bytes, at least 2000
  Verbs verbs{};                        // commands this build has; no other is named
  std::optional<std::string> run_url;   // https://…: linked in the last line
  std::string gate{};  // its name, of several in one repository; shown in the first
                       // line unless "" or "default"
};

[[nodiscard]] std::string markdown(const Document& document, const MarkdownStyle& style);

// A gate's verdict as JUnit XML, for CI systems that show test results.
//
// A test suite for each engine/model/backend, a test case for each judged metric of a prompt
// ("decode: dispatches/token") and one for each cell as a whole. A broken limit is a failure, what
// could not be measured an error; undecided and new are skipped (undecided is a failure where the
// gate fails by it). Always well-formed XML 1.0 in UTF-8. Pure.

[[nodiscard]] std::string junit(const Document& document);

// A gate's verdict as one self-contained HTML page.
//
// Nothing is fetched and no script runs (its content security policy says so); everything from
// outside is escaped. Reads on wide and narrow screens, light and dark, and without a mouse. Pure.

[[nodiscard]] std::string html(const Document& document);

// A gate's verdict as OpenMetrics text 1.0, for systems that compare numbers of a branch with those
// of another (GitLab: artifacts:reports:metrics) or collect them.
//
// A gauge for each metric, named "weir_" and its name (metrics of the configuration's own:
// "weir_custom_…"), with the value that was measured, in base units, labelled with the cell; a
// weir_cell_verdict for each cell and a weir_exit_code. The first line says what was not judged.
// GitLab cuts a line at '#' and splits it as a shell does: labels hold no '#', and each is quoted.
// Pure.

[[nodiscard]] std::string open_metrics(const Document& document);

// GitHub workflow commands ("::error title=…::…"), which show up as annotations of a run.
//
// GitHub shows ten errors, ten warnings and ten notices of one step: the tenth of a kind says how
// many more there are. Hostile text cannot end a command or start another. Pure.

inline constexpr std::size_t k_annotations_shown = 10;

// "fail: llama.cpp / tiny-llama / vulkan / decode", "new: 3 cells".
[[nodiscard]] std::string annotation_title(const Block& block);
// What there is to say of cells that failed, could not be measured, are inconclusive, new or
// improved: plain text of at most 12 lines and 21 with their names, each without control
// characters.
[[nodiscard]] std::string annotation_message(const Block& block);

// One line a block of cells that failed or could not be measured (error), are inconclusive or new
// (warning), or improved (notice), and one with the gate's headline. Ends in a newline.
[[nodiscard]] std::string annotations(const Document& document);

// A gate's verdict as GitHub's check run and commit status, within GitHub's limits.
//
// Text from outside is as inert as in markdown.hpp; annotations and titles are plain text there.
// Pure.

// GitHub takes 65 535 bytes of a check's summary, 50 annotations a request, 255 characters of an
// annotation's title, 64 KiB of its message, 140 characters of a status' description.
// What a check's title and a status begin with where nothing was judged.
inline constexpr std::string_view k_not_judged = "not judged: ";
inline constexpr std::size_t k_check_summary_limit = 65'535;
inline constexpr std::size_t k_annotations_in_request = 50;

struct CheckAnnotation {
  std::string path;  // of the configuration, relative to the repository's root
  std::int64_t line = 1;
  std::string level;  // "failure", "warning", "notice"
  std::string title, message;
};

struct CheckText {
  std::string conclusion;                    // "success", "failure", "neutral", "cancelled"
  std::string title;                         // the verdict's first line, plain
  std::string summary;                       // Markdown
  std::vector<CheckAnnotation> annotations;  // worst first; at most `most_annotations`
  // Below the summary: what `/weir accept` reads back (verdict/allowance.hpp). "": nothing.
  std::string text{};
};
[[nodiscard]] CheckText check_text(const Document& document, const MarkdownStyle& style,
                                   std::size_t most_annotations = 200);

struct StatusText {
  std::string state;        // "success", "failure", "error"
  std::string description;  // at most 140 characters
};
[[nodiscard]] StatusText status_text(const Document& document);

// What a file of a report may say besides its verdict.
struct ReportAround {
  Verbs verbs{};                       // commands this build has; no other is named
  std::optional<std::string> run_url;  // https://…: where the run is shown
};

// A file that a gate's report can be written to.
struct ReportFormat {
  const char* option;  // "--markdown", which takes the file's name
  const char* about;   // the option's help
  std::string (*render)(const Document& document, const ReportAround& around);
  bool shows_machine_code = false;  // of changed kernels (verdict::OtherCode)
};
// All of them, in the order of a help text. Another one is a file here and a line of this table.
[[nodiscard]] std::span<const ReportFormat> report_formats();

}  // namespace weir::report
