// Writes the causes that explain a gate's failed cells, and names sets of cells.
#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/report/document.hpp"
#include "gate/unit/metric.hpp"

namespace weir::report {
namespace {

using profile::CellKey;
using Cells = std::vector<const CellDocument*>;
using Values = std::array<std::vector<std::string>, 4>;  // by engine, model, backend and prompt

// Collects the distinct values of each dimension of these cells.
Values dimension_values(const std::vector<CellKey>& cells) {
  Values values;
  std::array<std::set<std::string>, 4> seen;
  for (const CellKey& cell : cells) {
    const auto parts = cell_parts(cell);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (seen[i].insert(parts[i]).second) values[i].push_back(parts[i]);
    }
  }
  return values;
}

// Returns the values of a dimension if they are few and short ("prefill, decode"), else their
// number
// ("5 backends").
std::string dimension_text(const std::vector<std::string>& values, std::string_view dimension) {
  constexpr std::size_t k_few = 3, k_short = 20;
  const std::string names = text::join(values);
  const bool is_short = values.size() <= k_few && text::columns(names) <= k_short;
  return is_short || values.size() == 1 ? names : text::plural(values.size(), dimension);
}

// Returns "2 models × 5 backends × prefill, decode"; an engine that all cells share is left out.
std::string product_text(const Values& values, const Values& all) {
  constexpr std::string_view k_names[] = {"engine", "model", "backend", "prompt"};
  std::vector<std::string> parts;
  for (std::size_t i = all[0].size() == 1 ? 1 : 0; i < values.size(); ++i) {
    parts.push_back(dimension_text(values[i], k_names[i]));
  }
  return text::join(parts, " \u00d7 ");
}

// Returns the row of a metric over the cells that have it: its values and changes as texts, ranges
// if cells differ. Counts change by a difference, other metrics by percent. A rule that is no
// metric gets its reason, if that is the same in all cells.
Number metric_numbers(const std::string& metric, const Cells& cells) {
  Number number;
  std::vector<ShownValue> base, candidate, change;
  std::set<std::string> reasons;
  for (const CellDocument* cell : cells) {
    const MetricRow* row = look_up(cell->by_metric, metric, nullptr);
    if (row == nullptr) continue;
    const Judgement& judgement = *row->judgement;
    number.label = row->number.label;
    if (!judgement.is_metric()) reasons.insert(printable_line(judgement.reason, 200));
    if (judgement.baseline) base.emplace_back(*judgement.baseline, row->number.base);
    if (judgement.current) candidate.emplace_back(*judgement.current, row->number.candidate);
    if (!judgement.baseline || !judgement.current) continue;
    if (judgement.metric.kind == unit::Kind::count) {
      const double difference = *judgement.current - *judgement.baseline;
      if (difference != 0) {
        change.emplace_back(difference, show_change(judgement.metric, difference));
      }
    } else if (judgement.change) {
      change.emplace_back(*judgement.change, unit::signed_percent(*judgement.change));
    }
  }
  number.base = value_range(base);
  number.candidate = value_range(candidate);
  if (number.candidate.empty() && !number.base.empty()) number.candidate = "not measured";
  number.change = value_range(change);
  if (reasons.size() == 1) number.why = *reasons.begin();
  if (!number.label.empty()) return number;
  const auto metric_entry = unit::find_metric(metric);
  number.label = metric_entry ? unit::display_name(*metric_entry) : printable_line(metric, 100);
  return number;
}

// Describes which of the document's cells some are. Each set of cells is described once.
class Places {
 public:
  explicit Places(const Document& document)
      : all_(collect<CellKey>(document.cells,
                              [](const CellDocument& cell) { return cell.cell_verdict->cell; })) {}

  // "" for no cells.
  const std::string& text(const Cells& cells) {
    const auto [text, is_new] = texts_.try_emplace(cells);
    if (is_new && !cells.empty()) {
      const auto key = [](const CellDocument* cell) { return cell->cell_verdict->cell; };
      text->second = describe_cells(collect<CellKey>(cells, key), all_);
    }
    return text->second;
  }

