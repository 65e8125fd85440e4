#include "gate/site/changes.hpp"

namespace weir::site {
namespace {

SiteChange::Kind kind_shown(history::SeriesChangeKind kind) {
  switch (kind) {
    case history::SeriesChangeKind::step:
      return SiteChange::Kind::step;
    case history::SeriesChangeKind::drift:
      return SiteChange::Kind::drift;
    case history::SeriesChangeKind::device_class:
      break;
  }
  return SiteChange::Kind::place;
}

SiteChange shown(const history::SeriesChange& found) {
  SiteChange change;
  change.kind = kind_shown(found.kind);
  change.index = found.index;
  change.end = found.end;
  change.before = found.before;
  change.after = found.after;
  change.size = found.size;
  change.low = found.low.value_or(found.size);
  change.high = found.high.value_or(found.size);
  change.relative = found.relative;
  if (found.new_class) {
    const history::ClassChange& place = *found.new_class;
    const bool device = place.device_class_before != place.device_class;
    change.from = device ? place.device_class_before : place.machine_class_before;
    change.to = device ? place.device_class : place.machine_class;
  }
  if (found.known) {
    change.known = SiteChange::Known{found.known->reason, found.known->who, found.known->at};
  }
  return change;
}

}  // namespace

std::vector<std::vector<SiteChange>> site_changes(
    const history::History& history, const std::vector<history::SeriesChange>& changes) {
  std::vector<std::vector<SiteChange>> all(history.series.size());
  for (const history::SeriesChange& one : changes) all[one.series].push_back(shown(one));
  return all;
}

}  // namespace weir::site
