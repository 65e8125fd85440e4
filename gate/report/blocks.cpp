// Cells of which the same is to be said, as one block: built once, for every format.
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

// "+12" of an exact count says what happened, whatever it was before.
bool change_says_all(const MetricRow& row) {
  return row.of->metric.kind == unit::Kind::count && row.of->nature == profile::Nature::exact &&
         row.words.differs() && !row.words.change.empty();
}

// Text of a row that needs a reader.
std::string row_key(const MetricRow& row) {
  const std::string reason = reason_is_plain(*row.of) ? "" : row.of->reason;
  return fmt::format("{}\n{}\n{}\n{}\n{}\n", verdict::to_string(row.of->verdict), row.words.label,
                     change_says_all(row) ? "" : row.words.from_to(), row.words.parts(), reason);
}

bool needs_a_reader(const MetricRow& row) {
  return row.of->verdict < Outcome::pass || observed_change(*row.of);
}

// Equal for cells that make one block. Kernels that differ stand in it, each with its cells.
std::string key_of(const CellDocument& cell) {
  const CellVerdict& of = *cell.of;
  const bool says_all = reason_says_all(of);
  // A cell without a reason of its own has its first metric's, and that has the values in it.
  const bool with_values = !says_all && of.reason.empty();
  const std::string reason = of.verdict == Outcome::error ? error_key(cell) : cell.reason;
  std::string key =
      fmt::format("{}\n{}\n", verdict::to_string(of.verdict), with_values ? "" : reason);
  if (says_all) return key;
  key += judged_by(of) + "\n";
  for (const MetricRow* row : cell.worst_first) {
    if (needs_a_reader(*row) && !row->follows) key += row_key(*row);
  }
  return key;
}

using Cells = std::vector<const CellDocument*>;

// Each change with the cells that have it; what more cells share stands first.
std::vector<ChangedIn> changes_of(const Cells& cells,
                                  std::vector<ChangedWords> CellDocument::*changes) {
  Grouped<ChangedWords, Cells> each;
  for (const CellDocument* cell : cells) {
    for (const ChangedWords& one : cell->*changes) {
      each.of(one.change + "\n" + one.name, one).push_back(cell);
    }
  }
  std::vector<ChangedIn> out;
  for (auto& [words, in] : each.all) {
    auto same = std::ranges::find(out, in, &ChangedIn::cells);
    if (same == out.end()) same = out.insert(out.end(), {{}, std::move(in)});
    same->changes.push_back(std::move(words));
  }
  std::ranges::stable_sort(out, std::greater<>{},
                           [](const ChangedIn& one) { return one.cells.size(); });
  return out;
}

bool alike(const MetricRow& one, const MetricRow& other) {
  return one.of->verdict == other.of->verdict && one.words.label == other.words.label &&
         one.words.now == other.words.now && one.words.base == other.words.base;
}

const MetricRow* same_row(const CellDocument& cell, const MetricRow& row) {
  return first_of(cell.rows,
                  [&](const MetricRow& other) { return other.words.label == row.words.label; });
}

// "68", or "68 … 82" where cells differ.
std::string range_of(const Cells& cells, const MetricRow& row,
                     std::optional<double> Judgement::*value, std::string Number::*words) {
  std::vector<ValueWords> values;
  for (const CellDocument* cell : cells) {
    const MetricRow* same = same_row(*cell, row);
    if (same != nullptr && same->of->*value) {
      values.emplace_back(*(same->of->*value), same->words.*words);
    }
  }
  return range_words(values);
}

// What is fine is shown where it is the same in all.
std::vector<MetricRow> rows_of(const Cells& cells) {
  std::vector<MetricRow> rows;
  for (const MetricRow* row : cells.front()->worst_first) {
    const bool shared = needs_a_reader(*row) || std::ranges::all_of(cells, [&](const auto* cell) {
                          const MetricRow* same = same_row(*cell, *row);
                          return same != nullptr && alike(*same, *row);
                        });
    if (!shared) continue;
    rows.push_back(*row);
    if (cells.size() == 1 || !change_says_all(*row)) continue;
    Number& words = rows.back().words;
    words.base = range_of(cells, *row, &Judgement::baseline, &Number::base);
    words.now = range_of(cells, *row, &Judgement::current, &Number::now);
  }
  return rows;
}

}  // namespace

