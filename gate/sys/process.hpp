// Runs one engine process and everything it starts, and leaves none of it behind.
//
// Between weir and the engine stands a small supervisor process (supervisor.hpp): descendants that
// leave the engine's process group come back to it, and it ends all of them when the engine ends,
// when weir asks, and when weir is gone (also by kill -9). No shell anywhere: argument vectors.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gate/base/result.hpp"
#include "gate/sys/calls.hpp"
#include "gate/sys/interrupts.hpp"
#include "gate/sys/perf_events.hpp"

namespace weir::sys {

class Clock;
class Pause;

using EnvironmentList = std::vector<std::pair<std::string, std::string>>;

// All paths are absolute, and lead over no links.
struct WatchedFolder {
  std::string folder;
  std::vector<std::string> except{};  // files and folders in it that are left out
};

struct ProcessSpec {
  std::vector<std::string> argv;  // argv[0] is a path (find_program), never looked up here
  EnvironmentList env{};          // set on top of weir's own environment; an entry replaces
  // Names of weir's own environment that the engine shall not see; `env` comes after.
  std::vector<std::string> unset{};
  // Patterns of withheld variables (k_withheld) that it gets nevertheless; '*' stands for anything.
  std::vector<std::string> passed_variables{};
  std::string folder{};  // to run in; empty: weir's own
  double timeout_seconds = 300;
  double kill_grace_seconds = 3;  // from SIGTERM to SIGKILL
  // Seconds that the engine's children may go on after its own end before they are ended too. The
  // time-out is the engine's own: it stands still meanwhile.
  double settle_seconds = 0;
  // Standard output and standard error together; more stops the engine.
  std::uint64_t output_limit = std::uint64_t{16} << 20;
  // False: standard output is kept like standard error, so that much of it takes no memory.
  bool whole_output = true;
  // Bytes kept from the beginning and the end of standard error, and of output beyond the limit. A
  // line in between says how much was left out.
  std::size_t keep_head = std::size_t{64} << 10;
  std::size_t keep_tail = std::size_t{64} << 10;
  // Counted over the engine and everything it starts, from its first instruction to its end.
  std::optional<PerfEvent> count{};
  // System calls of all that, too: it then runs slower (calls.hpp).
  bool count_calls = false;
  // Finds which files of a folder all that opens and runs, where the system lets it be traced and
  // no calls are counted. It gains no rights from setuid programs then (sudo).
  std::optional<WatchedFolder> watched{};
  // Finds in the same way a process that opens a GPU's library without one of these variables, or
  // with another value of it that does not contain this one.
  EnvironmentList needed_with_gpu{};
  EnvironmentList needed_with_python{};  // the same of a process that runs Python
  // Hears what the engine prints as it comes, piece by piece, on the thread that is in run().
  std::function<void(std::string_view piece)> heard{};
  // Gets, on that thread, the id of a process of which the engine and all that it starts are
  // descendants. It lasts until run() returns.
  std::function<void(std::int64_t supervisor)> started{};
};

// Resources that the system used for a process and all that it started (rusage).
struct ProcessUsage {
  std::int64_t waits = 0;        // context switches because it waited
  std::int64_t preemptions = 0;  // context switches because another's turn came
  std::int64_t minor_faults = 0, major_faults = 0;

  friend bool operator==(const ProcessUsage&, const ProcessUsage&) = default;
};

enum class HowEnded {
  exited,        // by itself
  signaled,      // by a signal that weir did not send
  timed_out,     // weir stopped it
  output_limit,  // weir stopped it
  not_started,   // there never was such a process: start_error says why
  interrupted,   // a stop was requested
};

struct Finished {
  HowEnded ended = HowEnded::exited;
  int exit_code = 0;          // when exited
  int signal = 0;             // when signaled
  std::string start_error{};  // when not started: "No such file or directory"
  double wall_seconds = 0;    // from just before the start to the end of the engine itself
  std::optional<double> cpu_seconds{};  // user + system, with all that it started
  // The biggest resident size of the engine or of a descendant. Absent where the system cannot tell
  // it from weir's own (very small programs).
  std::optional<std::int64_t> peak_rss_bytes{};
  std::optional<std::int64_t> peak_rss_bound{};  // then: bytes that it does not exceed
  std::optional<ProcessUsage> usage{};
  std::string out{}, err{};
  std::uint64_t out_bytes = 0, err_bytes = 0;  // really printed, as far as weir read
  // The count that ProcessSpec::count asked for. Absent if none was asked for, or if the system
  // refused; then count_error has the reason.
  std::optional<PerfCount> counted{};
  std::string count_error{};
  std::optional<Calls> calls{};  // set if ProcessSpec::count_calls asked for it
  // Files of ProcessSpec::watched that were opened or run; absent where the system does not tell.
  std::optional<std::vector<std::string>> opened{};
  // The name of a library that was opened without ProcessSpec::needed_with_gpu; "" if none was.
  std::string gpu_library{};
  bool has_unprobed_python = false;  // Python ran without ProcessSpec::needed_with_python
  // Processes that the engine left behind and that were ended.
  std::int64_t left_behind = 0;
  // Holds the place of a large output in memory: keep no Finished longer than needed.
  std::shared_ptr<void> output_place{};
};

// Returns what a program wrote to standard error; to standard output if that is blank.
[[nodiscard]] const std::string& error_output(const Finished& finished);
// How it ended, behind the name of what ran: "exited with code 2", "was ended by signal 9".
[[nodiscard]] std::string describe_ending(const Finished& finished, const ProcessSpec& spec);

class Processes {
 public:
  virtual ~Processes() = default;
  // Blocks until the engine and all it started are gone. Safe to call from several threads. Fails
  // only where weir itself had no pipe, memory or process to give (Code::io); everything that the
  // engine does wrong is in Finished.
  [[nodiscard]] virtual Result<Finished> run(const ProcessSpec& spec, const Stop& stop) = 0;
};

// Why system calls cannot be counted here and what to do about it, two lines ready to show; nothing
// when they can. Tries it.
[[nodiscard]] std::optional<std::string> trace_problem(Processes& processes);

// Memory: an output may take 1 MiB at once; beyond that one process at a time may grow to its
// limit, the others are not read from meanwhile (their time-outs stand still).
class RealProcesses final : public Processes {
 public:
  RealProcesses();  // by the system's time
  // Time-outs go by `clock`. An engine that a signal asked to end is followed by a `pause`, in
  // which the same wish may reach weir. Both outlive this and are called from several threads.
  RealProcesses(const Clock& clock, Pause& pause);
  [[nodiscard]] Result<Finished> run(const ProcessSpec& spec, const Stop& stop) override;

