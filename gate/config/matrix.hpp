// Settings -> cells, in order; the command line of one engine process; and the cells split for
// several machines, so that all are done at about the same time. Pure.
#pragma once

#include <cstddef>

#include "gate/config/redactor.hpp"
#include "gate/profile/assemble.hpp"

namespace weir::config {

inline constexpr std::int64_t k_all_threads = -1;

// A file that is read in place of what a process would print.
struct ResultFile {
  std::string path;
  std::optional<std::string> warning{};  // of its run
};

// One cell, resolved: templates still hold their placeholders.
struct Cell {
  profile::CellKey key;
  std::string device;  // device that must really do the work
  std::optional<std::string> twin;
  std::int64_t twin_devices = 1;  // simulated GPUs
  std::string compile{};          // as in BackendSettings
  std::string adapter;
  const EngineSettings* engine =
      nullptr;                        // into the Settings it was made from, which must outlive it
  Arguments command;                  // templates, arguments of model/variant/backend/prompt placed
  std::vector<ResultFile> results{};  // one for each timed run; empty: it is run
  WantedLoad wanted_load{};           // of such a file; may_fail also of a server's timed load
  Arguments counted_run_args;         // appended in the counted pass
  Environment env;                    // templates; precedence engine < variant < backend < prompt
  std::set<std::string> passed_variables{};  // names that it inherits although they are withheld
  Environment counted_run_env;
  std::string model_path;  // as written
  std::int64_t prompt_tokens = 0, tokens = 0, depth = 0;
  std::optional<std::string> text, prompt_file;
  // Load of a server: requests under way at once, or arrivals a second, and requests in a timed
  // run.
  std::int64_t concurrency = 1;
  std::optional<double> rate{};
  std::int64_t requests = 1;
  bool must_be_held = false;           // its prompt says "hold: all"
  bool allows_cached_prompts = false;  // the server may answer prompts from its caches
  std::optional<double> duration_seconds{};
  std::optional<std::pair<double, double>> capacity{};
  std::optional<std::string> workload{};
  std::int64_t turns = 1;
  // A timed run of it is many in one.
  [[nodiscard]] bool runs_long() const { return duration_seconds || capacity; }
  // 0: the machine's physical cores, but one in processes that are counted; k_all_threads: in
  // these, too
  std::int64_t threads = 0;
  std::int64_t seed = 1;
  profile::Sweep sweep = profile::Sweep::tokens;
  bool is_private = false;
  std::vector<std::string> runner{};  // the backend's
  std::string gpu{};                  // the backend's, or the GPU that a container reported
  // Parts of the fingerprint as written in the config, without the program's path: name -> text
  // ("arguments", "environment", "prompt"). The caller adds the model's header.
  std::map<std::string, std::string> identity;
  // Patterns of metrics of single ops and kernels (unit/metric.hpp) that limits of this cell
  // name: of what an engine prints of them, only these are taken.
  std::vector<std::string> works{};
};

struct Matrix {
  std::vector<Cell> cells;         // engine, model, backend, prompt order as written
  std::vector<std::string> notes;  // combinations left out and why
};

// Fails with Code::config when an include entry asks by name for what does not fit, an exclude or
// limit entry matches nothing, a limit makes no sense for a metric, or no cell is left.
[[nodiscard]] Result<Matrix> expand(const Settings& settings);

// The names that select a cell: its own and what `redactor` shows for it, both also without
// "@d256", since that selects every depth.
[[nodiscard]] std::vector<std::string> selecting_names(const profile::CellKey& cell,
                                                       const Redactor& redactor);
// Names of cells before a pull request renamed them, by their names now.
using FormerNames = std::map<std::string, profile::CellKey>;
// Cells of which a selecting name, now or `former`, matches any of `globs` ('*' crosses '/'); all
// when empty. A glob that matches nothing is Code::usage with the nearest names.
[[nodiscard]] Result<std::vector<Cell>> select(const Matrix& matrix,
                                               std::span<const std::string> globs,
                                               const Redactor& redactor = {},
                                               const FormerNames& former = {});

// Values for placeholders besides a cell's own dimensions.
struct Filling {
  profile::RunParameters parameters;
  std::string model;        // resolved path
  std::string prompt_file;  // resolved path, "" when none
  std::string out;          // a folder the engine may write into
  std::string probe_dir;    // "" in a timed pass
  std::string port{};       // for a server that weir starts
  std::int64_t threads = 1;
  profile::Pass pass = profile::Pass::timed;
  bool bare = false;        // leave out all that the counted pass adds
  bool one_thread = false;  // whatever the config says
};
struct CommandLine {
  Arguments argv;   // argv[0] as written
  Environment env;  // variables set on top of the inherited environment
};
[[nodiscard]] CommandLine fill(const Cell& cell, const Filling& filling);

// Requests of the processes of each pass. A timed pass has one kind of process; a counted one has
// a process for each point of the sweep, in order.
[[nodiscard]] profile::RunParameters timed_request(const Cell& cell, const GateSettings& gate);
[[nodiscard]] std::vector<profile::RunParameters> counted_requests(
    const Cell& cell, std::span<const std::int64_t> lengths = {});
// The same for processes that instructions are counted of: their count varies a little from run to
// run, so that the points lie further apart.
[[nodiscard]] std::vector<profile::RunParameters> instruction_requests(const Cell& cell);

struct Shard {
  std::vector<std::string>
      runner;  // labels that a machine must offer ("runner" of the backend); may be empty
  std::vector<std::size_t> cells;  // places in the matrix, rising; never empty
  double seconds = 0;              // their total, by the weights
};

// At most `count` shards (>= 1), fewer where there are not as many things to split: the depths of
// one list stay together, for the line over them. `seconds` (> 0) are of each cell. Longest first,
// each to the shard that has least: none takes longer than its runners' mean by more than one cell.
// The same for the same input. Code::usage where there are more kinds of runners than shards.
[[nodiscard]] Result<std::vector<Shard>> make_shards(std::span<const Cell> cells,
                                                     std::span<const double> seconds,
                                                     std::size_t count);

// A guess of what one process of a cell takes where nothing is known, in seconds of an ordinary
// machine and a small model: good enough to balance cells of one kind, and told as a guess.
[[nodiscard]] double guessed_seconds(const Cell& cell, const profile::RunParameters& parameters);

}  // namespace weir::config
