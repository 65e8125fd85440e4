#include "gate/history/changed.hpp"

#include <map>
#include <tuple>

namespace weir::history {
namespace {

using SeriesName = std::tuple<std::string, std::string, std::string, std::string>;

SeriesName name_of(const Look& look) {
  return {look.project, look.cell, look.metric, look.machine};
}

// By series, how many points it had when it was first looked at: now, where it never was, which the
// store then keeps.
Result<std::vector<std::int64_t>> first_looks_of(Store& store, const Filter& filter,
                                                 const History& history, bool note) {
  WEIR_TRY(const std::vector<Look> kept, store.looks(filter));
  std::map<SeriesName, std::int64_t> known;
  for (const Look& look : kept) known.emplace(name_of(look), look.points);
  Batch fresh;
  std::vector<std::int64_t> first;
  for (const Series& series : history.series) {
    const Look look{series.project, series.cell, series.metric.name, series.machine,
                    static_cast<std::int64_t>(series.points.size())};
    const auto [at, is_new] = known.try_emplace(name_of(look), look.points);
    if (is_new) fresh.looks.push_back(look);
    first.push_back(at->second);
  }
  if (note && !fresh.looks.empty()) WEIR_CHECK(store.add(fresh));
  return first;
}

}  // namespace

Result<ChangedHistory> read_changes(Store& store, const Filter& filter, const CommitOrder& order,
                                    const ChangesWanted& wanted, Looks looks) {
  ChangedHistory read;
  WEIR_TRY(read.history, store.history(filter));
  put_in_order(read.history, order);
  WEIR_TRY(const auto acknowledged, store.acknowledgements(filter));
  std::vector<std::int64_t> first_looks;
  if (filter.branch || filter.since || filter.until) {
    first_looks.assign(read.history.series.size(), 0);
  } else if (looks != Looks::once) {
    WEIR_TRY(first_looks, first_looks_of(store, filter, read.history, looks == Looks::noted));
  }
  if (looks == Looks::once) first_looks.clear();
  WEIR_TRY(read.changes, changes_of(read.history, first_looks, acknowledged, wanted));
  return read;
}

}  // namespace weir::history
