// Groups cells with the same results into blocks, so that reports say it once.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "gate/base/ending.hpp"
#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/profile/assemble.hpp"
#include "gate/report/document.hpp"

namespace weir::report {
namespace {

// Returns true if the change alone says what happened: "+12" of an exact count, whatever it was.
bool is_exact_change(const MetricRow& row) {
  return row.judgement->metric.kind == unit::Kind::count &&
         row.judgement->nature == profile::Nature::exact && row.number.differs() &&
         !row.number.change.empty();
}

// Returns a key that is equal for rows that report the same.
std::string row_key(const MetricRow& row) {
  const std::string reason = reason_is_plain(*row.judgement) ? "" : row.judgement->reason;
  return fmt::format("{}\n{}\n{}\n{}\n{}\n", verdict::to_string(row.judgement->verdict),
                     row.number.label, is_exact_change(row) ? "" : row.number.from_to(),
                     row.number.parts(), reason);
}

bool needs_attention(const MetricRow& row) {
  return row.judgement->verdict < Outcome::pass || has_observed_change(*row.judgement);
}

// Returns a key that is equal for cells of one block, which reports show together. Changed kernels
// are not part of it: a block lists them with the cells that have them.
std::string block_key(const CellDocument& cell) {
  const CellVerdict& cell_verdict = *cell.cell_verdict;
  const bool reason_only = reason_is_all(cell_verdict);
  // A cell without a reason of its own has its first metric's, and that has the values in it.
  const bool has_values = !reason_only && cell_verdict.reason.empty();
  const std::string reason = cell_verdict.verdict == Outcome::error ? error_key(cell) : cell.reason;
  std::string key =
      fmt::format("{}\n{}\n", verdict::to_string(cell_verdict.verdict), has_values ? "" : reason);
  if (reason_only) return key;
  key += judged_by(cell_verdict) + "\n";
  for (const MetricRow* row : cell.worst_first) {
    if (needs_attention(*row) && !row->follows) key += row_key(*row);
  }
  return key;
}

using Cells = std::vector<const CellDocument*>;

// Groups changes by the cells that have them; groups with more cells come first. Equal changes of
// one cell (long names are cut) are numbered, and those of one number go together.
std::vector<ChangedIn> shared_changes(const Cells& cells,
                                      std::vector<NamedChange> CellDocument::*changes) {
  Grouped<NamedChange, Cells> cells_by_change;
  for (const CellDocument* cell : cells) {
    std::map<std::string, std::size_t> shown;
    for (const NamedChange& change : cell->*changes) {
      const std::string text = change.change + "\n" + change.name;
      const std::string key = fmt::format("{}\n{}", text, shown[text]);
      ++shown[text];
      cells_by_change.find_or_add(key, change).push_back(cell);
    }
  }
  std::vector<ChangedIn> out;
  std::map<Cells, std::size_t> group_by_cells;
  for (auto& [change, with_change] : cells_by_change.all) {
    const auto [group, is_new] = group_by_cells.try_emplace(with_change, out.size());
    if (is_new) out.push_back({{}, std::move(with_change)});
    out[group->second].changes.push_back(std::move(change));
  }
  std::ranges::stable_sort(out, std::greater<>{},
                           [](const ChangedIn& changed_in) { return changed_in.cells.size(); });
  return out;
}

bool shows_same_numbers(const MetricRow& one, const MetricRow& other) {
  return one.judgement->verdict == other.judgement->verdict &&
         one.number.label == other.number.label && one.number.candidate == other.number.candidate &&
         one.number.base == other.number.base;
}

// Returns the row of `cell` with the label of `row`, or null.
const MetricRow* find_row_like(const CellDocument& cell, const MetricRow& row) {
  return look_up(cell.by_label, row.number.label, nullptr);
}

// Returns the value of a row over all cells: "68", or "68 … 82" if they differ.
std::string range_over_cells(const Cells& cells, const MetricRow& row,
                             std::optional<double> Judgement::*value, std::string Number::*text) {
  std::vector<ShownValue> values;
  for (const CellDocument* cell : cells) {
    const MetricRow* other = find_row_like(*cell, row);
    if (other != nullptr && other->judgement->*value) {
      values.emplace_back(*(other->judgement->*value), other->number.*text);
    }
  }
  return value_range(values);
}

// Returns the rows of metrics that a block shows once for all its cells, in the order of its first
// cell, the worst first: rows that somebody should look at, and passing ones that are equal in all
// cells. A changed exact count shows its range over the cells.
std::vector<MetricRow> shared_rows(const Cells& cells) {
  std::vector<MetricRow> rows;
  for (const MetricRow* row : cells.front()->worst_first) {
    const bool is_shared =
        needs_attention(*row) || std::ranges::all_of(cells, [&](const auto* cell) {
          const MetricRow* other = find_row_like(*cell, *row);
          return other != nullptr && shows_same_numbers(*other, *row);
        });
    if (!is_shared) continue;
    rows.push_back(*row);
    if (cells.size() == 1 || !is_exact_change(*row)) continue;
    Number& number = rows.back().number;
    number.base = range_over_cells(cells, *row, &Judgement::baseline, &Number::base);
    number.candidate = range_over_cells(cells, *row, &Judgement::current, &Number::candidate);
  }
  return rows;
}

}  // namespace

void SharedTexts::add(const std::string& text, const CellDocument& cell) {
  if (text.empty()) return;
  std::vector<const CellDocument*>& cells = texts_.find_or_add(text, text);
  if (cells.empty() || cells.back() != &cell) cells.push_back(&cell);
}

std::vector<Shared> SharedTexts::take() && {
  std::vector<Shared> list;
  for (auto& [text, cells] : texts_.all) list.push_back({std::move(text), std::move(cells)});
  return list;
}

std::string list_names(std::vector<std::string> names, std::size_t max_names) {
  const std::size_t all = names.size();
  names.resize(std::min(all, max_names));
  return text::join(names) + (all > max_names ? fmt::format(" and {} more", all - max_names) : "");
}

std::string error_key(const CellDocument& cell) {
  const std::vector<std::string> lines = text::lines(text::trim(cell.cell_verdict->stderr_tail));
  const std::string* reason_line = find_first(lines, text::gives_reason);
  if (reason_line == nullptr && !lines.empty()) reason_line = &lines.back();
  std::vector<std::string> words;
  if (reason_line != nullptr) words = text::split(*reason_line, ' ');
  std::erase_if(words, [](const auto& word) { return std::ranges::any_of(word, text::is_digit); });
  return profile::without_run_numbers(cell.reason) + "\n" + text::join(words, " ");
}

std::string shared_reason(const Cells& cells) {
  const std::string& first = cells.front()->reason;
  const bool same =
      std::ranges::all_of(cells, [&](const CellDocument* cell) { return cell->reason == first; });
  return same ? first : profile::without_run_numbers(first);
}

namespace {

// Returns true if a finding says no more than the rows of its metrics: a time changed, and nothing
// was counted beside it.
bool repeats_rows(const verdict::Finding& finding) {
  return finding.kind == "time_changed" && finding.cause.empty();
}

}  // namespace

Block::Block(Cells members, const std::vector<profile::CellKey>& all)
    : cells(std::move(members)), rows_(shared_rows(cells)) {
  if (!first_verdict().reason.empty()) reason = shared_reason(cells);
  for (const MetricRow& row : rows_) rows.push_back(&row);
  kernels = shared_changes(cells, &CellDocument::kernels);
  functions = shared_changes(cells, &CellDocument::functions);
  ops = shared_changes(cells, &CellDocument::ops);
  SharedTexts headlines;
  for (const CellDocument* cell : cells) {
    const auto& findings = cell->cell_verdict->findings;
    if (findings.empty() || repeats_rows(findings.front())) continue;
    headlines.add(printable_line(findings.front().headline, 400), *cell);
  }
  why = std::move(headlines).take();
  const auto keys =
      collect<profile::CellKey>(cells, [](auto* cell) { return cell->cell_verdict->cell; });
  GroupNames group = name_group(keys, all);
  title = std::move(group.title);
  for (std::size_t i = 0; i < group.names.size(); ++i) names[cells[i]] = group.names[i];
}

// Returns the title of a group of cells, and for each cell those parts of its name that are not
// common to all.
GroupNames name_group(const std::vector<profile::CellKey>& cells,
                      const std::vector<profile::CellKey>& all) {
  if (cells.size() == 1) return {cell_title(cells.front()), {}};
  std::array<std::string, 4> common = cell_parts(cells.front());  // "" where cells differ
  for (const profile::CellKey& cell : cells) {
    const auto parts = cell_parts(cell);
    for (std::size_t i = 0; i < common.size(); ++i) {
      if (parts[i] != common[i]) common[i].clear();
    }
  }
  GroupNames group{describe_cells(cells, all), {}};
  for (const profile::CellKey& cell : cells) {
    std::vector<std::string> differing_parts;
    auto parts = cell_parts(cell);
    for (std::size_t i = 0; i < common.size(); ++i) {
      if (common[i].empty()) differing_parts.push_back(std::move(parts[i]));
    }
    group.names.push_back(text::join(differing_parts, " / "));
  }
  return group;
}

std::string Block::list_cells(const Cells& some, std::size_t max_names) const {
  return list_names(collect<std::string>(some, [&](auto* cell) { return names.at(cell); }),
                    max_names);
}

std::string Block::in_cells(const Cells& some) const {
  if (some.size() == cells.size()) return "";
  constexpr std::size_t k_max_cells_listed = 3;
  return fmt::format("in {} of {} ({}): ", some.size(), cells.size(),
                     list_cells(some, k_max_cells_listed));
}

std::vector<Block> make_blocks(const std::vector<const CellDocument*>& cells,
                               const std::vector<profile::CellKey>& all) {
  Grouped<const CellDocument*, Cells> groups;
  for (const CellDocument* cell : cells) groups.find_or_add(block_key(*cell), cell).push_back(cell);
  std::vector<Block> blocks;
  for (auto& [first, group] : groups.all) blocks.emplace_back(std::move(group), all);
  return blocks;
}

}  // namespace weir::report
