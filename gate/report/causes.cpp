// Causes of a gate in words: chosen once, for every format.
#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/report/document.hpp"

namespace weir::report {
namespace {

using profile::CellKey;
using Cells = std::vector<const CellDocument*>;
using Values = std::array<std::vector<std::string>, 4>;  // of each dimension, in their order

Values values_of(const std::vector<CellKey>& cells) {
  Values values;
  for (const CellKey& cell : cells) {
    const auto parts = cell_parts(cell);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (!holds(values[i], parts[i])) values[i].push_back(parts[i]);
    }
  }
  return values;
}

std::string dimension(const std::vector<std::string>& values, std::string_view one) {
  constexpr std::size_t k_few = 3, k_short = 20;
  const std::string names = text::join(values);
  const bool named = values.size() <= k_few && text::columns(names) <= k_short;
  return named || values.size() == 1 ? names : plural(values.size(), one);
}

std::string product(const Values& values, const Values& all) {
  constexpr std::string_view k_names[] = {"engine", "model", "backend", "prompt"};
  std::vector<std::string> parts;
  for (std::size_t i = all[0].size() == 1 ? 1 : 0; i < values.size(); ++i) {
    parts.push_back(dimension(values[i], k_names[i]));
  }
  return text::join(parts, " \u00d7 ");
}

const MetricRow* row_of(const CellDocument& cell, std::string_view metric) {
  return first_of(cell.rows, [&](const MetricRow& row) { return row.of->metric.name == metric; });
}

// A metric's numbers over these cells, those of its cells that have it.
Number numbers_of(const std::string& metric, const Cells& cells) {
  Number words;
  std::vector<ValueWords> before, now, change;
  std::set<std::string> reasons;  // in place of numbers, of what is no metric
  for (const CellDocument* cell : cells) {
    const MetricRow* row = row_of(*cell, metric);
    if (row == nullptr) continue;
    const Judgement& of = *row->of;
    words.label = row->words.label;
    if (!of.is_metric()) reasons.insert(one_line(of.reason, 200));
    if (of.baseline) before.emplace_back(*of.baseline, row->words.base);
    if (of.current) now.emplace_back(*of.current, row->words.now);
    if (!of.baseline || !of.current) continue;
    if (of.metric.kind == unit::Kind::count) {
      const double by = *of.current - *of.baseline;
      if (by != 0) change.emplace_back(by, signed_show(of.metric, by));
    } else if (of.change) {
      change.emplace_back(*of.change, percent(*of.change));
    }
  }
  words.base = range_words(before);
  words.now = range_words(now);
  if (words.now.empty() && !words.base.empty()) words.now = "not measured";
  words.change = range_words(change);
  if (reasons.size() == 1) words.why = *reasons.begin();  // else each is true of one cell alone
  if (!words.label.empty()) return words;
  const auto known = unit::find_metric(metric);
  words.label = known ? unit::label(*known) : one_line(metric, 100);
  return words;
}

std::string where_of(const Cells& cells, const Document& document) {
  if (cells.empty()) return "";
  const auto key = [](const CellDocument* cell) { return cell->of->cell; };
  return where(
      collect<CellKey>(cells, key),
      collect<CellKey>(document.cells, [](const CellDocument& cell) { return cell.of->cell; }));
}

Number carrier_words(const verdict::Carrier& carrier, const Cells& cells) {
  Number words = numbers_of(carrier.metric, cells);
  // As counted over its cells: exact where a verdict's numbers were rounded.
  if (const auto known = unit::find_metric(carrier.metric)) {
    words.change = range_words({{carrier.least, signed_show(*known, carrier.least)},
                                {carrier.most, signed_show(*known, carrier.most)}});
  }
  const auto in = static_cast<std::size_t>(std::max<std::int64_t>(carrier.cells, 0));
  if (in < cells.size()) {
    words.where = fmt::format("in {} of {}", in, plural(cells.size(), "cell"));
  }
  return words;
}

// "9 more counts follow from it; beside it: More is copied."
std::string follow_words(const verdict::Cause& cause) {
  std::vector<std::string> parts;
  if (cause.follow > 0) {
    const bool one = cause.follow == 1;
    parts.push_back(
        fmt::format("{} more {} from it", cause.follow, one ? "count follows" : "counts follow"));
  }
  if (!cause.beside.empty()) {
    parts.push_back(fmt::format("{}eside it: {}", parts.empty() ? "B" : "b",
                                one_line(text::join(cause.beside, "; "), 300)));
  }
  return text::join(parts, "; ");
}

Part part_of(const verdict::Cause& cause, const Cells& cells, const Document& document) {
  const std::string headline = one_line(cause.headline, 400);
  const auto add = [](Parts& parts, Part part) {
    if (!plain_words(part.words).empty()) parts.push_back(std::move(part));
  };
  const std::string in = where_of(cells, document), follow = follow_words(cause);
  Part part = section(plain(headline));
  part.cells = cause.cells.size();
  if (!in.empty()) part.parts.push_back(paragraph("", "In " + in + "."));
  part.parts.push_back(number_table(
      "numbers that carry: " + headline,
      collect<Number>(cause.carriers, [&](const auto& one) { return carrier_words(one, cells); })));
  add(part.parts, paragraph("", follow.empty() ? "" : follow + ".", true));
  add(part.parts, read_by(k_long, paragraph("Typical cause", one_line(cause.cause, 400), true)));
  add(part.parts, paragraph("Look at", one_line(cause.look_at, 200)));
  return part;
}

}  // namespace

