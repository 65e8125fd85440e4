// The journal of a run, run.jsonl: a header line, then one record a line, each on the disk before
// the next engine's result is waited for. Between records, {"steps": […]} declares what was added
// to the plan while it was carried out, before it is: of a pair, in the order that its coin
// decided. The last of them is empty: nothing more was to be run.
//
// weir may be killed at any moment: all that can be missing is the end of the last line, which a
// reader leaves out and a resumed run cuts off. On a full disk a line may be torn further up, with
// the next one joined to it: a reader skips it, so that a resumed run runs its step again.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gate/profile/record.hpp"
#include "gate/run/plan.hpp"
#include "gate/sys/files.hpp"
#include "gate/sys/machine.hpp"

namespace weir::run {

// In a run's folder; the second once it is judged.
inline constexpr std::string_view k_journal_name = "run.jsonl", k_verdict_name = "verdict.json";

// Everything besides the records that is needed to compute a verdict again.
struct RunHeader {
  std::string weir_version;
  double started_at = 0;    // seconds since the epoch
  std::string config_file;  // as given
  std::string config_text;
  sys::Machine machine;
  std::vector<profile::CellFacts> cells;           // in plan order
  std::vector<profile::CellFacts> base_cells;      // the same cells of the base program, or none
  std::map<std::string, std::string> unavailable;  // cell name -> why nothing could be run
  std::vector<Step> steps;
  std::map<std::string, std::string> identity;  // Plan::identity
  std::vector<std::string> notes;               // about the matrix: cells that were left out
  Json extra = Json::object();                  // added by the app: options, commits
};
[[nodiscard]] RunHeader make_header(const Plan& plan);  // cells, unavailable, steps, identity

inline constexpr std::string_view k_accept_verb = "baseline accept";
// The verb that began a run, from RunHeader::extra. A run may be anybody's: "gate" where that names
// no verb of weir's.
[[nodiscard]] std::string verb_of_run(const Json& extra);
// The command of `verb` that goes on with an interrupted run, without the options that it was begun
// with but for --shard.
[[nodiscard]] std::string resume_command(std::string_view verb, const std::string& folder,
                                         const Json& extra);

struct RunFile {
  RunHeader header;                         // its steps with those that were added
  std::size_t planned = 0;                  // how many of the steps were there from the beginning
  std::vector<profile::RunRecord> records;  // as written; the last of each `order` and attempt
  std::uint64_t whole_bytes = 0;            // up to the end of the last whole line
  bool torn = false;                        // the last line was not whole
  std::vector<std::string> warnings;        // about parts that were left out
  // Beside a base program: nothing more was to be run ({"steps": []}). Without it the run was cut
  // off, whatever its records look like: pairs are declared one after the other.
  bool ended = false;
};

// Limits on hostile text: 1 GiB, 16 MiB and depth 64 a line, 1 000 000 records. Fails with
// Code::data naming the line; one that is no JSON is skipped, and behind it what does not fit.
[[nodiscard]] Result<RunFile> parse_run(std::string_view text);
// `run` is a run's folder, or its run.jsonl.
[[nodiscard]] Result<RunFile> read_run(const sys::Files& files, const std::string& run);

// The folders of runs below `out`, oldest first (by name, which starts with the time).
[[nodiscard]] std::vector<std::string> list_runs(const sys::Files& files, const std::string& out,
                                                 std::string_view journal = k_journal_name);
// The error where there is none.
[[nodiscard]] tl::unexpected<Error> no_run(const std::string& out);
// Returns true if the name of a run's folder is one of make_run_folder() for a second before
// `time`.
[[nodiscard]] bool named_before(const std::string& run, double time);
// When the run in a folder began, by the first line of its journal. Fails as read_run() does.
[[nodiscard]] Result<double> read_started_at(const sys::Files& files, const std::string& run);
// A folder name for a run that starts now, not in use below `out` yet; the folder is made.
[[nodiscard]] Result<std::string> make_run_folder(sys::Files& files, const std::string& out,
                                                  double now);

class Journal {
 public:
  // Begins run.jsonl in `folder`, which exists and has none yet.
  [[nodiscard]] static Result<Journal> create(sys::Files& files, const std::string& folder,
                                              const RunHeader& header);
  // Goes on with the run in `folder`: what was torn is cut off. Fails with Code::usage when `plan`
  // is not the one the run was begun with, Code::io when another weir is writing it.
  [[nodiscard]] static Result<Journal> resume(sys::Files& files, const std::string& folder,
                                              const Plan& plan);

  // Returns when the record is on the disk. Thread-safe.
  [[nodiscard]] Result<void> append(const profile::RunRecord& record);

  // Adds steps to the run: returns when they are on the disk. Their `order` goes on from the steps
  // before. Thread-safe.
  [[nodiscard]] Result<void> declare(std::span<const Step> steps);

  [[nodiscard]] const std::string& folder() const { return folder_; }
  // The records that were there when the journal was opened.
  [[nodiscard]] const std::vector<profile::RunRecord>& earlier() const { return earlier_records_; }
  [[nodiscard]] const std::vector<Step>& added_earlier() const { return added_steps_; }

 private:
  Journal(std::string folder, std::unique_ptr<sys::AppendLog> log)
      : folder_(std::move(folder)), log_(std::move(log)) {}
  std::string folder_;
  std::unique_ptr<sys::AppendLog> log_;
  std::vector<profile::RunRecord> earlier_records_;
  std::vector<Step> added_steps_;
};

[[nodiscard]] Json to_json(const RunHeader& header);
[[nodiscard]] Json to_json(const sys::Machine& machine);

// The unfinished part of an interrupted run, by cell. Pure.

// Processes of one cell that were planned and of which no record is there. A pass in which a
// process failed lacks nothing: weir gave it up, and its error says so.
struct Unfinished {
  std::int64_t counted = 0, counted_planned = 0;
  std::int64_t timed = 0, timed_planned = 0;
};

// By cell name; cells that lack nothing are not in it.
[[nodiscard]] std::map<std::string, Unfinished> unfinished(const RunFile& run);

}  // namespace weir::run
