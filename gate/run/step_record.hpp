// What the record of a step says of its process, whichever way that was run.
#pragma once

#include <optional>
#include <string>

#include "gate/profile/record.hpp"
#include "gate/run/plan.hpp"
#include "gate/run/runner.hpp"

namespace weir::run {

// The place of one process; gone when the process has been read.
class WorkPlace {
 public:
  WorkPlace(sys::Files& files, std::string path) : files_(files), path_(std::move(path)) {}
  ~WorkPlace() { (void)files_.remove_tree(path_); }  // what can not be removed does no harm
  WorkPlace(const WorkPlace&) = delete;
  WorkPlace& operator=(const WorkPlace&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string out() const { return path_ + "/out"; }
  [[nodiscard]] std::string probes() const { return path_ + "/probes"; }
  [[nodiscard]] Result<void> make() {
    WEIR_CHECK(files_.make_dirs(out()));
    return files_.make_dirs(probes());
  }

 private:
  sys::Files& files_;
  std::string path_;
};

// A record of the step as it begins.
[[nodiscard]] profile::RunRecord begin_record(const Effects& effects, const PreparedCell& cell,
                                              const Step& step, std::int64_t attempt);

// How the process ended and what it took.
void take_over(profile::RunRecord& record, const sys::Finished& finished);

// "crashed: SIGSEGV (Segmentation fault)".
[[nodiscard]] std::string signal_words(int signal);
// Why a process measures nothing; nothing when it ended as it should.
[[nodiscard]] std::optional<std::string> failure_of(const sys::Finished& finished,
                                                    const sys::ProcessSpec& spec);

// The end of hostile text, fit to show: at most 20 lines of at most 500 characters.
[[nodiscard]] std::string last_lines(std::string_view text);

}  // namespace weir::run