std::string where(const std::vector<CellKey>& cells, const std::vector<CellKey>& all) {
  if (cells.size() == 1) return cell_title(cells.front());
  const bool every = cells.size() == all.size();
  const std::string head = every
                               ? fmt::format("all {} cells", all.size())
                               : fmt::format("{} of {}", cells.size(), plural(all.size(), "cell"));
  const Values values = values_of(cells);
  std::size_t size = 1;
  for (const auto& one : values) size *= one.size();
  if (size == cells.size()) return fmt::format("{}: {}", head, product(values, values_of(all)));
  if (every) return head;
  constexpr std::size_t k_by_name = 3;
  const auto titles = [](const std::vector<CellKey>& keys) {
    return listed(collect<std::string>(keys, cell_title), k_by_name);
  };
  const bool most = all.size() <= cells.size() + k_by_name;
  if (cells.size() <= k_by_name || !most) return fmt::format("{}: {}", head, titles(cells));
  std::vector<CellKey> others = all;
  std::erase_if(others, [&](const CellKey& one) { return holds(cells, one); });
  return fmt::format("{}: all but {}", head, titles(others));
}

void Document::find_causes() {
  std::map<std::string, const CellDocument*> by_name;
  for (const CellDocument& cell : cells) by_name.emplace(cell.of->cell.str(), &cell);
  std::set<const CellDocument*> reported;
  const auto cells_of = [&](const std::vector<std::string>& names) {
    Cells found;
    for (const std::string& name : std::set(names.begin(), names.end())) {
      const CellDocument* cell = look_up(by_name, name, nullptr);
      if (cell != nullptr) found.push_back(cell);
    }
    std::ranges::sort(found);  // in plan order
    reported.insert(found.begin(), found.end());
    return found;
  };
  for (const verdict::Cause& one : gate.causes) {
    causes.push_back(part_of(one, cells_of(one.cells), *this));
  }
  std::set<std::string> left;
  std::vector<Number> numbers;
  for (const verdict::Unexplained& one : gate.unexplained) {
    const Cells in = cells_of(one.cells);
    left.insert(one.cells.begin(), one.cells.end());
    numbers.push_back(numbers_of(one.what, in));
    numbers.back().where = where_of(in, *this);
  }
  if (!numbers.empty()) {
    unexplained = section(plain("Not explained"),
                          {number_table("what no cause explains", std::move(numbers), 12)});
    unexplained->cells = left.size();
    unexplained->kept = true;
  }
  // A cell of which neither says anything keeps its block.
  std::vector<Block*> folding;
  for (Block& block : blocks) {
    const bool all_reported = std::ranges::all_of(
        block.cells, [&](const CellDocument* cell) { return reported.contains(cell); });
    if (block.of().verdict == Outcome::fail && all_reported) folding.push_back(&block);
  }
  // One block says all its numbers at once.
  cause_first = !causes.empty() && folding.size() > 1;
  for (Block* block : folding) block->folded = cause_first;
}

}  // namespace weir::report
