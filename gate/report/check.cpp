#include <algorithm>

#include <fmt/format.h>

#include "gate/base/text.hpp"
#include "gate/report/document.hpp"
#include "gate/report/formats.hpp"
#include "gate/report/layout.hpp"

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

// The verdict's first line.
std::string first_line(const Document& document) {
  return text::disarm(one_line(document.first_line(" \u00b7 "), 2000));
}

bool some_cell_held(const GateVerdict& gate) {
  return std::ranges::any_of(gate.cells, [](const CellVerdict& cell) {
    return cell.verdict == Outcome::pass || cell.verdict == Outcome::improved ||
           cell.verdict == Outcome::accepted;
  });
}

// Both the verdict and the exit code have to be fine: a verdict file may come from outside.
std::string conclusion_of(const GateVerdict& gate) {
  if (gate.verdict == Outcome::fail || gate.exit_code == ExitCode::fail) return "failure";
  if (gate.exit_code == ExitCode::interrupted) return "cancelled";
  if (gate.verdict == Outcome::error || gate.exit_code == ExitCode::unmeasured ||
      gate.exit_code == ExitCode::inconclusive) {
    return "failure";
  }
  if (gate.verdict == Outcome::inconclusive || !some_cell_held(gate)) return "neutral";
  return gate.exit_code == ExitCode::pass ? "success" : "failure";
}

std::string level_of(Outcome outcome) {
  const std::string_view level = look_of(outcome).level;
  return std::string(level == "error" ? "failure" : level);
}

// Where annotations stand: below the repository's root, or the default name.
std::string path_of(const GateVerdict& gate) {
  const std::string& config = gate.config;
  std::string_view rest = config;
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

// Cells of one verdict about which the same is to be said.
struct AlikeCells {
  Outcome verdict = Outcome::pass;
  std::string message;
  std::vector<std::string> cells;
};

std::vector<AlikeCells> groups_of(const Document& document) {
  std::vector<AlikeCells> groups;
  for (const CellDocument* cell : document.to_read) {
    std::string message = text::disarm(annotation_message(*cell));
    // Alike cells lie side by side mostly; looking further back would cost the square of them.
    constexpr std::size_t k_back = 64;
    const auto from = groups.end() - static_cast<std::ptrdiff_t>(std::min(k_back, groups.size()));
    const auto same = std::find_if(from, groups.end(), [&](const AlikeCells& group) {
      return group.verdict == cell->of->verdict && group.message == message;
    });
    if (same == groups.end()) {
      groups.push_back({cell->of->verdict, std::move(message), {cell->title}});
    } else {
      same->cells.push_back(cell->title);
    }
  }
  return groups;
}

CheckAnnotation annotation_of(const AlikeCells& group, const std::string& path) {
  CheckAnnotation annotation;
  annotation.path = path;
  annotation.level = level_of(group.verdict);
  const std::string word(verdict::to_string(group.verdict));
  annotation.message = group.message;
  if (group.cells.size() == 1) {
    annotation.title = fmt::format("{}: {}", word, group.cells.front());
  } else {
    constexpr std::size_t k_most = 20;
    annotation.title = fmt::format("{}: {}", word, plural(group.cells.size(), "cell"));
    for (std::size_t i = 0; i < std::min(k_most, group.cells.size()); ++i) {
      annotation.message += fmt::format("\n- {}", group.cells[i]);
    }
    if (group.cells.size() > k_most) {
      annotation.message += fmt::format("\nand {} more", group.cells.size() - k_most);
    }
  }
  annotation.title = clip_utf16(annotation.title, k_title_limit);
  // GitHub takes no annotation without a message.
  if (annotation.message.empty()) annotation.message = annotation.title;
  return annotation;
}

}  // namespace

CheckText check_text(const Document& document, const MarkdownStyle& style,
                     std::size_t most_annotations) {
  CheckText check;
  check.conclusion = conclusion_of(document.gate);
  check.title = clip_utf16(first_line(document), k_title_limit);
  MarkdownStyle bounded = style;
  bounded.limit = std::min(style.limit, k_check_summary_limit);
  check.summary = markdown(document, bounded);

  const std::vector<AlikeCells> groups = groups_of(document);
  const std::string path = path_of(document.gate);
  for (std::size_t i = 0; i < groups.size() && check.annotations.size() < most_annotations; ++i) {
    if (i + 1 == most_annotations && groups.size() > most_annotations) {
      std::size_t cells = 0;
      for (std::size_t rest = i; rest < groups.size(); ++rest) cells += groups[rest].cells.size();
      const std::string more = fmt::format("and {}", plural(cells, "more cell"));
      check.annotations.push_back({path, 1, level_of(groups[i].verdict), "weir", more});
      break;
    }
    check.annotations.push_back(annotation_of(groups[i], path));
  }
  return check;
}

StatusText status_text(const Document& document) {
  const GateVerdict& gate = document.gate;
  StatusText status;
  status.description = clip_utf16(first_line(document), k_status_limit);
  const std::string conclusion = conclusion_of(gate);
  const bool broken = gate.verdict == Outcome::fail || gate.exit_code == ExitCode::fail ||
                      gate.exit_code == ExitCode::inconclusive;
  // A status has no grey: what was not measured is no success, what is open or new is as the exit
  // code says.
  if (conclusion == "success") {
    status.state = "success";
  } else if (conclusion == "neutral") {
    const bool measured = gate.verdict == Outcome::inconclusive || gate.verdict == Outcome::fresh;
    status.state = measured && gate.exit_code == ExitCode::pass ? "success" : "error";
  } else {
    status.state = broken ? "failure" : "error";
  }
  return status;
}

}  // namespace weir::report
