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

// As most programs count characters: what lies beyond the first 65 536 code points is two.
std::string clip_utf16(std::string_view utf8, std::size_t most) {
  const auto units = [](std::string_view text) {
    return text::columns(text) + static_cast<std::size_t>(std::ranges::count_if(text, [](char c) {
             return static_cast<unsigned char>(c) >= 0xF0;
           }));
  };
  std::string out(utf8);
  for (std::size_t columns = most; units(out) > most; --columns) out = clip(utf8, columns);
  return out;
}

bool some_cell_held(const GateVerdict& gate) {
  return std::ranges::any_of(gate.cells, [](const CellVerdict& cell) {
    return cell.verdict == Outcome::pass || cell.verdict == Outcome::improved ||
           cell.verdict == Outcome::accepted;
  });
}

// A limit is broken, or what was not decided fails here.
bool is_broken(const GateVerdict& gate) {
  return gate.verdict == Outcome::fail || gate.exit_code == ExitCode::fail ||
         gate.exit_code == ExitCode::inconclusive;
}

// Nothing here may be shown as a success. Both the verdict and the exit code have to be fine: a
// verdict file may come from outside.
bool is_judged(const GateVerdict& gate) {
  if (is_broken(gate)) return true;
  return !gate.unjudged && gate.verdict != Outcome::error && gate.exit_code == ExitCode::pass &&
         (gate.verdict == Outcome::inconclusive || some_cell_held(gate));
}

// A required check is content with "neutral" and "skipped": only what was judged is no failure.
std::string conclusion_of(const GateVerdict& gate) {
  if (gate.exit_code == ExitCode::interrupted) return is_broken(gate) ? "failure" : "cancelled";
  if (is_broken(gate) || !is_judged(gate)) return "failure";
  return gate.verdict == Outcome::inconclusive ? "neutral" : "success";
}

// The verdict's first line.
std::string first_line(const Document& document) {
  const std::string title = document.first_line(" \u00b7 ");
  const std::string line = is_judged(document.gate) ? title : std::string(k_not_judged) + title;
  return text::disarm(one_line(line, 2000));
}

std::string level_of(Outcome outcome) {
  const std::string_view level = look_of(outcome).level;
  return std::string(level == "error" ? "failure" : level);
}

// Where annotations stand: below the repository's root, or the default name.
std::string path_of(const GateVerdict& gate) {
  std::string_view rest = gate.config;
  while (rest.starts_with("./")) rest.remove_prefix(2);
  if (rest.empty() || rest.size() > 300 || rest.front() == '/' || rest.back() == '/' ||
      rest.find_first_of("\\:\n\t") != std::string_view::npos || one_line(rest, 1000) != rest) {
    return std::string(k_default_config);
  }
  std::vector<std::string> parts;
  for (const std::string& part : text::split(rest, '/')) {
    if (part == "..") return std::string(k_default_config);
    if (!part.empty() && part != ".") parts.push_back(part);
  }
  return parts.empty() ? std::string(k_default_config) : text::join(parts, "/");
}

CheckAnnotation check_annotation(const Annotation& one, const std::string& path) {
  const std::string title =
      clip_utf16(text::disarm(one.title.empty() ? "weir" : one.title), k_title_limit);
  const std::string message = text::disarm(one.message);
  // GitHub takes no annotation without a message.
  return {path, 1, level_of(one.verdict), title, message.empty() ? title : message};
}

}  // namespace

CheckText check_text(const Document& document, const MarkdownStyle& style,
                     std::size_t most_annotations) {
  MarkdownStyle bounded = style;
  bounded.limit = std::min(style.limit, k_check_summary_limit);
  CheckText check{conclusion_of(document.gate),
                  clip_utf16(first_line(document), k_title_limit),
                  markdown(document, bounded),
                  {}};

  const std::string path = path_of(document.gate);
  for (const Annotation& one : at_most(annotations_of(document), most_annotations)) {
    check.annotations.push_back(check_annotation(one, path));
  }
  return check;
}

StatusText status_text(const Document& document) {
  const GateVerdict& gate = document.gate;
  // A status has no grey: what is inconclusive is said in its words.
  const std::string_view state = is_broken(gate)   ? "failure"
                                 : is_judged(gate) ? "success"
                                                   : "error";
  return {std::string(state), clip_utf16(first_line(document), k_status_limit)};
}

}  // namespace weir::report
