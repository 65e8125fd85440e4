// Writes changes of a history for terminals, as JSON and as issues.
#include <algorithm>
#include <cmath>

#include "gate/base/text.hpp"
#include "gate/history/changes.hpp"
#include "gate/report/escape.hpp"
#include "gate/report/layout.hpp"
#include "gate/sys/clock.hpp"

namespace weir::history {
namespace {

constexpr std::size_t k_points_around = 3;

const RunFacts& run_at(const History& history, const Series& series, std::size_t index) {
  return history.run_of(series.points[index]);
}

// A size in per cent, without its sign: "8.1", "34".
std::string percent_text(double size) {
  const double shown = std::abs(size) * 100;
  return shown < 10 ? fmt::format("{:.1f}", shown) : fmt::format("{:.0f}", shown);
}

std::string value_text(const Metric& metric, double value) {
  if (metric.kind && metric.unit && metric.better) {
    return unit::show(unit::custom_metric(metric.name, *metric.kind, *metric.unit, *metric.better),
                      value);
  }
  return fmt::format("{:.4g}", value);
}

std::string metric_label(const Metric& metric) {
  const auto metric_entry = unit::find_metric(metric.name);
  return metric_entry ? unit::display_name(*metric_entry) : metric.name;
}

std::string class_change_text(const ClassChange& change) {
  const bool device = change.device_class != change.device_class_before;
  return device ? fmt::format("another device class ({} → {})", change.device_class_before,
                              change.device_class)
                : fmt::format("another machine class ({} → {})", change.machine_class_before,
                              change.machine_class);
}

// The word in front of a change in a list.
std::string_view change_mark(const SeriesChange& change) {
  if (change.acknowledgement) return "known";
  if (change.is_unclear()) return "unclear";
  if (!change.worse) return "changed";
  return *change.worse ? "WORSE" : "better";
}

// Returns "since 1a2b3c4, 2026-11-04, on MACHINE", with the 95 % interval of places. A drift has
// its first and last point.
std::string where_text(const History& history, const SeriesChange& change) {
  const Series& series = history.series[change.series];
  std::string text = "since " + place_label(run_at(history, series, change.index));
  if (change.earliest < change.latest) {
    text += fmt::format(" (95 %: {} to {})", place_label(run_at(history, series, change.earliest)),
                        place_label(run_at(history, series, change.latest)));
  }
  if (change.kind == stats::ChangeKind::drift) {
    text = fmt::format("little by little, from {} to {}",
                       place_label(run_at(history, series, change.index)),
                       place_label(run_at(history, series, change.end - 1)));
  }
  if (!series.machine.empty()) text += ", on " + series.machine;
  return text;
}

}  // namespace

std::string place_label(const RunFacts& run) {
  const std::string date = sys::date_of(run.time);
  return run.commit ? text::short_commit(*run.commit) + ", " + date : date;
}

// Returns "fell by 8.1 % (6.9 to 9.3 %)", with the interval; "grew by 16" for counts and for
// changes that are not relative.
std::string size_text(const Metric& metric, const SeriesChange& change) {
  if (change.size == 0) return "the same";
  const char* direction = change.size < 0 ? "fell" : "grew";
  const bool is_count = metric.kind == unit::Kind::count;
  if (is_count || !change.relative) {
    return fmt::format("{} by {:.10g}", direction, std::abs(change.after - change.before));
  }
  std::string text = fmt::format("{} by {}", direction, percent_text(change.size));
  if (change.low != change.high) {
    double near = change.low, far = change.high;
    const bool is_one_direction = (near < 0) == (far < 0);
    if (is_one_direction && std::abs(near) > std::abs(far)) std::swap(near, far);
    // Signs are shown only if the interval includes both directions.
    const auto sign = [&](double size) {
      if (is_one_direction) return "";
      return size < 0 ? "−" : "+";
    };
    text += fmt::format(" % ({}{} to {}{} %)", sign(near), percent_text(near), sign(far),
                        percent_text(far));
    return text;
  }
  return text + " %";
}

std::string levels_text(const Metric& metric, const SeriesChange& change) {
  return fmt::format("{} → {}", value_text(metric, change.before),
                     value_text(metric, change.after));
}

// Lists changes for a terminal, grouped by cell.
std::string changes_text(const History& history, const std::vector<SeriesChange>& changes,
                         std::size_t width) {
  std::string out, cell;
  const auto add = [&](std::string_view first, const std::string& words, std::size_t indent) {
    for (const std::string& line : report::wrap(text::printable(words), width, first, indent)) {
      out += line + "\n";
    }
  };
  constexpr std::size_t k_indent = 11;
  const std::string under(k_indent, ' ');
  for (std::size_t i = 0; i < changes.size(); ++i) {
    const SeriesChange& change = changes[i];
    const Series& series = history.series[change.series];
    const std::string heading =
        (series.project == "default" ? "" : series.project + ": ") + series.cell;
    if (heading != cell) {
      out += cell.empty() ? "" : "\n";
      add("", heading, 2);
      cell = heading;
    }
    add(fmt::format("  {:<7}  ", change_mark(change)),
        fmt::format("{} {}  {}", metric_label(series.metric), size_text(series.metric, change),
                    levels_text(series.metric, change)),
        k_indent);
    add(under, where_text(history, change), k_indent);
    // A later change of the series, or a level after a drift, shows that this one is over.
    const bool goes_on =
        (i + 1 == changes.size() || changes[i + 1].series != change.series) &&
        (change.kind != stats::ChangeKind::drift || change.end == series.points.size());
    if (!change.settled && goes_on) {
      add(under,
          fmt::format("{} since then: it may still turn out to be a {}",
                      text::plural(series.points.size() - change.index, "run"),
                      change.kind == stats::ChangeKind::drift ? "step" : "drift"),
          k_indent);
    }
    if (change.new_class) add(under, class_change_text(*change.new_class), k_indent);
    if (change.acknowledgement) {
      add(under,
          fmt::format("{}, {}: {}", change.acknowledgement->who,
                      sys::date_of(change.acknowledgement->acknowledged_at),
                      change.acknowledgement->reason),
          k_indent);
    }
  }
  return out;
}

// Returns one change as `weir trend changes --json` writes it. Absent values are null; indices are
// those of the series' points.
Json change_json(const History& history, const SeriesChange& change) {
  const Series& series = history.series[change.series];
  const RunFacts& run = run_at(history, series, change.index);
  const RunFacts& run_before = run_at(history, series, change.index - 1);
  Json json = {{"project", series.project},
               {"cell", series.cell},
               {"metric", series.metric.name},
               {"machine", series.machine},
               {"kind", kind_name(change)},
               {"commit", optional_to_json(run.commit)},
               {"commit_before", optional_to_json(run_before.commit)},
               {"time", sys::time_of(run.time)},
               {"index", change.index},
               {"earliest", change.earliest},
               {"latest", change.latest},
               {"end", change.end},
               {"points", series.points.size()},
               {"before", change.before},
               {"after", change.after},
               {"size", change.size},
               {"relative", change.relative},
               {"low", change.class_alone ? Json() : Json(change.low)},
               {"high", change.class_alone ? Json() : Json(change.high)},
               {"confidence", change.confidence},
               {"settled", change.settled},
               {"worse", optional_to_json(change.worse)},
               {"unit", series.metric.unit ? Json(unit::to_string(*series.metric.unit)) : Json()},
               {"class", nullptr},
               {"acknowledged", nullptr}};
  if (change.new_class) {
    json["class"] = {{"device_before", change.new_class->device_class_before},
                     {"device", change.new_class->device_class},
                     {"machine_before", change.new_class->machine_class_before},
                     {"machine", change.new_class->machine_class}};
  }
  if (change.acknowledgement) {
    json["acknowledged"] = {{"who", change.acknowledgement->who},
                            {"reason", change.acknowledgement->reason},
                            {"at", sys::time_of(change.acknowledgement->acknowledged_at)}};
  }
  return json;
}

ChangeIssue make_issue(const History& history, const SeriesChange& change,
                       const std::string& site_url) {
  using report::markdown_code;
  using report::markdown_text;
  const Series& series = history.series[change.series];
  const auto at = [&](std::size_t index) {
    const RunFacts& run = run_at(history, series, index);
    return run.commit ? *run.commit : sys::time_of(run.time);
  };
  ChangeIssue issue;
  issue.series = fmt::format("{}\n{}\n{}\n{}", series.project, series.cell, series.metric.name,
                             series.machine);
  issue.at = at(change.index);
  const std::size_t begin = change.index > k_points_around ? change.index - k_points_around : 0;
  const std::size_t end = std::min(series.points.size(), change.index + k_points_around + 1);
  for (std::size_t i = begin; i < end && !has_exact_values(series); ++i) {
    if (i != change.index) issue.near.push_back(at(i));
  }
  issue.title =
      report::clip(text::printable(fmt::format("weir: {} of {} {}", metric_label(series.metric),
                                               series.cell, size_text(series.metric, change))),
                   200);
  const RunFacts& run = run_at(history, series, change.index);
  const RunFacts& run_before = run_at(history, series, change.index - 1);
  std::string& body = issue.body;
  body += fmt::format("**{}** of {} {}: {}.\n\n", markdown_text(metric_label(series.metric)),
                      markdown_code(series.cell), markdown_text(size_text(series.metric, change)),
                      markdown_text(levels_text(series.metric, change)));
  body += fmt::format("| | |\n| --- | --- |\n| first | {} |\n| before it | {} |\n",
                      markdown_code(place_label(run)), markdown_code(place_label(run_before)));
  if (!series.machine.empty())
    body += fmt::format("| machine | {} |\n", markdown_code(series.machine));
  if (change.kind == stats::ChangeKind::drift) {
    body += fmt::format("| kind | little by little, over {} runs |\n", change.end - change.index);
  }
  if (change.new_class)
    body += fmt::format("| note | {} |\n", markdown_text(class_change_text(*change.new_class)));
  body += fmt::format("| runs since | {} |\n\n", series.points.size() - change.index);
  if (run.commit && run_before.commit && run.commit != run_before.commit &&
      change.kind == stats::ChangeKind::step && !change.new_class) {
    body += "Which commit: " +
            markdown_code(fmt::format("weir bisect {} {} --cell {}", *run_before.commit,
                                      *run.commit, text::shell_word(series.cell))) +
            "\n\n";
  }
  if (run.commit) {
    body += "It is meant to be so: " +
            markdown_code(
                fmt::format("weir trend ack --commit {} --cell {} --metric {} --reason '…'",
                            text::short_commit(*run.commit, 12), text::shell_word(series.cell),
                            text::shell_word(series.metric.name))) +
            ", then close this.\n";
  }
  if (site_url.starts_with("https://") || site_url.starts_with("http://")) {
    body += fmt::format("\n[Graphs]({})\n", site_url);
  }
  return issue;
}

}  // namespace weir::history
