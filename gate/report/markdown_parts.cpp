#include "gate/report/markdown_parts.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "gate/base/text.hpp"
#include "gate/report/document.hpp"
#include "gate/report/escape.hpp"
#include "gate/report/layout.hpp"
#include "gate/report/pictures.hpp"

namespace weir::report {
namespace {

// Narrow columns break "5 %" and "12 pairs" apart unless they are unbroken().
std::string row(std::string_view cell, const MetricRow& row) {
  const auto& [metric, all] = row;
  const bool failed = metric->verdict == Outcome::fail;
  constexpr std::size_t k_narrow = 30;
  std::string what = markdown_text(all.label);
  if (text::columns(what) <= k_narrow) what = unbroken(what);
  if (!failed && !limit_says_improved(*metric)) {
    what += fmt::format("{}({})", k_no_break, look_of(metric->verdict).tag);
  }
  std::string now = all.current.empty() ? all.now() : unbroken(all.current);
  if (failed) now = fmt::format("**{}**", now);
  const std::string between = all.change.empty() || all.evidence.empty() ? "" : ", ";
  return fmt::format("| {} | {} | {} | {} | {}{}{} | {} |\n", cell, what, unbroken(all.baseline),
                     now, unbroken(all.change), between, unbroken(all.evidence),
                     unbroken(markdown_text(all.limit)));
}

std::string special_row(std::string_view cell, std::string_view what, std::string_view change,
                        Outcome outcome) {
  return fmt::format("| {} | {} | | | {} | {} |\n", cell, what, change,
                     unbroken(change_limit(outcome)));
}

// "+45 ops": how many more there are that ran elsewhere.
std::string moved_ops(const CellVerdict& cell) {
  std::optional<Rational> sum(Rational(0));
  for (const verdict::Changed& one : cell.ops) {
    const auto by = one.current.value_or(Rational(0)).minus(one.baseline.value_or(Rational(0)));
    sum = sum && by ? sum->plus(*by) : std::nullopt;
  }
  return cell.ops.empty() || !sum ? "see below" : unbroken(signed_show(*sum) + " ops elsewhere");
}

std::string changed_list(const std::vector<ChangedWords>& all) {
  constexpr std::size_t k_most = 12;
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < std::min(k_most, all.size()); ++i) {
    parts.push_back(fmt::format("{} {}", all[i].change, markdown_code(all[i].name)));
  }
  if (all.size() > k_most) parts.push_back(fmt::format("and {} more", all.size() - k_most));
  return text::join(parts);
}

// " per token": what kernels are counted over.
std::string_view scope_of(const CellVerdict& cell) {
  for (const MetricVerdict& metric : cell.metrics) {
    if (!adds_up_kernels(cell, metric.metric)) continue;
    if (metric.metric.scope == unit::Scope::per_token) return " per token";
    if (metric.metric.scope == unit::Scope::per_prefill) return " per prefill";
  }
  return "";
}

// The ratios of a metric's pairs, with what their marks mean.
std::string picture(const MetricVerdict& metric) {
  const std::string strip = ratio_strip(metric, k_markdown_strip);
  if (strip.empty()) return "";
  return fmt::format("now / base: {}<br><sub>{}</sub>", markdown_code(strip),
                     markdown_text(strip_legend(metric)));
}

}  // namespace

CellNames cell_names(const Document& document) {
  const auto& cells = document.gate.cells;
  return {std::ranges::any_of(cells, [&](const CellVerdict& cell) {
    return cell.cell.engine_part() != cells.front().cell.engine_part();
  })};
}

std::string markdown_cell_name(const CellDocument& document, CellNames names) {
  const profile::CellKey& cell = document.of->cell;
  std::vector<std::string> parts;
  if (names.engine) parts.push_back(cell.engine_part());
  for (const std::string& part : {cell.model, cell.backend, cell.prompt_part()}) {
    parts.push_back(part);
  }
  for (std::string& part : parts) part = one_line(part, 96);
  return markdown_code(text::join(parts, " \u00b7 "));
}

std::string markdown_rows(const Block& block, const Document& document, CellNames names) {
  const CellVerdict& cell = block.of();
  std::string out;
  const auto name = [&]() -> std::string {
    if (!out.empty()) return "";
    if (block.one()) return markdown_cell_name(block.first(), names);
    constexpr std::size_t k_most = 5;
    std::string list = unbroken(
        fmt::format("{} of {}:", block.cells.size(), plural(document.cells.size(), "cell")));
    for (std::size_t i = 0; i < std::min(k_most, block.cells.size()); ++i) {
      list += "<br>" + markdown_cell_name(*block.cells[i], names);
    }
    const std::size_t all = block.cells.size();
    return list + (all > k_most ? fmt::format("<br>and {} more", all - k_most) : "");
  };
  if (cell.placement_verdict < Outcome::pass) {
    out += special_row(name(), "placement", moved_ops(cell), cell.placement_verdict);
  }
  if (kernels_stand_alone(cell)) {
    out += special_row(name(), "kernels", markdown_text(cell.kernels_reason, 200),
                       cell.kernels_verdict);
  }
  for (const MetricRow* one : block.rows) {
    if (one->of->verdict >= Outcome::pass) continue;
    out += row(name(), *one);
  }
  return out;
}

