// weir profile --html: the page of a profile, with what this machine is and what was run.
#pragma once

#include <string>
#include <vector>

#include "gate/base/result.hpp"
#include "gate/observed/timeline.hpp"
#include "gate/report/hiding.hpp"
#include "gate/report/profile_page.hpp"
#include "gate/sys/files.hpp"

namespace weir::app {

struct ProfilePage {
  std::string file;  // where it goes; "" for none
  report::Private privacy = report::Private::hidden;
  observed::By by = observed::By::kernel;
  // What was run, as its config hides it; empty where it was recorded before, and then nothing is
  // said of the machine and the time either.
  std::vector<std::string> command;
  std::string title;
};

// Fails with Code::unavailable where the pages are not installed. To be asked before anything runs.
[[nodiscard]] Result<std::string> page_template(const sys::Files& files);

// Writes it whole or not at all.
[[nodiscard]] Result<void> write_profile_page(const ProfilePage& page, const std::string& frame,
                                              const observed::Timeline& timeline,
                                              sys::Files& files);

// The same of what an engine or a profiler wrote, its ops named `by`: `page.title` is the file's
// name. Nothing is said of this machine, as the file was not made on it. `moments` is absent where
// the format has none.
[[nodiscard]] Result<void> write_observed_page(const ProfilePage& page, observed::GroupBy by,
                                               const std::string& frame,
                                               const observed::Observed& observed,
                                               const observed::ObservedMoments* moments,
                                               sys::Files& files);

}  // namespace weir::app