void share(std::vector<Shared>& list, std::string text, const CellDocument& cell) {
  if (text.empty()) return;
  const auto found = std::ranges::find(list, text, &Shared::text);
  if (found == list.end()) {
    list.push_back({std::move(text), {&cell}});
  } else if (found->cells.back() != &cell) {
    found->cells.push_back(&cell);
  }
}

std::string listed(std::vector<std::string> names, std::size_t most) {
  const std::size_t all = names.size();
  names.resize(std::min(all, most));
  return text::join(names) + (all > most ? fmt::format(" and {} more", all - most) : "");
}

std::string error_key(const CellDocument& cell) {
  const std::vector<std::string> lines = text::lines(text::trim(cell.of->stderr_tail));
  const std::string* telling = first_of(lines, text::gives_reason);
  if (telling == nullptr && !lines.empty()) telling = &lines.back();
  std::vector<std::string> words;
  if (telling != nullptr) words = text::split(*telling, ' ');
  std::erase_if(words, [](const auto& word) { return std::ranges::any_of(word, text::is_digit); });
  return profile::without_run_numbers(cell.reason) + "\n" + text::join(words, " ");
}

std::string shared_reason(const Cells& cells) {
  const std::string& first = cells.front()->reason;
  const bool same =
      std::ranges::all_of(cells, [&](const CellDocument* cell) { return cell->reason == first; });
  return same ? first : profile::without_run_numbers(first);
}

Block::Block(Cells of, const std::vector<profile::CellKey>& all)
    : cells(std::move(of)), rows_(rows_of(cells)) {
  if (!this->of().reason.empty()) reason = shared_reason(cells);
  for (const MetricRow& row : rows_) rows.push_back(&row);
  kernels = changes_of(cells, &CellDocument::kernels);
  functions = changes_of(cells, &CellDocument::functions);
  ops = changes_of(cells, &CellDocument::ops);
  for (const CellDocument* cell : cells) {
    if (cell->of->findings.empty()) continue;
    share(why, one_line(cell->of->findings.front().headline, 400), *cell);
  }
  Together words =
      together(collect<profile::CellKey>(cells, [](auto* cell) { return cell->of->cell; }), all);
  title = std::move(words.title);
  for (std::size_t i = 0; i < words.names.size(); ++i) names[cells[i]] = words.names[i];
}

Together together(const std::vector<profile::CellKey>& cells,
                  const std::vector<profile::CellKey>& all) {
  if (cells.size() == 1) return {cell_title(cells.front()), {}};
  std::array<std::string, 4> common = cell_parts(cells.front());
  for (const profile::CellKey& cell : cells) {
    const auto parts = cell_parts(cell);
    for (std::size_t i = 0; i < common.size(); ++i) {
      if (parts[i] != common[i]) common[i].clear();
    }
  }
  Together made{where(cells, all), {}};
  for (const profile::CellKey& cell : cells) {
    std::vector<std::string> own;
    auto parts = cell_parts(cell);
    for (std::size_t i = 0; i < common.size(); ++i) {
      if (common[i].empty()) own.push_back(std::move(parts[i]));
    }
    made.names.push_back(text::join(own, " / "));
  }
  return made;
}

std::string Block::list(const Cells& some, std::size_t most) const {
  return listed(collect<std::string>(some, [&](auto* cell) { return names.at(cell); }), most);
}

std::string Block::in(const Cells& some) const {
  if (some.size() == cells.size()) return "";
  constexpr std::size_t k_most = 3;
  return fmt::format("in {} of {} ({}): ", some.size(), cells.size(), list(some, k_most));
}

std::vector<Block> blocks_of(const std::vector<const CellDocument*>& cells,
                             const std::vector<profile::CellKey>& all) {
  Grouped<const CellDocument*, Cells> groups;
  for (const CellDocument* cell : cells) groups.of(key_of(*cell), cell).push_back(cell);
  std::vector<Block> blocks;
  for (auto& [first, group] : groups.all) blocks.emplace_back(std::move(group), all);
  return blocks;
}

}  // namespace weir::report