 private:
  std::vector<CellKey> all_;
  std::map<Cells, std::string> texts_;
};

// Returns the row of a metric that carries (shows) a cause: its values and change, and in how many
// of the cells that measure it, if not in all.
Number carrier_row(const verdict::Carrier& carrier, const Cells& cells) {
  Cells changed = cells;
  std::erase_if(changed, [&](const CellDocument* cell) {
    const MetricRow* row = look_up(cell->by_metric, carrier.metric, nullptr);
    return row == nullptr || row->judgement->baseline == row->judgement->current;
  });
  Number number = metric_numbers(carrier.metric, changed);
  // The carrier's own range is exact where the verdict's numbers were rounded. Times of several
  // loads differ by their nature, so their change stays in percent.
  const auto metric = unit::find_metric(carrier.metric);
  if (metric && (metric->kind == unit::Kind::count || number.change.empty())) {
    number.change = value_range({{carrier.min_change, show_change(*metric, carrier.min_change)},
                                 {carrier.max_change, show_change(*metric, carrier.max_change)}});
  }
  const auto with_it = static_cast<std::size_t>(std::max<std::int64_t>(carrier.cells, 0));
  const auto have_metric = static_cast<std::size_t>(std::ranges::count_if(
      cells, [&](const CellDocument* cell) { return cell->by_metric.contains(carrier.metric); }));
  if (with_it < have_metric) {
    number.where = fmt::format("in {} of {}", with_it, text::plural(have_metric, "cell"));
  }
  return number;
}

// Returns what comes with a cause: "9 more counts follow from it. Also in these cells: More is
// copied." "" for nothing.
std::string consequences_text(const verdict::Cause& cause) {
  std::vector<std::string> sentences;
  if (cause.follow > 0) {
    const bool singular = cause.follow == 1;
    sentences.push_back(fmt::format("{} more {} from it.", cause.follow,
                                    singular ? "count follows" : "counts follow"));
  }
  if (!cause.beside.empty()) {
    const char* where = cause.cells.size() == 1 ? "Also in this cell: " : "Also in these cells: ";
    sentences.push_back(where + printable_line(text::join(cause.beside, "; "), 300) + ".");
  }
  return text::join(sentences, " ");
}

// Returns the section of a cause: cells, numbers, consequences, typical cause and place to look at.
Part cause_part(const verdict::Cause& cause, const Cells& cells, Places& places) {
  const std::string headline = printable_line(cause.headline, 400);
  const auto add_if_text = [](Parts& parts, Part part) {
    if (!plain_text(part.words).empty()) parts.push_back(std::move(part));
  };
  const std::string& place = places.text(cells);
  const std::string consequences = consequences_text(cause);
  Part part = section(plain(headline));
  part.cell_count = cause.cells.size();
  if (!place.empty()) part.parts.push_back(paragraph("", "In " + place + "."));
  part.parts.push_back(number_table("numbers that carry: " + headline,
                                    collect<Number>(cause.carriers, [&](const auto& carrier) {
                                      return carrier_row(carrier, cells);
                                    })));
  add_if_text(part.parts, paragraph("", consequences, /*soft=*/true));
  Part typical = paragraph("Typical cause", printable_line(cause.cause, 400), /*soft=*/true);
  add_if_text(part.parts, shown_to(k_long, std::move(typical)));
  add_if_text(part.parts, paragraph("Look at", printable_line(cause.look_at, 200)));
  return part;
}

}  // namespace

// Describes which of all cells these are, by the values that they share: "20 of 40 cells:
// tiny-llama × prefill".
std::string describe_cells(const std::vector<CellKey>& cells, const std::vector<CellKey>& all) {
  if (cells.size() == 1) return cell_title(cells.front());
  const bool are_all = cells.size() == all.size();
  std::string head = fmt::format("{} of {}", cells.size(), text::plural(all.size(), "cell"));
  if (are_all) head = fmt::format("all {} cells", all.size());
  if (are_all && all.size() == 2) head = "both cells";
  // Distinct cells are all combinations of their values if there are as many.
  const Values values = dimension_values(cells);
  std::size_t combinations = 1;
  for (const auto& list : values) combinations *= list.size();
  if (combinations == cells.size())
    return fmt::format("{}: {}", head, product_text(values, dimension_values(all)));
  if (are_all) return head;
  constexpr std::size_t k_max_names = 3;
  const auto list_titles = [](const std::vector<CellKey>& keys) {
    return list_names(collect<std::string>(keys, cell_title), k_max_names);
  };
  const bool few_missing = all.size() <= cells.size() + k_max_names;
  if (cells.size() <= k_max_names || !few_missing)
    return fmt::format("{}: {}", head, list_titles(cells));
  std::vector<CellKey> missing = all;
  const std::set<CellKey> described(cells.begin(), cells.end());
  std::erase_if(missing, [&](const CellKey& cell) { return described.contains(cell); });
  return fmt::format("{}: all but {}", head, list_titles(missing));
}

// Fills `causes` and `unexplained`, and folds the blocks of failed cells that they report.
void Document::find_causes() {
  std::map<std::string, const CellDocument*> by_name;
  for (const CellDocument& cell : cells) by_name.emplace(cell.cell_verdict->cell.str(), &cell);
  Places places(*this);
  std::set<const CellDocument*> reported;
  const auto take_reported_cells = [&](const std::vector<std::string>& names) {
    Cells matches;
    for (const std::string& name : std::set(names.begin(), names.end())) {
      const CellDocument* cell = look_up(by_name, name, nullptr);
      if (cell != nullptr) matches.push_back(cell);
    }
    std::ranges::sort(matches);  // in plan order
    reported.insert(matches.begin(), matches.end());
    return matches;
  };
  for (const verdict::Cause& cause : gate.causes) {
    causes.push_back(cause_part(cause, take_reported_cells(cause.cells), places));
  }
  std::set<std::string> unexplained_cells;
  std::vector<Number> numbers;
  for (const verdict::Unexplained& change : gate.unexplained) {
    const Cells with_change = take_reported_cells(change.cells);
    unexplained_cells.insert(change.cells.begin(), change.cells.end());
    numbers.push_back(metric_numbers(change.what, with_change));
    numbers.back().where = places.text(with_change);
  }
  if (!numbers.empty()) {
    unexplained = section(plain("Not explained"),
                          {number_table("what no cause explains", std::move(numbers), 12)});
    unexplained->cell_count = unexplained_cells.size();
    unexplained->has_room = true;
  }
  // A block stays open if causes and unexplained changes leave out any of its cells.
  std::vector<Block*> folding;
  for (Block& block : blocks) {
    const bool all_reported = std::ranges::all_of(
        block.cells, [&](const CellDocument* cell) { return reported.contains(cell); });
    if (block.first_verdict().verdict == Outcome::fail && all_reported) folding.push_back(&block);
  }
  // A single block is as short as its causes.
  cause_first = !causes.empty() && folding.size() > 1;
  for (Block* block : folding) block->folded = cause_first;
}

}  // namespace weir::report
