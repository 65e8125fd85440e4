// What a run that was cut off lacks, in the profiles and words of what was read of it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "gate/app/session.hpp"
#include "gate/run/journal.hpp"

namespace weir::app {

// A counted pass that lacks a process gives no counts: two points of three fit a line that nobody
// planned. Times that are missing leave those that are there; the first line of a report tells.
class Interrupted {
 public:
  explicit Interrupted(const run::RunFile& file) : cells_(run::unfinished(file)) {}

  // Before profiles are made of them.
  void leave_out_counts(std::vector<profile::RunRecord>& records) const;
  // Errors of cells, what was not judged, and why nothing of it may be stored.
  void tell(Measured& measured) const;

 private:
  std::map<std::string, run::Unfinished> cells_;
};

}  // namespace weir::app
