#include "gate/report/compare_words.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "gate/base/text.hpp"
#include "gate/report/layout.hpp"

namespace weir::report {
namespace {

using explain::ComparedOp;
using explain::OpChange;
using Texts = std::set<std::string>;

const Texts k_none;

// "a, b", "5 shapes".
std::string told(const Texts& texts, std::string_view many) {
  constexpr std::size_t k_most = 3;
  if (texts.size() > k_most) return plural(texts.size(), many);
  std::string words;
  for (const std::string& one : texts) words += (words.empty() ? "" : ", ") + one_line(one, 80);
  return words;
}

// "a → b", or what it is where it did not change.
std::string moved(const Texts& a, const Texts& b, std::string_view many) {
  if (a == b || b.empty()) return told(a, many);
  return a.empty() ? told(b, many) : told(a, many) + std::string(k_arrow) + told(b, many);
}

const Texts& of(const std::optional<ComparedOp>& side, Texts ComparedOp::*what) {
  return side ? (*side).*what : k_none;
}

Texts briefly(const Texts& types) {
  Texts brief;
  for (const std::string& type : types) {
    brief.insert(type.substr(0, std::min(type.find(','), type.find("->"))));
  }
  return brief;
}

// Quantizations: told where they are others, the whole of it only where the first does not tell.
std::string type_words(const OpChange& op) {
  const Texts& a = of(op.a, &ComparedOp::types);
  const Texts& b = of(op.b, &ComparedOp::types);
  if (op.a && op.b && (a == b || a.empty() || b.empty())) return "";
  const Texts brief_a = briefly(a), brief_b = briefly(b);
  return brief_a == brief_b ? moved(a, b, "type") : moved(brief_a, brief_b, "type");
}

Texts lowered(const Texts& names) {
  Texts made;
  for (const std::string& name : names) made.insert(text::lower(name));
  return made;
}

// What it is called, where that tells more than the role. One name alone stands in the role's
// place.
std::string name_words(const OpChange& op, bool types_told) {
  const Texts& a = of(op.a, &ComparedOp::names);
  const Texts& b = of(op.b, &ComparedOp::names);
  const bool both = op.a && op.b;
  if (both && (types_told || lowered(a) == lowered(b))) return "";
  return both || a.size() + b.size() > 1 ? moved(a, b, "name") : "";
}

std::optional<std::string> only_name(const OpChange& op) {
  const Texts& a = of(op.a, &ComparedOp::names);
  const Texts& b = of(op.b, &ComparedOp::names);
  const Texts& names = op.a ? a : b;
  if (names.size() != 1 || (op.a && op.b && a != b)) return std::nullopt;
  return *names.begin();
}

std::string count_words(double calls) {
  if (calls == std::floor(calls) && calls < 1e15) return fmt::format("{:.0f}", calls);
  return calls >= 100 ? fmt::format("{:.1f}", calls) : fmt::format("{:.3g}", calls);
}

void add(std::string& words, std::string_view separator, const std::string& more) {
  if (more.empty()) return;
  words += (words.empty() ? "" : std::string(separator)) + more;
}

}  // namespace

std::string ratio_words(double ratio) {
  return fmt::format("{}\u00d7",
                     ratio < 100 ? fmt::format("{:.2f}", ratio) : fmt::format("{:.3g}", ratio));
}

CompareColumns compare_columns(const explain::Comparison& comparison) {
  CompareColumns columns;
  Texts backends;
  for (const OpChange& op : comparison.ops) {
    for (const auto* side : {&op.a, &op.b}) {
      if (!*side) continue;
      columns.times = columns.times || (*side)->seconds;
      columns.calls = columns.calls || (*side)->calls;
      backends.insert((*side)->backends.begin(), (*side)->backends.end());
    }
  }
  columns.backends = backends.size() > 1;
  return columns;
}

std::vector<std::string> compare_head(const CompareColumns& columns) {
  std::vector<std::string> head;
  if (columns.times) head = {"time A", "B", "ratio"};
  if (columns.calls) head.insert(head.end(), {"calls A", "B"});
  return head;
}

std::vector<std::string> compare_cells(const OpChange& op, const CompareColumns& columns) {
  std::vector<std::string> cells;
  const auto number = [&](const std::optional<ComparedOp>& side,
                          std::optional<double> ComparedOp::*what, auto&& words) {
    const auto value = side ? (*side).*what : std::nullopt;
    cells.push_back(value ? words(*value) : "");
  };
  if (columns.times) {
    number(op.a, &ComparedOp::seconds, brief_time);
    number(op.b, &ComparedOp::seconds, brief_time);
    const auto ratio = op.time_ratio();
    cells.push_back(ratio ? ratio_words(*ratio) : "");
  }
  if (columns.calls) {
    number(op.a, &ComparedOp::calls, count_words);
    number(op.b, &ComparedOp::calls, count_words);
  }
  return cells;
}

std::string compare_what(const OpChange& op, const CompareColumns& columns) {
  const std::string types = type_words(op);
  const auto name = only_name(op);
  std::string words = one_line(name.value_or(op.role), 120);
  if (!name && !op.part.empty()) words += " (" + one_line(op.part, 40) + ")";
  add(words, " ", moved(of(op.a, &ComparedOp::shapes), of(op.b, &ComparedOp::shapes), "shape"));
  add(words, ", ", name_words(op, !types.empty()));
  add(words, ", ", types);
  if (columns.backends) {
    add(words, ", ",
        moved(of(op.a, &ComparedOp::backends), of(op.b, &ComparedOp::backends), "backend"));
  }
  const auto whole = op.time_ratio(), each = op.each_ratio();
  if (whole && each && ratio_words(*whole) != ratio_words(*each)) {
    words += fmt::format(" (each {})", ratio_words(*each));
  }
  return words;
}

std::string compare_side(const explain::ComparedSide& side) {
  std::string words = one_line(side.name, 200);
  add(words, ": ", one_line(side.words, 200));
  return fmt::format("{} ({})", words, one_line(side.format, 60));
}

std::string compare_basis(const explain::Comparison& comparison) {
  std::string words;
  if (!comparison.ops.empty()) {
    if (!comparison.per.empty()) {
      words = fmt::format("{}a {}", comparison.decoding ? "Decoding, " : "Times and calls of ",
                          comparison.per);
      if (comparison.a.tokens && comparison.b.tokens) {
        words += fmt::format(" (of {} and {})", *comparison.a.tokens, *comparison.b.tokens);
      }
    } else {
      words = comparison.decoding ? "All that decodes" : "All of both runs";
    }
    words += ".";
  }
  if (comparison.seconds_a && comparison.seconds_b) {
    words += fmt::format(" All ops: {} \u2192 {}", brief_time(*comparison.seconds_a),
                         brief_time(*comparison.seconds_b));
    if (*comparison.seconds_a > 0) {
      words += ", " + ratio_words(*comparison.seconds_b / *comparison.seconds_a);
    }
    words += ".";
  }
  return words;
}

std::vector<MetricRow> compare_metrics(const explain::Comparison& comparison) {
  std::vector<MetricRow> both, either;
  for (const explain::MetricChange& one : comparison.metrics) {
    const auto words = [&](const std::optional<double>& value) {
      return value ? one_line(unit::show(one.metric, *value), 40) : "";
    };
    // "tg8 decode tok/s": the case stands before the metric's name.
    std::string name = one.name;
    if (name.ends_with(one.metric.name)) {
      name.resize(name.size() - one.metric.name.size());
      name += unit::label(one.metric);
    }
    MetricRow row{one_line(name, 60), words(one.a), words(one.b), ""};
    if (one.a && one.b && *one.a > 0) row.ratio = ratio_words(*one.b / *one.a);
    (one.a && one.b ? both : either).push_back(std::move(row));
  }
  return both.empty() ? either : both;
}

}  // namespace weir::report
