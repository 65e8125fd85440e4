#include "gate/app/interrupted.hpp"

namespace weir::app {
namespace {

std::string ran(std::int64_t missing, std::int64_t planned) {
  return fmt::format("{} of {} processes ran: the run was interrupted", planned - missing, planned);
}

}  // namespace

void Interrupted::leave_out_counts(std::vector<profile::RunRecord>& records) const {
  std::erase_if(records, [&](const profile::RunRecord& record) {
    const auto found = cells_.find(record.cell);
    return record.pass == profile::Pass::counted && found != cells_.end() &&
           found->second.counted > 0;
  });
}

void Interrupted::tell(Measured& measured) const {
  std::size_t without_times = 0;
  std::int64_t missing = 0, planned = 0;
  for (profile::Profile& profile : measured.profiles) {
    const auto found = cells_.find(profile.cell.str());
    if (found == cells_.end()) continue;
    const run::Unfinished& lacks = found->second;
    missing += lacks.counted + lacks.timed;
    planned += lacks.counted_planned + lacks.timed_planned;
    if (lacks.timed > 0) ++without_times;
    const bool no_time = lacks.timed > 0 && lacks.timed == lacks.timed_planned;
    if (lacks.counted == 0 && !(no_time && lacks.counted_planned == 0)) continue;
    std::erase(profile.errors, profile::k_no_record);
    profile.errors.push_back(lacks.counted > 0
                                 ? "counted: " + ran(lacks.counted, lacks.counted_planned)
                                 : "timed: " + ran(lacks.timed, lacks.timed_planned));
  }
  if (without_times > 0) {
    measured.not_judged.push_back(
        fmt::format("timed processes missing in {} of {} cells: the run was interrupted",
                    without_times, measured.profiles.size()));
  }
  if (missing > 0) {
    measured.interrupted = fmt::format(
        "{} lacks {} of {} processes of its cells: it was interrupted\n"
        "  weir gate --resume {} goes on with it",
        measured.folder, missing, planned, measured.folder);
  }
}

}  // namespace weir::app