std::vector<Paragraph> markdown_paragraphs(const Block& block) {
  const CellVerdict& cell = block.of();
  std::vector<Paragraph> out;
  const auto add_for = [&](const std::vector<const CellDocument*>& cells, std::string what,
                           std::string text, std::string behind = "") {
    const bool there = std::ranges::any_of(
        out, [&](const Paragraph& one) { return one.text == text && one.cells == cells; });
    if (!text.empty() && !there) {
      out.push_back({std::move(what), std::move(text), std::move(behind), cells});
    }
  };
  const auto add = [&](std::string what, std::string text, std::string behind = "") {
    add_for(block.cells, std::move(what), std::move(text), std::move(behind));
  };
  const auto add_changes = [&](const std::string& what, const std::vector<ChangedIn>& changes) {
    for (const ChangedIn& one : changes) add_for(one.cells, what, changed_list(one.changes));
  };
  const bool wrong = cell.verdict < Outcome::pass;
  if (wrong) {
    for (const Shared& why : block.why) add_for(why.cells, "Why", markdown_text(why.text, 400));
  }
  if (cell.placement_verdict < Outcome::pass) {
    add("Placement", markdown_text(cell.placement_reason, 600));
  }
  if (wrong) add_changes(fmt::format("Kernels{}", scope_of(cell)), block.kernels);
  if (wrong) add_changes("Functions", block.functions);
  // Where ops broke the rule, the reason names them.
  if (cell.placement_verdict >= Outcome::pass) add_changes("Ops", block.ops);
  if (cell.verdict != Outcome::error) add("Note", markdown_text(cell.reason));
  for (const MetricRow* row : block.rows) {
    const MetricVerdict& metric = *row->of;
    if (metric.verdict >= Outcome::pass) continue;
    std::string text = reason_is_plain(metric) ? "" : markdown_text(metric.reason);
    if (const std::string strip = picture(metric); !strip.empty()) {
      text += (text.empty() ? "" : "<br>") + strip;
    }
    const auto spread = spread_words(metric);
    add(markdown_text(row->words.label), std::move(text),
        spread.empty() ? "" : markdown_fence(spread));
  }
  return out;
}

std::string markdown_last_words(const CellDocument& cell, std::string_view title) {
  const auto tail = last_lines(cell.of->stderr_tail, 15, 4000);
  if (tail.empty()) return "";
  return fmt::format("<details><summary>{}</summary>\n\n{}\n</details>\n\n", title,
                     markdown_fence(tail));
}

namespace {

// What the cells ran on, those that need a reader first: each name with its class.
std::vector<std::string> devices_of(const Document& document) {
  std::vector<const CellDocument*> cells = document.to_read;
  for (const CellDocument& cell : document.cells) cells.push_back(&cell);
  std::vector<std::string> devices;
  for (const CellDocument* one : cells) {
    const CellVerdict* cell = one->of;
    if (cell->device_name.empty() && cell->device_class.empty()) continue;
    std::string device = markdown_text(cell->device_name, 100);
    if (!cell->device_class.empty() && cell->device_class != cell->device_name) {
      device += (device.empty() ? "" : " ") + markdown_code(cell->device_class, 100);
    }
    if (std::ranges::find(devices, device) == devices.end()) {
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

std::string markdown_heading(const Document& document, const MarkdownStyle& style,
                             std::size_t most) {
  const GateVerdict& gate = document.gate;
  // Nothing at all is not green, nor what was not judged.
  const Outcome outcome = gate.verdict >= Outcome::improved && gate.cells.empty() ? Outcome::skipped
                          : gate.unjudged ? std::min(gate.verdict, Outcome::error)
                                          : gate.verdict;
  std::string line = fmt::format("### {} weir", look_of(outcome).sign);
  if (!style.gate.empty() && style.gate != "default") {
    line += fmt::format(" {}", markdown_code(style.gate, 40));
  }
  line += fmt::format(": {}", document.headline);
  if (gate.exit_code == verdict::ExitCode::inconclusive) line += ", which fails here";
  const std::string& missing = document.not_judged;
  if (missing.empty()) return line + "\n\n";
  for (const std::size_t characters : {300U, 100U, 30U}) {
    const std::string with =
        fmt::format("{} \u00b7 {}\n\n", line, markdown_text(missing, characters));
    if (with.size() <= most || characters == 30) return with;
  }
  return line + "\n\n";
}

std::string markdown_next(const Document& document, const MarkdownStyle& style, std::size_t most) {
  std::vector<std::string> lines;
  for (const Hint& one : hints(document.gate, style.verbs, 200)) {
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

std::string markdown_foot(const Document& document, const MarkdownStyle& style, std::size_t most) {
  const GateVerdict& gate = document.gate;
  std::vector<std::string> parts;
  std::string commits;
  if (gate.commit) commits = markdown_code(*gate.commit, 12);
  if (!document.base.empty()) {
    commits +=
        fmt::format("{}against {}", commits.empty() ? "" : " ", markdown_text(document.base, 200));
  }
  if (!commits.empty()) parts.push_back(commits);
  for (std::string& device : devices_of(document)) parts.push_back(std::move(device));
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
