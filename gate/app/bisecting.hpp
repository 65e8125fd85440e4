// The work of weir bisect: each commit is checked out and built in weir's cache and held to the
// good one's own program, measured on this machine.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gate/app/bisect_journal.hpp"
#include "gate/app/command_line.hpp"
#include "gate/app/session.hpp"
#include "gate/source/bisection.hpp"

namespace weir::app {

struct BisectWanted {
  std::string good, bad;              // as typed
  bool times = false;                 // pairs beside the good one, in place of counts
  std::optional<std::string> resume;  // a folder, "" is the newest; good and bad are then its own
};

struct Bisected {
  BisectAsked asked;
  std::string folder;             // of its journal
  std::vector<BisectStep> steps;  // as tried
  // Those that may be the first bad commit, children before parents; one alone is it.
  std::vector<std::string> suspects;
  std::size_t commits = 0;  // that the bad one contains and the good one does not
  double seconds = 0;       // of this call
  // The newest known bad commit, of `suspects` the first, beside the good one; not veiled.
  std::string bad_subject;
  std::optional<verdict::GateVerdict> verdict;
  config::Veil veil;
};

// Never touches the checkout, the index, HEAD or the references of the user. Code::config where the
// good one is bad already or the bad one is good (nothing else was built then), or names nothing;
// Code::unavailable where one of these two can not be built or judged; Code::interrupted on a stop,
// saying how to go on.
[[nodiscard]] Result<Bisected> bisect(const CommonOptions& options, const BisectWanted& wanted,
                                      sys::Files& files);

}  // namespace weir::app
