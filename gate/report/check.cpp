// Writes a gate's verdict as GitHub's check run and commit status.
#include "gate/report/check.hpp"

#include <algorithm>

#include "gate/base/text.hpp"
#include "gate/report/annotations.hpp"
#include "gate/report/document.hpp"
#include "gate/report/layout.hpp"
#include "gate/report/markdown.hpp"

namespace weir::report {

using verdict::ExitCode;

namespace {

constexpr std::string_view k_default_config = "weir.yaml";
constexpr std::size_t k_title_limit = 255;
constexpr std::size_t k_status_limit = 140;

// Clips to `max_units` UTF-16 units, as GitHub counts: a code point above U+FFFF is two.
std::string clip_utf16(std::string_view utf8, std::size_t max_units) {
  const auto units = [](std::string_view text) {
    return text::columns(text) + static_cast<std::size_t>(std::ranges::count_if(text, [](char c) {
             return static_cast<unsigned char>(c) >= 0xF0;
           }));
  };
  std::string out(utf8);
  for (std::size_t columns = max_units; units(out) > max_units; --columns)
    out = clip(utf8, columns);
  return out;
}

bool has_passed_cell(const GateVerdict& gate) {
  return std::ranges::any_of(gate.cells, [](const CellVerdict& cell) {
    return cell.verdict == Outcome::pass || cell.verdict == Outcome::improved ||
           cell.verdict == Outcome::waived;
  });
}

// Returns true if a limit is broken, or if the gate fails because it is inconclusive.
bool is_broken(const GateVerdict& gate) {
  return gate.verdict == Outcome::fail || gate.exit_code == ExitCode::fail ||
         gate.exit_code == ExitCode::inconclusive;
}

// Returns true if all was measured, and the pull request brings the rules along.
bool is_brought(const GateVerdict& gate) {
  return verdict::brings_rules(gate.rules) && gate.exit_code == ExitCode::pass;
}

// Returns true if the gate judged anything, or if the base has no rules to judge by yet; otherwise
// nothing may look like a success. Looks at the verdict and the exit code, as a verdict file may
// come from outside.
bool is_judged(const GateVerdict& gate) {
  if (is_broken(gate) || is_brought(gate)) return true;
  return !gate.nothing_judged_reason && gate.verdict != Outcome::error &&
         gate.exit_code == ExitCode::pass &&
         (gate.verdict == Outcome::inconclusive || has_passed_cell(gate));
}

// Returns the conclusion of the check. A gate that judged nothing is a "failure", because "neutral"
// and "skipped" satisfy a required check; a base without rules requires none.
std::string conclusion(const GateVerdict& gate) {
  if (gate.exit_code == ExitCode::interrupted) return is_broken(gate) ? "failure" : "cancelled";
  if (is_broken(gate) || !is_judged(gate)) return "failure";
  return gate.verdict == Outcome::inconclusive || is_brought(gate) ? "neutral" : "success";
}

// Returns the first line of the verdict, after "not judged: " if nothing was judged.
std::string first_line(const Document& document) {
  const std::string title = document.first_line(" \u00b7 ");
  const std::string line = is_judged(document.gate) ? title : std::string(k_not_judged) + title;
  return text::neutralize_ci_commands(printable_line(line, 2000));
}

std::string check_level(Outcome outcome) {
  const std::string_view level = outcome_look(outcome).level;
  return std::string(level == "error" ? "failure" : level);
}

// Returns the file that annotations point to: the configuration below the repository's root, or
// weir.yaml if its path is not one below the root.
std::string annotation_path(const GateVerdict& gate) {
  std::string_view rest = gate.config;
  while (rest.starts_with("./")) rest.remove_prefix(2);
  if (rest.empty() || rest.size() > 300 || rest.front() == '/' || rest.back() == '/' ||
      rest.find_first_of("\\:\n\t") != std::string_view::npos ||
      printable_line(rest, 1000) != rest) {
    return std::string(k_default_config);
  }
  std::vector<std::string> parts;
  for (const std::string& part : text::split(rest, '/')) {
    if (part == "..") return std::string(k_default_config);
    if (!part.empty() && part != ".") parts.push_back(part);
  }
  return parts.empty() ? std::string(k_default_config) : text::join(parts, "/");
}

CheckAnnotation check_annotation(const Annotation& annotation, const std::string& path) {
  const std::string title =
      clip_utf16(text::neutralize_ci_commands(annotation.title.empty() ? "weir" : annotation.title),
                 k_title_limit);
  const std::string message = text::neutralize_ci_commands(annotation.message);
  // GitHub takes no annotation without a message.
  return {path, 1, check_level(annotation.verdict), title, message.empty() ? title : message};
}

}  // namespace

// Returns the text of a GitHub check: conclusion, title, summary and annotations, within GitHub's
// limits of size.
CheckText check_text(const Document& document, const MarkdownStyle& style,
                     std::size_t max_annotations) {
  MarkdownStyle bounded = style;
  bounded.limit = std::min(style.limit, k_check_summary_limit);
  CheckText check{conclusion(document.gate),
                  clip_utf16(first_line(document), k_title_limit),
                  markdown(document, bounded),
                  {}};

  const std::string path = annotation_path(document.gate);
  for (const Annotation& annotation :
       limit_annotations(list_annotations(document), max_annotations)) {
    check.annotations.push_back(check_annotation(annotation, path));
  }
  return check;
}

StatusText status_text(const Document& document) {
  const GateVerdict& gate = document.gate;
  // A status has no neutral state, so its description alone says "inconclusive".
  std::string state = "error";
  if (is_broken(gate)) {
    state = "failure";
  } else if (is_judged(gate)) {
    state = "success";
  }
  return {state, clip_utf16(first_line(document), k_status_limit)};
}

}  // namespace weir::report
