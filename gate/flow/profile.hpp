// weir profile --html: the page of a profile, with what this machine is and what was run.
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
  std::string file;  // where it goes; "" for none
  report::Private privacy = report::Private::hidden;
};

// weir profile: one program once, with everything that the probes can see: a table and a Chrome
// trace. Judges nothing.
struct ProfileOptions {
  std::string what;                  // a file, a folder or a cell
  std::vector<std::string> words{};  // behind "--": a program
  std::vector<std::string> probes;   // empty: those that fit
  std::string timing = "batched";
  std::string trace;  // where it goes; "" for the profile's own folder
  ProfilePage page;
  double timeout = 600;
  std::uint64_t events_mib = 256;
  std::size_t top = 20;
  std::string by = "kernel";
  std::string peak_file;                             // --peak: ops at the highest rates
  std::shared_ptr<const observed::Observed> peak{};  // read from it
  bool keep = false;
  std::vector<std::string> given{};  // those of the options below that were on the command line
};
// Whether a program runs on a device twin, whose times mean nothing: by the environment that it
// inherits, or by words that set it ("env", "WEIR_TWIN=card.twin", or in a shell's command).
using Variables = std::function<std::optional<std::string>(const std::string& name)>;
[[nodiscard]] bool names_twin(const std::vector<std::string>& words, const Variables& variables);

[[nodiscard]] Result<Answer> profile(const Job& job, const ProfileOptions& options);

}  // namespace weir::flow
