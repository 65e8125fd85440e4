#include "gate/report/markdown_parts.hpp"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "gate/base/text.hpp"
#include "gate/report/document.hpp"
#include "gate/report/escape.hpp"
#include "gate/report/layout.hpp"

namespace weir::report {

using verdict::CellVerdict;
using verdict::GateVerdict;
using verdict::Outcome;

namespace {

std::string_view sign_of(const GateVerdict& gate) {
  switch (gate.verdict) {
    case Outcome::fail:
      return "\u274c";  // cross
    case Outcome::error:
      return "\u26a0\ufe0f";  // warning
    case Outcome::inconclusive:
      return "\u2753";  // question mark
    case Outcome::fresh:
      return "\U0001f195";  // new
    case Outcome::skipped:
    case Outcome::info:
      return "\u26aa";  // a circle: what was not measured is not green
    default:
      return gate.cells.empty() ? "\u26aa" : "\u2705";  // tick
  }
}

// What the cells ran on, those that need a reader first: each name with its class.
std::vector<std::string> devices_of(const GateVerdict& gate) {
  std::vector<const CellVerdict*> cells = cells_to_read(gate);
  for (const CellVerdict& cell : gate.cells) cells.push_back(&cell);
  std::vector<std::string> devices;
  for (const CellVerdict* cell : cells) {
    if (cell->device_name.empty() && cell->device_class.empty()) continue;
    std::string device = markdown_text(cell->device_name, 100);
    if (!cell->device_class.empty() && cell->device_class != cell->device_name) {
      device += (device.empty() ? "" : " ") + markdown_code(cell->device_class, 100);
    }
    if (std::find(devices.begin(), devices.end(), device) == devices.end()) {
      devices.push_back(std::move(device));
    }
  }
  constexpr std::size_t k_most = 3;
  if (devices.size() > k_most) {
    const std::size_t more = devices.size() - k_most;
    devices.resize(k_most);
    devices.push_back(fmt::format("{} more", plural(more, "device")));
  }
  return devices;
}

std::string machine_of(const GateVerdict& gate) {
  for (const CellVerdict& cell : gate.cells) {
    if (!cell.machine_name.empty()) return cell.machine_name;
  }
  return "";
}

std::string_view question(const Hint& hint) {
  if (hint.what == "accept" || hint.what == "comment") return "Meant?";
  if (hint.what == "again") return "Try it:";
  return hint.what == "why" ? "Why:" : "See:";
}

}  // namespace

std::string markdown_run_link(const MarkdownStyle& style, std::string_view text) {
  const bool plain = style.run_url && style.run_url->starts_with("https://") &&
                     style.run_url->find_first_of(" <>()\"'`\\\n\r|") == std::string::npos &&
                     style.run_url->size() < 400;
  return plain ? fmt::format("[{}]({})", text, *style.run_url) : std::string(text);
}

std::string markdown_heading(const GateVerdict& gate, const MarkdownStyle& style,
                             std::size_t most) {
  std::string line = fmt::format("### {} weir", sign_of(gate));
  if (!style.gate.empty() && style.gate != "default") {
    line += fmt::format(" {}", markdown_code(style.gate, 40));
  }
  line += fmt::format(": {}", headline(gate));
  if (gate.exit_code == verdict::ExitCode::inconclusive) line += ", which fails here";
  const std::string missing = not_judged_line(gate);
  if (missing.empty()) return line + "\n\n";
  for (const std::size_t characters : {300U, 100U, 30U}) {
    const std::string with =
        fmt::format("{} \u00b7 {}\n\n", line, markdown_text(missing, characters));
    if (with.size() <= most || characters == 30) return with;
  }
  return line + "\n\n";
}

std::string markdown_next(const GateVerdict& gate, const MarkdownStyle& style, std::size_t most) {
  std::vector<std::string> lines;
  for (const Hint& one : hints(gate, style.verbs, 200)) {
    const std::string command = markdown_code(text::join(one.words, " "), 2000);
    if (one.what == "comment") {
      lines.push_back(fmt::format("{} Comment {}", question(one), command));
    } else if (one.what == "accept" && !lines.empty() && lines.back().starts_with("Meant?")) {
      lines.back() += fmt::format(" or run {}", command);
    } else {
      lines.push_back(fmt::format("{} {}", question(one), command));
    }
  }
  const std::string out = text::join(lines, "<br>\n") + "\n\n";
  return lines.empty() || out.size() > most ? "" : out;
}

std::string markdown_foot(const GateVerdict& gate, const MarkdownStyle& style, std::size_t most) {
  std::vector<std::string> parts;
  std::string commits;
  if (gate.commit) commits = markdown_code(*gate.commit, 12);
  if (const std::string base = base_words(gate); !base.empty()) {
    commits += fmt::format("{}against {}", commits.empty() ? "" : " ", markdown_text(base, 200));
  }
  if (!commits.empty()) parts.push_back(commits);
  for (std::string& device : devices_of(gate)) parts.push_back(std::move(device));
  if (const std::string machine = machine_of(gate); !machine.empty()) {
    parts.push_back(markdown_text(machine, 100));
  }
  if (gate.seconds) parts.push_back(unit::show_duration(*gate.seconds));
  if (const std::string link = markdown_run_link(style, "run"); link != "run") {
    parts.push_back(link);
  }
  // Everything that has room, the version in any case.
  const std::string version = "weir " + markdown_text(gate.weir_version, 12);
  std::string out = "<sub>";
  for (const std::string& part : parts) {
    constexpr std::string_view k_between = " \u00b7 ", k_end = "</sub>\n";
    if (out.size() + part.size() + version.size() + k_between.size() + k_end.size() > most) {
      continue;
    }
    out += part + std::string(k_between);
  }
  return out + version + "</sub>\n";
}

}  // namespace weir::report