 private:
  const Clock& clock_;
  Pause& pause_;
  // The place in memory for one large output is somebody's.
  std::shared_ptr<std::atomic<bool>> large_output_taken_ =
      std::make_shared<std::atomic<bool>>(false);
};

// No process inherits variables of these names: secrets, ways to them, git's settings of the
// moment, and the files by which a CI system takes orders from a step. '*' stands for anything;
// upper and lower case are the same. Nor does it inherit one whose value holds a secret: an address
// with a user (https://me@host, me:secret@host), a setting (password=…, sig=…, "apiKey": …), or a
// token or private key by its beginning (ghp_…).
inline constexpr auto k_withheld = std::to_array<std::string_view>(
    {"GITHUB_TOKEN", "GH_TOKEN", "WEIR_TOKEN", "WEIR_DB",
     // orders to a CI system
     "GITHUB_ENV", "GITHUB_OUTPUT", "GITHUB_PATH", "GITHUB_STATE", "GITHUB_STEP_SUMMARY",
     "ACTIONS_*", "BASH_ENV", "BUILDKITE_ENV_FILE", "BUILDKITE_AGENT_JOB_API_*",
     // names that passwords have
     "*PASSWORD*", "*PASSWD*", "*PASSPHRASE*", "*PASSCODE*", "*PASSFILE*", "PASS", "*_PASS",
     "*_PASS_FILE", "SSHPASS", "*_PSW", "*_PW", "*_PWD", "*_PAT", "*_OTP", "*MNEMONIC*",
     // names that keys and tokens have
     "*TOKEN*", "*SECRET*", "*JWT*", "*_KEY*", "*KEY", "*KEYS", "*KEYFILE*", "*KEYSTORE*", "*_PEM",
     "*_PFX", "*_P12", "SAS", "*_SAS",
     // names that log-ins have
     "*CREDENTIAL*", "*_CRED", "*_CREDS*", "AUTH", "AUTH_*", "*_AUTH", "*_AUTH_*",
     "*AUTHORIZATION*", "*OAUTH*", "*BEARER*", "*COOKIE*", "IDENTITY_HEADER",
     // names that addresses with a log-in have
     "*CONNECTION_STRING*", "*CONNECTIONSTRING*", "*CONNSTR*", "*WEBHOOK*", "DSN", "*_DSN",
     // agents and programs that hand out secrets
     "SSH_AGENT_PID", "GPG_AGENT_INFO", "*ASKPASS*",
     // files and folders of settings with secrets
     "NETRC", "WGETRC", "CURL_HOME", "KUBECONFIG", "DOCKER_CONFIG", "HELM_REGISTRY_CONFIG",
     "AWS_CONFIG_FILE", "AZURE_CONFIG_DIR", "CLOUDSDK_CONFIG", "BOTO_CONFIG", "OCI_*CONFIG_FILE",
     "DATABRICKS_CONFIG_FILE", "KAGGLE_CONFIG_DIR", "RCLONE_CONFIG*", "TF_CLI_CONFIG_FILE",
     "NPM_CONFIG_USERCONFIG", "NPM_CONFIG_GLOBALCONFIG", "GH_CONFIG_DIR", "GLAB_CONFIG_DIR",
     "GNUPGHOME", "PGSERVICEFILE", "MYSQL_TEST_LOGIN_FILE",
     // git's settings
     "GIT_CONFIG_COUNT", "GIT_CONFIG_KEY_*", "GIT_CONFIG_VALUE_*", "GIT_CONFIG_PARAMETERS"});
// The part of `own` that such a process inherits. Of git's settings only safe.directory stays:
// without it no program could use git in another user's folder. Pure.
[[nodiscard]] EnvironmentList inherited(const EnvironmentList& own,
                                        const std::vector<std::string>& passed);
// Names of weir's own environment that are withheld, joined by ", ". Those in `passed` are not.
[[nodiscard]] std::string withheld_names(const std::vector<std::string>& passed);

// Gives all threads of this process the processors, the priorities (also of access to disks) and
// the timer slack that it began with, where it may, and the process its limits on resources: an
// engine of the same user can have changed them. Returns false if the limits or the session's
// priority cannot be had back, or the process is in another cgroup.
[[nodiscard]] bool restore_own_settings();

// The absolute path of this program; "" where the system does not say.
[[nodiscard]] std::string own_program_path();
// weir's own environment.
[[nodiscard]] EnvironmentList own_environment();
// A variable of weir's own environment; nothing when unset.
[[nodiscard]] std::optional<std::string> environment_value(const std::string& name);

// One that nobody listens on at 127.0.0.1 at this moment. It is not kept: whoever shall have it
// binds it soon, and may still find it taken. Fails with Code::io when the system has none to give.
[[nodiscard]] Result<int> free_port();

// True if a server could listen there now.
[[nodiscard]] bool is_free(int port);

}  // namespace weir::sys
