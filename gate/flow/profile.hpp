// weir profile: profiles a program or a cell, or shows a recorded profile.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gate/flow/job.hpp"
#include "gate/observed/observed.hpp"
#include "gate/observed/timeline.hpp"
#include "gate/report/hiding.hpp"

namespace weir::flow {
struct ProfilePage {
  std::string file;  // its file; "" for none
  report::PrivateWords privacy = report::PrivateWords::hidden;
};

// Options of weir profile, which makes a table and a Chrome trace. Judges nothing.
struct ProfileOptions {
  std::string what;                               // a file, a folder or a cell
  std::vector<std::string> trailing_arguments{};  // a program after "--"
  std::vector<std::string> probes;                // empty: those that fit
  std::string timing = "batched";
  std::string trace;  // its file; "" for the profile's own folder
  ProfilePage page;
  double timeout = 600;
  std::uint64_t events_mib = 256;
  std::size_t top = 20;
  std::string by = "kernel";
  std::string peak_file;                             // --peak: ops at the highest rates
  std::shared_ptr<const observed::Observed> peak{};  // read from peak_file
  bool keep = false;
  std::vector<std::string> given{};  // the options that were on the command line
};
// Returns true if a program runs on a device twin, where times mean nothing: its environment says
// so, or `words` set it ("env", "WEIR_TWIN=card.twin", or a shell's command).
using Variables = std::function<std::optional<std::string>(const std::string& name)>;
[[nodiscard]] bool names_twin(const std::vector<std::string>& words, const Variables& variables);

[[nodiscard]] Result<Answer> profile(const Job& job, const ProfileOptions& options);

}  // namespace weir::flow
