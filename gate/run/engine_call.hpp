// One process of an engine, on this machine or in a container: where it works, how it is started,
// and what it leaves to be ended.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gate/profile/record.hpp"
#include "gate/run/container.hpp"
#include "gate/run/plan.hpp"
#include "gate/run/runner.hpp"
#include "gate/sys/folder_watch.hpp"

namespace weir::run {

// Warning of a record whose base was to be watched.
inline constexpr std::string_view k_not_watched =
    "the base may have run code of the work tree, where the candidate's is: this system does not "
    "tell which files a program opens (ptrace)";

// Warning of a record whose time is compared with that of a process of the other side.
inline constexpr std::string_view k_not_cached =
    "the model is larger than the memory that is available, so weir does not read it before each "
    "process: a process may wait for the disk";
inline constexpr std::string_view k_inputs_not_cached =
    "files that the command names are larger than the memory that is available, so weir does not "
    "read all of them before each process: a process may wait for the disk";

// The engine's command line in one step, and its environment as weir.yaml and the cell's twin have
// it: of one that runs here, and what is carried in of one in a container.
[[nodiscard]] config::CommandLine make_command_line(const PreparedCell& cell, const Step& step,
                                                    const std::string& out,
                                                    const std::string& probe_dir,
                                                    const std::string& port = "");

// A record of the step as it begins.
[[nodiscard]] profile::RunRecord begin_record(const Effects& effects, const PreparedCell& cell,
                                              const Step& step, std::int64_t attempt);

// "crashed: SIGSEGV (Segmentation fault)".
[[nodiscard]] std::string describe_signal(int signal);

// Advice for a time-out: "; if it was only slow, …: "timeout: 600s"".
[[nodiscard]] std::string timeout_hint(const config::EngineSettings& engine);

// The end of hostile text, fit to show: at most 20 lines of at most 500 characters. What a twin or
// a probe of weir's says in it comes last.
[[nodiscard]] std::string last_lines(std::string_view text);

// Undoes what engines, of the same user, may have done to weir's own process.
// Fails if no process may be started any more (Effects::check).
[[nodiscard]] Result<void> check_before_process(const Effects& effects);

// Its place lies below the run's `folder` (absolute) and is gone with it.
class EngineCall {
 public:
  EngineCall(const Effects& effects, const std::string& folder, const PreparedCell& cell,
             const Step& step, std::int64_t attempt);
  ~EngineCall();
  EngineCall(const EngineCall&) = delete;
  EngineCall& operator=(const EngineCall&) = delete;

  // Fails too as check_before_process() does.
  [[nodiscard]] Result<void> make_place();
  [[nodiscard]] std::string out() const { return root_ + "/out"; }
  [[nodiscard]] std::string probes() const { return root_ + "/probes"; }
  // It has what a counted process has, whether its counts or its times are asked for.
  [[nodiscard]] bool counts() const {
    return step_.with_probes.value_or(step_.pass == profile::Pass::counted);
  }
  // Probes count in it.
  [[nodiscard]] bool attaches_probes() const {
    if (!counts()) return false;
    return step_.counts == profile::Counts::python ||
           (!step_.is_counted_apart() && !cell_.probes.empty());
  }
  // Returns the probes to attach. With Python's comes the device's, which tells the processes that
  // use it.
  [[nodiscard]] std::vector<std::string> attached_probes() const;
  // An Error says so in words that are ready to show.
  [[nodiscard]] Result<void> attach_probes();
  // Command, environment and folder into `spec`; of one in a container those of docker, podman or
  // srun. Of a server: `port` is what {port} stands for, `published` where the container's shall be
  // reached. May be called again for another start.
  [[nodiscard]] Result<void> prepare(const std::string& port = "",
                                     const std::string& published = "");
  sys::ProcessSpec spec;
  // Reads the model, the prompt, the program with its libraries, and the files that the command
  // names into the system's cache if the process's time is compared with the other side's: one side
  // could drop them from there, and the other would wait for the disk.
  void read_inputs();

  // Stops and removes what the container's runtime may have left of a process that has ended.
  // Returns a warning if that fails or is uncertain, else "".
  [[nodiscard]] std::string end_leftovers(const Result<sys::Finished>& finished) const;
  // Why it compares nothing: a base that opened code of the user's work tree, where the candidate's
  // is, a process that used a device twin out of the probes' sight, or counts that were removed.
  [[nodiscard]] std::optional<std::string> wrong_code_reason(const sys::Finished& finished) const;
  // How it ended and what it took.
  void copy_outcome(profile::RunRecord& record, const sys::Finished& finished) const;
  // Why it measures nothing; nothing when it ended as it should.
  [[nodiscard]] std::optional<std::string> failure(const sys::Finished& finished) const;

 private:
  [[nodiscard]] config::CommandLine line(const std::string& port) const;
  [[nodiscard]] std::optional<sys::WatchedFolder> watched_folder() const;
  [[nodiscard]] std::optional<std::string> find_lost_counts() const;

  const Effects& effects_;
  const PreparedCell& cell_;
  const Step& step_;
  const config::ContainerSettings* container_;  // null: it runs here
  std::string root_;                            // absolute
  config::Environment probe_env_;
  sys::FolderWatch counts_watch_;  // of files that probes make
  ContainerFolders folders_;
  std::string name_;  // in the container's label, of srun's step: no other process has it
  std::string id_file_;
  bool is_too_large_ = false;      // the model, for the system's cache
  bool has_large_inputs_ = false;  // the same for what the command names
};

}  // namespace weir::run
